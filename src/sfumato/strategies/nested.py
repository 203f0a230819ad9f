"""Tables of several columns and of coarser groups, each measured with a share of the budget of its own: the marginals
of many columns, and hierarchies over ordered ones, estimated together in closed form, however many cells there are.

Each column is cut into groups at several levels: at the first all of it is one group, at the last each value is one,
and groups of a level are made of those of the next. A measured table has a level for each column; its numbers are sums
over one group of each. With P_l the averaging over groups of level l, all P are projections, and nested:
P_l P_m = P_min(l, m).

Noise in a table is wider for larger groups, by sqrt(size / least size in its level). So what a table M with noise
variances S tells of the cells is M^T S^-1 M = w g P, with w = 1/(variance of its smallest groups), g the product of
their sizes, and P the product of its columns' projections. All of these commute, and the space of cells falls apart
into residuals Q_t = product of (P_t - P_(t-1)), in which the information is a number,

    pi_t = sum over tables that are at least as fine as t, in every column, of w g.

So the least-squares estimate is, in each residual, the mean of what the finer tables say, weighted by w g; a query q
has the variance sum |Q_t q|^2 / pi_t; and nothing larger than the tables themselves is ever written out. For columns of
two levels these are the residuals of a marginal (Xiao, He, Zhang, Kifer 2023), and the strategies are the weighted
marginals of HDMM (McKenna, Miklau, Hay, Machanavajjhala 2018); for one column they are hierarchies (Hay, Rastogi,
Miklau, Suciu 2010) with a weight for each level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..checks import Exact
from ..record import record
from .base import Floats, Reach, Vector

Level = tuple[int, ...]
"""A level for each column."""


@dataclass(frozen=True)
class NestedColumn:
    """A column of so many cells, and its groups: how many there are at each level, from one to every cell by itself."""

    groups: tuple[int, ...]

    @property
    def cells(self) -> int:
        return self.groups[-1]

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], ...]:
        """By level, where groups begin, and after them the end. Groups are as equal as they can be; those of a level
        begin where groups of the next one do: floor(j n / k) = floor(j r n / (k r))."""
        return tuple(np.arange(many + 1, dtype=np.int64) * self.cells // many for many in self.groups)

    def sizes(self, level: int) -> NDArray[np.int64]:
        return np.diff(self.edges[level])

    def least(self, level: int) -> int:
        return self.cells // self.groups[level]

    def within(self, level: int) -> NDArray[np.int64]:
        """Of each group of a level: at which group of the next level it begins."""
        return np.searchsorted(self.edges[level + 1], self.edges[level][:-1])

    def energies(self, firsts: Any, afters: Any) -> Floats:
        """|Q_t q|^2 of intervals of cells: a row for each level, a column for each interval."""
        sums = [_square_of_mean(self.edges[level], firsts, afters) for level in range(len(self.groups))]
        return np.maximum(np.diff(np.array(sums), axis=0, prepend=0.0), 0.0)


def _square_of_mean(edges: NDArray[np.int64], firsts: Any, afters: Any) -> Floats:
    """|P q|^2 = sum over groups of (cells of the interval in it)^2 / (its cells). Whole groups add their size, the two
    at the ends what they hold."""
    firsts, afters = np.asarray(firsts, dtype=np.int64), np.asarray(afters, dtype=np.int64)
    low = np.searchsorted(edges, firsts, side="right") - 1
    high = np.searchsorted(edges, afters, side="left") - 1
    size = np.diff(edges).astype(np.float64)
    first = (np.minimum(edges[low + 1], afters) - firsts) ** 2 / size[low]
    last = (afters - edges[high]) ** 2 / size[high]
    between = np.maximum(edges[high] - edges[low + 1], 0)
    return np.where(low == high, first, first + between + last)


@record("strategy-nested/1")
@dataclass(frozen=True, kw_only=True)
class Nested:
    """Which tables are measured, and with what share of the budget.

    groups  for each column, how many groups there are at each level: (1, 12) for months by themselves, (1, 4, 12) with
            quarters between
    tables  the measured ones: a level for each column
    shares  of the budget, one for each table; they add up to at most 1. Gaussian noise of a table has the variance
            1/share, Laplace noise the scale 1/share, of that of a table that is measured alone
    """

    groups: tuple[tuple[int, ...], ...]
    tables: tuple[Level, ...]
    shares: tuple[Exact, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(_checked(levels) for levels in _listed(self.groups, "groups")))
        tables = tuple(tuple(_listed(table, "tables")) for table in _listed(self.tables, "tables"))
        most = [len(levels) - 1 for levels in self.groups]
        for table in tables:
            if len(table) != len(most):
                raise checks.refuse("tables", "...", "a level for each column")
            for level, last in zip(table, most, strict=True):
                checks.whole(level, "level", least=0, most=last)
        if not tables or len(set(tables)) < len(tables):
            raise checks.refuse("tables", "...", "at least one table, and none twice")
        shares = tuple(checks.positive(share, "shares") for share in _listed(self.shares, "shares"))
        if len(shares) != len(tables) or sum(shares) > 1:
            raise checks.refuse("shares", "...", "one for each table, which add up to at most 1")
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "shares", shares)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The cells of each column."""
        return tuple(levels[-1] for levels in self.groups)

    @cached_property
    def columns(self) -> tuple[NestedColumn, ...]:
        return tuple(map(NestedColumn, self.groups))

    def shape(self, table: Level) -> tuple[int, ...]:
        return tuple(levels[level] for levels, level in zip(self.groups, table, strict=True))

    @property
    def measurements(self) -> int:
        return sum(math.prod(self.shape(table)) for table in self.tables)

    def read(self, table: Level) -> tuple[int, ...]:
        """The columns that a table tells apart."""
        return tuple(place for place, level in enumerate(table) if level)

    @property
    def column_norms(self) -> Reach:
        """Of a column of a table's matrix: each cell is in one of its groups."""
        return Reach(1, 1, 1)

    @property
    def column_gaps(self) -> Reach:
        """Of a difference of two columns."""
        return Reach(2, 2, 1)

    def widths(self, table: Level) -> Floats:
        """By how much noise is wider than in the smallest groups."""
        parts = [
            np.sqrt(column.sizes(level) / column.least(level))
            for column, level in zip(self.columns, table, strict=True)
        ]
        return np.asarray(reduce(np.multiply.outer, parts, np.ones(())))

    def measure(self, table: Level, cells: Vector) -> Vector:
        """The sums of a table from the cells of the columns that it reads."""
        sums = np.asarray(cells).reshape(self.shape(self.finest(self.read(table))))
        for place, level in enumerate(table):
            if level:
                starts = self.columns[place].edges[level][:-1]
                sums = np.add.reduceat(sums, starts, axis=place)
        return np.asarray(sums).ravel()

    def determines(self, wanted: Level) -> bool:
        return any(all(a >= b for a, b in zip(table, wanted, strict=True)) for table in self.tables)

    def finest(self, columns: Sequence[int]) -> Level:
        """The level of a table that has these columns in full."""
        return tuple(len(levels) - 1 if place in columns else 0 for place, levels in enumerate(self.groups))

    def information(self, wanted: Level, noise: str) -> Mapping[Level, float]:
        """pi_t of every residual within a table, where noise in a table measured alone has variance, or scale, 1."""
        learnt = dict(zip(self.tables, self._precisions(noise), strict=True))
        return {
            level: sum(w for table, w in learnt.items() if all(a >= b for a, b in zip(table, level, strict=True)))
            for level in product(*(range(top + 1) for top in wanted))
        }

    def squared(self, columns: Sequence[int], energies: Sequence[Floats], noise: str) -> Floats:
        """The squared norms of the weights of queries, in units of the noise of a table measured alone. Queries are
        products of some on each of these columns, whose `energies` they have, and totals of the others; the answer has
        an axis for each column."""
        rest = math.prod(n for place, n in enumerate(self.sizes) if place not in columns)
        total: Any = 0.0
        for level, learnt in self.information(self.finest(columns), noise).items():
            parts = [own[level[place]] for place, own in zip(columns, energies, strict=True)]
            total = total + reduce(np.multiply.outer, parts, np.asarray(float(rest))) / learnt
        return np.asarray(total)

    def _precisions(self, noise: str) -> list[float]:
        """w g of each table."""
        power = 1 if noise == "gaussian" else 2
        least = [math.prod(c.least(level) for c, level in zip(self.columns, t, strict=True)) for t in self.tables]
        return [float(share) ** power * g for share, g in zip(self.shares, least, strict=True)]

    def estimate(self, columns: Sequence[int], noisy: Sequence[Floats], noise: str) -> Floats:
        """The sums over the cells of these columns, with an axis for each, from the noisy numbers of all tables."""
        wanted = self.finest(columns)
        learnt: dict[Level, Floats] = {}
        for table, numbers, precision in zip(self.tables, noisy, self._precisions(noise), strict=True):
            common = tuple(map(min, table, wanted))
            means = self._means(table, numbers, common) * precision
            learnt[common] = learnt[common] + means if common in learnt else means
        levels = list(product(*(range(top + 1) for top in wanted)))
        for level in levels:
            learnt.setdefault(level, np.zeros(self.shape(level)))
        sizes = {level: self._sizes(level) for level in levels}
        for place, top in enumerate(wanted):  # f_t = sum over finer v of (the means of v, at level t)
            for fine in range(top, 0, -1):
                for level in (each for each in levels if each[place] == fine):
                    under = (*level[:place], fine - 1, *level[place + 1 :])
                    starts = self.columns[place].within(fine - 1)
                    coarser = np.add.reduceat(learnt[level] * sizes[level], starts, axis=place) / sizes[under]
                    learnt[under] = learnt[under] + coarser
        information = self.information(wanted, noise)
        parts = {level: self._residual(learnt[level], level) / information[level] for level in levels}
        for place, top in enumerate(wanted):
            for fine in range(1, top + 1):
                for level in (each for each in levels if each[place] == fine):
                    under = (*level[:place], fine - 1, *level[place + 1 :])
                    parts[level] = parts[level] + self._spread(parts[under], place, fine)
        rest = math.prod(n for place, n in enumerate(self.sizes) if place not in columns)
        return np.asarray(parts[wanted] * rest).reshape([self.sizes[place] for place in columns])

    def _sizes(self, level: Level) -> Floats:
        """Cells in each group."""
        sizes = [column.sizes(own).astype(np.float64) for column, own in zip(self.columns, level, strict=True)]
        return np.asarray(reduce(np.multiply.outer, sizes, np.ones(())))

    def _means(self, table: Level, numbers: Floats, level: Level) -> Floats:
        """Means over the groups of a coarser level."""
        sums = np.asarray(numbers, dtype=np.float64).reshape(self.shape(table))
        for place, (fine, coarse) in enumerate(zip(table, level, strict=True)):
            if coarse < fine:
                column = self.columns[place]
                starts = np.searchsorted(column.edges[fine], column.edges[coarse][:-1])
                sums = np.add.reduceat(sums, starts, axis=place)
        return np.asarray(sums / self._sizes(level))

    def _residual(self, means: Floats, level: Level) -> Floats:
        """What differs from the means one level up, in every column."""
        left = means
        for place, fine in enumerate(level):
            if fine:
                column = self.columns[place]
                weights = column.sizes(fine).astype(np.float64)
                shape = tuple(-1 if axis == place else 1 for axis in range(left.ndim))
                sums = np.add.reduceat(left * weights.reshape(shape), column.within(fine - 1), axis=place)
                above = sums / column.sizes(fine - 1).astype(np.float64).reshape(shape)
                left = left - self._spread(above, place, fine)
        return left

    def _spread(self, values: Floats, place: int, fine: int) -> Floats:
        """Values of groups, at each of the groups that they are made of."""
        column = self.columns[place]
        parts = np.diff(np.append(column.within(fine - 1), column.groups[fine]))
        return np.repeat(values, parts, axis=place)


