"""What may be spent in all, and how an account of it divides its delta among its members.

An account's members are fixed when it is opened. For (epsilon, delta) they share delta, unevenly:

    smoothed   9/20   mu^2 of anything with a curve: counts, Laplace noise, trainings. A tenth of what its curve gets is
                      for what single prices leave out
    failures   1/4    the events' own deltas, such as those of unknown keys; nothing else takes any of it
    renyi:a    1/5    whatever is known by its Renyi divergence alone (zCDP, tuning), at the order roomiest for rho
    plans      1/10   the plans' own delta_i, while the plain sum of their epsilons has room

Why so: halving a share of delta costs a curve member about ln 2 / (2 ln(1/delta)), 3 % of its noise at 1e-6, so a
member must earn more than that; `python -m bench.budget` measures what five mixes of work get out of them. The order a
is the one at which a sum of rho would be converted, so `renyi:a` has room for all that a rho gauge of the same share
would take. Members that would start without room are dropped at birth.

Budgets that do not name `failures` count them against the share of `plans`, together with the delta_i of plans: those
that were stored before there was such a share do, for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .. import checks, exact
from ..checks import Exact
from ..errors import ArgumentError
from ..events import Approximate, Event, Pure, ZeroConcentrated
from ..exhibits import Exhibit
from ..record import record
from ..units import Relation
from . import gdp, zcdp
from .members import (
    AdaptiveSum,
    Concentrated,
    Failures,
    GaussianSum,
    Member,
    PlanSum,
    PureSum,
    RenyiOrder,
    SmoothedSum,
)

MOST_ORDERS = 8
_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
_SMOOTHED, _FAILURES, _RENYI, _PLANS = Fraction(9, 20), Fraction(1, 4), Fraction(1, 5), Fraction(1, 10)
CURVE = Fraction(10, 11)  # of a share, where the rest of it is for what prices leave out
_CUTS = 32  # how many heavy-tailed releases one by one leave out all of that
_KEPT = Fraction(1, 25)  # of mu^2, never spent
_NAMES = ("plans", "failures", "smoothed", "gaussian", "concentrated", "adaptive")
_ALLOWED = (
    "a part of delta for each of 'plans', 'failures', 'smoothed', 'gaussian', 'concentrated', 'adaptive' and up to 8 "
    "of 'renyi:<order>', together at most 1; 'smoothed' only beside 'failures'"
)

Shares = tuple[tuple[str, Fraction], ...]


@record("budget/2", kept=True)
@dataclass(frozen=True)
class Budget(Exhibit):
    """What may be spent in all: epsilon, or (epsilon, delta), or rho. Give epsilon (with or without delta), or rho.

    >>> from sfumato import Budget
    >>> print(Budget(epsilon=1, delta=1e-6))
    epsilon = 1, delta = 1e-06

    shares     the part of delta that each member gets, such as {"plans": 1} or {"smoothed": 0.8, "failures": 0.2};
               chosen by the library where nothing is given, and stored either way
    raisable   keep a part of delta back, so that the limit can be raised later at the same delta
    """

    _card = "sfumato.cards:budget"

    epsilon: Exact = None
    delta: Exact = Fraction(0)
    rho: Exact = None
    shares: Any = field(default=None, repr=False)
    raisable: bool = False

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError("a budget is either epsilon (with delta, or without) or rho: give one of the two.")
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        else:
            object.__setattr__(self, "rho", checks.positive(self.rho, "rho"))
            if self.delta:
                raise checks.refuse("delta", self.delta, "no delta with rho: rho holds for every delta")
        if not isinstance(self.raisable, bool):
            raise checks.refuse("raisable", self.raisable, "True or False")
        object.__setattr__(self, "shares", self._shares())

    def _shares(self) -> Shares:
        if not self.delta:
            if self.shares:
                raise checks.refuse("shares", self.shares, "no shares: there is no delta to divide")
            return ()
        return _checked(self.shares) if self.shares else default_shares(self.epsilon, self.delta)

    def within(self, other: Budget) -> bool:
        """Is everything that this budget allows allowed by the other one too?"""
        if other.rho is not None:
            own = self.rho if self.rho is not None else None if self.delta else zcdp.rho(self.event("add-remove"))
            return own is not None and own <= other.rho
        if self.rho is not None:
            return bool(other.delta and zcdp.epsilon(self.rho, other.delta) <= other.epsilon)
        return bool(self.epsilon <= other.epsilon and self.delta <= other.delta)

    def event(self, relation: Relation) -> Event:
        """The whole budget, as one event."""
        if self.rho is not None:
            return ZeroConcentrated(rho=self.rho, relation=relation)
        if self.delta:
            return Approximate(epsilon=self.epsilon, delta=self.delta, relation=relation)
        return Pure(epsilon=self.epsilon, relation=relation)

    def members(self, version: int = 1) -> tuple[Member, ...]:
        """The members of an account when it is opened (version 1) or raised for the (version - 1)-th time."""
        if self.rho is not None:
            return (Concentrated(limit=self.rho),)
        if not self.delta:
            return (PureSum(limit=self.epsilon),)
        part = self._part(version)
        if self.apart:
            steady = {"plans": self.plans, "failures": self.failures}
            shares = ((name, steady.get(name, self.delta * share * part)) for name, share in self.shares)
            members = tuple(_member_apart(name, self.epsilon, share) for name, share in shares)
        else:
            pairs = ((name, self.delta * share * part) for name, share in self.shares)
            members = tuple(_member(name, self.epsilon, share, self.failures) for name, share in pairs)
        return tuple(member for member in members if member.limit > 0)

    def _part(self, version: int) -> Fraction:
        """Of a share that each version takes afresh."""
        return fresh_part(version) if self.raisable or version > 1 else Fraction(1)

    @property
    def apart(self) -> bool:
        """Are the failures of events counted apart from those of plans?"""
        return any(name == "failures" for name, _ in self.shares)

    def _named(self, name: str) -> Fraction:
        return sum((self.delta * share for known, share in self.shares if known == name), Fraction(0))

    @property
    def failures(self) -> Fraction:
        """The part of delta for the failures of events themselves, counted once for all members."""
        return self._named("failures" if self.apart else "plans")

    @property
    def plans(self) -> Fraction:
        """The part of delta for what plans leave out beside that."""
        return self._named("plans") if self.apart else Fraction(0)

    def others(self, version: int = 1) -> Fraction:
        """The delta that the members besides these take in that version."""
        return self.share_of(None, version)

    def share_of(self, name: str | None, version: int = 1) -> Fraction:
        """What the member of that name takes of delta in that version; all that take a fresh share where it is None."""
        order = Fraction(0) if name is None else _order(name)  # "renyi:40.5" is the member "renyi:81/2"
        names = [
            known
            for known, _ in self.shares
            if known not in ("plans", "failures") and (name in (None, known) or (order and _order(known) == order))
        ]
        return self._part(version) * sum(map(self._named, names), Fraction(0))

    @property
    def whole(self) -> Fraction:
        """All of delta that members of the first version share."""
        return self.failures + self.plans + self.others()

    def counted_as(self, other: Budget) -> Budget:
        """With the failures of events counted as in the other budget: how an account counts them never changes."""
        if self.apart == other.apart or not self.delta or not other.delta:
            return self
        if self.apart and self.shares == default_shares(self.epsilon, self.delta):
            return replace(self, shares=common_shares(self.epsilon, self.delta))
        word = "with" if other.apart else "without"
        raise checks.refuse("shares", self.shares, f"shares {word} 'failures', as the account has had from its opening")

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {float(self.rho):g}"
        return f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")


@record("budget/1", kept=True)
@dataclass(frozen=True)
class HalvesBudget(Budget):
    """A budget as it was before shares could be chosen: half of delta for the plans, half for the sum of rho."""

    shares: Any = field(default=None, init=False, repr=False)
    raisable: bool = field(default=False, init=False, repr=False)

    def _shares(self) -> Shares:
        return (("plans", _HALF), ("concentrated", _HALF)) if self.delta else ()


def _checked(given: Any) -> Shares:
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, tuple) or not pairs or any(not isinstance(p, tuple) or len(p) != 2 for p in pairs):
        raise checks.refuse("shares", given, _ALLOWED)
    shares: dict[str, Fraction] = {}
    for name, share in pairs:
        part = checks.rational(share, "shares", _ALLOWED)
        if not isinstance(name, str) or not (name in _NAMES or _order(name) > 1) or part <= 0:
            raise checks.refuse("shares", given, _ALLOWED)
        shares[name] = part
    orders = {_order(name) for name in shares if name not in _NAMES}
    alone = "smoothed" in shares and "failures" not in shares
    too_many = len(orders) > MOST_ORDERS or len(orders) + sum(name in _NAMES for name in shares) < len(pairs)
    if alone or too_many or set(shares) == {"failures"} or sum(shares.values()) > 1:
        raise checks.refuse("shares", given, _ALLOWED)
    return tuple(shares.items())


def _order(name: str) -> Fraction:
    """The order of "renyi:12.5", 0 where there is none."""
    word, _, number = name.partition(":")
    try:
        return Fraction(number) if word == "renyi" and len(number) < 40 and "e" not in number.lower() else Fraction(0)
    except (ValueError, ZeroDivisionError):
        return Fraction(0)


def _member(name: str, epsilon: Fraction, share: Fraction, failures: Fraction) -> Member:
    if name == "plans":
        return PlanSum(limit=epsilon, delta_limit=failures)
    if name == "gaussian":
        return GaussianSum(limit=1 / gdp.least_multiplier(epsilon, share) ** 2, delta_limit=failures)
    if name == "concentrated":
        return Concentrated(limit=zcdp.largest_rho(epsilon, share), delta_limit=failures)
    if name == "adaptive":
        return AdaptiveSum(limit=zcdp.largest_rho(epsilon, share), delta_limit=failures)
    order = _order(name)
    return RenyiOrder(limit=order_limit(epsilon, share, order), order=order, delta_limit=failures)


def _member_apart(name: str, epsilon: Fraction, share: Fraction) -> Member:
    """The same where the failures of events are counted by a member of their own."""
    if name == "plans":
        return PlanSum(limit=epsilon, delta_limit=share, apart=True)
    if name == "failures":
        return Failures(limit=share, apart=True)
    if name in ("smoothed", "adaptive"):
        left_out = share * (1 - CURVE)
        if name == "adaptive":
            return AdaptiveSum(limit=zcdp.largest_rho(epsilon, share - left_out), delta_limit=left_out, apart=True)
        whole = 1 / gdp.least_multiplier(epsilon, share - left_out) ** 2
        multiplier = Fraction(exact.sqrt_above(1 / (whole * _KEPT)))
        limit = whole - 1 / multiplier**2
        return SmoothedSum(limit=limit, delta_limit=left_out, apart=True, kept=multiplier, cut=left_out / _CUTS)
    return replace(_member(name, epsilon, share, Fraction(0)), apart=True)


def order_limit(epsilon: Fraction, share: Fraction, order: Fraction) -> Fraction:
    """The largest divergence of that order that is (epsilon, share)-DP, rounded down; at most 0 if there is none.

    Canonne, Kamath and Steinke 2020, Proposition 12: epsilon = D + ln((a-1)/a) - (ln share + ln a)/(a-1).
    """
    a = float(order)
    parts = (float(epsilon), -math.log1p(-1 / a), math.log(share) / (a - 1), math.log(a) / (a - 1))
    return Fraction(math.fsum(parts) - 1e-12 * math.fsum(map(abs, parts)))


@lru_cache(maxsize=1024)
def default_shares(epsilon: Fraction, delta: Fraction) -> Shares:
    """See the top of the file."""
    order = _short(1 + _roomiest(epsilon, delta * _RENYI))
    return (("plans", _PLANS), ("smoothed", _SMOOTHED), (f"renyi:{order}", _RENYI), ("failures", _FAILURES))


@lru_cache(maxsize=1024)
def common_shares(epsilon: Fraction, delta: Fraction) -> Shares:
    """What accounts got before failures were counted apart, and get when they are raised: plans and failures together
    half of delta, Gaussians a quarter, and two Renyi orders, a with the most room for rho and b - 1 = 0.7 (a - 1)."""
    best = _roomiest(epsilon, delta / 8)
    orders = dict.fromkeys((_short(1 + best), _short(1 + 0.7 * best)))
    part = Fraction(1, 4 * len(orders))
    return (("plans", _HALF), ("gaussian", _QUARTER), *((f"renyi:{order}", part) for order in orders))


def shares_of_before(budget: Budget) -> Shares:
    """What an account of this budget was opened with before failures were counted apart: it goes on so."""
    shares: Shares = budget.shares
    if not budget.apart:
        return shares
    if shares == default_shares(budget.epsilon, budget.delta):
        return common_shares(budget.epsilon, budget.delta)
    gauges = [name for name, _ in shares if name not in ("plans", "failures")]
    return (("plans", _HALF), *((name, _HALF / len(gauges)) for name in gauges))


def _roomiest(epsilon: Fraction, share: Fraction) -> float:
    """a - 1, for the order with the largest limit(a)/a."""
    less = np.logspace(-6, 5, 4001)
    room = (float(epsilon) - np.log(less / (1 + less)) + (math.log(share) + np.log1p(less)) / less) / (1 + less)
    return float(less[int(np.argmax(room))])


def _short(order: float) -> str:
    return str(round(order)) if order >= 10 else f"{1 + float(f'{order - 1:.2e}'):.9f}".rstrip("0").rstrip(".")


@lru_cache(maxsize=64)
def fresh_part(version: int) -> Fraction:
    """6/(pi k)^2, rounded down: what the k-th version of an account takes of the shares. All of them make 1."""
    pi = Fraction(exact.pi(96).hi, 1 << 96)
    return Fraction(math.floor(6 / (pi * version) ** 2 * (1 << 64)), 1 << 64)
