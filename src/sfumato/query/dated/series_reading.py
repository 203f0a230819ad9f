"""Windows, roll-ups and orders of what a series released: sums of stored noisy numbers, which cost nothing.

Every released block is a measurement of a sum over days: y_b = sum of x_d over the days of b, plus noise whose law is
public. What is told of a window is its least-squares estimate from all blocks that were released (Hay, Rastogi, Miklau,
Suciu 2010, here for levels that need not nest): the linear function of the measurements without bias that has the
least variance. All windows are functions of one estimate of the days, so parts add up to their totals, however they
are cut. Where one level alone was released that is the sum of the window's blocks.

Nothing here draws noise, and nothing is kept from one question to the next: the same window is the same number for as
long as the same blocks are there. When a further block of a coarser level is released, the days within are known
better, and may be told a little differently.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ... import checks
from ...errors import ArgumentError
from ...laws import Law
from ..plan import Sql
from ..released import mixtures
from ..released.mixtures import Floats
from ..running import restored
from .time_blocks import TimeBlock, day_of
from .told_columns import ToldColumn, told_columns
from .told_windows import ToldWindows

_EXACT = 1e-8
"""How far the weights of an estimate may be from a window that they are to add up to."""
Window = tuple[dt.date, dt.date]
Terms = Sequence[tuple[Law, float]]


@dataclass(frozen=True, eq=False)
class SeriesReading:
    """Blocks that were released, and what they tell together.

    columns  the columns of numbers, as in the query's SELECT list
    keys     the columns of groups, by name, with the group of each row of `numbers`
    blocks   those that were released, by name
    numbers  by column: a row for each block, a column for each group
    laws     by column: the noise of each block, as laws of independent draws and what each is multiplied by
    """

    columns: tuple[ToldColumn, ...]
    keys: Mapping[str, tuple[Any, ...]]
    blocks: Mapping[str, TimeBlock]
    numbers: Mapping[str, Floats]
    laws: Mapping[str, Sequence[Terms]]
    left_out: int = 0

    @classmethod
    def of(cls, parts: Mapping[str, Sql], blocks: Mapping[str, TimeBlock], raws: Mapping[str, Any]) -> SeriesReading:
        """parts: by name, those whose design is that of what was released; raws: what that is."""
        if not raws:
            raise ArgumentError("no block of the series is released yet: there is nothing to read.")
        released = {name: block for name, block in blocks.items() if name in raws}
        columns_of = {id(part): told_columns(part) for part in parts.values()}
        last = parts[next(reversed(released))]
        rows, left_out = _groups([raws[name] for name in released])
        titles = [key.name for key in last.front.keys]
        keys = {title: tuple(row[place] for row in rows) for place, title in enumerate(titles)}
        columns = columns_of[id(last)]
        numbers: dict[str, list[Floats]] = {column.title: [] for column in columns}
        laws: dict[str, list[Terms]] = {column.title: [] for column in columns}
        for name in released:
            raw, part = raws[name], parts[name]
            assert part.fixed is not None
            spreads = part.fixed.spreads
            place = {row: at for at, row in enumerate(_rows_of(raw))}
            order = np.array([place[row] for row in rows], dtype=np.int64)
            for column in columns_of[id(part)]:
                tellable = sum(
                    w * np.asarray(raw["numbers"][item], dtype=np.float64) for item, w in column.weights.items()
                )
                numbers[column.title].append(np.asarray(tellable)[order])
                laws[column.title].append(
                    [(spreads[item][0], abs(w) * spreads[item][1]) for item, w in column.weights.items()]
                )
        return cls(
            columns,
            keys,
            released,
            {title: np.array(item).reshape(len(released), len(rows)) for title, item in numbers.items()},
            laws,
            left_out,
        )

    @property
    def groups(self) -> int:
        return next(iter(self.numbers.values())).shape[1]

    # questions

    def by_level(self, level: str, **how: Any) -> ToldWindows:
        """Every block of a level whose days are told."""
        return self._answered([(block.first, block.after) for block in self._of(level)], **how)

    def window(self, first: Any, last: Any, **how: Any) -> ToldWindows:
        """From one day to another, both among them."""
        return self._answered([_window(first, last)], **how)

    def rolling(self, days: int, **how: Any) -> ToldWindows:
        """The windows of so many days that end on each released day: the last seven days, every day."""
        checks.whole(days, "days")
        begin, ends = self.span[0], sorted({block.after for block in self.blocks.values()})
        span = dt.timedelta(days=days)
        return self._answered([(end - span, end) for end in ends if end - span >= begin], **how)

    def running(self, **how: Any) -> ToldWindows:
        """Cumulative totals: from the first released day to the end of each block."""
        begin = self.span[0]
        return self._answered([(begin, end) for end in sorted({block.after for block in self.blocks.values()})], **how)

    # how they are answered

    def _of(self, level: str) -> list[TimeBlock]:
        return [block for block in self.blocks.values() if block.level == level]

    @cached_property
    def span(self) -> Window:
        """The first released day, and the one after the last."""
        blocks = self.blocks.values()
        return min(block.first for block in blocks), max(block.after for block in blocks)

    def _places(self, first: dt.date, after: dt.date) -> slice:
        begin = self.span[0]
        return slice((first - begin).days, (after - begin).days)

    @cached_property
    def _sums(self) -> Floats:
        """Which days each block adds up."""
        matrix = np.zeros((len(self.blocks), (self.span[1] - self.span[0]).days))
        for row, block in zip(matrix, self.blocks.values(), strict=True):
            row[self._places(block.first, block.after)] = 1
        return matrix

    def _weights(self, windows: Sequence[Window], deviations: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """By window, how much each block counts in its estimate; and whether the window can be told at all."""
        wanted = np.zeros((len(windows), self._sums.shape[1]))
        inside = np.ones(len(windows), dtype=np.bool_)
        for number, (first, after) in enumerate(windows):
            inside[number] = self.span[0] <= first < after <= self.span[1]
            if inside[number]:
                wanted[number, self._places(first, after)] = 1
        scaled = self._sums / deviations[:, None]
        days = {block.first for block in self._of("day")}
        if len(days) == self._sums.shape[1]:  # every day is measured: the normal equations are well posed
            weights = scipy.linalg.cho_solve(scipy.linalg.cho_factor(scaled.T @ scaled), wanted.T).T @ scaled.T
        else:
            weights = scipy.linalg.lstsq(scaled.T, wanted.T, lapack_driver="gelsd")[0].T
        weights = weights / deviations
        tellable = inside & (np.abs(weights @ self._sums - wanted).max(axis=1, initial=0) < _EXACT)
        weights[np.abs(weights) < _EXACT * 1e-4] = 0.0
        return weights, tellable

    def _answered(
        self, windows: Sequence[Window], *, by: Sequence[str] | None = None, least: Any = None, alpha: float = 0.05
    ) -> ToldWindows:
        """by: groups are added up to those of these columns; least: smaller numbers are hidden, by default those that
        noise alone might be."""
        code, rows = self._rolled(by)
        copies = np.bincount(code, minlength=len(rows)).astype(np.float64)
        adding = np.zeros((self.groups, len(rows)))
        adding[np.arange(self.groups), code] = 1
        values: dict[str, Floats] = {}
        widths: dict[str, Floats] = {}
        stds: dict[str, Floats] = {}
        tellable = np.ones(len(windows), dtype=np.bool_)
        for column in self.columns:
            laws = self.laws[column.title]
            deviations = np.array([np.sqrt(sum((law.std * w) ** 2 for law, w in block)) for block in laws])
            weights, tellable = self._weights(windows, deviations)
            values[column.title] = (weights @ self.numbers[column.title]) @ adding
            stds[column.title] = np.sqrt((weights**2) @ (deviations**2))[:, None] * np.sqrt(copies)[None, :]
            widths[column.title] = mixtures.summed_half_width(laws, weights, copies, alpha)
        titles = tuple(self.keys) if by is None else tuple(by)
        keys = {title: tuple(row[place] for row in rows) for place, title in enumerate(titles)}
        return ToldWindows(
            tuple(windows), keys, self.columns, values, widths, stds, tellable, alpha, _least(least), self.left_out
        )

    def _rolled(self, by: Sequence[str] | None) -> tuple[NDArray[np.int64], list[tuple[Any, ...]]]:
        """The rolled-up group of each group."""
        names = tuple(self.keys) if by is None else checks.texts(tuple(by), "by")
        for name in names:
            checks.one_of(name, "by", tuple(self.keys))
        place: dict[tuple[Any, ...], int] = {}
        rows = zip(*(self.keys[name] for name in names), strict=True) if names else [()] * self.groups
        code = np.array([place.setdefault(row, len(place)) for row in rows], dtype=np.int64)
        return code, list(place)


def _window(first: Any, last: Any) -> Window:
    begin, end = day_of(first, "first"), day_of(last, "last")
    if end < begin:
        raise checks.refuse("last", last, f"a day from {begin} on")
    return begin, end + dt.timedelta(days=1)


def _least(number: Any) -> float | None:
    if number is None:
        return None
    return float(checks.bound(number, "least"))


def _rows_of(raw: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    columns = [[restored(cell) for cell in column] for column in raw["keys"].values()]
    return list(zip(*columns, strict=True)) if columns else [()] * int(raw["groups"])


def _groups(raws: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[Any, ...]], int]:
    """The groups that every block has, and how many others there are: a public table may list more from day to day."""
    rows = [_rows_of(raw) for raw in raws]
    shared = set(rows[0]).intersection(*map(set, rows[1:]))
    every = set().union(*map(set, rows))
    return [row for row in rows[-1] if row in shared], len(every) - len(shared)
