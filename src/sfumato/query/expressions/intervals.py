"""The interval that a number surely lies in, for what the engine really computes: exact where it is exact, rounded
outwards where it rounds.

IEEE addition, subtraction, multiplication, division and square root give the float nearest to the exact result.
Rounding to nearest is monotone: lo <= z <= hi implies fl(lo) <= fl(z) <= fl(hi). So the exact interval with its ends
rounded to nearest holds the engine's result, with nothing added. Library functions (exp, ln, pow) are only nearly
exact; their intervals are widened by far more than they are off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

INT64 = (-(2**63), 2**63 - 1)
LARGEST = Fraction(math.ldexp(2 - 2**-52, 1023))
SLACK = Fraction(1, 2**40)
"""Relative width added around a library function. Good libraries are off by 2^-52, the worst by 2^-50."""

FAR = 2.0**1023
"""A library function that comes nearer to the largest float may come out infinite in another library."""

Bound = Fraction | None


@dataclass(frozen=True)
class Interval:
    """All numbers from lower to upper; None is no limit on that side."""

    lower: Bound = None
    upper: Bound = None

    @property
    def bounded(self) -> bool:
        return self.lower is not None and self.upper is not None

    @property
    def int64(self) -> bool:
        """Does it fit into 64 bits?"""
        return self.lower is not None and self.upper is not None and INT64[0] <= self.lower and self.upper <= INT64[1]

    def holds(self, number: int | Fraction) -> bool:
        return (self.lower is None or self.lower <= number) and (self.upper is None or number <= self.upper)

    def __neg__(self) -> Interval:
        return Interval(_minus(self.upper), _minus(self.lower))

    def __add__(self, other: Interval) -> Interval:
        return Interval(_sum(self.lower, other.lower), _sum(self.upper, other.upper))

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        if NOUGHT in (self, other):
            return NOUGHT
        if self.bounded and other.bounded:
            return _hull([a * b for a in _ends(self) for b in _ends(other)])
        # A side without limit leaves only the sign, where both factors have one.
        signs = [(1 if each.holds_no_less(0) else -1 if (-each).holds_no_less(0) else 0) for each in (self, other)]
        sign = signs[0] * signs[1]
        return Interval(Fraction(0) if sign > 0 else None, Fraction(0) if sign < 0 else None)

    def holds_no_less(self, number: int) -> bool:
        """Is nothing in it below the number?"""
        return self.lower is not None and self.lower >= number

    def over(self, other: Interval, *, whole: bool = False) -> Interval:
        """Quotients by any number of `other` but 0. Whole divisors are at least 1 away from 0."""
        parts = []
        if other.upper is None or other.upper > 0:
            least = max(other.lower or Fraction(0), Fraction(1) if whole else Fraction(0))
            parts.append(self * Interval(_inverse(other.upper), _inverse(least)))
        if other.lower is None or other.lower < 0:
            most = min(other.upper or Fraction(0), Fraction(-1) if whole else Fraction(0))
            parts.append(self * Interval(_inverse(most), _inverse(other.lower)))
        return hull(*parts) if parts else NOUGHT

    def monotone(self, function: Callable[[Fraction], int | Fraction]) -> Interval:
        """The image under a function that never falls."""
        return Interval(
            None if self.lower is None else Fraction(function(self.lower)),
            None if self.upper is None else Fraction(function(self.upper)),
        )

    def magnitude(self) -> Interval:
        """Of absolute values."""
        if self.holds_no_less(0):
            return self
        if (-self).holds_no_less(0):
            return -self
        largest = max(-self.lower, self.upper) if self.lower is not None and self.upper is not None else None
        return Interval(Fraction(0), largest)

    def floats(self) -> Interval:
        """The interval of the floats nearest to its numbers, so that fl(z) is in it for every z in this one."""
        return Interval(_nearest(self.lower), _nearest(self.upper))

    def and_floats(self) -> Interval:
        """Of its numbers and of the floats nearest to them: a declared bound such as 1/10 is no float."""
        return hull(self, self.floats())

    def within(self, lower: Bound, upper: Bound) -> Interval:
        """Its part in [lower, upper]."""
        lows = [each for each in (self.lower, lower) if each is not None]
        highs = [each for each in (self.upper, upper) if each is not None]
        return Interval(max(lows, default=None), min(highs, default=None))

    def library(self, function: Callable[[float], float]) -> Interval:
        """The image under a rising library function that is nearly exact. Overflow is no limit."""
        low, high = (_library(function, each) for each in (self.lower, self.upper))
        return Interval(None if low is None else low - _slack(low), None if high is None else high + _slack(high))


NOUGHT = Interval(Fraction(0), Fraction(0))


def hull(*parts: Interval) -> Interval:
    """The smallest interval that holds them all."""
    lows, highs = [each.lower for each in parts], [each.upper for each in parts]
    return Interval(
        None if None in lows else min(each for each in lows if each is not None),
        None if None in highs else max(each for each in highs if each is not None),
    )


def greatest(*parts: Interval) -> Interval:
    """Of the greatest of one number from each: one lower limit is enough."""
    lows = [each.lower for each in parts if each.lower is not None]
    highs = [each.upper for each in parts]
    return Interval(max(lows, default=None), None if None in highs else max(each for each in highs if each is not None))


def least(*parts: Interval) -> Interval:
    return -greatest(*(-each for each in parts))


def power(base: Interval, exponent: Interval) -> Interval:
    """Of base ** exponent: known for a base that is never negative, or a whole exponent."""
    n = exponent.lower
    if n is not None and n == exponent.upper and n.denominator == 1 and 0 <= n <= 64:
        if n == 0:
            return Interval(Fraction(1), Fraction(1))
        rising = base if n % 2 else base.magnitude()
        return rising.library(lambda x: math.pow(x, n))
    if not (base.holds_no_less(0) and base.bounded and exponent.bounded):
        return Interval(Fraction(0) if base.holds_no_less(0) else None, None)
    corners = []
    for x in _ends(base):
        for y in _ends(exponent):
            try:
                corners.append(Fraction(math.pow(float(x), float(y))))
            except (OverflowError, ValueError, ZeroDivisionError):
                return Interval(Fraction(0), None)
    found = _hull(corners)  # x^y is monotone in each of x >= 0 and y, so its extremes are at corners
    low, high = _ends(found)
    if high > FAR:
        return Interval(Fraction(0), None)
    return Interval(max(low - _slack(low), Fraction(0)), high + _slack(high))


def _ends(interval: Interval) -> tuple[Fraction, Fraction]:
    assert interval.lower is not None and interval.upper is not None
    return interval.lower, interval.upper


def _hull(numbers: list[Fraction]) -> Interval:
    return Interval(min(numbers), max(numbers))


def _minus(bound: Bound) -> Bound:
    return None if bound is None else -bound


def _sum(one: Bound, other: Bound) -> Bound:
    return None if one is None or other is None else one + other


def _inverse(bound: Bound) -> Bound:
    """1/bound, where no limit becomes 0 and 0 no limit."""
    if bound is None:
        return Fraction(0)
    return None if bound == 0 else 1 / bound


def _nearest(bound: Bound) -> Bound:
    try:
        return None if bound is None else Fraction(float(bound))
    except OverflowError:
        return None


def _slack(value: Fraction) -> Fraction:
    """How far a library function may be off. It is exact at 0, and coarse where floats run out of digits."""
    return max(abs(value) * SLACK, Fraction(1, 2**1060)) if value else value


def _library(function: Callable[[float], float], bound: Bound) -> Bound:
    try:
        value = None if bound is None else function(float(bound))
    except (OverflowError, ValueError):
        return None
    return None if value is None or not abs(value) <= FAR else Fraction(value)
