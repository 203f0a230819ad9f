"""(epsilon, delta): the price of a plan that was fixed in advance, at a given delta. What ledgers charge.

One pure or Gaussian mechanism has an exact price, and it comes back as the decimal that it was calibrated to. Else the
least of these counts:
    basic          the pure epsilons + the Gaussians' exact curve at what is left of delta, in exact sums
                   (In parallel the dearest part counts in each currency on its own, at least what any one part costs.)
    concentrated   everything as zCDP, converted once
    tight          the price of price.py: privacy loss, Renyi divergence, theorems for sampling and shuffling
"""

from __future__ import annotations

from fractions import Fraction

from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Gaussian, PureEvent
from ..exact import decimal_above
from . import price
from .sums import by_sums


def epsilon(event: Event, delta: Fraction) -> Fraction:
    """The epsilon of the event at `delta`, exact or rounded up."""
    try:
        simple = by_sums(event, delta)
    except UnsupportedEventError:
        if delta <= 0:
            raise
        return Fraction(price.epsilon(event, delta=delta).upper)
    if delta <= 0 or isinstance(event, Gaussian | PureEvent | Approximate):
        return simple
    try:
        upper = price.epsilon(event, delta=delta).upper
    except UnsupportedEventError:
        return simple
    return simple if upper == decimal_above(simple) else min(simple, Fraction(upper))
