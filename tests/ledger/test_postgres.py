"""PostgreSQL: what the database itself holds, and what it says when it cannot."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, record
from sfumato.errors import ArgumentError, BudgetError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import GENESIS
from sfumato.ledger.stores import postgres
from sfumato.ledger.stores.base import Account
from sfumato.ledger.stores.postgres import PostgresStore
from tests.helpers import laplace, spent
from tests.ledger.stores import Stores, answered, login, new_database, pay, run, server


@pytest.fixture(scope="module")
def all_stores_here(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    server()
    return Stores("postgres", tmp_path_factory.mktemp("ledgers"))


@pytest.fixture
def stores(all_stores_here: Stores) -> Any:
    yield all_stores_here
    all_stores_here.done()


@pytest.fixture
def place(stores: Stores) -> str:
    found = stores.place()
    Ledger(stores.again(found)).open_account("a", Budget(epsilon=1))
    return found


def entry(by: str, **fields: Any) -> bytes:
    return record.canonical({"kind": "spend", "by": by, **fields})


# Entries only grow, each continues the chain, and each is signed by the role that is logged in


def test_nobody_changes_or_deletes_an_entry_not_even_its_owner(place: str) -> None:
    for statement in (
        "UPDATE sfumato.entries SET body = body",
        "DELETE FROM sfumato.entries WHERE false",
        "TRUNCATE sfumato.entries",
    ):
        with pytest.raises(Exception, match="never changed or deleted"):
            run(place, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sfumato.entries SET body = body",
        "DELETE FROM sfumato.entries",
        "TRUNCATE sfumato.entries",
        "UPDATE sfumato.head SET number = 0",
        "DELETE FROM sfumato.accounts",
        "DELETE FROM sfumato.receipts",
        "UPDATE sfumato.receipts SET key = 'x'",
        "UPDATE sfumato.migrations SET number = 9",
        "ALTER TABLE sfumato.entries DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "SET SESSION AUTHORIZATION postgres",
        "CREATE TABLE sfumato.mine (n int)",
    ],
)
def test_a_writer_may_only_add(place: str, statement: str) -> None:
    with pytest.raises(Exception, match=r"permission denied|must be owner"):
        run(login(place, "ada", "sfumato_writer"), statement)


def test_entries_are_signed_by_the_role_that_is_logged_in(place: str, stores: Stores) -> None:
    ada = stores.again(login(place, "ada", "sfumato_writer"))
    ledger = Ledger(ada)
    pay(ledger, laplace(0.1), data="a@1")
    (_, body) = list(ada.entries())[-1]
    assert record.parse(body)["by"] == ada.principal == "ada"  # type: ignore[index]
    assert run(place, "SELECT principal FROM sfumato.entries ORDER BY number DESC LIMIT 1") == [("ada",)]
    with pytest.raises(ArgumentError, match="the role that is logged in"):
        Ledger(ada, principal="bob")
    assert Ledger(ada, principal="ada")
    for body in (entry("bob"), record.canonical({"kind": "spend"}), record.canonical(["by", "ada"])):
        with pytest.raises(LedgerError, match="in the name of the role"), ada.writing() as book:
            book.append(body)


def test_a_role_that_was_taken_on_does_not_sign(place: str, stores: Stores) -> None:
    """SET ROLE changes who asks, never who is logged in."""
    login(place, "bob", "sfumato_writer")
    ada = PostgresStore(login(place, "ada", "sfumato_writer", "bob"))
    try:
        ada._connection.execute("SET ROLE bob")
        with pytest.raises(LedgerError, match="in the name of the role"), ada.writing() as book:
            book.append(entry("bob"))
        with ada.writing() as book:
            book.append(entry("ada"))
    finally:
        ada.close()


@pytest.mark.parametrize("wrong", ["number", "hash", "fork"])
def test_an_entry_that_does_not_continue_the_chain_is_not_taken(place: str, wrong: str) -> None:
    import psycopg

    (number, digest) = run(place, "SELECT number, hash FROM sfumato.head")[0]
    body = entry("ada")
    head = GENESIS if wrong == "fork" else GENESIS._replace(number=number, hash=digest)
    link = head.next(body)
    if wrong == "number":
        link = link._replace(number=link.number + 1)
    elif wrong == "hash":
        link = link._replace(hash=bytes(32))
    with (
        psycopg.connect(login(place, "ada", "sfumato_writer"), autocommit=True) as connection,
        pytest.raises(psycopg.Error, match="continues the chain"),
    ):
        connection.execute("INSERT INTO sfumato.entries VALUES (%s, %s, %s)", (*link, body))
    assert run(place, "SELECT number, hash FROM sfumato.head") == [(number, digest)]


def test_a_reader_reads_and_cannot_write(place: str, stores: Stores) -> None:
    ledger = Ledger(stores.again(login(place, "eve", "sfumato_reader")))
    assert spent(ledger, "a") == [0] and list(ledger._store.entries())
    with pytest.raises(LedgerError, match=r"this role may not do that: .* grant it sfumato_writer"):
        pay(ledger, laplace(0.1), data="a@1")
    assert spent(ledger, "a") == [0]


def test_a_stranger_gets_nothing(place: str) -> None:
    with pytest.raises(LedgerError, match="this role may not do that"):
        PostgresStore(login(place, "mallory"))


# Fail closed


def test_a_database_without_a_ledger_is_refused_unless_one_is_to_be_made() -> None:
    server()
    place = new_database(create=False)
    with pytest.raises(LedgerError, match="no ledger in that database"):
        PostgresStore(place)
    with pytest.raises(LedgerError, match="this role may not do that"):
        PostgresStore(login(place, "ada"), create=True)
    assert run(place, "SELECT 1 FROM pg_namespace WHERE nspname = 'sfumato'") == []
    with ThreadPoolExecutor(6) as pool:  # all make it at once: one does
        for store in pool.map(lambda _: PostgresStore(place, create=True), range(6)):
            store.close()
    assert run(place, "SELECT number FROM sfumato.migrations ORDER BY 1") == [(1,), (2,)]


def test_a_newer_schema_is_refused(place: str, stores: Stores) -> None:
    run(place, "INSERT INTO sfumato.migrations (number) VALUES (99)")
    try:
        with pytest.raises(LedgerError, match="written by a newer version of sfumato"):
            PostgresStore(place)
    finally:
        run(place, "DELETE FROM sfumato.migrations WHERE number = 99")


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = postgres.migrations("postgres")
    monkeypatch.setattr(
        postgres, "migrations", lambda kind: [*steps, "CREATE TABLE sfumato.half (n int); SELECT 1 / 0"]
    )
    with pytest.raises(LedgerError):
        PostgresStore(place)
    monkeypatch.undo()
    PostgresStore(place).close()
    assert run(place, "SELECT to_regclass('sfumato.half') IS NULL, max(number) FROM sfumato.migrations") == [(True, 2)]


@pytest.mark.parametrize("address", ["postgresql://postgres@/none?host=/nowhere", "host=", "no address at all"])
def test_a_server_that_is_not_there_is_one_message(address: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match="cannot be reached, or refuses the login"):
        PostgresStore(address)


def test_a_server_that_does_not_sync_is_refused() -> None:
    class Fake:
        def execute(self, query: str, *_: Any) -> Any:
            return type("", (), {"fetchone": lambda self: ("off", "on")})()

    with pytest.raises(LedgerError, match="does not sync to its disk"):
        postgres._durable(Fake(), 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("before", "after"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
def test_commits_wait_for_the_disk_whatever_the_server_s_default(place: str, before: str, after: str) -> None:
    ((name,),) = run(place, "SELECT current_database()")
    run(place, f"ALTER DATABASE {name} SET synchronous_commit = {before}")
    store = PostgresStore(place)
    try:
        assert store._connection.execute("SHOW synchronous_commit").fetchone() == (after,)
    finally:
        store.close()
        run(place, f"ALTER DATABASE {name} RESET synchronous_commit")


def test_a_lost_connection_is_told_once_and_then_made_anew(place: str, stores: Stores) -> None:
    store = stores.again(place)
    ledger = Ledger(store)
    pay(ledger, laplace(0.1), data="a@1")
    run(place, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()")  # fmt: skip
    with pytest.raises(LedgerError, match="connection to the ledger was lost"):
        pay(ledger, laplace(0.1), data="a@1")
    pay(ledger, laplace(0.1), data="a@1")
    assert spent(ledger, "a") == [Fraction(1, 5)]


def test_a_connection_lost_before_the_commit_writes_nothing(place: str, stores: Stores) -> None:
    store = stores.again(place)
    before = list(store.entries())
    with pytest.raises(LedgerError, match="connection to the ledger was lost"), store.writing() as book:
        book.append(entry("postgres"))
        run(place, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND datname = current_database()")  # fmt: skip
    assert list(store.entries()) == before


def test_a_failed_statement_that_somebody_swallows_is_no_commit(place: str, stores: Stores) -> None:
    """After an error the server answers COMMIT with ROLLBACK, and says nothing more."""
    store = stores.again(place)
    before = list(store.entries())
    with pytest.raises(LedgerError, match="did not take the entry"), store.writing() as book:
        book.append(entry("postgres"))
        with pytest.raises(LedgerError):
            book.filed("\0")
        with pytest.raises(LedgerError, match="did not take the entry"):
            book.append(entry("postgres"))
    assert list(store.entries()) == before
    pay(Ledger(store), laplace(0.1), data="a@1")


def test_a_lock_that_is_not_let_go_is_refused_in_time(place: str, stores: Stores) -> None:
    holder = stores.again(place)
    waiter = PostgresStore(place, wait=0.05)
    try:
        with holder.writing(), pytest.raises(LedgerError, match="locked by another process"):
            pay(Ledger(waiter), laplace(0.1), data="a@1")
        pay(Ledger(waiter), laplace(0.1), data="a@1")
    finally:
        waiter.close()


def test_readers_do_not_wait_for_the_writer(place: str, stores: Stores) -> None:
    holder, reader = stores.again(place), PostgresStore(place, wait=0.05)
    try:
        with holder.writing() as book:
            book.append(entry("postgres"))
            assert spent(Ledger(reader), "a") == [0]
    finally:
        reader.close()


def test_a_read_only_server_is_refused(place: str, stores: Stores) -> None:
    store = stores.again(place)
    assert isinstance(store, PostgresStore)
    with pytest.raises(LedgerError, match="read-only"), store.reading() as book:
        book.append(entry("postgres"))
        book.accounts()


def test_a_store_inside_itself_is_refused(place: str, stores: Stores) -> None:
    store = stores.again(place)
    with store.writing(), pytest.raises(LedgerError, match="being written by this thread"), store.writing():
        pass


def test_a_store_does_not_cross_a_fork(place: str, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    store = stores.again(place)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="opened by another process"), store.writing():
        pass


def test_damaged_state_is_refused(place: str, stores: Stores) -> None:
    run(place, "UPDATE sfumato.accounts SET state = 'junk'")
    with pytest.raises(LedgerError, match="not what the last of them left"):
        pay(Ledger(stores.again(place)), laplace(0.1), data="a@1")


@pytest.mark.parametrize("name", ["'; DROP TABLE sfumato.entries; --", 'a"b', "%s %(x)s", "ä€𝄞", "\\x00"])
def test_odd_names_are_names(place: str, stores: Stores, name: str) -> None:
    ledger = Ledger(stores.again(place))
    ledger.open_account(name, Budget(epsilon=1), reason="other people")
    receipt = answered(ledger, laplace(0.5), name, data="a@1")
    with ledger._store.reading() as book:
        assert [filed.answer for filed in book.answered(receipt.plan_hash, "a@1")] == [b"1"]
        assert set(book.accounts()) == {"a", name} and isinstance(book.account(name), Account)


@pytest.mark.parametrize("name", ["'; DROP TABLE sfumato.facts; --", "", "%s $1", "ä€𝄞"])
def test_facts_are_kept_by_kind_and_name(place: str, stores: Stores, name: str) -> None:
    store, other = stores.again(place), stores.again(place)
    with store.writing() as book:
        assert book.fact("one", name) is None and book.facts("one") == {}
        book.append(entry("postgres"))
        book.put_fact("one", name, Fraction(1, 3))
        book.put_fact("one", "z", 2)
        book.put_fact("two", name, "text")
        assert book.fact("one", name) == Fraction(1, 3)
    for each in (store, other):
        with each.writing() as book:
            assert book.fact("one", name) == Fraction(1, 3) and book.fact("two", name) == "text"
            assert book.facts("one") == {name: Fraction(1, 3), "z": 2}
    with other.writing() as book:
        book.append(entry("postgres"))
        book.put_fact("one", name, 4)
    with store.reading() as book:
        assert book.fact("one", name) == 4
    with pytest.raises(ZeroDivisionError), store.writing() as book:
        book.append(entry("postgres"))
        book.put_fact("one", name, 5)
        raise ZeroDivisionError
    for each in (store, other):
        with each.reading() as book:
            assert book.fact("one", name) == 4


def test_verify_reads_what_is_stored_not_what_is_remembered(place: str, stores: Stores) -> None:
    store = stores.again(place)
    pay(Ledger(store), laplace(0.1), data="a@1")
    run(place, "UPDATE sfumato.accounts SET state = 'junk'")
    assert store.damage() is None  # type: ignore[attr-defined]
    with pytest.raises(LedgerError, match="the ledger is damaged"), store.reading() as book:
        book.account("a")


def test_a_text_that_the_server_cannot_keep_is_refused_and_changes_nothing(place: str, stores: Stores) -> None:
    ledger = Ledger(stores.again(place))
    with pytest.raises((LedgerError, ArgumentError)):
        pay(ledger, laplace(0.5), data="a@\0b")
    assert spent(ledger, "a") == [0]
    pay(ledger, laplace(0.5), data="a@1")


def test_threads_share_one_store(place: str, stores: Stores) -> None:
    ledger = Ledger(stores.again(place))
    start = threading.Barrier(4)

    def work(_: int) -> int:
        start.wait()
        won = 0
        for _ in range(10):
            try:
                pay(ledger, laplace(0.05), data="a@1")
                won += 1
            except BudgetError:
                pass
        return won

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 20
