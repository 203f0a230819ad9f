"""Rows become whole numbers of steps, in the engine."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from sfumato.errors import ArgumentError
from sfumato.query.measures import WEIGHT_BITS, Coordinate, Measure, count_rows, weight_bits
from sfumato.sources.duckdb import DUCKDB

CELLS = [0.0, -0.0, 1.0, 2.5, -3.75, 1e9, -1e9, 1e308, -1e308, 5e-324, None, math.inf, -math.inf]


def coordinate(low: Any, high: Any, *, whole: bool = False, nullable: bool = True, inside: bool = False) -> Coordinate:
    measure = Measure("m", exp.column("x"), Fraction(low), Fraction(high), whole, "m", nullable, inside)
    return Coordinate(measure, Fraction(8), Fraction(1), Fraction(100), WEIGHT_BITS)


def quanta(each: Coordinate, cells: list[Any]) -> list[Any]:
    tree = each.quantum()
    assert tree is not None
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (i INT, x DOUBLE)")
        engine.executemany("INSERT INTO t VALUES (?, ?)", [[i, x] for i, x in enumerate(cells)])
        return [row[0] for row in engine.execute(f"SELECT {DUCKDB.text(tree)} FROM t ORDER BY i").fetchall()]


@pytest.mark.parametrize(("low", "high"), [(0, 10), (-5, 5), (-100, -1), (Fraction(1, 3), Fraction(2, 3)), (0, 10**8)])
def test_rows_are_clamped_and_rounded_to_the_grid(low: Any, high: Any) -> None:
    each = coordinate(low, high)
    step = Fraction(2) ** each.exponent
    for cell, steps in zip(CELLS, quanta(each, CELLS), strict=True):
        if cell is None:
            assert steps is None
            continue
        held = min(max(cell, float(low)), float(high))
        assert abs(steps - Fraction(held) / step) <= Fraction(1, 2) + 1
        assert each.ends[0] - 1 <= steps <= each.ends[1] + 1


def test_what_is_known_to_be_inside_is_not_clamped_and_never_raises() -> None:
    each = coordinate(0, 10, inside=True, nullable=False)
    assert quanta(each, [0.0, 10.0, 2.0**40 * 1e10]) == [0, Fraction(10) / Fraction(2) ** each.exponent, None]


def test_whole_numbers_are_themselves() -> None:
    each = coordinate(-5, 5, whole=True)
    assert each.exponent == 0
    assert quanta(each, [-7.0, -5.0, 3.0, 9.0]) == [-5, -5, 3, 5]


def test_every_row_counts_one() -> None:
    rows = Coordinate(count_rows(), Fraction(1), Fraction(1), Fraction(2), WEIGHT_BITS)
    assert rows.quantum() is None and rows.exponent == 0 and rows.steps == 2 << WEIGHT_BITS


@pytest.mark.parametrize("scale", [Fraction(1, 10**9), Fraction(1), Fraction(10**9)])
def test_the_grid_is_as_fine_as_the_noise_can_be_drawn(scale: Fraction) -> None:
    measure = Measure("m", exp.column("x"), Fraction(0), Fraction(1), False, "m")
    each = Coordinate(measure, Fraction(1), Fraction(1), scale, 12)
    assert 2**34 <= each.steps < 2**36


def test_weights_are_coarser_where_counts_need_wide_noise() -> None:
    assert weight_bits([(count_rows(), Fraction(10))]) == WEIGHT_BITS
    assert weight_bits([(count_rows(), Fraction(2**28))]) == 35 - 29
    assert weight_bits([]) == WEIGHT_BITS
    with pytest.raises(ArgumentError, match="rows wide: give a larger epsilon, or smaller limits"):
        weight_bits([(count_rows(), Fraction(2**33))])
