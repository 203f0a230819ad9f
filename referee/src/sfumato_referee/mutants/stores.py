"""Stores gone wrong: they lose what was written, read what is no more, or go on where they must stop.

Like the ledgers of `ledgers`, none is exported: attacks and tests run on them, and must find them broken.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sfumato.errors import LedgerError
from sfumato.ledger.proof.anchored import AnchoredStore, _Seen
from sfumato.ledger.stores.base import Book
from sfumato.ledger.stores.memory import MemoryStore, _Draft, _Pages
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.ledger.stores.sqlite_book import SQLiteBook


class ReadThenInsert(SQLiteStore):
    """Reads and decides first, and takes the lock to write what it decided, wherever the chain now ends. Who wrote in
    between is overwritten: two spenders pass one check, and the account is overspent (L2)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self.reading() as book:
            seen = {name: book.account(name) for name in book.accounts()}
        time.sleep(0)
        with super().writing() as book:
            assert isinstance(book, SQLiteBook)
            book._accounts.update({name: each for name, each in seen.items() if each is not None})
            yield book


class Deferred(SQLiteStore):
    """Reads first, and asks for the right to write when it writes: it never overspends, and most spenders fail (L2)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self.reading() as book:
            yield book


class UnlockedServer(PostgresStore):
    """Reads the head of the chain without its lock (L2)."""

    _take_head = "SELECT number, hash FROM sfumato.head"


class Swallowing(SQLiteStore):
    """Takes a write that failed for one that was done: what the disk did not keep is answered all the same (L6)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        held = super().writing()
        book = held.__enter__()
        try:
            yield book
        except BaseException as problem:
            if not held.__exit__(type(problem), problem, problem.__traceback__):
                raise
        else:
            with suppress(LedgerError):
                held.__exit__(None, None, None)


class Unlocked(MemoryStore):
    """Two writers at once, and the later one wins (L7)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        draft = _Draft(self._kept)
        yield draft
        time.sleep(0.0002)
        self._kept.take(draft.new)


class Stale(MemoryStore):
    """A lost update with a chain that holds: the accounts are read before the lock is taken (L7)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        seen = dict(self._kept.accounts)
        time.sleep(0.0002)
        with super().writing() as book:
            new = book.new.accounts  # type: ignore[attr-defined]
            book.account = lambda name: new.get(name) or seen.get(name)  # type: ignore[method-assign]
            yield book


class Late(MemoryStore):
    """Reads from a copy that lags behind what was told (L7)."""

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._lock:
            now = _Draft(self._kept)
            yield _Lagging(getattr(self, "_old", now), now)

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with super().writing() as book:
            kept = {name: value.copy() for name, value in vars(self._kept).items()}
            yield book
        self._old = _Draft(_Pages(**kept))


class _Lagging:
    """The accounts of before, at the head of now."""

    def __init__(self, old: _Draft, now: _Draft) -> None:
        self._old, self.head = old, now.head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._old, name)


class NeverLooks(AnchoredStore):
    """Writes to its anchor and never reads it: an old backup is spent from once more (L9)."""

    def _judge(self, book: Book, seen: _Seen) -> None:
        return


class NoToken(AnchoredStore):
    """Publishes no token of its own when it begins to write: two copies do not hear of each other for a hundred
    entries (L10)."""

    def _enter(self) -> None:
        if self._anchor.last() is None:  # a new ledger
            super()._enter()
        self._entered = True


class ForgetfulUpgrade(SQLiteStore):
    """Its upgrade writes the accounts anew and leaves out what they had spent (L14)."""

    def _prepare(self, create: bool) -> None:
        super()._prepare(create)
        totals = "SELECT totals FROM accounts WHERE name = 'old'"
        self._connection.execute(f"UPDATE accounts SET totals = ({totals}) WHERE name = 'ana''s'")
