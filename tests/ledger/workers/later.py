"""Ask a ledger for what is left of it, and tell what came of it and what the clock says, as JSON.

    python -m tests.ledger.workers.later FOLDER

Run below libfaketime, which moves the clock of a process.
"""

from __future__ import annotations

import json
import sys
import warnings
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.anchor import FileAnchor
from sfumato.ledger.proof.anchored import AnchoredStore
from sfumato.ledger.proof.keys import Key
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.sqlite import SQLiteStore


def asked(folder: Path) -> dict[str, Any]:
    """The account of 1 has paid 9/10 before."""
    anchor, key = FileAnchor(folder / "outside" / "anchor"), Key.load(folder / "key")
    store = AnchoredStore(SQLiteStore(folder / "ledger"), anchor, key, every=2)
    ledger = Ledger(store)
    before = [str(gauge.spent) for gauge in ledger.spent("a")]
    told = []
    for cost in (Fraction(1, 5), Fraction(1, 10), Fraction(1, 10**9)):
        try:
            plan = m.Laplace(query=bounds.count(Unit()), epsilon=cost)
            ledger.spend(("a",), plan, data="a@1", grade="exact", note="")
            told.append("paid")
        except BudgetError:
            told.append("refused")
    store.close()
    with_anchor = SQLiteStore(folder / "ledger", read_only=True)
    holds = verify(with_anchor, anchor, trusted=[key.public]).ok
    with_anchor.close()
    return {"before": before, "told": told, "holds": holds, "year": datetime.now(UTC).year}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(asked(Path(sys.argv[1]))))
