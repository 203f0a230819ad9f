"""Rényi moments of pairs of laws, without cancellation.

For a pair (P, Q) with ratio r = dP/dQ and an order a > 1, the Rényi divergence is ln(1 + J) / (a - 1), where

    J = E_Q[r^a] - 1 = E_Q[bend(r)],     bend(r) = r^a - 1 - a (r - 1) >= 0        (as E_Q[r] = 1).

J may be 1e-20 or e^10000, so it is summed from non-negative terms and kept as a logarithm. With L = ln r, b = a - 1 and
e2(x) = e^x - 1 - x, two forms of the bend have no cancellation left:

    forward    r^a - 1 - a (r - 1)        = b (L e^L - e^L + 1) + e^L e2(bL)
    backward   r^-b - 1 + b (r - 1)       = e2(-bL) + b e2(L)          (the order a of the pair the other way round)

Every function here returns ln J, good to about 1e-13; `renyi.py` adds the margin.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SMALL = 0.5
_TERMS = 16  # 0.5^16 / 18! is below 1e-20
_FAR = 50.0  # e^-50 is below the margin


def logsumexp(terms: Floats) -> Floats:
    """ln of the sum of e^terms, row by row."""
    top = np.maximum(terms.max(axis=1), -1e300)
    return top + np.log(np.maximum(np.exp(terms - top[:, None]).sum(axis=1), 1e-320))


def log_e2(x: Floats) -> Floats:
    """ln(e^x - 1 - x): by its series near 0, rounded up (the 1 + x dropped) far above."""
    near = np.clip(x, -_SMALL, _SMALL)
    series = np.ones_like(near)
    for n in range(_TERMS + 2, 2, -1):
        series = 1 + series * near / n
    middle = np.clip(x, None, _FAR)
    with np.errstate(divide="ignore"):
        small = np.log(near * near / 2 * series)
        large = np.log(np.where(np.abs(x) > _SMALL, np.expm1(middle) - middle, 1.0))
    return np.where(np.abs(x) <= _SMALL, small, np.where(x > _FAR, x, large))


def _log_k(x: Floats) -> Floats:
    """ln(x e^x - e^x + 1), the forward bend per unit of b as b goes to 0. Its series is the sum of (j-1) x^j / j!."""
    near = np.clip(x, -_SMALL, _SMALL)
    series = np.zeros_like(near)
    for j in range(_TERMS + 2, 1, -1):
        series = series * near + (j - 1) / math.factorial(j)
    below = np.clip(x, None, 0.0)
    with np.errstate(divide="ignore"):
        small = np.log(near * near * series)
        low = np.log(np.where(x < -_SMALL, below * np.exp(below) - np.expm1(below), 1.0))
        high = x + np.log(np.where(x > _SMALL, x - 1 + np.exp(-np.abs(x)), 1.0))
    return np.where(np.abs(x) <= _SMALL, small, np.where(x > 0, high, low))


def log_bend(less: Floats, loss: Floats, *, forward: bool = True) -> Floats:
    """ln of the bend at L = loss, for every order (rows, b = order - 1) and every loss (columns)."""
    b = less[:, None]
    if forward:
        return np.logaddexp(np.log(b) + _log_k(loss), loss + log_e2(b * loss))
    return np.logaddexp(log_e2(-b * loss), np.log(b) + log_e2(loss))


def mixed(rate: float, rest: float, loss: Floats) -> Floats:
    """ln(rest + rate e^loss), the loss after Poisson sampling; rest = 1 - rate."""
    if rest <= 0:
        return loss
    shift = rate * np.expm1(np.minimum(loss, _FAR))
    far = np.logaddexp(math.log(rest), math.log(rate) + loss)
    return np.where(np.abs(shift) < _SMALL, np.log1p(np.maximum(shift, -_SMALL)), far)


def of_atoms(less: Floats, loss: Floats, log_mass: Floats, *, forward: bool = True) -> Floats:
    """ln J of a pair with finitely many losses, by their Q-masses."""
    return logsumexp(log_mass + log_bend(less, loss, forward=forward))


def randomized_response(less: Floats, epsilon: float, categories: int) -> Floats:
    """J = (e^x - 1)(e^epsilon - e^-x) / (e^epsilon + k - 1), x = (a-1) epsilon, from the three kinds of outcomes.

    With two categories this is the worst epsilon-DP pair (Kairouz, Oh, Viswanath 2015), so it prices anything pure.
    """
    x = less * epsilon
    grow = np.where(x > 1, x + np.log1p(-np.exp(-np.maximum(x, 1))), np.log(np.expm1(np.minimum(x, 1))))
    gap = np.log(-np.expm1(-x - epsilon))
    return grow + gap - np.logaddexp(0.0, math.log(categories - 1) - epsilon)


def laplace(less: Floats, epsilon: float) -> Floats:
    """E[r^a] = A e^x + B e^-y, x = b epsilon, y = a epsilon, A = a/(2a-1), B = b/(2a-1): Mironov 2017, Proposition 6.

    A + B = 1 and A x = B y, so J = A e2(x) + B e2(-y). Several coordinates that share the shift cost no more: the
    moment is E[e^(X shift)] for a two-valued X, and E[fg] >= E[f]E[g] for two rising functions of one X (Chebyshev).
    """
    b, a = less, less + 1
    n = a + b
    return np.logaddexp(np.log(a / n) + log_e2(b * epsilon), np.log(b / n) + log_e2(-a * epsilon))


def discrete_laplace(less: Floats, epsilon: float, shift: int) -> Floats:
    """The same with a geometric sum in the middle: with h = epsilon/(2 shift), n = 2a - 1 and g = 1 - tanh(h)/tanh(nh),

        B = g/2,  A = 1 - B,  J = A e2(x) + B e2(-y) + epsilon/2 (2b - ng).

    As g = sinh(2bh) / (cosh(h) sinh(nh)), 2b - ng = 2b (1 - R) with R = S(2bh) / (cosh(h) S(nh)), S(x) = sinh(x)/x.
    """
    b, a = less, less + 1
    h = epsilon / (2 * shift)
    falls = np.expm1(-4 * b * h) / np.expm1(-2 * (1 + 2 * b) * h)
    down = math.exp(-2 * h) * falls / (1 + math.exp(-2 * h))
    log_cosh = math.log1p(math.sinh(h) ** 2) / 2 if h < 1 else h + math.log1p(math.exp(-2 * h)) - math.log(2)
    log_r = _log_sinhc(2 * b * h) - log_cosh - _log_sinhc((1 + 2 * b) * h)
    with np.errstate(divide="ignore"):
        extra = np.log(b * epsilon) + np.log(-np.expm1(log_r)) + 1e-15 * b  # the rounding of log_r, b units of it
        both = np.logaddexp(np.log1p(-down) + log_e2(b * epsilon), np.log(down) + log_e2(-a * epsilon))
    return np.logaddexp(both, extra)


def bounded_range(less: Floats, epsilon: float) -> Floats:
    """The worst pair whose losses span epsilon (Dong, Durfee, Rogers 2020): r is e^t or e^(t - epsilon).

    The bend is convex, so at a given t two points are worst; the moment is
        ((1 - c^a) e^(bt) - (c - c^a) e^(at)) / (1 - c),  c = e^-epsilon,
    and its largest value is at e^(t - epsilon) = (b/a) (1 - c^a) / (1 - c^b), which is, with S(x) = sinh(x)/x,
        t - epsilon = -epsilon/2 + ln S(a epsilon/2) - ln S(b epsilon/2).
    A flat top: an error of t moves J by its square only.
    """
    b, a = less, less + 1
    near = -epsilon / 2 + _log_sinhc(a * epsilon / 2) - _log_sinhc(b * epsilon / 2)
    fall = np.exp(-b * epsilon) * math.expm1(-epsilon) / np.expm1(-b * epsilon)
    low = np.where(a * epsilon < 1, near, np.log1p(fall) - np.log1p(1 / b))
    low = np.clip(low, -epsilon, 0.0)
    return _two_points(less, low + epsilon, low)


def _two_points(less: Floats, high: Floats, low: Floats, *, forward: bool = True) -> Floats:
    """ln J of the pair whose loss is `high` or `low` (one pair per order), the masses fixed by E_Q[r] = 1."""
    span = np.log(-np.expm1(low - high))
    with np.errstate(divide="ignore"):
        up = np.log(-np.expm1(np.minimum(low, 0.0))) - high - span
        down = np.log(-np.expm1(-np.maximum(high, 0.0))) - span
    bends = log_bend_each(less, high, forward=forward), log_bend_each(less, low, forward=forward)
    return np.logaddexp(up + bends[0], down + bends[1])


def log_bend_each(less: Floats, loss: Floats, *, forward: bool = True) -> Floats:
    """As `log_bend`, order by order with a loss of its own."""
    if forward:
        return np.logaddexp(np.log(less) + _log_k(loss), loss + log_e2(less * loss))
    return np.logaddexp(log_e2(-less * loss), np.log(less) + log_e2(loss))


def _log_sinhc(x: Floats) -> Floats:
    square = np.minimum(x, 0.1) ** 2
    series = square / 6 * (1 - square / 30 * (1 - 4 * square / 63 * (1 - 3 * square / 40)))
    far = np.maximum(x, 0.1)
    return np.where(x < 0.1, series, far + np.log(-np.expm1(-2 * far) / (2 * far)))
