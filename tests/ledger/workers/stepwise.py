"""A process that runs a plan in steps under a key, and dies somewhere on the way.

    python -m tests.ledger.workers.stepwise FOLDER NAME...

A name is the places where it dies, one after another, with a "+" between them: "after draw 2+before settle" dies twice,
each time in a process of its own that goes on with what the one before left. Works in FOLDER/NAME, of "there=places" in
FOLDER/there; prints how each ended.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import Budget, Curator, Private
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Run, Steps
from sfumato_referee.attacks.ledger.releasing import child
from tests.helpers import AGES, BY_PATIENT, PATIENTS
from tests.stepping import Stepping

TIMES = 6
DRAWS = [f"{when} draw {number}" for number in range(1, TIMES + 1) for when in ("before", "after", "within", "ran")]
PLACES = ["before hold", "after hold", "before open", "after open", *DRAWS, "before settle", "after settle"]


class DyingSteps(Ledger):
    """A ledger whose process dies at a place."""

    place, draws = "", 0

    def die(self, where: str) -> None:
        if where == self.place:
            os.kill(os.getpid(), signal.SIGKILL)

    def hold(self, *args: Any, **named: Any) -> Any:
        self.die("before hold")
        receipt = super().hold(*args, **named)
        self.die("after hold")
        return receipt

    def open(self, *args: Any, **named: Any) -> None:
        self.die("before open")
        super().open(*args, **named)
        self.die("after open")

    def draw_steps(self, *args: Any) -> Steps:
        self.draws += 1
        self.die(f"before draw {self.draws}")
        told = super().draw_steps(*args)
        self.die(f"after draw {self.draws}")
        return told

    def settle(self, *args: Any, **named: Any) -> None:
        self.die("before settle")
        super().settle(*args, **named)
        self.die("after settle")


def plan_of(folder: Path) -> Stepping:
    return Stepping(times=TIMES, place=str(folder), tag="dying")


def curator_of(ledger: Ledger) -> Curator:
    return Curator(Private("patients", AGES, unit=BY_PATIENT, schema=PATIENTS), ledger)


def prepare(folder: Path, budget: Budget) -> Path:
    folder.mkdir(parents=True)
    ledger = Ledger(SQLiteStore(folder / "ledger", create=True))
    ledger.open_account("patients", budget)
    ledger.shut()
    return folder


def work(folder: Path, place: str = "") -> Any:
    """Run it, or go on with it, to the end or to where it dies; what is released."""
    ledger = DyingSteps(SQLiteStore(folder / "ledger"))
    ledger.place = place

    def hook(where: str) -> Callable[[Any, Run], None]:
        return lambda rows, run: ledger.die(f"{where} draw {ledger.draws}")

    Stepping.hooks |= {"dying": hook("within"), "dying ran": hook("ran")}
    try:
        return curator_of(ledger).release(plan_of(folder), key="train")
    finally:
        ledger.shut()


if __name__ == "__main__":
    home = Path(sys.argv[1])
    for name in sys.argv[2:]:
        there, _, places = name.rpartition("=")
        for place in places.split("+"):
            child(name, partial(work, home / (there or name), place))
