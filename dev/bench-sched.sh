#!/usr/bin/env bash
# Measures the scheduler beside Ollama's, and prints one line "figure NAME VALUE" for each sched.* figure of bench/figures.tsv; the status
# is 1 when one is missing or short. ONLY=name,name picks figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_peer.sh

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/bench" ./bench/sched
status=0
"$tools/bench" -sluice "${SLUICE_BENCH_BIN:-bin}/sluice" -ollama "$cache/peer/ollama" -models "$cache/models" -only "${ONLY:-}" || status=$?
exit $status
