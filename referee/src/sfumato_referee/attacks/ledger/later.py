"""Ask a ledger for what is left of it, and tell what came of it and what the clock says, as JSON.

... later FOLDER DESIGN SECONDS    by which the ledger's clock is moved here; 0 below libfaketime, which does it
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants import ledgers
from .ground import count, pay

DESIGNS: dict[str, Callable[[Any], Ledger]] = {"right": Ledger, "yearly": ledgers.YearlyBudget}


def main(folder: str, design: str, seconds: str) -> None:
    if int(seconds):
        move_clock(int(seconds))
    print(json.dumps(asked(Path(folder), DESIGNS[design])))


def move_clock(seconds: int) -> None:
    """In this process, for all of the ledger."""
    clock = datetime.now

    class Moved(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return clock(tz) + timedelta(seconds=seconds)

    for name, module in list(sys.modules.items()):
        if name.startswith(("sfumato.ledger", ledgers.__name__, __name__)) and hasattr(module, "datetime"):
            setattr(module, "datetime", Moved)  # noqa: B010 modules have no such field


def asked(folder: Path, kind: Callable[[Any], Ledger]) -> dict[str, Any]:
    """The account of 1 has paid 9/10 before."""
    anchor, key = FileAnchor(folder / "outside" / "anchor"), Key.load(folder / "key")
    store = AnchoredStore(SQLiteStore(folder / "ledger"), anchor, key, every=2)
    ledger = kind(store)
    before = [str(gauge.spent) for gauge in ledger.spent("a")]
    told = []
    for cost in (Fraction(1, 5), Fraction(1, 10), Fraction(1, 10**9)):
        try:
            pay(ledger, count(cost))
            told.append("paid")
        except BudgetError:
            told.append("refused")
    store.close()
    with_anchor = SQLiteStore(folder / "ledger", read_only=True)
    holds = verify(with_anchor, anchor, trusted=[key.public]).ok
    with_anchor.close()
    return {"before": before, "told": told, "holds": holds, "year": datetime.now(UTC).year}
