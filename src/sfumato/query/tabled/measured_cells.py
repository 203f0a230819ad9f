"""The noise of a workload: what is measured of the exact cells, how far a unit moves it, how wide the answers are.

Claim. Let each unit's weighted rows of one measured number have |x(u)|_1 <= L (in steps), and let the strategy measure
the tables A_k x with shares p_k that add up to 1 at most. Let a unit that comes or goes move A_k x by at most L a_k,
where a_k is the largest norm of a column of A_k (L2 for Gaussian noise, L1 for Laplace noise). Then noise of standard
deviation m L a_k / sqrt(p_k), or of scale L a_k / (p_k epsilon), makes all tables one Gaussian mechanism of multiplier
m, or epsilon-DP. Wider noise in some places does no harm.

Proof. A_k x(u) is a mixture of columns with weights of at most L in sum, so its norm is at most L a_k. In units of its
own noise the whole is of squared length at most sum p_k / m^2 <= 1/m^2; lengths of Laplace noise add up to epsilon.
Several measured numbers have shares s_j of one budget, each with weights of its own: shares multiply (blur.py). Where a
unit is replaced, and rows only add, x(u) - x(u') is a mixture of differences of two columns, or of one column, with
weights of at most L in sum: what one has more of goes to nothing. Elsewhere it is two vectors, and a group of g is g
times as much. Noise is a whole number of steps, rounded from the continuous law, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ... import exact, grid
from ...laws import Law
from ...noise import Noise
from ...strategies import Nested, Product
from ..blur import Blur
from ..integers import Integers
from ..measures import Coordinate, weight_bits
from ..released.mixtures import Floats
from .asked_tables import MOST, AskedTable, TableColumn
from .cell_statement import Columns

_SUM_BITS = (12, 8)  # of weights; where the strategy's entries have bits of their own
_WIDER = 2**4  # the widest noise may have so many times the steps that private SQL gives it


@dataclass(frozen=True)
class MeasuredTable:
    """One table of a strategy: the columns whose cells it is made of, and its share of the budget."""

    place: int
    columns: Columns
    share: Fraction


@dataclass(frozen=True, eq=False)
class MeasuredCells:
    """One measured number (rows, or what is added up), in all tables of the strategy."""

    strategy: Product | Nested
    inner: Coordinate
    blur: Blur

    @cached_property
    def tables(self) -> tuple[MeasuredTable, ...]:
        if isinstance(self.strategy, Product):
            return (MeasuredTable(0, tuple(range(len(self.strategy.sizes))), Fraction(1)),)
        shares = enumerate(zip(self.strategy.tables, self.strategy.shares, strict=True))
        return tuple(MeasuredTable(place, self.strategy.read(table), share) for place, (table, share) in shares)

    @property
    def sets(self) -> tuple[Columns, ...]:
        """The sets of columns whose cells are needed: as few as there may be."""
        needed = {table.columns for table in self.tables}
        whole = tuple(sorted({column for some in needed for column in some}))
        if math.prod(self.strategy.sizes[column] for column in whole) <= MOST:
            return (whole,)
        return tuple(sorted(some for some in needed if not any(set(some) < set(other) for other in needed)))

    @property
    def bits(self) -> int:
        """Entries of the strategy are whole multiples of 2^-bits."""
        return self.strategy.bits if isinstance(self.strategy, Product) else 0

    @cached_property
    def _moved(self) -> Fraction:
        """How far a unit with |x|_1 <= 1 moves a table, in its own steps: the length, or its square."""
        square = self.blur.kind == "gaussian"
        change, group = self.blur.unit.change, self.blur.unit.group
        exchanged = change == "replace" and self.inner.measure.lower >= 0
        reach = self.strategy.column_gaps if exchanged else self.strategy.column_norms
        times = group * (1 if exchanged or change == "add-remove" else 2)
        return Fraction(times**2 * reach.l2_squared if square else times * reach.l1)

    def _scale(self, share: Fraction, reach: Fraction) -> Fraction:
        """Of the noise in the smallest groups of a table with this share, where |x|_1 <= reach; rounded up."""
        share = self.inner.share * share
        if self.blur.kind == "laplace":
            return self._moved * reach / (share * self.blur.amount)
        return Fraction(exact.sqrt_above(self._moved * (reach * self.blur.amount) ** 2 / share))

    @cached_property
    def number(self) -> Coordinate:
        """The measured number on a grid for this noise: no noise is too wide to be drawn in the strategy's steps."""
        widest = max(self._scale(table.share, self.inner.reach) for table in self.tables) * math.ceil(self._widest)
        if self.inner.measure.whole:
            return replace(self.inner, scale=widest, bits=weight_bits([(self.inner.measure, widest)]))
        return replace(self.inner, scale=widest / _WIDER, bits=_SUM_BITS[self.bits > 0])

    @cached_property
    def _widest(self) -> float:
        if isinstance(self.strategy, Product):
            return 1.0
        return max(float(self.strategy.widths(table).max()) for table in self.strategy.tables)

    @property
    def exponent(self) -> int:
        """Measured numbers are whole multiples of 2^exponent."""
        return self.number.exponent - self.number.bits - self.bits

    def laws(self, table: MeasuredTable) -> list[tuple[Law, Any]]:
        """The laws of the table's noise, in steps of its grid, each with the places that have it."""
        reach = self.number.reach / Fraction(2) ** (self.number.exponent - self.number.bits)
        scale = self._scale(table.share, reach)
        if isinstance(self.strategy, Product):
            return [(self.blur.law(scale), slice(None))]
        widths = self.strategy.widths(self.strategy.tables[table.place]).ravel()
        different, places = np.unique(widths, return_inverse=True)
        return [(self.blur.law(scale * _above(width)), places == at) for at, width in enumerate(different.tolist())]

    def exactly(self, cells: Mapping[Columns, Integers]) -> list[Integers]:
        """What is measured, by table, without noise."""
        return [self._measured(table, cells) for table in self.tables]

    def _measured(self, table: MeasuredTable, cells: Mapping[Columns, Integers]) -> Integers:
        some = next(some for some in cells if set(table.columns) <= set(some))
        other = tuple(axis for axis, column in enumerate(some) if column not in table.columns)
        needed = np.asarray(_whole(cells[some]).sum(axis=other))
        if isinstance(self.strategy, Product):
            return self.strategy.measure(needed.ravel())
        return self.strategy.measure(self.strategy.tables[table.place], needed)

    def blurred(self, measured: Sequence[Integers], noise: Noise, runs: int = 1) -> list[Floats]:
        """With noise, as real numbers: of each table an array with a row for each run."""
        return [self._noisy(table, numbers, noise, runs) for table, numbers in zip(self.tables, measured, strict=True)]

    def _noisy(self, table: MeasuredTable, numbers: Integers, noise: Noise, runs: int) -> Floats:
        noisy = np.tile(numbers, (runs, 1))
        for law, places in self.laws(table):
            size = noisy[:, places].shape
            noisy[:, places] = noisy[:, places] + noise.draw(law, math.prod(size)).reshape(size)
        return grid.to_float(noisy, self.exponent)

    def estimate(self, table: AskedTable, columns: Mapping[str, TableColumn], raw: Sequence[Sequence[float]]) -> Floats:
        """The answers of a table, with an axis for each of its columns."""
        shown = [columns[name] for name in table.columns]
        places = [column.place for column in shown]
        noisy = [np.asarray(numbers, dtype=np.float64) for numbers in raw]
        if isinstance(self.strategy, Product):
            cells = self.strategy.estimate(noisy[0]).reshape(self.strategy.sizes)
            other = tuple(place for place in range(len(self.strategy.sizes)) if place not in places)
            sums = np.transpose(cells.sum(axis=other), np.argsort(np.argsort(places)))
        else:
            sums = self._in_order(self.strategy.estimate(sorted(places), noisy, self.blur.kind), places)
        for axis, (column, form) in enumerate(zip(shown, table.columns.values(), strict=True)):
            sums = np.moveaxis(column.workload(form).answer(np.moveaxis(sums, axis, -1)), -1, axis)
        return np.asarray(sums)

    @staticmethod
    def _in_order(sums: Floats, places: Sequence[int]) -> Floats:
        """From the order of the cells' columns to that of the table's."""
        return np.transpose(sums, np.argsort(np.argsort(places)))

    def norms(self, table: AskedTable, columns: Mapping[str, TableColumn]) -> tuple[Floats, Floats, Floats]:
        """Of the noise in each answer, as a sum of independent noise: the L2 norm of the scales, and bounds on the
        largest of them and on what rounding may have moved."""
        shown = {columns[name].place: (columns[name], form) for name, form in table.columns.items()}
        places, step = list(shown), math.ldexp(1.0, self.exponent)
        if isinstance(self.strategy, Product):
            every = (shown.get(place) for place in range(len(self.strategy.sizes)))
            norms = self.strategy.mixing_of([None if pair is None else pair[0].workload(pair[1]) for pair in every])
            l1, l2, linf = (self._in_order(norm, places) for norm in norms)
            ((law, _),) = self.laws(self.tables[0])
            return l2 * law.spread * step, linf * law.spread * step, l1 * step / 2
        energies = [
            self.strategy.columns[place].energies(*shown[place][0].ends(shown[place][1])) for place in sorted(shown)
        ]
        squared = self.strategy.squared(sorted(shown), energies, self.blur.kind)
        l2 = self._in_order(np.sqrt(squared), places) * float(self._scale(Fraction(1), self.number.reach))
        least = min(law.spread for table in self.tables for law, _ in self.laws(table)) * step
        return l2, l2, l2 / least * math.sqrt(self.strategy.measurements) * step / 2


def _above(width: float) -> Fraction:
    """A float of a root, rounded up."""
    return Fraction(math.nextafter(width, math.inf)) if width != 1.0 else Fraction(1)


def _whole(cells: Integers) -> Integers:
    """Sums of many large numbers are Python integers."""
    if cells.dtype == object or not cells.size:
        return cells
    largest = max(int(cells.max()), -int(cells.min()))
    return cells if largest < 2**62 // cells.size else cells.astype(object)
