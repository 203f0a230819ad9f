"""Binomial masses and excesses in float64 that keep their digits for 10^9 trials and far tails.

Masses come from Loader's form (2000): Stirling's error terms, and the exponent as a deviance, so that nothing large is
subtracted from something large. `SLACK` is the relative error that is assumed of masses and tails (the tests hold it
against high precision); every caller takes it in the safe direction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

SLACK = 1e-10
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


def mass(k: ArrayLike, trials: ArrayLike, chance: float, other: float | None = None) -> Floats:
    """P(Bin(trials, chance) = k). `other` is 1 - chance, to be given where chance is so near 1 that digits are lost."""
    other = 1 - chance if other is None else other
    k, trials = np.broadcast_arrays(np.asarray(k, float), np.asarray(trials, float))
    rest = trials - k
    inside = (k > 0) & (rest > 0)
    x, y, n = np.where(inside, k, 1.0), np.where(inside, rest, 1.0), np.where(inside, trials, 2.0)
    exponent = _stirling_error(n) - _stirling_error(x) - _stirling_error(y)
    exponent -= _deviance(x, n * chance) + _deviance(y, n * other)
    middle = np.exp(exponent - _LOG_ROOT_TAU) * np.sqrt(n / (x * y))
    ends = np.where(k == 0, np.exp(trials * math.log(other)), np.exp(trials * math.log(chance)))
    return np.where(inside, middle, np.where((k == 0) | (rest == 0), ends, 0.0))


def at_least(k: ArrayLike, trials: ArrayLike, chance: float, other: float | None = None) -> Floats:
    """P(Bin(trials, chance) >= k)."""
    k, trials = np.broadcast_arrays(np.asarray(k, float), np.asarray(trials, float))
    low = np.clip(k, 1.0, trials)
    if other is not None and chance > 0.5:
        inside = special.betaincc(trials - low + 1, low, other)
    else:
        inside = special.betainc(low, trials - low + 1, chance)
    return np.where(k <= 0, 1.0, np.where(k > trials, 0.0, inside))


def below(k: ArrayLike, trials: ArrayLike, chance: float) -> Floats:
    """P(Bin(trials, chance) < k), accurate where it is small."""
    k, trials = np.broadcast_arrays(np.asarray(k, float), np.asarray(trials, float))
    return at_least(trials - k + 1, trials, 1 - chance)


def excess(threshold: ArrayLike, trials: ArrayLike, chance: float, other: float | None = None) -> tuple[Floats, Floats]:
    """E[(Bin(trials, chance) - threshold)+] from below and from above.

    With t the first whole number at or above the threshold, the sum over k >= t of (k - n p) P(k) telescopes to
    t (1-p) P(t) (de Moivre), which leaves t (1-p) P(t) - (threshold - n p) P(at least t).
    """
    threshold, trials = np.broadcast_arrays(np.asarray(threshold, float), np.asarray(trials, float))
    first = np.maximum(np.ceil(threshold), 0.0)
    rest = 1 - chance if other is None else other
    rise = first * rest * mass(np.minimum(first, trials), trials, chance, other)
    fall = (threshold - trials * chance) * at_least(first, trials, chance, other)
    value = np.where(first > trials, 0.0, rise - fall)
    slack = np.where(first > trials, 0.0, SLACK * (rise + np.abs(fall)))
    return np.maximum(value - slack, 0.0), np.maximum(value, 0.0) + slack


def _stirling_error(n: Floats) -> Floats:
    """ln n! - ln(sqrt(2 pi n) (n/e)^n), for whole n >= 1."""
    small = np.minimum(n, 16.0)
    exact = special.gammaln(small + 1) - (small + 0.5) * np.log(small) + small - _LOG_ROOT_TAU
    s = 1.0 / np.maximum(n, 16.0)
    q = s * s
    series = s * (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q / 1188))))
    return np.asarray(np.where(n < 16, exact, series))


def _deviance(x: Floats, mean: Floats) -> Floats:
    """x ln(x/mean) + mean - x, at least 0."""
    off = (x - mean) / mean
    near = np.abs(off) < 0.02  # here (1+e) ln(1+e) - e cancels, and its series is short
    e = np.where(near, off, 0.0)
    series = e * e * (1 / 2 - e * (1 / 6 - e * (1 / 12 - e * (1 / 20 - e * (1 / 30 - e * (1 / 42 - e / 56))))))
    return np.asarray(mean * np.where(near, series, special.xlogy(x / mean, x / mean) - off))
