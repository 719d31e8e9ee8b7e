#!/usr/bin/env bash
# Measures searching vectors in PostgreSQL, and prints one line "figure NAME VALUE" for each rag.* figure of bench/figures.tsv; the status
# is 1 when one is missing or short. ONLY=name,name picks figures. The server is SLUICE_TEST_POSTGRES's, else one that is started for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_postgres.sh
test_postgres

status=0
go run ./bench/rag -only "${ONLY:-}" -postgres "$SLUICE_TEST_POSTGRES" || status=$?
exit $status
