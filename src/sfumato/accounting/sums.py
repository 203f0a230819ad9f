"""Basic composition with exact sums: an event in four currencies that each add up.

The epsilons of its pure parts, the mu^2 of its Gaussian parts, the rho of parts known by rho only, and the deltas of
parts known by (epsilon, delta) only. In parallel the dearest part counts in each currency on its own, which is at
least what any one part costs.
"""

from __future__ import annotations

from fractions import Fraction

from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Gaussian, PureEvent, ZeroConcentrated
from . import gdp, zcdp
from .composition import total

_NOTHING = Fraction(0)


def by_sums(event: Event, delta: Fraction) -> Fraction:
    """The smaller of the basic sum and everything as zCDP, at delta."""
    if isinstance(event, Gaussian) and delta > 0:
        return gdp.least_epsilon(1 / event.multiplier**2, delta)
    sure, mu_squared, rho = total(event, _epsilon), total(event, _mu_squared), total(event, _rho)
    own = total(event, _delta)
    left = delta - own
    concentrated = rho + mu_squared / 2
    if left < 0 or (concentrated and not left):
        raise UnsupportedEventError(
            f"{type(event).__name__} cannot be priced at delta = {float(delta):g}: it needs a larger delta"
        )
    if not concentrated:
        basic = sure
    elif not rho:
        basic = sure + gdp.least_epsilon(mu_squared, left)
    else:
        basic = sure + zcdp.epsilon(concentrated, left)
    return basic if own or not left else min(basic, zcdp.epsilon(zcdp.rho(event), left))


def _epsilon(event: Event) -> Fraction:
    if isinstance(event, PureEvent | Approximate):
        return event.epsilon
    if isinstance(event, Gaussian | ZeroConcentrated):
        return _NOTHING
    raise UnsupportedEventError(f"{type(event).__name__} has no (epsilon, delta) price")


def _mu_squared(event: Event) -> Fraction:
    return 1 / event.multiplier**2 if isinstance(event, Gaussian) else _NOTHING


def _rho(event: Event) -> Fraction:
    return event.rho if isinstance(event, ZeroConcentrated) else _NOTHING


def _delta(event: Event) -> Fraction:
    return event.delta if isinstance(event, Approximate) else _NOTHING
