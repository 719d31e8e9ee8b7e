#!/usr/bin/env bash
# Measures the answers to questions about databases, and prints one line "figure NAME VALUE" for each agent.* figure of bench/figures.tsv;
# the status is 1 when one is missing or short. Hours on two cores: KEEP=folder keeps each answer, and the same command goes on there.
#   SET=folder     the question set, of the form of testdata/nl2sql/README.md (needed)
#   ONLY=name,…    figures to measure          SIZES=small|mid        one model (default both)
#   TAGS=core      a quick look                POSTGRES=URL           databases on PostgreSQL instead of DuckDB
#   COLD=20        questions for agent.latency
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/bench" ./bench/agent
status=0
"$tools/bench" -sluice "${SLUICE_BENCH_BIN:-bin}/sluice" -models "$cache/models" -set "${SET:-}" -only "${ONLY:-}" -sizes "${SIZES:-small,mid}" \
  -tags "${TAGS:-}" -keep "${KEEP:-}" -postgres "${POSTGRES:-}" -cold "${COLD:-20}" || status=$?
exit $status
