"""The members of an account: compositions that are proven for adaptively chosen releases, each with a limit.

    PureSum       exact sum of epsilons                              basic composition; Rogers et al. 2016
    PlanSum       sum of each plan's own epsilon_i at its delta_i    the same, outside the plans' failures
    Concentrated  sum of rho                                         Feldman and Zrnic 2021; Whitehouse et al. 2023
    GaussianSum   sum of mu^2, limit from the exact Gaussian curve   Smith and Thakurta 2022; Koskela et al. 2023
    RenyiOrder    sum of the divergences at one order                Feldman and Zrnic 2021; Lecuyer 2021
    AdaptiveSum   sum of the plans' epsilon_i^2 / 2                  Whitehouse, Ramdas, Rogers, Wu 2023
    SmoothedSum   sum of mu^2 of any event, beside a Gaussian that is kept back              smoothing.py
    Failures      sum of the events' own deltas, which every release must fit into beside one of the others

An event's own failures. An Approximate event is (epsilon, delta)-DP and nothing more is known: it is a mixture, with
weight 1 - delta, of something epsilon-DP (Kairouz, Oh, Viswanath 2015), and anything may happen otherwise. Every member
prices the epsilon-DP part. The failures are counted once, for all members: by `Failures`, apart from everything else;
then `delta_limit` of any other member is for what its own prices leave out, such as the delta_i of plans. (Accounts of
older budgets count both together, in every member, against one `delta_limit`.) The proof is in filters.proof.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache

from scipy import special

from .. import exact
from ..checks import EPSILON_RANGE
from ..errors import BudgetError, UnsupportedEventError
from ..events import Approximate, Event, Gaussian, Partition, Pure, PureEvent, Repeat, Sequence
from ..record import LATER, moved, record
from . import approximate, pure, smoothing, zcdp
from .composition import total
from .holds import Block, Cost, Holds, Priced
from .holds import own_delta as own_delta

_NOTHING = Fraction(0)
_BITS = 512  # totals are kept to so many bits below 1, rounded up: far below the least budget, and short for ever


Price = tuple[Fraction, Fraction] | None


@dataclass(frozen=True, kw_only=True)
class Member(ABC):
    """One composition with a limit. `add` gives the state after one more charge, or None if that closes the member."""

    limit: Fraction
    spent: Fraction = _NOTHING
    delta_limit: Fraction = _NOTHING  # for what prices leave out; unless apart, one number for the failures of all
    delta_spent: Fraction = _NOTHING
    apart: bool = field(default=False, metadata=LATER)  # are the failures of events counted by `Failures`?

    by_plan = False  # does it price plans at their own delta_i?
    at_once = False  # does it price work in steps whole, with the first of them?
    required = False  # must it have room beside any other member, and is no bound by itself?

    @property
    @abstractmethod
    def name(self) -> str:
        """Which composition it is: there is one member of a name in an account."""

    @property
    def terms(self) -> Hashable:
        """Members of equal terms price alike."""
        return self.name, not self.delta_limit, self.apart

    @property
    @abstractmethod
    def currency(self) -> str:
        """What is added up."""

    @abstractmethod
    def price(self, event: Event, delta: Fraction) -> Fraction:
        """What the event costs this member, its own failures apart."""

    def failure(self, event: Event, delta: Fraction) -> Fraction:
        """The delta that the event takes from `delta_limit`, as this member sees it."""
        if not self.apart:
            return delta if self.by_plan else own_delta(event)
        return max(delta - own_delta(event), _NOTHING) if self.by_plan else _NOTHING

    def cost(self, event: Priced, delta: Fraction) -> Cost:
        """What the event costs, and what it counts as failures. Of steps that are drawn from a hold: each its price,
        where prices add up; where plans are priced at their delta_i, the whole work with the first of them."""
        if not isinstance(event, Block):
            return self.price(event, delta), self.failure(event, delta)
        if self.at_once:
            return self.cost(event.of, delta) if event.first else (_NOTHING, _NOTHING)
        failure = _NOTHING if event.counted or self.apart else event.steps * own_delta(event.of.event)
        return event.steps * self.price(event.of.event, delta), failure

    def charge(self, event: Priced, delta: Fraction) -> Price:
        """The same; None where this member knows no price for it."""
        try:
            price, failure = self.cost(event, delta)
        except UnsupportedEventError:
            return None
        if not isinstance(delta, int | Fraction) or price < 0 or not 0 <= delta < 1:
            raise BudgetError("a release cannot cost less than nothing, nor fail for sure: its event is broken")
        return price, failure

    def add(self, charged: Price) -> Member | None:
        totals = self.totals(charged)
        return None if totals is None else moved(self, spent=totals[0], delta_spent=totals[1])

    def totals(self, charged: Price) -> tuple[Fraction, Fraction] | None:
        """What is spent, and counted as failures, after one more charge; None where that is too much."""
        if charged is None:
            return None
        price, failure = charged
        spent = exact.total_above(self.spent, price, _BITS)
        if exact.is_above(spent, self.limit):
            return None
        if not failure:
            return spent, self.delta_spent
        failed = exact.total_above(self.delta_spent, failure, _BITS)
        return None if exact.is_above(failed, self.delta_limit) else (spent, failed)

    def backs(self, holds: Holds) -> bool:
        """Is there room for all that is held and not drawn yet?"""
        taken = failed = _NOTHING
        try:
            for hold in holds:
                if (room := hold.room(self)) is None:
                    return False
                taken, failed = taken + room[0], failed + room[1]
        except UnsupportedEventError:
            return False
        return self.spent + taken <= self.limit and self.delta_spent + failed <= self.delta_limit

    @property
    def used(self) -> Fraction:
        """The part of its limit that is gone. Where plans are priced at their own delta, each takes some of the delta
        for failures, too; elsewhere Gaussian releases go on when that is gone."""
        own = self.spent / self.limit
        return max(own, self.delta_spent / self.delta_limit) if self.by_plan and self.delta_limit else own

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent


@record("member-pure/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class PureSum(Member):
    name = "pure"
    currency = "epsilon"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return pure.epsilon(event)


@record("member-plans/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class PlanSum(Member):
    name = "plans"
    currency = "epsilon"
    by_plan = at_once = True

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return plan_epsilon(event, delta)


@record("member-adaptive/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class AdaptiveSum(Member):
    """Outside its failures a plan is epsilon_i-DP, so epsilon_i^2/2-zCDP; the limit is the tight one of rho.

    (The theorem's own closed form, `fully_adaptive`, is looser: 5.7565 against 5.2215 for 100 times 0.1 at 1e-6.)
    """

    name = "adaptive"
    currency = "rho of plans"
    by_plan = at_once = True

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return plan_epsilon(event, delta) ** 2 / 2


@record("member-concentrated/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Concentrated(Member):
    name = "concentrated"
    currency = "rho"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return rho(sure(event) if self.delta_limit or self.apart else event)


@record("member-gaussian/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class GaussianSum(Member):
    name = "gaussian"
    currency = "mu^2"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return mu_squared(sure(event))


@record("member-renyi/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class RenyiOrder(Member):
    order: Fraction

    @cached_property
    def name(self) -> str:
        return f"renyi:{self.order}"

    @property
    def currency(self) -> str:
        return f"Renyi divergence of order {float(self.order):g}"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return divergence(sure(event), self.order)


@record("member-smoothed/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class SmoothedSum(Member):
    """mu^2 of whatever has a curve, beside a Gaussian that is kept back: see smoothing.py.

    kept  the multiplier of that Gaussian
    cut   what one price may leave out
    """

    kept: Fraction
    cut: Fraction

    name = "smoothed"
    currency = "mu^2"
    at_once = True

    @property
    def terms(self) -> Hashable:
        return self.name, self.kept, self.cut

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return smoothing.mu_squared(sure(event), self.kept, self.cut)[0]

    def failure(self, event: Event, delta: Fraction) -> Fraction:
        return smoothing.mu_squared(sure(event), self.kept, self.cut)[1]


@record("member-failures/1", kept=True)
@dataclass(frozen=True, kw_only=True)
class Failures(Member):
    """The chance that some event fails by itself, at most."""

    name = "failures"
    currency = "delta"
    required = True

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return own_delta(event)


def still_open(members: tuple[Member, ...], charged: tuple[Price, ...]) -> tuple[Member, ...]:
    """The members that stay open; none where one is missing that is required, or nothing but those is left. Unless
    failures are counted apart, members have one common count of them: the largest that one of them saw."""
    if members and members[-1].apart:
        states = [member.add(price) for member, price in zip(members, charged, strict=True)]
        missing = any(member.required and state is None for member, state in zip(members, states, strict=True))
        alive = tuple([state for state in states if state is not None])
        return alive if not missing and any(not member.required for member in alive) else ()
    after, failed = [], _NOTHING
    for member, price in zip(members, charged, strict=True):
        totals = member.totals(price)
        if totals is not None:
            after.append((member, totals[0]))
            if totals[1] is not failed and exact.is_above(totals[1], failed):
                failed = totals[1]
    return tuple([moved(member, spent=spent, delta_spent=failed) for member, spent in after])


def backed(members: tuple[Member, ...], holds: Holds) -> bool:
    """Has one of them, with all that are required, room for everything that is held?"""
    backs = [member for member in members if member.backs(holds)]
    return any(not member.required for member in backs) and all(
        member in backs for member in members if member.required
    )


def counts_plans(members: tuple[Member, ...]) -> bool:
    """Is a member open that counts how plans fail, for all members?"""
    return any(member.by_plan and not member.apart for member in members)


def open_after(members: tuple[Member, ...], event: Priced, delta: Fraction) -> tuple[Member, ...]:
    return still_open(members, tuple(member.charge(event, delta) for member in members))


# Prices. They are remembered by event, so one more event of a known kind costs a look-up.


@lru_cache(maxsize=4096)
def plan_epsilon(event: Event, delta: Fraction) -> Fraction:
    return approximate.epsilon(event, delta)


@lru_cache(maxsize=4096)
def rho(event: Event) -> Fraction:
    return zcdp.rho(event)


@lru_cache(maxsize=4096)
def mu_squared(event: Event) -> Fraction:
    """The mu^2 of an event that is proven mu-Gaussian-DP: Gaussian noise exactly, pure DP rounded up."""
    return total(event, _mu_squared)


def _mu_squared(event: Event) -> Fraction:
    if isinstance(event, Gaussian):
        return 1 / event.multiplier**2
    if isinstance(event, PureEvent):
        return pure_mu(event.epsilon) ** 2
    raise UnsupportedEventError(
        f"{type(event).__name__} has no Gaussian-DP price: Gaussian noise and pure epsilons are proven to have one."
    )


@lru_cache(maxsize=4096)
def pure_mu(epsilon: Fraction) -> Fraction:
    """Anything epsilon-DP is mu-GDP with mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)), rounded up.

    Its trade-off function lies above the broken line through (0, 1), (c, c), (1, 0) with c = 1/(1 + e^epsilon). G_mu
    passes through these three points, and is convex, so it lies below the line (Dong, Roth and Su 2022, Section 2).
    """
    size = exact.float_above(epsilon)
    if size < 1e-4:  # Phi^-1(1/2 + t) = s + s^3/6 + 7 s^5/120 + ... with s = sqrt(2 pi) t, t = tanh(epsilon/2)/2
        s = math.sqrt(2 * math.pi) * size / 4
        return Fraction(2 * s * (1 + s * s / 5) * (1 + 1e-12))
    log_corner = -size - math.log1p(math.exp(-size))
    return Fraction(-2 * float(special.ndtri_exp(log_corner)) * (1 + 1e-10))


@lru_cache(maxsize=8192)
def divergence(event: Event, order: Fraction) -> Fraction:
    from . import renyi

    price = float(renyi.divergence(event, float(order)))
    if not math.isfinite(price):
        raise UnsupportedEventError(f"{type(event).__name__} has no finite Renyi divergence of order {float(order):g}")
    return Fraction(price)


@lru_cache(maxsize=4096)
def sure(event: Event) -> Event:
    """The event outside its own failures: Approximate parts are Pure there, and parts of which nothing is left but
    failures cost nothing. (An event that is all such parts is priced as the least Pure one, which is above nothing.)"""
    return _sure(event) or Pure(epsilon=EPSILON_RANGE[0], relation=event.relation)


def _sure(event: Event) -> Event | None:
    if isinstance(event, Approximate):
        return Pure(epsilon=event.epsilon, relation=event.relation) if event.epsilon else None
    if not own_delta(event):
        return event
    if isinstance(event, Repeat):
        part = _sure(event.event)
        return None if part is None else Repeat(part, event.times)
    assert isinstance(event, Sequence | Partition)
    parts = tuple(part for part in map(_sure, event.events) if part is not None)
    if not parts:
        return None
    return Sequence(parts) if isinstance(event, Sequence) else Partition(event.column, parts)


def fully_adaptive(epsilons: Several[float], delta: float) -> float:
    """Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1, as it is printed: the epsilon of adaptively chosen
    epsilon_i-DP releases at `delta`, sqrt(2 ln(1/delta) sum eps_i^2) + sum eps_i^2 / 2. For comparison; members use
    the tight conversion of the same rho."""
    squares = math.fsum(float(each) ** 2 for each in epsilons)
    return (math.sqrt(2 * math.log(1 / delta) * squares) + squares / 2) * (1 + 1e-12)
