"""Optimal homogeneous composition: the least price of k mechanisms of which only (epsilon0, delta0) is known.

Theorem (Kairouz, Oh and Viswanath 2017, Theorem 3.3): k mechanisms, each (epsilon0, delta0)-DP and chosen adaptively,
are together (epsilon, delta)-DP, and no smaller delta holds for all such mechanisms, with
    1 - delta = (1 - delta0)^k (1 - D(epsilon)),
    D(epsilon) = sum over j of b_j (1 - e^(epsilon - l_j))+,   l_j = (2j - k) epsilon0,   b = Binomial(k, p),
    p = e^epsilon0 / (1 + e^epsilon0).
(The paper gives it at epsilon = l_i; between those points D is the same sum, since k-fold randomized response has the
largest curve at every epsilon.)

How it is computed. The b_j are never formed from factorials: with r_j the products of the ratios
b_(j+1)/b_j = (k-j)/(j+1) e^epsilon0 outward from the mode, b_j = r_j / sum of r. All terms are positive and at most 1,
so nothing overflows and nothing cancels: the relative error is at most about six roundings for each step from the mode,
which `_Binomial.error` counts twice (numerator and denominator). What lies beyond the window is bounded, since r falls
away from the mode. (1 - delta0)^k is enclosed in integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact
from ..checks import Exact
from ..errors import UnsupportedEventError
from .interval import Interval

Floats = NDArray[np.float64]

_UNIT = 2.0**-53
_TINY = 1e-290  # more than all that is lost to underflow
_BITS, _SHORT = 512, 20_000
_MOST_TIMES = 10**9  # beyond that the sums get long: sound bounds, not sharp ones
_HALVINGS = 60


def delta(*, epsilon0: Exact, times: int, epsilon: Exact, delta0: Exact = 0) -> Interval:
    """The least delta at which `times` mechanisms, each (epsilon0, delta0)-DP, are together (epsilon, delta)-DP."""
    step, own, times = _checked(epsilon0, delta0, times)
    target = checks.rational(epsilon, "epsilon", "a number, not below 0")
    if target < 0:
        raise checks.refuse("epsilon", epsilon, "a number, not below 0")
    return _delta(step, own, times, target)


def epsilon(*, epsilon0: Exact, times: int, delta: Exact, delta0: Exact = 0) -> Interval:
    """The least epsilon at which `times` mechanisms, each (epsilon0, delta0)-DP, are together (epsilon, delta)-DP."""
    step, own, times = _checked(epsilon0, delta0, times)
    low, high = _left(own, times, checks.delta(delta, zero=True))
    return Interval(_epsilon(step, times, high).lower, _epsilon(step, times, low).upper)


def on_grid(*, epsilon0: Exact, times: int, delta: Exact, delta0: Exact = 0) -> Fraction:
    """The least of the epsilons (times - 2i) epsilon0 that holds: the theorem as it is stated. `epsilon` is tighter."""
    step, own, times = _checked(epsilon0, delta0, times)
    target, _ = _left(own, times, checks.delta(delta, zero=True))
    if target <= 0.0 or times > _MOST_TIMES:
        return step * times
    law = _binomial(step, times)
    return law.loss(law.node(target, upper=True))


def inverse(*, epsilon: Exact, delta: Exact, times: int, delta0: Exact = 0) -> float:
    """The largest epsilon0 (rounded down) of which `times` stay within (epsilon, delta), with delta0 in each."""
    whole, target = checks.epsilon(epsilon, warn=False), checks.delta(delta, zero=True)
    own, times = checks.delta(delta0, "delta0", zero=True), checks.whole(times, "times")
    _left(own, times, target)  # refuses what no epsilon0 can reach

    def holds(size: float) -> bool:
        step = Fraction(repr(size))
        return step * times <= whole or _delta(step, own, times, whole).upper <= target

    low = exact.float_below(whole / times)
    while not holds(low):
        low = math.nextafter(low, 0.0)
    # One mechanism alone needs p - e^epsilon (1 - p) <= delta, so e^epsilon0 <= (e^epsilon + delta) / (1 - delta).
    high = float(whole) + math.log1p(float(target)) - math.log1p(-float(target)) + 1e-9
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _checked(epsilon0: Exact, delta0: Exact, times: int) -> tuple[Fraction, Fraction, int]:
    return (
        checks.epsilon(epsilon0, "epsilon0", warn=False),
        checks.delta(delta0, "delta0", zero=True),
        checks.whole(times, "times"),
    )


@lru_cache(maxsize=1024)
def unharmed(own: Fraction, times: int) -> tuple[Fraction, Fraction]:
    """(1 - delta0)^times: exact where that is short, else from both sides, by squaring."""
    if own.denominator.bit_length() * times <= _SHORT:
        return (1 - own) ** times, (1 - own) ** times
    power, square, left = exact.enclose(1, _BITS), exact.enclose(1 - own, _BITS), times
    while left:
        power = power * square if left % 2 else power
        square, left = square * square, left // 2
    return Fraction(max(power.lo, 0), 1 << _BITS), Fraction(power.hi, 1 << _BITS)


def _left(own: Fraction, times: int, target: Fraction) -> tuple[float, float]:
    """What D may be at most: 1 - (1 - delta) / (1 - delta0)^times, from both sides."""
    if not own:
        return exact.float_below(target), exact.float_above(target)
    low, high = unharmed(own, times)
    if 1 - target > low:
        raise UnsupportedEventError(
            f"{times} mechanisms that may each fail with delta0 = {float(own):g} have no epsilon at "
            f"delta = {float(target):g}: delta must be at least {exact.float_above(1 - low):.6g}"
        )
    return max(exact.float_below(1 - (1 - target) / low), 0.0), exact.float_above(1 - (1 - target) / high)


def _delta(step: Fraction, own: Fraction, times: int, epsilon: Fraction) -> Interval:
    if times > _MOST_TIMES:
        size = float(step)
        mean = times * size * math.tanh(size / 2)
        excess = max(float(epsilon) - mean * (1 + 1e-12), 0.0) / (math.sqrt(times) * size)
        loss = Interval(_delta(step, Fraction(0), _MOST_TIMES, epsilon).lower, _up(math.exp(-(excess**2) / 2)))
    else:
        loss = _binomial(step, times).curve(epsilon)
    low, high = unharmed(own, times) if own else (Fraction(1), Fraction(1))
    return Interval(
        exact.float_below(1 - high * (1 - Fraction(loss.lower))),
        min(exact.float_above(1 - low * (1 - Fraction(loss.upper))), 1.0),
    )


def _epsilon(step: Fraction, times: int, target: float) -> Interval:
    """Where D meets the target."""
    most = step * times
    if target <= 0.0:
        return Interval(exact.float_below(most), exact.float_above(most))
    if times > _MOST_TIMES:  # Hoeffding: losses lie in +-epsilon0, their mean is epsilon0 tanh(epsilon0 / 2)
        size = float(step)
        mean = times * size * math.tanh(size / 2)
        high = _up(mean + size * math.sqrt(-2 * times * math.log(min(target, 1.0))))
        return Interval(_epsilon(step, _MOST_TIMES, target).lower, min(high, exact.float_above(most)))
    law = _binomial(step, times)
    return Interval(law.where(target, upper=False) if target < 1 else 0.0, law.where(target, upper=True))


def _up(value: float) -> float:
    return value * (1 + 1e-12) + _TINY


@lru_cache(maxsize=4)
def _binomial(step: Fraction, times: int) -> _Binomial:
    return _Binomial(step, times)


class _Binomial:
    """b_first, b_(first + 1), ... in a window around the mode, and what may lie beyond it.

    Window: n steps from the mode are worth about exp(-2 n^2 / k) or less (Hoeffding): 19 sqrt(k) steps up reach 1e-313
    and 8 sqrt(k) steps down reach 1e-55; what is left beyond is bounded from the last term, whatever it is.
    """

    def __init__(self, step: Fraction, times: int) -> None:
        self.step, self.times, self.size = step, times, float(step)
        small = math.exp(-self.size)
        mode = min(int((times + 1) / (1 + small)), times)
        up = np.arange(mode, min(times, mode + math.ceil(19 * math.sqrt(times))), dtype=np.float64)
        down = np.arange(mode, max(0, mode - math.ceil(8 * math.sqrt(times))), -1, dtype=np.float64)
        rising = np.cumprod((times - up) / ((up + 1) * small)) if up.size else up
        falling = np.cumprod(down / (times - down + 1) * small)
        weights = np.concatenate((falling[::-1], [1.0], rising))
        self.first, self.last = mode - down.size, mode + up.size
        self.b: Floats = weights / weights.sum()
        # Six roundings a step, and epsilon0's own in the exponent. (Above 40 the mode is at the end for all times in
        # range, and the terms below it are too small for their error to count.)
        self.error = 2 * max(up.size, down.size) * (6 + min(self.size, 40.0)) * _UNIT + 128 * _UNIT
        above = (times - self.last) * float(self.b[-1])
        below = self.first * float(self.b[0])
        self.error += 2 * (above + below)  # the normalising sum lacks them
        self.above, self.below = _up(above), _up(below)

    def _range(self, value: float, missing: float) -> Interval:
        low, high = value * (1 - self.error) - _TINY, value * (1 + self.error) + missing + _TINY
        return Interval(max(low, 0.0), min(high, 1.0))

    def loss(self, j: int) -> Fraction:
        return (2 * j - self.times) * self.step

    def curve(self, epsilon: Fraction) -> Interval:
        """D at any epsilon >= 0. The first gap l_m - epsilon is an exact difference, the others add to it."""
        ahead = epsilon / self.step + self.times
        m = math.floor(ahead / 2) + 1  # the first j with l_j above epsilon
        if m > self.times:
            return Interval(0.0, 0.0)
        start = max(m, self.first)
        missing = self.above + (self.below if m < self.first else 0.0)
        if start > self.last:
            return Interval(0.0, min(missing + _TINY, 1.0))
        gap = float(self.loss(start) - epsilon)
        tail = self.b[start - self.first :]
        share = -np.expm1(-(gap + 2 * self.size * np.arange(tail.size)))
        return self._range(float((tail * share).sum()), missing)

    def _discounted(self, j: int) -> Interval:
        """sum over i >= j of b_i e^(l_j - l_i): how fast D grows below l_j."""
        tail = self.b[j - self.first :]
        return self._range(float((tail * np.exp(-2 * self.size * np.arange(tail.size))).sum()), self.above)

    def node(self, target: float, *, upper: bool) -> int:
        """The least i with l_i >= 0 at which D(l_i), taken from the asked side, is at most the target.

        Below the window D is 1 to more digits than any target below 1 has, so the search may start there.
        """
        end = 1 if upper else 0
        low, high = max((self.times - 1) // 2, self.first - 1), self.last
        if self.curve(self.loss(high))[end] > target:
            return self.times
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.curve(self.loss(middle))[end] <= target else (middle, high)
        return high

    def where(self, target: float, *, upper: bool) -> float:
        """Where D meets the target, rounded to the asked side.

        Between l_(i-1) and l_i, D(epsilon) = D(l_i) + (1 - e^(epsilon - l_i)) S, with S the discounted sum: solved for
        epsilon with D and S from the safe side, and kept within the cell.
        """
        if upper and self.curve(Fraction(0)).upper <= target:
            return 0.0
        i, end = self.node(target, upper=upper), 1 if upper else 0
        edge, below = self.loss(i), max(self.loss(i - 1), Fraction(0))
        slope = self._discounted(i)[end] if i <= self.last else 1.0
        at = self.curve(edge)[end]
        share = (target - at) / slope * (1 - 16 * _UNIT if upper else 1 + 16 * _UNIT) if slope > 0 else 1.0
        place = float(edge) + math.log1p(-share) if share < 1 else float(below)
        slack = 8 * _UNIT * (abs(place) + float(edge))
        place = max(place, float(below))
        return min(place + slack, exact.float_above(self.loss(self.times))) if upper else max(place - slack, 0.0)
