"""One budget for several answers: never above it, all of it, and split as the accuracy asks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Unit, bounds, record
from sfumato import mechanisms as m
from sfumato.accounting import zcdp
from sfumato.errors import ArgumentError
from sfumato.jointly import Joint, joint

UNIT = Unit("user:id")
QUERIES: dict[str, Any] = {
    "rows": bounds.count(UNIT, per_unit=3),
    "total": bounds.clipped_sum("cost", 0, 1000, UNIT, per_unit=2),
    "age": bounds.mean("age", 0, 120, UNIT),
    "wards": bounds.histogram("ward", ["a", "b"], UNIT),
    "spread": bounds.variance("age", 0, 120, UNIT),
}
WANTED = {"rows": 20, "total": 5000, "age": 900, "wards": 7.5, "spread": 30}
steady = settings(derandomize=True, deadline=None, max_examples=40)


def quotients(plan: Joint) -> list[float]:
    return [width / float(plan.accuracy[name]) for name, width in plan.widths().items()]


def test_epsilon_is_spent_exactly_and_every_answer_is_the_same_multiple_of_what_was_asked() -> None:
    plan = joint(QUERIES, accuracy=WANTED, epsilon=0.3)
    assert plan.price() == Fraction(3, 10) == sum(child.epsilon for child in plan.children)  # type: ignore[attr-defined]
    assert max(quotients(plan)) / min(quotients(plan)) < 1.001
    assert list(plan.plans) == list(QUERIES) and all(isinstance(child, m.Laplace) for child in plan.children)
    # By the formula: epsilon_i proportional to l1_i ln(combined_i / alpha) / accuracy_i.
    needs = {n: q.l1 * math.log(q.combined / 0.05) / WANTED[n] for n, q in QUERIES.items()}
    for name, child in plan.plans.items():
        expected = 0.3 * needs[name] / sum(needs.values())
        assert float(child.epsilon) == pytest.approx(expected, rel=1e-3)  # type: ignore[attr-defined]


@pytest.mark.parametrize("budget", [{"rho": 0.02}, {"rho": 0.02, "delta": 1e-6}])
def test_rho_is_spent_never_above_and_nearly_all(budget: dict[str, float]) -> None:
    plan = joint(QUERIES, accuracy=WANTED, **budget)
    spent = zcdp.rho(plan.event)
    assert Fraction(2, 100) * (1 - Fraction(1, 10**12)) <= spent <= Fraction(2, 100)
    assert max(quotients(plan)) / min(quotients(plan)) < 1.001
    assert plan.delta == Fraction(str(budget.get("delta", 0)))


def test_epsilon_and_delta_are_spent_never_above_and_nearly_all() -> None:
    plan = joint(QUERIES, accuracy=WANTED, epsilon=1, delta=1e-6)
    assert plan.delta == Fraction(1, 10**6)
    assert 1 - Fraction(1, 10**6) <= plan.price() <= 1
    assert max(quotients(plan)) / min(quotients(plan)) < 1.001
    one = m.Gaussian(query=QUERIES["rows"], epsilon=1, delta=1e-6)
    assert joint({"rows": QUERIES["rows"]}, epsilon=1, delta=1e-6).widths()["rows"] == pytest.approx(one.width(0.05))


def test_without_accuracy_each_gets_the_same() -> None:
    plan = joint({name: QUERIES[name] for name in ("rows", "total")}, epsilon=1)
    assert [child.epsilon for child in plan.children] == [Fraction(1, 2)] * 2  # type: ignore[attr-defined]
    third = joint({name: QUERIES[name] for name in ("rows", "total", "age")}, epsilon=1)
    assert third.price() == 1 and "rows gets 33.3 % of the budget" in third.explain()[0]


@pytest.mark.parametrize("budget", [{"epsilon": 5}, {"rho": 2}, {"epsilon": 5, "delta": 1e-6}])
def test_no_more_than_the_accuracy_needs_is_spent_where_so_asked(budget: dict[str, float]) -> None:
    plan = joint(QUERIES, accuracy=WANTED, spend="least", **budget)
    assert all(0.99 < q <= 1 for q in quotients(plan))
    whole = joint(QUERIES, accuracy=WANTED, **budget)
    assert max(quotients(whole)) < 0.9
    assert zcdp.rho(plan.event) < zcdp.rho(whole.event) * Fraction(9, 10)
    # Where the budget is short, everything is spent.
    small = {name: size / 50 for name, size in budget.items() if name != "delta"} | {"delta": budget.get("delta")}
    assert joint(QUERIES, accuracy=WANTED, spend="least", **small) == joint(QUERIES, accuracy=WANTED, **small)


@steady
@given(
    st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6),
    st.fractions(Fraction(1, 50), 9, max_denominator=1000),
    st.booleans(),
)
def test_shares_are_exact_for_any_accuracy(wanted: list[float], budget: Fraction, rho: bool) -> None:
    queries = {f"q{i}": bounds.count(Unit()) for i in range(len(wanted))}
    asked = dict(zip(queries, wanted, strict=True))
    if rho:
        spent = zcdp.rho(joint(queries, accuracy=asked, rho=budget).event)
        assert budget * (1 - Fraction(1, 10**12)) <= spent <= budget
    else:
        assert joint(queries, accuracy=asked, epsilon=budget).price() == budget


def test_the_split_is_told_and_survives_json() -> None:
    plan = joint(QUERIES, accuracy=WANTED, epsilon=0.5)
    assert record.parse(record.canonical(plan)) == plan
    lines = plan.explain()
    assert lines[0].startswith("rows gets ") and "asked for ± 20" in lines[0]
    assert "total: compute sum" in " ".join(lines)


@pytest.mark.parametrize(
    "fields",
    [
        {"queries": {}},
        {"queries": {"rows": 3}},
        {"queries": {"": QUERIES["rows"]}},
        {"queries": {"rows": QUERIES["rows"], "other": bounds.count(Unit())}, "accuracy": None},
        {"accuracy": {"rows": 1}},
        {"accuracy": {**WANTED, "rows": 0}},
        {"accuracy": {**WANTED, "rows": math.nan}},
        {"accuracy": [1, 2]},
        {"epsilon": None},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"alpha": 0},
        {"alpha": 1},
        {"alpha": math.nan},
        {"spend": "some"},
        {"spend": "least", "accuracy": None},
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        joint(**{"queries": QUERIES, "accuracy": WANTED, "epsilon": 1, **fields})
