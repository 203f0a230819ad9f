"""Optimal homogeneous composition: published values, exact enumeration, and 50 digits at a hundred thousand steps."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import optimal, pld
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import Pure, Repeat

PUBLISHED = [
    (0.1, 0, 100, 1e-6, 4.774568),
    (0.01, 0, 1000, 1e-6, 1.365447),
    (0.1, 1e-9, 30, 1e-6, 2.348259),
    (0.5, 0, 20, 1e-5, 9.859411),
]


@pytest.mark.parametrize(("epsilon0", "delta0", "times", "delta", "value"), PUBLISHED)
def test_published_epsilons(epsilon0: float, delta0: float, times: int, delta: float, value: float) -> None:
    found = optimal.epsilon(epsilon0=epsilon0, delta0=delta0, times=times, delta=delta)
    assert found.upper == pytest.approx(value, abs=5e-7)
    assert 0 <= found.width < 1e-11


def test_published_deltas() -> None:
    assert optimal.delta(epsilon0=0.1, times=10, epsilon=0.5).upper == pytest.approx(9.929627e-3, rel=1e-6)
    assert optimal.delta(epsilon0=1, times=2, epsilon=1).upper == pytest.approx(0.3378347121, rel=1e-9)


def test_the_theorem_on_its_grid() -> None:
    assert optimal.on_grid(epsilon0=1, delta0=0.001, times=30, delta=0.06) == 22
    assert optimal.on_grid(epsilon0=1, delta0=0.001, times=30, delta=0.1) == 20
    with pytest.raises(UnsupportedEventError, match=r"at least 0\.2603"):
        optimal.on_grid(epsilon0=1, delta0=0.01, times=30, delta=0.26)
    with pytest.raises(UnsupportedEventError):
        optimal.epsilon(epsilon0=1, delta0=0.2, times=1, delta=0.1)
    assert optimal.on_grid(epsilon0=1, times=30, delta=0) == 30
    for times in (1, 3):  # delta as small as it can be
        least = 1 - (1 - Fraction(1, 10)) ** times
        assert optimal.epsilon(epsilon0=1, delta0=0.1, times=times, delta=least).upper == times
        with pytest.raises(UnsupportedEventError):
            optimal.epsilon(epsilon0=1, delta0=0.1, times=times, delta=least - Fraction(1, 10**90))
    # what other libraries invert is the theorem on its grid: 0.25 is the largest there, and more fits in truth
    assert optimal.on_grid(epsilon0=0.25, times=50, delta=0.01) == 5
    assert optimal.on_grid(epsilon0=0.2501, times=50, delta=0.01) > 5
    assert 0.25 < optimal.inverse(epsilon=5, delta=0.01, times=50) < 0.2525


def _exact_curve(epsilon0: Fraction, times: int, epsilon: Fraction) -> mpmath.mpf:
    """The sum over all outcomes of k coins, with 60 digits."""
    step, asked = mpmath.mpf(epsilon0.numerator) / epsilon0.denominator, mpmath.mpf(epsilon.numerator)
    asked /= epsilon.denominator
    p = 1 / (1 + mpmath.exp(-step))
    total = mpmath.mpf(0)
    for ones in range(times + 1):
        ours = p**ones * (1 - p) ** (times - ones)
        theirs = p ** (times - ones) * (1 - p) ** ones
        total += mpmath.binomial(times, ones) * max(ours - mpmath.exp(asked) * theirs, mpmath.mpf(0))
    return total


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.fractions(Fraction(1, 1000), 3, max_denominator=1000),
    st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 50)]),
    st.integers(1, 12),
    st.fractions(0, 6, max_denominator=97),
)
def test_delta_encloses_enumeration(epsilon0: Fraction, delta0: Fraction, times: int, epsilon: Fraction) -> None:
    with mpmath.workdps(60):
        own = (1 - mpmath.mpf(delta0.numerator) / delta0.denominator) ** times
        truth = 1 - own * (1 - _exact_curve(epsilon0, times, epsilon))
        found = optimal.delta(epsilon0=epsilon0, delta0=delta0, times=times, epsilon=epsilon)
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-12 * float(truth) + 1e-280


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.fractions(Fraction(1, 100), 3, max_denominator=100),
    st.sampled_from([Fraction(0), Fraction(1, 10**9)]),
    st.integers(1, 12),
    st.sampled_from([1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.99, 1 - 1e-12]),
)
def test_epsilon_encloses_where_enumeration_meets_delta(
    epsilon0: Fraction, delta0: Fraction, times: int, delta: float
) -> None:
    if 1 - (1 - delta0) ** times > Fraction(repr(delta)):
        return
    found = optimal.epsilon(epsilon0=epsilon0, delta0=delta0, times=times, delta=delta)
    with mpmath.workdps(60):
        own = (1 - mpmath.mpf(delta0.numerator) / delta0.denominator) ** times

        def at(epsilon: float) -> mpmath.mpf:
            return 1 - own * (1 - _exact_curve(epsilon0, times, Fraction(epsilon)))

        target = mpmath.mpf(repr(delta))
        assert at(found.upper) <= target
        assert found.lower == 0 or at(math.nextafter(found.lower, 0.0) - 1e-15) > target
    assert found.width <= 1e-11 * max(1.0, found.upper)


def test_a_hundred_thousand_steps_to_fifty_digits() -> None:
    times, epsilon0 = 10**5, Fraction(1, 100)
    with mpmath.workdps(50):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(1) / 100))
        for epsilon in (Fraction(0), Fraction(12), Fraction(2001, 100), Fraction(50)):
            asked = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            first = math.floor((epsilon / epsilon0 + times) / 2) + 1
            start = max(first, int(times * p))
            term = mpmath.exp(
                mpmath.loggamma(times + 1)
                - mpmath.loggamma(start + 1)
                - mpmath.loggamma(times - start + 1)
                + start * mpmath.log(p)
                + (times - start) * mpmath.log(1 - p)
            )
            total, j, up = mpmath.mpf(0), start, term
            while up > term * mpmath.mpf(10) ** -40:
                total += up * (1 - mpmath.exp(asked - (2 * j - times) * mpmath.mpf(1) / 100))
                up *= mpmath.mpf(times - j) / (j + 1) * p / (1 - p)
                j += 1
            j, down = start, term
            while j > first and down > term * mpmath.mpf(10) ** -40:
                down *= mpmath.mpf(j) / (times - j + 1) * (1 - p) / p
                j -= 1
                total += down * (1 - mpmath.exp(asked - (2 * j - times) * mpmath.mpf(1) / 100))
            found = optimal.delta(epsilon0=epsilon0, times=times, epsilon=epsilon)
            assert found.lower <= total <= found.upper
            assert found.width < 1e-10 * total


@pytest.mark.parametrize("times", [10**5, 10**6])
@pytest.mark.parametrize("epsilon0", [1e-9, 1e-4, 0.1, 1, 40, 1e4])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-3, 0.999])
def test_no_parameter_overflows(times: int, epsilon0: float, delta: float) -> None:
    found = optimal.epsilon(epsilon0=epsilon0, times=times, delta=delta)
    assert 0 <= found.lower <= found.upper <= times * epsilon0 * (1 + 1e-15)
    assert found.width <= 1e-7 * max(found.upper, 1.0)
    back = optimal.delta(epsilon0=epsilon0, times=times, epsilon=found.upper)
    assert back.upper <= delta * (1 + 1e-9)
    with_own = optimal.epsilon(
        epsilon0=epsilon0, delta0=delta / (2 * times) if delta > 1e-90 else 0, times=times, delta=delta
    )
    assert with_own.upper >= found.lower


def test_beyond_a_billion_the_answer_is_sound_and_wide() -> None:
    near = optimal.epsilon(epsilon0=1e-5, times=10**9, delta=1e-6)
    far = optimal.epsilon(epsilon0=1e-5, times=10**10, delta=1e-6)
    assert near.upper < 4.886554 < far.upper < 6  # the Gaussian limit of the far one has mu = 1
    assert far.lower <= 4.886554
    wide = optimal.delta(epsilon0=1e-5, times=10**10, epsilon=4.886554)
    assert wide.lower <= 1e-6 <= wide.upper < 1e-4


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(0.01, 20), st.sampled_from([0.0, 1e-9, 1e-5, 0.1]), st.integers(1, 2000))
def test_the_inverse_is_the_largest_that_fits(epsilon: float, delta: float, times: int) -> None:
    each = optimal.inverse(epsilon=epsilon, delta=delta, times=times)
    if each * times > epsilon:
        assert optimal.delta(epsilon0=each, times=times, epsilon=epsilon).upper <= delta
    else:
        assert Fraction(repr(each)) * times <= Fraction(repr(epsilon))
    more = Fraction(repr(each)) * (1 + Fraction(1, 10**6))
    truth = optimal.delta(epsilon0=more, times=times, epsilon=epsilon)
    assert truth.upper > delta
    if delta:
        assert truth.lower > delta * (1 - 1e-3)


def test_the_inverse_with_a_delta_in_each() -> None:
    assert optimal.inverse(epsilon=22, delta=0.06, times=30, delta0=0.001) > 1
    assert optimal.inverse(epsilon=30, delta=0, times=30) == 1
    with pytest.raises(UnsupportedEventError):
        optimal.inverse(epsilon=30, delta=0.26, times=30, delta0=0.01)
    with pytest.raises(UnsupportedEventError):
        optimal.inverse(epsilon=1, delta=0.1, times=1, delta0=0.2)


def test_monotone_in_everything() -> None:
    def at(epsilon0: float = 0.1, times: int = 50, delta: float = 1e-5, delta0: float = 1e-8) -> float:
        return optimal.epsilon(epsilon0=epsilon0, times=times, delta=delta, delta0=delta0).upper

    assert at(epsilon0=0.09) < at() < at(epsilon0=0.11)
    assert at(times=49) < at() < at(times=51)
    assert at(delta=1e-4) < at() < at(delta=1e-6)
    assert at(delta0=0) < at() < at(delta0=1e-7)


def test_it_agrees_with_privacy_loss() -> None:
    for epsilon0, times, delta in ((0.3, 7, 1e-3), (0.05, 400, 1e-9), (2, 4, 0.2)):
        ours = optimal.epsilon(epsilon0=epsilon0, times=times, delta=delta)
        other = pld.epsilon(Repeat(Pure(epsilon=epsilon0), times), delta)
        assert ours.lower <= other.upper + 1e-9 and other.lower <= ours.upper + 1e-9


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="epsilon0"):
        optimal.epsilon(epsilon0=0, times=3, delta=1e-5)
    with pytest.raises(ArgumentError, match="times"):
        optimal.epsilon(epsilon0=1, times=0, delta=1e-5)
    with pytest.raises(ArgumentError, match="epsilon"):
        optimal.delta(epsilon0=1, times=1, epsilon=-1)
