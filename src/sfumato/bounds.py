"""Computations that carry their own sensitivity.

A `Bounded` is a vector-valued computation on rows together with how far one unit can move it, in the L1, L2 and
L-infinity norms. Nobody types a sensitivity beside a noise call: noise, price and error bars all read it here.

How a unit's contribution is bounded: a unit may bring many rows, of which `per_unit` count. Its contribution is that
of its average row, times min(rows, per_unit): no row is thrown away, no order matters, and nothing is random. All
arithmetic is on the grid, in whole steps, with divisions rounded down inside the bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checks, exact, grid, schema
from .checks import Exact
from .grid import Integers
from .record import LIVE, record
from .rows import Rows
from .schema import Column
from .units import Unit

Vector = NDArray[Any]  # int64, or object (Python integers) where int64 could be too narrow
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sensitivity:
    """The most that one change of the unit moves the vector. `l2_squared` is exact where l2 is not rational."""

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction


@dataclass(frozen=True, kw_only=True)
class Bounded(ABC):
    """A computation with its sensitivity."""

    unit: Unit

    def __post_init__(self) -> None:
        checks.instance(self.unit, Unit, "unit", "a Unit")

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """For one unit (not yet for a group of them)."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, Column]:
        """The columns it reads."""

    @property
    @abstractmethod
    def names(self) -> tuple[Any, ...]:
        """A name for each coordinate."""

    @property
    @abstractmethod
    def largest(self) -> Fraction:
        """The largest size of one row's contribution to one coordinate."""

    @property
    def whole(self) -> bool:
        """Are the natural values whole numbers?"""
        return False

    @property
    def monotone(self) -> bool:
        """Does one unit's change move all coordinates the same way?"""
        return False

    @property
    def vouched(self) -> bool:
        """Is the sensitivity somebody's word rather than computed?"""
        return False

    @property
    def combined(self) -> int:
        """How many coordinates one finished number is made of."""
        return 1

    @abstractmethod
    def steps(self, rows: Rows, exponent: int) -> Vector:
        """The vector in whole steps of 2^exponent, exactly."""

    def finish(self, noisy: Floats) -> Any:
        """What people want to see, from the noisy vector alone."""
        return float(noisy[0])

    def error(self, noisy: Floats, width: float) -> Any:
        """The error bar of `finish`, from the noisy vector and a bound on each coordinate's error."""
        return width

    @property
    def l1(self) -> float:
        return exact.float_above(self._grouped.l1)

    @property
    def l2(self) -> float:
        return exact.sqrt_above(self._grouped.l2_squared)

    @property
    def linf(self) -> float:
        return exact.float_above(self._grouped.linf)

    @property
    def _grouped(self) -> Sensitivity:
        g, one = self.unit.group, self.sensitivity
        return Sensitivity(g * one.l1, g * g * one.l2_squared, g * one.linf)

    def in_steps(self, exponent: int) -> Sensitivity:
        """The sensitivity for the whole group, in grid steps: what noise is scaled by."""
        real = self._grouped
        step = Fraction(2) ** exponent
        return Sensitivity(real.l1 / step, real.l2_squared / step**2, real.linf / step)


@dataclass(frozen=True, kw_only=True)
class _PerUnit(Bounded):
    per_unit: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "per_unit", checks.whole(self.per_unit, "per_unit", most=2**18))
        if self.unit.column is None and self.per_unit != 1:
            raise checks.refuse("per_unit", self.per_unit, "1 where each row is its own unit")


@dataclass(frozen=True, kw_only=True)
class _Counting(_PerUnit):
    """Whole numbers of rows; a unit that comes or goes moves them all one way."""

    @property
    def largest(self) -> Fraction:
        return Fraction(1)

    @property
    def whole(self) -> bool:
        return True

    @property
    def monotone(self) -> bool:
        return self.unit.change != "replace"


