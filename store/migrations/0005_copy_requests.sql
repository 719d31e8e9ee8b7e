-- +goose Up
-- COPYs that agents asked for. What a request is bound to never changes; its sha256 is over it: see access/copyrequest.go.
CREATE TABLE copy_requests (
    id           TEXT    NOT NULL PRIMARY KEY,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'withdrawn', 'expired', 'running', 'done', 'failed')),
    sha256       BLOB    NOT NULL,
    statement    TEXT    NOT NULL,
    database     TEXT    NOT NULL,
    connection   TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    checked_sql  TEXT    NOT NULL,
    columns      TEXT    NOT NULL, -- JSON
    key_id       TEXT    NOT NULL,
    key_name     TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    login        INTEGER NOT NULL,
    ask          TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_by   TEXT    NOT NULL DEFAULT '',
    decided_with TEXT    NOT NULL DEFAULT '',
    decided_at   INTEGER,
    reason       TEXT    NOT NULL DEFAULT '',
    started_at   INTEGER,
    ended_at     INTEGER,
    run_id       TEXT    NOT NULL DEFAULT '',
    kind         TEXT    NOT NULL DEFAULT '',
    error        TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX copy_requests_by_time ON copy_requests (created_at, id);
CREATE INDEX copy_requests_open ON copy_requests (owner, state) WHERE state IN ('pending', 'approved', 'running');
CREATE INDEX lake_runs_by_job ON lake_runs (job_id);

-- It stops mistakes, as those of the ledger do: what was asked for is what runs.
-- +goose StatementBegin
CREATE TRIGGER copy_requests_bound BEFORE UPDATE OF id, sha256, statement, database, connection, path, key_id, owner, login, created_at, expires_at ON copy_requests
BEGIN
    SELECT RAISE(ABORT, 'what a copy request is bound to never changes');
END;
-- +goose StatementEnd

-- +goose Down
DROP INDEX lake_runs_by_job;
DROP TABLE copy_requests;
