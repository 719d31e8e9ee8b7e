#!/usr/bin/env bash
# Open WebUI in front of a running Sluice, and a look at ask/<database> in it with a real browser.
#   SLUICE_URL=http://127.0.0.1:11434 SLUICE_KEY=slc_… dev/open-webui.sh [--stay] [DATABASE [QUESTION]]
# SLUICE_KEY is a key that may read the database. Screenshots go to SHOT_DIR. --stay keeps it running to click in it.
# dev/setup.sh installs what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."
stay=0
if [ "${1:-}" = --stay ]; then stay=1; shift; fi
database=${1:-shop} question=${2:-How many customers are there?}
url=${SLUICE_URL:-http://127.0.0.1:11434}
: "${SLUICE_KEY:?set SLUICE_KEY to a key that may read the database}"
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
shots=${SHOT_DIR:-$(mktemp -d)}
out=$(mktemp)
export GATEWAY_URL=$url MODEL=ask/$database EMBED_MODEL=${EMBED_MODEL:-all-minilm:latest}
OLLAMA_API_CONFIGS="{\"0\":{\"enable\":true,\"key\":\"$SLUICE_KEY\"}}" OWUI_VENV=$cache/open-webui \
  python3 testdata/clients/open_webui_check.py --serve-only >"$out" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -f "$out"' EXIT
until grep -q '^OWUI_URL=' "$out"; do
  kill -0 $server 2>/dev/null || { cat "$out"; exit 1; }
  sleep 1
done
OWUI_URL=$(sed -n 's/^OWUI_URL=//p' "$out")
export OWUI_URL
if [ $stay = 1 ]; then
  echo "Open WebUI listens on $OWUI_URL; Ctrl-C ends it"
  wait $server
  exit
fi
QUESTION=$question SHOT_DIR=$shots NODE_PATH_DIR=$cache/node TIMEOUT=${TIMEOUT:-240} node testdata/clients/open_webui_ask.mjs
echo "screenshots: $shots"
