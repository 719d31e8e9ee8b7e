# shellcheck shell=bash
# Shared by the scripts that start and stop services; sourced, not run.
#   DEV_STATE  data, logs and pid files of the running servers
#   DEV_CACHE  downloaded or built server binaries, kept between runs
#   DEV_USER   as root only: the user that the servers run as (default nobody)
umask 022
DEV_STATE=${DEV_STATE:-/tmp/sluice-services-$(id -u)}
DEV_CACHE=${DEV_CACHE:-/var/tmp/sluice-services-cache-$(id -u)} # not in a home folder: the servers' user must read it
. "$(dirname "${BASH_SOURCE[0]}")/_lib.sh"

# A folder of ours that others may read but not write.
own_dir() {
  mkdir -p "$1" || die "cannot create $1"
  [ -O "$1" ] || die "$1 belongs to another user: set DEV_STATE and DEV_CACHE"
}

# Run a command as the servers' user: as root that is DEV_USER, else ourselves.
AS=()
[ "$(id -u)" != 0 ] || AS=(setpriv --reuid="$(id -u "${DEV_USER:-nobody}")"
  --regid="$(id -g "${DEV_USER:-nobody}")" --clear-groups env HOME=/tmp)
as_user() { "${AS[@]}" "$@"; }
give() { [ "$(id -u)" != 0 ] || chown -R "$(id -u "${DEV_USER:-nobody}"):$(id -g "${DEV_USER:-nobody}")" "$1"; }

# One start or stop of a service at a time. Servers must not inherit fd 9.
lock() {
  own_dir "$DEV_STATE"
  as_user test -x "$DEV_STATE" || die "${DEV_USER:-nobody} cannot enter $DEV_STATE: set DEV_STATE to a folder it can"
  exec 9>"$DEV_STATE/$1.lock"
  flock -w "${2:-900}" 9 || die "another start or stop of $1 is running"
}

port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() {
  local p _
  for _ in $(seq 50); do
    p=$((20000 + RANDOM % 12000))
    port_free "$p" && { echo "$p"; return; }
  done
  die "no free port"
}

secret() { od -An -tx1 -N16 /dev/urandom | tr -d ' \n'; }

# is_ours PID TEXT: the process is alive and TEXT stands in its command line.
is_ours() {
  [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$2"
}

# alive PID: it runs (one that ended but is not yet reaped does not).
alive() {
  local state
  state=$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2>/dev/null) && [ -n "$state" ] && [ "$state" != Z ]
}

# end_pid PID SIGNAL SECONDS: ask by SIGNAL, wait; KILL only that pid at the end.
end_pid() {
  local _
  kill -"$2" "$1" 2>/dev/null || return 0
  for _ in $(seq $(($3 * 10))); do
    alive "$1" || return 0
    sleep 0.1
  done
  say "pid $1 did not end in $3 s: KILL"
  kill -KILL "$1" 2>/dev/null || true
  sleep 0.2
}