@record("count/1")
@dataclass(frozen=True, kw_only=True)
class Count(_Counting):
    """How many rows there are (of a unit's rows, at most `per_unit` count)."""

    @property
    def sensitivity(self) -> Sensitivity:
        k = Fraction(self.per_unit)
        return Sensitivity(k, k * k, k)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {}

    @property
    def names(self) -> tuple[str]:
        return ("count",)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        counted = np.minimum(np.bincount(rows.units, minlength=rows.unit_count), self.per_unit)
        return _exact([int(counted.sum()) << -exponent])


@dataclass(frozen=True, kw_only=True)
class _Numeric(_PerUnit):
    column: str
    lower: Exact
    upper: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        low, high = checks.interval(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.real(self.lower, self.upper)}


@record("sum/1")
@dataclass(frozen=True, kw_only=True)
class Sum(_Numeric):
    """The sum of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    A unit contributes between min(0, lower) * per_unit and max(0, upper) * per_unit: 0 where it has no value.
    """

    @property
    def sensitivity(self) -> Sensitivity:
        low, high = min(Fraction(0), self.lower), max(Fraction(0), self.upper)
        reach = self.per_unit * (high - low if self.unit.change == "replace" else max(-low, high))
        return Sensitivity(reach, reach**2, reach)

    @property
    def names(self) -> tuple[str]:
        return (f"sum of {self.column}",)

    @property
    def largest(self) -> Fraction:
        return max(abs(self.lower), abs(self.upper))

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series = rows[self.column]
        values = grid.quantise(series.values[series.valid], self.lower, self.upper, exponent)
        each, _ = _per_unit(values, rows, series.valid, self.per_unit)
        return _exact([grid.exact_sum(each)])


@record("mean/1")
@dataclass(frozen=True, kw_only=True)
class Mean(_Numeric):
    """The mean of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    Two coordinates: the sum of the values measured from the middle of the interval, and the count in units of half the
    interval's width h, so that both deserve the same noise. With c <= k counted rows a unit brings (s, h c) with
    |s| <= h c:
        add-remove, zero-out   L1 2kh,  L2^2 2 k^2 h^2,  Linf kh
        replace                L1 2kh,  L2^2 4 k^2 h^2,  Linf 2kh
    (replace: |s - s'| + h|c - c'| <= h(c + c') + h|c - c'| = 2h max(c, c'), and (s - s')^2 + h^2 (c - c')^2 <=
    2 h^2 (c^2 + c'^2)).
    """

    def _centre(self, exponent: int) -> tuple[int, int]:
        """The middle and half the width, in steps; half is rounded down, so that no value exceeds it."""
        low, high = grid.ends(self.lower, self.upper, exponent)
        return (low + high) // 2, grid.ends(-self._half, self._half, exponent)[1]

    @property
    def _half(self) -> Fraction:
        return (self.upper - self.lower) / 2

    @property
    def _middle(self) -> Fraction:
        return (self.upper + self.lower) / 2

    @property
    def sensitivity(self) -> Sensitivity:
        reach = self.per_unit * self._half
        two = 2 if self.unit.change == "replace" else 1
        return Sensitivity(2 * reach, 2 * two * reach**2, two * reach)

    @property
    def combined(self) -> int:
        return 2

    @property
    def names(self) -> tuple[str, str]:
        return (f"sum of {self.column} from the middle", "count")

    @property
    def largest(self) -> Fraction:
        return max(abs(self.lower), abs(self.upper))

    def steps(self, rows: Rows, exponent: int) -> Vector:
        series = rows[self.column]
        middle, half = self._centre(exponent)
        values = grid.quantise(series.values[series.valid], self.lower, self.upper, exponent)
        centred = np.clip(values - middle, -half, half)
        each, counted = _per_unit(centred, rows, series.valid, self.per_unit)
        return _exact([grid.exact_sum(each), grid.exact_sum(counted) * half])

    def finish(self, noisy: Floats) -> float:
        total, weighted = map(float, noisy)
        if weighted <= 0:
            return float(self._middle)
        mean = float(self._middle) + float(self._half) * total / weighted
        return min(max(mean, float(self.lower)), float(self.upper))

    def error(self, noisy: Floats, width: float) -> float:
        """|S/N - (S - e)/(N - f)| <= (|e| + |S/N| |f|) / (N - |f|); nothing is known where noise hides the count."""
        total, weighted = map(float, noisy)
        whole = float(self.upper - self.lower)
        if weighted <= width:
            return whole
        return min(whole, float(self._half) * (width + abs(total / weighted) * width) / (weighted - width))


