"""Attacks that the library must withstand, each with a planted bug that it must break.

    python -m sfumato.audit.attacks F1            exit 0: withstood, 1: broken, 2: could not run
    python -m sfumato.audit.attacks F1 --control  the same attack on its planted bug: must exit 1

An attack is a function from a target to a `Verdict`. A sound target is called broken with chance at most 1e-6 per run.
"""

from __future__ import annotations

from collections.abc import Callable

from . import curves, float_bits, forked, precision, searching, targets, timing, variants
from .verdict import CouldNotRunError, Verdict

__all__ = ["ATTACKS", "CONTROLS", "CouldNotRunError", "Verdict", "attack"]

ATTACKS: dict[str, Callable[[], Verdict]] = {
    "F1": float_bits.attack,
    "F2": precision.attack,
    "F4": timing.attack,
    "F5": forked.attack,
    "V1": variants.attack,
    "V2": searching.attack,
    "V3": curves.attack,
}

CONTROLS: dict[str, Callable[[], Verdict]] = {
    "F1": lambda: float_bits.attack(targets.TEXTBOOK),
    "F2": lambda: precision.attack(targets.TEXTBOOK),
    "F4": lambda: timing.attack({"geometric by a loop": timing.looping_geometric}),
    "F5": lambda: forked.attack(forked.copied()),
    "V1": variants.control,
    "V2": searching.control,
    "V3": curves.control,
}


def attack(id: str, *, control: bool = False) -> Verdict:
    """Run one attack on the library, or on its planted bug."""
    table = CONTROLS if control else ATTACKS
    if id not in table:
        raise CouldNotRunError(f"there is no attack {id!r}; there are {', '.join(table)}.")
    return table[id]()
