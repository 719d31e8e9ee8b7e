#!/usr/bin/env bash
# The scheduler's scenarios on a real NVIDIA GPU: loads on it, compares what is reported with the driver's own numbers, evicts, deletes.
# Prints a line PASS or FAIL for each and a summary. The status is 0 when all passed, 1 when one failed, 2 when it could not be run.
#
#   dev/gpu-check.sh
#   SLUICE_CUDA=FOLDER   a built lib/ollama (one of an installed Ollama of the same version will do) instead of building one
#   KEEP=1               leave the server's home and log behind
#
# Building takes nvcc, cmake and ninja, and some minutes; the result is kept in the cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$1: $2"); }
need nvidia-smi "it comes with NVIDIA's driver (in a container: docker run --gpus all)"
need curl "it asks the server"
need python3 "it reads the answers"
need pgrep "it finds the runner's process (package procps)"
for program in sluice sluice-runner; do [ -x "bin/$program" ] || missing+=("bin/$program: make build"); done
if [ -z "${SLUICE_CUDA:-}" ] && [ ! -e "$cache/gpu/lib/ollama/.built" ]; then
  need nvcc "the CUDA toolkit builds the backend (or set SLUICE_CUDA to a built one)"
  need cmake "it builds the backend"
  need ninja "it builds the backend (package ninja-build)"
  need go "it finds the engine's sources"
fi
if command -v nvidia-smi >/dev/null 2>&1 && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  missing+=("a GPU: nvidia-smi lists none")
fi
if [ ${#missing[@]} != 0 ]; then
  say "this machine cannot run the GPU check. Missing:"
  printf '  %s\n' "${missing[@]}" >&2
  exit 2
fi

# backend: builds libggml-cuda.so for the GPUs of this machine by the module's own presets. The libraries find each other by their place,
# because a runner gets no LD_LIBRARY_PATH; the engine takes them only from a path with lib/ollama in it.
backend() {
  local source preset
  source=$(go list -m -f '{{.Dir}}' github.com/ollama/ollama)
  case $(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p') in
    12) preset='CUDA 12' ;;
    13) preset='CUDA 13' ;;
    *) say "error: CUDA 12 or 13 is needed: $(nvcc --version | tail -1)"; exit 2 ;;
  esac
  rm -rf "$cache/gpu"
  mkdir -p "$cache/gpu"
  # shellcheck disable=SC2016 # $ORIGIN is the dynamic linker's
  slowly "configuring the CUDA backend" cmake -S "$source" --preset "$preset" -G Ninja -B "$cache/gpu/build" \
    -DCMAKE_INSTALL_PREFIX="$cache/gpu" -DCMAKE_CUDA_ARCHITECTURES=native -DCMAKE_INSTALL_RPATH='$ORIGIN;$ORIGIN/..'
  slowly "building the CUDA backend" cmake --build "$cache/gpu/build" --target ggml-cuda
  slowly "installing the CUDA backend" cmake --install "$cache/gpu/build" --component CUDA
  cp -a "$cache/gpu/build/lib/ollama/"libggml-base.so* "$cache/gpu/lib/ollama/"
  touch "$cache/gpu/lib/ollama/.built"
}

if [ -n "${SLUICE_CUDA:-}" ]; then
  lib=$SLUICE_CUDA
else
  [ -e "$cache/gpu/lib/ollama/.built" ] || backend
  lib=$cache/gpu/lib/ollama
fi
# The driver's CUDA decides which of several builds is right.
cuda=$(find "$lib" -name 'libggml-cuda.so' -printf '%h\n' | sort | tail -1)
[ -n "$cuda" ] || { say "error: there is no libggml-cuda.so below $lib"; exit 2; }
export SLUICE_BACKENDS=$lib:$cuda

