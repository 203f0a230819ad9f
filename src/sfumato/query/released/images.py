"""Functions of figures: roots, rounding, clipping, choices. Of one number: the image of its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .figures import Bools, Bounds, Choice, Figure, Hull, Joint, constant, joint
from .mixtures import Floats


def absolute(x: Figure) -> Figure:
    def hull(of: Bounds) -> Bounds:
        low, high = of
        return np.where(low > 0, low, np.where(high < 0, -high, 0.0)), np.maximum(np.abs(low), np.abs(high))

    return _image(x, np.abs(x.value), np.where(x.value < 0, -1.0, 1.0), hull)


def root(x: Figure) -> Figure:
    """The square root; NULL below 0."""
    with np.errstate(all="ignore"):
        value = np.sqrt(x.value)
        slope = np.where(x.value > 0, 0.5 / value, np.nan)
    hull = _increasing(lambda end: np.sqrt(np.maximum(end, 0.0)))
    return replace(_image(x, value, slope, hull), guards=(x,))


def logarithm(x: Figure, base: float = np.e) -> Figure:
    """NULL at 0 and below."""
    with np.errstate(all="ignore"):
        value = np.where(x.value > 0, np.log(x.value) / np.log(base), np.nan)
        slope = np.where(x.value > 0, 1 / (x.value * np.log(base)), np.nan)
    hull = _increasing(lambda end: np.log(np.maximum(end, 0.0)) / np.log(base))
    return replace(_image(x, value, slope, hull), guards=(x,))


def exponential(x: Figure) -> Figure:
    with np.errstate(all="ignore"):
        value = np.exp(x.value)
    return _image(x, value, value, _increasing(np.exp))


def power(x: Figure, exponent: float) -> Figure:
    """x to a public power; NULL where that is not a real number. Negative powers are 1 over the positive ones."""
    if exponent < 0:
        return constant(1.0, x.value.size) / power(x, -exponent)
    whole, even = float(exponent).is_integer(), float(exponent) % 2 == 0
    if even:
        x = absolute(x)
    with np.errstate(all="ignore"):
        value = np.where(np.isnan(x.value), np.nan, np.power(x.value, exponent))  # numpy says NaN^0 = 1
        slope = exponent * np.power(x.value, exponent - 1) if exponent else np.zeros_like(x.value)
    low = -np.inf if whole and not even else 0.0
    made = _image(x, value, slope, _increasing(lambda end: np.power(np.maximum(end, low), exponent)))
    return made if whole else replace(made, guards=(x,))


def rounded(x: Figure, way: Callable[[Floats], Floats]) -> Figure:
    """Rounded by a function that never decreases (floor, ceiling, to so many places)."""
    return replace(_image(x, way(x.value), 1.0, _increasing(way)), jumps=True)


def clip(x: Figure, low: float = -np.inf, high: float = np.inf) -> Figure:
    """Moved into [low, high], where the number without noise is known to be; so is the interval. `raw` keeps what it
    was. The slopes stay: near an end the standard deviation is that of the raw number.

    A number that was moved takes its interval along, as moving brings it nearer to the truth: otherwise one that the
    noise threw far out would get an interval of no width, as if nothing were surer.
    """
    value = np.clip(x.value, low, high)
    moved = np.nan_to_num(value - x.value)

    def hull(of: Bounds) -> Bounds:
        return np.clip(np.minimum(of[0], of[0] + moved), low, high), np.clip(
            np.maximum(of[1], of[1] + moved), low, high
        )

    return replace(_image(x, value, 1.0, hull), raw=x.value if x.raw is None else x.raw)


def extreme(parts: Sequence[Figure], *, greatest: bool) -> Figure:
    """The greatest or least for each group; NULLs are left out, as in the engine."""
    made, pick = parts[0], np.fmax if greatest else np.fmin
    for other in parts[1:]:
        first = (made.value >= other.value) if greatest else (made.value <= other.value)
        first = (first | np.isnan(other.value)) & ~np.isnan(made.value)
        if made.noisy != other.noisy:  # a bound: what the noise does is what it does to the one that has any
            first = np.full(first.shape, made.noisy)
        weights = (first.astype(np.float64), (~first).astype(np.float64))

        def hull(one: Bounds, two: Bounds, pick: Any = pick) -> Bounds:
            return pick(one[0], two[0]), pick(one[1], two[1])

        value = np.asarray(pick(made.value, other.value))
        both = made.noisy and other.noisy
        both_parts = joint(value, (made, other), weights, hull, linear=False)
        made = replace(both_parts, jumps=both_parts.jumps or both, chosen=both)
    return made


def where(mask: Bools, one: Figure, two: Figure, guards: tuple[Figure, ...] = ()) -> Figure:
    """`one` where the mask holds, else `two`. `guards` are the numbers whose sign made the mask."""
    slopes = {}
    for name in one.slopes.keys() | two.slopes.keys():
        zero = np.zeros_like(one.value)
        slopes[name] = np.where(mask, one.slopes.get(name, zero), two.slopes.get(name, zero))
    linear = one.linear and two.linear and not guards
    jumps = bool(guards) or one.jumps or two.jumps
    value = np.where(mask, one.value, two.value)
    raw = None
    if one.raw is not None or two.raw is not None:
        raw = np.where(mask, *(each.value if each.raw is None else each.raw for each in (one, two)))
    above, below = np.where(mask, one.above, two.above), np.where(mask, one.below, two.below)
    return Choice(value, slopes, linear, jumps, raw, above, below, parts=(one, two), guards=guards, first=mask)


def _image(x: Figure, value: Floats, slope: Any, hull: Hull) -> Joint:
    return joint(value, (x,), (slope,), hull, linear=False)


def _increasing(function: Callable[[Floats], Floats]) -> Hull:
    return lambda of: (function(of[0]), function(of[1]))
