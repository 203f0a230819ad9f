"""Is the ledger what was written? Everything is read again from the stored bytes, and nothing is changed.

    1  the file or tables themselves, where the store can tell
    2  the chain: each entry continues the one before it; hashes are over stored bytes, nothing is parsed
    3  the anchor: each line signed, in its order, by a trusted key; the chain holds each entry that a line names
    4  the state: replaying the entries gives every account and receipt as it is stored, and each stored answer has
       the SHA-256 that its entry tells

The first bad entry is named. Where a chain was written anew from some entry on, with hashes that fit, only the
checkpoints tell: then the first entry after the last good checkpoint is named, since none from there on is proven.
Where the end is missing, the first missing entry is named, with where the proven ones end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator

from ... import checks, record
from ...errors import LedgerError, install_line
from ..stores.base import Book, Store
from ..stores.digest import PROVEN
from .anchor import Anchor
from .chain import GENESIS, Link
from .checkpoints import against, born_with, good_lines, restored
from .head import HeadFile
from .replay import replay
from .report import Problem, Report
from .reprice import Reprice
from .state import State

Progress = Callable[[int], None]

_OFTEN = 500  # entries between two calls of a progress function


def verify(
    store: Store,
    anchor: Anchor | None = None,
    *,
    trusted: Collection[str] = (),
    state: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Check everything that can be checked.

    anchor   the one outside the store, by default that of an anchored store; without any, an end that was cut off
             cannot be seen
    trusted  public keys that may have signed the anchor; by default the one that signed its first line
    state    also replay the entries, and compare what they amount to with what is stored
    progress is called with the number of the entry that was read
    """
    if isinstance(trusted, str) or not isinstance(trusted, Collection):
        raise checks.refuse("trusted", trusted, "a list of public keys, in hex")
    if not hasattr(store, "entries"):
        raise checks.refuse("store", store, "a store; ledger.verify() checks a ledger")
    if anchor is not None and not hasattr(anchor, "lines"):
        raise checks.refuse("anchor", anchor, "an anchor, such as FileAnchor(path)")
    anchor = anchor or getattr(store, "anchor", None)
    trusted = trusted or getattr(store, "trusted", ())
    problems: list[Problem] = []
    notes: list[str] = []
    if (damage := _damage(store)) is not None:
        problems.append(Problem(None, damage))
    link = _told_head(store, anchor, problems, notes)
    # Lines and head first: whatever they name was written by then.
    lines = [] if anchor is None else good_lines(anchor, trusted, problems, notes)
    walk = _Walk(store, {*(line.number for line in lines), *(() if link is None else (link.number,))}, progress)
    prices = Reprice()
    found = State(prices=prices)
    try:
        if state:
            replay(walk, found)
        for _ in walk:
            """To the end, also where the replay stopped."""
    except LedgerError as problem:
        problems.append(Problem(walk.head.number + 1, str(problem)))
    if walk.broken is not None:
        problems.append(walk.broken)
    problems += against(lines, walk.head, walk.at, whole=walk.broken is None)
    problems += _held_to(store, anchor, link, walk)
    accounts, receipts = len(found.accounts), len(found.receipts)
    if found.wrong is not None:
        problems.append(Problem(*found.wrong))
    if prices.unread:
        notes.append(
            f"{prices.unread} queries could not be read back here, so their prices are compared with their events "
            f"only: {install_line('sql')}; one that is refused today stays unread"
        )
    if prices.cheap:
        problems.append(
            Problem(
                prices.cheap[0],
                f"{len(prices.cheap)} entries charged less than their events cost by today's accountant, this one "
                "first: an earlier version priced them too low",
            )
        )
    try:
        with store.reading() as book:
            problems += restored(book, lines, notes)
            problems += born_with(book, lines, trusted, notes)
            if state and not problems:
                problems += _state(book, found, walk.head)
            as_left = getattr(book, "as_left", None)
            if state and not problems and as_left is not None and not as_left():
                problems.append(Problem(book.head.number, "it says that it left another state than is stored"))
    except LedgerError as problem:
        problems.append(Problem(None, str(problem)))
    return Report(walk.head, len(lines), accounts, receipts, tuple(problems), tuple(notes))


def _damage(store: Store) -> str | None:
    look = getattr(store, "damage", None)
    try:
        return None if look is None else look()
    except LedgerError as problem:
        return str(problem)


def _head_of(store: Store, anchor: Anchor | None) -> HeadFile | None:
    head: HeadFile | None = getattr(anchor, "head", None) or getattr(store, "head", None)
    return head


