"""`verify` on PostgreSQL: has somebody changed the tables, triggers, functions or rights that the migrations made?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores import postgres_made
from sfumato.ledger.stores.postgres import PostgresStore
from tests.helpers import laplace
from tests.ledger.stores import Stores, login, new_database, pay, run, server


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    """A database that is put back as it was after each change."""
    server()
    found = new_database()
    store = PostgresStore(found)
    ledger = Ledger(store)
    ledger.open_account("a", Budget(epsilon=1))
    pay(ledger, laplace(0.1), data="a@1")
    store.close()
    yield found


def damage(place: str) -> str | None:
    store = PostgresStore(place)
    try:
        return store.damage()
    finally:
        store.close()


def test_a_fresh_ledger_is_as_it_was_made(place: str) -> None:
    """The stored lines are those of a fresh migration; after one, they have to be written anew."""
    lines = sorted(line for (line,) in run(place, "SET search_path = ''", postgres_made.LINES))
    assert lines == postgres_made._made()
    assert damage(place) is None


def test_an_auditor_can_look(place: str) -> None:
    auditor = login(place, "eve", "sfumato_reader")
    assert damage(auditor) is None


def test_reading_may_be_granted_to_others(place: str) -> None:
    login(place, "monitor")
    run(place, "GRANT USAGE ON SCHEMA sfumato TO monitor; GRANT SELECT ON sfumato.entries TO monitor")
    assert damage(place) is None


CHANGES = {
    "trigger entries.entry_follows": (
        "ALTER TABLE sfumato.entries DISABLE TRIGGER entry_follows",
        "ALTER TABLE sfumato.entries ENABLE TRIGGER entry_follows",
    ),
    "trigger entries.entries_stay": (
        "ALTER TABLE sfumato.entries ENABLE REPLICA TRIGGER entries_stay",
        "ALTER TABLE sfumato.entries ENABLE TRIGGER entries_stay",
    ),
    "trigger receipts.mine": (
        "CREATE TRIGGER mine BEFORE INSERT ON sfumato.receipts EXECUTE FUNCTION sfumato.entries_stay()",
        "DROP TRIGGER mine ON sfumato.receipts",
    ),
    "function entries_stay()": (
        "CREATE OR REPLACE FUNCTION sfumato.entries_stay() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NULL; END $$",
        None,
    ),
    "function mine()": (
        "CREATE FUNCTION sfumato.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP FUNCTION sfumato.mine()",
    ),
    "function take_head(OUT number bigint, OUT hash bytea)": (
        "ALTER FUNCTION sfumato.take_head() SECURITY INVOKER",
        "ALTER FUNCTION sfumato.take_head() SECURITY DEFINER",
    ),
    "rule entries.mine": (
        "CREATE RULE mine AS ON DELETE TO sfumato.entries DO INSTEAD NOTHING",
        "DROP RULE mine ON sfumato.entries",
    ),
    "table entries": (
        "ALTER TABLE sfumato.entries ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE sfumato.entries DISABLE ROW LEVEL SECURITY",
    ),
    "table head": ("ALTER TABLE sfumato.head SET UNLOGGED", "ALTER TABLE sfumato.head SET LOGGED"),
    "right table mine, DELETE to owner": ("CREATE VIEW sfumato.mine AS SELECT 1", "DROP VIEW sfumato.mine"),
    "column entries.body": (
        "ALTER TABLE sfumato.entries ALTER body DROP NOT NULL",
        "ALTER TABLE sfumato.entries ALTER body SET NOT NULL",
    ),
    "column entries.principal": (
        "ALTER TABLE sfumato.entries ALTER principal SET DEFAULT 'ada'",
        "ALTER TABLE sfumato.entries ALTER principal SET DEFAULT session_user",
    ),
    "constraint receipts.receipts_state_check": (
        "ALTER TABLE sfumato.receipts DROP CONSTRAINT receipts_state_check",
        "ALTER TABLE sfumato.receipts ADD CONSTRAINT receipts_state_check "
        "CHECK (state IN ('spent', 'held', 'opened', 'answered', 'failed'))",
    ),
    "index receipts_by_plan": (
        "DROP INDEX sfumato.receipts_by_plan",
        "CREATE INDEX receipts_by_plan ON sfumato.receipts (plan_hash) WHERE answer IS NOT NULL",
    ),
    "right table entries, UPDATE to sfumato_writer": (
        "GRANT UPDATE ON sfumato.entries TO sfumato_writer",
        "REVOKE UPDATE ON sfumato.entries FROM sfumato_writer",
    ),
    "right table entries, DELETE to owner": (
        "GRANT DELETE ON sfumato.entries TO CURRENT_USER",
        "REVOKE DELETE ON sfumato.entries FROM CURRENT_USER",
    ),
    "right table head, UPDATE to everybody": (
        "GRANT UPDATE ON sfumato.head TO PUBLIC",
        "REVOKE UPDATE ON sfumato.head FROM PUBLIC",
    ),
    "right column entries.body, UPDATE to sfumato_reader": (
        "GRANT UPDATE (body) ON sfumato.entries TO sfumato_reader",
        "REVOKE UPDATE (body) ON sfumato.entries FROM sfumato_reader",
    ),
    "right schema, CREATE to sfumato_writer": (
        "GRANT CREATE ON SCHEMA sfumato TO sfumato_writer",
        "REVOKE CREATE ON SCHEMA sfumato FROM sfumato_writer",
    ),
    "right function take_head, EXECUTE to everybody": (
        "GRANT EXECUTE ON FUNCTION sfumato.take_head() TO PUBLIC",
        "REVOKE EXECUTE ON FUNCTION sfumato.take_head() FROM PUBLIC",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_database_is_told(place: str, what: str) -> None:
    change, back = CHANGES[what]
    ((source,),) = run(place, "SELECT pg_get_functiondef('sfumato.entries_stay'::regproc)")
    run(place, change)
    try:
        assert damage(place) == f"the database is not as the ledger made it: look at the {what}"
    finally:
        run(place, back or source)
    assert damage(place) is None


def test_a_setting_that_keeps_triggers_from_firing_is_told(place: str) -> None:
    ((name,),) = run(place, "SELECT current_database()")
    run(place, f"ALTER DATABASE {name} SET session_replication_role = replica")
    try:
        assert "session_replication_role=replica" in str(damage(place))
    finally:
        run(place, f"ALTER DATABASE {name} RESET session_replication_role")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE sfumato.head SET number = number - 1",
        "UPDATE sfumato.head SET hash = decode(repeat('00', 32), 'hex')",
        "DELETE FROM sfumato.head",
    ],
)
def test_a_head_that_is_not_the_last_entry_is_told(tmp_path: Path, change: str) -> None:
    stores = Stores("postgres", tmp_path)
    place = stores.place()
    try:
        store = stores.again(place)
        Ledger(store).open_account("a", Budget(epsilon=1))
        assert damage(place) is None
        run(place, change)
        report = verify(store)
        assert "the head of the chain is not the last entry" in str(report) and not report.ok
    finally:
        stores.done()
        run(
            place,
            "DELETE FROM sfumato.head; INSERT INTO sfumato.head VALUES (true, 0, decode(repeat('00', 32), 'hex'))",
        )
