"""The covariance or correlation matrix of clamped columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, schema
from ..questions import COARSE, PRICE
from ..record import record
from ..rows import Rows
from ..schema import Column, Named
from .base import Floats, PerUnit, Sensitivity, Vector
from .gather import whole_vector
from .moments import BITS, centred, line_sums, one_step_more, products, share, to_steps, weights, wide_enough

Matrix = dict[str, dict[str, float]]
_MOST_COLUMNS = 200


@record("covariance/1")
@dataclass(frozen=True, kw_only=True)
class Covariance(PerUnit):
    """The covariances (over the number of rows) of columns, each clamped to its interval; `correlation` divides them by
    the standard deviations. Only rows with a value in every column count. `project` answers with the nearest matrix
    that has no negative eigenvalue; the raw numbers stay as they are.

    With y_i the value in half-widths from the middle of its interval, a row brings r(y): 1, the d values y_i, the
    d(d-1)/2 products y_i y_j, and the d squares from their middle, y_i^2 - 1/2. A unit brings at most `per_unit` = k
    times the average of its rows, a point of k conv({0} and all r(y)), so that norms and their differences are largest
    at the corners 0 and r(y):
        add-remove, zero-out   all |y_i| = 1:   L1 k (1 + d + d(d-1)/2 + d/2),  L2^2 k^2 (1 + d + d(d-1)/2 + d/4),
                               Linf k
        replace                L1 k (2d + d(d-1)/2 + d/(2(d+1))),  L2^2 k^2 max over whole m of 4m(d+1-m),  Linf 2k
    Replace: compare r(y) with r(z). While y_i is larger in size than z_i the distance is convex in y_i (and the other
    way round), so let the larger one be 1; flip signs where it is -1. Then |y_i y_j - z_i z_j| is 1 - z_i z_j where the
    ones are on one side, and |z_i - z_j| <= 1 - z_i z_j where they are not: so let y = (1, ..., 1). L1 is then
    sum (2 - z_i - z_i^2) + sum (1 - z_i z_j), concave, and largest where all z_i = -1/(d+1). In L2^2 the terms of i
    alone are, with u = 1 - z_i, u^2 + u^2 (2 - u)^2 <= 2u (equal at 0, 1 and 2), so all of it is at most a function
    that is convex in every z_i and equal to it at the corners: m of the z_i are -1, and 4m + 4m(d-m) is the value.
    """

    intervals: Mapping[str, Any] = field(metadata=COARSE)
    correlation: bool = False
    project: bool = field(default=False, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        intervals = self.intervals
        allowed = f"2 to {_MOST_COLUMNS} columns, such as {{'age': (0, 120), 'cost': (0, 1000)}}"
        if not isinstance(intervals, Mapping) or not 2 <= len(intervals) <= _MOST_COLUMNS:
            raise checks.refuse("columns", intervals, allowed)
        limits: dict[str, tuple[Fraction, Fraction]] = {}
        for name, ends in intervals.items():
            checks.label(name, "the name of a column")
            if not isinstance(ends, tuple | list) or len(ends) != 2:
                raise checks.refuse(name, ends, "a lower and an upper bound, such as (0, 120)")
            limits[name] = checks.interval(ends[0], ends[1], f"{name}: lower", f"{name}: upper")
            wide_enough(*limits[name], f"{name}: upper")
        object.__setattr__(self, "intervals", Named(limits))
        for name in ("correlation", "project"):
            checks.instance(getattr(self, name), bool, name, "True or False")

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.intervals)), 2))

    @property
    def sensitivity(self) -> Sensitivity:
        k, d = Fraction(self.per_unit), len(self.intervals)
        pairs = Fraction(d * (d - 1), 2)
        if self.unit.change == "replace":
            m = (d + 1) // 2
            l1 = 2 * d + pairs + Fraction(d, 2 * (d + 1))
            return Sensitivity(k * l1, k * k * 4 * m * (d + 1 - m), 2 * k)
        return Sensitivity(k * (1 + d + pairs + Fraction(d, 2)), k * k * (1 + d + pairs + Fraction(d, 4)), k)

    def in_steps(self, exponent: int) -> Sensitivity:
        return one_step_more(super().in_steps(exponent), len(self.names))

    @property
    def combined(self) -> int:
        return 6 if self.correlation else 4

    @property
    def columns(self) -> Mapping[str, Column]:
        return {name: schema.real(*ends) for name, ends in self.intervals.items()}

    @property
    def names(self) -> tuple[str, ...]:
        columns = tuple(self.intervals)
        two = (f"{columns[i]} times {columns[j]}" for i, j in self._pairs)
        return ("count", *(f"sum of {name}" for name in columns), *two, *(f"squares of {name}" for name in columns))

    @property
    def largest(self) -> Fraction:
        return Fraction(1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        valid = np.logical_and.reduce([rows[name].valid for name in self.intervals])
        y = np.stack([centred(rows[name].values[valid], *ends) for name, ends in self.intervals.items()])
        weight, bits = weights(rows, valid, self.per_unit)
        heavy = weight * y if bits else y
        count, sums, gram = int(weight.sum()), line_sums(heavy), products(heavy, y)
        half = count << (2 * BITS - 1)
        parts = [(count, bits)]
        parts += [(total, bits + BITS) for total in sums]
        parts += [(int(gram[i, j]), bits + 2 * BITS) for i, j in self._pairs]
        parts += [(int(gram[i, i]) - half, bits + 2 * BITS) for i in range(len(sums))]
        return whole_vector([to_steps(value, fine, exponent) for value, fine in parts])

    def _moments(self, noisy: Floats, width: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Covariances in half-widths, and how far each may be off."""
        d, pairs = len(self.intervals), self._pairs
        count, numbers = float(noisy[0]), [float(x) for x in noisy]
        means = [share(total, count, width, width) for total in numbers[1 : 1 + d]]
        matrix, off = np.zeros((d, d)), np.zeros((d, d))
        for (i, j), product in zip(pairs, numbers[1 + d : 1 + d + len(pairs)], strict=True):
            (m, m_off), (n, n_off), (p, p_off) = means[i], means[j], share(product, count, width, width)
            matrix[i, j] = matrix[j, i] = min(max(p - m * n, -1.0), 1.0)
            off[i, j] = off[j, i] = min(p_off + abs(m) * n_off + abs(n) * m_off + m_off * n_off, 2.0)
        for i, square in enumerate(numbers[1 + d + len(pairs) :]):
            (m, m_off), (t, t_off) = means[i], share(2 * square, count, 2 * width, width)
            matrix[i, i] = min(max((1 + t) / 2 - m * m, 0.0), 1.0)
            off[i, i] = min(t_off / 2 + m_off * min(2 * abs(m) + m_off, 1 + abs(m)), 1.0)
        return matrix, off

    def _nested(self, matrix: NDArray[np.float64]) -> Matrix:
        names = tuple(self.intervals)
        return {a: dict(zip(names, row, strict=True)) for a, row in zip(names, matrix.tolist(), strict=True)}

    @property
    def _scale(self) -> NDArray[np.float64]:
        halves = np.array([float((high - low) / 2) for low, high in self.intervals.values()])
        return np.outer(halves, halves)

    def _answer(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.project:
            matrix = _nearest(matrix)  # in half-widths, so that the columns weigh the same
        return _correlations(matrix) if self.correlation else matrix * self._scale

    def finish(self, noisy: Floats) -> Matrix:
        return self._nested(self._answer(self._moments(noisy, 0.0)[0]))

    def error(self, noisy: Floats, width: float) -> Matrix:
        """From the ends between which the truth lies; where the answer was projected, by as much more as it moved."""
        matrix, off = self._moments(noisy, width)
        answer = self._answer(matrix)
        if self.correlation:
            low, high = _correlation_ends(matrix, off)
        else:
            low, high = (matrix - off) * self._scale, (matrix + off) * self._scale
        return self._nested(np.maximum(np.maximum(answer - low, high - answer), 0.0))


def _nearest(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest positive semidefinite matrix in the Frobenius norm: negative eigenvalues become 0."""
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (nearest + nearest.T) / 2


def _correlations(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """0 where a column has no variance left; 1 on the diagonal."""
    deviations = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = np.outer(deviations, deviations)
    correlations = np.where(scale > 0, matrix / np.where(scale > 0, scale, 1.0), 0.0)
    np.fill_diagonal(correlations, 1.0)
    return np.clip(correlations, -1.0, 1.0)


def _correlation_ends(
    matrix: NDArray[np.float64], off: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    variance, around = np.diag(matrix), np.diag(off)
    small, large = np.sqrt(np.maximum(variance - around, 0.0)), np.sqrt(np.minimum(variance + around, 1.0))
    least, most = np.outer(small, small), np.outer(large, large)

    def quotient(end: NDArray[np.float64], *, upward: bool) -> NDArray[np.float64]:
        by = np.where((end > 0) == upward, least, most)  # towards 1 (or -1) a small deviation makes it larger
        unknown = np.where(end == 0, 0.0, np.sign(end))
        return np.clip(np.where(by > 0, end / np.where(by > 0, by, 1.0), unknown), -1.0, 1.0)

    low, high = quotient(matrix - off, upward=False), quotient(matrix + off, upward=True)
    for ends in (low, high):
        np.fill_diagonal(ends, 1.0)
    return low, high
