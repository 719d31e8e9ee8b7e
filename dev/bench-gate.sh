#!/usr/bin/env bash
# Measures the gate and the audit ledger, and prints one line "figure NAME VALUE" for each gate.* figure of bench/figures.tsv; the status
# is 1 when one is missing or short. ONLY=name,name picks figures. No server and no model is needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/bench" ./bench/gate
status=0
"$tools/bench" -only "${ONLY:-}" || status=$?
exit $status
