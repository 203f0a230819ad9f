"""The waist: plans, runs, receipts."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Schema, Unit, bounds, events, partition, repeat, reserve, sequence
from sfumato import mechanisms as m
from sfumato.errors import PlanError
from sfumato.plan import Plan, Receipt
from sfumato.schema import category, flag, key, real, whole
from tests.helpers import laplace, seeded

UNIT = Unit("user:u")
TABLE = Schema.of(
    u=key(), x=real(0, 10), n=whole(0, 10), w=category(["a", "b"], constant=True), on=flag(), unit="u"
).table()


def plans() -> list[Plan[Any, Any]]:
    swap = Unit(change="replace")
    return [
        laplace(1, UNIT),
        m.Gaussian(query=bounds.mean("x", 0, 10, UNIT), epsilon=1, delta=1e-6),
        m.Gaussian(query=bounds.count(UNIT), rho=0.1),
        m.Exponential(query=bounds.votes("w", ["a", "b"], UNIT), epsilon=1),
        m.PermuteAndFlip(query=bounds.votes("w", ["a", "b"], UNIT), epsilon=1),
        m.RandomizedResponse(column="w", categories=["a", "b"], epsilon=1, protects=swap),
        sequence(a=laplace(1, UNIT)),
        repeat(laplace(1, UNIT), 3),
        partition("w", ["a", "b"], laplace(1, UNIT)),
        reserve(unit=UNIT, budget=Budget(epsilon=1)),
    ]


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: type(plan).__name__)
def test_a_plan_is_frozen_and_its_cost_is_a_function_of_its_fields(plan: Plan[Any, Any]) -> None:
    for f in fields(plan):
        with pytest.raises(FrozenInstanceError):
            setattr(plan, f.name, None)
    assert plan.event == plan.event and isinstance(plan.event, events.Event)
    assert plan.event.relation == plan.unit.change
    assert isinstance(plan.delta, Fraction) and len(plan.hash) == 64 and plan.hash == plan.hash
    assert plan.explain() and all(isinstance(line, str) for line in plan.explain())


@pytest.mark.parametrize("plan", plans(), ids=lambda plan: type(plan).__name__)
def test_the_docstring_says_what_is_guaranteed(plan: Plan[Any, Any]) -> None:
    for part in ("Guarantee:", "Needs:", "Paper:"):
        assert part in (type(plan).__doc__ or "")


def test_equal_plans_have_equal_hashes_and_others_others() -> None:
    assert laplace(0.1).hash == laplace(Fraction(1, 10)).hash
    hashes = [plan.hash for plan in plans()]
    assert len(set(hashes)) == len(hashes)


@pytest.mark.parametrize(
    "plan",
    [
        m.Laplace(query=bounds.clipped_sum("height", 0, 1, UNIT), epsilon=1),
        m.Laplace(query=bounds.clipped_sum("w", 0, 1, UNIT), epsilon=1),
        m.Laplace(query=bounds.clipped_sum("u", 0, 1, UNIT), epsilon=1),
        m.Laplace(query=bounds.histogram("x", ["a"], UNIT), epsilon=1),
        m.Laplace(query=bounds.histogram("u", ["a"], UNIT), epsilon=1),
        sequence(a=laplace(1, UNIT), b=m.Laplace(query=bounds.mean("height", 0, 1, UNIT), epsilon=1)),
        repeat(m.Laplace(query=bounds.mean("height", 0, 1, UNIT), epsilon=1), 2),
        partition("w", ["a"], m.Laplace(query=bounds.mean("height", 0, 1, UNIT), epsilon=1)),
        partition("height", ["a"], laplace(1, UNIT)),
        reserve(unit=UNIT, budget=Budget(epsilon=1), reads={"height": real(0, 3)}),
        m.RandomizedResponse(column="x", categories=["a", "b"], epsilon=1, protects=Unit(change="replace")),
    ],
)
def test_a_plan_that_does_not_fit_the_table_is_refused(plan: Plan[Any, Any]) -> None:
    with pytest.raises(PlanError):
        plan.check(TABLE)


@pytest.mark.parametrize(
    "query",
    [
        bounds.clipped_sum("n", 0, 1, UNIT),
        bounds.clipped_sum("x", -5, 1e9, UNIT),  # other bounds than the schema's are the plan's own business
        bounds.histogram("on", [True, False], UNIT),
        bounds.histogram("w", ["a", "zz"], UNIT),
    ],
)
def test_a_plan_that_fits_is_not_refused(query: Any) -> None:
    m.Laplace(query=query, epsilon=1).check(TABLE)


def test_the_columns_of_a_plan_are_those_it_reads() -> None:
    plan = sequence(
        a=m.Laplace(query=bounds.mean("x", 0, 10, UNIT), epsilon=1), b=partition("w", ["a"], laplace(1, UNIT))
    )
    assert set(plan.columns) == {"x", "w"} and set(laplace(1).columns) == set()


def test_a_plan_may_have_no_error_bars_and_no_finish() -> None:
    plan = reserve(unit=UNIT, budget=Budget(epsilon=1))
    assert plan.finish("anything") == "anything" and plan.error("anything", 0.05) is None
    assert plan.expected_error(0.05) is None and plan.supervised == Budget(epsilon=1)
    assert laplace(1).supervised is None


def test_a_receipt_is_a_value() -> None:
    receipt = Receipt("id", ("a",), "hash", laplace(1).event, "d@1", UNIT, "exact")
    assert receipt.loop == "plan" and hash(receipt) == hash(replace(receipt))
    with pytest.raises(FrozenInstanceError):
        receipt.data = "other"  # type: ignore[misc]


def test_noise_comes_only_from_the_run() -> None:
    from sfumato.rows import Rows

    rows = Rows.read(TABLE, {"u": [1, 2], "x": [1.0, 2.0], "n": [1, 2], "w": ["a", "b"], "on": [1, 0]}, UNIT)
    for plan in plans()[:5] + plans()[6:9]:
        np.random.seed(1)
        first = repr(plan._run(rows, seeded(3)))
        np.random.seed(2)
        assert repr(plan._run(rows, seeded(3))) == first  # the same bits, the same answer
    counts = {float(plans()[0]._run(rows, seeded(s))[0]) for s in range(20)}
    assert len(counts) == 20