@record("histogram/1")
@dataclass(frozen=True, kw_only=True)
class Histogram(_Counting):
    """Rows per category; rows of no listed category do not count.

    A unit's counts are scaled down together where it has more than `per_unit` rows, so their L1 norm is at most that.
    """

    column: str
    categories: tuple[Any, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        object.__setattr__(self, "categories", checks.distinct(self.categories, "categories", least=1))

    @property
    def sensitivity(self) -> Sensitivity:
        k, two = Fraction(self.per_unit), 2 if self.unit.change == "replace" else 1
        return Sensitivity(two * k, two * k * k, k)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.category(self.categories)}

    @property
    def names(self) -> tuple[Any, ...]:
        return self.categories

    def steps(self, rows: Rows, exponent: int) -> Vector:
        cells = len(self.categories)
        cell, valid = recode(rows, self.column, self.categories)
        cell, units = cell[valid], rows.units[valid]
        if rows.unit.column is None:
            return np.bincount(cell, minlength=cells).astype(np.int64) << -exponent
        pairs, weight = np.unique(units * np.int64(cells) + cell, return_counts=True)
        owner, where = pairs // cells, pairs % cells
        owned = np.bincount(units, minlength=rows.unit_count)[owner]
        share = weight.astype(np.int64) << -exponent
        scaled = _times_over(share, np.minimum(owned, self.per_unit), owned)
        return _sums(scaled, where, cells)

    def finish(self, noisy: Floats) -> dict[Any, float]:
        return dict(zip(self.categories, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> dict[Any, float]:
        return dict.fromkeys(self.categories, width)


@record("declared/1")
@dataclass(frozen=True, kw_only=True)
class Declared(Bounded):
    """Your own function of the rows, with the sensitivity you vouch for.

    It returns one number per name. The result is rounded to the grid, which may move each coordinate by half a step on
    either neighbour: the noise is scaled for one step more in every coordinate. Values that are not finite count as 0.
    """

    fn: Callable[[Rows], Any] = field(metadata=LIVE)
    reads: Mapping[str, Column]
    labels: tuple[str, ...]
    declared_l1: Exact
    declared_l2: Exact
    declared_linf: Exact

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.fn):
            raise checks.refuse("fn", self.fn, "a function of the rows")
        object.__setattr__(self, "labels", checks.distinct(self.labels, "labels"))
        object.__setattr__(self, "reads", schema.columns_read(self.reads))
        for name in ("declared_l1", "declared_l2", "declared_linf"):
            object.__setattr__(self, name, checks.positive(getattr(self, name), name))
        if not self.declared_linf <= self.declared_l2 <= self.declared_l1:
            raise checks.refuse("declared_l2", float(self.declared_l2), "linf <= l2 <= l1, as norms are ordered")

    @property
    def vouched(self) -> bool:
        return True

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(self.declared_l1, self.declared_l2**2, self.declared_linf)

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.reads

    @property
    def names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def largest(self) -> Fraction:
        return self.declared_linf

    def in_steps(self, exponent: int) -> Sensitivity:
        one, n = super().in_steps(exponent), len(self.labels)
        l2 = Fraction(exact.sqrt_above(one.l2_squared)) + Fraction(exact.sqrt_above(Fraction(n)))
        return Sensitivity(one.l1 + n, l2**2, one.linf + 1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        values = np.asarray(self.fn(rows), dtype=np.float64).reshape(-1)
        if values.size != len(self.labels):
            raise ValueError(f"fn returned {values.size} numbers for {len(self.labels)} labels")
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -exponent))
        return np.clip(scaled, -(2.0**61), 2.0**61).astype(np.int64)

    def finish(self, noisy: Floats) -> Any:
        return super().finish(noisy) if len(self.labels) == 1 else dict(zip(self.labels, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> Any:
        return width if len(self.labels) == 1 else dict.fromkeys(self.labels, width)


def count(unit: Unit, *, per_unit: int = 1) -> Count:
    return Count(unit=unit, per_unit=per_unit)


def clipped_sum(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Sum:
    return Sum(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def mean(column: str, lower: Any, upper: Any, unit: Unit, *, per_unit: int = 1) -> Mean:
    return Mean(column=column, lower=lower, upper=upper, unit=unit, per_unit=per_unit)


def histogram(column: str, categories: Any, unit: Unit, *, per_unit: int = 1) -> Histogram:
    return Histogram(column=column, categories=categories, unit=unit, per_unit=per_unit)


def votes(column: str, categories: Any, unit: Unit) -> Histogram:
    """One vote per unit, shared out over its rows: what selection mechanisms score candidates by."""
    return Histogram(column=column, categories=categories, unit=unit)


def declared(
    fn: Callable[[Rows], Any], unit: Unit, *, reads: Mapping[str, Column], labels: Any, l1: Any, l2: Any, linf: Any
) -> Declared:
    """A function of your own; you vouch for its sensitivity."""
    return Declared(fn=fn, unit=unit, reads=reads, labels=labels, declared_l1=l1, declared_l2=l2, declared_linf=linf)


def _exact(values: list[int]) -> Vector:
    """int64 where it is wide enough with room for noise, Python integers otherwise."""
    return np.array(values, dtype=np.int64 if all(abs(v) < 2**61 for v in values) else object)


def recode(rows: Rows, column: str, categories: tuple[Any, ...]) -> tuple[Integers, NDArray[np.bool_]]:
    """Codes among the plan's categories, from codes among the schema's."""
    series, known = rows[column], rows.table.column(column).categories or (False, True)
    if known == categories:
        return series.values, series.valid
    place = {value: index for index, value in enumerate(categories)}
    table = np.array([place.get(value, -1) for value in known], dtype=np.int64)
    codes = table[series.values]
    return np.maximum(codes, 0), series.valid & (codes >= 0)


def _per_unit(values: Integers, all_rows: Rows, valid: NDArray[np.bool_], most: int) -> tuple[Integers, Integers]:
    """Each unit's average times min(its rows, most), rounded down, and that number of rows.

    Values have at most 44 bits and a unit below 2^31 rows: sums are kept as high * 2^24 + low so that they fit.
    """
    if all_rows.unit.column is None:
        return values, np.ones(values.size, dtype=np.int64)
    units, count = all_rows.units[valid], all_rows.unit_count
    rows = np.bincount(units, minlength=count).astype(np.int64)
    kept = np.minimum(rows, most)
    high, low = _sums(values >> 24, units, count), _sums(values & 0xFFFFFF, units, count)
    high, low = high + (low >> 24), low & 0xFFFFFF
    some = np.maximum(rows, 1)
    average, rest = high // some, high % some
    fine = (rest << 24) + low
    average, rest = (average << 24) + fine // some, fine % some
    return average * kept + rest * kept // some, kept


def _times_over(values: Integers, times: Integers, over: Integers) -> Integers:
    """values * times // over, without overflow for times <= over."""
    return values // over * times + values % over * times // over


def _sums(values: Integers, groups: Integers, count: int) -> Integers:
    """Exact int64 sums by group: sorted, then one pass."""
    sums = np.zeros(count, dtype=np.int64)
    if values.size:
        order = np.argsort(groups, kind="stable")
        ranked = groups[order]
        starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
        sums[ranked[starts]] = np.add.reduceat(values[order], starts)
    return sums
