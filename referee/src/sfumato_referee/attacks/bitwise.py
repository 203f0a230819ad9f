"""The view of a float that gives naive noise away: how large it is, and where its lowest set bit stands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .targets import Floats

Integers = NDArray[np.int64]


def magnitude(y: Floats) -> Integers:
    """floor(log2 |y|); for 0, below every other."""
    return np.where(y == 0, -2000, np.frexp(y)[1].astype(np.int64) - 1)


def lowest_bit(y: Floats) -> Integers:
    """The n of the largest 2^n that divides y; for 0, above every other."""
    mantissa, exponent = np.frexp(np.abs(y))
    whole = np.ldexp(mantissa, 53).astype(np.int64)  # at most 2^53, exact
    lowest = (whole & -whole).astype(np.float64)
    return np.where(y == 0, 2000, exponent.astype(np.int64) - 53 + np.frexp(lowest)[1] - 1)
