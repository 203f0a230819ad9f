"""Bins and crossed categories: what is counted where, exactly, and what one unit moves, by brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit, bounds, record
from sfumato import mechanisms as m
from sfumato.bounds import EqualBins
from sfumato.errors import ArgumentError, PlanError
from sfumato.schema import category, flag, key, real, whole
from sfumato.strategies import Identity, Tree
from tests.bounds.neighbouring import GROUPS, UNITS, WARDS, farthest, holds, within
from tests.helpers import read, seeded

INF, NAN = math.inf, math.nan
ROW = Unit()
TABLE = Schema.of(u=key(), x=real(-1e100, 1e100), n=whole(-(2**63), 2**63 - 1), ward=category(WARDS), on=flag())


def counts(query: Any, **columns: Any) -> list[int]:
    given_ = {"u": [], "x": [], "n": [], "ward": [], "on": []} | columns
    size = max(map(len, given_.values()))
    padded = {name: cells or [None] * size for name, cells in given_.items()}
    if not columns.get("u"):
        padded["u"] = list(range(size))
    return [int(v) for v in query.steps(read(TABLE, query.unit, **padded), 0)]


# What is counted where


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    values = [0, 4.999, 5, 9.999, 10, 20, -1, 20.001, INF, -INF, NAN, None]
    edges = (0, 5, 10, 20)
    assert counts(bounds.bins("x", edges, ROW), x=values) == [2 + 2, 2, 2 + 2]
    assert counts(bounds.bins("x", edges, ROW, outside="drop"), x=values) == [2, 2, 2]
    assert bounds.bins("x", edges, ROW).names == ("[0, 5)", "[5, 10)", "[10, 20]")


def test_a_value_written_like_an_edge_is_on_it() -> None:
    edges = [0.1, 0.3, 0.7, 1.1]
    assert counts(bounds.bins("x", edges, ROW), x=[0.1, 0.3, 0.7, 1.1]) == [1, 1, 2]
    assert counts(bounds.bins("x", [0, Fraction(1, 3), 1], ROW), x=[1 / 3]) == [0, 1]


def expected(cuts: Any, value: float | int, outside: str) -> int | None:
    """One value, compared exactly with each edge."""
    edges = cuts.tolist()  # Python compares floats and whole numbers exactly
    if not math.isfinite(value):
        clamped = edges[0] if value < 0 else edges[-1]
    else:
        clamped = min(max(value, edges[0]), edges[-1])
    if outside == "drop" and clamped != value:
        return None
    return min(sum(edge <= clamped for edge in edges) - 1, len(edges) - 2)


def assert_places(query: Any, values: list[Any], column: str) -> None:
    rows = read(TABLE, ROW, u=values, ward=[None] * len(values), on=[None] * len(values), **{
        name: values if name == column else [None] * len(values) for name in ("x", "n")
    })  # fmt: skip
    found, valid = query.places(rows)
    for value, place, ok in zip(values, found, valid, strict=True):
        assert (int(place) if ok else None) == expected(query.cuts, value, query.outside), value


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.fractions(-1000, 1000, max_denominator=100),
    st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=1000),
    st.sampled_from([1, 2, 3, 7, 10, 64, 333, 1000]),
    st.lists(st.floats(-3000, 3000), max_size=20),
    st.sampled_from(["clamp", "drop"]),
)
def test_equal_bins_agree_with_their_edges(
    low: Fraction, width: Fraction, count: int, values: list[float], outside: str
) -> None:
    query = bounds.bins_between("x", low, low + width, count, ROW, outside=outside)
    cuts = query.cuts
    near = [cuts, np.nextafter(cuts, -INF), np.nextafter(cuts, INF), (cuts[1:] + cuts[:-1]) / 2]
    picked = np.concatenate(near)[:: max(1, count // 4)].tolist()
    assert_places(query, [*values, *picked, INF, -INF], "x")
    assert (np.diff(cuts) > 0).all() and cuts[0] == float(low) and cuts[-1] == float(low + width)


def test_equal_bins_and_listed_bins_count_alike() -> None:
    equal = bounds.bins_between("x", -3, 11, 700, ROW)
    listed = bounds.bins("x", equal.cuts.tolist(), ROW)
    values = np.random.default_rng(5).normal(2, 5, 5000).tolist()
    assert counts(equal, x=values) == counts(listed, x=values)
    assert sum(counts(equal, x=values)) == 5000


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=10), st.integers(1, 60))
def test_whole_numbers_are_compared_exactly(values: list[int], count: int) -> None:
    top = 2**53 + 2
    near = [v for e in (2**53, 2**60, 2**62, -(2**62)) for v in (e - 1, e, e + 1)]
    query = bounds.bins("n", [-(2**62), 0, 2**53, top, 2**60, 2**62], ROW)
    assert_places(query, [*values, *near, top - 1, 2**63 - 1, -(2**63)], "n")
    equal = bounds.bins_between("n", 2**53, 2**60, count, ROW, outside="drop")
    assert_places(equal, [*values, *near, 2**63 - 1, -(2**63)], "n")


@pytest.mark.parametrize("lower,upper", [(-1e100, 1e100), (1e-90, 2e-90), (0, 1e-99), (1e15, 1e15 + 100)])
def test_bins_of_any_size(lower: float, upper: float) -> None:
    query = bounds.bins_between("x", lower, upper, 7, ROW)
    assert_places(query, [*query.cuts.tolist(), *np.nextafter(query.cuts, -INF).tolist(), 0.0, 5e-324, 1e308], "x")


def test_crossed_categories_are_counted_in_their_public_order() -> None:
    query = bounds.cross({"ward": ["b", "a"], "on": [True, False]}, ROW)
    assert query.names == (("b", True), ("b", False), ("a", True), ("a", False))
    found = counts(query, ward=["a", "a", "b", "c", None, "b"], on=[True, False, False, True, True, None])
    assert found == [0, 1, 1, 1]
    assert query.finish(np.arange(4.0)) == {("b", True): 0, ("b", False): 1, ("a", True): 2, ("a", False): 3}
    one = bounds.cross({"ward": WARDS}, ROW)
    assert counts(one, ward=list("aabcc")) == counts(bounds.histogram("ward", WARDS, ROW), ward=list("aabcc"))


def test_a_users_rows_are_scaled_down_together() -> None:
    unit = Unit("user:u")
    query = bounds.bins("x", [0, 1, 2], unit, per_unit=2)
    rows = read(TABLE, unit, u=[1] * 4 + [2], x=[0.5] * 3 + [1.5, 0.5], n=[0] * 5, ward=["a"] * 5, on=[True] * 5)
    assert query.steps(rows, -1).tolist() == [3 + 2, 1]  # in halves: 2 of user 1's rows, three to one


# What one unit moves

ROWS: list[dict[str, Any]] = [
    {},
    {"x": -1e300, "ward": "a", "on": True},
    {"x": 0.0, "ward": "a", "on": False},
    {"x": 4.0, "ward": "b", "on": True},
    {"x": 5.0, "ward": "c", "on": False},
    {"x": INF, "ward": "c", "on": None},
]


def cell_queries(unit: Unit, per_unit: int) -> list[Any]:
    make: dict[str, Any] = {"unit": unit, "per_unit": per_unit}
    return [
        bounds.bins("x", (0, 1, 3, 5), **make),
        bounds.bins("x", (0, 1, 5), outside="drop", **make),
        bounds.bins_between("x", -1, 5, 3, **make),
        bounds.cross({"ward": WARDS, "on": (True, False)}, **make),
    ]


@pytest.mark.parametrize("unit", UNITS + GROUPS, ids=str)
def test_no_neighbour_moves_them_further_than_they_say_and_some_that_far(unit: Unit) -> None:
    for per_unit in (1, 2) if unit.column else (1,):
        for query in cell_queries(unit, per_unit):
            holds(query, ROWS, others=[({"x": 1.0, "ward": "a", "on": True},)])


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_trees_of_them_too(unit: Unit) -> None:
    for query in cell_queries(unit, 2 if unit.column else 1):
        holds(bounds.hierarchical(query, branching=2), ROWS)
        for noise in ("gaussian", "laplace"):
            holds(bounds.cumulative(query, noise=noise), ROWS)


class Narrow(EqualBins):
    """Says that a unit moves half of what it does."""

    @property
    def sensitivity(self) -> bounds.Sensitivity:
        real = super().sensitivity
        return bounds.Sensitivity(real.l1 / 2, real.l2_squared / 4, real.linf / 2)


def test_a_sensitivity_that_is_too_small_is_noticed() -> None:
    query = Narrow(column="x", lower=-1, upper=5, count=3, unit=ROW)
    assert not within(farthest(query, ROWS, 0), query.in_steps(0))


# Running totals and hierarchies


def test_cumulative_takes_the_best_strategy_and_names_prefixes() -> None:
    few_cells = bounds.bins_between("x", 0, 4, 4, ROW)
    assert isinstance(bounds.cumulative(few_cells, noise="laplace").strategy, Identity)
    many = bounds.bins_between("x", 0, 1, 1000, ROW)
    tree, flat = bounds.cumulative(many), bounds.cumulative(many, strategy=Identity(cells=1000))
    assert isinstance(tree.strategy, Tree)
    errors = [m.Gaussian(query=query, rho=1).expected_error(0.05) or 0.0 for query in (tree, flat)]
    assert errors[0] < errors[1] / 4
    assert next(iter(bounds.cumulative(few_cells).finish(np.zeros(bounds.cumulative(few_cells).size)))) == "<= [0, 1)"
    wide, narrow = (bounds.cumulative(many, noise=noise).strategy for noise in ("laplace", "gaussian"))
    assert isinstance(wide, Tree) and isinstance(narrow, Tree) and wide.branching > narrow.branching


def test_running_totals_and_cells_come_out_within_their_bars() -> None:
    values = np.random.default_rng(3).normal(5, 2, 3000)
    rows = read(TABLE, ROW, u=values, x=values, n=values, ward=["a"] * 3000, on=[True] * 3000)
    cells = bounds.bins_between("x", 0, 10, 200, ROW)
    truth = np.array(cells.steps(rows, 0), dtype=float)
    for query, exact in ((bounds.cumulative(cells), np.cumsum(truth)), (bounds.hierarchical(cells), truth)):
        for plan in (m.Laplace(query=query, epsilon=1), m.Gaussian(query=query, rho=0.5)):
            raw = plan._run(rows, seeded(11))
            off = np.abs(np.array(list(plan.finish(raw).values())) - exact)
            assert (off <= np.array(list(plan.error(raw, 0.05).values()))).mean() > 0.9, plan
            assert off.max() <= np.array(list(plan.error(raw, 1e-6).values())).max()


def test_hierarchical_takes_a_branching() -> None:
    query = bounds.hierarchical(bounds.histogram("ward", WARDS, ROW), branching=3)
    assert query.strategy == Tree(cells=3, branching=3)
    assert bounds.hierarchical(bounds.histogram("ward", WARDS, ROW), branching=3, levels=1).strategy.measurements == 3


# Refusals


@pytest.mark.parametrize(
    "make",
    [
        lambda: bounds.bins("x", (0,), ROW),
        lambda: bounds.bins("x", (0, 0), ROW),
        lambda: bounds.bins("x", (1, 0), ROW),
        lambda: bounds.bins("x", (0, NAN), ROW),
        lambda: bounds.bins("x", (0, INF), ROW),
        lambda: bounds.bins("x", "0 1", ROW),
        lambda: bounds.bins("x", 5, ROW),
        lambda: bounds.bins("x", (1, 1 + Fraction(1, 2**60)), ROW),
        lambda: bounds.bins("x", (0, 1), ROW, outside="wrap"),
        lambda: bounds.bins("x", (0, 1), ROW, per_unit=2),
        lambda: bounds.bins_between("x", 0, 1, 0, ROW),
        lambda: bounds.bins_between("x", 1, 0, 5, ROW),
        lambda: bounds.bins_between("x", 1e15, 1e15 + 1, 100, ROW),
        lambda: bounds.bins_between("x", 0, 1, 2**25, ROW),
        lambda: bounds.cross({}, ROW),
        lambda: bounds.cross({"ward": []}, ROW),
        lambda: bounds.cross({"ward": ["a", "a"]}, ROW),
        lambda: bounds.cross({"a": range(5000), "b": range(5000)}, ROW),
        lambda: bounds.cumulative(bounds.count(ROW)),
        lambda: bounds.cumulative(bounds.histogram("ward", WARDS, ROW), noise="none"),
        lambda: bounds.hierarchical(bounds.histogram("ward", WARDS, ROW), branching=1),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ArgumentError, match="not allowed"):
        make()


def test_columns_of_another_kind_are_refused() -> None:
    plan = m.Laplace(query=bounds.bins("ward", (0, 1), ROW), epsilon=1)
    with pytest.raises(PlanError):
        plan.check(TABLE.table())
    with pytest.raises(PlanError):
        m.Laplace(query=bounds.cross({"x": ["a"]}, ROW), epsilon=1).check(TABLE.table())


def test_names_survive_json() -> None:
    for query in cell_queries(ROW, 1):
        assert record.parse(record.canonical(query)) == query
        assert record.parse(record.canonical(query.finish(np.zeros(query.size)))) == query.finish(np.zeros(query.size))
        assert len(set(query.names)) == query.size == len(query.names)


def test_shares_of_users_are_not_rounded_away() -> None:
    # 3,000 users with a row in each of three cells, of which one counts: a third of a row each, 1,000 to a cell.
    unit, users = Unit("user:u"), 3000
    rows = read(
        Schema.of(u=key(), w=category(["a", "b", "c"])),
        unit,
        u=np.repeat(np.arange(users), 3),
        w=["a", "b", "c"] * users,
    )
    for epsilon in (0.01, 1, 8):
        plan = m.Laplace(query=bounds.histogram("w", ["a", "b", "c"], unit), epsilon=epsilon)
        cells = np.ldexp(plan.query.steps(rows, plan.exponent).astype(float), plan.exponent)
        assert np.all(np.abs(cells - 1000) < 0.001 * plan.std + 1e-5)
