# shellcheck shell=bash
# Shared by the scripts beside it; sourced, not run.
#   SLUICE_CACHE  what is fetched and kept between runs, outside the tree
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# slowly MESSAGE COMMAND...: runs a command that takes a while, says so, and says every 15 s that it is still at it.
# Its output goes to a log that is shown when it fails.
slowly() {
  local what=$1 log start=$SECONDS pid
  shift
  mkdir -p "$cache/log"
  log=$cache/log/$$-$RANDOM.log
  say "$what ..."
  "$@" >"$log" 2>&1 &
  pid=$!
  # The ticker's sleep holds neither our output (a pipe would stay open) nor the set-up's lock.
  # shellcheck disable=SC2217
  (while sleep 15 9>&- </dev/null >/dev/null 2>&1 && kill -0 $pid 2>/dev/null; do say "  $((SECONDS - start)) s: $what"; done) 9>&- &
  local ticker=$!
  if wait $pid; then
    kill $ticker 2>/dev/null || true
    say "  done in $((SECONDS - start)) s"
    rm -f "$log"
    return 0
  fi
  kill $ticker 2>/dev/null || true
  tail -40 "$log" >&2
  say "error: failed: $* (whole log: $log)"
  return 1
}
