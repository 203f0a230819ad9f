"""A store that is held to its anchor: an old backup, or a second copy, is not written.

Before each transaction commits, the chain must hold the anchor's last entry with the same hash; or else every write is
refused until two persons accept the copy (`accept_restore`). Reading the anchor costs a look at its size.

A writer (one opened store in one process) enters with an entry of its own, and publishes it as a checkpoint before its
first spend: its fencing token. Processes on one store share the chain, so each finds the others' entries in it. A copy
does not: as soon as a writer of the second copy has entered, the first is refused. After that come checkpoints every
100 entries or 60 seconds, whichever is first, and when the store is closed.

The window that remains. One transaction that had looked at the anchor just before the other copy's writer entered. A
machine that is copied while it runs (a snapshot of a process) enters once for both: they are told apart at the first
checkpoint after they part, so up to 100 entries or 60 seconds. What was written after the last checkpoint is told by
the head beside the anchor (headed.py), which is not signed: whoever may write both can cut it off unseen once every
process that saw it is gone; in quiet hours nothing is written, and the last entries wait for the next one, for
`checkpoint()` or for `close()`. An anchor that is copied along with its store protects nothing.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from ... import checks
from ...errors import LedgerError
from ..stores.base import Book, Store
from . import anchor as anchors
from .anchor import Anchor, Checkpoint
from .birth import begin, entry_bytes, read, unused
from .chain import GENESIS, Link
from .head import HeadFile
from .headed import check_accepted
from .keys import Key

_OLD = ("stale", "missing")  # codes of refusals after which the ledger may still be read
STALE = (
    "the ledger does not continue its anchor: it is an older copy, or another copy was written. Nothing is released. "
    "Use the right copy, or have two persons accept this one with accept_restore"
)
MISSING = (
    "the anchor is empty or older than it was: bring it back, or have two persons accept the ledger without it with "
    "accept_restore"
)
BESIDE = "the anchor lies in the ledger's folder, and would be copied and restored with it: give a place outside"
STRANGE = "the anchor belongs to another ledger: give the one of this ledger, or an empty one for a new ledger"
_ATTEMPTS = 200  # each fails only because another writer's line went in, so somebody always gets on


class _Seen(NamedTuple):
    """The anchor when it was last read."""

    mark: object = None
    line: bytes | None = None
    checkpoint: Checkpoint | None = None


class AnchoredStore:
    """A store with an anchor outside it.

    trusted  public keys, besides this one, that may have signed the anchor
    """

    anchored = True

    def __init__(
        self,
        store: Store,
        anchor: Anchor,
        key: Key,
        *,
        principal: str | None = None,
        trusted: tuple[str, ...] = (),
        every: int = 100,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if (folder := getattr(store, "folder", None)) is not None and folder == getattr(anchor, "folder", None):
            raise LedgerError(BESIDE)
        self._store, self._anchor, self._key = store, anchor, key
        self._principal = checks.label(store.principal or principal or "somebody", "principal")
        self._trusted = {key.public, *trusted}
        self._every, self._seconds, self._clock = checks.whole(every, "every"), seconds, clock
        self._writer = secrets.token_hex(16)
        self._entering, self._noting = threading.Lock(), threading.Lock()
        self._entered = False
        self._own: Link | None = None  # this writer's own entry
        self._overdue: Link | None = None
        self._head = GENESIS  # the furthest that this store has seen its chain
        self._seen, self._at = _Seen(), clock()
        self._check()

    def _check(self) -> None:
        """A wrong key or another ledger's anchor is told at once; an old copy may still be read, and accepted."""
        try:
            self._look()
        except LedgerError as problem:
            if problem.code not in _OLD:
                raise

    @property
    def anchor(self) -> Anchor:
        return self._anchor

    @property
    def trusted(self) -> frozenset[str]:
        """The public keys that may have signed it."""
        return frozenset(self._trusted)

    @property
    def principal(self) -> str | None:
        return self._store.principal

    @property
    def continues(self) -> bool:
        """Does the chain continue the anchor now, and hold the head beside it?"""
        try:
            self._look()
        except LedgerError:
            return False
        return self._headed

    @property
    def _headed(self) -> bool:
        return bool(getattr(self._store, "continues", True))

    @property
    def head(self) -> HeadFile | None:
        """Where the last entry is told outside of the store, with each release."""
        head: HeadFile | None = getattr(self._store, "head", None)
        return head

    def behind(self) -> str | None:
        look = getattr(self._store, "behind", None)
        return None if look is None else look()

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._store.reading() as book:
            yield book

    @contextmanager
    def writing(self) -> Iterator[Book]:
        self._enter()
        if self._overdue is not None:
            self._publish(self._overdue)
        with self._store.writing() as book:
            self._judge(book, self._fetch())
            yield book
        self._after(book.head)

    def entries(self, first: int = 1) -> Iterator[tuple[Link, bytes]]:
        return self._store.entries(first)

    def damage(self) -> str | None:
        look = getattr(self._store, "damage", None)
        return None if look is None else look()

    def close(self) -> None:
        """With a last checkpoint, if this store wrote and may go on."""
        try:
            if self._entered and self.continues:
                self.checkpoint()
        finally:
            self._store.close()

    def checkpoint(self) -> None:
        """A checkpoint now, if anything was written since the last: for whoever wants them also in quiet hours."""
        self._enter()
        with self._store.reading() as book:
            head = book.head
        if self._number() < head.number:
            self._publish(head)

    def accept_restore(self, reason: str, principals: tuple[str, ...]) -> None:
        """Go on from this copy, though the anchor saw another. Two persons answer for what the other copy spent."""
        check_accepted(reason, principals)
        headed, accepting = self._headed, getattr(self._store, "accepting", self._store.writing)
        with self._entering:
            with accepting() as book:
                begin(book, self._principal, self._key.public)
                seen = self._read()
                try:
                    self._judge(book, seen)
                except LedgerError as problem:
                    if problem.code not in _OLD:
                        raise
                else:
                    if headed:
                        raise LedgerError("the ledger continues its anchor: there is nothing to accept")
                gone = None if seen.checkpoint is None else (seen.checkpoint.number, seen.checkpoint.hash)
                fields = {"reason": reason, "principals": principals, "given_up": gone, "writer": self._writer}
                book.append(entry_bytes("accept restore", self._principal, fields))
                ledger = self._name(book)
            link = book.head
            if not self._add(ledger, link, seen, fresh=True, restored=True):
                raise LedgerError("somebody else wrote to the anchor meanwhile: look at it again before you accept")
            self._head, self._entered, self._overdue = link, True, None

    def _enter(self) -> None:
        with self._entering:
            if self._entered:
                return
            if self._own is None:
                with self._store.writing() as book:
                    begin(book, self._principal, self._key.public)
                    self._judge(book, self._fetch())
                    book.append(
                        entry_bytes("writer", self._principal, {"writer": self._writer, "key": self._key.public})
                    )
                    book.put_fact("anchor", "", self._key.public)  # from now on nobody writes without one
                self._own, self._head = book.head, max(self._head, book.head)
            self._publish(self._own, fresh=True)
            self._entered = True

    def _after(self, head: Link) -> None:
        self._head = max(self._head, head)
        due = head.number - self._number() >= self._every or self._clock() - self._at >= self._seconds
        if due and head.number > self._number():
            try:
                self._publish(head)
            except LedgerError:
                # What was written is paid and stays. The next write tries again first, and is refused if it fails.
                self._overdue = head

    def _number(self) -> int:
        return 0 if self._seen.checkpoint is None else self._seen.checkpoint.number

    # The anchor is read before the snapshot of the store, or while nobody else can write: whatever it names was
    # committed by then, and an entry that the store lacks is missing, not late.

    def _look(self) -> tuple[_Seen, str]:
        seen = self._fetch()
        with self._store.reading() as book:
            self._judge(book, seen)
            return seen, self._name(book)

    def _fetch(self) -> _Seen:
        known = self._seen
        return known if known.mark is not None and self._anchor.mark() == known.mark else self._read()

    def _read(self) -> _Seen:
        mark, line = self._anchor.mark(), self._anchor.last()
        return _Seen(mark, line, None if line is None else anchors.read(line, self._trusted))

    def _judge(self, book: Book, seen: _Seen) -> None:
        """Refuse a chain that does not hold the anchor's last entry, or lost what we saw in it before."""
        known, last = self._seen, seen.checkpoint
        shrunk = book.head.number < (0 if last is None else last.number) or not self._kept(book)
        if seen is known and last is not None and not shrunk:
            return  # held to it before, and a chain only grows
        if last is None:
            if shrunk:
                raise LedgerError(STALE, code="stale")
            born = read(book)
            if known.checkpoint is not None or (born is not None and born.anchor is not None and not unused(book)):
                raise LedgerError(MISSING, code="missing")
            return
        if book.head.number and last.ledger != self._name(book):
            raise LedgerError(STRANGE)
        found = None if shrunk else book.entry(last.number)
        if found is None or found[0].hash.hex() != last.hash:
            raise LedgerError(STALE, code="stale")
        self._note(seen)

    def _kept(self, book: Book) -> bool:
        """Is the furthest that we saw still there? A chain that lost it may have grown again, and be the longer."""
        if self._head in (book.head, GENESIS):
            return True
        found = book.entry(self._head.number)
        return found is not None and found[0] == self._head

    def _note(self, seen: _Seen) -> None:
        assert seen.checkpoint is not None
        with self._noting:
            known = self._seen.checkpoint
            if known is not None and known.serial > seen.checkpoint.serial:
                if self._anchor.last() == seen.line:
                    raise LedgerError(MISSING, code="missing")
                return  # another thread has read further
            if known is None or known.serial < seen.checkpoint.serial:
                self._at = self._clock()
            self._seen = seen

    def _name(self, book: Book) -> str:
        born = read(book)
        return "" if born is None else born.ledger

    def _publish(self, link: Link, *, fresh: bool = False) -> None:
        """A checkpoint at that entry, unless one at a later entry of this chain is there already."""
        for _ in range(_ATTEMPTS):
            seen, ledger = self._look()
            if (seen.checkpoint is not None and seen.checkpoint.number >= link.number) or self._add(
                ledger, link, seen, fresh=fresh
            ):
                self._overdue = None
                return
        raise LedgerError(anchors.UNUSABLE)

    def _add(self, ledger: str, link: Link, seen: _Seen, *, fresh: bool, restored: bool = False) -> bool:
        last = seen.checkpoint
        made = Checkpoint(
            ledger=ledger,
            number=link.number,
            hash=link.hash.hex(),
            at=datetime.now(UTC).isoformat(),
            key=self._key.public,
            writer=self._writer,
            epoch=(0 if last is None else last.epoch) + fresh,
            serial=(0 if last is None else last.serial) + 1,
            before=anchors.fingerprint(seen.line),
            restored=restored,
        )
        line = made.signed(self._key)
        if not self._anchor.add(line, seen.line):
            return False
        with self._noting:
            # No mark: whoever looks next reads the line, and holds the chain to it.
            self._seen, self._at = _Seen(None, line, made), self._clock()
        return True
