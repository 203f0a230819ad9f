"""A process that trains under a key with a checkpoint, and dies somewhere on the way.

    python -m tests.learn.resuming FOLDER NAME...

A name is the places where it dies, one after another, with a "+" between them. Works in FOLDER/NAME, of "there=places"
in FOLDER/there; prints how each ended.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import Budget, Curator, Private
from sfumato.learn import checkpoints
from sfumato.learn.blurring import StepSum
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Steps
from sfumato_referee.attacks.ledger.releasing import child
from tests.learn.tiny import ROW, columns, plan_for, shape

STEPS = 4


class Dying(Ledger):
    """A ledger whose process dies at a place."""

    place, draws = "", 0

    def die(self, where: str) -> None:
        if where == self.place:
            os.kill(os.getpid(), signal.SIGKILL)

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


WHENS = ("before draw", "after draw", "noisy", "stepped", "saving", "saved")
PLACES = [f"{when} {number}" for number in range(1, STEPS + 1) for when in WHENS] + ["before settle", "after settle"]


def prepare(folder: Path, budget: Budget) -> Path:
    folder.mkdir(parents=True)
    ledger = Ledger(SQLiteStore(folder / "ledger", create=True))
    ledger.open_account("people", budget)
    ledger.shut()
    return folder


def plan_of(private: Any = None, draws: int = 1) -> Any:
    return plan_for(data=private, steps=STEPS, draws=draws)


def work(folder: Path, place: str = "", key: str = "train") -> Any:
    """Train, or go on, to the end or to where it dies; each step that ran leaves a line first."""
    ledger = Dying(SQLiteStore(folder / "ledger"))
    ledger.place = place
    private = Private("people", columns(8), unit=ROW, schema=shape(8))
    released, saved = StepSum.released, checkpoints.save

    def noisy(*args: Any) -> Any:
        out = released(*args)
        with (folder / "executed").open("a") as file:
            file.write("1\n")
        ledger.die(f"noisy {ledger.draws}")
        return out

    def saving(path: Path, **what: Any) -> None:
        ledger.die(f"saving {ledger.draws}")
        saved(path, **what)
        ledger.die(f"saved {ledger.draws}")

    StepSum.released, checkpoints.save = noisy, saving  # type: ignore[method-assign,assignment]
    try:
        plan = plan_of(private).watched(
            checkpoint=folder / "run.pt", progress=lambda progress: ledger.die(f"stepped {ledger.draws}")
        )
        return Curator(private, ledger).release(plan, key=key)
    finally:
        StepSum.released, checkpoints.save = released, saved  # type: ignore[method-assign]
        ledger.shut()


if __name__ == "__main__":
    home = Path(sys.argv[1])
    plan_of(Private("people", columns(8), unit=ROW, schema=shape(8)))  # torch loads much on first use: once for all
    for name in sys.argv[2:]:
        there, _, places = name.rpartition("=")
        for place in places.split("+"):
            child(name, partial(work, home / (there or name), place))
