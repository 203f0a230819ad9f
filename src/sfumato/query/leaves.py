"""Where a value falls in the tree that quantiles are read from, and in a histogram: leaves, bins and their edges.

All of it comes from public bounds. A leaf is a function of the value alone that never falls as the value grows:

  real           floor(x * 2^-k) - first. Scaling by a power of two is exact, so is floor: the edges are the multiples
                 of 2^k, exactly. (Below 2^-1000 or so the product may round to 0: still in order.)
  whole          (x - lower) // width, in integers; where the resolution allows it, each value is a leaf by itself
  date, moment   the same of the days, or microseconds, since the lower bound
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from .. import grid, times
from ..sources.vocabulary import call
from .expressions import trees
from .expressions.intervals import INT64
from .kinds import Kind, Typed
from .refusal import QueryError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESOLUTION = 4096
"""Leaves of a column of real numbers, about: a public choice. More leaves are finer, and cost noise."""
MOST_BINS = 1000
_MICROSECOND = datetime.timedelta(microseconds=1)
_TALLEST = 8
_FEW = 6
_NARROWEST = -1022  # 2^1022 is a float, too


@dataclass(frozen=True)
class Leaves:
    """The leaves of one column, in order, and the tree above them.

    type    of the values
    lower   the public bounds, as numbers: what is outside counts at the bound. For dates and moments, days and
    upper   microseconds since `origin`
    width   of a leaf
    first   the number of the first leaf on the grid of all multiples of the width (real numbers only)
    count   how many there are
    fanout  the children of a node, level by level, from the top: together no fewer nodes than leaves
    """

    type: Literal["real", "whole", "date", "moment"]
    lower: Fraction
    upper: Fraction
    width: Fraction
    first: int
    count: int
    fanout: tuple[int, ...]
    origin: datetime.date | None = None

    @property
    def levels(self) -> int:
        """A unit is in each of them: with its counts at most R long, all noise is for sqrt(levels) R (L1: levels R)."""
        return len(self.fanout)

    @property
    def spreads(self) -> tuple[float, ...]:
        """The variance of a node's estimate at each level, where that of one noisy count is 1."""
        return tuple(map(_spread, (*self.fanout[1:], 0)))

    @property
    def strides(self) -> tuple[int, ...]:
        """How many leaves a node of each level covers, from the children of the root to the leaves."""
        return tuple(math.prod(self.fanout[level:]) for level in range(1, self.levels + 1))

    def leaf(self, x: Typed) -> exp.Expression:
        """The leaf of a value, from 0, as an engine BIGINT that never raises. NULL stays NULL."""
        held = self._held(x)
        if self.type == "real":
            scaled = trees.binary(exp.Mul, held, trees.real(1 / self.width))
            place = trees.nearest_or_null(exp.Floor(this=scaled), "BIGINT")
            return trees.binary(exp.Sub, place, trees.whole(self.first)) if self.first else place
        number = held
        if self.origin is not None:
            unit = trees.text("DAY" if self.type == "date" else "MICROSECOND")
            number = call("boundaries_between", unit, _literal(self.origin, self.type), held)
        elif self.lower:
            number = trees.binary(exp.Sub, held, trees.whole(int(self.lower)))
        return number if self.width == 1 else trees.binary(exp.IntDiv, number, trees.whole(int(self.width)))

    def _held(self, x: Typed) -> exp.Expression:
        """The value, clamped to the bounds where it may be outside. Comparisons leave NULL a NULL; NaN, if there were
        one, counts as large."""
        tree = x.tree.copy()
        if self.type == "real" and not x.kind.is_real:
            tree = trees.cast(tree, "DOUBLE")
        if self._holds(x.kind):
            return tree
        ends = (self.lower, self.upper) if self.origin is None else (self.date(self.lower), self.date(self.upper))
        low, high = (_literal(end, self.type) for end in ends)
        below = (trees.binary(exp.LT, tree, low), low.copy())
        above = (trees.binary(exp.GT, tree.copy(), high), high.copy())
        return trees.cases([below, above], tree.copy())

    def _holds(self, kind: Kind) -> bool:
        """Are all such values between the bounds? (A float is at least some number just where it is at least the float
        nearest to it.)"""
        if kind.lower is None or kind.upper is None or self.origin is not None:
            return False
        if self.type == "real":
            return float(self.lower) <= float(kind.lower) and float(kind.upper) <= float(self.upper)
        return self.lower <= kind.lower and kind.upper <= self.upper

    def date(self, number: Fraction | int) -> datetime.date:
        """The date or moment that a number stands for."""
        assert self.origin is not None
        step = datetime.timedelta(days=1) if self.type == "date" else _MICROSECOND
        return self.origin + int(number) * step

    def least(self, leaf: Integers) -> Floats:
        """The least value that each of these leaves may hold."""
        start = self.first * float(self.width) if self.type == "real" else float(self.lower)
        return np.maximum(start + leaf * float(self.width), float(self.lower))

    def most(self, leaf: Integers) -> Floats:
        """The largest value that each of these leaves may hold (of real numbers: what they lie below)."""
        step = 0.0 if self.type == "real" else 1.0
        start = self.first * float(self.width) if self.type == "real" else float(self.lower)
        return np.minimum(start + (leaf + 1) * float(self.width) - step, float(self.upper))

    def at(self, leaf: Integers, part: Floats) -> Floats:
        """The value that has this part of the leaf's rows below it, if they are spread evenly."""
        low, high = self.least(leaf), self.most(leaf)
        if self.type == "real":
            return np.asarray(np.minimum(low + part * (high - low), high))
        return np.minimum(low + np.floor(part * (high - low + 1)), high)

    def shown(self, numbers: Floats) -> NDArray[Any]:
        """Numbers as what they stand for: integers, dates (datetime64) or moments; real numbers as they are."""
        if self.origin is not None:
            unit: Literal["D", "us"] = "D" if self.type == "date" else "us"
            start = np.datetime64(self.origin, unit)
            return np.asarray(start + np.floor(numbers).astype(np.int64).astype(f"timedelta64[{unit}]"))
        return np.asarray(numbers)


