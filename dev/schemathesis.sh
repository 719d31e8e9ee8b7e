#!/usr/bin/env bash
# schemathesis over /v1/openapi.json: made-up requests to every route, with a read-only key that may read one table, with a
# key of a user without grants, and with no credential. No 500, no answer that the document does not tell, nothing written,
# nothing readable without its grant. About 3 minutes on two cores.
#   dev/schemathesis.sh [OPTIONS]  of schemathesis, such as --include-path-regex /v1/lake, for a part
#   EXAMPLES  made-up requests for each route and run, besides those at the edges of the types (default 30)
#   MODEL_SHARE  of the requests to chat and the like that name a model which is there (default 0.1)
#   SEED      of what is made up (default 1)
#   KEEP      folder for the traffic, the log and the reports (default: thrown away when all is well)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
export SEED=${SEED:-1}
options=("$@")
[ $# = 0 ] || export PART=yes

venv=$cache/schemathesis
want=$(sha256sum dev/requirements-schemathesis.txt | cut -c1-16)
if [ ! -e "$venv/.$want" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  slowly "installing schemathesis" "$venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: -r dev/requirements-schemathesis.txt
  touch "$venv/.$want"
fi
read -r _ chat < <(dev/models.sh smollm2:135m)
read -r _ embed < <(dev/models.sh all-minilm)

umask 077
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work"
work=$(cd "$work" && pwd)
server_pid=
stop() {
  local pid=$server_pid
  server_pid=
  [ -z "$pid" ] || { kill -TERM "$pid" 2>/dev/null && wait "$pid"; }
}
trap 'stop || true' EXIT

# A scratch server: the shop with a table that nobody is granted, and a database, a connection and a user that nobody may know of.
cat >"$work/vault.sql" <<'SQL'
CREATE TABLE vault_salaries (person VARCHAR NOT NULL, salary_note VARCHAR NOT NULL);
COMMENT ON TABLE vault_salaries IS 'vault remark';
INSERT INTO vault_salaries VALUES ('zq7 ostrich-lantern', 'kx9 marmalade-anvil'), ('wj4 pelican-gasket', 'vb2 thimble-comet');
SQL
cat >"$work/pay.sql" <<'SQL'
CREATE TABLE vault_ledger (entry VARCHAR NOT NULL);
INSERT INTO vault_ledger VALUES ('hf3 quartz-umbrella'), ('dn8 walnut-periscope');
SQL
bin/sluice load "$work/shop.duckdb" testdata/nl2sql/shopdesk/schema.sql testdata/nl2sql/shopdesk/data.sql "$work/vault.sql" >&2
bin/sluice load "$work/vault.duckdb" "$work/pay.sql" >&2
cat >"$work/sluice.yaml" <<YAML
auth: {ollama_routes: open, open_admin: false}
limits: {statement_timeout: 5s, rows: 200}
agent: {model: "smollm2:135m", timeout: 3s}
engine: {context_length: 512, num_parallel: 1}
databases:
  shop: {kind: duckdb, path: $work/shop.duckdb}
  vaultpay: {kind: duckdb, path: $work/vault.duckdb}
lake:
  connections:
    local: {url: "file://$work/lake", write_allowlist: ["exports/"]}
    vaultlake: {url: "file://$work/vaultlake", write_allowlist: ["exports/"]}
YAML
SLUICE_ADMIN_KEY=slc_test_$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
export SLUICE_ADMIN_KEY SLUICE_KEY=$SLUICE_ADMIN_KEY
SLUICE_MODELS=$work/models bin/sluice serve --config "$work/sluice.yaml" --home "$work/home" --listen 127.0.0.1:0 2>"$work/server.log" &
server_pid=$!
for _ in $(seq 300); do
  SLUICE_URL=$(sed -n 's/^sluice listens on //p' "$work/server.log")
  [ -z "$SLUICE_URL" ] || break
  kill -0 $server_pid 2>/dev/null || { cat "$work/server.log" >&2; die "the server did not start"; }
  sleep 0.1
done
[ -n "$SLUICE_URL" ] || die "the server did not say where it listens"
export SLUICE_URL
bin/sluice create smollm2:135m --from "$chat" --param num_predict=2 >&2
bin/sluice create all-minilm --from "$embed" >&2
check() { PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" dev/schemathesis_check.py "$@"; }
check prepare "$work"
. "$work/keys.env"

# What is on the disk: the data and the lake, and the models' files.
files() { (cd "$work" && find shop.duckdb* vault.duckdb* lake vaultlake models -type f 2>/dev/null | sort | xargs -d '\n' sha256sum); }
rm -f "$work"/traffic-*.jsonl
check state "$work" >"$work/before.json"
files >"$work/before.sums"

failed=0
run() { # NAME [OPTIONS...]
  local name=$1 status=0
  shift
  say "== schemathesis, $name"
  SLUICE_TRAFFIC=$work/traffic-$name.jsonl SCHEMATHESIS_HOOKS=dev/schemathesis_hooks.py PYTHONPATH=dev PYTHONDONTWRITEBYTECODE=1 \
    "$venv/bin/schemathesis" --config-file dev/schemathesis.toml --no-color run "$SLUICE_URL/v1/openapi.json" --phases examples,coverage,fuzzing \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --max-examples "${EXAMPLES:-30}" --seed "$SEED" --generation-database none --warnings off --report junit --report-dir "$work/report-$name" "$@" \
    >"$work/$name.txt" 2>&1 || status=$?
  if [ $status != 0 ]; then
    failed=1
    sed -n '/= FAILURES =/,$p;/= ERRORS =/,$p' "$work/$name.txt" | head -400
  fi
  tail -12 "$work/$name.txt"
}
run reader -H "Authorization: Bearer $READER" "${options[@]}"
run newcomer -H "Authorization: Bearer $NEWCOMER" --include-tag data --include-tag lake --include-tag access "${options[@]}"
run anonymous "${options[@]}"
READER=$READER NEWCOMER=$NEWCOMER check probe "$work"

kill -0 $server_pid || { failed=1; say "the server is gone"; tail -20 "$work/server.log" >&2; die "the server did not survive"; }
check state "$work" >"$work/after.json"
files >"$work/after.sums"
diff "$work/before.sums" "$work/after.sums" || { failed=1; say "files changed"; }
stop || { failed=1; say "the server ended with status $?"; }
check verify "$work" || failed=1
if [ $failed != 0 ]; then
  say "what was asked and answered: $work"
  exit 1
fi
say "every route answers as the document says; nothing was written, nothing was told that is not granted"
[ -n "${KEEP:-}" ] || rm -rf "$work"
