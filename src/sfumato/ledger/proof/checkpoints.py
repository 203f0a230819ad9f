"""Is the anchor good, is it this ledger's, and does the chain hold what its checkpoints name?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ... import record
from ...errors import LedgerError, RecordError
from ..stores.base import Book
from . import anchor as anchors
from .anchor import Anchor, Checkpoint
from .birth import read
from .chain import Link
from .report import Problem


def good_lines(anchor: Anchor, trusted: Collection[str], problems: list[Problem], notes: list[str]) -> list[Checkpoint]:
    """The checkpoints, as far as the anchor holds."""
    good: list[Checkpoint] = []
    keys, before = set(trusted), None
    for serial, raw in enumerate(anchor.lines(), 1):
        line = raw.removesuffix(b"\n")
        try:
            if line == raw:
                raise LedgerError("it has no end: a crash cut it short, or somebody did; the next checkpoint mends it")
            if not keys:
                keys = {own_key(line)}
                notes.append(f"the anchor is signed with {min(keys)}: compare it with the key you trust")
            checkpoint = anchors.read(line, keys)
            if (checkpoint.serial, checkpoint.before) != (serial, anchors.fingerprint(before)):
                raise LedgerError("it does not follow the line before it: a line was changed, lost or moved")
            if good and checkpoint.number <= good[-1].number and not checkpoint.restored:
                raise LedgerError("it goes back to an earlier entry, and nobody accepted that")
        except LedgerError as problem:
            problems.append(Problem(None, f"line {serial} of the anchor: {problem}"))
            break
        good.append(checkpoint)
        before = line
    if not good and not problems:
        problems.append(Problem(None, "the anchor is missing or empty: bring it back; without it, nothing is proven"))
    return good


def own_key(line: bytes) -> str:
    """The key that a line names itself: whoever wrote it chose it."""
    try:
        return str(record.parse(line, anchors.Signed).checkpoint.key)
    except (RecordError, AttributeError):
        raise LedgerError(anchors.DAMAGED) from None


def born_with(book: Book, lines: list[Checkpoint], trusted: Collection[str], notes: list[str]) -> Iterator[Problem]:
    """Is it this ledger's anchor? Without keys to trust, only one of the key that the first entry names."""
    born = read(book)
    if born is None:
        return
    if any(line.ledger != born.ledger for line in lines):
        yield Problem(None, "the anchor belongs to another ledger")
    elif born.anchor is not None and not lines:
        notes.append("the ledger was made with an anchor: without it, an end that was cut off is not seen")
    elif born.anchor is not None and not trusted and lines[0].key != born.anchor:
        yield Problem(None, "the anchor was begun with another key than the ledger: name the keys that you trust")


def _standing(lines: list[Checkpoint]) -> list[Checkpoint]:
    """Without those that were given up when an older copy was accepted."""
    kept: list[Checkpoint] = []
    for line in lines:
        if line.restored:
            kept = [earlier for earlier in kept if earlier.number < line.number]
        kept.append(line)
    return kept


def against(lines: list[Checkpoint], head: Link, at: Mapping[int, bytes], *, whole: bool) -> Iterator[Problem]:
    """Does the chain hold what the checkpoints name? Only the first that it does not is told.

    head, at  where the chain ends, and its hashes at the numbers that the lines name
    whole     False where the chain breaks after `head`: then it is known that more is missing
    """
    proven = 0
    for line in _standing(lines):
        if line.number > head.number:
            if whole:
                unproven = f"; entries from {proven + 1} on are not proven either" if proven < head.number else ""
                yield Problem(
                    head.number + 1,
                    f"it is missing: the end was cut off, and checkpoint {line.serial} names entry {line.number}"
                    f"{unproven}",
                )
            return
        if at[line.number].hex() != line.hash:
            yield Problem(
                proven + 1,
                f"the chain was written anew between entries {proven + 1} and {line.number}: checkpoint {line.serial} "
                "has another hash",
            )
            return
        proven = line.number


def restored(book: Book, lines: list[Checkpoint], notes: list[str]) -> Iterator[Problem]:
    """An older copy was accepted: by an entry that says so?"""
    for line in _standing(lines):
        if line.restored and (found := book.entry(line.number)) is not None:
            try:
                said = record.parse(found[1], dict).get("kind") == "accept restore"
            except RecordError:
                said = False
            if not said:
                yield Problem(line.number, f"checkpoint {line.serial} goes back, and no entry accepts that")
            notes.append(
                f"an older copy was accepted at entry {line.number}: what the other one spent is not counted here"
            )
