"""Computations that carry their own sensitivity.

A `Bounded` is a vector-valued computation on rows together with how far one unit can move it, in the L1, L2 and
L-infinity norms. Nobody types a sensitivity beside a noise call: noise, price and error bars all read it here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact, grid, schema
from ..checks import Exact
from ..questions import CLIP, PRICE, REACH
from ..rows import Rows
from ..schema import Column
from ..strategies import Mixing
from ..units import Unit, rows_or_users

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

    unit: Unit = field(metadata=PRICE)

    def __post_init__(self) -> None:
        rows_or_users(self.unit)

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
    def size(self) -> int:
        """How many coordinates there are."""
        return len(self.names)

    @property
    @abstractmethod
    def largest(self) -> Fraction:
        """The largest size of one row's contribution to one coordinate."""

    @property
    def whole(self) -> bool:
        """Are the natural values whole numbers?"""
        return False

    @property
    def finer(self) -> int:
        """How many halvings finer than the noise the grid should be, so that rounding does not show."""
        return grid.FINER_COUNTS if self.whole else grid.FINER_VALUES

    @property
    def coarsest(self) -> int | None:
        """The largest exponent at which `steps` is exact; None where values are rounded to the grid anyway."""
        return 0 if self.whole else None

    @property
    def monotone(self) -> bool:
        """Does one unit's change move all coordinates the same way?"""
        return False

    @property
    def exclusive(self) -> bool:
        """Are the coordinates cells: does each row count in at most one of them, and a unit, by numbers of at least 0,
        for at most `per_unit` in all?"""
        return False

    @property
    def vouched(self) -> bool:
        """Is the sensitivity somebody's word rather than computed?"""
        return False

    @property
    def combined(self) -> int:
        """How many coordinates one finished number is made of."""
        return 1

    @property
    def mixing(self) -> Mixing | None:
        """How finished numbers are mixed of the coordinates, where they are; else each is one of them."""
        return None

    @abstractmethod
    def steps(self, rows: Rows, exponent: int) -> Vector:
        """The vector in whole steps of 2^exponent, exactly."""

    def finish(self, noisy: Floats) -> Any:
        """What people want to see, from the noisy vector alone."""
        return float(noisy[0])

    def error(self, noisy: Floats, width: Any) -> Any:
        """The error bar of `finish`, from the noisy vector and a bound on each coordinate's error (on each finished
        number's, where they are mixed)."""
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

    @cached_property
    def _grouped(self) -> Sensitivity:
        g, one = self.unit.group, self.sensitivity
        return Sensitivity(g * one.l1, g * g * one.l2_squared, g * one.linf)

    def in_steps(self, exponent: int) -> Sensitivity:
        """The sensitivity for the whole group, in grid steps: what noise is scaled by."""
        real = self._grouped
        step = Fraction(2) ** exponent
        return Sensitivity(real.l1 / step, real.l2_squared / step**2, real.linf / step)


@dataclass(frozen=True, kw_only=True)
class PerUnit(Bounded):
    per_unit: int = field(default=1, metadata=REACH)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "per_unit", checks.whole(self.per_unit, "per_unit", most=2**18))
        if self.unit.column is None and self.per_unit != 1:
            raise checks.refuse("per_unit", self.per_unit, "1 where each row is its own unit")


@dataclass(frozen=True, kw_only=True)
class Counting(PerUnit):
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


@dataclass(frozen=True, kw_only=True)
class Numeric(PerUnit):
    column: str
    lower: Exact = field(metadata=CLIP)
    upper: Exact = field(metadata=CLIP)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        low, high = checks.interval(self.lower, self.upper)
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.real(self.lower, self.upper)}
