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
from ..errors import ArgumentError, UnsupportedEventError
from ..events import Event, Gaussian
from ..exact import float_above, float_below, sqrt_above
from . import gdp, price, pure, zcdp
from .composition import total
from .filters import Budget, Filter
from .interval import Interval

_ACCURACY = 2e-4  # of a price near the limit, relative
_COARSE, _NEAR = 1e-2, 0.1  # of a price that is not near it, and what near means, on the log


@runtime_checkable
class Account(Protocol):
    """Whatever says whether it would still accept an event: a filter, or an account of a ledger."""

    def fits(self, event: Event, delta: Fraction) -> bool: ...


class Target(ABC):
    """One limit; `delta` is the event's own, 0 where there is none."""

    delta: Fraction

    @abstractmethod
    def excess(self, event: Event) -> float: ...

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


def _mu_squared(event: Event) -> Fraction:
    if isinstance(event, Gaussian):
        return 1 / event.multiplier**2
    raise UnsupportedEventError(f"{type(event).__name__} is not Gaussian")


@dataclass(frozen=True)
class Within(Target):
    limit: Fraction
    delta: Fraction

    def excess(self, event: Event) -> float:
        if not self.delta:
            return _exact_ratio(pure.epsilon(event), self.limit)
        mu_squared = _gaussian(event)
        if mu_squared is not None:  # exactly when mu is at most that of the least multiplier: Balle and Wang 2018
            return _exact_ratio(mu_squared, 1 / gdp.least_multiplier(self.limit, self.delta) ** 2) / 2
        return log_ratio(self._near(event).upper, float(self.limit))

    def _near(self, event: Event) -> Interval:
        """A coarse price, and a fine one where it matters."""
        limit = float(self.limit)
        found = _price(event, self.delta, limit, _COARSE)
        if abs(log_ratio(found.upper, limit)) < _NEAR and found.width > _ACCURACY * limit:
            found = _price(event, self.delta, limit, _ACCURACY)
        return found

    def exactly(self, event: Event) -> bool:
        return not self.delta or _gaussian(event) is not None

    def epsilon(self, event: Event) -> Interval:
        """An event within the limit costs at most the limit: 0.3 is three tenths, not the float above it."""
        exact = self.exactly(event)
        found = cost(event, self.delta, scale=float(self.limit)) if exact else self._near(event)
        return Interval(min(found.lower, float(self.limit)), min(found.upper, float(self.limit)))

    def __str__(self) -> str:
        return f"epsilon = {float(self.limit):g}" + (f" at delta = {float(self.delta):g}" if self.delta else "")


def cost(event: Event, delta: Fraction, *, scale: float = 1.0) -> Interval:
    """What the event costs at delta, from both sides, with the digits that an epsilon of about `scale` needs.

    Without delta: the worst losses of pure events add up, and are reached, so the sum is exact.
    """
    if not delta:
        worst = pure.epsilon(event)
        return Interval(float_below(worst), float_above(worst))
    mu_squared = _gaussian(event)
    if mu_squared is None:
        return _price(event, delta, scale, _ACCURACY)
    least = float_above(gdp.least_epsilon(mu_squared, delta))
    return Interval(_least_of_gaussians(mu_squared, Fraction(least), delta), least)


def _least_of_gaussians(mu_squared: Fraction, upper: Fraction, delta: Fraction) -> float:
    """An epsilon a hair below `upper` at which delta is proven too small, else 0."""
    lower = upper * (1 - Fraction(1, 10**9))
    if not upper:
        return 0.0
    bits = 64 + max(0, math.ceil(-math.log2(delta)))
    mu = 1 / Fraction(sqrt_above(1 / mu_squared))  # rounded down
    return float_below(lower) if Fraction(gdp.enclose_delta(mu, lower, bits).lo, 1 << bits) > delta else 0.0


def _price(event: Event, delta: Fraction, scale: float, accuracy: float) -> Interval:
    return price.epsilon(event, delta=delta, accuracy=accuracy * min(1.0, scale))


def _gaussian(event: Event) -> Fraction | None:
    """mu^2 of an event that is Gaussian noise throughout."""
    try:
        return total(event, _mu_squared)
    except UnsupportedEventError:
        return None


@dataclass(frozen=True)
class WithinRho(Target):
    limit: Fraction
    delta: Fraction = Fraction(0)

    def excess(self, event: Event) -> float:
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

    def excess(self, event: Event) -> float:
        return -1.0 if self.account.fits(event, self.delta) else 1.0

    def exactly(self, event: Event) -> bool:
        return False

    def __str__(self) -> str:
        return "what the account still accepts"
