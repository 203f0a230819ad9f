"""Rényi moments of mixtures of normal laws: Gaussian noise on a random sample.

The pair is P = sum of w_i N(s_i, 1) against Q = N(0, 1), with shifts s_i >= 0, the largest s. Poisson sampling of a
Gaussian has the shifts 0 and 1/multiplier. With M(z) = sum of w_i exp(s_i z - s_i^2/2),

    forward (remove)   E_Q[M^a]          backward (add)   E_Q[M^(1-a)]

Three ways, each with a bound on its error:

  binomial      one shift besides 0, a whole: J = sum over k >= 2 of C(a,k) (1-q)^(a-k) q^k (e^(k(k-1)s^2/2) - 1). The
                terms k = 0, 1 of Mironov, Talwar, Zhang 2019 vanish, nothing cancels.
  trapezoidal   any real a. f = density * M^a is analytic where M has no zero, which is so for |Im z| < pi/s: the terms
                of M then point into one half-plane. There |f(x+iy)| <= e^(y^2/2) f(x), so the trapezoidal rule of step
                h is off by at most 2 e^(c^2/2) / (e^(2 pi c/h) - 1) times the integral, for any c <= pi/s (Trefethen
                and Weideman 2014, Theorem 5.1). Backward, |M| >= cos(sy) M(x) costs a factor cos(sc)^(1-a). The step is
                chosen so that this is e^-100; the same bound holds for density and density * M, hence for the bend.
  convexity     E_Q[M^a] <= sum of w_i e^(a(a-1)s_i^2/2), where the others would need too many points.

Outside the window of the sum: ln f falls at least as fast as a parabola, so the rest is a geometric sum, below e^-100
of the largest term; with the bend's own pieces at most (4 + 5a)(1 + s) e^-99 in all.

Forward is the worse direction for one shift besides 0, at every order. Proof, for any pair that looks alike from both
sides (E_Q[F(r)] = E_Q[r F(1/r)]), with m(r) = 1 - q + qr: it is enough that for each r >= 1, a = m(r), b = m(1/r),
    A(k) = sqrt(a) sinh(k ln a) >= r sqrt(b) sinh(k ln 1/b) = B(k),     k = order - 1/2,
as x^order - x^(1-order) = 2 sqrt(x) sinh(k ln x). At k = 1/2 both are q(r-1)/2. And ab >= 1, so ln a >= ln 1/b, and
then sinh(k ln a)/sinh(k ln 1/b) rises with k.  (Mironov, Talwar, Zhang 2019, Theorem 5.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .renyi_pairs import log_bend, log_bend_each, logsumexp

Floats = NDArray[np.float64]

_NATS = 100.0
_REACH = math.sqrt(2 * _NATS) + 0.1
_MOST_POINTS = 1 << 14
_MOST_TERMS = 1 << 12
_FEW_TERMS = 1 << 9
_APART = 40.0  # a mode this far out has a moment so large that J and J + 1 are the same
_LOG_ROOT = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Mixture:
    """P = sum of weights_i N(shifts_i, 1), against N(0, 1)."""

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def largest(self) -> float:
        return self.shifts[-1]

    @property
    def sampled(self) -> bool:
        """One shift besides 0: Poisson sampling of one Gaussian."""
        return len(self.shifts) == 2 and self.shifts[0] == 0.0

    def loss(self, z: Floats) -> Floats:
        """ln M(z), with its digits where M is near 1."""
        delta = np.zeros_like(z)
        far = np.full_like(z, -np.inf)
        for shift, weight in zip(self.shifts, self.weights, strict=True):
            y = shift * z - shift * shift / 2
            delta += weight * np.expm1(np.minimum(y, 50.0))
            far = np.logaddexp(far, math.log(weight) + y)
        return np.where(np.abs(delta) < 0.5, np.log1p(np.maximum(delta, -0.5)), far)

    def slope(self, z: Floats) -> Floats:
        """d ln M / dz: the mean shift, seen from z."""
        exponents = np.stack([math.log(w) + s * z - s * s / 2 for s, w in zip(self.shifts, self.weights, strict=True)])
        exponents = np.exp(exponents - exponents.max(axis=0))
        return np.asarray(np.tensordot(np.array(self.shifts), exponents, 1) / exponents.sum(axis=0))


def forward(mixture: Mixture, orders: Floats) -> Floats:
    """ln J of P against Q, with its margin, rounded up."""
    s = mixture.largest
    log_moment = convexity(mixture, orders)
    window = orders * s + 2 * _REACH
    small = window / _forward_step(s) <= _MOST_POINTS
    whole = (orders == np.floor(orders)) & (orders <= np.where(small, _FEW_TERMS, _MOST_TERMS)) & mixture.sampled
    single = ~whole & (orders * s * s <= 2) & (orders * s > _APART)
    wide = ~whole & ~single & small
    if whole.any():
        log_moment[whole] = np.minimum(log_moment[whole], _binomial(mixture, orders[whole]))
    if single.any():
        log_moment[single] = np.minimum(log_moment[single], _one_mode(mixture, orders[single]))
    for group in _alike(window, wide):
        log_moment[group] = np.minimum(log_moment[group], _wide(mixture, orders[group]))
    left = ~whole & ~single & ~wide & (orders < _MOST_TERMS) & mixture.sampled
    if left.any():
        log_moment[left] = np.minimum(log_moment[left], _chord(mixture, orders[left]))
    return log_moment


def backward(mixture: Mixture, orders: Floats) -> Floats:
    """ln J of Q against P, with its margin, rounded up."""
    log_moment = convexity(mixture, orders)
    for i, order in enumerate(orders.tolist()):
        step = _backward_step(mixture.largest, order - 1)
        if (2 * _REACH + _APART + mixture.largest) / step <= 4 * _MOST_POINTS:
            log_moment[i] = min(log_moment[i], _backward_one(mixture, order, step))
    return log_moment


def convexity(mixture: Mixture, orders: Floats) -> Floats:
    """x^a and x^(1-a) are convex: M to a power is at most the mean of the parts to that power."""
    a = orders[:, None]
    exponent = a * (a - 1) * np.array(mixture.shifts) ** 2 / 2
    grow = np.where(exponent > 30, exponent, np.log(np.maximum(np.expm1(np.minimum(exponent, 30)), 1e-320)))
    return logsumexp(np.log(np.array(mixture.weights)) + grow) + _pad(1.0, orders)


def _pad(exponent: float | Floats, orders: Floats) -> Floats:
    """What rounding may cost in ln J: the exponents are right to a few units in the last place, each."""
    return np.asarray(1e-13 + 4e-15 * exponent + 4e-15 * orders)


def _binomial(mixture: Mixture, orders: Floats) -> Floats:
    (rest, rate), s = mixture.weights, mixture.largest
    k = np.arange(2.0, float(orders.max()) + 1)
    a = orders[:, None]
    inside = np.minimum(k, a)
    log_choose = _log_factorial(a) - _log_factorial(k) - _log_factorial(a - inside)
    exponent = k * (k - 1) * s * s / 2
    grow = np.where(exponent > 30, exponent, np.log(np.maximum(np.expm1(np.minimum(exponent, 30)), 1e-320)))
    terms = log_choose + (a - inside) * math.log(rest) + k * math.log(rate) + grow
    sizes = _log_factorial(orders) + orders * (abs(math.log(rate)) + abs(math.log(rest)))
    total = logsumexp(np.where(k <= a, terms, -np.inf))
    return total + _pad(sizes, orders) + 1e-15 * np.abs(total)


@lru_cache(maxsize=1)
def _log_factorials() -> Floats:
    return np.asarray(special.gammaln(np.arange(1.0, _MOST_TERMS + 3)))


def _log_factorial(whole: Floats) -> Floats:
    return np.asarray(_log_factorials()[whole.astype(np.intp)])


def _chord(mixture: Mixture, orders: Floats) -> Floats:
    """ln E[M^a] is convex in a: at most the chord between whole orders. (Only where both moments are huge.)"""
    low, high = np.maximum(np.floor(orders), 2.0), np.floor(orders) + 1
    ends = _binomial(mixture, np.concatenate([low, high]))
    below = np.where(orders < 2, 0.0, np.logaddexp(0.0, ends[: low.size]))
    share = orders - np.floor(orders)
    return (1 - share) * below + share * np.logaddexp(0.0, ends[low.size :])


def _forward_step(s: float) -> float:
    if s * math.sqrt(2 * _NATS) <= math.pi:
        return 2 * math.pi / math.sqrt(2 * _NATS)
    width = math.pi / s
    return 2 * math.pi * width / (_NATS + width * width / 2)


def _alike(window: Floats, chosen: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Orders whose windows are of like size share one grid."""
    where = np.flatnonzero(chosen)
    size = np.floor(np.log2(window[where]) * 1.5)
    return [where[size == each] for each in np.unique(size)]


