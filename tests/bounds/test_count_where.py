from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, bounds, record
from sfumato import mechanisms as m
from sfumato.bounds import Among, Between
from sfumato.errors import ArgumentError, PlanError
from sfumato.schema import category, flag, real, whole
from tests.bounds.neighbouring import GROUPS, TABLE, UNITS, holds, steps
from tests.helpers import read

INF, NAN = math.inf, math.nan
ROWS: list[dict[str, Any]] = [
    {"ward": "a", "x": 0.1, "n": 3},
    {"ward": "b", "x": INF, "n": 5},
    {"ward": "c", "x": 0.1},
    {"ward": None, "x": NAN, "n": 3},
    {"ward": "strange", "x": -5.0, "n": 2**70},
]


@pytest.mark.parametrize("unit", [*UNITS, *GROUPS], ids=str)
def test_no_neighbour_moves_it_further_than_it_says(unit: Unit) -> None:
    for per_unit in (1, 2, 3) if unit.column else (1,):
        query = bounds.count_where(unit, {"ward": ["a", "b"], "x": (0, None)}, per_unit=per_unit)
        holds(query, ROWS, reach=1, others=(({"ward": "a", "x": 1.0},), ({"ward": "a"},)))
        assert query.monotone == (unit.change != "replace") and query.whole


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"ward": ["a", "b"]}, 2),
        ({"ward": ["unknown"]}, 0),
        ({"ward": ("a", "c")}, 2),
        ({"x": (0.1, 0.1)}, 2),
        ({"x": (None, 0.1)}, 3),
        ({"x": (0.1, None)}, 3),
        ({"x": (0, 1e99)}, 2),
        ({"n": (3, 5)}, 3),
        ({"n": (3.2, 4.9)}, 0),
        ({"n": (None, 1e99)}, 4),
        ({"n": (1e50, None)}, 0),
        ({"n": (5, None)}, 2),
        ({"ward": ["c"], "n": (3, 3)}, 0),
        ({"ward": ["a"], "n": (3, 3), "x": (None, 1)}, 1),
    ],
)
def test_it_counts_the_rows_that_satisfy_every_condition(where: Any, count: int) -> None:
    query = bounds.count_where(Unit(), where)
    assert steps(query, [(row,) for row in ROWS], -4) == [16 * count] == steps(query, [(r,) for r in ROWS[::-1]], -4)
    assert record.parse(record.canonical(query)) == query
    assert m.Laplace(query=query, epsilon=1).check(TABLE.table()) is None


def test_values_beyond_the_schema_s_bounds_are_clamped_first() -> None:
    table = Schema.of(age=real(0, 120), years=whole(0, 120))
    rows = read(table, Unit(), age=np.array([-3.0, 50, 130, INF, NAN]), years=np.array([-3.0, 50, 130, INF, NAN]))
    for column in ("age", "years"):
        assert bounds.count_where(Unit(), {column: (100, 120)}).steps(rows, 0).tolist() == [2]
        assert bounds.count_where(Unit(), {column: (None, 0)}).steps(rows, 0).tolist() == [1]


def test_flags_and_whole_categories() -> None:
    table = Schema.of(on=flag(), code=category([1, 2, 3]))
    rows = read(table, Unit(), on=[True, "no", None, 1], code=[1, 2, 3, 9])
    assert bounds.count_where(Unit(), {"on": [True]}).steps(rows, 0).tolist() == [2]
    assert bounds.count_where(Unit(), {"on": (True, False)}).steps(rows, 0).tolist() == [3]
    assert bounds.count_where(Unit(), {"code": [1, 3]}).steps(rows, 0).tolist() == [2]
    assert bounds.count_where(Unit(), {"code": Among((1, 2))}).steps(rows, 0).tolist() == [2]
    # A pair of numbers is an interval, and a category has none: refused, never counted wrongly.
    with pytest.raises(PlanError, match="code"):
        m.Laplace(query=bounds.count_where(Unit(), {"code": (1, 3)}), epsilon=1).check(table.table())


@pytest.mark.parametrize(
    "where",
    [
        {},
        None,
        "ward",
        {"ward": []},
        {"ward": "a"},
        {"ward": ["a", "a"]},
        {"ward": ["a", 1]},
        {"x": (None, None)},
        {"x": (2, 1)},
        {"x": (NAN, 1)},
        {"x": (0, INF)},
        {"x": ("0", 1)},
        {"": ["a"]},
        {3: ["a"]},
    ],
)
def test_bad_conditions_are_refused(where: Any) -> None:
    with pytest.raises(ArgumentError):
        bounds.count_where(Unit(), where)


def test_it_says_what_it_counts() -> None:
    where = {"ward": ["a", "b"], "x": (1, 2.5), "n": (None, 3), "y": (4, None)}
    text = "rows with ward in a, b and x from 1 to 2.5 and n at most 3 and y at least 4"
    assert bounds.count_where(Unit(), where).names == (text,)
    assert Between(1, None).column.lower is not None
