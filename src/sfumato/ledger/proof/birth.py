"""The first entry of a ledger: who it is. Every copy of it bears the same id."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from ... import record
from ...errors import BudgetError, LedgerError, RecordError, SfumatoError
from ...events import Event
from ..stores.base import Book
from .chain import GENESIS

UNANCHORED = "this ledger was made with an anchor: open it with its anchor, or nothing more is written"


class Birth(NamedTuple):
    """A ledger's id, and the public key of its first anchor, if it was born with one."""

    ledger: str
    anchor: str | None = None


def entry_bytes(kind: str, by: str, fields: Mapping[str, Any]) -> bytes:
    """An entry's bytes. The time is what the clock said: it is told, and nothing is decided by it."""
    for event in (getattr(fields.get("receipt"), "event", None), fields.get("event")):
        if event is not None and not _sound(event):
            raise BudgetError("the event's fields are not what its kind allows: make the plan anew, and change none")
    return record.canonical({"kind": kind, "by": by, "at": datetime.now(UTC).isoformat(), **fields})


@lru_cache(maxsize=1024)
def _sound(event: Any) -> bool:
    """Does it pass its own checks? Fields that were changed after they were checked would be charged as they are, and
    the entry could not be read again."""
    try:
        return bool(record.parse(record.canonical(event), Event) == event)
    except (SfumatoError, TypeError, ValueError, AttributeError, OverflowError):
        return False


def read(book: Book) -> Birth | None:
    """Who the ledger is; None while nothing was written, or for one of no id."""
    first = book.entry(1)
    if first is None:
        return None
    try:
        entry = record.parse(first[1])
    except RecordError:
        return None
    if not isinstance(entry, dict) or entry.get("kind") != "birth" or not isinstance(entry.get("ledger"), str):
        return None
    return Birth(entry["ledger"], entry.get("anchor"))


def begin(book: Book, by: str, anchor: str | None = None) -> bool:
    """Give a new ledger its first entry, or refuse one that must not be written without its anchor. True if the entry
    was there before, so that nobody need ask again; a new one may still be undone."""
    if book.head == GENESIS:
        book.append(entry_bytes("birth", by, {"ledger": secrets.token_hex(16), "anchor": anchor}))
        return False
    born = read(book)
    if anchor is None and ((born is not None and born.anchor is not None) or book.fact("anchor", "") is not None):
        raise LedgerError(UNANCHORED)
    return True


def unused(book: Book) -> bool:
    """Has nobody done more than enter? Then a crash came before the first checkpoint."""
    for number in range(1, book.head.number + 1):
        found = book.entry(number)
        try:
            if found is None or record.parse(found[1], dict).get("kind") not in ("birth", "writer"):
                return False
        except RecordError:
            return False
    return True
