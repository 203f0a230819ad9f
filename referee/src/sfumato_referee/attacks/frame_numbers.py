"""N1 to N4 on frames: the sums of `bounds`, which add up in numpy, before any noise.

The same tables as through SQL (see sql_numbers.py). What is moved is told as a share of what the noise is made for, in
steps of the plan's own grid: at most 1 for neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import bounds
from sfumato.audit.made_up import MadeUp
from sfumato.bounds import Bounded
from sfumato.mechanisms.laplace import Laplace
from sfumato.rows import Rows
from sfumato.schema import Column, Table, category, key, real, whole
from sfumato.units import Unit

ROW, USER = Unit(), Unit("user:u")
Sum = Callable[..., Bounded]
"""Makes a bounded sum: `bounds.clipped_sum`, or a planted bug."""


def ones_then_tiny(half: int) -> NDArray[np.float64]:
    """Ones, then values that vanish beside the sum of the ones but not beside one less."""
    tiny = 4.66e-10 if half == 2**22 else 2.0**-53 * half * 1.0000001
    return np.concatenate([np.ones(half), np.full(half, tiny)])


def rounding(half: int, orders: int, adds: Sum = bounds.clipped_sum) -> tuple[float, int]:
    """N1: how far the first row moves the sum, and how many values all orders give."""
    x, order = ones_then_tiny(half), MadeUp(1)
    query = adds("x", 0, 1, ROW)
    exponent = _exponent(query)
    sums = [_steps(query, {"x": cells}, exponent) for cells in (x, x[1:])]
    seen = {tuple(sums[0])} | {tuple(_steps(query, {"x": x[order.order(len(x))]}, exponent)) for _ in range(orders)}
    return _share(query, exponent, *sums), len(seen)


def overflowing(kinds: Sequence[str], adds: Sum = bounds.clipped_sum) -> float:
    """N2: how far any row moves a sum at the end of its integer type."""
    worst = 0.0
    for kind in kinds:
        low, top = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        cells = np.array([top] * 3 + [low] * 2 + [1], dtype=kind)
        for lower, upper in ((min(low, 0), top), (-1, 1)):
            query = adds("x", lower, upper, ROW)
            exponent = _exponent(query)
            columns = {"x": whole(max(lower, -(2**63)), min(upper, 2**63 - 1))}, {"x": real(lower, upper)}
            for column in columns:
                every = _steps(query, {"x": cells}, exponent, column)
                for place in range(len(cells)):
                    less = _steps(query, {"x": np.delete(cells, place)}, exponent, column)
                    worst = max(worst, _share(query, exponent, every, less))
    return worst


def reordered(x: NDArray[np.float64], orders: int, adds: Sum = bounds.clipped_sum) -> int:
    """N3: how many sets of numbers the same rows give in many orders, for two units; 2 is right. (What order does to
    float sums of so few rows is below the grid; N1 has enough rows to see it.)"""
    u, w = np.arange(len(x)) % 23, np.array(["a", "b", "c"])[np.arange(len(x)) % 3]
    columns = {"u": key(), "x": real(-1e16, 1e16), "w": category(["a", "b", "c"])}
    draw, seen = MadeUp(3), set()
    for unit in (ROW, USER):
        queries = list(_queries(unit, adds, -1e16, 1e16, ("a", "b", "c")))
        for _ in range(orders):
            p = draw.order(len(x))
            rows = Rows.read(Table(columns), {"u": u[p], "x": x[p], "w": w[p]}, unit)
            seen.add((str(unit), *(tuple(map(int, each.steps(rows, _exponent(each)))) for each in queries)))
    return len(seen)


def poisoned(cells: Sequence[Any], adds: Sum = bounds.clipped_sum) -> float:
    """N4: how far one row with such a cell moves any query. (Whole numbers of steps are always finite.)"""
    columns = {"u": key(), "x": real(-3, 10), "w": category(["a", "b"])}
    clean: dict[str, list[Any]] = {"u": [1, 1, 2, 3], "x": [1.0, 2.5, -1.0, 9.0], "w": ["a", "b", "a", "b"]}
    worst = 0.0
    for unit in (ROW, USER):
        for query in _queries(unit, adds, -3, 10, ("a", "b")):
            exponent = _exponent(query)
            for cell in cells:
                bad = {"u": [*clean["u"], 4], "x": [*clean["x"], cell], "w": [*clean["w"], cell]}
                one, other = (_steps(query, given, exponent, columns, unit) for given in (clean, bad))
                worst = max(worst, _share(query, exponent, one, other))
    return worst


def _queries(unit: Unit, adds: Sum, low: float, top: float, words: Sequence[str]) -> Iterator[Bounded]:
    most = 3 if unit.column else 1
    yield bounds.count(unit, per_unit=most)
    yield adds("x", low, top, unit, per_unit=most)
    yield bounds.mean("x", low, top, unit, per_unit=most)
    yield bounds.histogram("w", words, unit, per_unit=most)


def _exponent(query: Bounded) -> int:
    return Laplace(query=query, epsilon=Fraction(1, 10)).exponent


def _steps(
    query: Bounded, cells: dict[str, Any], exponent: int, columns: dict[str, Column] | None = None, unit: Unit = ROW
) -> list[int]:
    table = Table(columns or {"x": real(0, 1)})
    return list(map(int, query.steps(Rows.read(table, cells, unit), exponent)))


def _share(query: Bounded, exponent: int, one: Sequence[int], other: Sequence[int]) -> float:
    gaps = [abs(here - there) for here, there in zip(one, other, strict=True)]
    allowed = query.in_steps(exponent)
    return max(float(Fraction(sum(gaps)) / allowed.l1), float(Fraction(max(gaps)) / allowed.linf))
