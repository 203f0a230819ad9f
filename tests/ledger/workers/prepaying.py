"""A process that pays for a list and releases its parts, and dies at a step of the ledger's.

    python -m tests.ledger.workers.prepaying FOLDER

For each step a child of its own works in FOLDER/step and is killed there; prints how each of them ended.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import sequence
from sfumato.combine import Sequence
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato_referee.attacks.ledger.releasing import Dying, child, curator_of, plan_of

PARTS = 3
STEPS = {  # where it dies: is its first part refused for ever after
    "before prepay": False,
    "after prepay": False,
    "before spend": False,
    "after spend": False,
    "before open": False,
    "after open": True,
    "before settle": True,
    "after settle": False,
}


class DyingPrepaid(Dying):
    """Also where the list is paid."""

    def prepay(self, *args: Any, **named: Any) -> Any:
        self._die("before prepay")
        receipt = super().prepay(*args, **named)
        self._die("after prepay")
        return receipt


def list_of() -> Sequence:
    return sequence(**{f"part{number}": plan_of(number) for number in range(PARTS)})


def work(folder: Path, ledger: Ledger, keys: bool = True) -> None:
    plans = list_of()
    curator_of(ledger, folder, 0).prepay(plans, key="list" if keys else None)
    for number, (name, part) in enumerate(plans.parts.items()):
        curator_of(ledger, folder, number).release(part, key=f"{name} of list" if keys else None)


def dying(folder: Path, step: str) -> None:
    ledger = DyingPrepaid(SQLiteStore(folder / "ledger"))
    ledger.step = step
    work(folder, ledger)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    for step in STEPS:
        child(step, partial(dying, place / step, step))
