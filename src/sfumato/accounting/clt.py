"""The central-limit approximation of DP-SGD: for exploration only. It is not a bound.

After many steps the trade-off function of Poisson-sampled Gaussians tends to that of one Gaussian with
    mu = rate * sqrt(steps * (e^(1/multiplier^2) - 1))
(Bu, Dong, Long and Su 2020, Theorem 5). At any finite number of steps the true epsilon differs, and in every published
setting it is *larger*: reporting this number promises more privacy than there is. So the answer here is an
`Approximation`: not an event, not an interval, not a number. Nothing that spends, reports or compares guarantees takes
it. No error bound is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from .. import checks
from ..checks import Exact
from ..errors import UnsupportedEventError
from ..events import Event, Gaussian, Poisson
from . import gdp
from .composition import total


@dataclass(frozen=True, eq=False)
class Approximation:
    """A number that is no guarantee. It can be read, as `estimate`; it has no float(), no order and no sum."""

    estimate: float
    what: str
    mu: float

    def __repr__(self) -> str:
        return f"<approximation, not a guarantee: {self.what} of about {self.estimate:.6g} (central limit)>"

    __str__ = __repr__


def mu(event: Event) -> Approximation:
    """The mu of the limit."""
    size = math.sqrt(total(event, _squared))
    return Approximation(size, "mu", size)


def epsilon(event: Event, *, delta: Exact) -> Approximation:
    """The epsilon that the limit has at delta."""
    target, squared = checks.delta(delta), total(event, _squared)
    return Approximation(
        float(gdp.least_epsilon(squared, target)), f"epsilon at delta = {float(target):g}", math.sqrt(squared)
    )


def delta(event: Event, *, epsilon: Exact) -> Approximation:
    """The delta that the limit has at epsilon."""
    target, size = float(checks.epsilon(epsilon, warn=False)), math.sqrt(total(event, _squared))
    return Approximation(gdp.delta(size, target), f"delta at epsilon = {target:g}", size)


def _squared(event: Event) -> Fraction:
    if isinstance(event, Gaussian):
        return 1 / event.multiplier**2
    if isinstance(event, Poisson) and isinstance(event.event, Gaussian):
        if event.rate == 1:
            return _squared(event.event)
        exponent = float(1 / event.event.multiplier**2)
        if exponent > 600:
            raise UnsupportedEventError(
                "the central-limit approximation is meaningless for a noise multiplier this small: use sf.epsilon"
            )
        return event.rate**2 * Fraction(math.expm1(exponent))
    raise UnsupportedEventError(
        f"the central-limit approximation is for Gaussian noise with Poisson sampling, not for {type(event).__name__}: "
        "use sf.epsilon, which prices it exactly"
    )
