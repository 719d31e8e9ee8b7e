#!/usr/bin/env bash
# The main job before a newcomer's eyes: chat, ask, a refused write, a copy to the lake, and reading it back.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. dev/_lib.sh
. dev/_server.sh
start=$SECONDS

title() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
show() { printf '$ %s\n' "$*"; }

trap stop EXIT

chat_model=qwen2.5-coder:0.5b
dev/models.sh $chat_model >/dev/null
sample
SLUICE_ADMIN_KEY=slc_demo_$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')
export SLUICE_ADMIN_KEY
export SLUICE_KEY=$SLUICE_ADMIN_KEY
serve demo 127.0.0.1:0
echo "the server answers at $SLUICE_URL (log: .demo/demo/server.log)"
model $chat_model

title "1. Chat, streamed by a real model on this machine"
show "sluice run $chat_model 'Write one short sentence about a river.'"
bin/sluice run $chat_model 'Write one short sentence about a river.'

title "2. A question in plain language about the shop database"
question='How many customers are there in each country?'
show "sluice ask -d shop '$question'"
# What a small model makes of it may differ from processor to processor: a decline is an answer too.
bin/sluice ask -d shop "$question" || say "(exit status $?)"

title "3. A write is refused, with the reason"
show "sluice sql -d shop 'DELETE FROM orders'"
status=0
bin/sluice sql -d shop 'DELETE FROM orders' || status=$?
[ $status = 3 ] || die "expected a refusal (exit status 3), got $status"

title "4. Copy a query to the lake as partitioned Parquet"
copy="COPY (SELECT order_id, customer_id, ordered_at, status, channel FROM orders) TO LAKE 'exports/orders' WITH (CONNECTION = 'local', PARTITION_BY = (channel))"
show "sluice copy -d shop \"$copy\""
bin/sluice copy -d shop "$copy"
(cd .demo/demo/lake && find exports -type f | sort | sed 's/^/  /')

title "5. Read it back through an external table: only one partition is opened"
bin/sluice sql -d shop "DROP EXTERNAL TABLE IF EXISTS lake_orders" >/dev/null
create="CREATE EXTERNAL TABLE lake_orders STORED AS PARQUET LOCATION 'exports/orders' PARTITIONED BY (channel VARCHAR) WITH (CONNECTION = 'local')"
show "sluice sql -d shop \"$create\""
bin/sluice sql -d shop "$create"
read_back="SELECT channel, status, count(*) AS orders FROM lake_orders WHERE channel = 'web' GROUP BY ALL ORDER BY status"
show "sluice sql -d shop \"$read_back\""
bin/sluice sql -d shop "$read_back"

title "6. Stop"
stop || die "the server ended with status $?"
echo "the server stopped cleanly"
echo
echo "That took $((SECONDS - start)) s. Leave a server up with: make run"
