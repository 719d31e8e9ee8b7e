# shellcheck shell=bash
# Starts a server for the demo and for `make run`; sourced after _lib.sh.
bin=$PWD/bin
demo=$PWD/.demo
mkdir -p "$demo"

# sample: the small shop database that questions are asked about. Made once.
sample() {
  [ -e "$demo/shop.duckdb" ] || "$bin/sluice" load "$demo/shop.duckdb" testdata/nl2sql/shopdesk/schema.sql testdata/nl2sql/shopdesk/data.sql >&2
}

# settings NAME LISTEN: one read-only database, one lake folder in which exports/ may be written.
settings() {
  mkdir -p "$demo/$1"
  cat >"$demo/$1/sluice.yaml" <<YAML
listen: $2
home: $demo/$1
databases:
  shop: {kind: duckdb, path: $demo/shop.duckdb}
lake:
  connections:
    local: {url: "file://$demo/$1/lake", write_allowlist: ["exports/"]}
YAML
}

# split_log HOME: the server's stderr goes to its log; the line with the first key goes to a file of its own.
split_log() {
  umask 077
  local line
  while IFS= read -r line; do
    case $line in
      "admin key (shown this once): "*) printf '%s\n' "${line#*): }" >"$1/first.key" ;;
      *) printf '%s\n' "$line" >>"$1/server.log" ;;
    esac
  done
}

# serve NAME LISTEN: starts a server whose home is .demo/NAME; sets SLUICE_URL, server_pid and, at a first start
# without SLUICE_ADMIN_KEY, first_key. The key does not go to the log.
serve() {
  local home=$demo/$1 i
  settings "$1" "$2"
  : >"$home/server.log"
  # Models are kept in the cache: they are large, and every clone of this repository can share them.
  SLUICE_MODELS=${SLUICE_MODELS:-$cache/demo-models} "$bin/sluice" serve --config "$home/sluice.yaml" \
    2> >(split_log "$home") &
  server_pid=$!
  for i in $(seq 300); do
    SLUICE_URL=$(sed -n 's/^sluice listens on //p' "$home/server.log")
    [ -z "$SLUICE_URL" ] || break
    kill -0 $server_pid 2>/dev/null || { sleep 0.3; cat "$home/server.log" >&2; die "the server did not start"; }
    sleep 0.1
  done
  [ -n "$SLUICE_URL" ] || { cat "$home/server.log" >&2; die "the server did not say where it listens"; }
  export SLUICE_URL
  first_key=
  if [ -e "$home/first.key" ]; then first_key=$(cat "$home/first.key"); rm -f "$home/first.key"; fi
}

# model NAME: installs a model from the cache when the server has none of that name.
model() {
  local file
  file=$(dev/models.sh "$1" | cut -d' ' -f2)
  "$bin/sluice" show "$1" >/dev/null 2>&1 || "$bin/sluice" create "$1" --from "$file"
}
