"""Rows per signed power of two: every value in its bin, and no unit moves more than it says."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Schema, Unit
from sfumato.bounds import Powers
from sfumato.errors import ArgumentError
from sfumato.schema import key, real, whole
from sfumato.units import RELATIONS
from tests.helpers import read

SCHEMA = Schema.of(u=key(), x=real(-100, 100))


def powers(unit: Unit | None = None, lowest: int = -1, highest: int = 3, per_unit: int = 1) -> Powers:
    return Powers(column="x", lowest=lowest, highest=highest, unit=unit or Unit(), per_unit=per_unit)


def bin_of(x: float, query: Powers) -> int:
    """From the definition: the first bin whose end is not nearer to zero."""
    if x == 0:
        return query.each_side
    ends = [2.0**e for e in range(query.lowest, query.highest + 1)]
    place = next((i for i, end in enumerate(ends) if abs(x) <= end), len(ends) - 1)
    return query.each_side + (place + 1 if x > 0 else -place - 1)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, -8.0, 8.5, 0.25, 5e-324])))
def test_every_value_falls_into_its_bin(values: list[float]) -> None:
    query = powers()
    want = np.zeros(len(query.names), dtype=np.int64)
    for x in values:
        want[bin_of(x, query)] += 1
    assert query.steps(read(SCHEMA, Unit(), u=list(range(len(values))), x=values), 0).tolist() == want.tolist()


def test_names_are_the_outer_ends() -> None:
    assert powers().names == (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    assert powers(lowest=0, highest=0).names == (-1.0, 0.0, 1.0)
    assert powers().finish(np.arange(11.0))[-8.0] == 0.0
    assert powers().columns["x"].interval == (-8, 8)


def test_whole_columns_and_odd_cells() -> None:
    rows = read(Schema.of(x=whole(-(2**62), 2**62)), Unit(), x=[3, -4, 0, 2**62, -(2**62)])
    assert powers().steps(rows, 0).tolist() == [1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1]
    rows = read(SCHEMA, Unit(), u=range(5), x=[math.nan, None, math.inf, -math.inf, "x"])
    assert powers().steps(rows, 0).tolist() == [1, *[0] * 9, 1]
    assert powers().steps(read(SCHEMA, Unit(), u=[], x=[]), -10).tolist() == [0] * 11


PEOPLE = [[], [0.0], [8.0], [-8.0], [0.3, 5.0], [1.0, 1.0, 1.0], [-3.0, 0.0, 3.0, 7.0], [None, 2.0]]


@pytest.mark.parametrize("change", RELATIONS)
@pytest.mark.parametrize("per_unit", [1, 2])
def test_no_unit_moves_it_further_than_declared(change: Any, per_unit: int) -> None:
    unit = Unit("user:u", change)
    query = powers(unit, per_unit=per_unit)
    most = query.in_steps(-12)
    reached = Fraction(0)
    for before, after in product(PEOPLE, PEOPLE):
        if change != "replace" and before:
            continue
        start = [None] * len(after) if change == "zero-out" else before
        tables = []
        for person in (start, after):
            cells = [*person, 1.0, -2.0]
            owners = ["me"] * len(person) + ["b", "c"]
            tables.append(query.steps(read(SCHEMA, unit, u=owners, x=cells), -12))
        move = [int(x) for x in tables[1] - tables[0]]
        assert sum(map(abs, move)) <= most.l1 and max(map(abs, move)) <= most.linf
        assert sum(x * x for x in move) <= most.l2_squared
        reached = max(reached, sum(map(abs, move)) / most.l1)
        if query.monotone:
            assert min(move) >= 0 or max(move) <= 0
    assert reached == 1


@pytest.mark.parametrize("wrong", [{"lowest": 5}, {"lowest": 1.5}, {"highest": 301}, {"lowest": -301}, {"per_unit": 2}])
def test_bad_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="|".join(wrong) + "|highest"):
        powers(**wrong)