def _wide(mixture: Mixture, orders: Floats) -> Floats:
    """The window [-reach, as + reach]: below it ln f has slope at least reach, above it at most -reach."""
    s, step = mixture.largest, _forward_step(mixture.largest)
    top = float(orders.max()) * s
    z: Floats = step * np.arange(-math.ceil(_REACH / step), math.ceil((top + _REACH) / step) + 1, dtype=np.float64)
    terms = log_bend(orders - 1, mixture.loss(z)) - z * z / 2
    return _summed(terms, step, orders, (orders * s + _REACH) ** 2, s)


def _summed(terms: Floats, step: float, orders: Floats, exponent: Floats, s: float) -> Floats:
    total = logsumexp(terms) + math.log(step) - _LOG_ROOT
    return np.logaddexp(total, np.log(4 + 5 * orders) + math.log1p(s) - (_NATS - 1)) + _pad(exponent, orders)


def _one_mode(mixture: Mixture, orders: Floats) -> Floats:
    """a s^2 <= 2: the second derivative of ln f is at most -1 + a s^2/4 <= -1/2, one mode, a narrow window."""
    s, step = mixture.largest, _forward_step(mixture.largest)
    low, high = np.zeros_like(orders), orders * s
    while float(np.max(high - low)) > 0.25:
        middle = (low + high) / 2
        rising = orders * mixture.slope(middle) > middle
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    mode, reach = high, math.sqrt(2) * _REACH + 0.5
    near = mode <= _APART
    start = np.where(near, -_REACH, mode - reach)
    count = math.ceil(float(np.max(mode + reach - start)) / step) + 1
    z = start[:, None] + step * np.arange(count)
    loss = mixture.loss(z)
    bends = log_bend_each(np.broadcast_to(orders[:, None] - 1, z.shape), loss)
    terms = np.where(near[:, None], bends, orders[:, None] * loss) - z * z / 2
    exponent = (mode + reach) ** 2 + np.where(near, 0.0, orders * mixture.loss(mode))
    return _summed(terms, step, orders, exponent, s)


