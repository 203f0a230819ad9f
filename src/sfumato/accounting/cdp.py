"""Concentrated DP with a mean and a spread (Dwork and Rothblum 2016), and how it relates to the other notions.

The privacy loss Z is (mu, tau)-concentrated if E[Z] <= mu and Z - E[Z] is tau-subgaussian,
    E[e^(t (Z - E[Z]))] <= e^(t^2 tau^2 / 2) for every real t,
for all neighbours in both orders. It is the older form of zCDP; new work should use `zcdp` or `renyi`, which do not
break under post-processing (Bun and Steinke 2016, section 1.1).

The mean is bounded by the spread alone: P and Q have one support, so E[e^-Z] = 1, and 1 <= e^(-E[Z] + tau^2/2). Hence
E[Z] <= tau^2/2, and the loss is concentrated with min(mu, tau^2/2) in the place of mu.

From zCDP back to this notion only an unnamed constant is proven (Bun and Steinke 2016, Lemma 4.3), so there is no such
function here. A Gaussian is (mu, tau) = (rho, sqrt(2 rho)) exactly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from ..errors import UnsupportedEventError
from ..events import Event, Exponential, Gaussian, PureEvent
from ..exact import float_above
from . import zcdp
from .composition import total

_UP = 1 + 1e-12


class ConcentratedLoss(NamedTuple):
    """Privacy loss of mean at most mu, and subgaussian around its mean with parameter sqrt(tau_squared)."""

    mu: Fraction
    tau_squared: Fraction

    @property
    def mean(self) -> Fraction:
        """The better of the two bounds on the mean."""
        return min(self.mu, self.tau_squared / 2)


def concentrated(event: Event) -> ConcentratedLoss:
    """(mu, tau^2) of an event. Both add up (Dwork and Rothblum 2016, Theorem 3.4), so they are summed apart.

    It is that of the noise itself. Post-processing keeps every rho and (epsilon, delta) that follows from it, though
    not the property itself.
    """
    return ConcentratedLoss(total(event, lambda one: _one(one).mu), total(event, lambda one: _one(one).tau_squared))


def _one(event: Event) -> ConcentratedLoss:
    if isinstance(event, Exponential):  # a loss that spans epsilon is epsilon/2-subgaussian
        return ConcentratedLoss(event.epsilon**2 / 8, event.epsilon**2 / 4)
    if isinstance(event, PureEvent):
        return from_pure(event.epsilon)
    if isinstance(event, Gaussian):  # the loss is normal, with mean 1/(2 m^2) and variance 1/m^2
        return ConcentratedLoss(1 / (2 * event.multiplier**2), 1 / event.multiplier**2)
    raise UnsupportedEventError(
        f"{type(event).__name__} has no (mu, tau) here: price it by rho (zcdp), Rényi divergence or privacy loss."
    )


def from_pure(epsilon: Fraction) -> ConcentratedLoss:
    """epsilon-DP is (epsilon (e^epsilon - 1)/2, epsilon)-concentrated: Dwork and Rothblum 2016, Theorem 3.5.

    A variable within [-epsilon, epsilon] is epsilon-subgaussian around its mean (Hoeffding 1963). Their bound on the
    mean is the looser one: tau^2/2 = epsilon^2/2 is never above it.
    """
    size = min(float_above(epsilon), 700.0)  # e^700 stands for anything beyond: the mean is bounded by tau anyway
    return ConcentratedLoss(Fraction(size * math.expm1(size) / 2 * _UP), epsilon**2)


def to_zcdp(loss: ConcentratedLoss) -> Fraction:
    """The rho of a concentrated loss: tau^2/2.

    E[e^((a-1) Z)] <= e^((a-1) E[Z] + (a-1)^2 tau^2/2), so D(a) <= E[Z] + (a-1) tau^2/2 <= a tau^2/2 (Bun and Steinke
    2016, Lemma 4.2, with E[Z] <= tau^2/2).
    """
    return loss.tau_squared / 2


def epsilon(loss: ConcentratedLoss, delta: Fraction) -> Fraction:
    """The epsilon at delta, rounded up, by the better of two ways: the tail, and the tight conversion of

    D(a) <= mean + (a-1) tau^2/2 = (mean - tau^2/2) + a tau^2/2, which is the one of zCDP moved by a constant.
    """
    return max(Fraction(0), min(tail_epsilon(loss, delta), zcdp.epsilon(to_zcdp(loss), delta) + _offset(loss)))


def tail_epsilon(loss: ConcentratedLoss, delta: Fraction) -> Fraction:
    """mean + tau sqrt(2 ln(1/delta)), where the loss exceeds epsilon with probability at most delta."""
    spread = math.sqrt(float_above(loss.tau_squared) * -2 * math.log(delta))
    return Fraction(float_above(loss.mean) + spread) * Fraction(_UP)


def delta(loss: ConcentratedLoss, epsilon: Fraction) -> float:
    """The delta at epsilon, rounded up: the tail bound or the tight conversion, whichever is less."""
    best = zcdp.delta(to_zcdp(loss), max(epsilon - _offset(loss), Fraction(0)))
    over = float(epsilon - loss.mean)
    if over <= 0:
        return best
    return min(best, math.exp(-(over**2) / (2 * float_above(loss.tau_squared)) * (2 - _UP)) * _UP)


def _offset(loss: ConcentratedLoss) -> Fraction:
    return loss.mean - loss.tau_squared / 2
