#!/usr/bin/env bash
# Leaves a server up on Ollama's port (or a free one when that is taken), with a model and the sample database.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_server.sh
chat_model=qwen2.5-coder:0.5b
dev/models.sh $chat_model >/dev/null
sample
trap stop EXIT
trap 'echo; stop || true; exit 0' INT TERM
listen=127.0.0.1:11434
if (exec 3<>/dev/tcp/127.0.0.1/11434) 2>/dev/null; then
  say "$listen is taken (by an Ollama?): a free port is used instead"
  listen=127.0.0.1:0
fi
serve run "$listen"
key=${first_key:-${SLUICE_ADMIN_KEY:-}}
if [ -n "$key" ]; then
  export SLUICE_KEY=$key
  model $chat_model
fi
cat <<TXT

Sluice answers at $SLUICE_URL  (stop it with Ctrl-C; log: .demo/run/server.log)
$(if [ -n "$key" ]; then echo "admin key, shown this once: $key"; else echo "admin key: as shown at the first start (rm -r .demo/run makes a new one)"; fi)

Any Ollama client works as it is:   OLLAMA_HOST=$SLUICE_URL
  curl $SLUICE_URL/api/chat -d '{"model": "$chat_model", "messages": [{"role": "user", "content": "Hello!"}]}'

Databases and the lake need the key:
  export SLUICE_URL=$SLUICE_URL SLUICE_KEY=${key:-slc_...}
  curl $SLUICE_URL/v1/query/execute -H "Authorization: Bearer \$SLUICE_KEY" -d '{"database": "shop", "sql": "SELECT count(*) FROM orders"}'
  curl $SLUICE_URL/v1/database/ask -H "Authorization: Bearer \$SLUICE_KEY" -d '{"database": "shop", "question": "How many customers are there?"}'
  bin/sluice ask "How many customers are there in each country?"
TXT
wait $server_pid
