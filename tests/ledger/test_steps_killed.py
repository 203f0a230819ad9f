"""Processes that die between two steps, or within one: what ran is paid for, and the same key goes on."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from sfumato import Budget
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import filed_in, spent
from tests.ledger.striking import said
from tests.ledger.workers.stepwise import PLACES, TIMES, plan_of, prepare, work

RHO = Fraction(1, 32)
QUICK = ["after hold", "after open", "after draw 1", "within draw 3", "ran draw 3", "before draw 6", "ran draw 6",
         "before settle", "after settle", "within draw 2+after open", "ran draw 2+before draw 1",
         "after draw 3+within draw 3", "ran draw 6+before settle"]  # fmt: skip
BUDGETS = {"rho": Budget(rho=TIMES * RHO), "plans": Budget(epsilon=3, delta=Fraction(4, 10**5))}


def killed(home: Path, names: list[str], budget: Budget) -> None:
    for name in names:
        prepare(home / name, budget)
    command = [sys.executable, "-m", "tests.ledger.workers.stepwise", str(home), *names]
    told = [line.rsplit(" ", 1) for line in said(command)]
    places = [name for name in names for _ in name.split("+")]
    assert [name for name, _ in told] == places
    dead = {name: [int(code) for each, code in told if each == name] for name in names}
    assert all(codes[0] == -signal.SIGKILL and set(codes) <= {-signal.SIGKILL, 0} for codes in dead.values()), dead


def executed(folder: Path) -> int:
    told = folder / "executed"
    return sum(map(int, told.read_text().split())) if told.exists() else 0


def state(folder: Path) -> tuple[int, Fraction, list[str]]:
    """Steps that were drawn, what is spent, and what stands in the ledger, which must hold."""
    ledger = Ledger(SQLiteStore(folder / "ledger"))
    report = ledger.verify()
    assert report.ok, report
    filed = filed_in(ledger)
    drawn = 0 if not filed or filed[0].state == "held" else _drawn(ledger)
    paid = spent(ledger, "patients")[0]
    ledger.shut()
    return drawn, paid, [each.state for each in filed]


def _drawn(ledger: Ledger) -> int:
    return sum(entry.fields["event"].times for entry in ledger.history(kind="draw"))


def check(folder: Path, budget: Budget) -> None:
    """Nothing ran that was not drawn; it goes on to the end; nothing more is drawn than was held."""
    drawn, paid, states = state(folder)
    assert executed(folder) <= drawn <= TIMES, "a step ran that was not paid for"
    assert states in ([], ["held"], ["opened"], ["answered"])
    for_drawn = drawn * RHO if budget.rho is not None else plan_of(folder).price() if drawn else 0
    assert paid == for_drawn
    release = work(folder)
    again, paid, states = state(folder)
    assert states == ["answered"] and executed(folder) <= again <= TIMES
    assert paid == (again * RHO if budget.rho is not None else plan_of(folder).price())
    assert release.raw["steps"] <= executed(folder)
    lost = TIMES - release.raw["steps"]
    assert lost <= 2, "each death loses at most the steps of one block"
    assert work(folder).raw == release.raw, "the stored answer"


@pytest.fixture(scope="module")
def graveyard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    homes = {kind: tmp_path_factory.mktemp(kind) for kind in BUDGETS}
    for kind, home in homes.items():
        killed(home, QUICK, BUDGETS[kind])
    yield homes


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("kind", BUDGETS)
def test_who_died_goes_on_under_the_same_key(graveyard: dict[str, Path], kind: str, name: str) -> None:
    check(graveyard[kind] / name, BUDGETS[kind])


def test_the_worker_does_its_work(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "whole", BUDGETS["rho"])
    release = work(folder)
    assert release.raw["steps"] == executed(folder) == TIMES and state(folder) == (TIMES, TIMES * RHO, ["answered"])


@pytest.mark.slow
def test_a_copy_of_the_checkpoint_is_no_budget(tmp_path: Path) -> None:
    """Rewinding the checkpoint runs steps again: they are drawn again, and end with those that were held (T29)."""
    folder = prepare(tmp_path / "rewound", BUDGETS["rho"])
    killed_at(folder, "before draw 4")
    shutil.copy(folder / "checkpoint", folder / "kept")
    killed_at(folder, "before draw 3")
    assert state(folder)[0] == 5
    shutil.copy(folder / "kept", folder / "checkpoint")
    release = work(folder)
    assert release.raw["steps"] == 4 and executed(folder) == TIMES == state(folder)[0]


def killed_at(folder: Path, place: str) -> None:
    name = f"{folder.name}={place}"
    told = said([sys.executable, "-m", "tests.ledger.workers.stepwise", str(folder.parent), name])
    assert told == [f"{name} {-signal.SIGKILL}"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUDGETS)
def test_wherever_it_dies_and_dies_again(tmp_path: Path, kind: str) -> None:
    """Every place, and every pair of places in the runs that follow each other."""
    names = [*PLACES, *("+".join(pair) for pair in product(PLACES[4:], PLACES[2:]))]
    for start in range(0, len(names), 60):
        part = names[start : start + 60]
        killed(tmp_path / str(start), part, BUDGETS[kind])
        for name in part:
            check(tmp_path / str(start) / name, BUDGETS[kind])
