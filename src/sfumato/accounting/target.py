"""What a calibration aims at: an epsilon at a delta, a rho, or what an account still accepts.

A target says by how much an event exceeds it, on the log scale: 0 or below means that the event stays within. The sign
is certain: prices are upper bounds, and where a price is exact it is compared as a fraction. The size only steers the
search.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from .. import checks
from ..errors import ArgumentError
from ..events import Event
from . import approximate, price, pure, zcdp
from .filters import Budget, Filter
from .interval import Interval

_COARSE, _FAR = 1e-2, 0.1  # accuracy of a price that is far from the limit, and what far means, on the log


@runtime_checkable
class Account(Protocol):
    """Whatever says whether it would still accept an event: a filter, or an account of a ledger."""

    def fits(self, event: Event, delta: Fraction) -> bool: ...


class Target(ABC):
    """One limit; `delta` is the event's own, 0 where there is none."""

    delta: Fraction

    @abstractmethod
    def excess(self, event: Event, *, roughly: bool = False) -> float:
        """`roughly` will do where the event is far from the limit, on either side."""

    @abstractmethod
    def exactly(self, event: Event) -> bool:
        """Is the excess of such an event exact and cheap?"""

    def epsilon(self, event: Event) -> Interval | None:
        """What an event that stays within costs, where the target is an epsilon."""
        return None

    def rho(self, event: Event) -> Fraction | None:
        return None

    @abstractmethod
    def __str__(self) -> str: ...


def target(*, epsilon: Any = None, delta: Any = None, rho: Any = None, account: Any = None) -> Target:
    """The one target that was named."""
    if sum(each is not None for each in (epsilon, rho, account)) != 1:
        raise ArgumentError("a target is an epsilon (at a delta), a rho or an account: give exactly one of the three.")
    own = Fraction(0) if delta is None else checks.delta(delta, zero=True)
    if epsilon is not None:
        return Within(checks.epsilon(epsilon, warn=False), own)
    if rho is not None:
        if own:
            raise checks.refuse("delta", delta, "no delta with rho: rho holds for every delta")
        return WithinRho(checks.positive(rho, "rho"))
    if isinstance(account, Budget):
        account = Filter.of(account)
    if not isinstance(account, Account):
        raise checks.refuse("account", account, "a Budget, a Filter, or anything with fits(event, delta)")
    return Fits(account, own)


def _exact_ratio(price: Fraction, limit: Fraction) -> float:
    """log(price/limit), with the sign of the exact comparison."""
    if not price:
        return -math.inf
    size = _log(price) - _log(limit)
    return min(size, 0.0) if price <= limit else max(size, 1e-300)


def log_ratio(upper: float, limit: float) -> float:
    """log(upper/limit), 0 or below exactly when upper is within the limit."""
    if upper <= limit:
        return min(math.log(upper / limit), 0.0) if upper else -math.inf
    return max(math.log(upper / limit), 1e-300) if upper < math.inf else math.inf


def _log(x: Fraction) -> float:
    return math.log(x.numerator) - math.log(x.denominator)


@dataclass(frozen=True)
class Within(Target):
    """An event is within when its price is: the one that `sf.epsilon` says and that an account of this budget charges,
    at their own accuracy, compared as a fraction. On the way a coarser one serves where it is far off."""

    limit: Fraction
    delta: Fraction

    def excess(self, event: Event, *, roughly: bool = False) -> float:
        if roughly and not self.exactly(event):
            limit = float(self.limit)
            rough = log_ratio(price.within(event, self.delta, _COARSE, limit).upper, limit)
            if abs(rough) > _FAR:
                return rough
        return _exact_ratio(charged(event, self.delta), self.limit)

    def exactly(self, event: Event) -> bool:
        return not self.delta or price.gaussian(event) is not None

    def epsilon(self, event: Event) -> Interval:
        return price.epsilon(event, delta=self.delta)

    def __str__(self) -> str:
        return f"epsilon = {float(self.limit):g}" + (f" at delta = {float(self.delta):g}" if self.delta else "")


def charged(event: Event, delta: Fraction) -> Fraction:
    """What an account that adds up plans charges for the event."""
    return approximate.epsilon(event, delta) if delta else pure.epsilon(event)


@dataclass(frozen=True)
class WithinRho(Target):
    limit: Fraction
    delta: Fraction = Fraction(0)

    def excess(self, event: Event, *, roughly: bool = False) -> float:
        return _exact_ratio(zcdp.rho(event), self.limit)

    def exactly(self, event: Event) -> bool:
        return True

    def rho(self, event: Event) -> Fraction:
        return zcdp.rho(event)

    def __str__(self) -> str:
        return f"rho = {float(self.limit):g}"


@dataclass(frozen=True)
class Fits(Target):
    account: Account
    delta: Fraction

    def excess(self, event: Event, *, roughly: bool = False) -> float:
        return -1.0 if self.account.fits(event, self.delta) else 1.0

    def exactly(self, event: Event) -> bool:
        return False

    def __str__(self) -> str:
        return "what the account still accepts"
