-- +goose Up
-- A password is an argon2id hash in PHC form; NULL is none, and nobody logs in without one. Names are lower case.
CREATE TABLE users (
    name       TEXT    NOT NULL PRIMARY KEY,
    role       TEXT    NOT NULL,
    password   TEXT,
    disabled   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_login INTEGER
) STRICT;

INSERT INTO users (name, role, disabled, created_at)
VALUES ('admin', 'admin', 0, CAST(strftime('%s', 'now') AS INTEGER) * 1000000);

CREATE TABLE logins (
    id               TEXT    NOT NULL PRIMARY KEY,
    hash             BLOB    NOT NULL UNIQUE, -- SHA-256 of the token, which is stored nowhere
    owner            TEXT    NOT NULL,
    created_at       INTEGER NOT NULL,
    authenticated_at INTEGER NOT NULL, -- when the password was given
    expires_at       INTEGER NOT NULL
) STRICT;

CREATE INDEX logins_by_owner ON logins (owner, created_at);

-- principal is the name of a user or the id of a key. What a kind of grant does not have is the empty text.
CREATE TABLE grants (
    id         TEXT    NOT NULL PRIMARY KEY,
    principal  TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    database   TEXT    NOT NULL,
    relation   TEXT    NOT NULL,
    connection TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    access     TEXT    NOT NULL,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (principal, kind, database, relation, connection, path, name, access)
) STRICT;

ALTER TABLE api_keys ADD COLUMN acts_for TEXT NOT NULL DEFAULT ''; -- a header's name
ALTER TABLE api_keys ADD COLUMN expires_at INTEGER;
ALTER TABLE api_keys ADD COLUMN last_used INTEGER;

-- Before there were users, all tables were made with keys of the one that there was.
ALTER TABLE external_tables ADD COLUMN owner TEXT NOT NULL DEFAULT 'admin';

-- +goose Down
ALTER TABLE external_tables DROP COLUMN owner;
ALTER TABLE api_keys DROP COLUMN last_used;
ALTER TABLE api_keys DROP COLUMN expires_at;
ALTER TABLE api_keys DROP COLUMN acts_for;
DROP TABLE grants;
DROP TABLE logins;
DROP TABLE users;
