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
  # The ticker must not hold this script's output open when the script is killed: it ends with the command.
  (while sleep 15 && kill -0 $pid 2>/dev/null; do say "  $((SECONDS - start)) s: $what"; done) &
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
