"""Rényi moments of random samples, for mechanisms other than one Gaussian.

Poisson sampling at rate q turns a pair (P, Q) into ((1-q)Q + qP, Q) and its reverse (Zhu, Dong, Wang 2022, Theorem 11).

  atoms      a pair known by its losses: the moment is a sum. The middle of a Laplace pair is cut into cells and each
             cell's mass moved to its two ends, keeping P and Q: the bend is convex, so this only adds.
  moments    any mechanism, by its divergences e(k) at whole orders (Mironov, Talwar, Zhang 2019; Zhu and Wang 2019):
                 J <= S(a) = sum over k >= 2 of C(a,k) (1-q)^(a-k) q^k (e^((k-1) e(k)) - 1)
             forward. Backward, the inequality of `renyi_normal.py` for each r, summed over Q, says that the moments of
             (Q, mixture) and of (P, its mixture) together are at most the two forward ones together; each is at least
             1, so J <= 2 S(a). Where the pair looks alike from both sides, J <= S(a).
  fixed      a sample of fixed size, neighbours that replace: Wang, Balle, Kasiviswanathan 2019, Theorem 9.

Between whole orders: ln(1 + J) is convex in the order and 0 at order 1, so the chord is an upper bound. And always
J <= q (e^((a-1) e(a)) - 1), by the joint convexity of the moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .renyi_pairs import log_bend, logsumexp, mixed, of_atoms

Floats = NDArray[np.float64]
Divergences = Callable[[Floats], Floats]

_MOST = 512  # whole orders looked at; above, joint convexity
_CELLS = 512
_PAD = 1e-12


def two_sided(less: Floats, rate: float, rest: float, epsilon: float, categories: int) -> Floats:
    """Randomized response on a sample; with two categories, anything pure. The pair looks alike from both sides."""
    loss = np.array([epsilon, -epsilon])
    log_mass = np.array([-epsilon, 0.0]) - math.log1p((categories - 1) * math.exp(-epsilon))
    return of_atoms(less, mixed(rate, rest, loss), log_mass)


def laplace(less: Floats, rate: float, rest: float, epsilon: float) -> Floats:
    """Under Q: e^epsilon with mass e^-epsilon/2, e^-epsilon with mass 1/2, density e^-(epsilon+v)/2 / 4 between."""
    edges = np.linspace(-epsilon, epsilon, _CELLS + 1)
    half = epsilon / _CELLS  # of a cell
    log_cell = -(edges[:-1] + epsilon) / 2 + math.log(-math.expm1(-half) / 2)
    log_mass = np.full(edges.size, -np.inf)
    log_mass[:-1] = log_cell - math.log1p(math.exp(-half))  # the left share, e^half / (e^half + 1)
    log_mass[1:] = np.logaddexp(log_mass[1:], log_cell - np.logaddexp(0.0, half))
    log_mass[0] = np.logaddexp(log_mass[0], math.log(0.5))
    log_mass[-1] = np.logaddexp(log_mass[-1], math.log(0.5) - epsilon)
    return of_atoms(less, mixed(rate, rest, edges), log_mass)


def discrete_laplace(less: Floats, rate: float, rest: float, epsilon: float, shift: int) -> Floats:
    """Losses (shift - 2k) epsilon/shift, k = 0 to shift. One coordinate with the whole shift is the worst: trade-off
    curves of a log-concave law at shifts s and t chain to that at s + t (Dong, Roth, Su 2022, Lemma A.5)."""
    step = epsilon / shift
    k = np.arange(shift + 1.0)
    log_mass = math.log(math.tanh(step / 2)) - step * (shift - k)
    tail = -math.log1p(math.exp(-step))  # P(noise >= 0)
    log_mass[0], log_mass[-1] = tail - epsilon, tail
    return of_atoms(less, mixed(rate, rest, epsilon - 2 * step * k), log_mass)


def bounded_range(less: Floats, rate: float, rest: float, epsilon: float) -> Floats:
    """Losses that span epsilon, from t - epsilon to t: for each of many cells of t the two ends of all its spans."""
    t = np.linspace(0.0, epsilon, _CELLS + 1)
    high, low = t[1:], t[:-1] - epsilon
    span = np.log(-np.expm1(low - high))
    with np.errstate(divide="ignore"):
        up = np.log(-np.expm1(np.minimum(low, 0.0))) - high - span
        down = np.log(-np.expm1(-high)) - span
    logs = np.full(less.size, -np.inf)
    for forward in (True, False):
        at_high = up + log_bend(less, mixed(rate, rest, high), forward=forward)
        at_low = down + log_bend(less, mixed(rate, rest, low), forward=forward)
        logs = np.maximum(logs, np.logaddexp(at_high, at_low).max(axis=1))
    return logs


def poisson(orders: Floats, rate: float, rest: float, price: Divergences, *, alike: bool) -> Floats:
    """ln J of any mechanism on a Poisson sample, from its divergences."""
    limit = convexity(orders, rate, price)
    whole = _whole(orders)
    if whole.size:
        k = np.arange(2.0, whole[-1] + 1)
        a = whole[:, None]
        inside = np.minimum(k, a)
        terms = _choose(a, inside) + (a - inside) * math.log(rest) + k * math.log(rate) + _log_expm1((k - 1) * price(k))
        size = special.gammaln(whole + 1) + whole * (abs(math.log(rate)) + abs(math.log(rest)))
        log_j = logsumexp(np.where(k <= a, terms, -np.inf)) + 4e-15 * size + _PAD
        limit = np.minimum(limit, _chords(orders, whole, log_j + (0.0 if alike else math.log(2))))
    return limit


def fixed(orders: Floats, fraction: float, price: Divergences, largest: float) -> Floats:
    """ln J of any mechanism on a sample of fixed size. `largest` is its pure epsilon, or infinity."""
    limit = convexity(orders, fraction, price)
    whole = _whole(orders)
    if whole.size:
        k = np.arange(2.0, whole[-1] + 1)
        a = whole[:, None]
        inside, moment = np.minimum(k, a), (k - 1) * price(k)
        worst = np.minimum(math.log(2), k * float(_log_expm1(np.array(min(largest, 700.0)))))
        power = moment + worst
        power[0] = min(power[0], math.log(4) + float(_log_expm1(moment[:1])[0]))
        terms = _choose(a, inside) + k * math.log(fraction) + power
        size = special.gammaln(whole + 1) + whole * abs(math.log(fraction))
        log_j = logsumexp(np.where(k <= a, terms, -np.inf)) + 4e-15 * size + _PAD
        limit = np.minimum(limit, _chords(orders, whole, log_j))
    return limit


def convexity(orders: Floats, rate: float, price: Divergences) -> Floats:
    return math.log(rate) + _log_expm1((orders - 1) * price(orders)) + _PAD


def _whole(orders: Floats) -> Floats:
    """The whole orders on either side of those asked for."""
    within = orders[orders <= _MOST]
    around = np.concatenate([np.floor(within), np.ceil(within)])
    return np.unique(around[around >= 2])


def _chords(orders: Floats, whole: Floats, log_j: Floats) -> Floats:
    """Through (1, 0) and the whole orders, where they are; as ln J again."""
    nodes, heights = np.append(1.0, whole), np.append(0.0, np.logaddexp(0.0, log_j))
    exact = np.concatenate([[-np.inf], log_j])
    right = np.minimum(np.searchsorted(nodes, orders), whole.size)
    left = np.maximum(right - 1, 0)
    share = (orders - nodes[left]) / np.maximum(nodes[right] - nodes[left], 1.0)
    cumulant = heights[left] + share * (heights[right] - heights[left])
    bound = np.where(orders == nodes[right], exact[right], _log_expm1(cumulant) + _PAD)
    return np.where(orders <= _MOST, bound, np.inf)


def _choose(a: Floats, k: Floats) -> Floats:
    return np.asarray(special.gammaln(a + 1) - special.gammaln(k + 1) - special.gammaln(a - k + 1))


def _log_expm1(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(x > 40, x, np.log(np.expm1(np.minimum(x, 40.0))))
