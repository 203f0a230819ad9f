-- The chain: it only grows. Triggers stop accidents; the hashes show the rest.
CREATE TABLE entries (
    number INTEGER PRIMARY KEY CHECK (number > 0),
    hash   BLOB NOT NULL CHECK (length(hash) = 32),
    body   BLOB NOT NULL
) STRICT;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT raise(ABORT, 'entries are never deleted'); END;

-- What the entries amount to. Replaying them gives it again.
CREATE TABLE accounts (
    name   TEXT PRIMARY KEY,
    state  BLOB NOT NULL,
    totals BLOB NOT NULL  -- the numbers that move with every spend; state holds the rest
) STRICT, WITHOUT ROWID;
CREATE TABLE receipts (
    id        TEXT PRIMARY KEY,
    receipt   BLOB NOT NULL,
    state     TEXT NOT NULL CHECK (state IN ('spent', 'held', 'opened', 'answered', 'failed')),
    key       TEXT,
    plan_hash TEXT NOT NULL,
    data      TEXT NOT NULL,
    answer    BLOB
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX receipts_by_key ON receipts (key) WHERE key IS NOT NULL;
CREATE INDEX receipts_by_plan ON receipts (plan_hash, data) WHERE answer IS NOT NULL;
CREATE TABLE facts (
    kind   TEXT NOT NULL,
    name   TEXT NOT NULL,
    state  BLOB NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;
