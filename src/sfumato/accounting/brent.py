"""Roots and minima of a function of one number, by Brent 1973, chapters 4 and 5.

The steps, and so the last bit of what is returned, are those of `brentq` and of the bounded `minimize_scalar` in
scipy.optimize. That module takes longer to import than most prices take to be found, and prices that were written into
a ledger stay as they are. Nothing rests on either: what comes out is a candidate, and its caller proves it or is right
at any point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_ROUNDS = 100  # halving alone needs fewer between floats of one size
_EVALUATIONS = 500
_SQRT_EPS = math.sqrt(2.2e-16)
_GOLDEN = 0.5 * (3.0 - math.sqrt(5.0))


def root(excess: Callable[[float], float], low: float, high: float, *, absolute: float, relative: float) -> float:
    """A zero of `excess` between two points where its signs differ, to within the tolerances."""
    last, here = low, high
    at_last, at_here = _number(excess, last), _number(excess, here)
    if at_last == 0:
        return last
    if at_here == 0:
        return here
    if not _signs_differ(at_last, at_here):
        raise ValueError("a root was asked for between two points of one sign")
    other = at_other = step_before = step = 0.0
    for _ in range(_ROUNDS):
        if at_last != 0 and at_here != 0 and _signs_differ(at_last, at_here):
            other, at_other = last, at_last
            step_before = step = here - last
        if abs(at_other) < abs(at_here):
            last, here, other = here, other, here
            at_last, at_here, at_other = at_here, at_other, at_here
        tolerance = (absolute + relative * abs(here)) / 2
        half = (other - here) / 2
        if at_here == 0 or abs(half) < tolerance:
            return here
        step_before, step = _next_step(
            (last, at_last), (here, at_here), (other, at_other), (step_before, step), tolerance
        )
        last, at_last = here, at_here
        if abs(step) > tolerance:
            here += step
        else:
            here += tolerance if half > 0 else -tolerance
        at_here = _number(excess, here)
    raise RuntimeError("no root was found in a hundred rounds")


_Point = tuple[float, float]


def _next_step(last: _Point, here: _Point, other: _Point, steps: _Point, tolerance: float) -> _Point:
    """By a line through two points or a parabola through three, where that is short enough; else half the way."""
    half = (other[0] - here[0]) / 2
    if abs(steps[0]) > tolerance and abs(here[1]) < abs(last[1]):
        try:
            if last[0] == other[0]:
                stride = -here[1] * (here[0] - last[0]) / (here[1] - last[1])
            else:
                slope = (last[1] - here[1]) / (last[0] - here[0])
                slope_other = (other[1] - here[1]) / (other[0] - here[0])
                stride = -here[1] * (other[1] * slope_other - last[1] * slope)
                stride /= slope_other * slope * (other[1] - last[1])
        except ZeroDivisionError:  # the slopes are too small for floats
            return half, half
        if 2 * abs(stride) < min(abs(steps[0]), 3 * abs(half) - tolerance):
            return steps[1], stride
    return half, half


def _number(function: Callable[[float], float], at: float) -> float:
    value = float(function(at))
    if math.isnan(value):
        raise ValueError("a root was asked for where the function is no number")
    return value


def _signs_differ(one: float, other: float) -> bool:
    return math.copysign(1.0, one) != math.copysign(1.0, other)


def least(height: Callable[[float], float], low: float, high: float, *, absolute: float) -> tuple[float, float]:
    """Where `height` is least between two points, to within the tolerance, and how low it is there."""
    best = second = third = low + _GOLDEN * (high - low)
    at_best = at_second = at_third = height(best)
    stride = before = 0.0
    middle, near = _middle(low, high, best, absolute)
    for _ in range(_EVALUATIONS - 1):
        if not abs(best - middle) > 2.0 * near - 0.5 * (high - low):
            break
        fitted = None
        if abs(before) > near:
            lean, weight = _parabola((best, at_best), (second, at_second), (third, at_third))
            before, earlier = stride, before
            if abs(lean) < abs(0.5 * weight * earlier) and weight * (low - best) < lean < weight * (high - best):
                fitted = stride = (lean + 0.0) / weight
                if best + stride - low < 2.0 * near or high - (best + stride) < 2.0 * near:
                    stride = near if middle >= best else -near
        if fitted is None:
            before = (low if best >= middle else high) - best
            stride = _GOLDEN * before
        here = best + (1.0 if stride >= 0 else -1.0) * max(abs(stride), near)
        at_here = height(here)
        if at_here <= at_best:
            low, high = (best, high) if here >= best else (low, best)
            third, at_third, second, at_second, best, at_best = second, at_second, best, at_best, here, at_here
        else:
            low, high = (here, high) if here < best else (low, here)
            if at_here <= at_second or second == best:
                third, at_third, second, at_second = second, at_second, here, at_here
            elif at_here <= at_third or third in (best, second):
                third, at_third = here, at_here
        middle, near = _middle(low, high, best, absolute)
    return best, float(at_best)


def _middle(low: float, high: float, best: float, absolute: float) -> _Point:
    """The middle, and how near two points may come."""
    return 0.5 * (low + high), _SQRT_EPS * abs(best) + absolute / 3.0


def _parabola(best: _Point, second: _Point, third: _Point) -> _Point:
    """The step from the best point to the lowest one of the parabola through three, as a fraction."""
    r = (best[0] - second[0]) * (best[1] - third[1])
    q = (best[0] - third[0]) * (best[1] - second[1])
    lean, weight = (best[0] - third[0]) * q - (best[0] - second[0]) * r, 2.0 * (q - r)
    return (-lean if weight > 0.0 else lean), abs(weight)
