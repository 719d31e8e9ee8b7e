#!/usr/bin/env bash
# Measures the engine and the gateway beside Ollama, and prints one line "figure NAME VALUE" for each engine.* and gateway.* figure of
# bench/figures.tsv; the status is 1 when one is missing or short. ONLY=name,name picks figures, PAIRS=n says how often each side is asked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_peer.sh

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/fakerunner" ./internal/fakerunner
go build -o "$tools/bench" ./bench/engine
status=0
"$tools/bench" -sluice "${SLUICE_BENCH_BIN:-bin}/sluice" -ollama "$cache/peer/ollama" -fakerunner "$tools/fakerunner" \
  -models "$cache/models" -only "${ONLY:-}" -pairs "${PAIRS:-5}" || status=$?
exit $status
