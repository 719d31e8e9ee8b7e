-- name: InsertKey :exec
INSERT INTO api_keys (id, hash, owner, name, role, agent, databases, tables, models, created_at, acts_for, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: KeyByHash :one
SELECT * FROM api_keys WHERE hash = ?;

-- name: Keys :many
SELECT * FROM api_keys ORDER BY created_at, id;

-- name: KeyByID :one
SELECT * FROM api_keys WHERE id = ?;

-- name: UpdateKey :execrows
UPDATE api_keys SET name = ?, role = ?, databases = ?, tables = ?, models = ?, expires_at = ? WHERE id = ?;

-- name: TouchKey :exec
UPDATE api_keys SET last_used = sqlc.arg(now) WHERE id = sqlc.arg(id) AND (last_used IS NULL OR last_used < sqlc.arg(before));

-- name: DeleteKey :execrows
DELETE FROM api_keys WHERE id = ?;

-- name: DeleteKeysOf :exec
DELETE FROM api_keys WHERE owner = ?;

-- name: InsertUser :exec
INSERT INTO users (name, role, password, disabled, created_at) VALUES (?, ?, ?, ?, ?);

-- name: UserByName :one
SELECT * FROM users WHERE name = ?;

-- name: Users :many
SELECT * FROM users ORDER BY name;

-- name: UpdateUser :execrows
UPDATE users SET role = ?, password = ?, disabled = ? WHERE name = ?;

-- name: RehashPassword :exec
UPDATE users SET password = sqlc.arg(fresh) WHERE name = sqlc.arg(name) AND password = sqlc.arg(old);

-- name: TouchUser :exec
UPDATE users SET last_login = ? WHERE name = ?;

-- name: DeleteUser :execrows
DELETE FROM users WHERE name = ?;

-- name: InsertLogin :exec
INSERT INTO logins (id, hash, owner, created_at, authenticated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?);

-- name: LoginByHash :one
SELECT * FROM logins WHERE hash = ?;

-- name: LoginByID :one
SELECT * FROM logins WHERE id = ?;

-- name: RefreshLogin :execrows
UPDATE logins SET authenticated_at = ? WHERE id = ? AND owner = ?;

-- name: DeleteLogin :execrows
DELETE FROM logins WHERE id = ?;

-- name: DeleteLoginsOf :exec
DELETE FROM logins WHERE owner = ?;

-- name: DeleteEndedLogins :exec
DELETE FROM logins WHERE expires_at <= ?;

-- name: DeleteOldLogins :exec
DELETE FROM logins
WHERE logins.owner = sqlc.arg(owner) AND logins.id NOT IN (
    SELECT l.id FROM logins AS l WHERE l.owner = sqlc.arg(owner) ORDER BY l.created_at DESC, l.id DESC LIMIT sqlc.arg(most)
);

-- name: InsertGrant :exec
INSERT INTO grants (id, principal, kind, database, relation, connection, path, name, access, created_by, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: Grants :many
SELECT * FROM grants ORDER BY principal, created_at, id;

-- name: GrantsOf :many
SELECT * FROM grants WHERE principal = ? ORDER BY created_at, id;

-- name: DeleteGrant :execrows
DELETE FROM grants WHERE id = ?;

-- name: DeleteGrantsOf :exec
DELETE FROM grants WHERE principal = ?;

-- name: DeleteGrantsOfKeys :exec
DELETE FROM grants WHERE principal IN (SELECT id FROM api_keys WHERE owner = ?);

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
INSERT INTO external_tables (database, schema, name, connection, location, columns, partition_by, created_by, created_at, owner)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: DeleteExternal :execrows
DELETE FROM external_tables WHERE database = ? AND name = ?;

-- name: Externals :many
SELECT * FROM external_tables WHERE database = ? ORDER BY name;
