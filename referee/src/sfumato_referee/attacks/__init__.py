"""Attacks that the library must withstand, each with a planted bug that it must break.

    sfumato attack F1             runs one, and the same attack on its planted bug
    sfumato attack --all --quick  runs all of them with less effort: a small fault may stay unseen

An attack is a function from a target to a `Verdict`. A sound target is called broken with chance at most 1e-6 per run.
They are listed in table.py, one line each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .table import LIST
from .verdict import CouldNotRunError, Verdict

__all__ = ["ATTACKS", "CONTROLS", "TITLES", "CouldNotRunError", "Verdict", "attack"]

TITLES: dict[str, str] = {each.id: each.title for each in LIST}
ATTACKS: dict[str, Callable[[], Verdict]] = {each.id: each.on_library for each in LIST}
_QUICK: dict[str, Callable[[], Verdict]] = {each.id: partial(each.on_library, quick=True) for each in LIST}
CONTROLS: dict[str, Callable[[], Verdict]] = {each.id: each.on_planted_bug for each in LIST}


def attack(id: str, *, control: bool = False, quick: bool = False) -> Verdict:
    """Run one attack on the library, or on its planted bug; `quick` takes less effort on the library."""
    table = CONTROLS if control else _QUICK if quick else ATTACKS
    if not isinstance(id, str) or id not in table:
        named = repr(id)[:20] if isinstance(id, str) else f"of type {type(id).__name__}"
        raise CouldNotRunError(f"there is no attack {named}; there are {', '.join(table)}.")
    return table[id]()
