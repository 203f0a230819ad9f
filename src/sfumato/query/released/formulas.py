"""From measured sums to statistics, as figures.

n is a (weighted) number of rows, s and q are sums of x - centre and of (x - centre)^2. Sums measured from the centre
of the public interval need less noise, and squares of small numbers lose fewer digits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import images
from .figures import Figure, constant, given


def total(n: Figure, s: Figure, centre: float) -> Figure:
    """SUM(x), from the sum of x - centre."""
    return s if centre == 0 else s + _times(n, centre)


def mean(n: Figure, s: Figure, centre: float, lower: float = -np.inf, upper: float = np.inf) -> Figure:
    """AVG(x), which lies in [lower, upper]. Where the noise left no rows nothing is known of it but that: it is in the
    middle, unreliable, and its interval is all of [lower, upper]."""
    size, there = n.value.size, n.value > 0
    around = images.clip(s / n, lower - centre, upper - centre)
    known = replace(around, value=np.where(there, around.value, 0.0), raw=None) + constant(centre, size)
    if there.all() or not np.isfinite(upper - lower):
        return known
    ends = np.full(size, lower), np.full(size, upper)
    nothing = given("nothing known", (ends[0] + ends[1]) / 2, lambda _: ends, np.ones(size, dtype=np.bool_))
    return images.where(there, known, nothing)


def variance(n: Figure, s: Figure, q: Figure, *, sample: bool = True, width: float = np.inf) -> Figure:
    """VAR_SAMP(x), or VAR_POP(x): never negative; `raw` is what it was before that. `width` is upper - lower: the
    variance is at most width^2/4, and of a sample (n >= 2) twice that."""
    if sample:
        return images.clip(_moment(n, s, s, q) / (n - _one(n)), 0.0, width * width / 2)
    return images.clip(_moment(n, s, s, q) / n, 0.0, width * width / 4)


def deviation(n: Figure, s: Figure, q: Figure, *, sample: bool = True, width: float = np.inf) -> Figure:
    """STDDEV_SAMP(x), or STDDEV_POP(x)."""
    return images.root(variance(n, s, q, sample=sample, width=width))


def covariance(n: Figure, sx: Figure, sy: Figure, sxy: Figure, *, sample: bool = True, most: float = np.inf) -> Figure:
    """COVAR_SAMP(y, x), or COVAR_POP(y, x), of which `most` is the largest size: a quarter of the product of both
    widths (of a sample, n >= 2, twice that)."""
    moment, limit = _moment(n, sx, sy, sxy), 2 * most if sample else most
    return images.clip(moment / (n - _one(n) if sample else n), -limit, limit)


def correlation(n: Figure, sx: Figure, sy: Figure, qx: Figure, qy: Figure, sxy: Figure) -> Figure:
    """CORR(y, x), in [-1, 1]. NULL where the noise left no variance."""
    across = (images.root(images.clip(_moment(n, s, s, q), 0.0)) for s, q in ((sx, qx), (sy, qy)))
    one, two = across
    return images.clip(_moment(n, sx, sy, sxy) / (one * two), -1.0, 1.0)


def ratio(over: Figure, under: Figure, lower: float = -np.inf, upper: float = np.inf) -> Figure:
    """One over the other, in [lower, upper] where that is known."""
    return images.clip(over / under, lower, upper) if np.isfinite(lower) or np.isfinite(upper) else over / under


def _moment(n: Figure, sx: Figure, sy: Figure, sxy: Figure) -> Figure:
    """sum (x - mean x)(y - mean y)."""
    return sxy - sx * sy / n


def _times(x: Figure, factor: float) -> Figure:
    return x * constant(factor, x.value.size)


def _one(n: Figure) -> Figure:
    return constant(1.0, n.value.size)
