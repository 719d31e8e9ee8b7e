#!/usr/bin/env bash
# Stops what start-postgres.sh started, by its pid. With --clean the data goes too.
set -euo pipefail
. "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/_services.sh"
lock postgres
data=$DEV_STATE/postgres/data
pid=$(head -n1 "$data/postmaster.pid" 2>/dev/null || true)
if is_ours "$pid" "$data"; then
  end_pid "$pid" INT 30 # a fast shutdown
  say "stopped postgres (pid $pid)"
else
  say "postgres was not running"
fi
[ "${1:-}" != --clean ] || rm -rf "$DEV_STATE/postgres"
