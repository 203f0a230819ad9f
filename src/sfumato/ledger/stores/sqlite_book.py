"""One transaction on a ledger in an SQLite file, and the words for what can go wrong with the file."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import record
from ...errors import LedgerError, RecordError
from ...plan import Receipt
from ..proof.chain import GENESIS, Link
from .base import Account, Filed, keep_fact, only_moved, rest, totals, under_way, whole
from .digest import FOLLOWED, PROVEN, Checked, Digest, Tally, leaf, live
from .digest import value as value_of
from .words import CLOSED, DAMAGED, LOCKED

UNWRITTEN = "the ledger could not be written: repair the disk, then open the ledger anew"
UNWRITABLE = "the ledger cannot be written: give this user the right to write the file and its folder"
SHRUNK = (
    "the ledger lost entries that were there: it was restored or changed while it was open. Nothing is released; "
    "run `verify`, then open the ledger anew"
)


class Known(NamedTuple):
    """What the last transaction knew, at the head that it belongs to."""

    head: Link = GENESIS
    accounts: dict[str, Account] = {}  # noqa: RUF012 never changed: every book makes its own
    facts: dict[tuple[str, str], Any] = {}  # noqa: RUF012
    filed: dict[str, Filed] = {}  # noqa: RUF012
    rests: dict[str, bytes] = {}  # noqa: RUF012
    digest: Digest | None = None  # at a head of its own: who only reads leaves it behind
    checked: bool = False  # was all this held to the digest?


class SQLiteBook(Checked):
    """One transaction. Accounts and facts are remembered with the head they belong to, so that only another writer's
    are read."""

    def __init__(self, connection: sqlite3.Connection, known: Known, *, writes: bool = False) -> None:
        super().__init__()
        self._connection = connection
        row = self._sql("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        self.head = GENESIS if row is None else Link(row[0], held(row[1]))
        same = known.head == self.head
        if not same and known.head != GENESIS:
            before = self.entry(known.head.number)
            if before is None or before[0] != known.head:
                raise LedgerError(SHRUNK)
        if writes and not known.checked:
            same = False
        self._accounts = dict(known.accounts) if same else {}
        self._facts = dict(known.facts) if same else {}
        self._filed = dict(known.filed) if same else {}
        self._rests = dict(known.rests) if same else {}
        self._digest = known.digest
        if writes or (same and known.checked):
            self.tally = self._begin(known.digest)

    @property
    def digest(self) -> Digest | None:
        """As it was when the transaction began, or at an entry before."""
        return self._digest if self.tally is None else self.tally.digest

    def _begin(self, digest: Digest | None) -> Tally:
        """The leaves as the last entry left them: as we know them, with what others wrote since, or from the rows."""
        if digest is not None and digest.head == self.head:
            return Tally(digest)
        if digest is not None and self.head.number - digest.head.number <= FOLLOWED:
            since = self._sql(
                "SELECT number, hash, body FROM entries WHERE number > ?", (digest.head.number,)
            ).fetchall()
            tally = Tally(digest)
            if since and tally.follow([(Link(row[0], held(row[1])), held(row[2])) for row in since]):
                return tally
        return Tally(self._from_rows())

    def _rows(self) -> Iterator[tuple[bytes, bytes]]:
        with told():
            for name, state, numbers in self._sql("SELECT name, state, totals FROM accounts"):
                yield leaf("account", name), value_of(hashlib.sha256(state).digest(), numbers)
            for kind, name, state in self._sql("SELECT kind, name, state FROM facts"):
                if kind in PROVEN:
                    yield leaf(kind, name), value_of(state)
            for id, *row in self._sql(
                "SELECT id, receipt, state, key FROM receipts INDEXED BY receipts_live "
                "WHERE state IN ('spent', 'held', 'opened')"
            ):
                yield leaf("receipt", id), live(*row) or b""

    def _sql(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if not self._connection.in_transaction:  # SQLite has rolled back: alone, a statement would be for good
            raise LedgerError(UNWRITTEN)
        return self._connection.execute(statement, values)

    @property
    def known(self) -> Known:
        """After the commit."""
        checked, digest = self.tally is not None, self._digest
        if self.tally is not None:
            digest = self.tally.taken_over(self.head)
        return Known(self.head, self._accounts, self._facts, self._filed, self._rests, digest, checked)

    def forget(self) -> None:
        """Read from now on what is stored, not what is remembered."""
        self._accounts, self._facts, self._filed, self.tally = {}, {}, {}, None

    def _insert(self, link: Link, body: bytes) -> None:
        with told():
            self._sql("INSERT INTO entries VALUES (?, ?, ?)", (*link, body))

    def entry(self, number: int) -> tuple[Link, bytes] | None:
        if (last := self._last(number)) is not None:
            return last
        with told():
            row = self._sql("SELECT number, hash, body FROM entries WHERE number = ?", (number,)).fetchone()
        return None if row is None else (Link(row[0], held(row[1])), held(row[2]))

    def account(self, name: str) -> Account | None:
        if name not in self._accounts:
            with told():
                row = self._sql("SELECT state, totals FROM accounts WHERE name = ?", (name,)).fetchone()
                self._read_account(name, row)
                if row is None:
                    return None
                self._accounts[name] = whole(*row)
        return self._accounts[name]

    def accounts(self) -> tuple[str, ...]:
        with told():
            return tuple(name for (name,) in self._sql("SELECT name FROM accounts ORDER BY name"))

    def put_account(self, account: Account) -> None:
        name, numbers = account.name, totals(account)
        with told():
            if name in self._rests and only_moved(self._accounts.get(name), account):
                self._put_account(name, None, numbers)
                self._sql("UPDATE accounts SET totals = ? WHERE name = ?", (numbers, name))
            else:
                stays = rest(account)
                self._put_account(name, stays, numbers)
                self._sql(
                    "INSERT INTO accounts VALUES (?, ?, ?) "
                    "ON CONFLICT (name) DO UPDATE SET state = excluded.state, totals = excluded.totals",
                    (name, stays, numbers),
                )
        self._accounts[name] = account

    def filed(self, receipt: str) -> Filed | None:
        return self._filed.get(receipt) or self._first("id = ?", receipt)

    def filed_under(self, key: str) -> Filed | None:
        return self._first("key = ?", key)

    def answered(self, plan_hash: str, data: str) -> Iterator[Filed]:
        yield from self._all("plan_hash = ? AND data = ? AND answer IS NOT NULL ORDER BY id", plan_hash, data)

    def _first(self, where: str, *values: str) -> Filed | None:
        return next(iter(self._all(where, *values)), None)

    def _all(self, where: str, *values: str) -> list[Filed]:
        with told():
            rows = self._sql(f"SELECT id, receipt, state, key, answer FROM receipts WHERE {where}", values).fetchall()
            for row in rows:
                self._read_receipt(*row[:4])
            return [Filed(record.parse(receipt, Receipt), *state) for _, receipt, *state in rows]

    def receipts(self) -> Iterator[tuple[tuple[str, str, str], Filed]]:
        with told():
            rows = self._sql("SELECT id, plan_hash, data, receipt, state, key, answer FROM receipts ORDER BY id")
            for id, plan_hash, data, receipt, *state in rows:
                yield (id, plan_hash, data), Filed(record.parse(receipt, Receipt), *state)

    def file(self, filed: Filed) -> None:
        known = filed.receipt.id in self._filed
        under_way(self._filed, filed)
        row = filed.row()
        self._put_receipt(row[0], row[1], row[2], row[3])
        with told():
            if known:
                changed = (filed.state, filed.answer, filed.receipt.id)
                self._sql("UPDATE receipts SET state = ?, answer = ? WHERE id = ?", changed)
                return
            self._sql(
                "INSERT INTO receipts VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET state = excluded.state, answer = excluded.answer",
                row,
            )

    def fact(self, kind: str, name: str) -> Any:
        if (kind, name) in self._facts:
            return self._facts[kind, name]
        with told():
            row = self._sql("SELECT state FROM facts WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            self._read_fact(kind, name, None if row is None else row[0])
            return keep_fact(self._facts, kind, name, None if row is None else record.parse(row[0]))

    def facts(self, kind: str) -> dict[str, Any]:
        with told():
            rows = self._sql("SELECT name, state FROM facts WHERE kind = ? ORDER BY name", (kind,)).fetchall()
            return {name: record.parse(state) for name, state in rows}

    def put_fact(self, kind: str, name: str, value: Any) -> None:
        state = record.canonical(value)
        self._put_fact(kind, name, state)
        with told():
            self._sql(
                "INSERT INTO facts VALUES (?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET state = excluded.state",
                (kind, name, state),
            )
        keep_fact(self._facts, kind, name, value)


def held(cell: Any) -> bytes:
    """What a cell of bytes holds. On a damaged page it may be NULL, or something else: nothing that any hash is of."""
    return cell if isinstance(cell, bytes) else b""


class told:  # noqa: N801 it reads as a word
    """`with told():` whatever the file does becomes one of a few stable messages."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if problem is not None and (words := _message(problem)) is not None:
            raise LedgerError(words) from None


def _message(problem: BaseException) -> str | None:
    if isinstance(problem, sqlite3.OperationalError):
        return _words(str(problem))
    if isinstance(problem, sqlite3.ProgrammingError):
        return CLOSED
    if isinstance(problem, sqlite3.DataError | OverflowError):
        return "that is too large for the ledger: a plan or an answer has to be below 1 GB"
    if isinstance(problem, sqlite3.DatabaseError | RecordError | UnicodeDecodeError):
        return DAMAGED  # a damaged schema is quoted in no known letters
    return None


def _words(problem: str) -> str:
    if "locked" in problem or "busy" in problem:
        return LOCKED
    if "readonly" in problem or "read-only" in problem or "unable to open" in problem:
        return UNWRITABLE
    if "full" in problem or "disk I/O" in problem:
        return "the ledger cannot be written: the disk is full or failing; make room or repair it, then open it anew"
    return "the ledger cannot be used: check the file, and run `verify` before anything is released"
