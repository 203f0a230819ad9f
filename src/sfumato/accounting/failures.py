"""Parts of an event that are nothing but failures: Approximate(0, delta), "with probability delta anything comes out".

Such a part is independent of the rest, and the worst of its kind shows everything or nothing. So with f the chance that
some of them fails, 1 - delta(epsilon) = (1 - f) (1 - delta of the rest at epsilon), exactly, and no lattice has to
carry them.
"""

from __future__ import annotations

from fractions import Fraction

from .. import exact
from ..events import Approximate, Event, Poisson, Repeat, Sequence, WithoutReplacement
from .optimal import unharmed


def unfailing(event: Event) -> tuple[Event | None, tuple[Fraction, Fraction]]:
    """The event without its parts that are nothing but failures, Approximate(0, delta), and the chance that none of
    those happens, from both sides. They are independent of the rest, so no lattice has to carry them."""
    if isinstance(event, Sequence):
        rest, low, high = [], Fraction(1), Fraction(1)
        for part in event.events:
            left, (least, most) = unfailing(part)
            rest += [] if left is None else [left]
            low, high = low * least, high * most
        if all(a is b for a, b in zip(rest, event.events, strict=False)) and len(rest) == len(event.events):
            return event, (low, high)
        return Sequence(tuple(rest)) if len(rest) > 1 else rest[0] if rest else None, _short(low, high)
    if isinstance(event, Repeat):
        left, (least, most) = unfailing(event.event)
        if left is event.event:
            return event, (least, most)
        low, high = unharmed(1 - least, event.times)[0], unharmed(1 - most, event.times)[1]
        return None if left is None else Repeat(left, event.times), _short(low, high)
    chance = _failure(event)
    return (event, (Fraction(1), Fraction(1))) if chance is None else (None, _short(1 - chance, 1 - chance))


def _failure(event: Event) -> Fraction | None:
    """The delta of something that is nothing but a failure, also where it is sampled."""
    if isinstance(event, Approximate) and not event.epsilon:
        return Fraction(event.delta)
    if isinstance(event, Poisson | WithoutReplacement):
        inner = _failure(event.event)
        rate = event.rate if isinstance(event, Poisson) else Fraction(event.sample, event.population)
        return None if inner is None else inner * rate
    return None


def _short(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Long fractions to 512 bits, outward."""
    return 1 - exact.short_above(1 - low, 512), min(exact.short_above(high, 512), Fraction(1))
