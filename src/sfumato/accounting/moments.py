"""The moments accountant (Abadi et al. 2016), by name.

It is Rényi DP before its name: the log-moment at lambda is lambda times the divergence at order lambda + 1, log-moments
add up, and
    epsilon = (total log-moment + ln(1/delta)) / lambda,  at the best lambda.
The moments here are exact, upper-rounded; the conversion is the old one, which is valid and loose. It gives the numbers
of the papers of 2016 to 2019. For a guarantee use `pld`, or `renyi` where choices are adaptive: both are tighter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..events import Event
from . import renyi

Floats = NDArray[np.float64]

ORDERS = {
    "abadi-2016": tuple(float(moment + 1) for moment in range(1, 33)),  # the moments 1 to 32
    "tensorflow-privacy": (*(1 + tenth / 10 for tenth in range(1, 100)), *map(float, range(12, 64))),
    "fedavg": (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, *map(float, range(5, 64)), 128.0, 256.0, 512.0),
}
"""The orders that were looked at: by the paper, by the TensorFlow Privacy tutorial, by its scripts of 2018."""


def log_moment(event: Event, moment: float) -> float:
    """The log-moment of the event at lambda = `moment` > 0, rounded up."""
    return moment * renyi.divergence(event, moment + 1) * (1 + 1e-15)


def epsilon(event: Event, *, delta: Fraction | float, orders: str | Iterable[float] = "abadi-2016") -> float:
    """The moments accountant's epsilon at delta.

    orders  one of `ORDERS` by name, "best" for every real order, or a list of orders above 1
    """
    log_delta = math.log(checks.delta(delta))

    def at(some: Floats, price: Floats) -> Floats:
        return (price - log_delta / (some - 1)) * (1 + 1e-14)

    return renyi.least(event, at, 0.0, _orders(orders))


def delta(event: Event, *, epsilon: Fraction | float, orders: str | Iterable[float] = "abadi-2016") -> float:
    """The moments accountant's delta at epsilon: exp(log-moment - lambda epsilon), at the best lambda, at most 1."""
    size = float(checks.rational(epsilon, "epsilon", "a number of at least 0"))

    def at(some: Floats, price: Floats) -> Floats:
        return (some - 1) * (price - size) + 1e-14 * (some - 1) * (price + abs(size)) + 1e-14

    least = renyi.least(event, at, -math.inf, _orders(orders))
    return min(1.0, math.nextafter(math.exp(min(least, 0.0)), 1))


def _orders(orders: str | Iterable[float]) -> Iterable[float] | None:
    """The orders by name; None for all."""
    if isinstance(orders, str):
        checks.one_of(orders, "orders", (*ORDERS, "best"))
        return ORDERS.get(orders)
    return orders
