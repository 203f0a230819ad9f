"""How far the median can move: around this data set, and around every data set some changes away.

The data are n whole numbers in [low, high], sorted x_1 <= ... <= x_n, with x_i = low below and high above them. Their
median is x_m with m = ceil(n/2); a change replaces one number by any other. Nissim, Raskhodnikova and Smith 2007 show
that after k changes one more moves the median by at most

    A_k = max over t = 0..k+1 of x_{m+t} - x_{m+t-k-1},

and by that much for some k changes. So A_k is the largest gap x_{m+b} - x_{m-a} with a, b >= 0 and a + b = k + 1: the
k changes pull everything inside that gap out of it, the last one carries the median across.

    distance   the least k with A_k above a bound. One change of the data changes it by at most 1.
    smooth     S = max over k of exp(-beta k) A_k. It is at least A_0, and one change of the data changes it by a factor
               of at most exp(beta), as A_k(x) <= A_{k+1}(x') between neighbours.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..exact import Enclosure
from ..grid import Integers

Floats = NDArray[np.float64]

_HIGHEST = 2**50  # whole numbers up to here, and differences of them, are exact in float64
_SMALL, _FEW = 1 << 14, 1 << 5  # entries that are sooner all looked at; places on either side, for a start


@dataclass(frozen=True)
class Around:
    """What lies around the median: below[a] = x_{m-a} and above[b] = x_{m+b}, out to both ends of the range."""

    below: Integers
    above: Integers

    @property
    def median(self) -> int:
        return int(self.above[0])

    @property
    def width(self) -> int:
        return int(self.above[-1] - self.below[-1])

    def gap(self, k: int) -> int:
        """A_k, from its definition."""
        first, last = max(0, k + 2 - self.above.size), min(self.below.size - 1, k + 1)
        return int(np.max(self.above[k + 1 - last : k + 2 - first][::-1] - self.below[first : last + 1]))


def around_median(values: Integers, low: int, high: int) -> Around:
    """No value at all counts as one at `low`: how many there are is public."""
    ranked = np.sort(values) if values.size else np.array([low], dtype=np.int64)
    if not -_HIGHEST <= low <= int(ranked[0]) <= int(ranked[-1]) <= high <= _HIGHEST:
        raise ArithmeticError("values lie outside the interval they were clamped to")
    m = (ranked.size + 1) // 2
    return Around(np.append(ranked[m - 1 :: -1], low), np.append(ranked[m - 1 :], high))


def distance(around: Around, bound: int) -> int:
    """The least k with A_k > bound; how many changes away a median lies that one more change moves by more than that.

    For every a the least b with x_{m+b} - x_{m-a} > bound, and k = a + b - 1. It exists for the last a if for any."""
    if not 0 <= bound < around.width:
        raise ArithmeticError("no change moves the median by more than the bound")
    b = np.searchsorted(around.above, around.below + bound, side="right")
    a = np.arange(b.size)
    return int(np.min(np.where(b < around.above.size, a + b, around.below.size + around.above.size))) - 1


@dataclass(frozen=True)
class Smooth:
    """S = max over k of exp(-beta k) A_k, to any precision. `log` is ln S, off by less than `slack`."""

    table: _Table
    tops: Floats  # the largest entry of every row of the table
    beta: Fraction

    @cached_property
    def log(self) -> float:
        return float(self.tops.max())

    @property
    def slack(self) -> float:
        # 3 roundings of at most 35 + beta k each, as often as the rows are split; with room to spare.
        return 2.0**-45 * (64 + self.table.rate * float(self.table.a[-1] + self.table.b[-1]))

    def rough(self, bits: int) -> Enclosure:
        """As good as the float pass: nearly always good enough. The slack is far above the error of exp itself."""
        near = math.exp(self.log)
        low, high = near * (1 - 2 * self.slack), near * (1 + 2 * self.slack) + sys.float_info.min
        return Enclosure(exact.enclose(Fraction(low), bits).lo, exact.enclose(Fraction(high), bits).hi, bits)

    def enclose(self, bits: int) -> Enclosure:
        work = bits + 64
        terms = [exact.exp_neg(self.beta * k, work).times(Fraction(gap)) for k, gap in self.runners]
        return Enclosure(max(x.lo for x in terms), max(x.hi for x in terms), work).to(bits)

    @cached_property
    def runners(self) -> tuple[tuple[int, int], ...]:
        """Every (k, gap) that may be the largest; all others are certainly smaller. Rows whose largest entry is behind
        are out as a whole, and nearly all are."""
        least, table = self.log - 2 * self.slack, self.table
        widest: dict[int, int] = {}
        for row in np.flatnonzero(self.tops >= least):
            near = np.flatnonzero(table.at(row, np.arange(table.b.size)) >= least)
            for b, high in zip(table.b[near].tolist(), table.high[near].tolist(), strict=True):
                k, gap = int(table.a[row]) + b - 1, high - int(table.low[row])
                widest[k] = max(widest.get(k, 0), gap)
        return tuple(sorted(widest.items()))

    def __float__(self) -> float:
        return math.exp(self.log)


def smooth(around: Around, beta: Fraction) -> Smooth:
    """The smooth sensitivity, in n log n steps, by logarithms in float64 with a bound on their error.

    Of equal values only the one nearest to the median counts. Where exp(-beta k) is so small that not even the whole
    range would win, nothing is looked at.
    """
    rate = float(beta)
    a, b = _nearest(around.below), _nearest(around.above)
    table = _Table(a, around.below[a], b, around.above[b], rate)
    best = float(table.within(_FEW, _FEW).row_tops().max())
    reach = (math.log(around.width) - best) / rate + 2
    table = table.within(*(int(np.searchsorted(places, reach, side="right")) for places in (a, b)))
    return Smooth(table, table.row_tops(), beta)


def _nearest(values: Integers) -> Integers:
    """The places, from the median outwards, where the value is new."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1]))


