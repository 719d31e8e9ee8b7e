#!/usr/bin/env bash
# All tests of `make test`, in the order from quick to whole. `make` sets the SLUICE_TEST_* variables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_postgres.sh
all=$(go list ./...)
plain=$(grep -vE '/(runner/engine|cmd/sluice-runner|internal/e2e)(/|$)' <<<"$all")

say "== format and vet"
unformatted=$(git ls-files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || die "gofmt would change: $unformatted"
# shellcheck disable=SC2086
go vet $plain ./internal/e2e

say "== every package but the engine, race detector on, with a PostgreSQL of its own"
test_postgres
# shellcheck disable=SC2086
go test -race -timeout 20m $plain

say "== the engine on a real model (no race detector: it would rebuild llama.cpp)"
make -s engine-test

say "== whole program: real server, real model, real clients"
go test -count=1 -timeout 30m ./internal/e2e
