"""What may be spent in all, and how an account of it divides its delta among its members.

An account's members are fixed when it is opened. For (epsilon, delta) they share delta, unevenly:

    plans       1/2   for failures: the plans' own delta_i, in sum
    gaussian    1/4   many Gaussian releases
    renyi:a     1/8   everything with a Renyi divergence (mixtures, sampled training), at the order with most room
    renyi:b     1/8   for rho, and at a lower one for training whose divergence grows faster than that

Why so: halving a share of delta costs a curve member about ln 2 / (2 ln(1/delta)), 3 % of its noise at 1e-6, so a
member must earn more than that. The order a is the one at which a sum of rho would be converted, so `renyi:a` has room
for all that a rho gauge of the same share would take. Members that would start without room are dropped at birth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from .. import checks, display, exact
from ..checks import Exact
from ..errors import ArgumentError
from ..events import Approximate, Event, Pure, ZeroConcentrated
from ..record import record
from ..units import Relation
from . import gdp, zcdp
from .members import AdaptiveSum, Concentrated, GaussianSum, Member, PlanSum, PureSum, RenyiOrder

MOST_ORDERS = 8
_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
_NAMES = ("plans", "gaussian", "concentrated", "adaptive")
_ALLOWED = (
    "a part of delta for each of 'plans', 'gaussian', 'concentrated', 'adaptive' and up to 8 of 'renyi:<order>', "
    "together at most 1"
)

Shares = tuple[tuple[str, Fraction], ...]


@record("budget/2", kept=True)
@dataclass(frozen=True)
class Budget:
    """What may be spent in all: epsilon, or (epsilon, delta), or rho. Give epsilon (with or without delta), or rho.

    shares     the part of delta that each member gets, such as {"plans": 1} or {"gaussian": 0.9, "plans": 0.1}; chosen
               by the library where nothing is given, and stored either way
    raisable   keep a part of delta back, so that the limit can be raised later at the same delta
    """

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
        part = fresh_part(version) if self.raisable or version > 1 else Fraction(1)
        failures = self.failures
        made = (_member(name, self.epsilon, self.delta * share * part, failures) for name, share in self.shares)
        return tuple(member for member in made if member.limit > 0)

    @property
    def failures(self) -> Fraction:
        """The part of delta for the failures of events themselves, counted once for all members."""
        return sum((self.delta * share for name, share in self.shares if name == "plans"), Fraction(0))

    def others(self, version: int = 1) -> Fraction:
        """The delta that the members besides the plans take in that version."""
        part = fresh_part(version) if self.raisable or version > 1 else Fraction(1)
        return sum((self.delta * share * part for name, share in self.shares if name != "plans"), Fraction(0))

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {float(self.rho):g}"
        return f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")

    def _repr_html_(self) -> str:
        promise = f"All that is paid from an account with this budget, however it is chosen, stays within {self}."
        rows = [(member.currency, f"{float(member.limit):.6g}") for member in self.members()]
        gauges = display.table(("gauge", "limit"), rows, right=(1,))
        closing = "A release passes while one gauge has room for it." if len(rows) > 1 else ""
        return display.card(f"Budget: {self}", display.paragraph(promise), gauges, note=closing)


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
    found: dict[str, Fraction] = {}
    for name, share in pairs:
        part = checks.rational(share, "shares", _ALLOWED)
        if not isinstance(name, str) or not (name in _NAMES or _order(name) > 1) or part <= 0:
            raise checks.refuse("shares", given, _ALLOWED)
        found[name] = part
    orders = {_order(name) for name in found if name not in _NAMES}
    too_many = len(orders) > MOST_ORDERS or len(orders) + sum(name in _NAMES for name in found) < len(pairs)
    if too_many or sum(found.values()) > 1:
        raise checks.refuse("shares", given, _ALLOWED)
    return tuple(found.items())


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


def order_limit(epsilon: Fraction, share: Fraction, order: Fraction) -> Fraction:
    """The largest divergence of that order that is (epsilon, share)-DP, rounded down; at most 0 if there is none.

    Canonne, Kamath and Steinke 2020, Proposition 12: epsilon = D + ln((a-1)/a) - (ln share + ln a)/(a-1).
    """
    a = float(order)
    parts = (float(epsilon), -math.log1p(-1 / a), math.log(share) / (a - 1), math.log(a) / (a - 1))
    return Fraction(math.fsum(parts) - 1e-12 * math.fsum(map(abs, parts)))


@lru_cache(maxsize=1024)
def default_shares(epsilon: Fraction, delta: Fraction) -> Shares:
    """See the top of the file: a has the largest limit(a)/a, and b - 1 = 0.7 (a - 1)."""
    less = np.logspace(-6, 5, 4001)  # a - 1
    share = math.log(delta) - math.log(8)
    room = (float(epsilon) - np.log(less / (1 + less)) + (share + np.log1p(less)) / less) / (1 + less)
    best = float(less[int(np.argmax(room))])
    orders = dict.fromkeys((_short(1 + best), _short(1 + 0.7 * best)))
    each = Fraction(1, 4 * len(orders))
    return (("plans", _HALF), ("gaussian", _QUARTER), *((f"renyi:{order}", each) for order in orders))


def _short(order: float) -> str:
    return str(round(order)) if order >= 10 else f"{1 + float(f'{order - 1:.2e}'):.9f}".rstrip("0").rstrip(".")


@lru_cache(maxsize=64)
def fresh_part(version: int) -> Fraction:
    """6/(pi k)^2, rounded down: what the k-th version of an account takes of the shares. All of them make 1."""
    pi = Fraction(exact.pi(96).hi, 1 << 96)
    return Fraction(math.floor(6 / (pi * version) ** 2 * (1 << 64)), 1 << 64)