def _backward_step(s: float, b: float) -> float:
    angle = min(1.2, math.sqrt(2 * _NATS / max(b, 1.0)), math.sqrt(2 * _NATS) * s)
    width = angle / s
    return 2 * math.pi * width / (_NATS + b * -math.log(math.cos(angle)) + width * width / 2)


def _backward_one(mixture: Mixture, order: float, step: float) -> float:
    """ln(density M^-b) is concave with second derivative at most -1: one mode, at or below 0."""
    b, s = order - 1, mixture.largest
    low, high = -b * s, 0.0
    while high - low > 0.25:
        middle = (low + high) / 2
        rising = -middle - b * float(mixture.slope(np.array(middle))) > 0
        low, high = (middle, high) if rising else (low, middle)
    near = high > -_APART
    start, end = (min(high - 0.5, 0.0) - _REACH, s + _REACH) if near else (high - _REACH - 0.5, high + _REACH + 0.5)
    z: Floats = start + step * np.arange(math.ceil((end - start) / step) + 1, dtype=np.float64)
    loss = mixture.loss(z)
    bends = log_bend(np.array([b]), loss, forward=False) if near else -b * loss[None, :]
    exponent = np.array([start * start + end * end + b * abs(float(mixture.loss(np.array(high))))])
    return float(_summed(bends - z * z / 2, step, np.array([order]), exponent, s)[0])