def leaves_of(
    kind: Kind,
    bounds: tuple[Any, Any] | None = None,
    *,
    noise: str = "gaussian",
    resolution: int = RESOLUTION,
    node: exp.Expression | None = None,
) -> Leaves:
    """The leaves of a column whose values are of this kind, between these public bounds or else those of the kind.

    noise  "gaussian" or "laplace": which tree has the least error depends on it
    node   the clause to underline where this is refused
    """
    if not (kind.numeric or kind.temporal):
        rule = f"A quantile is taken of numbers, dates or moments, and these values are of type {kind.type}."
        write = ""
        if kind.textual and isinstance(node, exp.Min | exp.Max | exp.Median):
            write = f"{node.key.upper()}(CAST({node.this.sql('duckdb')} AS DECIMAL(9, 2)))"
        instead = f"read numbers in it: {write}" if write else "take the quantile of another column"
        raise QueryError(rule, f"{instead}, or COUNT(*) by this one", node, write=write)
    low: Any
    high: Any
    low, high = bounds if bounds is not None else (kind.lower, kind.upper)
    if bounds is None and not kind.bounded and kind.likely is not None and not kind.likely.generous:
        low, high = kind.likely.lower, kind.likely.upper  # what lies beyond counts at the ends, as with given bounds
    if low is None or high is None:
        limits = "greatest(least(x, 100), 0), or give bounds" if kind.numeric else "bounds"
        rule = "A quantile needs bounds that do not come from the data, and these values have none."
        raise QueryError(rule, f"use {limits}: bounds={{name of the column: (lowest, highest)}}", node)
    if kind.temporal:
        low, high = (times.nearest(int(end), kind.type) if isinstance(end, Fraction) else end for end in (low, high))
    if high < low:
        raise QueryError("The lower bound of a quantile is above its upper bound.", "swap them", node)
    if kind.temporal:
        days = kind.is_date
        step = datetime.timedelta(days=1) if days else _MICROSECOND
        return _whole_leaves(
            "date" if days else "moment", Fraction(0), Fraction((high - low) // step), noise, resolution, low
        )
    low, high = Fraction(low), Fraction(high)
    if kind.is_whole:
        low, high = Fraction(max(math.ceil(low), INT64[0])), Fraction(min(math.floor(high), INT64[1]))
        if low > high:
            raise QueryError("There is no whole number between the bounds of a quantile.", "widen them", node)
        if high - low <= INT64[1]:  # so differences are 64-bit integers
            return _whole_leaves("whole", low, high, noise, resolution, None)
    return _real_leaves(Fraction(float(low)), Fraction(float(high)), noise, resolution)


def _real_leaves(low: Fraction, high: Fraction, noise: str, resolution: int) -> Leaves:
    """Of the least power of two that needs no more leaves than asked for (and one for the upper bound itself), and
    whose multiples floats can tell apart."""
    largest = max(abs(low), abs(high))
    apart = grid.floor_log2(largest) - 51 if largest else 0
    width = Fraction(2) ** max(apart, 0)  # of one number, too: its place on the grid is a 64-bit integer
    if high > low:
        width = Fraction(2) ** max(grid.floor_log2((high - low) / resolution), apart, _NARROWEST)
        while high // width - low // width > resolution:
            width *= 2
    first = math.floor(low / width)
    count = math.floor(high / width) - first + 1
    return Leaves("real", low, high, width, first, count, _fanout(count, noise))


def _whole_leaves(
    kind: Literal["whole", "date", "moment"],
    low: Fraction,
    high: Fraction,
    noise: str,
    resolution: int,
    origin: datetime.date | None,
) -> Leaves:
    values = int(high - low) + 1
    width = -(-values // resolution)
    count = -(-values // width)
    return Leaves(kind, low, high, Fraction(width), 0, count, _fanout(count, noise), origin)


@lru_cache(maxsize=256)
def _fanout(count: int, noise: str) -> tuple[int, ...]:
    """The tree whose quantiles have the least variance, taking the worse of the median and p = 0.05 or 0.95.

    Let a place be anywhere in the range, with u of a node's b children before it (u uniform in [0, b]), and let v be
    the variance of an estimate. At the top, the gap F - p N has variance (b (1/2 - p + p^2) - 1/6) v; below, where
    children are made to add up to their parent, (b - 1)/6 v. And v grows with the levels h: as h for Gaussian noise, as
    h^2 for Laplace. A top with one child is a root that is measured itself.
    """
    power = 1 if noise == "gaussian" else 2

    def error(tree: tuple[int, ...]) -> float:
        top = max(tree[0] * (0.5 - p + p * p) for p in (0.5, 0.95)) - 1 / 6
        parts = [top, *((b - 1) / 6 for b in tree[1:])]
        return len(tree) ** power * sum(part * _spread(b) for part, b in zip(parts, (*tree[1:], 0), strict=True))

    plain = [_even(count, levels) for levels in range(1, _TALLEST + 1)]
    every = sorted(plain + [(1, *tree) for tree in plain], key=len)
    least = min(map(error, every))
    return next(tree for tree in every if error(tree) <= 1.05 * least)  # of those about as good, the fastest


def _spread(children: int) -> float:
    """A node's count (variance 1) and the sum of its children's (b) are averaged with weights b : 1, where its children
    are few. Where they are many there is little to gain, and noise for all of them would take long to draw."""
    return children / (children + 1) if 0 < children <= _FEW else 1.0


def _even(count: int, levels: int) -> tuple[int, ...]:
    tree = []
    for left in range(levels, 0, -1):
        branches = round(count ** (1 / left))
        branches = max(branches + (branches**left < count), 1)
        tree.append(branches)
        count = -(-count // branches)
    return tuple(tree)


def bin_of(x: Typed, edges: Sequence[Any], node: exp.Expression | None = None) -> exp.Expression:
    """Which bin a value is in, from 0: bins are [edge, next edge), the last one with its upper edge too, as those of
    `mechanisms.Histogram`. NULL for NULLs, and for values below the first edge or above the last: these count nowhere.

    An edge of real numbers is the float nearest to the number given, so a value written like an edge is on it.
    """
    if not (x.kind.numeric or x.kind.temporal):
        rule = f"HISTOGRAM counts numbers, dates or moments, and these values are of type {x.kind.type}."
        raise QueryError(rule, "GROUP BY this column instead", node)
    if not 2 <= len(edges) <= MOST_BINS + 1 or any(high <= low for low, high in pairwise(edges)):
        rule = f"HISTOGRAM takes 2 to {MOST_BINS + 1} edges, each above the one before."
        raise QueryError(rule, "list them in order, such as HISTOGRAM(x, [0, 10, 20, 50])", node)
    marks = list(edges)
    if x.kind.is_whole:
        # x < edge just where x < ceil(edge); the last edge is included, so it is the floor.
        marks = [*(math.ceil(edge) for edge in edges[:-1]), math.floor(edges[-1])]
        if not all(INT64[0] <= mark <= INT64[1] for mark in marks):
            raise QueryError("An edge of HISTOGRAM is beyond all 64-bit integers.", "leave it out", node)
    cuts = [_literal(mark, x.kind.type) for mark in marks]

    def search(low: int, high: int) -> exp.Expression:
        if high - low == 1:
            return trees.whole(low)
        middle = (low + high) // 2
        left = trees.binary(exp.LT, x.tree.copy(), cuts[middle].copy())
        return trees.when(left, search(low, middle), search(middle, high))

    least = trees.binary(exp.GTE, x.tree.copy(), cuts[0].copy())
    most = trees.binary(exp.LTE, x.tree.copy(), cuts[-1].copy())
    return trees.when(exp.And(this=least, expression=most), search(0, len(edges) - 1))


def _literal(value: Any, kind: str) -> exp.Expression:
    if kind == "date":
        return trees.date(value)
    if kind == "moment":
        return trees.moment(value)
    return trees.whole(int(value)) if kind == "whole" else trees.real(value)
