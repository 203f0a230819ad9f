"""Many processes on one ledger spend exactly what there is: L2. The wrong designs do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato_referee.attacks.ledger.racing import raced
from tests.helpers import spent
from tests.ledger.stores import Stores, server


def opened(stores: Stores) -> tuple[str, Ledger]:
    place = stores.place()
    ledger = Ledger(stores.again(place))
    ledger.open_account("a", Budget(epsilon=1))
    return place, ledger


@pytest.mark.slow
def test_l2_sixteen_processes_spend_exactly_the_budget(durable: Stores) -> None:
    place, ledger = opened(durable)
    before = len(list(ledger._store.entries()))
    found = raced(durable.kind, place)
    assert (found["paid"], found["refused"], found["errors"], found["died"]) == (500, 1100, 0, 0)
    assert spent(ledger, "a") == [1]
    entries = list(ledger._store.entries())
    assert len(entries) == before + 500 and first_broken(entries) is None


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["deferred", "read-then-insert", "unlocked"])
def test_l2_the_wrong_designs_are_caught(mutant: str, tmp_path: Path) -> None:
    if mutant == "unlocked":
        server()
    stores = Stores("postgres" if mutant == "unlocked" else "sqlite", tmp_path)
    try:
        place, _ = opened(stores)
        found = raced(mutant, place, 8, 80)
    finally:
        stores.done()
    assert (found["paid"], found["errors"]) != (500, 0)
