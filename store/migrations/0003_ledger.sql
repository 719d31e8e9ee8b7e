-- +goose Up
-- The audit ledger. Each entry's hash covers the entry and the hash before it: see ledger_entry.go and docs/SECURITY.md.
CREATE TABLE ledger (
    seq        INTEGER NOT NULL PRIMARY KEY, -- 1, 2, 3, … without gaps
    time       INTEGER NOT NULL,             -- microseconds since 1970 UTC
    kind       TEXT    NOT NULL,
    principal  TEXT    NOT NULL,             -- id of the key or login; '' for nobody
    request_id TEXT    NOT NULL,
    details    TEXT    NOT NULL,             -- a JSON object
    prev       BLOB    NOT NULL,             -- hash of the entry before; 32 zero bytes in the first
    hash       BLOB    NOT NULL
) STRICT;

CREATE INDEX ledger_by_kind ON ledger (kind);
CREATE INDEX ledger_by_principal ON ledger (principal);

-- They stop mistakes. Who means it can drop them, and the hashes will tell.
-- +goose StatementBegin
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
-- +goose StatementEnd

-- INSERT OR REPLACE deletes without the trigger above.
-- +goose StatementBegin
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger WHEN EXISTS (SELECT 1 FROM ledger WHERE seq >= NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE ledger;