@dataclass(frozen=True)
class _Table:
    """ln V[a, b] for places a below and b above the median. V[0, 0] is no window and counts as nothing."""

    a: Integers
    low: Integers
    b: Integers
    high: Integers
    rate: float

    def at(self, rows: Integers | np.intp, columns: Integers) -> Floats:
        gap = (self.high[columns] - self.low[rows]).astype(np.float64)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(gap) - self.rate * (self.a[rows] + self.b[columns] - 1))

    def within(self, rows: int, columns: int) -> _Table:
        return _Table(self.a[:rows], self.low[:rows], self.b[:columns], self.high[:columns], self.rate)

    def row_tops(self) -> Floats:
        """The largest entry of every row, a whole level of a binary tree of rows at a time.

        The further down a row starts (a larger a, a smaller below_a), the nearer its best column: where column j is at
        least as good as a farther one j' in a row, it is so in all rows further down, since lowering below_a by d adds
        d exp(-beta b) to both sides and b < b'. So the middle row's best column splits the columns between the rows
        above and below it. A best column that is off by float error is off by the same factor for the other rows.
        """
        count = self.a.size
        if count * self.b.size <= _SMALL:
            return np.asarray(self.at(np.arange(count)[:, None], np.arange(self.b.size)[None, :]).max(axis=1))
        tops = np.full(count, -np.inf)
        first, last = np.zeros(1, dtype=np.int64), np.full(1, count, dtype=np.int64)  # rows first..last-1
        left, right = np.zeros(1, dtype=np.int64), np.full(1, self.b.size - 1, dtype=np.int64)  # columns left..right
        while first.size:
            middle = (first + last) // 2
            sizes = right - left + 1
            starts = np.cumsum(sizes) - sizes
            rows = np.repeat(middle, sizes)
            columns = np.arange(int(sizes.sum())) - np.repeat(starts - left, sizes)
            entries = self.at(rows, columns)
            top = np.maximum.reduceat(entries, starts)
            tops[middle] = top
            hits = np.flatnonzero(entries >= np.repeat(top, sizes))
            place = columns[hits[np.searchsorted(hits, starts)]]
            upper, lower = middle > first, middle + 1 < last
            first, last, left, right = (
                np.concatenate([first[upper], middle[lower] + 1]),
                np.concatenate([middle[upper], last[lower]]),
                np.concatenate([place[upper], left[lower]]),
                np.concatenate([right[upper], place[lower]]),
            )
        return tops
