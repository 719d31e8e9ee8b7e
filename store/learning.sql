-- Queries of the Learning Loop.

-- name: InsertAsk :exec
INSERT INTO asks (id, key_id, owner, database, question, written_sql, executed_sql, outcome, reason, model, model_calls,
                  duration_ms, created_at, attempts, agreed, tables, candidates, timings, verified_id, scope, follows)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: InsertAskScope :exec
INSERT INTO ask_scopes (hash, relations) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING;

-- name: AskByID :one
SELECT * FROM asks WHERE id = ?;

-- name: AskScope :one
SELECT relations FROM ask_scopes WHERE hash = ?;

-- name: Asks :many
SELECT * FROM asks
WHERE (CAST(sqlc.arg(everybodys) AS INTEGER) = 1 OR owner = sqlc.arg(owner))
  AND (CAST(sqlc.arg(key_id) AS TEXT) = '' OR key_id = sqlc.arg(key_id))
  AND (CAST(sqlc.arg(database) AS TEXT) = '' OR database = sqlc.arg(database))
  AND (CAST(sqlc.arg(outcome) AS TEXT) = '' OR outcome = sqlc.arg(outcome))
  AND (CAST(sqlc.arg(any_mark) AS INTEGER) = 1 OR mark = sqlc.arg(mark))
  AND (created_at < sqlc.arg(before) OR created_at = sqlc.arg(before) AND id < CAST(sqlc.arg(before_id) AS TEXT))
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most);

-- name: MarkAsk :execrows
UPDATE asks SET mark = ?, marked_by = ?, marked_at = ?, note = ? WHERE id = ?;

-- name: DeleteAsksOf :exec
DELETE FROM asks WHERE owner = ?;

-- name: DeleteOldAsks :execrows
DELETE FROM asks WHERE mark = '' AND created_at < ?;

-- name: DeleteAsksBeyond :execrows
DELETE FROM asks WHERE id IN (SELECT a.id FROM asks AS a WHERE a.mark = '' ORDER BY a.created_at DESC, a.id DESC LIMIT -1 OFFSET sqlc.arg(most));

-- name: DeleteAsksOfBeyond :execrows
DELETE FROM asks
WHERE id IN (SELECT a.id FROM asks AS a WHERE a.owner = sqlc.arg(owner) AND a.mark = '' ORDER BY a.created_at DESC, a.id DESC LIMIT -1 OFFSET sqlc.arg(most));

-- name: DeleteIdleAskScopes :exec
DELETE FROM ask_scopes WHERE hash NOT IN (SELECT scope FROM asks);

-- name: PutVerified :one
INSERT INTO verified (id, database, owner, key_id, name, question, sql, verified_by, verified_at, from_ask, note)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (database, owner, key_id, question) DO UPDATE SET
    name = excluded.name, sql = excluded.sql, verified_by = excluded.verified_by, verified_at = excluded.verified_at,
    from_ask = excluded.from_ask, note = excluded.note
RETURNING *;

-- name: VerifiedByID :one
SELECT * FROM verified WHERE id = ?;

-- name: VerifiedAs :one
SELECT * FROM verified WHERE database = ? AND owner = ? AND key_id = ? AND question = ?;

-- name: VerifiedFromAsk :many
SELECT * FROM verified WHERE from_ask = ? ORDER BY id;

-- name: Verified :many
SELECT * FROM verified
WHERE (CAST(sqlc.arg(everybodys) AS INTEGER) = 1 OR owner = '' OR owner = sqlc.arg(owner) AND (CAST(sqlc.arg(whole) AS INTEGER) = 1 OR key_id IN ('', sqlc.arg(key_id))))
  AND (CAST(sqlc.arg(database) AS TEXT) = '' OR database = sqlc.arg(database))
  AND (verified_at < sqlc.arg(before) OR verified_at = sqlc.arg(before) AND id < CAST(sqlc.arg(before_id) AS TEXT))
ORDER BY verified_at DESC, id DESC LIMIT sqlc.arg(most);

-- name: VerifiedQuestions :many
SELECT id, question FROM verified
WHERE database = sqlc.arg(database) AND (owner = '' OR owner = sqlc.arg(owner) AND key_id IN ('', sqlc.arg(key_id)))
ORDER BY (owner = ''), verified_at DESC, id DESC;

-- name: CountVerified :one
SELECT count(*) FROM verified WHERE database = ? AND owner = ?;

-- name: DeleteVerified :execrows
DELETE FROM verified WHERE id = ?;

-- name: DeleteVerifiedOf :exec
DELETE FROM verified WHERE owner = ?;
