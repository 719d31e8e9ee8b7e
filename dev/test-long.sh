#!/usr/bin/env bash
# What takes longer than CI may: fuzzing, long workloads, and the small model on the project's own question set, judged twice.
#   FUZZ_SECONDS  for each fuzz target (default 600)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_server.sh
. dev/_postgres.sh
test_postgres

say "== fuzzing, ${FUZZ_SECONDS:=600} s each"
git grep -nE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed -E 's|^([^:]+)/[^/:]+:[0-9]+:func (Fuzz[A-Za-z0-9]+).*|./\1 \2|' | while read -r package target; do
  # Fuzzing compiles anew all that a package links: for the engine's that is llama.cpp. Its seeds run in make engine-test.
  [ "$package" != ./runner/engine ] || continue
  say "-- $package $target"
  go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_SECONDS}s" -fuzzminimizetime 2s
done

say "== a server's ledger killed a thousand times while it appends"
SLUICE_TEST_KILLS=1000 go test -count=1 -timeout 60m ./store -run '^TestLedgerSurvivesKills$'

say "== the gate against the engine, 30 minutes of made and mutated statements"
SLUICE_TEST_GATE_SECONDS=1800 go test -count=1 ./database/duckdb -run "^TestGateAgainstTheEngine$" -timeout 60m

say "== the gate against PostgreSQL, 30 minutes of made and mutated statements"
SLUICE_TEST_GATE_SECONDS=1800 go test -count=1 ./internal/gateoracle -run '^TestRealGateAgainstTheServer$' -timeout 60m

say "== random requests against every route"
EXAMPLES=100 dev/schemathesis.sh

say "== a hundred runners killed under load"
SLUICE_TEST_KILLS=100 go test -count=1 -timeout 60m ./internal/e2e -run '^TestKillsUnderLoad$'

say "== ten thousand random requests on each described machine, three times"
SLUICE_TEST_WORKLOAD_REQUESTS=10000 SLUICE_TEST_WORKLOAD_SEEDS=1,2,3 go test -count=1 ./scheduler -run '^TestWorkloads$' -timeout 60m

say "== the plain prompt on the project's own questions, our verdicts beside score.py's"
chat_model=qwen2.5-coder:0.5b
sample
SLUICE_ADMIN_KEY=slc_test_$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
export SLUICE_ADMIN_KEY SLUICE_KEY=$SLUICE_ADMIN_KEY
serve long 127.0.0.1:0
trap 'kill -TERM $server_pid; wait $server_pid; stop_test_postgres' EXIT
model $chat_model
out=$(mktemp -d)
bin/sluice eval nl2sql testdata/nl2sql --plain --model $chat_model --out "$out/lines.jsonl" --verdicts "$out/ours.json"
"$SLUICE_TEST_PYTHON" testdata/nl2sql/score.py --set testdata/nl2sql --json "$out/theirs.json" "$out/lines.jsonl" | tail -1
"$SLUICE_TEST_PYTHON" - "$out" <<'PY'
import json, sys
ours, theirs = (json.load(open(f"{sys.argv[1]}/{n}.json")) for n in ("ours", "theirs"))
kind = lambda v: v["verdict"].split(":")[0]
different = [(a["id"], a["verdict"], b["verdict"]) for a, b in zip(ours, theirs, strict=True) if (a["id"], kind(a)) != (b["id"], kind(b))]
for d in different: print("different:", *d)
print(f"{len(ours) - len(different)} passed, {len(different)} failed")
sys.exit(bool(different))
PY
