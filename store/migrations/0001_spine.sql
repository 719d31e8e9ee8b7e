-- +goose Up
-- Times are microseconds since 1970 UTC. Lists are JSON, and a NULL list means "not narrowed".
CREATE TABLE api_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL UNIQUE, -- SHA-256 of the secret, which is stored nowhere
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    agent      INTEGER NOT NULL,
    databases  TEXT,
    tables     TEXT,
    models     TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE lake_runs (
    id         TEXT    NOT NULL PRIMARY KEY,
    job_id     TEXT    NOT NULL,
    principal  TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    database   TEXT    NOT NULL,
    statement  TEXT    NOT NULL,
    connection TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('running', 'committed', 'aborted')),
    kind       TEXT    NOT NULL,
    error      TEXT    NOT NULL,
    rows       INTEGER NOT NULL,
    files      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    partitions INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    added      TEXT, -- while publishing: the new files, JSON. Left over: to be taken back unless committed
    replaced   TEXT  -- while publishing: the files they replace, JSON. Left over: to be deleted once committed
) STRICT;

CREATE INDEX lake_runs_unsettled ON lake_runs (id) WHERE state = 'running' OR added IS NOT NULL OR replaced IS NOT NULL;

CREATE TABLE external_tables (
    database     TEXT    NOT NULL,
    schema       TEXT    NOT NULL,
    name         TEXT    NOT NULL COLLATE NOCASE,
    connection   TEXT    NOT NULL,
    location     TEXT    NOT NULL,
    columns      TEXT    NOT NULL,
    partition_by TEXT    NOT NULL,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (database, name)
) STRICT;

-- What the agent was asked and what came of it. Never any rows.
CREATE TABLE asks (
    id           TEXT    NOT NULL PRIMARY KEY,
    key_id       TEXT    NOT NULL,
    owner        TEXT    NOT NULL,
    database     TEXT    NOT NULL,
    question     TEXT    NOT NULL,
    written_sql  TEXT    NOT NULL,
    executed_sql TEXT    NOT NULL,
    outcome      TEXT    NOT NULL,
    reason       TEXT    NOT NULL,
    model        TEXT    NOT NULL,
    model_calls  INTEGER NOT NULL,
    duration_ms  INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX asks_by_time ON asks (created_at, id);

-- +goose Down
DROP TABLE asks;
DROP TABLE external_tables;
DROP TABLE lake_runs;
DROP TABLE api_keys;
