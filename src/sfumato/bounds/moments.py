"""Sums of products of columns, exactly: what variances, covariances and vector means are made of.

A value becomes a whole multiple of 2^-30 in [-1, 1]. A row of a unit with m rows weighs min(m, per_unit)/m, rounded
down to a multiple of 2^-31, so that a unit brings at most `per_unit` times its average row. Sums of weights, of
weighted values and of weighted products are then exact whole numbers, and are rounded down to the grid once, at the
end: two neighbours move a coordinate by less than one step more than they would without a grid (`one_step_more`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact, grid
from ..grid import Integers
from ..rows import Rows
from .base import Sensitivity

BITS = 30  # of a value in [-1, 1]
_WEIGHT_BITS = 31
_LIMB = 15
BLOCK = 2**14  # rows: a block's products of two limbs add up to less than 2^(2 * 15 + 14 + 1), exact in float64

Weights = tuple[Integers, int]


def wide_enough(lower: Fraction, upper: Fraction, name: str = "upper") -> None:
    """Refuse an interval whose width float64 cannot divide by."""
    if upper - lower < checks.MAGNITUDE[0]:
        raise checks.refuse(name, float(upper), "a number at least 1e-100 above the lower end")


def centred(values: NDArray[np.generic], lower: Fraction, upper: Fraction) -> Integers:
    """Values from the middle of [lower, upper], in half-widths: clamped to [-1, 1], in multiples of 2^-30."""
    with np.errstate(over="ignore"):
        shares = (values.astype(np.float64) - float((lower + upper) / 2)) / float((upper - lower) / 2)
    return np.rint(np.ldexp(np.clip(shares, -1.0, 1.0), BITS)).astype(np.int64)


def weights(rows: Rows, valid: NDArray[np.bool_], most: int) -> Weights:
    """For each valid row min(m, most)/m, where its unit has m of them, and how many bits are fractional."""
    if rows.unit.column is None:
        return np.ones(int(valid.sum()), dtype=np.int64), 0
    owner = rows.units[valid]
    owned = np.bincount(owner, minlength=rows.unit_count).astype(np.int64)
    row_weights = (np.minimum(owned, most) << _WEIGHT_BITS) // np.maximum(owned, 1)
    return row_weights[owner], _WEIGHT_BITS


def products(left: Integers, right: Integers) -> NDArray[Any]:
    """left right^T as Python integers, for |left| <= 2^61 and |right| <= 2^30; a line per column of the table.

    Values are cut into limbs of 15 bits (the highest keeps the sign) and rows into blocks, so that every sum inside a
    float64 matrix product is a whole number below 2^53: exact in any order.
    """
    ours, theirs = (2 if left is right else 5), 2
    sums = np.zeros((ours * len(left), theirs * len(right)), dtype=np.int64)
    for start in range(0, left.shape[1], BLOCK):
        block = slice(start, start + BLOCK)
        sums += (_limbs(left[:, block], ours) @ _limbs(right[:, block], theirs).T).astype(np.int64)
    places = _LIMB * np.add.outer(np.repeat(np.arange(ours), len(left)), np.repeat(np.arange(theirs), len(right)))
    shifted = np.left_shift(sums.astype(object), places.astype(object))
    return np.asarray(shifted.reshape(ours, len(left), theirs, len(right)).sum(axis=(0, 2)), dtype=object)


def _limbs(values: Integers, count: int) -> NDArray[np.float64]:
    """The lowest limbs of all lines, then the next ones, the highest with the sign."""
    shifted = [values >> (_LIMB * i) for i in range(count)]
    return np.concatenate([limb & (2**_LIMB - 1) for limb in shifted[:-1]] + shifted[-1:]).astype(np.float64)


def line_sums(values: Integers) -> list[int]:
    return [grid.exact_sum(line) for line in values]


def to_steps(total: int, bits: int, exponent: int) -> int:
    """total * 2^-bits in whole steps of 2^exponent, rounded down."""
    shift = -bits - exponent
    return total << shift if shift >= 0 else total >> -shift


def one_step_more(moved: Sensitivity, coordinates: int) -> Sensitivity:
    """In steps, where each coordinate was rounded down once: |floor(a) - floor(b)| < |a - b| + 1."""
    l2 = Fraction(exact.sqrt_above(moved.l2_squared)) + Fraction(exact.sqrt_above(Fraction(coordinates)))
    return Sensitivity(moved.l1 + coordinates, l2**2, moved.linf + 1)


def share(total: float, count: float, width: float, count_width: float) -> tuple[float, float]:
    """An average that lies in [-1, 1], and how far it may be off.

    |S/N - (S - e)/(N - f)| <= (|e| + |S/N| |f|) / (N - |f|); nothing is known where noise hides the count.
    """
    if count <= 0:
        return 0.0, 1.0
    average = total / count
    clamped = min(max(average, -1.0), 1.0)
    if count <= count_width:
        return clamped, 1.0 + abs(clamped)
    off = (width + abs(average) * count_width) / (count - count_width)
    return clamped, min(off, 1.0 + abs(clamped))