def _listed(values: Any, name: str) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise checks.refuse(name, "...", "a list")
    return tuple(values)


def _checked(levels: Any) -> tuple[int, ...]:
    """Each number of groups divides the next one, but for the last, which is that of the cells."""
    groups = tuple(checks.whole(many, "groups", most=2**26) for many in _listed(levels, "groups"))
    steps = zip(groups[1:-1], groups[:-2], strict=True)
    rising = all(one < other for one, other in pairwise(groups))
    if len(groups) < 2 and groups != (1,):
        groups = ()
    if not groups or groups[0] != 1 or not rising or any(fine % coarse for fine, coarse in steps):
        raise checks.refuse("groups", levels, "numbers such as (1, 4, 12), from 1, each a multiple of the one before")
    return groups


def levels_of(cells: int, branching: int | None = None) -> tuple[int, ...]:
    """The groups of a column: all of it, and each cell; with a branching, a hierarchy between."""
    if cells == 1:
        return (1,)
    between: list[int] = []
    while branching is not None and branching ** (len(between) + 1) <= cells // 2:
        between.append(branching ** (len(between) + 1))
    return (1, *between, cells)


def exact_shares(weights: Sequence[float], digits: int = 4) -> tuple[Fraction, ...]:
    """Shares in proportion to weights, as short numbers that add up to 1: the largest gets what is left."""
    grid = 10**digits
    total = sum(weights)
    shares = [Fraction(max(math.floor(weight / total * grid), 1), grid) for weight in weights]
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] += 1 - sum(shares)
    return tuple(shares)
