-- name: InsertKey :exec
INSERT INTO api_keys (id, hash, owner, name, role, agent, databases, tables, models, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: KeyByHash :one
SELECT * FROM api_keys WHERE hash = ?;

-- name: Keys :many
SELECT * FROM api_keys ORDER BY created_at, id;

-- name: DeleteKey :execrows
DELETE FROM api_keys WHERE id = ?;

-- name: CountKeys :one
SELECT count(*) FROM api_keys;

-- name: InsertRun :exec
INSERT INTO lake_runs (id, job_id, principal, owner, database, statement, connection, path, state, kind, error,
                       rows, files, bytes, partitions, started_at, ended_at, added, replaced)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: UpdateRun :execrows
UPDATE lake_runs
SET state = ?, kind = ?, error = ?, rows = ?, files = ?, bytes = ?, partitions = ?, ended_at = ?, added = ?, replaced = ?
WHERE id = ?;

-- name: Runs :many
SELECT * FROM lake_runs ORDER BY started_at DESC, id DESC LIMIT ?;

-- name: UnsettledRuns :many
SELECT * FROM lake_runs WHERE state = 'running' OR added IS NOT NULL OR replaced IS NOT NULL ORDER BY id;

-- name: InsertExternal :exec
INSERT INTO external_tables (database, schema, name, connection, location, columns, partition_by, created_by, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: DeleteExternal :execrows
DELETE FROM external_tables WHERE database = ? AND name = ?;

-- name: Externals :many
SELECT * FROM external_tables WHERE database = ? ORDER BY name;

-- name: InsertAsk :exec
INSERT INTO asks (id, key_id, owner, database, question, written_sql, executed_sql, outcome, reason, model, model_calls,
                  duration_ms, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
