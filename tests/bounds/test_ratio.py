from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds, grid
from sfumato import mechanisms as m
from sfumato.bounds import Ratio, Sensitivity
from sfumato.errors import ArgumentError
from sfumato.schema import key, real, whole
from sfumato.units import RELATIONS
from tests.bounds.neighbouring import GROUPS, UNITS, gap, holds, rows_of, steps, within
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
steady = settings(derandomize=True, deadline=None, max_examples=150)
SHAPES = [((-3, 7), (0, 10)), ((5, 10), (2, 3)), ((-1e90, 1), (1e-90, 1)), ((-10, -5), (0, 0.1))]


def contents(top: tuple[float, float], bottom: tuple[float, float]) -> list[dict[str, Any]]:
    corners = [{"x": a, "y": b} for a, b in product(top, bottom)]
    return [*corners, {"x": sum(top) / 2, "y": sum(bottom) / 2}, {"x": INF, "y": -INF}, {"x": 1.0}, {"y": NAN}]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("top", "bottom"), SHAPES, ids=str)
def test_no_neighbour_moves_it_further_than_it_says(top: Any, bottom: Any, unit: Unit) -> None:
    for per_unit in (1, 3) if unit.column else (1,):
        query = bounds.ratio(("x", *top), ("y", *bottom), unit, per_unit=per_unit)
        holds(query, contents(top, bottom), reach=0.99, others=(({"x": 1.0, "y": 2.0},), ({"x": -2.0, "y": 0.3},)))


@pytest.mark.parametrize("unit", GROUPS, ids=str)
def test_groups(unit: Unit) -> None:
    top, bottom = SHAPES[0]
    holds(bounds.ratio(("x", *top), ("y", *bottom), unit), contents(top, bottom), reach=0.99)


@dataclass(frozen=True, kw_only=True)
class _Smaller(Ratio):
    """A broken one: it forgets the numbers of the other side of 0."""

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(Fraction(2), Fraction(2), Fraction(1))


def test_too_small_a_sensitivity_is_caught() -> None:
    query = _Smaller(numerator=("x", -3, 7), denominator=("y", 0, 10), unit=Unit(change="replace"))
    with pytest.raises(AssertionError):
        holds(query, contents((-3, 7), (0, 10)))


cells = st.one_of(st.floats(-12, 12), st.sampled_from([None, NAN, INF, -INF, 1e300]))


@steady
@given(
    st.lists(st.tuples(cells, cells), max_size=7),
    st.lists(st.tuples(cells, cells), max_size=7),
    st.sampled_from(RELATIONS),
    st.integers(1, 3),
    st.integers(-42, 3),
)
def test_random_neighbours(one: Any, other: Any, change: Any, per_unit: int, exponent: int) -> None:
    query = bounds.ratio(("x", -0.3, 7), ("y", 0.1, 10), Unit("user:user", change), per_unit=per_unit)
    before = [{"x": a, "y": b} for a, b in one]
    after: Any = {
        "add-remove": [],
        "zero-out": [{}] * len(one),
        "replace": [{"x": a, "y": b} for a, b in other],
    }[change]
    a, b = (steps(query, [own, [{"x": 0.2, "y": 0.3}]], exponent) for own in (before, after))
    assert within(gap(a, b), query.in_steps(exponent))


def test_values_agree_with_numpy_to_the_grid() -> None:
    rng = np.random.default_rng(1)
    cost, visits = rng.gamma(2, 300, 100_000), rng.poisson(1.5, 100_000)
    table = Schema.of(user=key(), cost=real(0, 1e4), visits=whole(0, 100))
    for unit, per_unit in ((Unit(), 1), (Unit("user:user"), 2)):
        rows = read(table, unit, user=np.arange(cost.size) // 2, cost=cost, visits=visits)
        query = bounds.ratio(("cost", 0, 2000), ("visits", 0, 5), unit, per_unit=per_unit)
        found = query.finish(grid.to_float(query.steps(rows, -30), -30))
        assert found == pytest.approx(np.clip(cost, 0, 2000).sum() / np.clip(visits, 0, 5).sum(), rel=1e-6)


def test_both_sums_are_over_the_same_rows() -> None:
    query = bounds.ratio(("x", 0, 8), ("y", 0, 4), Unit())
    own = [({"x": 4.0, "y": 4.0},), ({"x": 8.0},), ({"y": 4.0},), ({"x": INF, "y": 2.0},)]
    assert steps(query, own, -3) == [4 + 8, 8 + 4] == steps(query, own[::-1], -3)


@steady
@given(
    st.lists(st.tuples(st.floats(-2, 7), st.floats(0, 4)), min_size=1, max_size=40),
    st.floats(0.01, 20),
    st.floats(-1, 1),
    st.floats(-1, 1),
    st.sampled_from([0, 0.5]),
)
def test_the_error_bar_holds_for_any_noise_within_the_width(
    pairs: Any, width: float, e: float, f: float, least: float
) -> None:
    query = bounds.ratio(("x", -2, 7), ("y", least, 4), Unit())
    over, under = sum(a for a, _ in pairs), sum(max(b, least) for _, b in pairs)
    noisy = np.array([over / 7 + width * e, under / 4 + width * f])
    value, bar = query.finish(noisy), query.error(noisy, width)
    assert math.isfinite(value)
    if bar is not None and under > 1e-6:
        assert abs(value - over / under) <= bar * (1 + 1e-9) + 1e-6
    assert bar is not None or least == 0


def test_a_denominator_near_zero_is_read_as_one_row() -> None:
    query = bounds.ratio(("x", 0, 8), ("y", 0, 4), Unit())
    for under in (0.0, -3.0, 1e-300, 0.9):
        assert query.finish(np.array([0.5, under])) == 1 and query.error(np.array([0.5, under]), 2.0) is None
    assert query.finish(np.array([-3.0, 2.0])) == 0  # such sums are never negative
    held = bounds.ratio(("x", 0, 8), ("y", 2, 4), Unit())
    assert held.finish(np.array([90.0, 1.0])) == 4 and held.error(np.array([90.0, 1.0]), 2.0) == 4
    negative = bounds.ratio(("x", -8, -4), ("y", 0, 4), Unit())
    assert negative.finish(np.array([3.0, 2.0])) == 0 and negative.finish(np.array([-4.0, 4.0])) == -2


def test_error_bars_cover() -> None:
    rng = np.random.default_rng(5)
    rows = rows_of([({"x": a, "y": b},) for a, b in rng.normal(3, 2, (500, 2))], Unit())
    query = bounds.ratio(("x", 0, 8), ("y", 0, 4), Unit())
    for plan in (m.Laplace(query=query, epsilon=1), m.Gaussian(query=query, rho=0.5)):
        truth = query.finish(grid.to_float(query.steps(rows, -40), -40))
        run = seeded()
        raws = [plan._run(rows, run) for _ in range(400)]
        hits = [abs(plan.finish(raw) - truth) <= plan.error(raw, 0.05) for raw in raws]
        assert sum(hits) >= 0.95 * 400 - 4 * math.sqrt(400 * 0.05 * 0.95)


@pytest.mark.parametrize(
    "fields",
    [
        {"numerator": "x"},
        {"numerator": ("x", 1)},
        {"numerator": ("x", 1, 1)},
        {"denominator": ("y", -1, 1)},
        {"denominator": ("x", 0, 1)},
        {"denominator": ("y", 0, NAN)},
        {"numerator": (3, 0, 1)},
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        bounds.ratio(**{"numerator": ("x", 0, 1), "denominator": ("y", 0, 1), "unit": Unit(), **fields})
