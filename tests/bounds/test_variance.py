from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds, grid
from sfumato import mechanisms as m
from sfumato.bounds import Sensitivity, Variance, moments
from sfumato.errors import ArgumentError
from sfumato.schema import key, real
from sfumato.units import RELATIONS
from tests.bounds.neighbouring import GROUPS, UNITS, holds, owns, rows_of, steps
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
steady = settings(derandomize=True, deadline=None, max_examples=100)


def contents(low: float, high: float) -> list[dict[str, Any]]:
    """Ends, middle, where the distance under replace is largest, beyond the ends, and what is no number."""
    middle, half = (low + high) / 2, (high - low) / 2
    inside = (-1, -0.25, (0.5**0.5 - 1) / 2, 0.3, 1)
    return [{"x": middle + half * y} for y in inside] + [{"x": v} for v in (INF, NAN)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("ends", [(-3, 7), (-1e90, 1e-90), (1e6, 1e6 + 1e-3)], ids=str)
def test_no_neighbour_moves_it_further_than_it_says(ends: tuple[float, float], unit: Unit) -> None:
    for per_unit in (1, 2, 3) if unit.column else (1,):
        query = bounds.variance("x", *ends, unit, per_unit=per_unit)
        holds(query, contents(*ends), reach=0.99, others=(({"x": ends[0]},), ({"x": ends[1]}, {"x": 0.1})))


@pytest.mark.parametrize("unit", GROUPS, ids=str)
def test_a_group_moves_it_no_further_than_it_says(unit: Unit) -> None:
    holds(bounds.variance("x", -1, 1, unit, per_unit=2 if unit.column else 1), contents(-1, 1), reach=0.99)


@dataclass(frozen=True, kw_only=True)
class _Smaller(Variance):
    """A broken one: under replace it claims what add-remove needs."""

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(Fraction(3), Fraction(3), Fraction(2))


def test_too_small_a_sensitivity_is_caught() -> None:
    query = _Smaller(column="x", lower=0, upper=1, unit=Unit(change="replace"))
    with pytest.raises(AssertionError):
        holds(query, contents(0, 1))


@steady
@given(
    st.lists(st.lists(st.floats(-5, 12), max_size=6), max_size=5),
    st.lists(st.floats(-5, 12), max_size=9),
    st.lists(st.floats(-5, 12), max_size=9),
    st.sampled_from(RELATIONS),
    st.integers(1, 4),
    st.integers(-45, 3),
)
def test_random_neighbours(others: Any, one: Any, other: Any, change: Any, per_unit: int, exponent: int) -> None:
    query = bounds.variance("x", -3, 7, Unit("user:user", change), per_unit=per_unit)
    people = [[{"x": v} for v in own] for own in others]
    after = {"add-remove": [], "zero-out": [{}] * len(one), "replace": [{"x": v} for v in other]}[change]
    a, b = (steps(query, [*people, own], exponent) for own in ([{"x": v} for v in one], after))
    gaps = [abs(p - q) for p, q in zip(a, b, strict=True)]
    allowed = query.in_steps(exponent)
    assert sum(gaps) <= allowed.l1 and sum(g * g for g in gaps) <= allowed.l2_squared and max(gaps) <= allowed.linf


def test_the_vector_is_the_exact_sum_of_its_rows() -> None:
    query = bounds.variance("x", 0, 8, Unit())
    rows = rows_of([({"x": v},) for v in (0, 2, 4, 8, 20, NAN, None)], Unit())
    # y = -1, -1/2, 0, 1, 1
    assert query.steps(rows, -4).tolist() == [5 * 16, 8, (1 * 3 - 1 - 0.5) * 16]
    user = bounds.variance("x", 0, 8, Unit("user:user"), per_unit=2)
    own = [({"x": 0}, {"x": 8}, {"x": 4}, {"x": 4})]  # an average of squares of 1/2, twice
    assert steps(user, own, -4) == [32, 0, 0]


@pytest.mark.parametrize("of", ["row", "user:user"])
def test_values_agree_with_numpy_to_the_grid(of: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(50, 20, 200_000)
    table = Schema.of(user=key(), x=real(0, 100))
    rows = read(table, Unit(of), user=np.arange(x.size) // 2, x=x)
    query = bounds.variance("x", 0, 100, Unit(of), per_unit=2 if of != "row" else 1)
    truth = np.clip(x, 0, 100).var()
    raw = grid.to_float(query.steps(rows, -28), -28)
    assert query.finish(raw) == pytest.approx(truth, rel=1e-9)
    deviation = bounds.standard_deviation("x", 0, 100, Unit(of), per_unit=query.per_unit)
    assert deviation.finish(raw) == pytest.approx(math.sqrt(truth), rel=1e-9)


def test_the_order_of_rows_does_not_matter_and_nothing_overflows() -> None:
    rng = np.random.default_rng(2)
    x = rng.choice([0.0, 4.66e-10, 1.0, 1e300, -1e300, INF, 2.0**63], 300_000)
    query, table = bounds.variance("x", 0, 1, Unit()), Schema.of(x=real(0, 1))
    first = query.steps(read(table, Unit(), x=x), -42)
    for _ in range(3):
        assert query.steps(read(table, Unit(), x=rng.permutation(x)), -42).tolist() == first.tolist()
    one_less = query.steps(read(table, Unit(), x=x[1:]), -42)
    assert sum(abs(int(a) - int(b)) for a, b in zip(first, one_less, strict=True)) <= query.in_steps(-42).l1


def test_products_are_exact() -> None:
    rng = np.random.default_rng(3)
    right = rng.integers(-(2**30), 2**30, (2, 70_000), endpoint=True)
    right[:, :50] = 2**30
    left = rng.integers(0, 2**31, 70_000, endpoint=True) * right
    left[:, 50:60], right[:, 50:60] = -(2**61), -(2**30)
    for one in (left, right):
        expected = [[sum(int(a) * int(b) for a, b in zip(p, q, strict=True)) for q in right] for p in one]
        assert moments.products(one, right).tolist() == expected
    assert moments.products(right[:, :0], right[:, :0]).tolist() == [[0, 0], [0, 0]]


@steady
@given(
    st.lists(st.floats(-1, 1), min_size=1, max_size=40),
    st.floats(0.01, 60),
    st.tuples(*[st.floats(-1, 1)] * 3),
    st.booleans(),
)
def test_the_error_bar_holds_for_any_noise_within_the_width(ys: Any, width: float, off: Any, root: bool) -> None:
    query = Variance(column="x", lower=10, upper=30, unit=Unit(), root=root)
    y = np.array(ys)
    exact = np.array([y.size, y.sum(), (2 * y * y - 1).sum()])
    noisy = exact + width * np.array(off)
    truth = 100 * y.var()
    truth = math.sqrt(truth) if root else truth
    assert abs(query.finish(noisy) - truth) <= query.error(noisy, width) * (1 + 1e-9) + 1e-6


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("root", [False, True])
def test_error_bars_cover(noise: str, root: bool) -> None:
    rng = np.random.default_rng(5)
    rows = rows_of([({"x": v},) for v in rng.normal(40, 30, 800)], Unit())
    query = Variance(column="x", lower=0, upper=90, unit=Unit(), root=root)
    plan: Any = m.Laplace(query=query, epsilon=1) if noise == "laplace" else m.Gaussian(query=query, rho=0.5)
    truth = query.finish(grid.to_float(query.steps(rows, -40), -40))
    run = seeded()
    raws = [plan._run(rows, run) for _ in range(400)]
    hits = [abs(plan.finish(raw) - truth) <= plan.error(raw, 0.05) for raw in raws]
    assert sum(hits) >= 0.95 * 400 - 4 * math.sqrt(400 * 0.05 * 0.95)
    assert 0 < plan.error(raws[0], 0.05) < (45 if root else 45**2)


def test_odd_noisy_numbers_finish_within_the_possible() -> None:
    query, root = bounds.variance("x", 10, 30, Unit()), bounds.standard_deviation("x", 10, 30, Unit())
    for noisy in ([0, 0, 0], [-5, 3, 3], [1e-30, 5, -5], [10, 100, -100], [10, 0, 1e9]):
        raw = np.array(noisy, dtype=float)
        assert 0 <= query.finish(raw) <= 100 and 0 <= root.finish(raw) <= 10
        assert 0 <= query.error(raw, 1.0) <= 100 and 0 <= root.error(raw, 1.0) <= 10
    assert query.finish(np.array([0.0, 1, 1])) == 50 and query.error(np.array([0.0, 1, 1]), 1.0) == 100
    assert len(owns([{}], Unit())) == 1


@pytest.mark.parametrize(
    ("lower", "upper"), [(1, 1), (2, 1), (0, NAN), (0, INF), (1, Fraction(1) + Fraction(1, 10**200))]
)
def test_bad_bounds_are_refused(lower: Any, upper: Any) -> None:
    with pytest.raises(ArgumentError):
        bounds.variance("x", lower, upper, Unit())
    with pytest.raises(ArgumentError, match="root"):
        Variance(column="x", lower=0, upper=1, unit=Unit(), root=1)  # type: ignore[arg-type]
