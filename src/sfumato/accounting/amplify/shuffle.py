"""Shuffling: n users send one locally private report each, and only the shuffled reports are seen.

Guarantee, for any local event with a pure epsilon "local" (Feldman, McMillan, Talwar 2021, Theorem 3.1 and its proof).
Let x, x' be the two values of one user, R(x) the law of his report, m = e^local. Since R(x), R(x') are within a factor
m, they are mixtures of two laws, R(x) = (m A + B)/(m+1) and R(x') = (A + m B)/(m+1) (Kairouz, Oh, Viswanath 2015). Any
other user's R(y) is at least R(x)/m and at least R(x')/m, hence at least (R(x) + R(x'))/(2m) = (A + B)/(2m): with
probability 1/m his report is a *clone*, from A or B by a fair coin. Tell the attacker everything but who sent which of
the reports from A and B, and what is left is the pair of clones.py with c = e^-local.

**The clone probability 2/(m+1) of "Stronger privacy amplification by shuffling" (2023) is not used in general**: the
authors' errata withdraw that theorem for arbitrary local events. It is used where it can be proven directly:

  randomized response over two values     R(y) = (A + B)/(m+1) + (1 - 2/(m+1)) (y itself), so c = 2/(m+1)
  over k values                           with w = 1/(m+k-1), R(x) = m w A + w B + (1 - (m+1) w) E, where A and B are
        the points x and x', and E is the same for x and x'. Every R(y) holds w A + w B. Tell the attacker whether the
        user's report came from E: then it says nothing. Otherwise the pair is the clones' with c = 2w, so delta is
        (m+1) w times that pair's. The smaller of this and the general bound counts.

**From below**: the attacker counts how many reports are x', while nobody else holds x'. For randomized response this is
an attack on the event itself; an event known by its epsilon only is as bad as randomized response over two values. For
other local events the lower end is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ... import checks
from ...events import Event, Pure, PureEvent, RandomizedResponse, Shuffled
from ...exact import float_above, float_below
from ..interval import Interval
from . import binomial
from .binomial import Floats
from .clones import LARGE, MOST_USERS, Clones, greatest

_DOWN, _UP = 1 - 1e-14, 1 + 1e-14


def epsilon(event: Shuffled, delta: Any) -> Interval:
    """The least epsilon of the shuffled reports at `delta`, from both sides."""
    return _epsilon(_checked(event), checks.delta(delta))


def delta(event: Shuffled, epsilon: Any) -> Interval:
    """The least delta of the shuffled reports at `epsilon`, from both sides."""
    size = float(checks.bound(epsilon, "epsilon"))
    if size < 0:
        raise checks.refuse("epsilon", epsilon, "0 or more")
    pairs, attack = _pairs(_checked(event)), _attack(event)
    upper = min(pair.delta(size * _DOWN).upper for pair in pairs)
    return Interval(min(attack(size * _UP), upper) if attack else 0.0, upper)


def clones(*, local: Any, users: int, delta: Any, clone: float | None = None) -> Interval:
    """The least epsilon of the clone pair itself, to many digits. `clone` is c, e^-local if not given.

    With c = 2/(e^local + 1) it is the 2023 figure, a guarantee for randomized response over two values only.
    """
    size, number = checks.epsilon(local, "local", warn=False), checks.whole(users, "users")
    if clone is not None and not 0 < clone <= 1:
        raise checks.refuse("clone", clone, "a probability above 0, at most 1")
    local_above = float_above(size)
    chance = math.exp(-local_above) * _DOWN if clone is None else float(clone) * _DOWN
    return Clones(local_above, min(number, MOST_USERS), chance).epsilon(float_below(checks.delta(delta)))


def closed_form(*, local: Any, users: int, delta: Any) -> float:
    """The textbook bound, for comparison: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    ln(1 + (m-1)/(m+1) (8 sqrt(m ln(4/delta) / n) + 8 m/n)) with m = e^local, if local <= ln(n / (16 ln(2/delta))).
    Where that condition fails, or the formula is above `local`, the answer is `local`: no amplification.
    """
    size = float_above(checks.epsilon(local, "local", warn=False))
    number, chance = checks.whole(users, "users"), float_below(checks.delta(delta))
    if number <= 16 * math.log(2 / chance) or size * _UP > math.log(number / (16 * math.log(2 / chance))):
        return size
    m = math.exp(size)
    inner = 8 * math.sqrt(m * math.log(4 / chance) / number) + 8 * m / number
    return min(size, math.log1p(math.tanh(size / 2) * inner) * _UP)


def pair(event: Shuffled, *, outside: Any = Fraction(1, 10**12)) -> tuple[Floats, Floats, float]:
    """Atoms (p, q) of a discrete pair that dominates the shuffled reports, and the P-mass that they leave out.

    For composition by privacy loss: count the mass left out as an infinite loss. It is about `outside` at most (all of
    it above a local epsilon of 700, where ratios leave float64). q mirrors p, so both directions have one loss. The
    masses are good to the slack of binomial.py.
    """
    target = float(checks.delta(outside, "outside"))
    many = _pairs(_checked(event))
    best = min(many, key=lambda pair: pair.epsilon(1e-6).upper) if len(many) > 1 else many[0]
    if best.local > 700:
        return np.zeros(1), np.ones(1), 1.0
    if best.local > LARGE or best.users == 1:  # the report as it is
        low = math.exp(-best.local)
        return np.array([low, 1.0]) / (1 + low), np.array([1.0, low]) / (1 + low), 0.0
    return best.pair(math.log(target))


def _checked(event: Event) -> Shuffled:
    checks.instance(event, Shuffled, "event", "a Shuffled event")
    assert isinstance(event, Shuffled)
    return event


@lru_cache(maxsize=1024)
def _epsilon(event: Shuffled, delta: Fraction) -> Interval:
    target = float_below(delta)
    pairs, attack = _pairs(event), _attack(event)
    upper = min(pair.epsilon(target).upper for pair in pairs)
    if event.users > MOST_USERS:
        upper = min(upper, closed_form(local=_local(event).epsilon, users=event.users, delta=delta))
    return Interval(greatest(attack, float_above(delta), upper) if attack and upper <= LARGE else 0.0, upper)


def _local(event: Shuffled) -> PureEvent:
    assert isinstance(event.event, PureEvent)  # held by the event itself
    return event.event


def _pairs(event: Shuffled) -> list[Clones]:
    """The clone pairs that are proven for the event; each is a bound."""
    local, users = float_above(_local(event).epsilon), min(event.users, MOST_USERS)
    m = math.exp(-local)  # inverse, so that it cannot overflow
    general = Clones(local, users, max(m * _DOWN, 5e-324))
    if not isinstance(event.event, RandomizedResponse) or local > LARGE:
        return [general]
    share = m / (1 + (event.event.categories - 1) * m)
    special = Clones(local, users, 2 * share * _DOWN, min(1.0, (1 + 1 / m) * share * _UP))
    return [special] if event.event.categories == 2 else [general, special]


def _attack(event: Shuffled) -> Callable[[float], float] | None:
    """delta that counting the reports of one value attains, at an epsilon; from below.

    Of n reports M are x'. If nobody holds x' then M ~ Bin(n, w); if one user does, the law's ratio to that one is
    (e^local M + s (n - M))/n with s = (1 - e^local w)/(1 - w), so that delta = E[(ratio - e^epsilon)+] is an excess.
    """
    if not isinstance(event.event, RandomizedResponse | Pure) or event.users > MOST_USERS:
        return None
    local, n = float_below(event.event.epsilon), event.users
    if local > LARGE:
        return None
    others = event.event.categories - 1 if isinstance(event.event, RandomizedResponse) else 1
    m = math.exp(local)
    w, more = 1 / (m + others), math.expm1(local)
    slope = more * (m + others) / (m + others - 1) / n  # m - s, without cancellation
    rest = more / (m + others - 1)  # 1 - s

    def attained(epsilon: float) -> float:
        if epsilon >= local:
            return 0.0
        low = float(binomial.excess((math.expm1(epsilon) + rest) / slope * _UP, float(n), w)[0])
        return slope * low * (1 - 1e-9)

    return attained
