-- name: InsertCopyRequest :exec
INSERT INTO copy_requests (id, state, sha256, statement, database, connection, path, checked_sql, columns, key_id, key_name,
                           owner, login, ask, created_at, expires_at)
VALUES (?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: CopyRequestByID :one
SELECT * FROM copy_requests WHERE id = ?;

-- name: SameCopyRequest :one
SELECT * FROM copy_requests
WHERE owner = sqlc.arg(owner) AND state = 'pending' AND key_id = sqlc.arg(key_id) AND sha256 = sqlc.arg(sha256) AND expires_at > sqlc.arg(now)
ORDER BY created_at LIMIT 1;

-- name: CountPendingCopyRequests :one
SELECT count(*) FROM copy_requests WHERE owner = sqlc.arg(owner) AND state = 'pending' AND expires_at > sqlc.arg(now);

-- name: CopyRequestsBefore :many
SELECT * FROM copy_requests
WHERE created_at < sqlc.arg(created_at) OR created_at = sqlc.arg(created_at) AND id < sqlc.arg(id)
ORDER BY created_at DESC, id DESC LIMIT sqlc.arg(most);

-- name: DecideCopyRequest :execrows
UPDATE copy_requests SET state = sqlc.arg(state), decided_by = sqlc.arg(decided_by), decided_with = sqlc.arg(decided_with),
                         decided_at = sqlc.arg(now), reason = sqlc.arg(reason)
WHERE id = sqlc.arg(id) AND state = 'pending' AND expires_at > sqlc.arg(expires_after) AND sha256 = sqlc.arg(sha256);

-- name: StartCopyRequest :execrows
UPDATE copy_requests SET state = 'running', started_at = sqlc.arg(now) WHERE id = sqlc.arg(id) AND state = 'approved';

-- name: EndCopyRequest :execrows
UPDATE copy_requests SET state = sqlc.arg(state), ended_at = sqlc.arg(now), run_id = sqlc.arg(run_id), kind = sqlc.arg(kind), error = sqlc.arg(error)
WHERE id = sqlc.arg(id) AND state IN ('approved', 'running');

-- name: ExpireCopyRequests :exec
UPDATE copy_requests SET state = 'expired' WHERE state = 'pending' AND expires_at <= sqlc.arg(now);

-- name: UnsettledCopyRequests :many
SELECT * FROM copy_requests WHERE state IN ('approved', 'running') ORDER BY created_at, id;

-- name: RunsOfJob :many
SELECT * FROM lake_runs WHERE job_id = ? ORDER BY started_at DESC, id DESC;
