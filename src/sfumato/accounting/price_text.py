"""A price in words."""

from __future__ import annotations

from fractions import Fraction

from ..errors import UnsupportedEventError
from ..events import Event
from . import approximate, zcdp


def event_text(event: Event, delta: Fraction) -> str:
    """What an event costs at a delta, in words."""
    try:
        epsilon = float(approximate.epsilon(event, delta))
    except UnsupportedEventError:  # no delta was named, so there is no epsilon: the native currency
        return f"rho = {float(zcdp.rho(event)):.6g}"
    return f"epsilon = {epsilon:.6g}" + (f" at delta = {float(delta):.3g}" if delta else "")
