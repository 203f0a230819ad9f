"""Selection and tuning: what it costs to try something many times and release only the best.

Releasing one answer out of many is not free. Of k tries, k fixed, each epsilon-DP, the best can lose k epsilon: it is
the worst of all outcomes exactly if all k tries are, and k independent tries all give the worst outcome with a ratio of
up to e^(k epsilon) between neighbours. So a fixed number of tries is priced as `Repeat(event, k)`, as if all were seen.

Drawing the number of tries K at random blurs this, and the price hardly grows with the number of tries (`BestOf`):

    negative binomial, shape s > -1, stop g   Papernot and Steinke 2022, Theorem 2: for every order b >= 1
        D(a) <= D_inner(a) + (1+s)(1-1/b) D_inner(b) + (1+s) ln(1/g)/b + ln(mean of K)/(a-1)
        pure inner events: (2+s) epsilon (Corollary 3; s = 1, geometric, is Liu and Talwar 2019)
    Poisson, mean m                           Papernot and Steinke 2022, Theorem 6: with e^eps <= 1 + 1/(a-1)
        D(a) <= ln(e^-m + m e^((a-1)(D_inner(a) + m delta_inner(eps)))) / (a-1)

Sketch: with f the generating function of K and F the inner law's distribution function, the best is y with probability
f(F(y)) - f(F(y-)), the inner probability times a mean of f' between the two. So e^((a-1) D(a)) is at most that of the
inner law times the largest f'(p)^a f'(q)^(1-a), over the probabilities p, q of one set under the two neighbours. These
are compared through the divergence of another order (Theorem 2), or through the (eps, delta) curve: for Poisson tries
f'(p)^a f'(q)^(1-a) = m e^(m(a p - (a-1) q - 1)) <= m e^((a-1) m delta), by 1 - q <= e^eps (1 - p) + delta (Theorem 6).
A Poisson K may be 0, and then nothing is released: the e^-m, which matters where m is small and Theorem 6 leaves out.
The tries must be independent and compared by their outcomes alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .. import checks
from ..errors import UnsupportedEventError
from ..events import BestOf, Event, Pure, Repeat
from ..exact import float_above, float_below
from . import pure, renyi

_UP = 1 + 1e-12
_OTHER = 1 + 2.0 ** np.arange(-8, 30.5, 0.5)  # the other orders looked at; any of them gives a valid bound


def divergence(event: BestOf, order: float) -> float:
    """The Renyi divergence of the best of a random number of tries, rounded up."""
    checks.instance(event, BestOf, "event", "a BestOf event")
    if not 1 < order < math.inf:
        raise checks.refuse("order", order, "a finite number above 1")
    inner = renyi.divergence(event.event, order)
    bound = _poisson(event, order, inner) if event.shape is None else _negative_binomial(event, order, inner)
    sure = pure_epsilon(event)
    return bound if sure is None else min(bound, float_above(sure))


@lru_cache(maxsize=256)
def _others(event: Event) -> NDArray[np.float64]:
    return renyi.divergences(event, _OTHER)


def _negative_binomial(event: BestOf, order: float, inner: float) -> float:
    shape = float_above(1 + event.shape)
    parts = (1 - 1 / _OTHER) * _others(event.event) - math.log(event.stop) / _OTHER
    return (inner + shape * float(np.min(parts)) + math.log(mean_tries(event)) / (order - 1)) * _UP


def _poisson(event: BestOf, order: float, inner: float) -> float:
    mean, less = float_above(event.mean), order - 1
    within = math.log1p(1 / less) * (1 - 1e-12)
    some = math.log(mean) + less * (inner + mean * _delta(event.event, within)) * _UP
    none = -float_below(event.mean)
    top = max(some, none)
    bound = top + math.log(math.exp(some - top) + math.exp(none - top))
    return max(0.0, bound + 1e-12 * (abs(some) + abs(none) + 1)) / less * _UP


def _delta(event: Event, epsilon: float) -> float:
    """The delta of the inner event at that epsilon (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    less, price = _OTHER - 1, _others(event)
    logs = less * (price - epsilon) - np.log(_OTHER) + less * np.log1p(-1 / _OTHER)
    logs += 1e-12 * (less * (price + epsilon + 1 / _OTHER) + np.log(_OTHER))
    return min(1.0, math.exp(min(float(np.min(logs)), 0.0)))


def mean_tries(event: BestOf) -> float:
    """The mean number of tries, rounded up: s (1-g) / (g (1 - g^s)) with shape s and stop g."""
    if event.shape is None:
        return float_above(event.mean)
    shape, rest = float(event.shape), float(1 - event.stop)
    if abs(shape) < 1e-9:  # the mean grows with the shape: take it at the end of this stretch
        shape = 1e-9
    tail = -math.expm1(shape * (math.log1p(-rest) if rest < 0.5 else math.log(event.stop)))
    return max(1.0, rest / float(event.stop) * (shape / tail) * _UP)


def pure_epsilon(event: BestOf) -> Fraction | None:
    """The epsilon at delta = 0: (2 + shape) times that of a pure inner event; None where there is none."""
    if event.shape is None:
        return None
    try:
        return (2 + event.shape) * pure.epsilon(event.event)
    except UnsupportedEventError:
        return None


def epsilon(event: BestOf, delta: Any) -> float:
    """The epsilon of the best of a random number of tries at `delta`, rounded up."""
    checks.instance(event, BestOf, "event", "a BestOf event")
    sure = pure_epsilon(event)
    upper = renyi.epsilon(event, checks.delta(delta))
    return upper if sure is None else min(upper, float_above(sure))


def fixed(event: Event, tries: int) -> Repeat:
    """The event of the best of exactly so many tries: as if all of them were released (see the top of the file)."""
    return Repeat(event, tries)


class Tries:
    """The law of the number of tries, for planning: mean, quantiles and probabilities."""

    def __init__(self, event: BestOf) -> None:
        checks.instance(event, BestOf, "event", "a BestOf event")
        self._event = event

    @property
    def mean(self) -> float:
        return mean_tries(self._event)

    def probability(self, k: NDArray[np.int64] | int) -> Any:
        """P(K = k)."""
        number = np.asarray(k, dtype=np.float64)
        event = self._event
        if event.shape is None:
            return _poisson_law().pmf(number, float(event.mean))
        shape, stop = float(event.shape), float(event.stop)
        log_law = number * math.log1p(-stop)
        if abs(shape) < 1e-9:
            with np.errstate(divide="ignore"):
                log_law = log_law - np.log(number) - math.log(-math.log(stop))
        else:  # (1-g)^k / (g^-s - 1) * prod_(l<k) (l+s)/(l+1) = (1-g)^k / (g^-s - 1) * s Gamma(k+s) / (Gamma(1+s) k!)
            scale = math.log(abs(shape)) - math.log(abs(math.expm1(-shape * math.log(stop)))) - math.lgamma(1 + shape)
            log_law = log_law + special.gammaln(number + shape) - special.gammaln(number + 1) + scale
        return np.where(number >= 1, np.exp(log_law), 0.0)

    def quantile(self, probability: float) -> int:
        """The least k with P(K <= k) >= probability."""
        if not 0 < probability < 1:
            raise checks.refuse("probability", probability, "a number above 0 and below 1")
        if self._event.shape is None:
            return int(_poisson_law().ppf(probability, float(self._event.mean)))
        start, reached, size = 1, 0.0, 1024
        while True:
            mass = reached + np.cumsum(self.probability(np.arange(start, start + size)))
            place = int(np.searchsorted(mass, probability * (1 - 1e-12)))
            if place < size or size > 1 << 24:
                return start + min(place, size - 1)
            start, reached, size = start + size, float(mass[-1]), 2 * size


def stop_for(mean: Any, shape: Any = 1) -> Fraction:
    """The stopping probability at which the negative binomial law tries `mean` times on average, rounded to a float."""
    wanted, power = checks.positive(mean, "mean"), checks.bound(shape, "shape")
    if wanted <= 1:
        raise checks.refuse("mean", mean, "a number above 1: there is always one try")
    if power <= -1:
        raise checks.refuse("shape", shape, "a number above -1")
    low, high = -229.0, -1e-15  # ln of the probability; the mean falls as it rises
    probe = Pure(epsilon=1)
    for _ in range(200):
        middle = (low + high) / 2
        tried = mean_tries(BestOf(probe, shape=power, stop=Fraction(math.exp(middle))))
        low, high = (middle, high) if tried > wanted else (low, middle)
    return Fraction(float_below(Fraction(math.exp(high))))


def _poisson_law() -> Any:
    from scipy import stats  # here, as it takes long to import and few events need it

    return stats.poisson
