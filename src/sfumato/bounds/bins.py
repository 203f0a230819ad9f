"""Rows per interval of a numeric column.

An edge is the float nearest to the number given, so that a value written like an edge is on it. A whole number that no
float holds is read as the next float below, which no edge lies between.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..checks import Exact
from ..grid import Integers
from ..questions import CLIP, FINE
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Floats
from .cell_counts import MOST_CELLS, CellCounts

OUTSIDE = ("clamp", "drop")
_BLOCK = 2**16


@dataclass(frozen=True, kw_only=True)
class _Binned(CellCounts):
    """Bins are [edge, next edge), the last one with its upper edge too. Values below the first edge or above the last
    count in the first and the last bin (`outside` = "clamp") or nowhere ("drop"); NULLs count nowhere."""

    column: str
    outside: str = "clamp"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        checks.one_of(self.outside, "outside", OUTSIDE)

    @property
    @abstractmethod
    def cuts(self) -> Floats:
        """The edges, as floats, rising."""

    @abstractmethod
    def _found(self, values: Floats) -> Integers:
        """The bin of each value from the first edge to the last."""

    @property
    def size(self) -> int:
        return self.cuts.size - 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        texts = [f"{edge!r}".removesuffix(".0") for edge in self.cuts.tolist()]
        bins = [f"[{low}, {high})" for low, high in pairwise(texts)]
        bins[-1] = f"[{texts[-2]}, {texts[-1]}]"
        return tuple(bins)

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        series, (first, last) = rows[self.column], self.cuts[[0, -1]]
        real = series.values.dtype.kind == "f"
        values = series.values if real else _floats_below(series.values)
        place = self._found(np.clip(values, first, last))
        if self.outside == "clamp":
            return place, series.valid
        inside = series.valid & (values >= first) & (values <= last)
        if not real:  # whole numbers between the last edge and the next float
            inside &= series.values <= np.int64(min(max(math.floor(last), -(2**63)), 2**63 - 1))
        return place, inside


@record("bins/1")
@dataclass(frozen=True, kw_only=True)
class Bins(_Binned):
    """Rows per bin, between edges that are given one by one."""

    edges: tuple[Exact, ...] = field(metadata=FINE)

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "at least two numbers, each above the one before (as floats, too)"
        values: Any = self.edges
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise checks.refuse("edges", values, allowed)
        edges = tuple(checks.bound(edge, "edges") for edge in values)
        object.__setattr__(self, "edges", edges)
        if not 2 <= len(edges) <= MOST_CELLS or not (np.diff(self.cuts) > 0).all():
            raise checks.refuse("edges", [float(edge) for edge in edges], allowed)

    @cached_property
    def cuts(self) -> Floats:
        return np.array([float(edge) for edge in self.edges])

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.real(self.edges[0], self.edges[-1])}

    def _found(self, values: Floats) -> Integers:
        return np.searchsorted(self.cuts[1:-1], values, side="right")


@record("equal-bins/1")
@dataclass(frozen=True, kw_only=True)
class EqualBins(_Binned):
    """Rows per bin, between edges at equal distances from lower to upper: many bins cost no more than few."""

    lower: Exact = field(metadata=CLIP)
    upper: Exact = field(metadata=CLIP)
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = checks.interval(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "count", checks.whole(self.count, "count", most=MOST_CELLS))
        # Edges are off by less than 3 ulps: with bins this wide a guess is at most one bin off.
        if (float(high) - float(low)) / self.count < 16 * np.spacing(max(abs(float(low)), abs(float(high)))):
            raise checks.refuse("count", self.count, "fewer bins: floats cannot tell the edges of so many apart")

    @cached_property
    def cuts(self) -> Floats:
        low, high = float(self.lower), float(self.upper)
        edges: Floats = low + np.arange(self.count + 1, dtype=np.float64) * ((high - low) / self.count)
        edges[-1] = high
        return edges

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.real(self.lower, self.upper)}

    def places(self, rows: Rows) -> tuple[Integers, NDArray[np.bool_]]:
        series, width = rows[self.column], (self.upper - self.lower) / self.count
        exact_edges = max(abs(self.lower), abs(self.upper)) <= 2**53  # so whole edges are exact as floats, too
        if series.values.dtype.kind == "f" or self.lower.denominator * width.denominator > 1 or not exact_edges:
            return super().places(rows)
        low, high = np.int64(self.lower), np.int64(self.upper)
        place = np.clip(series.values, low, high)
        inside = series.valid if self.outside == "clamp" else series.valid & (place == series.values)
        place -= low
        if width > 1:
            place //= np.int64(width)
        return np.minimum(place, self.count - 1, out=place), inside

    def _found(self, values: Floats) -> Integers:
        """A guess by arithmetic, then compared with the edges themselves."""
        low, last = self.cuts[0], self.count - 1
        rate = self.count / (self.cuts[-1] - low)
        ends = np.append(self.cuts[1:-1], np.inf)
        place = np.empty(values.size, dtype=np.int64)
        for start in range(0, values.size, _BLOCK):  # blocks stay in the processor's cache
            block = values[start : start + _BLOCK]
            guess = np.minimum(((block - low) * rate).astype(np.int64), last)
            guess -= block < self.cuts[guess]
            guess += block >= ends[guess]
            place[start : start + _BLOCK] = guess
        return place


def _floats_below(values: NDArray[Any]) -> Floats:
    """The largest floats that are not above whole numbers: at or above an edge just where the number is."""
    near = values.astype(np.float64)
    beyond = near >= 2.0**63
    over = beyond | (np.where(beyond, 0.0, near).astype(np.int64) > values)
    return np.where(over, np.nextafter(near, -np.inf), near)
