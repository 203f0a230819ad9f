"""Many processes on one ledger spend exactly what there is: L2. The wrong designs do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from tests.helpers import spent
from tests.ledger.stores import Stores, server

ROOT = Path(__file__).parents[2]


def race(kind: str, place: str, processes: int = 16, times: int = 100) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger.spenders", kind, place, str(processes), str(times)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def opened(stores: Stores) -> tuple[str, Ledger]:
    place = stores.place()
    ledger = Ledger(stores.again(place))
    ledger.open_account("a", Budget(epsilon=1))
    return place, ledger


def test_l2_sixteen_processes_spend_exactly_the_budget(durable: Stores) -> None:
    place, ledger = opened(durable)
    before = len(list(ledger._store.entries()))
    found = race(durable.kind, place)
    assert (found["paid"], found["refused"], found["errors"], found["died"]) == (500, 1100, 0, 0)
    assert spent(ledger, "a") == [1]
    entries = list(ledger._store.entries())
    assert len(entries) == before + 500 and first_broken(entries) is None


@pytest.mark.parametrize("mutant", ["deferred", "read-then-insert", "unlocked"])
def test_l2_the_wrong_designs_are_caught(mutant: str, tmp_path: Path) -> None:
    if mutant == "unlocked":
        server()
    stores = Stores("postgres" if mutant == "unlocked" else "sqlite", tmp_path)
    try:
        place, _ = opened(stores)
        found = race(mutant, place, 8, 80)
    finally:
        stores.done()
    assert (found["paid"], found["errors"]) != (500, 0)
