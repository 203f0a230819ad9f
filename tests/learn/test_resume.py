"""Trainings that die on the way: what ran is paid for, the same key goes on, and nothing runs twice for one payment."""

from __future__ import annotations

import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from sfumato import Budget
from sfumato.errors import PlanError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from tests.helpers import filed_in, spent
from tests.learn.resuming import PLACES, STEPS, prepare, work
from tests.learn.tiny import curator, plan_for
from tests.ledger.striking import said

RHO = Fraction(1, 8)  # of a step at multiplier 2, where everybody takes part
QUICK = ["before draw 1", "after draw 1", "noisy 2", "stepped 3", "saving 2", "saved 3", "saved 4", "before settle",
         "after settle", "after draw 2+stepped 1", "saving 1+saving 1+saving 1+saving 1"]  # fmt: skip
MORE = ["fresh 1=saved 2", "fresh 2=stepped 3", "drawn=saved 4", "rewound=saved 1"]
BUDGET = Budget(rho=STEPS * RHO)


def killed(home: Path, names: list[str], budget: Budget = BUDGET) -> None:
    """One process for all: each death is a child of its own."""
    for name in names:
        prepare(home / name.partition("=")[0], budget)
    told = [line.rsplit(" ", 1) for line in said([sys.executable, "-m", "tests.learn.resuming", str(home), *names])]
    assert [name for name, _ in told] == [name for name in names for _ in name.split("+")]
    assert {int(code) for _, code in told} == {-signal.SIGKILL}, told


def state(folder: Path) -> tuple[int, Fraction, list[str]]:
    """Steps drawn, what is spent, and how the receipts stand; the ledger must hold."""
    ledger = Ledger(SQLiteStore(folder / "ledger"))
    report = ledger.verify()
    assert report.ok, report
    drawn = sum(entry.fields["event"].times for entry in ledger.history(kind="draw"))
    told = drawn, spent(ledger, "people")[0], [each.state for each in filed_in(ledger)]
    ledger.shut()
    return told


def executed(folder: Path) -> int:
    told = folder / "executed"
    return len(told.read_text().split()) if told.exists() else 0


def check(folder: Path, deaths: int) -> None:
    drawn, paid, _ = state(folder)
    assert executed(folder) <= drawn <= STEPS and paid == drawn * RHO
    release = work(folder)
    drawn, paid, states = state(folder)
    assert executed(folder) <= drawn <= STEPS and paid == drawn * RHO and states == ["answered"]
    assert STEPS - deaths <= release.value.steps <= executed(folder), "a death loses one step at most"
    assert np.isfinite(release.value.state["weight"]).all()
    assert work(folder).value == release.value, "the stored answer"


@pytest.fixture(scope="module")
def graveyard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("killed")
    killed(home, [*QUICK, *MORE])
    return home


@pytest.mark.parametrize("name", QUICK)
def test_a_training_that_was_killed_goes_on(graveyard: Path, name: str) -> None:
    check(graveyard / name, len(name.split("+")))


@pytest.mark.slow
def test_a_training_that_was_killed_anywhere_goes_on(tmp_path: Path) -> None:
    names = [*PLACES, *(f"{one}+{two}" for one in PLACES[1:12:2] for two in PLACES[:6])]
    killed(tmp_path, names)
    for name in names:
        check(tmp_path / name, len(name.split("+")))


@pytest.mark.parametrize("name", ["fresh 1", "fresh 2"])
def test_steps_that_run_again_have_fresh_noise(graveyard: Path, tmp_path: Path, name: str) -> None:
    """The same checkpoint, twice: a copy of everything goes on to other weights."""
    shutil.copytree(graveyard / name, tmp_path / "second")
    one, two = work(graveyard / name), work(tmp_path / "second")
    assert one.value.steps == two.value.steps and not np.array_equal(
        one.value.state["weight"], two.value.state["weight"]
    )


def test_a_checkpoint_holds_weights_and_counters_alone(tmp_path: Path) -> None:
    folder = prepare(tmp_path / "whole", BUDGET)
    release = work(folder)
    found = torch.load(folder / "run.pt", weights_only=True)
    assert set(found) == {"is", "plan", "receipt", "state"}
    kept = found["state"]
    assert set(kept) == {"done", "norm", "unclipped", "model", "optimiser", "schedule", "average"}
    assert kept["done"] == STEPS and kept["model"]["weight"].numpy().tolist() == release.value.state["weight"].tolist()
    text = str(found).lower()
    assert not [word for word in ("rng", "seed", "random", "generator", "indices", "batch") if word in text]
    assert list(tmp_path.rglob("*.new")) == []


def test_all_steps_drawn_and_no_answer_ends_from_the_checkpoint(graveyard: Path) -> None:
    folder = graveyard / "drawn"
    before = torch.load(folder / "run.pt", weights_only=True)["state"]["model"]["weight"].numpy()
    ran = executed(folder)
    release = work(folder)
    assert np.array_equal(release.value.state["weight"], before) and executed(folder) == ran == STEPS


def test_a_rewound_checkpoint_is_no_budget(graveyard: Path) -> None:
    """Steps that run again are drawn again, from what was held."""
    folder = graveyard / "rewound"
    shutil.copy(folder / "run.pt", folder / "kept.pt")
    work(folder)
    shutil.copy(folder / "kept.pt", folder / "run.pt")
    ran = executed(folder)
    assert work(folder).value.steps == STEPS and executed(folder) == ran, "answered: nothing runs"


def test_the_checkpoint_of_another_training_is_refused_unpaid(tmp_path: Path) -> None:
    asks = curator()
    asks.release(plan_for(data=asks.private, steps=2).watched(checkpoint=tmp_path / "run.pt"), key="one")
    paid = spent(asks.ledger, "people")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="another training"):
        plan_for(data=asks.private, steps=3).watched(checkpoint=tmp_path / "run.pt")
    assert spent(asks.ledger, "people") == paid  # type: ignore[arg-type]
