"""Intervals hold what floats do."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from sfumato.query.expressions.intervals import Interval, greatest, hull, least, power

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Interval, float]:
    """An interval, open on either side at times, and a float in it."""
    low, value, high = sorted(draw(st.tuples(FLOATS, FLOATS, FLOATS)))
    ends = draw(st.tuples(st.booleans(), st.booleans()))
    return Interval(Fraction(low) if ends[0] else None, Fraction(high) if ends[1] else None), value


@given(pairs(), pairs())
def test_float_arithmetic_stays_inside(one: tuple[Interval, float], other: tuple[Interval, float]) -> None:
    for compute in (operator.add, operator.sub, operator.mul):
        result = compute(one[1], other[1])
        if math.isfinite(result):
            assert compute(one[0], other[0]).floats().holds(Fraction(result))
    if other[1] != 0 and math.isfinite(result := one[1] / other[1]):
        assert one[0].over(other[0]).floats().holds(Fraction(result))


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=3), st.lists(st.integers(-50, 50), min_size=3, max_size=3))
def test_whole_divisors_keep_away_from_nought(one: list[int], other: list[int]) -> None:
    (a, x, b), (c, y, d) = sorted(one), sorted(other)
    quotients = Interval(Fraction(a), Fraction(b)).over(Interval(Fraction(c), Fraction(d)), whole=True)
    if y:
        assert quotients.holds(Fraction(x, y))
    assert quotients.bounded


@given(pairs(), pairs())
def test_choices_stay_inside(one: tuple[Interval, float], other: tuple[Interval, float]) -> None:
    assert greatest(one[0], other[0]).holds(Fraction(max(one[1], other[1])))
    assert least(one[0], other[0]).holds(Fraction(min(one[1], other[1])))
    assert hull(one[0], other[0]).holds(Fraction(one[1]))
    assert one[0].magnitude().holds(abs(Fraction(one[1])))
    assert (-one[0]).holds(-Fraction(one[1]))


@given(pairs())
@example((Interval(Fraction(0), Fraction(0)), 0.0))
@example((Interval(Fraction(-745), Fraction(-745)), -745.0))
def test_library_functions_stay_inside(one: tuple[Interval, float]) -> None:
    try:
        assert one[0].library(math.exp).holds(Fraction(math.exp(one[1])))
    except OverflowError:
        assert one[0].library(math.exp).upper is None


@given(pairs(), pairs())
def test_powers_stay_inside(one: tuple[Interval, float], other: tuple[Interval, float]) -> None:
    try:
        result = math.pow(one[1], other[1])
    except (OverflowError, ValueError):
        return
    assert power(one[0], other[0]).holds(Fraction(result))


@given(pairs(), st.integers(0, 9))
def test_whole_powers_stay_inside(one: tuple[Interval, float], n: int) -> None:
    try:
        result = math.pow(one[1], n)
    except OverflowError:
        return
    assert power(one[0], Interval(Fraction(n), Fraction(n))).holds(Fraction(result))


def test_one_limit_is_enough_to_clamp() -> None:
    free = Interval()
    clamped = least(greatest(free, Interval(Fraction(0), Fraction(0))), Interval(Fraction(9), Fraction(9)))
    assert clamped == Interval(Fraction(0), Fraction(9))


def test_declared_ends_that_are_no_floats_are_widened() -> None:
    tenth = Interval(Fraction(1, 10), Fraction(1, 10)).and_floats()
    assert tenth.holds(Fraction(1, 10)) and tenth.holds(Fraction(0.1))


def test_what_fits_into_64_bits() -> None:
    assert Interval(Fraction(-(2**63)), Fraction(2**63 - 1)).int64
    assert not Interval(Fraction(0), Fraction(2**63)).int64
    assert not Interval(Fraction(0), None).int64