passed=0 failed=0
pass() { passed=$((passed + 1)); echo "PASS $*"; }
fail() { failed=$((failed + 1)); echo "FAIL $*"; }
# check SENTENCE PYTHON-EXPRESSION [NAME=VALUE...]: the expression sees the values as numbers where they are such.
check() {
  local what=$1 expression=$2
  shift 2
  if python3 - "$expression" "$@" <<'PY'; then pass "$what ($*)"; else fail "$what ($*; wanted: $expression)"; fi
import sys
values = {}
for pair in sys.argv[2:]:
    name, _, text = pair.partition("=")
    try:
        values[name] = float(text)
    except ValueError:
        values[name] = text
sys.exit(0 if eval(sys.argv[1], {}, values) else 1)
PY
}

home=$(mktemp -d)
server_pid=
SLUICE_KEY=gpu-check-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
export SLUICE_KEY SLUICE_ADMIN_KEY=$SLUICE_KEY
# shellcheck disable=SC2317,SC2329 # the trap calls it
cleanup() {
  down
  if [ -n "${KEEP:-}" ]; then say "kept: $home"; else rm -rf "$home"; fi
}
trap cleanup EXIT

# up [SETTING=VALUE...]: starts a server with these variables; sets SLUICE_URL.
up() {
  : >"$home/log"
  env "$@" SLUICE_MODELS="$home/models" bin/sluice serve --home "$home" --listen 127.0.0.1:0 2>"$home/log" &
  server_pid=$!
  for _ in $(seq 300); do
    SLUICE_URL=$(sed -n 's/^sluice listens on //p' "$home/log")
    [ -z "$SLUICE_URL" ] || break
    kill -0 "$server_pid" 2>/dev/null || { cat "$home/log" >&2; die "the server did not start"; }
    sleep 0.1
  done
  [ -n "$SLUICE_URL" ] || die "the server did not say where it listens"
  export SLUICE_URL
}

down() {
  [ -n "$server_pid" ] || return 0
  kill -TERM "$server_pid" 2>/dev/null || true
  wait "$server_pid" || true
  server_pid=
}

get() { curl -fsS -H "Authorization: Bearer $SLUICE_KEY" "$SLUICE_URL$1"; }
# pick EXPRESSION: of the JSON on stdin, called j.
pick() { python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# ask MODEL: loads it and answers; prints tokens per second.
ask() {
  curl -fsS "$SLUICE_URL/api/generate" -d "{\"model\": \"$1\", \"prompt\": \"Count from one to twenty:\", \"stream\": false, \"options\": {\"num_predict\": 64}}" |
    pick 'round(j["eval_count"] / (j["eval_duration"] / 1e9), 1) if j["response"].strip() else 0'
}
# ps MODEL KEY: a value of /api/ps, "none" when the model is not loaded.
ps() { get /api/ps | pick "next((m[\"$2\"] for m in j[\"models\"] if m[\"name\"].startswith(\"$1\")), \"none\")"; }
# on_gpu PID: bytes that the driver says the process has.
on_gpu() {
  nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits |
    python3 -c 'import sys; print(sum(int(l.split(",")[1]) << 20 for l in sys.stdin if l.split(",")[0].strip() == sys.argv[1] and l.split(",")[1].strip().isdigit()))' "$1"
}
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | awk '{ n += $1 } END { print n * 1048576 }'; }
# settled LIMIT: waits until no more than so many bytes of all GPUs are used; prints what is used.
settled() {
  local now
  for _ in $(seq 80); do
    now=$(used)
    [ "$now" -gt "$1" ] || break
    sleep 0.25
  done
  echo "$now"
}

say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sort | uniq -c)"
gpus=$(OLLAMA_LIBRARY_PATH=$SLUICE_BACKENDS LD_LIBRARY_PATH=$SLUICE_BACKENDS bin/sluice-runner devices --json 2>/dev/null |
  pick 'sum(d["library"] == "cuda" for d in j)')
check "the engine sees a GPU" 'gpus > 0' gpus="$gpus"
if [ "$gpus" = 0 ]; then
  say "the engine loads no CUDA library from $SLUICE_BACKENDS:"
  OLLAMA_LIBRARY_PATH=$SLUICE_BACKENDS LD_LIBRARY_PATH=$SLUICE_BACKENDS bin/sluice-runner devices >&2 || true
  say "$passed passed, $failed failed"
  exit 1
fi

