"""L7: whatever several threads do at once equals one serial order of it, the chain's. The attack, on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.memory import MemoryStore
from sfumato_referee.attacks.ledger.histories import Followed, Step, anomaly, opened, play
from sfumato_referee.mutants.stores import Late, Stale, Unlocked
from tests.ledger.stores import Stores


def check(ledgers: Stores, steps: int, seed: int) -> list[Step]:
    if ledgers.kind == "memory":
        stores: list[Store] = [ledgers.new()] * 5
    else:
        place = ledgers.place()
        stores = [ledgers.again(place) for _ in range(5)]
    born = opened(stores[0]).length()
    found = play([Followed(store) for store in stores], steps, seed)
    assert anomaly(stores[0], born, found) is None, f"seed {seed}"
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_l7_histories_of_several_threads_are_serial(ledgers: Stores, seed: int) -> None:
    steps = check(ledgers, 80, seed)
    assert sum(step.refused is not None for step in steps) > 20 < sum(step.number is not None for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "times"), [("sqlite", 100), ("memory", 20)])
def test_l7_in_a_hundred_thousand_operations(quick: Path, kind: str, times: int) -> None:
    """Five threads, each with a connection of its own, a thousand operations at a time."""
    stores, written = Stores(kind, quick), 0
    for seed in range(times):
        written += sum(step.number is not None for step in check(stores, 200, seed))
        stores.done()
    assert written > 100 * times


@pytest.mark.parametrize("wrong", [Unlocked, Stale, Late])
def test_l7_the_wrong_stores_are_caught(wrong: type[MemoryStore]) -> None:
    def caught(seed: int) -> bool:
        store = wrong()
        born = opened(store).length()
        return anomaly(store, born, play([Followed(store) for _ in range(5)], 40, seed)) is not None

    assert any(caught(seed) for seed in range(3, 35))  # it takes two threads that meet
