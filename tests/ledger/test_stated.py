"""An entry holds what its plan said of itself; one of before is read from the plan's JSON by the old rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sfumato import Budget, MemoryLedger, Tidy, Unit, bounds, questions, record, reserve
from sfumato.mechanisms import Laplace
from sfumato.plan import Plan
from sfumato.report.accounts import old_entries
from sfumato.report.accounts.plans import contribution_bounds, post_processing, question
from sfumato.report.accounts.releases import releases

USER = Unit("user:id")
PLAN = Laplace(query=bounds.clipped_sum("age", 0, 120, USER, per_unit=2), epsilon=1)
TIDY = Tidy(plan=Laplace(query=bounds.histogram("ward", ["east", "west"], USER), epsilon=1))
TEXT = record.canonical(PLAN).decode("ascii")


def charged(plan: Plan[Any, Any], way: str = "spend") -> tuple[dict[str, Any], Any]:
    """The entry that paid for it, and what the ledger tells of it."""
    ledger = MemoryLedger({"visits": Budget(epsilon=9)})
    getattr(ledger, way)(("visits",), plan, data="visits@1", grade="exact", note="")
    with ledger._store.reading() as book:
        found = book.entry(book.head.number)
    assert found is not None
    return record.parse(found[1]), next(iter(releases(ledger._store)))


@pytest.mark.parametrize(
    ("plan", "way"), [(PLAN, "spend"), (TIDY, "spend"), (reserve(unit=USER, budget=Budget(epsilon=1)), "hold")]
)
def test_an_entry_holds_what_its_plan_asks_and_what_bounds_a_unit(plan: Plan[Any, Any], way: str) -> None:
    entry, row = charged(plan, way)
    assert entry["kind"] == way
    assert json.loads(entry["question"]) == plan.asks()
    assert tuple(json.loads(entry["limits"])) == plan.contribution_bounds()
    assert tuple(json.loads(entry["afterwards"])) == row.afterwards == plan.afterwards()
    assert (row.question, row.bounds) == (questions.digest(plan.asks()), plan.contribution_bounds())


def test_what_is_read_is_what_was_stored_and_not_what_the_class_says_today() -> None:
    said = {"of": "query", "kind": "sum/1", "column": "height", "per_unit": 7}
    assert contribution_bounds(TEXT, json.dumps([said])) == (said,)
    assert question(TEXT, '[{"is":"value"}]') == questions.digest([{"is": "value"}])


def test_an_entry_of_before_is_read_from_its_plan() -> None:
    assert contribution_bounds(TEXT, None) == old_entries.contribution_bounds(TEXT) == PLAN.contribution_bounds()
    assert question(TEXT, None) == old_entries.question(TEXT) == questions.digest(PLAN.asks())
    assert contribution_bounds(None, None) is None and question(None, None) is None
    assert question("no plan", None) is None and post_processing("no plan", None) == post_processing(None, None) == ()
    assert post_processing(record.canonical(TIDY).decode("ascii"), None) == TIDY.afterwards() != ()


@pytest.mark.parametrize("stored", ["", "{", "3", '"x"', '{"of": 1}', "[3]", 3, ["x"], {"of": 1}, "[" * 5000])
def test_what_somebody_else_put_there_is_read_as_if_nothing_was(stored: Any) -> None:
    assert contribution_bounds(TEXT, stored) == PLAN.contribution_bounds()
    assert post_processing(record.canonical(TIDY).decode("ascii"), stored) == TIDY.afterwards()
    if stored != "[3]":  # a question may be anything
        assert question(TEXT, stored) == questions.digest(PLAN.asks())
