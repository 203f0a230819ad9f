"""B2: a budget gained by a race, a crash, a retry or a replay. L1 to L4, with less effort."""

from __future__ import annotations

from collections.abc import Callable

from ..verdict import Verdict
from . import crashing, racing, refunds, retrying

QUICK: dict[str, Callable[[], Verdict]] = {
    "L1": lambda: crashing.attack(whole=False, times=8),
    "L2": lambda: racing.attack(processes=8, times=15, room=60),
    "L3": lambda: retrying.attack(rounds=2),
    "L4": lambda: refunds.attack(interrupts=60),
}
CONTROLS: dict[str, Callable[[], Verdict]] = {
    "L1": crashing.control, "L2": racing.control, "L3": retrying.control, "L4": refunds.control
}  # fmt: skip


def attack(parts: dict[str, Callable[[], Verdict]] = QUICK) -> Verdict:
    """Broken if one of them is."""
    found = [run() for run in parts.values()]
    figures = {f"{each.id}, {name}": value for each in found for name, value in each.figures.items()}
    return Verdict("B2", any(each.broken for each in found), " ".join(each.text for each in found), figures)


def control() -> Verdict:
    """Caught only if each of the four planted bugs is."""
    found = [run() for run in CONTROLS.values()]
    missed = [each.id for each in found if not each.broken]
    words = f"Missed the planted bug of {', '.join(missed)}." if missed else "All four planted bugs were caught."
    return Verdict("B2", not missed, words, {"caught": len(found) - len(missed)})
