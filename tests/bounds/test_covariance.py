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
from sfumato.bounds import Covariance, Sensitivity
from sfumato.errors import ArgumentError
from sfumato.schema import key, real
from tests.bounds.neighbouring import GROUPS, UNITS, exponents, holds, rows_of, steps, within
from tests.bounds.neighbouring import gap as moved
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
steady = settings(derandomize=True, deadline=None, max_examples=100)
TWO = {"x": (-3, 7), "y": (0, 100)}  # bounds that are not symmetric: [0, 100] may bring 100 * 100
THREE = {**TWO, "z": (1e6, 1e6 + 1e-3)}


def contents(intervals: dict[str, tuple[float, float]], inside: tuple[float, ...]) -> list[dict[str, Any]]:
    def row(ys: tuple[float, ...]) -> dict[str, Any]:
        ends = zip(intervals.items(), ys, strict=True)
        return {name: (low + high) / 2 + (high - low) / 2 * y for (name, (low, high)), y in ends}

    odd = [dict.fromkeys(intervals, INF), dict.fromkeys(intervals, NAN), {"x": 7.0}]
    return [row(ys) for ys in product(inside, repeat=len(intervals))] + odd


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbour_moves_it_further_than_it_says(unit: Unit) -> None:
    for per_unit in (1, 2) if unit.column else (1,):
        query = bounds.covariance(TWO, unit, per_unit=per_unit)
        few = unit.column is not None
        others = (({"x": 5.5, "y": 3.0},), ({"x": -9.0, "y": 70.0}, {"x": 0.1, "y": 0.1}))
        holds(query, contents(TWO, (-1, -1 / 3, 1) if few else (-1, -1 / 3, 0, 0.5, 1)), reach=0.99, others=others)


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.column is None], ids=str)
def test_three_columns(unit: Unit) -> None:
    holds(bounds.covariance(THREE, unit), contents(THREE, (-1, -0.25, 0.5, 1)), reach=0.99)


@pytest.mark.parametrize("unit", [unit for unit in GROUPS if unit.column is None], ids=str)
def test_groups(unit: Unit) -> None:
    holds(bounds.covariance(TWO, unit, correlation=True), contents(TWO, (-1, -1 / 3, 1)), reach=0.99)


@pytest.mark.parametrize("d", [2, 3, 4, 7])
def test_the_distance_under_replace_is_the_largest_there_is(d: int) -> None:
    """Hill climbing over pairs of rows, from many starts: never above the claim, and up to it."""
    rng = np.random.default_rng(d)
    claim = bounds.covariance({f"c{i}": (-1, 1) for i in range(d)}, Unit(change="replace")).sensitivity

    def vectors(y: Any) -> Any:
        pairs = [y[..., i] * y[..., j] for i in range(d) for j in range(i)]
        return np.stack([*np.moveaxis(y, -1, 0), *pairs, *np.moveaxis(y * y, -1, 0)], axis=-1)

    for order, allowed in ((1, float(claim.l1)), (2, math.sqrt(claim.l2_squared))):
        best = rng.uniform(-1, 1, (300, 2, d))
        length = np.linalg.norm(vectors(best[:, 0]) - vectors(best[:, 1]), ord=order, axis=-1)
        for turn in range(1500):
            tried = np.clip(
                best + rng.normal(0, 1.0 / (1 + turn / 60), best.shape) * (rng.random(best.shape) < 0.3), -1, 1
            )
            new = np.linalg.norm(vectors(tried[:, 0]) - vectors(tried[:, 1]), ord=order, axis=-1)
            best[new > length], length = tried[new > length], np.maximum(new, length)
        assert 0.99 * allowed <= length.max() <= allowed * (1 + 1e-12)


@dataclass(frozen=True, kw_only=True)
class _Smaller(Covariance):
    """A broken one: it measures the product of [0, 100] with itself as if it were of the lower ends."""

    @property
    def sensitivity(self) -> Sensitivity:
        right = super().sensitivity
        return Sensitivity(right.l1, right.l2_squared * Fraction(9, 10), right.linf)


