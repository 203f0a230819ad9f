"""Which entry a receipt was paid with."""

from __future__ import annotations

from ...ledger.desk import short
from ...ledger.proof.chain import GENESIS
from ...ledger.stores.base import Store
from .history import Entry, entry_of, shallow

_PAYING = ("spend", "hold", "part")


def paid(store: Store, receipt: str) -> Entry | None:
    """Looks from the end of the chain backwards: what people ask about was mostly just paid."""
    id = short(receipt, "receipt")
    sought = id.encode("utf-8")
    with store.reading() as book:
        for number in range(book.head.number, 0, -1):
            found = book.entry(number)
            if found is None or sought not in found[1]:
                continue
            entry = entry_of(found[0], None, shallow(found[1]))
            if entry.receipt == id and entry.kind in _PAYING:
                before = book.entry(number - 1) if number > 1 else None
                previous = GENESIS.hash if number == 1 else None if before is None else before[0].hash
                return entry_of(found[0], previous, shallow(found[1]))
    return None
