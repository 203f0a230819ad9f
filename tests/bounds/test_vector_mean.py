from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds, grid
from sfumato import mechanisms as m
from sfumato.bounds import Sensitivity, VectorMean, vector_means
from sfumato.errors import ArgumentError
from sfumato.schema import key, real
from sfumato.units import RELATIONS
from tests.bounds.neighbouring import GROUPS, UNITS, gap, holds, rows_of, steps, within
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
steady = settings(derandomize=True, deadline=None, max_examples=150)


FEW = (0, 1, 4, 5, 8, 10, 13)  # of the contents below: opposites, near the centre, infinite, NULL


def contents(radius: float, centre: tuple[float, float]) -> list[dict[str, Any]]:
    angles = [math.pi * i / 4 for i in range(8)]
    ring = [{"x": centre[0] + 2 * radius * math.cos(a), "y": centre[1] + 2 * radius * math.sin(a)} for a in angles]
    inner = [{"x": centre[0] + radius * 0.3, "y": centre[1]}, {"x": centre[0], "y": centre[1]}]
    odd = [{"x": INF, "y": -INF}, {"x": NAN, "y": 1.0}, {"x": 1e300, "y": -1e300}, {}]
    return [*ring, *inner, *odd]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("radius", "centre"), [(1, (0, 0)), (1e-3, (1e6, -5)), (1e90, (0, 1))])
def test_no_neighbour_moves_it_further_than_it_says(radius: float, centre: tuple[float, float], unit: Unit) -> None:
    given_ = contents(radius, centre)
    for per_unit in (1, 2) if unit.column else (1,):
        query = bounds.vector_mean(["x", "y"], radius, unit, per_unit=per_unit, centre=centre)
        near = given_ if unit.column is None else [given_[i] for i in FEW]
        holds(query, near, reach=0.99, others=(({"x": 0.5, "y": 3.0},), ({"x": -9.0, "y": 7.0}, {"x": 0.1, "y": 0.1})))


@pytest.mark.parametrize("unit", GROUPS, ids=str)
def test_groups(unit: Unit) -> None:
    query = bounds.vector_mean(["x", "y"], 3, unit, per_unit=2 if unit.column else 1)
    holds(query, [contents(3, (0, 0))[i] for i in FEW], reach=0.99)


@dataclass(frozen=True, kw_only=True)
class _Smaller(VectorMean):
    """A broken one: the count comes for nothing."""

    @property
    def sensitivity(self) -> Sensitivity:
        right = super().sensitivity
        return Sensitivity(right.l1, right.l2_squared - self._weight**2, right.linf)


def test_too_small_a_sensitivity_is_caught() -> None:
    with pytest.raises(AssertionError):
        holds(_Smaller(axes=("x", "y"), radius=1, unit=Unit()), contents(1, (0, 0)))


numbers = st.one_of(st.floats(allow_nan=False), st.floats(-2, 2), st.integers(-3, 3).map(float))


@steady
@given(st.integers(1, 6).flatmap(lambda d: st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=1, max_size=8)))
def test_a_clipped_row_is_in_the_ball_exactly_and_nearly_where_it_was(ys: Any) -> None:
    y = np.array(ys)
    whole = vector_means._into_ball(y.T).T
    for row, clipped in zip(ys, whole.tolist(), strict=True):
        assert sum(v * v for v in clipped) <= 4**30
        if any(map(math.isinf, row)):
            row = [math.copysign(1, v) if math.isinf(v) else 0.0 for v in row]
        length = max(1.0, math.hypot(*row))
        biggest = max(1.0, *map(abs, row))
        length = math.hypot(*(v / biggest for v in row)) if math.isinf(length) else length / biggest
        assert clipped == pytest.approx([v / biggest / length * 2**30 for v in row], abs=3)
        assert np.array_equal(vector_means._into_ball(np.array([row]).T)[:, 0], clipped)  # whatever stands beside it


def test_rows_of_the_length_of_the_radius_are_not_too_long() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 10, 300):
        y = rng.normal(size=(2000, d)) * rng.choice([1, 1e-3, 1e200], (2000, 1))
        y[0] = 1 / math.sqrt(d)
        whole = vector_means._into_ball(y.T).T
        squares = [sum(v * v for v in row) for row in whole[:100].tolist()]
        assert max(squares) <= 4**30 and int(np.einsum("ij,ij->i", whole, whole).max()) > 4**30 * (1 - 1e-6)


@steady
@given(
    st.lists(st.tuples(numbers, numbers), max_size=7),
    st.lists(st.tuples(numbers, numbers), max_size=7),
    st.sampled_from(RELATIONS),
    st.integers(1, 3),
    st.integers(-42, 3),
)
def test_random_neighbours(one: Any, other: Any, change: Any, per_unit: int, exponent: int) -> None:
    query = bounds.vector_mean(("x", "y"), 1.5, Unit("user:user", change), per_unit=per_unit, centre=(0.1, -1))
    before = [{"x": a, "y": b} for a, b in one]
    after: Any = {
        "add-remove": [],
        "zero-out": [{}] * len(one),
        "replace": [{"x": a, "y": b} for a, b in other],
    }[change]
    a, b = (steps(query, [own, [{"x": 0.2, "y": 0.3}]], exponent) for own in (before, after))
    assert within(gap(a, b), query.in_steps(exponent))


