"""Attacks on the ledger: the library withstands each of them, and each finds its planted bug (L1 to L15, B2, B3)."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, Curator, Private, Schema, Unit, bounds, mechanisms, reserve
from sfumato.errors import BudgetError, PolicyError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.policy.policy import AccountRule, AlertRule, Policy
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.schema import real
from sfumato_referee.attacks.ledger import (
    arithmetic,
    backups,
    chain,
    clocks,
    crashing,
    disks,
    histories,
    migrating,
    parallel,
    racing,
    refunds,
    releasing,
    retrying,
    rights,
    stopping,
    striking,
    together,
)
from sfumato_referee.attacks.verdict import CouldNotRunError, Verdict
from tests.helpers import BY_PATIENT
from tests.stepping import Stepping

QUICK: dict[str, Callable[[], Verdict]] = {
    "L3": lambda: retrying.attack(rounds=1),
    "L4": lambda: refunds.attack(interrupts=20),
    "L5": lambda: chain.attack(every=997),
    "L7": lambda: histories.attack(seeds=1, steps=30),
    "L9": lambda: backups.attack(spends=3),
    "L10": backups.two_copies,
    "L11": lambda: arithmetic.attack(times=500, small=5000),
    "L12": lambda: arithmetic.odd_costs(times=300),
    "L13": parallel.attack,
    "L14": migrating.attack,
    "L15": rights.attack,
    "B3": lambda: stopping.attack(games=25),
}
CONTROLS: dict[str, Callable[[], Verdict]] = {
    "L3": retrying.control,
    "L4": refunds.control,
    "L5": chain.control,
    "L7": histories.control,
    "L9": backups.control,
    "L10": backups.two_copies_control,
    "L11": arithmetic.control,
    "L12": arithmetic.odd_costs_control,
    "L13": parallel.control,
    "L14": migrating.control,
    "L15": rights.control,
    "B3": lambda: stopping.attack(kind=stopping.OdometerSoldAsFilter, games=10, most=30),
}
FULL: dict[str, Callable[[], Verdict]] = {
    "L1": crashing.attack,
    "L2": racing.attack,
    "L3": retrying.attack,
    "L4": refunds.attack,
    "L5": chain.attack,
    "L6": disks.attack,
    "L7": histories.attack,
    "L8": clocks.attack,
    "L11": arithmetic.attack,
    "L12": arithmetic.odd_costs,
    "B2": together.attack,
    "B3": stopping.attack,
}


@pytest.mark.parametrize("id", QUICK)
def test_the_library_withstands(id: str) -> None:
    verdict = QUICK[id]()
    assert verdict.id == id and not verdict.broken, verdict


@pytest.mark.parametrize("id", CONTROLS)
def test_its_planted_bug_is_found(id: str) -> None:
    verdict = CONTROLS[id]()
    assert verdict.id == id and verdict.broken, verdict


@pytest.mark.slow
@pytest.mark.parametrize("id", FULL)
def test_the_library_withstands_the_whole_attack(id: str) -> None:
    verdict = FULL[id]()
    assert not verdict.broken, verdict


@pytest.mark.slow
@pytest.mark.parametrize("control", [clocks.control, disks.control, racing.control, stopping.control, together.control])
def test_planted_bugs_that_take_processes_are_found(control: Callable[[], Verdict]) -> None:
    assert control().broken


# The attacks themselves


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(-1, None), (0, None), ("1", None), (None, None), (Fraction(10**9), None)]
)
def test_a_budget_that_was_changed_after_its_checks_is_refused(epsilon: Any, rho: Any) -> None:
    """It was written, and the ledger could never be read again."""
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=2))
    budget = copy.deepcopy(Budget(epsilon=1))
    object.__setattr__(budget, "epsilon", epsilon)
    object.__setattr__(budget, "rho", rho)
    before = len(list(ledger._store.entries()))
    for give in (
        lambda: ledger.open_account("b", budget, parent="a"),
        lambda: ledger.change_limit("a", budget, reason="another"),
        lambda: ledger.open_block("a", "jan", budget),
    ):
        with pytest.raises(SfumatoError):
            give()
    assert len(list(ledger._store.entries())) == before and ledger.verify().ok


def test_what_a_dead_process_left_is_told_apart(tmp_path: Path) -> None:
    """The referee of L1 has power: each wrong image gets its own words."""
    place = releasing.prepare(tmp_path / "here")
    releasing.work(place)
    (place / "shown").write_text((place / "shown").read_text() + '[7, "never paid", "[1]"]\n')
    assert releasing.fault_after(place) == releasing.UNRECORDED
    place = releasing.prepare(tmp_path / "there")
    releasing.work(place)
    told = (place / "shown").read_text().splitlines()
    (place / "shown").write_text("\n".join(told[:1]) + "\n")
    assert releasing.fault_after(place) == "L1: more was charged than shown and in flight"
    (place / "shown").write_text("\n".join(told) + "\n")
    releasing.append(place / "draws", "1 again")
    assert releasing.fault_after(place) == releasing.TWICE


def test_a_machine_without_a_tracer_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(striking, "tracer", lambda: None)
    with pytest.raises(CouldNotRunError, match="strace is missing"):
        striking.strike(tmp_path, "fsync", "signal=KILL", "right", [1])
    with pytest.raises(CouldNotRunError, match="ended with"):
        striking.said([*striking.WORKER, "nothing"])


def test_b3_what_was_paid_is_judged_by_the_formulas() -> None:
    tenth = Fraction(1, 10)
    assert stopping.within((tenth,) * 10, Budget(epsilon=1)) and not stopping.within((tenth,) * 11, Budget(epsilon=1))
    loose = Budget(epsilon=3, delta=0.01)
    assert stopping.within((tenth,) * 40, loose) and not stopping.within((tenth,) * 200, loose)


def test_b2_is_caught_only_if_all_four_are(monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = Verdict("L1", False, "held"), Verdict("L2", True, "broke")
    assert together.attack({"L1": lambda: right, "L2": lambda: wrong}).broken
    assert not together.attack({"L1": lambda: right}).broken
    monkeypatch.setattr(together, "CONTROLS", {"L1": lambda: wrong, "L2": lambda: right})
    assert not together.control().broken


def test_room_is_held_only_if_it_can_be_drawn() -> None:
    """A second hold was taken that only another gauge had room for; then the first work was refused its first step."""
    ledger = Ledger(MemoryStore())
    ledger.open_account("patients", Budget(epsilon=3, delta=1e-5))
    how: dict[str, Any] = {"data": "patients@1", "grade": "exact", "note": ""}
    steps = ledger.hold((), Stepping(times=4, place="", tag="held"), trusted=False, **how)
    ledger.spend((), mechanisms.Gaussian(query=bounds.count(BY_PATIENT), epsilon=0.7, delta=1e-7), **how)
    ledger.open(steps)
    with pytest.raises(BudgetError, match="no room that can be held"):
        ledger.hold((), reserve(unit=BY_PATIENT, budget=Budget(epsilon=0.1, delta=1e-7)), **how)
    for left in (3, 2, 1, 0):
        assert ledger.draw_steps(steps, 1).left == left
    assert ledger.verify().ok


def test_an_answer_that_others_paid_for_is_for_those_who_might_have() -> None:
    """A person's cap bounds what that person is told, also of what is stored already, also by another's key."""
    store, plan = MemoryStore(), mechanisms.Laplace(query=bounds.count(Unit()), epsilon=1)
    desks = {who: Ledger(store, principal=who) for who in ("paula", "adam", "ana", "max", "zoe")}
    desks["adam"].open_account("visits", Budget(epsilon=5), level="data set", unit=Unit())
    roles = {"paula": ("privacy officer",), "peter": ("privacy officer",), "dora": ("data owner",)}
    people = roles | {"adam": ("budget administrator",)} | dict.fromkeys(("ana", "max", "zoe"), ("analyst",))
    rules = [AccountRule(name="visits", level="data set", limit=Budget(epsilon=5))]
    for who, epsilon in (("ana", 1), ("max", Fraction(1, 10))):
        desks["adam"].open_account(f"{who}'s", Budget(epsilon=epsilon), parent="visits", level="person")
        rules.append(AccountRule(name=f"{who}'s", parent="visits", level="person", people=(who,)))
    rule = Policy(people=people, alerts=AlertRule(log=False), purpose=False, accounts=tuple(rules))
    desks["paula"].adopt(rule, reason="first")
    data = Private("visits", {"x": [1.0, 2.0]}, unit=Unit(), schema=Schema.of(x=real(0, 9)))
    answer = Curator(data, desks["ana"], accounts=("ana's",)).release(plan, key="hers").raw
    for who in ("max", "zoe"):
        for key in (None, "hers"):
            for accounts in (None, ("ana's",), ("visits",)):
                with pytest.raises(PolicyError):
                    Curator(data, desks[who], accounts=accounts).release(plan, key=key)
    with pytest.raises(BudgetError, match="does not cover"):
        Curator(data, desks["max"], accounts=("max's",)).release(plan)
    for key in (None, "hers"):
        assert Curator(data, desks["ana"], accounts=("ana's",)).release(plan, key=key).raw == answer
    assert desks["max"].spent("max's")[0].spent == 0


def test_every_byte_of_an_index_is_seen(tmp_path: Path) -> None:
    """SQLite's integrity check takes an index entry of the wrong length for sound."""
    book = chain.Spoilt(tmp_path, chain.verify)
    with closing(sqlite3.connect(f"file:{book.path}?mode=ro", uri=True)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        found = "SELECT rootpage FROM sqlite_schema WHERE name = 'receipts_by_plan'"
        (page,) = connection.execute(found).fetchone()
    changed = 0
    for place in range((page - 1) * size, page * size):
        book.spoil(place, bytes([book.good[place] ^ 1]))
        if chain.content(book.copy) != book.content:
            changed += 1
            assert not book.holds(book.copy), place
    assert changed > 20