large=qwen2.5-coder:0.5b small=smollm2:135m
files=()
while read -r name file; do files+=("$name $file"); done < <(dev/models.sh "$large" "$small")
[ "${#files[@]}" = 2 ] || { say "error: the two models could not be fetched (dev/models.sh)"; exit 2; }
up
create() { bin/sluice create "$1" --from "$2" >"$home/create" 2>&1 || { cat "$home/create" >&2; die "$1 could not be made"; }; }
for line in "${files[@]}"; do create "${line%% *}" "${line#* }"; done

# 1. What is free is the driver's number. Others may use the GPU meanwhile: 64 MiB of slack.
free=$(get /v1/devices | pick 'sum(d["free_bytes"] for d in j["data"] if d["library"] == "cuda")')
check "GET /v1/devices gives the driver's free memory" 'abs(free - driver) < 64 * 2**20 + 0.01 * driver' free="$free" \
  driver="$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | awk '{ n += $1 } END { print n * 1048576 }')"
estimate=$({ SLUICE_MODELS=$home/models bin/sluice doctor --home "$home" --listen 127.0.0.1:0 --json 2>/dev/null || true; } |
  pick "sum(m[\"weights\"] + m[\"kv\"] + m[\"compute\"] for p in j[\"places\"] if p[\"model\"].startswith(\"$large\") for m in p[\"memory\"] if m[\"device\"] != \"cpu\")") || estimate=0
before=$(used)

# 2. Loading, and what is reported of it. A CUDA context takes 200 to 700 MiB that no allocation of ours shows.
speed=$(ask "$large")
check "the model answers" 'speed > 0' speed="$speed"
check "ps: all of it is on the GPU" 'gpu > 0.9 * size' size="$(ps "$large" size)" gpu="$(ps "$large" size_vram)"
runner=$(pgrep -P "$server_pid" | head -1)
driver=$(on_gpu "$runner")
if [ "$driver" = 0 ]; then driver=$(($(used) - before)); say "the driver does not tell processes apart here: the difference of all counts"; fi
check "what is reported is what the driver says the process has" 'reported <= driver < reported + 1024 * 2**20' \
  reported="$(ps "$large" size_vram)" driver="$driver"
check "the estimate before loading was right within 10 %" 'abs(estimate - reported) < 0.1 * reported' estimate="$estimate" reported="$(ps "$large" size_vram)"

# 3. Two models beside each other, and their sizes.
check "a second model is loaded beside the first" 'speed > 0 and first != "none"' speed="$(ask "$small")" first="$(ps "$large" state)"
a=$(ps "$large" size) b=$(ps "$small" size)

# 4. Deleting unloads: the process goes and its memory comes back.
bin/sluice rm "$small" >/dev/null 2>&1
bin/sluice stop "$large" >/dev/null 2>&1
check "deleted and stopped models give their memory back" 'used < before + 64 * 2**20' used="$(settled $((before + (64 << 20))))" before="$before"
check "ps lists neither" 'first == "none" and second == "none"' first="$(ps "$large" name)" second="$(ps "$small" name)"
down

# 5. limits.memory has room for one of the two: the idle one goes, nobody is refused.
for line in "${files[@]}"; do case $line in "$small "*) smallfile=${line#* } ;; esac; done
up SLUICE_MEMORY="$(python3 -c "print(int(max($a, $b) * 1.2))")"
create "$small" "$smallfile"
for round in 1 2; do
  ask "$large" >/dev/null
  check "round $round: the large model is there, the small one has gone" 'first == "ready" and second == "none"' first="$(ps "$large" state)" second="$(ps "$small" state)"
  ask "$small" >/dev/null
  check "round $round: the small model is there, the large one has gone" 'first == "none" and second == "ready"' first="$(ps "$large" state)" second="$(ps "$small" state)"
done
check "evictions are counted" 'evictions >= 3' evictions="$(get /metrics | awk '/^sluice_.*unload.*reason="room"/ { n += $NF } END { print n + 0 }')"
down
check "after the server has ended, nothing is left on the GPU" 'used < before + 64 * 2**20' used="$(settled $((before + (64 << 20))))" before="$before"

say "$passed passed, $failed failed"
[ "$failed" = 0 ]