def _told_head(store: Store, anchor: Anchor | None, problems: list[Problem], notes: list[str]) -> Link | None:
    """What the head outside the store says."""
    head = _head_of(store, anchor)
    try:
        link = None if head is None else head.read()
        if head is not None and link is not None and head.torn():
            notes.append(
                f"one of the two places of the head, {head.path.name}, cannot be read: the next write mends it"
            )
        return link
    except LedgerError as problem:
        problems.append(Problem(None, str(problem)))
        return None


def _held_to(store: Store, anchor: Anchor | None, link: Link | None, walk: _Walk) -> Iterator[Problem]:
    """Does the chain hold the entry that the head names? Where it breaks before, that is told already."""
    head = _head_of(store, anchor)
    if head is None:
        return
    if link is None:
        with store.reading() as book:
            if not head.exists() and book.fact("head", head.kind):
                yield Problem(None, f"the head, {head.path.name}, is missing: an end that was lost is not seen")
    elif link.number > walk.head.number:
        if walk.broken is None:
            yield Problem(
                walk.head.number + 1, f"it is missing: the end was lost, and the head names entry {link.number}"
            )
    elif link.number and walk.at[link.number] != link.hash:
        yield Problem(link.number, "it was written anew: the head has another hash")


def _digest(before: bytes, number: int, body: bytes) -> bytes:
    """As in chain.py, written once more: a chain is checked by its text, not by the code that made it."""
    return hashlib.sha256(before + number.to_bytes(8, "big") + body).digest()


class _Walk:
    """The entries as far as the chain holds, and the hashes at the numbers that were asked for."""

    def __init__(self, store: Store, asked: Collection[int], progress: Progress | None = None) -> None:
        self.head = GENESIS
        self.at: dict[int, bytes] = {}
        self.broken: Problem | None = None
        self._asked, self._progress = asked, progress
        self._bodies = self._go(store)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return self._bodies

    def _go(self, store: Store) -> Iterator[tuple[int, bytes]]:
        number, digest = GENESIS
        asked, at, told = self._asked, self.at, self._progress
        try:
            for (stored_number, stored_hash), body in store.entries():
                try:
                    expected = _digest(digest, number + 1, body)
                except TypeError:  # a damaged file may give anything
                    expected = b""
                if stored_number != number + 1:
                    self.broken = Problem(number + 1, f"it is missing, or out of its place: {stored_number} comes next")
                    return
                if stored_hash != expected:
                    self.broken = Problem(number + 1, "it does not continue the chain: it, or its hash, was changed")
                    return
                number, digest = stored_number, expected
                if number in asked:
                    at[number] = digest
                if told is not None and not number % _OFTEN:
                    told(number)
                yield number, body
        finally:
            self.head = Link(number, digest)


def _state(book: Book, found: State, head: Link) -> Iterator[Problem]:
    """Is what is stored beside the entries what they amount to?"""
    for number in range(head.number + 1, book.head.number + 1):  # written since the walk
        entry = book.entry(number)
        if entry is None or entry[0] != head.next(entry[1]):
            yield Problem(number, "it does not continue the chain")
            return
        head = entry[0]
        if (wrong := replay([(number, entry[1])], found).wrong) is not None:
            yield Problem(*wrong)
            return
    if (forget := getattr(book, "forget", None)) is not None:
        forget()  # what a running process remembers is not what lies there
    names = book.accounts()
    for name in sorted(found.accounts.keys() | set(names)):
        kept, told = book.account(name), found.accounts.get(name)
        if kept is None or told is None or record.canonical(kept) != record.canonical(told):
            yield Problem(None, f"the stored state of account {name!r} is not what the entries amount to")
    for kind in PROVEN:
        told_facts = {name: value for (of, name), value in found.facts.items() if of == kind}
        kept_facts = book.facts(kind)
        for name in sorted(told_facts.keys() | kept_facts.keys()):
            if told_facts.get(name) != kept_facts.get(name):
                yield Problem(None, f"the stored {kind} {name!r} is not what the entries amount to")
    missing = dict(found.receipts)
    for (id, plan_hash, data), filed in book.receipts():
        settled = missing.pop(id, None)
        kept_hash = None if filed.answer is None else hashlib.sha256(filed.answer).hexdigest()
        if settled is None or settled[:3] != filed[:3]:
            yield Problem(None, f"the stored receipt {id!r} is not what the entries amount to")
        elif (id, plan_hash, data) != (settled.receipt.id, settled.receipt.plan_hash, settled.receipt.data):
            yield Problem(None, f"the stored receipt {id!r} would be found under another plan or data")
        elif kept_hash != settled.answer:
            yield Problem(None, f"the stored answer of receipt {id!r} is not the one that was given")
    for id in missing:
        yield Problem(None, f"receipt {id!r} is in the entries and not in the store")


__all__ = ["Problem", "Report", "verify"]