def test_too_small_a_sensitivity_is_caught() -> None:
    with pytest.raises(AssertionError):
        holds(_Smaller(intervals=TWO, unit=Unit()), contents(TWO, (-1, 1)))


@steady
@given(
    st.lists(st.tuples(*[st.floats(-10, 110)] * 3), max_size=8),
    st.lists(st.tuples(*[st.floats(-10, 110)] * 3), max_size=8),
    st.integers(1, 3),
    st.integers(-45, 3),
)
def test_random_users_exchanged(one: Any, other: Any, per_unit: int, exponent: int) -> None:
    ends = {"x": (-3, 7), "y": (0, 100), "z": (-1, 50)}
    query = bounds.covariance(ends, Unit("user:user", "replace"), per_unit=per_unit)
    people = ([dict(zip(ends, row, strict=True)) for row in own] for own in (one, other))
    a, b = (steps(query, [own, [{"x": 1.0, "y": 2.0, "z": 3.0}]], exponent) for own in people)
    assert within(moved(a, b), query.in_steps(exponent))


def test_what_a_row_may_bring_follows_its_bounds() -> None:
    """A feature in [0, 100] may bring 100^2, not 0: the noise on its variance grows with the square of its width."""
    narrow, wide = ({"x": (0, 1), "y": (0, top)} for top in (1, 100))
    noisy = np.array([50.0, 5, 5, 1, -2, -2])
    small, large = (bounds.covariance(ends, Unit()).error(noisy, 1.0) for ends in (narrow, wide))
    assert large["y"]["y"] == pytest.approx(10_000 * small["y"]["y"])
    assert large["x"]["y"] == pytest.approx(100 * small["x"]["y"]) and large["x"]["x"] == small["x"]["x"]


@pytest.mark.parametrize("of", ["row", "user:user"])
def test_values_agree_with_numpy_to_the_grid(of: str) -> None:
    rng = np.random.default_rng(1)
    n, mixed = 150_000, np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.7], [0.0, 0.0, 1.0]])
    data = rng.normal(size=(n, 3)) @ mixed * [10, 3, 200] + [50, 0, 1000]
    table = Schema.of(user=key(), **{name: real(*WIDE) for name in "abc"})
    ends = {"a": (0, 100), "b": (-10, 12), "c": (300, 2000)}
    unit = Unit(of)
    rows = read(table, unit, user=np.arange(n) // 2, **dict(zip("abc", data.T, strict=True)))
    clipped = np.clip(data, [0, -10, 300], [100, 12, 2000])
    per_unit = 1 if of == "row" else 2
    query = bounds.covariance(ends, unit, per_unit=per_unit)
    found = query.finish(grid.to_float(query.steps(rows, -26), -26))
    expected = np.cov(clipped.T, bias=True)
    assert np.array([list(row.values()) for row in found.values()]) == pytest.approx(expected, rel=1e-7, abs=1e-6)
    query = bounds.covariance(ends, unit, per_unit=per_unit, correlation=True, project=True)
    found = query.finish(grid.to_float(query.steps(rows, -26), -26))
    expected = np.corrcoef(clipped.T)
    assert np.array([list(row.values()) for row in found.values()]) == pytest.approx(expected, rel=1e-7, abs=1e-7)


WIDE = (-1e100, 1e100)


def test_only_whole_rows_count_and_their_order_does_not_matter() -> None:
    query = bounds.covariance(TWO, Unit())
    own = [({"x": 7.0, "y": 100.0},), ({"x": NAN, "y": 1.0},), ({"x": 1.0},), ({"x": -INF, "y": 1e300},), ({},)]
    assert steps(query, own, -2) == [8, 0, 8, 0, 4, 4]
    assert steps(query, own[::-1], -2) == steps(query, own, -2)
    assert steps(query, [], -2) == [0] * 6


@steady
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=40),
    st.floats(0.01, 60),
    st.tuples(*[st.floats(-1, 1)] * 6),
    st.booleans(),
    st.booleans(),
)
def test_the_error_bars_hold_for_any_noise_within_the_width(
    ys: Any, width: float, off: Any, correlation: bool, project: bool
) -> None:
    query = Covariance(intervals={"x": (10, 30), "y": (-1, 1)}, unit=Unit(), correlation=correlation, project=project)
    y = np.array(ys)
    squares = (y * y - 0.5).sum(axis=0)
    noisy = np.array([len(y), *y.sum(axis=0), (y[:, 0] * y[:, 1]).sum(), *squares]) + width * np.array(off)
    truth = np.cov((y * [10, 1]).T, bias=True)
    if correlation:
        if truth[0, 0] < 1e-6 or truth[1, 1] < 1e-6:
            return
        truth = np.corrcoef(y.T)
    found, bars = (
        np.array([list(r.values()) for r in v.values()]) for v in (query.finish(noisy), query.error(noisy, width))
    )
    assert np.isfinite(bars).all() and (np.abs(found - truth) <= bars * (1 + 1e-9) + 1e-6).all()


