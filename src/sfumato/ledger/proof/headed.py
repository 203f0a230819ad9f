"""A store that is held to its head: one that lost its end is not written.

Claim. Whatever was released was paid by an entry that the head outside the store names, or one before it; and a chain
that does not hold the head's entry, with its hash, is refused until two persons accept it. So no answer outlives its
charge: neither where the store drops its end, nor where its last entries are written anew.

Sketch. A transaction that something is released on the strength of (opened, drawn) returns after its commit and after
the head was synced. Others write the head too, and leave the syncing to the next one: a spend releases nothing before
it is opened. A head names only what was committed before, and a chain only grows; so where the store lacks the named
entry, or has another, something was lost or written anew, and nothing else. The head is read while nobody else can
write (or before the snapshot, where one only looks), so an entry that the store lacks is missing, not late.

The file is made, synced, before the first commit that says in the ledger that there is one; so a file that is missing
then was lost. What remains: a store that is put back together with its head, and whoever may write both. An anchor, in
other hands, is for that (anchored.py); where there is one, the head lies beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ... import checks
from ...errors import LedgerError
from ..stores.base import Book, Store
from .birth import begin, entry_bytes
from .chain import GENESIS, Link
from .head import HeadFile

BEHIND = (
    "the ledger lacks entries that were written: its head, the file {}, names entry {}, and the ledger does not hold "
    "it. It lost its end, or is an older or another copy. Nothing is released: bring the right copy back, or have two "
    "persons accept this one with accept_restore. (For a new ledger in the place of an old one, remove that file first)"
)
LOST = (
    "the ledger's head, the file {}, is missing: it was lost, or the ledger was moved or copied without it. Nothing is "
    "released: bring it along, or have two persons accept the ledger without it with accept_restore"
)
_FACT = "head"


class HeadedStore:
    """A store with a head outside it.

    head  where it is told, with every entry
    also  where it was told before: it is only looked at
    """

    def __init__(self, store: Store, head: HeadFile, *, also: tuple[HeadFile, ...] = (), principal: str = "") -> None:
        self._store, self.head, self._also = store, head, also
        self._principal = checks.label(store.principal or principal or "somebody", "principal")
        self._looked = False  # at where it was told before
        self._over = ""

    @property
    def principal(self) -> str | None:
        return self._store.principal

    def __getattr__(self, name: str) -> object:
        """What else the store itself knows (its folder, its damage)."""
        return getattr(self._store, name)

    @property
    def continues(self) -> bool:
        return self.behind() is None

    def behind(self) -> str | None:
        """Why the chain does not hold its head, in words; None where it does. Nothing is changed."""
        try:
            links = [(head, head.read()) for head in (self.head, *self._also)]
            with self._store.reading() as book:
                if links[0][1] is None and self._expected(book):
                    return LOST.format(self.head.path.name)
                for head, link in links:
                    if link is not None and not _holds(book, link):
                        return BEHIND.format(head.path.name, link.number)
        except LedgerError as problem:
            return str(problem)
        return None

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._store.reading() as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        if self._over:
            raise LedgerError(self._over)
        with self._store.writing() as book:
            before = book.head
            self._judge(book)
            yield book
        if book.head != before:
            self._tell(book.head, sync=not book.lazy)

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        return self._store.entries(first)

    def close(self) -> None:
        self._store.close()

    @contextmanager
    def accepting(self) -> Iterator[Book]:
        """A transaction on a chain that does not hold its head; from then on the head is this chain's."""
        with self._store.writing() as book:
            book.put_fact(_FACT, self.head.kind, True)
            yield book
        for head in (self.head, *(each for each in self._also if each.exists())):
            head.reset(book.head)

    def accept_restore(self, reason: str, principals: tuple[str, ...]) -> None:
        """Go on from this chain, though its head names more. Two persons answer for what was lost."""
        check_accepted(reason, principals)
        if self.behind() is None:
            raise LedgerError("the ledger holds its head: there is nothing to accept")
        gone = self._given_up()
        with self.accepting() as book:
            begin(book, self._principal)
            fields = {"reason": reason, "principals": principals, "given_up": gone, "writer": ""}
            book.append(entry_bytes("accept restore", self._principal, fields))

    def _given_up(self) -> tuple[int, str] | None:
        try:
            link = self.head.read()
        except LedgerError:
            return None
        return None if link is None else (link.number, link.hash.hex())

    def _judge(self, book: Book) -> None:
        """Refuse a chain that does not hold its head; give a ledger that never had one its first."""
        link = self.head.read()
        if link is None and self._expected(book):
            raise LedgerError(LOST.format(self.head.path.name))
        earlier = () if self._looked else self._also
        for head, named in ((self.head, link), *((each, each.read()) for each in earlier)):
            if named is not None and not _holds(book, named):
                raise LedgerError(BEHIND.format(head.path.name, named.number))
        if link is None:
            self.head.begin(book.head)
        if not self._expected(book):
            book.put_fact(_FACT, self.head.kind, True)
        self._looked = True

    def _expected(self, book: Book) -> bool:
        return bool(book.fact(_FACT, self.head.kind))

    def _tell(self, link: Link, *, sync: bool) -> None:
        """After the commit, and before whoever wrote goes on."""
        try:
            self.head.write(link, sync=sync)
        except LedgerError as problem:
            # What was written is paid and stays; what a failed sync left on the disk is unknown.
            self._over = str(problem)
            raise


def _holds(book: Book, link: Link) -> bool:
    if link in (book.head, GENESIS):
        return True
    stored = book.entry(link.number) if link.number <= book.head.number else None
    return stored is not None and stored[0] == link


def check_accepted(reason: str, principals: tuple[str, ...]) -> None:
    checks.label(reason, "reason")
    if not isinstance(principals, tuple) or len(set(principals)) != 2 or len(principals) != 2:
        raise checks.refuse("principals", principals, "the names of two different persons")
    for name in principals:
        checks.label(name, "principals")
