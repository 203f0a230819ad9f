"""Leaves and bins: exact edges, in order, never an error, whatever a cell holds."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.query.expressions import trees
from sfumato.query.kinds import Kind, Typed
from sfumato.query.leaves import MOST_BINS, Leaves, bin_of, leaves_of
from sfumato.query.refusal import QueryError
from sfumato.sources.duckdb import DUCKDB
from tests.query.databases import passing_database

X = exp.column("x", quoted=True)


def run(tree: exp.Expression, values: Any, type_: Any) -> list[Any]:
    t = pa.table({"i": range(len(values)), "x": pa.array(values, type=type_)})
    assert t.num_rows
    with passing_database() as connection:
        connection.register("t", t)
        rows = connection.sql(DUCKDB.text(exp.select(tree).from_("t").order_by("i"))).fetchall()
    return [each for (each,) in rows]


def real_leaf(tree: Leaves, x: float) -> int:
    held = min(max(Fraction(x), tree.lower), tree.upper)
    return math.floor(held / tree.width) - tree.first


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0, 100),
        (0, 1),
        (-1, 1),
        ("-1/3", "1e-3"),
        (1e15, 1e15 + 1),
        (-1e300, 1e300),
        (1e-300, 2e-300),
        (5, 5),
        (0, 5e-324),
    ],
)
def test_leaves_of_real_numbers_have_exact_edges_and_keep_the_order(lower: Any, upper: Any) -> None:
    kind = Kind("real", Fraction(lower), Fraction(upper))
    tree = leaves_of(kind)
    ends = [float(tree.lower), float(tree.upper)]
    edges = [float((tree.first + i) * tree.width) for i in range(0, tree.count + 1, max(tree.count // 200, 1))]
    near = [y for x in edges + ends + [0.0] for y in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))]
    tiny = 1e-290 if tree.width > 1 else 0.0  # scaled down, these round to 0
    values = sorted(x for x in near if ends[0] <= x <= ends[1] and (x == 0 or abs(x) >= tiny))
    found = run(tree.leaf(Typed(X, kind)), values, pa.float64())
    assert found == [real_leaf(tree, x) for x in values]
    assert found == sorted(found)
    assert min(found) == 0 and max(found) == tree.count - 1
    assert math.prod(tree.fanout) >= tree.count
    assert tree.count <= 4097
    leaf = np.array(found)
    assert (tree.least(leaf) <= values).all() and (np.array(values) <= tree.most(leaf)).all()


@settings(max_examples=30, deadline=None)
@given(
    bounds=st.tuples(*[st.floats(-1e12, 1e12, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-290)] * 2).filter(
        lambda pair: pair[0] < pair[1]
    ),
    # Closer to 0 a value may round to 0 when it is scaled: in order all the same, as the module says.
    values=st.lists(st.floats(allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-290), min_size=1, max_size=20),
)
def test_values_outside_count_at_the_bounds(bounds: tuple[float, float], values: list[float]) -> None:
    tree = leaves_of(Kind("real"), bounds)
    found = run(tree.leaf(Typed(X, Kind("real"))), values, pa.float64())
    clamped = [min(max(x, bounds[0]), bounds[1]) for x in values]
    assert found == [real_leaf(tree, x) for x in clamped]
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(found)[order]) >= 0).all()


def test_odd_cells_are_no_error() -> None:
    tree = leaves_of(Kind("real"), (0, 100))
    odd = [None, math.inf, -math.inf, -0.0, 5e-324, 1e308, math.nan]
    found = run(tree.leaf(Typed(X, Kind("real"))), odd, pa.float64())
    assert found == [None, tree.count - 1, 0, 0, 0, tree.count - 1, tree.count - 1]
    bounded = Kind("real", Fraction(0), Fraction(100))
    assert run(tree.leaf(Typed(X, bounded)), [None, math.nan, math.inf, 1.0], pa.float64()) == [None, None, None, 32]


@pytest.mark.parametrize(
    "ends", [(0, 9), (-7, 4088), (-(2**63), 2**63 - 1), (-(2**62), 2**62 - 1), (-5, 10**6), (3, 3)]
)
def test_leaves_of_whole_numbers(ends: tuple[int, int]) -> None:
    low, high = ends
    kind = Kind("whole", Fraction(low), Fraction(high))
    for given_kind in (kind, Kind("whole")):
        tree = leaves_of(given_kind, (low, high))
        values = sorted({v for k in range(65) for v in (low + high * k // 64, low + k, high - k) if low <= v <= high})
        found = run(tree.leaf(Typed(X, given_kind)), values, pa.int64())
        assert found == sorted(found)
        assert found[0] == 0 and found[-1] == tree.count - 1 <= 4096
        if tree.type == "whole":
            assert found == [(v - low) // int(tree.width) for v in values]
        extremes = run(tree.leaf(Typed(X, Kind("whole"))), [-(2**63), None, 2**63 - 1], pa.int64())
        assert extremes == [0, None, tree.count - 1]
    if high - low < 4096:
        assert tree.width == 1
        assert tree.at(np.array([0, high - low]), np.array([0.7, 1.0])).tolist() == [low, high]


def test_dates_by_days_and_moments_by_microseconds() -> None:
    days = datetime.date(2020, 1, 1), datetime.date(2020, 12, 31)
    tree = leaves_of(Kind("date"), days)
    assert (tree.count, tree.width) == (366, 1)
    values = [days[0], datetime.date(2020, 2, 29), days[1], datetime.date(1, 1, 1), datetime.date(9999, 1, 1), None]
    assert run(tree.leaf(Typed(X, Kind("date"))), values, pa.date32()) == [0, 59, 365, 0, 365, None]
    assert str(tree.shown(np.array([59.0]))[0]) == "2020-02-29"
    endless = run(tree.leaf(Typed(exp.cast(X, "DATE"), Kind("date"))), ["infinity", "-infinity"], pa.string())
    assert endless == [365, 0]

    day = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 23, 59, 59, 999999)
    tree = leaves_of(Kind("moment"), day)
    width = datetime.timedelta(microseconds=int(tree.width))
    moments = [day[0], day[0] + width - datetime.timedelta(microseconds=1), day[0] + width, day[1], None]
    assert run(tree.leaf(Typed(X, Kind("moment"))), moments, pa.timestamp("us")) == [0, 0, 1, tree.count - 1, None]
    assert tree.shown(tree.least(np.array([1])))[0] == np.datetime64(day[0] + width)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_trees_hold_their_leaves_and_few_values_need_one_level(noise: str) -> None:
    for values in (1, 2, 5, 16, 17, 100, 1000, 4096):
        tree = leaves_of(Kind("whole", Fraction(1), Fraction(values)), noise=noise)
        assert tree.count == values
        assert math.prod(tree.fanout) >= values
        assert tree.strides[-1] == 1
        assert len(tree.strides) == tree.levels
    assert leaves_of(Kind("whole", Fraction(1), Fraction(2)), noise=noise).levels == 1
    assert leaves_of(Kind("real", Fraction(0), Fraction(100)), noise="laplace").fanout == (15, 15, 15)


def test_what_is_refused() -> None:
    clause = exp.column("name")
    with pytest.raises(QueryError, match="bounds that do not come from the data") as refusal:
        leaves_of(Kind("real"), node=clause)
    assert refusal.value.node is clause
    assert "greatest(least(x, 100), 0)" in refusal.value.rewrite
    with pytest.raises(QueryError, match="have none"):
        leaves_of(Kind("date"))
    with pytest.raises(QueryError, match="of type text"):
        leaves_of(Kind("text"))
    with pytest.raises(QueryError, match="above its upper bound"):
        leaves_of(Kind("real"), (1, 0))
    with pytest.raises(QueryError, match="no whole number"):
        leaves_of(Kind("whole"), (Fraction(1, 3), Fraction(2, 3)))


def expected_bin(edges: list[Any], x: Any) -> int | None:
    if x is None or not edges[0] <= x <= edges[-1]:
        return None
    return min(sum(x >= edge for edge in edges) - 1, len(edges) - 2)


@settings(max_examples=30, deadline=None)
@given(
    edges=st.lists(st.floats(-100, 100), min_size=2, max_size=9, unique=True).map(sorted),
    more=st.lists(st.one_of(st.none(), st.floats(-200, 200)), max_size=10),
)
def test_bins_of_real_numbers(edges: list[float], more: list[float | None]) -> None:
    near = [y for x in edges for y in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))]
    values = near + more + [math.inf, -math.inf]
    found = run(bin_of(Typed(X, Kind("real")), edges), values, pa.float64())
    assert found == [expected_bin(edges, x) for x in values]


def test_bins_of_other_values() -> None:
    edges = [Fraction(-3, 2), 0, Fraction(1, 2), 3, Fraction(9, 2)]
    whole = [None, *range(-4, 7), 2**63 - 1]
    assert run(bin_of(Typed(X, Kind("whole")), edges), whole, pa.int64()) == [expected_bin(edges, x) for x in whole]
    months = [datetime.date(2020, month, 1) for month in (1, 2, 3)]
    days = [datetime.date(2019, 12, 31), *months, datetime.date(2020, 3, 2), None]
    assert run(bin_of(Typed(X, Kind("date")), months), days, pa.date32()) == [None, 0, 1, 1, None, None]
    assert run(bin_of(Typed(X, Kind("real")), [0, 1]), [math.nan], pa.float64()) == [None]
    many = list(range(MOST_BINS + 1))
    found = run(bin_of(Typed(X, Kind("whole")), many), [0, 1, 777, MOST_BINS, MOST_BINS + 1], pa.int64())
    assert found == [0, 1, 777, MOST_BINS - 1, None]


@pytest.mark.parametrize("edges", [[], [1], [1, 1], [2, 1], list(range(MOST_BINS + 2))])
def test_edges_that_are_refused(edges: list[int]) -> None:
    with pytest.raises(QueryError, match="each above the one before"):
        bin_of(Typed(X, Kind("real")), edges)


def test_bins_that_are_refused() -> None:
    with pytest.raises(QueryError, match="GROUP BY this column instead"):
        bin_of(Typed(X, Kind("text")), [0, 1])
    with pytest.raises(QueryError, match="64-bit"):
        bin_of(Typed(X, Kind("whole")), [0, 2**64])


@pytest.mark.parametrize("value", [10**38, -(10**38), 2**63, 0, Fraction(1, 3)])
def test_one_number_has_one_leaf_however_large(value: Fraction) -> None:
    """Found by fuzzing: the place of 10^38 on a grid of ones is no 64-bit integer."""
    leaves = leaves_of(Kind("real", Fraction(value), Fraction(value)))
    assert leaves.count == 1 and abs(leaves.first) < 2**63
    assert leaves.leaf(Typed(trees.real(float(value)), Kind("real"))) is not None
