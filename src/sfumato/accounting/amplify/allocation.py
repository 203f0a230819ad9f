"""Random allocation: each unit takes part in `picks` of `steps` steps, drawn uniformly (balls in bins).

For one pick the price is found numerically, nearly exact (basket.py). Beside it, and for several picks, these bounds
hold for Gaussian noise with mu = 1/multiplier, and the smallest valid one counts:

  un-amplified   P is a mixture over the k = `picks` chosen steps, each of which costs k Gaussians (joint convexity).
  Rényi          remove: with one pick E_Q[(S/t)^a] is, at whole orders a, a sum over the ways to deal a draws to t
                 steps: a! t^-a [z^a] (sum_j e^(mu^2 j(j-1)/2) z^j / j!)^t (Liew et al. 2022; Feldman, Shenfeld 2025).
                 add: by Jensen P/Q >= exp(mean of the logarithms), so that the loss is at most a normal variable with
                 mean k mu^2/2 and variance (k mu)^2/t: a Gaussian's curve, moved by k mu^2/2 - (k mu)^2/(2t).
  several picks  Cut the t steps at random into k blocks of t/k (rounded), and pick one step in each: this is again a
                 uniform choice of k. By joint convexity the blocks may be told: k allocations of one pick in
                 floor(t/k) steps, composed. (One pick of more steps costs less, by the same argument.)
  Poisson        (Feldman, Shenfeld 2025, Theorem 3.2 in substance.) Given the earlier outputs, the chance that the
                 unit is in step i is w_i = 1/(t - sum over j < i of (1 - L_j)). Unless that sum exceeds h t at some
                 time, w_i <= 1/(t (1-h)): then no step costs more than Poisson sampling at that rate. The sum is a
                 martingale under Q and drifts down under P, so by Ville's inequality it exceeds h t with probability
                 at most E[e^(l (1-L))]^t e^(-l h t), for any l > 0. That probability is added to delta.

For epsilon-DP steps one pick is priced exactly through the two-point law, several picks by adding up.
From below: the attacker tests the sum of all steps, or their largest.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from ... import checks
from ...errors import UnsupportedEventError
from ...events import Event, Gaussian, Poisson, PureEvent, RandomAllocation, Repeat
from ...exact import float_above, float_below
from .. import gdp
from ..interval import Interval
from .basket import LogNormal, TwoPoint
from .binomial import Floats
from .clones import least

_MOST_MU = 6.0  # above, the lattice of basket.py is too coarse to help
_LEAST_DELTA = 1e-9  # below, round-off of the transform is too large to help
_ORDERS = 128
_LARGE = 300.0
_SPARE = 1e-5
_MANY = 10**6


def epsilon(event: RandomAllocation, delta: Any) -> Interval:
    """The least epsilon of the allocated steps at `delta`, from both sides."""
    checks.instance(event, RandomAllocation, "event", "a RandomAllocation event")
    return _epsilon(event, checks.delta(delta))


def delta(event: RandomAllocation, epsilon: Any) -> Interval:
    """The least delta of the allocated steps at `epsilon`; for one pick only."""
    checks.instance(event, RandomAllocation, "event", "a RandomAllocation event")
    size = float_below(checks.bound(epsilon, "epsilon"))
    if size < 0:
        raise checks.refuse("epsilon", epsilon, "0 or more")
    if event.picks > 1:
        raise UnsupportedEventError("RandomAllocation with several picks has no delta here: ask for epsilon at a delta")
    step = _step(event)
    if isinstance(step, PureEvent):
        if step.epsilon > _LARGE or size >= step.epsilon:
            return Interval(0.0, 1.0 if size < step.epsilon else 0.0)
        two = TwoPoint(float_above(step.epsilon), event.steps)
        return Interval(0.0, min(1.0, max(two.remove(size), two.add(size))))
    mu = float_above(1 / step.multiplier)
    upper = _curve_upper(mu, size)
    if 1e-6 < mu <= _MOST_MU and size < 30:
        law = LogNormal(mu, event.steps, math.exp(size), 1e-15)
        below = LogNormal(mu, event.steps, math.exp(-size), 1e-15)
        upper = min(upper, max(0.0, law.remove(size), below.add(size)))
    seen = gdp.delta(float_below(1 / step.multiplier) / math.sqrt(event.steps), float_above(checks.bound(epsilon, "")))
    return Interval(max(0.0, min(seen * (1 - 1e-9) - 1e-15, upper)), upper)


def divergence(event: RandomAllocation, order: Any) -> float:
    """The Rényi divergence at an order above 1, the worse of adding and removing, from above (Gaussian steps)."""
    level = float(checks.positive(order, "order"))
    if level <= 1:
        raise checks.refuse("order", order, "a number above 1")
    step = _step(event)
    if not isinstance(step, Gaussian):
        raise UnsupportedEventError(f"RandomAllocation of {type(step).__name__} has no Rényi price here")
    mu, t, k = float_above(1 / step.multiplier), event.steps, event.picks
    whole = k * level * mu * mu / 2
    add = k * mu * mu / 2 + (level - 1) * (k * mu) ** 2 / (2 * t)
    remove = math.inf
    if level <= _ORDERS:
        # (order - 1) times the divergence is convex in the order: the chord between whole orders lies above
        moments = np.append([0.0, 0.0], _log_moments(mu, max(1, t // k)))
        low = math.floor(level)
        share = level - low
        chord = (1 - share) * moments[low] + (share * moments[low + 1] if share else 0.0)
        remove = k * float(chord) / (level - 1)
    return min(max(remove, add), whole) * (1 + 1e-12)


def as_poisson(event: RandomAllocation, *, failure: Any) -> Repeat:
    """Poisson-sampled steps that cost at least as much, outside a probability `failure` that is added to delta."""
    checks.instance(event, RandomAllocation, "event", "a RandomAllocation event")
    step, chance = _step(event), float_below(checks.delta(failure, "failure"))
    if not isinstance(step, Gaussian):
        raise UnsupportedEventError(
            f"RandomAllocation of {type(step).__name__} is not known to be like Poisson sampling"
        )
    block = max(1, event.steps // event.picks)
    excess = _late(float_above(1 / step.multiplier), block, chance / event.picks)
    rate = Fraction(1) if excess >= 1 else min(Fraction(1), 1 / (block * (1 - Fraction(excess))))
    return Repeat(Poisson(step, rate), block * event.picks)


def _step(event: RandomAllocation) -> Gaussian | PureEvent:
    inner: Event = event.event
    if isinstance(inner, Gaussian | PureEvent):
        return inner
    raise UnsupportedEventError(
        f"random allocation of {type(inner).__name__} has no price: there are theorems for Gaussian noise and for "
        "steps with a pure epsilon. Without amplification it costs what Repeat(event, picks) costs."
    )


@lru_cache(maxsize=256)
def _epsilon(event: RandomAllocation, delta: Fraction) -> Interval:
    step, picks = _step(event), event.picks
    if isinstance(step, PureEvent):
        whole = float_above(picks * step.epsilon)
        if step.epsilon > _LARGE:
            return Interval(0.0, whole)
        law = TwoPoint(float_above(step.epsilon), max(1, event.steps // picks))
        share = float_below(delta / picks)
        one = least(lambda e: max(law.remove(e), law.add(e)), share, 1.0, float_above(step.epsilon))
        return Interval(0.0, min(whole, picks * one * (1 + 1e-15)))
    upper = float_above(gdp.least_epsilon(picks / step.multiplier**2, delta))
    if upper > 0 and event.steps > picks:
        mu = float_above(1 / step.multiplier)
        if picks == 1 and 1e-6 < mu <= _MOST_MU and delta >= _LEAST_DELTA:
            whole, upper = upper, _numeric(mu, event.steps, float_below(delta), upper)
            poor = upper > 0.9 * whole or event.steps > _MANY
        else:
            poor = True
        if poor:
            upper = min(upper, _by_moments(event, delta), _by_poisson(event, delta, upper))
    return Interval(min(_attack(event, delta), upper), upper)


def _numeric(mu: float, steps: int, delta: float, whole: float) -> float:
    """One pick, by the law of the average likelihood ratio."""
    spare = delta * _SPARE
    remove = min(whole, max(_renyi(mu, steps, 1, delta), 1e-9))
    for _ in range(3):  # the lattice fits the epsilon at hand, which the first one only guesses
        guess = remove
        remove = least(LogNormal(mu, steps, math.exp(min(guess, 30.0)), spare).remove, delta, guess / 2, guess)
        if remove > 0.7 * guess:
            break
    add = least(LogNormal(mu, steps, 1.0, spare).add, delta, max(remove, 1e-9), whole)
    return max(remove, add)


def _curve_upper(mu: float, epsilon: float) -> float:
    from .curves import curve

    return curve(Gaussian(multiplier=Fraction(1 / mu)))(epsilon)


def _by_moments(event: RandomAllocation, delta: Fraction) -> float:
    """remove by Rényi, add by Jensen."""
    assert isinstance(event.event, Gaussian)
    k, t, mu_squared = event.picks, event.steps, 1 / event.event.multiplier**2
    add = gdp.least_epsilon(k * k * mu_squared / t, delta) + k * mu_squared / 2 - k * k * mu_squared / (2 * t)
    remove = _renyi(float_above(1 / event.event.multiplier), max(1, t // k), k, float_below(delta))
    return max(float_above(add), remove)


def _renyi(mu: float, steps: int, times: int, delta: float) -> float:
    """The remove direction by the best whole order (Canonne, Kamath, Steinke 2020)."""
    order = np.arange(2, _ORDERS + 1)
    moments = times * _log_moments(mu, steps)
    value = (moments - math.log(delta) - np.log(order)) / (order - 1) + np.log1p(-1 / order)
    best = float(np.min(value))
    return max(0.0, best + 1e-12 * (1 + abs(best)))


@lru_cache(maxsize=64)
def _log_moments(mu: float, steps: int) -> Floats:
    """ln E_Q[(S/t)^a] for a = 2 .. _ORDERS, rounded up."""
    j = np.arange(_ORDERS + 1)
    base = mu * mu * j * (j - 1) / 2 - special.gammaln(j + 1)
    power: Floats | None = None
    left = steps
    while left:
        if left & 1:
            power = base if power is None else _log_product(power, base)
        left >>= 1
        if left:
            base = _log_product(base, base)
    assert power is not None
    logs = (power + special.gammaln(j + 1) - j * math.log(steps))[2:]
    return np.asarray(np.maximum(logs, 0.0) + 1e-12 * (1 + j[2:] * (1 + math.log(steps)) + np.abs(power[2:])))


def _log_product(a: Floats, b: Floats) -> Floats:
    """The product of two power series, cut off, by the logarithms of their (positive) coefficients."""
    i, j = np.indices((a.size, a.size))
    terms = np.where(j <= i, a[np.maximum(i - j, 0)] + b[j], -np.inf)
    return np.asarray(special.logsumexp(terms, axis=1))


def _by_poisson(event: RandomAllocation, delta: Fraction, most: float) -> float:
    from .. import pld  # which imports what is in this folder

    failure = delta / 50
    sampled = as_poisson(event, failure=failure)
    if not isinstance(sampled.event, Poisson) or sampled.event.rate == 1:
        return most
    return pld.epsilon(sampled, delta - failure).upper


def _late(mu: float, steps: int, chance: float) -> float:
    """An h such that sums of 1 - L exceed h t, at any time within t steps, with at most this chance."""
    rate = np.exp(np.linspace(-14, 8, 221)) / max(mu, 1e-3)
    x = np.linspace(-9, 9, 2001)
    mass = np.diff(special.ndtr(x), prepend=0.0, append=1.0)  # the first cell is all below, the last all above
    ratio = np.exp(np.minimum(mu * np.append(-np.inf, x) - mu * mu / 2, 700.0))  # L at the left end of each cell
    # ln E[e^(l (1-L))]: an upper sum, because it falls in x; or by e^-x <= 1 - x + x^2/2
    growth = special.logsumexp(rate[:, None] * (1 - ratio), axis=1, b=mass)
    second = rate + np.log(1 - rate + rate**2 * (math.exp(min(mu * mu, 600.0)) / 2))
    growth = np.minimum(growth, second) + 1e-12 * np.minimum(rate, 1.0) ** 2 + 1e-15 * (1 + rate)
    return float(np.min((growth - math.log(chance) / steps) / rate)) * (1 + 1e-9)


def _attack(event: RandomAllocation, delta: Fraction) -> float:
    """What testing the sum of the steps, or the largest of them, attains."""
    assert isinstance(event.event, Gaussian)
    k, t, mu_squared = event.picks, event.steps, 1 / event.event.multiplier**2
    by_sum = float_below(gdp.least_epsilon(k * k * mu_squared / t, delta)) * (1 - 1e-9)
    mu, target = float_below(1 / event.event.multiplier), float_above(delta)
    cut = np.linspace(0.0, mu + 12.0, 2001)
    quiet = (t - k) * special.log_ndtr(cut)
    first = -np.expm1(k * special.log_ndtr(cut - mu) + quiet) * (1 - 1e-12)
    second = -np.expm1(t * special.log_ndtr(cut)) * (1 + 1e-12)
    some = (first > target) & (second > 1e-290)
    by_largest = float(np.max(np.log((first[some] - target) / second[some]), initial=0.0))
    return max(0.0, by_sum, by_largest * (1 - 1e-12))
