"""Stores gone wrong: they lose what was written, read what is no more, or go on where they must stop.

Like the ledgers of `ledgers`, none is exported: attacks and tests run on them, and must find them broken.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sfumato.audit import seams, surface
from sfumato.errors import LedgerError
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.stores.base import Book
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.ledger.stores.sqlite_book import SQLiteBook

from .overriding import overriding


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
            surface.accounts_read(book).update({name: each for name, each in seen.items() if each is not None})
            yield book


class Deferred(SQLiteStore):
    """Reads first, and asks for the right to write when it writes: it never overspends, and most spenders fail (L2)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self.reading() as book:
            yield book


@overriding(seams.TAKE_HEAD, lambda _: "SELECT number, hash FROM sfumato.head")
class UnlockedServer(PostgresStore):
    """Reads the head of the chain without its lock (L2)."""


class Swallowing(SQLiteStore):
    """Takes a write that failed for one that was done: what the disk did not keep is answered all the same (L6)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        transaction = super().writing()
        book = transaction.__enter__()
        try:
            yield book
        except BaseException as problem:
            if not transaction.__exit__(type(problem), problem, problem.__traceback__):
                raise
        else:
            with suppress(LedgerError):
                transaction.__exit__(None, None, None)


class Unlocked(MemoryStore):
    """Two writers at once, and the later one wins (L7)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        draft = surface.trial(self)
        yield draft
        time.sleep(0.0002)
        surface.keep(self, draft)


class Stale(MemoryStore):
    """A lost update with a chain that holds: the accounts are read before the lock is taken (L7)."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        before = surface.snapshot(self)
        time.sleep(0.0002)
        with super().writing() as book:
            new = book.new.accounts  # type: ignore[attr-defined]
            book.account = lambda name: new.get(name) or surface.trial(before).account(name)  # type: ignore[method-assign]
            yield book


class Late(MemoryStore):
    """Reads from a copy that lags behind what was told (L7)."""

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with super().reading() as now:
            yield _Lagging(getattr(self, "before", now), now)

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with super().writing() as book:
            before = surface.snapshot(self)
            yield book
        self.before = surface.trial(before)


class _Lagging:
    """The accounts of before, at the head of now."""

    def __init__(self, before: Book, now: Book) -> None:
        self.before, self.head = before, now.head

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)


@overriding(seams.ANCHOR_JUDGED, lambda _: lambda self, book, seen: None)
class NeverLooks(AnchoredStore):
    """Writes to its anchor and never reads it: an old backup is spent from once more (L9)."""


def _enters_once(enter: Any) -> Any:
    def entered(self: AnchoredStore) -> None:
        if surface.anchor_of(self).last() is None:  # a new ledger
            enter(self)
        surface.take_as_entered(self)

    return entered


@overriding(seams.ANCHOR_ENTERED, _enters_once)
class NoToken(AnchoredStore):
    """Publishes no token of its own when it begins to write: two copies do not hear of each other for a hundred
    entries (L10)."""


def _forgets_spending(prepare: Any) -> Any:
    def prepared(self: SQLiteStore, create: bool) -> None:
        prepare(self, create)
        totals = "SELECT totals FROM accounts WHERE name = 'old'"
        surface.connection_of(self).execute(f"UPDATE accounts SET totals = ({totals}) WHERE name = 'ana''s'")

    return prepared


@overriding(seams.PREPARE, _forgets_spending)
class ForgetfulUpgrade(SQLiteStore):
    """Its upgrade writes the accounts anew and leaves out what they had spent (L14)."""