def test_a_projected_answer_has_no_negative_eigenvalue() -> None:
    rng = np.random.default_rng(4)
    rows = rows_of([({"x": v, "y": 10 * v},) for v in rng.normal(2, 2, 30)], Unit())
    for correlation in (False, True):
        query = bounds.covariance(TWO, Unit(), project=True, correlation=correlation)
        plan = m.Gaussian(query=query, epsilon=1, delta=1e-6)
        run, least = seeded(), []
        for _ in range(50):
            found = plan.finish(plan._run(rows, run))
            least.append(np.linalg.eigvalsh(np.array([list(row.values()) for row in found.values()])).min())
        assert min(least) >= -1e-8


def test_error_bars_cover() -> None:
    rng = np.random.default_rng(5)
    people = [({"x": a, "y": 10 * a + b},) for a, b in rng.normal(2, 2, (2000, 2))]
    rows = rows_of(people, Unit())
    query = bounds.covariance(TWO, Unit())
    plan = m.Gaussian(query=query, rho=0.5)
    truth = query.finish(grid.to_float(query.steps(rows, -40), -40))
    run = seeded()
    raws = [plan._run(rows, run) for _ in range(300)]
    for a, b in (("x", "y"), ("x", "x")):
        hits = [abs(plan.finish(raw)[a][b] - truth[a][b]) <= plan.error(raw, 0.05)[a][b] for raw in raws]
        assert sum(hits) >= 0.95 * 300 - 4 * math.sqrt(300 * 0.05 * 0.95)


def test_odd_noisy_numbers_are_finite() -> None:
    for options in product((False, True), repeat=2):
        query = bounds.covariance(TWO, Unit(), correlation=options[0], project=options[1])
        for noisy in ([0.0] * 6, [-5.0] * 6, [1e-30, 5, -5, 9, 9, 9], [10, 100, -100, 0, 0, -90]):
            values, bars = query.finish(np.array(noisy)), query.error(np.array(noisy), 2.0)
            flat = [v for table in (values, bars) for row in table.values() for v in row.values()]
            assert np.isfinite(flat).all() and values["x"]["x"] >= 0
    assert exponents(query)


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"x": (0, 1)},
        {"x": (0, 1), "y": (1, 1)},
        {"x": (0, 1), "y": 3},
        {"x": (0, 1), "": (0, 1)},
        [("x", 0, 1)],
        {"x": (0, 1), "y": (0, NAN)},
    ],
)
def test_bad_columns_are_refused(columns: Any) -> None:
    with pytest.raises(ArgumentError):
        bounds.covariance(columns, Unit())
