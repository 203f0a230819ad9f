"""The grid: data and noise live on the whole multiples of a power of two that public fields choose.

Values are rounded to the grid before anything is added up, sums are exact integer sums, and noise is a whole number
of steps. So a release is an exact integer computation: no order of rows, thread count or float rounding can move it,
and the lowest bits of an answer tell nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

# How much finer than the noise a step is. Counts are whole numbers: 2^10 makes rounding cost a millionth of the noise.
# Real values are rounded one by one: at 2^28 half a million rows that are all rounded the same way shift the sum by
# less than 0.1 % of the noise, and rows rounded as chance has it by a millionth.
FINER_COUNTS, FINER_VALUES = 10, 28
_INT64 = (-(2**63), 2**63 - 1)
_ROOM = 30  # counts of up to 2^31 rows fit int64 with so many binary places
_LARGEST = 43  # the largest clipped value has at most this many bits, so that sums of products stay exact in int64


def exponent_for(scale: Fraction, *, largest: Fraction, finer: int, coarsest: int | None = None) -> int:
    """The grid step is 2^exponent: `finer` halvings below the noise scale, as far as the largest clipped value allows;
    both are public. Whole numbers have a coarsest step at which they are exact."""
    exponent = max(floor_log2(scale) - finer, finest(largest, coarsest))
    return exponent if coarsest is None else min(exponent, coarsest)


def finest(largest: Fraction, coarsest: int | None = None) -> int:
    """The least exponent at which int64 is wide enough for the largest clipped value, and for sums of whole numbers."""
    exponent = floor_log2(largest) + 1 - _LARGEST
    return exponent if coarsest is None else max(exponent, coarsest - _ROOM)


def floor_log2(x: Fraction) -> int:
    """The largest n with 2^n <= x, for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def steps(value: Fraction, exponent: int) -> Fraction:
    """A real quantity in grid steps."""
    return value / Fraction(2) ** exponent


@lru_cache(maxsize=256)
def ends(lower: Fraction, upper: Fraction, exponent: int) -> tuple[int, int]:
    """The interval in grid steps, rounded inward. One that holds no step becomes the step next to it towards 0, whose
    size is within the bounds too."""
    low, high = math.ceil(steps(lower, exponent)), math.floor(steps(upper, exponent))
    return (low, high) if low <= high else (min(low, high, key=abs),) * 2


def quantise(values: NDArray[np.generic], lower: Fraction, upper: Fraction, exponent: int) -> Integers:
    """Nearest grid step, clamped into [lower, upper]. Infinities clamp too. No value exceeds the bounds that the
    sensitivity was computed from."""
    low, high = ends(lower, upper, exponent)
    if values.dtype.kind == "i" and exponent <= 0:
        least, most = max(math.ceil(lower), _INT64[0]), min(math.floor(upper), _INT64[1])
        whole = np.clip(values.astype(np.int64), least, most)
        return np.clip(np.left_shift(whole, -exponent), low, high)
    with np.errstate(over="ignore"):
        scaled = np.rint(np.ldexp(values.astype(np.float64), -exponent))
    return np.clip(scaled, low, high).astype(np.int64)


def exact_sum(values: Integers) -> int:
    """The sum of int64 values as a Python integer: halves are added apart, so nothing overflows below 2^31 rows."""
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def to_float(noisy: NDArray[np.generic], exponent: int) -> NDArray[np.float64]:
    """Grid steps back to real numbers: post-processing, rounded to the nearest float."""
    return np.ldexp(noisy.astype(np.float64), exponent)
