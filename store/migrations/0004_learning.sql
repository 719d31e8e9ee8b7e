-- +goose Up
-- The Learning Loop: all that is known of an ask but its rows, what people said of it, and the questions whose SQL somebody
-- confirmed. Structured columns are JSON.
ALTER TABLE asks ADD COLUMN attempts    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN agreed      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN tables      TEXT    NOT NULL DEFAULT '[]'; -- that it was taken to be about
ALTER TABLE asks ADD COLUMN candidates  TEXT    NOT NULL DEFAULT '[]';
ALTER TABLE asks ADD COLUMN timings     TEXT    NOT NULL DEFAULT '{}'; -- milliseconds, by step
ALTER TABLE asks ADD COLUMN verified_id TEXT    NOT NULL DEFAULT '';   -- the pair that answered it
ALTER TABLE asks ADD COLUMN scope       TEXT    NOT NULL DEFAULT '';   -- of ask_scopes: what the asker could read; '' not known
ALTER TABLE asks ADD COLUMN follows     INTEGER NOT NULL DEFAULT 0;    -- asked within a conversation, or with a definition
ALTER TABLE asks ADD COLUMN mark        TEXT    NOT NULL DEFAULT '';   -- right, wrong
ALTER TABLE asks ADD COLUMN marked_by   TEXT    NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN marked_at   INTEGER;
ALTER TABLE asks ADD COLUMN note        TEXT    NOT NULL DEFAULT '';

CREATE INDEX asks_by_owner ON asks (owner, created_at, id);

-- Which relations an asker could read. Many asks share one.
CREATE TABLE ask_scopes (
    hash      TEXT NOT NULL PRIMARY KEY, -- SHA-256 of relations
    relations TEXT NOT NULL
) STRICT;

-- A question with the SQL that somebody confirmed for it.
CREATE TABLE verified (
    id          TEXT    NOT NULL PRIMARY KEY,
    database    TEXT    NOT NULL,
    owner       TEXT    NOT NULL, -- the user whom it serves; '' everybody who may read what it reads
    key_id      TEXT    NOT NULL, -- the one key that it serves, when a key with less than its owner's rights made it; '' all of the owner's
    name        TEXT    NOT NULL, -- of an imported one
    question    TEXT    NOT NULL,
    sql         TEXT    NOT NULL,
    verified_by TEXT    NOT NULL,
    verified_at INTEGER NOT NULL,
    from_ask    TEXT    NOT NULL,
    note        TEXT    NOT NULL,
    UNIQUE (database, owner, key_id, question)
) STRICT;

CREATE INDEX verified_by_time ON verified (verified_at, id);
CREATE INDEX verified_by_ask ON verified (from_ask);

-- +goose Down
DROP TABLE verified;
DROP TABLE ask_scopes;
DROP INDEX asks_by_owner;
ALTER TABLE asks DROP COLUMN note;
ALTER TABLE asks DROP COLUMN marked_at;
ALTER TABLE asks DROP COLUMN marked_by;
ALTER TABLE asks DROP COLUMN mark;
ALTER TABLE asks DROP COLUMN follows;
ALTER TABLE asks DROP COLUMN scope;
ALTER TABLE asks DROP COLUMN verified_id;
ALTER TABLE asks DROP COLUMN timings;
ALTER TABLE asks DROP COLUMN candidates;
ALTER TABLE asks DROP COLUMN tables;
ALTER TABLE asks DROP COLUMN agreed;
ALTER TABLE asks DROP COLUMN attempts;
