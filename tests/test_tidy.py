"""Tidy tables: what they promise to look like, that they are the nearest such, and that they cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, record, schema, sequence
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError
from sfumato.tidy import Tidy, isotonic, largest_remainders, onto_simplex
from tests.helpers import laplace, read, seeded

NAMES = ("a", "b", "c", "d")
HISTOGRAM = bounds.histogram("w", NAMES, Unit())
LAPLACE = m.Laplace(query=HISTOGRAM, epsilon=1)
RUNNING = m.Gaussian(query=bounds.cumulative(HISTOGRAM), rho=0.5, delta=1e-6)

steady = settings(deadline=None, derandomize=True, max_examples=150)
numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=12).map(np.array)


def tidied(values: Any, plan: Any = LAPLACE, **how: Any) -> list[Any]:
    return list(Tidy(plan=plan, **how).finish(np.array(values, dtype=float)).values())


# The projections are the nearest points


@steady
@given(numbers, st.floats(0, 300))
def test_the_simplex_projection_is_the_nearest_point(values: Any, total: float) -> None:
    found = onto_simplex(values, total)
    assert (found >= 0).all() and np.isclose(found.sum(), total, atol=1e-9)
    # Optimality (Karush, Kuhn, Tucker): what is above 0 was lowered alike, what is 0 would have been lowered below it.
    lowered = values - found
    if (found > 1e-9).any():
        cut = lowered[found > 1e-9]
        assert np.ptp(cut) < 1e-6 and (values[found <= 1e-9] <= cut.max() + 1e-6).all()


@steady
@given(st.lists(st.integers(-4, 9), min_size=1, max_size=5), st.integers(0, 6))
def test_the_simplex_projection_is_nearer_than_any_table_of_whole_numbers(values: list[int], total: int) -> None:
    given_ = np.array(values, dtype=float)
    nearest = ((onto_simplex(given_, float(total)) - given_) ** 2).sum()
    for table in product(range(total + 1), repeat=len(values)):
        if sum(table) == total:
            assert nearest <= ((np.array(table) - given_) ** 2).sum() + 1e-9


@steady
@given(numbers)
def test_isotonic_regression_is_the_minimax_of_means(values: Any) -> None:
    """Barlow et al. 1972: x_i = max over a <= i of min over b >= i of the mean from a to b."""
    n = values.size
    exact = [max(min(values[a : b + 1].mean() for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    assert np.allclose(isotonic(values), exact, atol=1e-9)


@steady
@given(numbers, st.integers(0, 200))
def test_largest_remainders_add_up_and_stay_near(values: Any, total: int) -> None:
    near = onto_simplex(values, float(total))
    found = largest_remainders(near, total)
    assert found.sum() == total and (found >= 0).all() and (np.abs(found - near) < 1 + 1e-9).all()


def test_largest_remainders_survive_rounding_of_the_sum() -> None:
    assert largest_remainders(np.array([1.0, 1.0 - 1e-16, 2.0]), 3).sum() == 3
    assert largest_remainders(np.array([0.5, 0.5]), 4).tolist() == [2.0, 2.0]
    assert largest_remainders(np.array([-1.5, 0.5]), -2).sum() == -2


# What a tidy table looks like


@pytest.mark.parametrize("total", [None, "kept", 0, 7, 1000])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("values", [[1.4, -2.5, 3.2, 10], [-5, -6, -7.5, -8], [0, 0, 0, 0], [0.1, 0.1, 0.1, 1e6]])
def test_cells_keep_every_promise(values: list[float], nonnegative: bool, whole: bool, total: Any) -> None:
    found = tidied(values, nonnegative=nonnegative, whole=whole, total=total)
    assert not nonnegative or min(found) >= 0
    assert not whole or all(type(v) is int for v in found)
    if total is not None:
        wanted = sum(values) if total == "kept" else total
        wanted = max(wanted, 0) if nonnegative else wanted
        assert sum(found) == pytest.approx(round(wanted) if whole else wanted, abs=1e-6)
        assert not whole or sum(found) == round(wanted)


@pytest.mark.parametrize("total", [None, "kept", 0, 7, 1000])
@pytest.mark.parametrize("whole", [False, True])
def test_running_totals_keep_every_promise(whole: bool, total: Any) -> None:
    for seed in range(20):
        raw = np.random.default_rng(seed).normal(0, 20, RUNNING.query.size)
        plan = Tidy(plan=RUNNING, monotone=True, whole=whole, total=total)
        found = list(plan.finish(raw).values())
        assert found == sorted(found) and found[0] >= 0
        if total is not None:
            end = max(list(plan.untouched(raw).values())[-1], 0) if total == "kept" else total
            assert found[-1] == pytest.approx(round(end) if whole else end)


def test_exact_examples() -> None:
    assert tidied([3, -1, 2, 0]) == [3, 0, 2, 0]
    assert tidied([3.5, -1, 2.4, 0], whole=True) == [4, 0, 2, 0]
    assert tidied([3, -1, 2, 0], total="kept") == pytest.approx([2.5, 0, 1.5, 0])
    assert tidied([3, -1, 2, 0], total=8, nonnegative=False) == pytest.approx([4, 0, 3, 1])
    assert tidied([3, -1, 2, 0], total=8) == pytest.approx([4, 0, 3, 1])
    assert isotonic(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).tolist() == [1, 7 / 3, 7 / 3, 7 / 3, 5]
    assert isotonic(np.array([])).size == 0


def test_untouched_numbers_stay_in_the_release() -> None:
    table = Schema.of(w=schema.category(NAMES))
    data = Private("t", {"w": ["a"] * 50}, unit=Unit(), schema=table)
    curator = Curator(data, MemoryLedger({"t": Budget(epsilon=2)}))
    plan = Tidy(plan=LAPLACE, whole=True)
    release = curator.release(plan)
    assert all(type(v) is int and v >= 0 for v in release.value.values())
    untouched = plan.untouched(release.raw)
    assert list(untouched.values()) == release.raw.tolist() and set(untouched) == set(release.value)
    assert release.error(0.05) == LAPLACE.error(release.raw, 0.05)
    assert "biased" in release.explain() and "untouched" in release.explain()


def test_it_costs_what_its_plan_costs() -> None:
    for inner in (LAPLACE, RUNNING):
        plan = Tidy(plan=inner)
        assert (plan.event, plan.delta, plan.unit, plan.columns) == (
            inner.event,
            inner.delta,
            inner.unit,
            inner.columns,
        )
        assert plan.expected_error(0.1) == inner.expected_error(0.1)
        assert plan.children == (inner,)
        rows = read(Schema.of(w=schema.category(NAMES)), Unit(), w=["a", "b", None])
        assert (plan._run(rows, seeded(3)) == inner._run(rows, seeded(3))).all()


def test_bars_cover_where_only_negative_numbers_were_cut_off() -> None:
    """A true count is not negative, so cutting off moves no number away from it."""
    table = Schema.of(w=schema.category(NAMES))
    rows = read(table, Unit(), w=["a"] * 5 + ["b"])
    plan, truth, held = Tidy(plan=LAPLACE), np.array([5, 1, 0, 0]), 0
    for seed in range(500):
        raw = plan._run(rows, seeded(seed))
        off = np.abs(np.array(list(plan.finish(raw).values())) - truth)
        held += int((off <= np.array(list(plan.error(raw, 0.1).values()))).sum())
    assert held / 2000 >= 0.9


def test_it_can_be_part_of_other_plans() -> None:
    both = sequence(table=Tidy(plan=LAPLACE), count=laplace())
    rows = read(Schema.of(w=schema.category(NAMES)), Unit(), w=["a", "b", None])
    assert min(both.finish(both._run(rows, seeded(1)))["table"].values()) >= 0


REFUSED: list[Callable[[], Any]] = [
    lambda: Tidy(plan=m.Laplace(query=bounds.count(Unit()), epsilon=1)),
    lambda: Tidy(plan=m.Exponential(query=HISTOGRAM, epsilon=1)),
    lambda: Tidy(plan=HISTOGRAM),  # type: ignore[arg-type]
    lambda: Tidy(plan=Tidy(plan=LAPLACE)),
    lambda: Tidy(plan=LAPLACE, total=-1),
    lambda: Tidy(plan=LAPLACE, total=1.5, whole=True),
    lambda: Tidy(plan=LAPLACE, total="lost"),
    lambda: Tidy(plan=LAPLACE, total=float("nan")),
    lambda: Tidy(plan=LAPLACE, whole=1),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("make", REFUSED)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match="not allowed"):
        make()


def test_json() -> None:
    for plan in (Tidy(plan=LAPLACE, total=3, whole=True), Tidy(plan=RUNNING, monotone=True, total="kept")):
        again = record.parse(record.canonical(plan))
        assert again == plan and again.hash == plan.hash
    assert Tidy(plan=LAPLACE, total=Fraction(5, 2)).total == Fraction(5, 2)
