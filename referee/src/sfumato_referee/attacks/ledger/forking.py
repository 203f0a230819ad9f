"""L16: a fork multiplies no budget.

Claim. What counts in memory is used only in the process that made it: a ledger in memory, what is left of a reserve or
of held steps, a session. A ledger in a file is opened by each process for itself, so that all count in one place. In a
fork each of them is refused, before anything is charged or drawn.

The attack pays, or draws, the whole of a budget in the process that has it and in four forks of it, through every door
that counts in memory, and adds up what was answered. The planted bug takes every process for the one that began.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import process
from sfumato.accounting.filters import Budget
from sfumato.combine import reserve, sequence
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.memory import MemoryLedger
from sfumato.ledger.opening import open_ledger
from sfumato.mechanisms import SparseVector
from sfumato.noise import Noise, SecureBits
from sfumato.plan import Run

from ..forked import in_child
from ..verdict import CouldNotRunError, Verdict
from .ground import PATIENT, count, curator, folder

FORKS = 4
HALF = Fraction(1, 2)


def attack(*, guarded: bool = True, forks: int = FORKS) -> Verdict:
    if not hasattr(os, "fork"):
        raise CouldNotRunError("L16 needs a system that forks.")
    with folder() as home, _nobody_looks(not guarded):
        answered = {name: door(home / str(number), forks) for number, (name, door) in enumerate(DOORS.items())}
    broken = [name for name, times in answered.items() if times != 1]
    words = f"One budget was asked for in {1 + forks} processes, through {len(DOORS)} doors: "
    words += f"{broken[0]} answered {answered[broken[0]]} times." if broken else "each answered once."
    return Verdict("L16", bool(broken), words, {f"answers, {name}": times for name, times in answered.items()})


def control() -> Verdict:
    return attack(guarded=False)


@contextmanager
def _nobody_looks(planted: bool) -> Iterator[None]:
    original = process.Home.left
    if planted:
        process.Home.left = property(lambda _: False)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        process.Home.left = original  # type: ignore[method-assign]


def everywhere(work: Callable[[], object], forks: int) -> int:
    """How often the work is done by the forks, and then here."""

    def passes() -> bool:
        try:
            work()
        except SfumatoError:
            return False
        return True

    return sum(in_child(lambda: b"1" if passes() else b"") == b"1" for _ in range(forks)) + passes()


def _ledger(place: Path, epsilon: Any = 1) -> Ledger:
    """In a file; in memory where the place has no name."""
    if not place.name:
        return MemoryLedger({"patients": Budget(epsilon=epsilon)})
    ledger = open_ledger(place, create=True)
    ledger.open_account("patients", Budget(epsilon=epsilon))
    return ledger


_MEMORY = Path("/")


def _spend(place: Path, forks: int) -> int:
    door = curator(_ledger(_MEMORY))
    return everywhere(lambda: door.release(count(1, PATIENT)), forks)


def _part(place: Path, forks: int) -> int:
    door, part = curator(_ledger(_MEMORY)), count(HALF, PATIENT)
    door.prepay(sequence(one=part, two=count(Fraction(1, 4), PATIENT)))
    return everywhere(lambda: door.release(part), forks)


def _receipt(place: Path, forks: int) -> int:
    ledger = _ledger(_MEMORY)
    receipt = ledger.spend((), count(1, PATIENT), data="patients@1", grade="exact", note="")
    return everywhere(lambda: ledger.open(receipt), forks)


def _reserve(place: Path, forks: int) -> int:
    times: list[int] = []

    def body(run: Run) -> int:
        times.append(everywhere(lambda: run.release(count(HALF, PATIENT)), forks))
        return 0

    plan = reserve(body, unit=PATIENT, budget=Budget(epsilon=HALF))
    curator(_ledger(place)).release(plan)
    return times[0]


def _supervised(place: Path, forks: int) -> int:
    plan = reserve(unit=PATIENT, budget=Budget(epsilon=HALF))
    with curator(_ledger(place)).supervise(plan) as run:
        return everywhere(lambda: run.release(count(HALF, PATIENT)), forks)


def _steps(place: Path, forks: int) -> int:
    run = Run(Noise(SecureBits()), steps=1)
    return everywhere(lambda: run.draw(1), forks)


def _session(place: Path, forks: int) -> int:
    plan = SparseVector(epsilon=1, protects=PATIENT, threshold=-(10**6))  # it ends with the first answer
    with curator(_ledger(_MEMORY)).session(plan) as session:
        return everywhere(lambda: session.ask(count(HALF, PATIENT).query), forks)


DOORS: dict[str, Callable[[Path, int], int]] = {
    "a ledger in memory": _spend,
    "a part of a list that was paid": _part,
    "a receipt": _receipt,
    "a reserve, paid in memory": lambda _, forks: _reserve(_MEMORY, forks),
    "a reserve, paid in a file": _reserve,
    "a loop of one's own, in memory": lambda _, forks: _supervised(_MEMORY, forks),
    "a loop of one's own, in a file": _supervised,
    "steps": _steps,
    "a session": _session,
}
