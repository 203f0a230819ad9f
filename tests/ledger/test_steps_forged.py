"""Draws of steps that no ledger would have written, in a chain that holds; and ledgers gone wrong: `verify` tells."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, events, record
from sfumato.accounting.filters import Charge
from sfumato.errors import SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato_referee.mutants.ledgers import EndlessSteps, FirstStepFree, ForgetsSteps
from tests.helpers import account_of
from tests.ledger.stores import ROW, held
from tests.ledger.test_replay_rules import Edit, Entry, chained, cheaper, found_wrong, put, receipt
from tests.ledger.test_steps import begin, work

PLAN = work(times=6, rate=Fraction(1, 50), tau=Fraction(1, 10**9))
NOTHING = Fraction(0)


def lived(budget: Budget | None = None, plan: Any = PLAN, kind: type[Ledger] = Ledger) -> list[Entry]:
    """Six steps in three draws, opened again before the last; answered."""
    ledger = kind(MemoryStore())
    ledger.open_account("a", budget or Budget(epsilon=3, delta=1e-5))
    paid = begin(ledger, plan)
    ledger.draw_steps(paid, 2)
    ledger.draw_steps(paid, 3)
    ledger.open(paid)
    ledger.draw_steps(paid, 1)
    ledger.settle(paid, "answered", b"1")
    report = ledger.verify()
    assert report.ok, report
    return entries_of(ledger)


def entries_of(ledger: Ledger) -> list[Entry]:
    return [record.parse(body, dict) for _, body in ledger._store.entries()]


def places(entries: list[Entry], kind: str) -> list[int]:
    return [n for n, entry in enumerate(entries) if entry["kind"] == kind]


def charged(*which: int, price: Any = (NOTHING, NOTHING)) -> Edit:
    """Some members are charged something else."""

    def edit(entry: Entry) -> Entry:
        told = entry["charged"]["a"]
        prices = tuple(price if n in which else each for n, each in enumerate(told.prices))
        return {**entry, "charged": {"a": Charge(prices, told.shape)}}

    return edit


def steps(number: int, step: Any = PLAN.step) -> Edit:
    return put(event=events.Repeat(step, number))


OTHER = events.Poisson(events.Gaussian(multiplier=40), Fraction(1, 50))
FORGED: dict[str, tuple[str, int, Edit, str]] = {
    "the first draw is free": ("draw", 0, cheaper, "not the price"),
    "the first draw is free where plans add up": ("draw", 0, charged(0), "not the price"),
    "the first draw pays a step where plans add up": (
        "draw", 0, charged(0, price=(Fraction(1, 100), Fraction(1, 10**6))), "not the price"
    ),
    "the first draw counts no failures": ("draw", 0, charged(0, price=(PLAN.price(), NOTHING)), "not the price"),
    "a later draw is free where steps add up": ("draw", 1, charged(1, 2), "not the price"),
    "fewer steps are charged than drawn": ("draw", 1, steps(2), "not the price"),
    "more steps are drawn than charged": ("draw", 0, steps(3), "not the price"),
    "more steps than were held": ("draw", 2, steps(2), "more steps than were held"),
    "other steps": ("draw", 1, steps(3, OTHER), "other steps"),
    "a single step, not repeated": ("draw", 2, put(event=PLAN.step), "other steps"),
    "a draw is left out": ("draw", 0, lambda e: None, "go on where"),
    "it says that it is the first": ("draw", 1, put(before=0), "go on where"),
    "it says that it is later": ("draw", 0, put(before=2), "go on where"),
    "it does not say where": ("draw", 0, lambda e: {k: v for k, v in e.items() if k != "before"}, "fields"),
    "it says true for one": ("draw", 1, put(before=True), "go on where"),
    "another delta": ("draw", 0, put(delta=Fraction(1, 10**7)), "go on where"),
    "held for a loop": ("hold", 0, receipt(loop="trusted loop"), "plan has none, or the other way round"),
    "held as a plan": ("hold", 0, receipt(loop="plan"), "the other way round"),
    "held for fewer steps": ("hold", 0, receipt(event=events.Repeat(PLAN.step, 5)), "not that of its plan"),
    "held for no steps": ("hold", 0, receipt(event=PLAN.step), "not that of its plan"),
    "settled while room is held": ("close", 0, lambda e: None, "still held"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_draw_is_named(what: str) -> None:
    entries = lived()
    kind, which, edit, words = FORGED[what]
    at = places(entries, kind)[which]
    changed = edit(dict(entries[at]))
    report = chained([*entries[:at], *([] if changed is None else [changed]), *entries[at + 1 :]])
    assert report.first_bad == at + 1 and words in found_wrong(report, at + 1), report


def test_a_draw_after_the_last_step_is_named() -> None:
    entries = lived()
    at = places(entries, "draw")[-1]
    again = {**entries[at], "before": 6}
    assert "more steps" in found_wrong(chained([*entries[: at + 1], again]), at + 2)
    assert "nothing was held" in found_wrong(chained([*entries, again]), len(entries) + 1)


def test_opening_again_is_for_steps_alone_and_until_the_end() -> None:
    entries = lived()
    at = places(entries, "open")[0]
    again = dict(entries[at])
    assert "opened before" in found_wrong(chained([*entries, again]), len(entries) + 1)
    whole = MemoryStore()
    ledger = Ledger(whole)
    ledger.open_account("a", Budget(epsilon=3, delta=1e-5))
    paid = ledger.spend(("a",), PLAN, data="a@1", grade="exact", note="")
    ledger.open(paid)
    told = entries_of(ledger)
    assert "opened before" in found_wrong(chained([*told, told[-1]]), len(told) + 1)


def test_a_draw_of_a_loop_that_counts_steps_is_named() -> None:
    """Whoever reads releases leaves later steps out: a child that calls itself one would be hidden."""
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=3, delta=1e-5))
    ledger.draw(held(ledger, Budget(epsilon=1)), events.Laplace(epsilon=1), NOTHING)
    entries = entries_of(ledger)
    forged = {**entries[-1], "before": 3}
    assert "holds none" in found_wrong(chained([*entries[:-1], forged]), len(entries))


def test_a_receipt_that_hides_fast_noise_is_named() -> None:
    fast = work(times=6, rate=Fraction(1, 50), fast=True)
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=3, delta=1e-5))
    ledger.hold(("a",), fast, data="a@1", grade="float", note="", trusted=False)
    assert ledger.verify().ok
    entries = entries_of(ledger)
    changed = receipt(grade="exact")(dict(entries[-1]))
    assert changed is not None
    assert "noise is not exact" in found_wrong(chained([*entries[:-1], changed]), len(entries))


def test_a_draw_may_close_a_member_that_prices_plans_and_no_other() -> None:
    """Such a member then bounds nothing any more. One that adds up may not be let off."""
    entries = lived()
    at = places(entries, "draw")[0]
    closing = charged(0, price=None)(dict(entries[at]))
    assert closing is not None
    report = chained([*entries[:at], closing])
    assert report.first_bad is None, report
    names = [member.name for member in _members()]
    for name in ("smoothed", next(n for n in names if n.startswith("renyi")), "failures"):
        other = charged(names.index(name), price=None)(dict(entries[at]))
        assert other is not None and "not the price" in found_wrong(chained([*entries[:at], other]), at + 1)


def _members() -> Any:
    ledger = Ledger(MemoryStore())
    ledger.open_account("a", Budget(epsilon=3, delta=1e-5))
    return account_of(ledger, "a").filter.open  # type: ignore[union-attr]


# Ledgers gone wrong


def drawn(kind: type[Ledger], *draws: int) -> tuple[Ledger, list[str]]:
    """Draws that begin anew each time, as after a crash: what was told."""
    ledger = kind(MemoryStore())
    ledger.open_account("a", Budget(epsilon=3, delta=1e-5), unit=ROW)
    told = []
    for number in draws:
        paid = ledger.hold(("a",), PLAN, data="a@1", grade="exact", note="", key="k", trusted=False)
        try:
            ledger.open(paid)
            ledger.draw_steps(paid, number)
            told.append(f"{ledger.steps(paid).drawn} drawn")
        except SfumatoError as problem:
            told.append(type(problem).__name__)
    return ledger, told


MUTANTS: dict[type[Ledger], list[str]] = {
    ForgetsSteps: ["2 drawn", "4 drawn", "4 drawn"],
    EndlessSteps: ["2 drawn", "6 drawn", "10 drawn"],
    FirstStepFree: ["2 drawn", "6 drawn", "BudgetError"],
}


def test_an_honest_ledger_draws_what_was_held() -> None:
    ledger, told = drawn(Ledger, 2, 4, 4)
    assert told == ["2 drawn", "6 drawn", "BudgetError"] and ledger.verify().ok


@pytest.mark.parametrize("kind", MUTANTS)
def test_ledgers_gone_wrong_are_found(kind: type[Ledger]) -> None:
    """They draw more than was held, or charge less: the test above fails on them, or `verify` names their entries."""
    ledger, told = drawn(kind, 2, 4, 4)
    assert told == MUTANTS[kind]
    report = ledger.verify()
    assert not report.ok and report.first_bad is not None
