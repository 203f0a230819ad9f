"""delta as a function of epsilon, from above, for single events: what sampling amplifies."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from ...errors import UnsupportedEventError
from ...events import (
    Event,
    Gaussian,
    Partition,
    Poisson,
    Pure,
    PureEvent,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)
from ...exact import float_above
from .. import brent

Curve = Callable[[float], float]

_UP = 1 + 1e-13  # covers the rounding of a dozen float64 operations, and more
_DOWN = 1 - 4e-16  # the law's own epsilon is a rounded one: ask for a little less
_TAIL = 1e-299  # cut off the laws


def curve(event: Event) -> Curve:
    """An upper bound on the event's delta at every epsilon >= 0."""
    if isinstance(event, Gaussian):
        return _gaussian(float_above(1 / event.multiplier))
    if isinstance(event, ZeroConcentrated):
        return _concentrated(float_above(event.rho))
    if isinstance(event, Poisson | WithoutReplacement):
        from . import sampling

        return sampling.curve(event)
    if isinstance(event, Shuffled):
        from . import shuffle

        return lambda epsilon: shuffle.delta(event, epsilon if epsilon > 1e-90 else 0).upper
    if isinstance(event, Sequence | Repeat | Partition):
        from .. import pld

        return lambda epsilon: float(pld.delta(event, epsilon))
    return _by_loss(event)


def _by_loss(event: Event) -> Curve:
    """From the privacy loss, the worse way round; a pure event has no delta from its epsilon on."""
    from .. import pairs, single  # which import what is in this folder

    try:
        laws = pairs.directions(event, _TAIL)
    except UnsupportedEventError:  # too many atoms, perhaps
        if not isinstance(event, PureEvent):
            raise
        laws = pairs.directions(Pure(epsilon=event.epsilon), _TAIL)
    end = float_above(event.epsilon) if isinstance(event, PureEvent) else math.inf
    return lambda epsilon: max(single.delta(law, epsilon * _DOWN).upper for law in laws) if epsilon < end else 0.0


def _gaussian(mu: float) -> Curve:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018)."""

    def at(epsilon: float) -> float:
        first = float(special.log_ndtr(mu / 2 - epsilon / mu))
        second = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
        slack = 1e-14 * (1 + abs(first) + epsilon)  # of the difference of logarithms
        return min(1.0, math.exp(first) * (-math.expm1(min(second - first, 0.0)) + slack) * _UP)

    return at


def _concentrated(rho: float) -> Curve:
    """Canonne, Kamath, Steinke 2020, Proposition 12: any order is valid, so the minimiser need not be exact."""

    def at(epsilon: float) -> float:
        def log_delta(log_less: float) -> float:
            less = math.exp(log_less)  # order - 1
            order = 1 + less
            return less * (order * rho - epsilon) - log_less + order * math.log1p(-1 / order)

        best, _ = brent.least(log_delta, -15, 40, absolute=1e-9)
        value = log_delta(best)
        return min(1.0, math.exp(min(value + 1e-12 * (1 + abs(value)), 0.0)))

    return at
