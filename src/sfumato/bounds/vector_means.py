"""The mean of rows as vectors, each clipped to a ball."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact, schema
from ..checks import Exact
from ..grid import Integers
from ..questions import ANY_ORDER, CLIP, COARSE
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Floats, PerUnit, Sensitivity, Vector
from .gather import whole_vector
from .moments import BITS, BLOCK, line_sums, one_step_more, to_steps, weights

_MOST_COLUMNS = 10_000


@record("vector-mean/1")
@dataclass(frozen=True, kw_only=True)
class VectorMean(PerUnit):
    """The mean of the rows as vectors of d columns, each row pulled into the ball of `radius` around `centre`.

    A row with a NULL in any of the columns is absent; an infinite value is a direction, and so is clipped to the ball.
    With y = (x - centre)/radius, |y| <= 1, a row brings (y, a): a weighs the count, 1 under replace, where it is for
    free, else the power of two near d^(-1/4)/2, since a mean of many numbers leans less on each count. A unit brings at
    most `per_unit` = k times the average of its rows, a point of k conv({0} and all (y, a)), and so
        add-remove, zero-out   L1 k (sqrt d + a),  L2^2 k^2 (1 + a^2),  Linf k
        replace                L1 2k sqrt d,       L2^2 4 k^2,          Linf 2k
    (|y|_1 <= sqrt(d) |y|; replace: from y to -y, which is not less than from (y, a) to 0, as a = 1.) A clipped row is
    a whole vector of squared length at most 4^30 steps, checked in integers.
    """

    axes: tuple[str, ...] = field(metadata=ANY_ORDER)
    radius: Exact = field(metadata=CLIP)
    centre: tuple[Exact, ...] = field(default=(), metadata=COARSE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "axes", checks.distinct(self.axes, "columns"))
        for name in self.axes:
            checks.label(name, "columns")
        if len(self.axes) > _MOST_COLUMNS:
            raise checks.refuse("columns", len(self.axes), f"at most {_MOST_COLUMNS} columns")
        object.__setattr__(self, "radius", checks.positive(self.radius, "radius"))
        centre = self.centre if isinstance(self.centre, tuple | list) else (self.centre,)
        if centre and len(centre) != len(self.axes):
            raise checks.refuse("centre", self.centre, "a number for each column")
        place = tuple(checks.bound(each, "centre") for each in centre) or (Fraction(0),) * len(self.axes)
        object.__setattr__(self, "centre", place)

    @property
    def _weight(self) -> Fraction:
        """Of the count."""
        if self.unit.change == "replace":
            return Fraction(1)
        halvings = 1
        while 16**halvings < len(self.axes):
            halvings += 1
        return Fraction(1, 2**halvings)

    @property
    def sensitivity(self) -> Sensitivity:
        k, a = Fraction(self.per_unit), self._weight
        side = Fraction(exact.sqrt_above(Fraction(len(self.axes))))
        if self.unit.change == "replace":
            return Sensitivity(2 * k * side, 4 * k * k, 2 * k)
        return Sensitivity(k * (side + a), k * k * (1 + a * a), k)

    def in_steps(self, exponent: int) -> Sensitivity:
        return one_step_more(super().in_steps(exponent), len(self.names))

    @property
    def combined(self) -> int:
        return 2

    @property
    def columns(self) -> Mapping[str, Column]:
        most = checks.MAGNITUDE[1]
        reach = [(max(c - self.radius, -most), min(c + self.radius, most)) for c in self.centre]
        return {name: schema.real(*ends) for name, ends in zip(self.axes, reach, strict=True)}

    @property
    def names(self) -> tuple[str, ...]:
        return (*(f"sum of {name} from the centre" for name in self.axes), "count")

    @property
    def largest(self) -> Fraction:
        return Fraction(1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        valid = np.logical_and.reduce([rows[name].valid for name in self.axes])
        y = np.empty((len(self.axes), int(valid.sum())))
        with np.errstate(over="ignore"):
            for line, name, middle in zip(y, self.axes, self.centre, strict=True):
                line[:] = (rows[name].values[valid].astype(np.float64) - float(middle)) / float(self.radius)
        weight, bits = weights(rows, valid, self.per_unit)
        sums = [0] * len(self.axes)
        for start in range(0, len(weight), BLOCK):
            block = slice(start, start + BLOCK)
            heavy = line_sums(weight[block] * _into_ball(y[:, block]))
            sums = [total + more for total, more in zip(sums, heavy, strict=True)]
        fine = self._weight.denominator.bit_length() - 1
        parts = [(total, bits + BITS) for total in sums] + [(int(weight.sum()), bits + fine)]
        return whole_vector([to_steps(value, each, exponent) for value, each in parts])

    def _mean(self, noisy: Floats) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """The number of rows, and the mean in radii before and after it is pulled into the ball."""
        count = float(noisy[-1]) / float(self._weight)
        loose = np.asarray(noisy[:-1], dtype=np.float64) / count if count > 0 else np.zeros(len(self.axes))
        return count, loose, loose / max(1.0, math.sqrt(float(loose @ loose)))

    def finish(self, noisy: Floats) -> dict[str, float]:
        _, _, mean = self._mean(noisy)
        place = np.array([float(c) for c in self.centre]) + float(self.radius) * mean
        return dict(zip(self.axes, place.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> dict[str, float]:
        """As for a mean, plus what pulling the answer into the ball moved it; at most the whole ball."""
        count, loose, mean = self._mean(noisy)
        around = width / float(self._weight)
        if count <= around:
            off = 1.0 + np.abs(mean)
        else:
            off = (width + np.abs(loose) * around) / (count - around) + np.abs(loose - mean)
        bars = float(self.radius) * np.minimum(off, 1.0 + np.abs(mean))
        return dict(zip(self.axes, bars.tolist(), strict=True))


def _into_ball(y: NDArray[np.float64]) -> Integers:
    """Whole vectors of squared length at most 4^30: each row times 2^30, shortened to the ball, cut towards 0. (Rows of
    the table lie side by side: a line per column.)

    Lengths are added up column by column, so that no row's rounding depends on other rows. Float64 gets them right to
    some 2^-40, so a cut row is too long by less than one step, if at all: one step off every coordinate that is not 0
    then shortens its square by at least its length. What would still be too long (no row is) becomes 0, so the bound
    does not rest on float64.
    """
    infinite = np.isinf(y)
    if infinite.any():
        y = np.where(infinite.any(axis=0), np.where(infinite, np.sign(y), 0.0), y)
    shares = y / np.abs(y).max(axis=0, initial=1.0)  # so that no square overflows
    squares = np.zeros(y.shape[1])
    for line in shares:
        squares += line * line
    # A row within the unit cube was not divided; any other has a share of 1, so its length is at least 1.
    length = np.maximum(np.sqrt(squares), 1.0)
    whole = np.trunc(np.ldexp(shares / length, BITS)).astype(np.int64)
    too_long = _squares(whole) > 4**BITS
    whole[:, too_long] -= np.sign(whole[:, too_long])
    whole[:, _squares(whole) > 4**BITS] = 0
    return whole


def _squares(whole: Integers) -> Integers:
    return np.einsum("ij,ij->j", whole, whole)