def test_sensitivities_are_tight_in_many_dimensions() -> None:
    for d in (1, 4, 17, 300, 5000):
        names = [f"c{i}" for i in range(d)]
        one, exchanged = (bounds.vector_mean(names, 2, Unit(change=change)) for change in ("add-remove", "replace"))
        assert 1 < one.l2 <= math.sqrt(1.25) and exchanged.l2 == 2
        assert one.l1 == pytest.approx(math.sqrt(d) + float(one._weight)) and exchanged.l1 >= 2 * math.sqrt(d)


@pytest.mark.parametrize("of", ["row", "user:user"])
def test_values_agree_with_numpy_to_the_grid(of: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(100_000, 4)) * [1, 2, 3, 0.1] + [0.5, 1, 0, -1]
    centre, radius = np.array([0, 1, 0, 0]), 2.5
    off = x - centre
    clipped = centre + off * np.minimum(1, radius / np.linalg.norm(off, axis=1))[:, None]
    table = Schema.of(user=key(), **{name: real(-100, 100) for name in "abcd"})
    rows = read(table, Unit(of), user=np.arange(len(x)) // 4, **dict(zip("abcd", x.T, strict=True)))
    per_unit = 4 if of != "row" else 1
    query = bounds.vector_mean(list("abcd"), radius, Unit(of), per_unit=per_unit, centre=(0, 1, 0, 0))
    found = query.finish(grid.to_float(query.steps(rows, -28), -28))
    assert list(found.values()) == pytest.approx(clipped.mean(axis=0).tolist(), abs=1e-7)


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    x = rng.choice([0.0, 4.66e-10, 1.0, 1e300, -1e300, INF, 0.7], (50_000, 2))
    table, query = Schema.of(a=real(0, 1), b=real(0, 1)), bounds.vector_mean(["a", "b"], 1, Unit())

    def run(at: Any) -> list[int]:
        return query.steps(read(table, Unit(), a=at[:, 0], b=at[:, 1]), -40).tolist()  # type: ignore[no-any-return]

    assert all(run(rng.permutation(x)) == run(x) for _ in range(3))
    assert within(gap(run(x), run(x[1:])), query.in_steps(-40))


@steady
@given(
    st.lists(st.tuples(st.floats(-0.7, 0.7), st.floats(-0.7, 0.7)), min_size=1, max_size=40),
    st.floats(0.01, 60),
    st.tuples(*[st.floats(-1, 1)] * 3),
)
def test_the_error_bars_hold_for_any_noise_within_the_width(ys: Any, width: float, off: Any) -> None:
    query = bounds.vector_mean(("x", "y"), 3, Unit(), centre=(5, 0))
    y = np.array(ys)
    noisy = np.array([*y.sum(axis=0), len(y) * float(query._weight)]) + width * np.array(off)
    truth = dict(zip("xy", [5, 0] + 3 * y.mean(axis=0), strict=True))
    found, bars = query.finish(noisy), query.error(noisy, width)
    assert all(abs(found[name] - truth[name]) <= bars[name] * (1 + 1e-9) + 1e-9 for name in "xy")
    assert math.hypot(found["x"] - 5, found["y"]) <= 3 * (1 + 1e-9)


def test_error_bars_cover() -> None:
    rng = np.random.default_rng(5)
    rows = rows_of([({"x": a, "y": b},) for a, b in rng.normal(1, 2, (500, 2))], Unit())
    query = bounds.vector_mean(("x", "y"), 4, Unit())
    plan = m.Gaussian(query=query, rho=0.5)
    truth = query.finish(grid.to_float(query.steps(rows, -40), -40))
    run = seeded()
    raws = [plan._run(rows, run) for _ in range(400)]
    hits = [abs(plan.finish(raw)["x"] - truth["x"]) <= plan.error(raw, 0.05)["x"] for raw in raws]
    assert sum(hits) >= 0.95 * 400 - 4 * math.sqrt(400 * 0.05 * 0.95)


def test_empty_and_hidden_counts_answer_the_centre() -> None:
    query = bounds.vector_mean(("x", "y"), 3, Unit(), centre=(5, 0))
    for noisy in ([0.0, 0, 0], [4.0, -3, -1]):
        assert query.finish(np.array(noisy)) == {"x": 5, "y": 0}
        assert query.error(np.array(noisy), 1.0) == {"x": 3, "y": 3}
    assert steps(query, [], -3) == [0, 0, 0]


@pytest.mark.parametrize(
    "fields",
    [
        {"columns": []},
        {"columns": ["x", "x"]},
        {"columns": "xy"},
        {"columns": [1, 2]},
        {"radius": 0},
        {"radius": -1},
        {"radius": INF},
        {"radius": NAN},
        {"centre": (1,)},
        {"centre": (1, NAN)},
    ],
)
def test_bad_arguments_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        bounds.vector_mean(**{"columns": ["x", "y"], "radius": 1, "unit": Unit(), **fields})
