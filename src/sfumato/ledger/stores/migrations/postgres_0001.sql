-- Two kinds of people: who writes, and who only reads. A login role is given one of them, and signs with its own name.
DO $$
DECLARE kind text;
BEGIN
    FOREACH kind IN ARRAY ARRAY['sfumato_writer', 'sfumato_reader'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', kind);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- roles belong to the whole server: another ledger on it made them
        END;
    END LOOP;
END $$;

CREATE SCHEMA sfumato;
CREATE TABLE sfumato.migrations (
    number integer PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT now()
);

-- The last link of the chain, in one row. Who writes holds its lock until the commit: one writer at a time.
-- (Rows that change with every entry leave room on their page, so that the new version stays beside the old one.)
CREATE TABLE sfumato.head (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint NOT NULL,
    hash   bytea NOT NULL CHECK (length(hash) = 32)
) WITH (fillfactor = 10);
INSERT INTO sfumato.head VALUES (true, 0, decode(repeat('00', 32), 'hex'));

-- The chain: it only grows.
CREATE TABLE sfumato.entries (
    number    bigint PRIMARY KEY,
    hash      bytea NOT NULL CHECK (length(hash) = 32),
    body      bytea NOT NULL,
    principal name NOT NULL DEFAULT session_user
);

CREATE FUNCTION sfumato.take_head(OUT number bigint, OUT hash bytea)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
$$ SELECT number, hash FROM sfumato.head FOR UPDATE $$;

-- An entry continues the chain and is signed by the role that is logged in, or it is not written.
CREATE FUNCTION sfumato.entry_follows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last record;
    signed text[];
BEGIN
    signed := ARRAY(
        SELECT item ->> 1 FROM json_array_elements(convert_from(NEW.body, 'UTF8')::json -> 'items') AS item
        WHERE item ->> 0 = 'by'
    );
    IF NEW.principal <> session_user OR signed <> ARRAY[session_user::text] THEN
        RAISE EXCEPTION 'an entry is written in the name of the role that writes it' USING ERRCODE = 'SF001';
    END IF;
    SELECT head.number, head.hash INTO STRICT last FROM sfumato.head FOR UPDATE;
    IF NEW.number <> last.number + 1 OR NEW.hash <> sha256(last.hash || int8send(NEW.number) || NEW.body) THEN
        RAISE EXCEPTION 'an entry continues the chain' USING ERRCODE = 'SF002';
    END IF;
    UPDATE sfumato.head SET number = NEW.number, hash = NEW.hash;
    RETURN NEW;
END $$;
CREATE TRIGGER entry_follows BEFORE INSERT ON sfumato.entries FOR EACH ROW EXECUTE FUNCTION sfumato.entry_follows();

CREATE FUNCTION sfumato.entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'entries are never changed or deleted' USING ERRCODE = 'SF003';
END $$;
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON sfumato.entries
FOR EACH STATEMENT EXECUTE FUNCTION sfumato.entries_stay();

-- What the entries amount to. Replaying them gives it again.
CREATE TABLE sfumato.accounts (
    name   text PRIMARY KEY,
    state  bytea NOT NULL,
    totals bytea NOT NULL -- the numbers that move with every spend; state holds the rest
) WITH (fillfactor = 10);
CREATE TABLE sfumato.facts (
    kind  text NOT NULL,
    name  text NOT NULL,
    state bytea NOT NULL,
    PRIMARY KEY (kind, name)
) WITH (fillfactor = 50);
CREATE TABLE sfumato.receipts (
    id        text PRIMARY KEY,
    receipt   bytea NOT NULL,
    state     text NOT NULL CHECK (state IN ('spent', 'held', 'opened', 'answered', 'failed')),
    key       text UNIQUE,
    plan_hash text NOT NULL,
    data      text NOT NULL,
    answer    bytea
);
CREATE INDEX receipts_by_plan ON sfumato.receipts (plan_hash) WHERE answer IS NOT NULL;

REVOKE ALL ON SCHEMA sfumato FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA sfumato FROM PUBLIC, sfumato_writer, sfumato_reader;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sfumato FROM PUBLIC;
GRANT USAGE ON SCHEMA sfumato TO sfumato_writer, sfumato_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA sfumato TO sfumato_writer, sfumato_reader;
GRANT EXECUTE ON FUNCTION sfumato.take_head() TO sfumato_writer;
GRANT INSERT ON sfumato.entries, sfumato.accounts, sfumato.facts, sfumato.receipts TO sfumato_writer;
GRANT UPDATE (state, totals) ON sfumato.accounts TO sfumato_writer;
GRANT UPDATE (state) ON sfumato.facts TO sfumato_writer;
GRANT UPDATE (state, answer) ON sfumato.receipts TO sfumato_writer;
REVOKE UPDATE, DELETE, TRUNCATE ON sfumato.entries FROM sfumato_writer, sfumato_reader, CURRENT_USER;
