"""Enclosures hold the true value, and hold it tightly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from sfumato import exact
from sfumato.exact import Enclosure, enclose

timeless = settings(deadline=None)
BITS = st.integers(20, 700)
MAX = Fraction(math.nextafter(math.inf, 0))


def fractions(low: float | Fraction, high: float | Fraction) -> st.SearchStrategy[Fraction]:
    """Rationals of short and of long denominators, floats among them."""
    short = st.fractions(Fraction(low), Fraction(high), max_denominator=10**6)
    dyadic = st.floats(float(low), float(high), allow_subnormal=False).map(Fraction)
    return short | dyadic


def positive(least: int, most: int) -> st.SearchStrategy[Fraction]:
    """Positive rationals of every order of magnitude from 2^least to 2^most."""
    return st.builds(
        lambda e, m: Fraction(2) ** e * m, st.integers(least, most - 1), fractions(Fraction(1), Fraction(2))
    )


def real(x: Fraction) -> Any:
    return mpf(x.numerator) / x.denominator


def holds(found: Enclosure, value: Any) -> bool:
    """`value` is an mpf of more than bits + 100 good bits."""
    scaled = mp.ldexp(value, found.bits)
    return bool(found.lo <= scaled <= found.hi)


def precise(bits: int) -> Any:
    return mp.workprec(2 * bits + 400)


@timeless
@given(fractions(0, 2000), BITS)
@example(Fraction(0), 64)
@example(Fraction(1, 10**30), 64)
@example(Fraction(2 * 64 + 64), 64)
@example(Fraction(2 * 64 + 65), 64)
@example(Fraction(10**6), 64)
def test_exp_neg_holds_the_exponential_within_two_ulps(x: Fraction, bits: int) -> None:
    found = exact.exp_neg(x, bits)
    with precise(bits):
        assert holds(found, mpmath.exp(-real(x)))
    assert found.bits == bits and found.lo >= 0 and found.hi - found.lo <= 2


@timeless
@given(positive(-900, 900) | fractions(Fraction(1, 2), 2), BITS)
@example(Fraction(1), 64)
@example(Fraction(2), 64)
@example(Fraction(1, 2), 64)
@example(1 + Fraction(1, 2**200), 64)
@example(1 - Fraction(1, 2**200), 64)
def test_ln_holds_the_logarithm_within_two_ulps(x: Fraction, bits: int) -> None:
    found = exact.ln(x, bits)
    with precise(bits):
        assert holds(found, mpmath.log(real(x)))
    assert found.bits == bits and found.hi - found.lo <= 2


@pytest.mark.parametrize("bits", [1, 8, 64, 127, 500, 2000])
def test_constants_are_held_within_two_ulps(bits: int) -> None:
    with precise(bits):
        for found, value in ((exact.ln2(bits), mp.ln2), (exact.pi(bits), mp.pi)):
            assert holds(found, +value) and found.bits == bits and found.hi - found.lo <= 2


@timeless
@given(st.just(Fraction(0)) | positive(-60, 80), BITS, st.integers(0, 9))
def test_sqrt_holds_the_root_of_everything_inside(x: Fraction, bits: int, slack: int) -> None:
    given_x = enclose(x, bits).widen(slack)
    found = exact.sqrt(given_x)
    for end in (max(given_x.lo, 0), given_x.hi):  # by monotonicity the ends tell
        square = end << bits
        assert found.lo**2 <= square <= found.hi**2
    assert (found.lo + 1) ** 2 > max(given_x.lo, 0) << bits and (found.hi - 1) ** 2 <= given_x.hi << bits


@settings(deadline=None, max_examples=60)
@given(fractions(0, 45), BITS)
@example(Fraction(0), 64)
@example(Fraction(1, 10**20), 64)
def test_gauss_density_and_tail_hold_the_value_within_few_ulps(z: Fraction, bits: int) -> None:
    density, tail = exact.gauss_density(z, bits), exact.gauss_tail(z, bits)
    with precise(bits + 1500):
        assert holds(density, mpmath.exp(-(real(z) ** 2) / 2) / mpmath.sqrt(2 * mp.pi))
        assert holds(tail, mpmath.erfc(real(z) / mpmath.sqrt(mpf(2))) / 2)
    assert density.hi - density.lo <= 2 and tail.hi - tail.lo <= 2
    assert density.bits == tail.bits == bits


@settings(deadline=None, max_examples=60)
@given(fractions(0, 30), BITS)
@example(Fraction(0), 64)
@example(Fraction(6), 500)
@example(Fraction(6) - Fraction(1, 10**30), 500)
@example(Fraction(10**100), 64)
def test_mills_holds_the_ratio_of_tail_and_density_within_few_ulps(x: Fraction, bits: int) -> None:
    found = exact.mills(x, bits)
    if x < 10**6:
        with precise(bits):  # erfc is good to all digits, relative
            tail = mpmath.erfc(real(x) / mpmath.sqrt(mpf(2))) / 2
            assert holds(found, tail * mpmath.sqrt(2 * mp.pi) * mpmath.exp(real(x) ** 2 / 2))
    assert 0 <= found.lo <= found.hi <= found.lo + 4 and found.bits == bits


def test_a_far_gauss_tail_is_not_summed_and_still_held() -> None:
    assert exact.gauss_tail(Fraction(10**9), 200) == Enclosure(0, 1, 200)


@st.composite
def boxed(draw: Any, bits: int, *, above_zero: bool = False) -> tuple[Enclosure, Fraction]:
    """An enclosure and some point inside it."""
    lo = draw(st.integers(1 if above_zero else -(1 << bits + 20), 1 << bits + 20))
    hi = lo + draw(st.integers(0, 3) | st.integers(0, 1 << bits))
    share = draw(st.fractions(0, 1, max_denominator=1000))
    return Enclosure(lo, hi, bits), (lo + share * (hi - lo)) / (1 << bits)


def inside(found: Enclosure, value: Fraction) -> bool:
    return found.lo <= value * (1 << found.bits) <= found.hi


@timeless
@given(st.data(), st.integers(4, 200))
def test_arithmetic_holds_every_result_of_points_inside(data: Any, bits: int) -> None:
    (a, x), (b, y) = data.draw(boxed(bits)), data.draw(boxed(bits))
    c, z = data.draw(boxed(bits, above_zero=True))
    n = data.draw(st.integers(1, 10**9))
    f = data.draw(st.fractions(-1000, 1000, max_denominator=10**9))
    fewer = data.draw(st.integers(1, bits))
    assert inside(a + b, x + y) and inside(a - b, x - y) and inside(-a, -x) and inside(a * b, x * y)
    assert inside(a / c, x / z) and inside(a.over(n), x / n) and inside(a.times(f), x * f)
    assert inside(a.to(fewer), x) and inside(a.widen(2), x)


@timeless
@given(st.data(), st.integers(4, 200))
def test_arithmetic_widens_by_rounding_alone(data: Any, bits: int) -> None:
    """The ends of a result are the extreme results of the ends, rounded outward by less than one ulp."""
    (a, _), (b, _) = data.draw(boxed(bits)), data.draw(boxed(bits))
    c, _ = data.draw(boxed(bits, above_zero=True))
    n = data.draw(st.integers(1, 10**9))
    unit = 1 << bits
    for found, extremes in (
        (a + b, [Fraction(p + q) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]),
        (a - b, [Fraction(p - q) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]),
        (a * b, [Fraction(p * q, unit) for p in (a.lo, a.hi) for q in (b.lo, b.hi)]),
        (a / c, [Fraction(p * unit, q) for p in (a.lo, a.hi) for q in (c.lo, c.hi)]),
        (a.over(n), [Fraction(p, n) for p in (a.lo, a.hi)]),
        (a.times(Fraction(-3, 7)), [Fraction(-3 * p, 7) for p in (a.lo, a.hi)]),
        (a.to(bits - 3), [Fraction(p, 8) for p in (a.lo, a.hi)]),
    ):
        assert found.lo == math.floor(min(extremes)) and found.hi == math.ceil(max(extremes))


@timeless
@given(fractions(-1000, 1000), BITS)
def test_enclose_is_within_one_ulp_and_exact_where_it_can_be(x: Fraction, bits: int) -> None:
    found = enclose(x, bits)
    assert inside(found, x) and found.hi - found.lo <= 1
    assert (found.lo == found.hi) == ((x * (1 << bits)).denominator == 1)
    assert abs(Fraction(float(found)) - x) <= Fraction(1, 1 << bits) + abs(x) / 2**52


def test_what_has_no_value_is_refused() -> None:
    one = enclose(1, 64)
    for call in (
        lambda: exact.exp_neg(Fraction(-1), 64),
        lambda: exact.ln(Fraction(0), 64),
        lambda: exact.ln(Fraction(-1), 64),
        lambda: exact.gauss_tail(Fraction(-1), 64),
    ):
        with pytest.raises(ValueError, match=r"needs"):
            call()
    for divisor in (Enclosure(0, 5, 64), Enclosure(-3, 5, 64), Enclosure(-5, -3, 64)):
        with pytest.raises(ZeroDivisionError):
            one / divisor


@timeless
@given(positive(-1080, 1000) | fractions(0, 10**6), st.booleans())
@example(Fraction(0), False)
@example(Fraction(1, 10), False)
@example(Fraction(1, 3), True)
@example(Fraction(2) ** -1080, True)
@example(Fraction(2**53 + 1), False)
@example(MAX, False)
@example(MAX, True)
def test_directed_rounding_gives_the_nearest_float_on_that_side(size: Fraction, negative: bool) -> None:
    x = -size if negative else size
    above, below = exact.float_above(x), exact.float_below(x)
    assert Fraction(below) <= x <= Fraction(above)
    if x > -MAX:
        assert Fraction(math.nextafter(above, -math.inf)) < x
    if x < MAX:
        assert Fraction(math.nextafter(below, math.inf)) > x


@timeless
@given(positive(-800, 800) | positive(-400, 400).map(lambda x: x * x))
@example(Fraction(0))
@example(Fraction(1))
@example(Fraction(2))
@example(Fraction(1, 10) ** 2)
@example(Fraction(2**53 + 1) ** 2)
@example(Fraction(math.nextafter(1.5, 2)) ** 2 + Fraction(1, 2**300))
@example(Fraction(math.nextafter(1.5, 2)) ** 2 - Fraction(1, 2**300))
def test_sqrt_above_is_the_least_float_whose_square_is_enough(x: Fraction) -> None:
    root = exact.sqrt_above(x)
    assert Fraction(root) ** 2 >= x
    assume(root > 0)
    assert Fraction(math.nextafter(root, 0)) ** 2 < x


def test_a_wrong_rounding_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant truncation where the upper end must be rounded up; an enclosure loses its value."""
    monkeypatch.setattr(Enclosure, "over", lambda self, n: Enclosure(self.lo // n, self.hi // n, self.bits))
    lost = 0
    with precise(64):
        for n in range(1, 60):
            lost += not inside(enclose(Fraction(n, 7), 64).over(3), Fraction(n, 21))
    assert lost > 20
