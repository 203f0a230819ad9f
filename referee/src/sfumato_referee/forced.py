"""The door, forced. The surface of the library opens no private data, so the adversary has this file: attacks put
made-up data behind the library's own door, and must see what a broken one would let out."""

from __future__ import annotations

from typing import Any

from sfumato.openings import Opening, Tables
from sfumato.plan import Receipt
from sfumato.private import Private


def tables_of(private: Private) -> Tables:
    """Where the tables behind a Private lie."""
    return private._tables


def opened(private: Private, opening: Opening[Any]) -> Any:
    """What a plan would be handed, without a receipt."""
    return opening._open(tables_of(private))


def opened_with(private: Private, receipt: Receipt, opening: Opening[Any]) -> Any:
    """What the door itself gives for a receipt, paid or not."""
    return private._open(receipt, opening)
