# shellcheck shell=bash
# Starts a server for the demo and for `make run`; sourced after _lib.sh.
bin=$PWD/bin
demo=$PWD/.demo
mkdir -p "$demo"

# sample: the small shop database that questions are asked about. Made once.
sample() {
  [ -e "$demo/shop.duckdb" ] || "$bin/sluice" load "$demo/shop.duckdb" testdata/nl2sql/shopdesk/schema.sql testdata/nl2sql/shopdesk/data.sql >&2
}

# settings NAME: one read-only database, one lake folder in which exports/ may be written. Written once: it may be edited.
settings() {
  mkdir -p "$demo/$1"
  [ ! -e "$demo/$1/sluice.yaml" ] || return 0
  cat >"$demo/$1/sluice.yaml" <<YAML
databases:
  shop: {kind: duckdb, path: $demo/shop.duckdb}
lake:
  connections:
    local: {url: "file://$demo/$1/lake", write_allowlist: ["exports/"]}
YAML
}

# split_log HOME: the server's stderr goes to its log; the line with the first key goes to a file of its own.
split_log() {
  trap '' INT TERM # Ctrl-C is the server's to answer; its last words must still find their log
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
  local home=$demo/$1
  settings "$1"
  if ! (flock -n 8) 8>>"$home/lock"; then
    die "a server is up already on .demo/$1 ($(sed -n 's/^sluice listens on //p' "$home/server.log")): stop it first"
  fi
  : >"$home/server.log"
  # Models are kept in the cache: they are large, and every clone of this repository can share them. Flags win over the
  # variables of a user who has an Ollama or another Sluice. A session of its own: Ctrl-C must reach the server once,
  # through this script, since a second signal ends it at once.
  SLUICE_MODELS=$cache/demo-models setsid "$bin/sluice" serve --config "$home/sluice.yaml" --home "$home" --listen "$2" \
    2> >(split_log "$home") &
  server_pid=$!
  for _ in $(seq 300); do
    SLUICE_URL=$(sed -n 's/^sluice listens on //p' "$home/server.log")
    [ -z "$SLUICE_URL" ] || break
    kill -0 $server_pid 2>/dev/null || { sleep 0.3; cat "$home/server.log" >&2; die "the server did not start"; }
    sleep 0.1
  done
  [ -n "$SLUICE_URL" ] || { cat "$home/server.log" >&2; die "the server did not say where it listens"; }
  export SLUICE_URL
  first_key=
  # shellcheck disable=SC2034 # read by the script that sources this one
  if [ -e "$home/first.key" ]; then first_key=$(cat "$home/first.key"); rm -f "$home/first.key"; fi
}

# stop: asks the server to end and waits for it; the status is the server's.
stop() {
  local pid=${server_pid:-} status=0
  server_pid=
  [ -n "$pid" ] || return 0
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid" || status=$?
  return $status
}

# model NAME: installs a model from the cache when the server has none of that name.
model() {
  local file
  file=$(dev/models.sh "$1" | cut -d' ' -f2)
  "$bin/sluice" show "$1" >/dev/null 2>&1 && return 0
  # The system prompt is the one that Qwen's own chat template falls back to; without it the model chats badly.
  case $1 in
    qwen*) "$bin/sluice" create "$1" --from "$file" --system 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' ;;
    *) "$bin/sluice" create "$1" --from "$file" ;;
  esac
}
