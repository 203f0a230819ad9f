"""What steps add, and what running totals of them are measured by: limits, causality, and neighbours by brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.bounds import Increments, Running, Tally
from sfumato.errors import ArgumentError
from sfumato.rows import Rows
from sfumato.schema import category, key, real, whole
from sfumato.strategies import Banded, Causal, Cells, Identity, Prefixes, SquareRoot, StepTree
from tests.bounds.neighbouring import GROUPS, UNITS, farthest, holds, within
from tests.helpers import read

TABLE = Schema.of(u=key(), t=whole(-100, 100))
USER = Unit("user:u")
T = 6

Row = tuple[Any, Any]
"""A unit and a step."""
some_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, T)), max_size=25)


def rows_of(pairs: list[Row], unit: Unit = USER) -> Rows:
    return read(TABLE, unit, u=[u for u, _ in pairs], t=[t for _, t in pairs])


def by_hand(pairs: list[Row], query: Increments) -> list[int]:
    """The rule, one row after the other."""
    counted = [0] * query.horizon
    for unit in {u for u, _ in pairs}:
        own, told = 0, -(10**9)
        for t in sorted(t for u, t in pairs if u == unit and 0 <= t < query.horizon):
            if own < query.per_unit and (query.separation is None or t - told >= query.separation):
                own, told = own + 1, t
                counted[t] += 1
    return counted


def queries() -> list[Increments]:
    limits = [(k, b) for k in (1, 2, 4) for b in (None, 1, 2, 5)]
    return [bounds.increments("t", T, USER, per_unit=k, separation=b) for k, b in limits]


@pytest.mark.parametrize("query", queries(), ids=lambda q: f"{q.per_unit}-{q.separation}")
@settings(derandomize=True, deadline=None, max_examples=40)
@given(some_rows)
def test_counts_follow_the_rule(query: Increments, pairs: list[Row]) -> None:
    assert query.steps(rows_of(pairs), 0).tolist() == by_hand(pairs, query)
    assert query.steps(rows_of(pairs), -3).tolist() == [8 * x for x in by_hand(pairs, query)]


@pytest.mark.parametrize("query", queries(), ids=lambda q: f"{q.per_unit}-{q.separation}")
@settings(derandomize=True, deadline=None, max_examples=40)
@given(some_rows)
def test_no_step_depends_on_a_later_one(query: Increments, pairs: list[Row]) -> None:
    whole_story = query.steps(rows_of(pairs), 0)
    tally = Tally(query)
    for step in range(T):
        so_far = [(u, t) for u, t in pairs if t <= step]
        assert query.steps(rows_of(so_far), 0)[: step + 1].tolist() == whole_story[: step + 1].tolist()
        # on rows that come in time, in any order, a tally counts the same, and later rows do not matter to it
        seen = rows_of(pairs if step % 2 else so_far[::-1])
        assert tally.count(seen, step) == whole_story[step]


@pytest.mark.parametrize("query", queries(), ids=lambda q: f"{q.per_unit}-{q.separation}")
@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(-1, T), max_size=8), min_size=T, max_size=T))
def test_a_tally_holds_the_limits_on_any_data(query: Increments, stories: list[list[int]]) -> None:
    """One unit whose rows come late, vanish and move as they like, its key read as number or as text."""
    tally, counts = Tally(query), []
    for step, times in enumerate(stories):
        name = 7 if step % 2 else "7"
        others = [(f"other {i}", step - 1) for i in range(step)]  # so that codes differ from read to read
        counts.append(tally.count(rows_of([*others, *((name, t) for t in times)]), step))
    assert sum(counts) <= query.times
    if query.separation is not None:
        told = [step for step, count in enumerate(counts) if count]
        assert max(counts) <= 1 and all(b - a >= query.separation for a, b in pairwise(told))


def test_a_tally_of_units_that_are_categories() -> None:
    table = Schema.of(u=category(["a", "b"]), t=whole(0, 9))
    tally = Tally(bounds.increments("t", 4, USER, per_unit=1))
    first = read(table, USER, u=["b", "b"], t=[0, 0])
    second = read(table, USER, u=["a", "b"], t=[1, 1])
    assert [tally.count(first, 0), tally.count(second, 1)] == [1, 1]


def test_rows_as_units_and_columns_of_other_kinds() -> None:
    query = bounds.increments("t", 3, Unit())
    reals = Schema.of(t=real(-10, 10))
    values = [0.0, 0.99, 1.0, 2.999, 3.0, -0.01, float("nan"), float("inf"), None, -0.0]
    assert query.steps(read(reals, Unit(), t=values), 0).tolist() == [3, 1, 1]
    wholes = read(Schema.of(t=whole(-(2**63), 2**63 - 1)), Unit(), t=[0, 2, 2, 3, -1, -(2**63), 2**63 - 1, None])
    assert query.steps(wholes, 0).tolist() == [1, 0, 2]
    assert Tally(query).count(wholes, 2) == 2
    empty = read(Schema.of(t=whole(0, 9)), Unit(), t=[])
    assert query.steps(empty, 0).tolist() == [0, 0, 0] and Tally(query).count(empty, 0) == 0
    assert bounds.increments("t", 3, USER, separation=1).steps(rows_of([]), 0).tolist() == [0, 0, 0]


def strategies() -> list[Causal]:
    return [
        SquareRoot(cells=4),
        Banded(cells=4, bands=2),
        StepTree(cells=4),
        StepTree(cells=3),
        SquareRoot(cells=3),
    ]


STEPS: list[dict[str, Any]] = [{"n": t} for t in (0, 1, 2, 3, None)]


@pytest.mark.parametrize("unit", UNITS + GROUPS, ids=str)
def test_neighbours_are_within_the_sensitivity(unit: Unit) -> None:
    limits = [(1, None)] if unit.column is None else [(1, None), (2, None), (2, 1), (2, 2), (3, 1)]
    for k, b in limits:
        query = bounds.increments("n", 4, unit, per_unit=k, separation=b)
        holds(query, STEPS, reach=0.9 if b is None else 0.6, others=[({"n": 1},)])
        for strategy in strategies():
            horizon = strategy.cells
            query = bounds.increments("n", horizon, unit, per_unit=k, separation=b)
            measured = Running(query=query, strategy=strategy, workload=Prefixes(cells=horizon), unit=unit)
            tight = b is None or (unit.change != "replace" and not isinstance(strategy, StepTree))
            plans = m.Gaussian(query=measured, epsilon=1, delta=1e-6), m.Laplace(query=measured, epsilon=9)
            for exponent in {plan.exponent for plan in plans}:
                found, allowed = farthest(measured, STEPS, exponent), measured.in_steps(exponent)
                assert within(found, allowed)
                assert found.l2_squared >= (0.99 if tight else 0.25) * allowed.l2_squared


def test_a_unit_that_counts_in_every_step_is_caught() -> None:
    """A mutant that forgets the limit moves the measurements too far, and the same check sees it."""

    class Unlimited(Increments):
        def _kept(self, pairs: Any, weight: Any) -> Any:
            return weight

    query = Unlimited(column="n", horizon=4, unit=Unit("user:user"), per_unit=2)
    with pytest.raises(AssertionError):
        holds(query, STEPS)


def test_separation_is_cheaper_than_its_rows_in_one_step() -> None:
    cells = Prefixes(cells=64)

    def squared(strategy: Causal, b: int | None) -> float:
        query = bounds.increments("t", 64, USER, per_unit=4, separation=b)
        running = Running(query=query, strategy=strategy, workload=cells, unit=USER)
        return float(running.sensitivity.l2_squared)

    root, banded, tree = SquareRoot(cells=64), Banded(cells=64, bands=16), StepTree(cells=64)
    assert squared(root, None) == 16 * root.column_norms.l2_squared / 4**20
    assert squared(banded, 16) == 4 * banded.column_norms.l2_squared / 4**20
    assert squared(banded, 16) < squared(root, 16) < squared(root, 1) < squared(root, None)
    assert squared(tree, 16) < squared(tree, 1) < squared(tree, None)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 2**21}, "horizon"),
        ({"separation": 0}, "separation"),
        ({"separation": 7}, "separation"),
        ({"unit": Unit(), "separation": 2}, "separation"),
        ({"unit": Unit(), "per_unit": 2}, "per_unit"),
        ({"per_unit": 0}, "per_unit"),
        ({"column": ""}, "column"),
    ],
)
def test_arguments_are_refused_by_name(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        bounds.increments(**{"column": "t", "horizon": 6, "unit": USER, **fields})


def test_running_totals_refuse_other_parts() -> None:
    query, cells = bounds.increments("t", 4, USER), Prefixes(cells=4)
    with pytest.raises(ArgumentError, match="strategy"):
        Running(query=query, strategy=Identity(cells=4), workload=cells, unit=USER)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="workload"):
        Running(query=query, strategy=SquareRoot(cells=4), workload=Cells(cells=4), unit=USER)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="strategy"):
        Running(query=query, strategy=SquareRoot(cells=5), workload=cells, unit=USER)
    histogram = bounds.histogram("t", [0, 1, 2, 3], USER)
    with pytest.raises(ArgumentError, match="query"):
        Running(query=histogram, strategy=SquareRoot(cells=4), workload=cells, unit=USER)  # type: ignore[arg-type]


def test_finished_like_a_histogram() -> None:
    query = bounds.increments("t", 3, USER)
    assert query.finish(np.array([1.0, 2.0, 4.5])) == {0: 1.0, 1: 2.0, 2: 4.5}
    assert query.error(np.zeros(3), 0.5) == {0: 0.5, 1: 0.5, 2: 0.5}
    assert query.names == (0, 1, 2) and query.size == 3
