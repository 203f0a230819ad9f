"""What is kept of one release beside its entries: the stored answer, and the checkpoint that covers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...ledger.desk import short
from ...ledger.proof.anchor import Checkpoint
from ...ledger.proof.checkpoints import good_lines
from ...ledger.stores.base import Store


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Of one receipt.

    state       as the store has it now
    answer      the bytes that were released; None where none are stored (failed, a session, the user's own loop)
    anchored    is there an anchor outside the ledger?
    checkpoint  the last good line of it, which signs the chain up to its entry
    """

    state: str
    answer: bytes | None
    anchored: bool
    checkpoint: Checkpoint | None


def stored_answers(store: Store, receipts: Iterable[str]) -> dict[str, bytes]:
    """The bytes that were released, by the receipt's id; those without stored ones are left out."""
    with store.reading() as book:
        filed = {id: book.filed(id) for id in receipts}
    return {id: each.answer for id, each in filed.items() if each is not None and each.answer is not None}


def evidence(store: Store, receipt: str) -> Evidence | None:
    """What there is for the receipt of this id; None where the ledger has none of it."""
    id = short(receipt, "receipt")
    with store.reading() as book:
        filed = book.filed(id) if id.isascii() else None
    if filed is None:
        return None
    anchor = getattr(store, "anchor", None)
    lines = [] if anchor is None else good_lines(anchor, getattr(store, "trusted", ()), [], [])
    return Evidence(
        state=filed.state,
        answer=filed.answer,
        anchored=anchor is not None,
        checkpoint=lines[-1] if lines else None,
    )
