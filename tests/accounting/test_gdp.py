"""The Gaussian's exact curve: tables, certified, never on the unsafe side."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.accounting import gdp
from sfumato.events import Gaussian
from tests.helpers import few


def exactly(x: Fraction | float) -> Any:
    exact = Fraction(x)
    return mp.mpf(exact.numerator) / exact.denominator


def true_delta(mu: Any, epsilon: Any) -> Any:
    """Balle and Wang 2018, Theorem 8, in whatever precision mpmath works with."""
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon + mp.log(mp.ncdf(-mu / 2 - epsilon / mu)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma", "classic"),
    [
        (0.1, 1e-5, 30.749566, 48.448053),
        (0.5, 1e-5, 7.031827, 9.689611),
        (1, 1e-5, 3.730632, 4.844805),
        (1, 1e-6, 4.224679, 5.298803),
        (2, 1e-5, 1.993812, 2.422403),
        (4, 1e-5, 1.081162, 1.211201),
        (8, 1e-5, 0.600229, 0.605601),
        (10, 1e-5, 0.499889, 0.484481),
    ],
)
def test_the_analytic_sigma_table(epsilon: float, delta: float, sigma: float, classic: float) -> None:
    e, d = Fraction(repr(epsilon)), Fraction(repr(delta))
    ours = gdp.least_multiplier(e, d)
    assert float(ours) == pytest.approx(sigma, abs=6e-7)
    with mp.workdps(60):
        root = mp.findroot(lambda s: true_delta(1 / s, exactly(e)) - exactly(d), sigma)
        assert root <= exactly(ours) <= root * (1 + mp.mpf(10) ** -11)
        # the classic formula: more noise than needed up to 8, too little at 10
        textbook = mp.sqrt(2 * mp.log(mp.mpf("1.25") / exactly(d))) / exactly(e)
        assert float(textbook) == pytest.approx(classic, abs=6e-7)
        assert (true_delta(1 / textbook, exactly(e)) > exactly(d)) == (epsilon == 10)


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"), [(1.0, 1.0, 0.1269367375), (3.0, 1.0, 0.7876007414), (0.5, 0.0, 0.1974126514)]
)
def test_points_on_the_curve(mu: float, epsilon: float, delta: float) -> None:
    assert gdp.delta(mu, epsilon) == pytest.approx(delta, abs=5e-11)
    got = gdp.enclose_delta(Fraction(mu), Fraction(epsilon), 100)
    with mp.workdps(60):
        assert got.lo <= true_delta(mp.mpf(mu), mp.mpf(epsilon)) * 2**100 <= got.hi
    assert got.hi - got.lo < 2**20


@pytest.mark.parametrize(
    ("mu_squared", "delta", "epsilon"),
    [
        (0.2, 1e-5, 1.760057),
        (0.2, 1e-6, 1.994527),
        (1, 1e-5, 4.377178),
        (1, 1e-6, 4.886554),
        (2, 1e-5, 6.572970),
        (2, 1e-6, 7.286081),
        (0.25, 1e-5, 1.993091),
        (4, 1e-5, 9.997256),
        (2 * Fraction(293764, 114921), 1e-10, 16.465155),
    ],
)
def test_the_exact_epsilon_table(mu_squared: Any, delta: float, epsilon: float) -> None:
    total = mu_squared if isinstance(mu_squared, Fraction) else Fraction(repr(mu_squared))
    ours = gdp.least_epsilon(total, Fraction(repr(delta)))
    assert float(ours) == pytest.approx(epsilon, abs=6e-7)
    with mp.workdps(60):
        assert true_delta(mp.sqrt(exactly(total)), exactly(ours)) <= exactly(Fraction(repr(delta)))


def test_the_textbook_example_is_looser_than_the_curve() -> None:
    # L2 sensitivity 0.01, noise sd 1.5, delta 1e-5: classic 0.0323
    mu = Fraction(1, 150)
    classic = float(mu) * math.sqrt(2 * math.log(1.25e5))
    assert classic == pytest.approx(0.0323, abs=5e-5)
    assert float(gdp.least_epsilon(mu**2, Fraction(1, 10**5))) < classic


@few
@given(st.floats(-5, 2.5), st.floats(-60, -0.3))
def test_the_least_multiplier_is_enough_and_hardly_more(log_epsilon: float, log_delta: float) -> None:
    epsilon, delta = Fraction(repr(10.0**log_epsilon)), Fraction(repr(10.0**log_delta))
    ours = gdp.least_multiplier(epsilon, delta)
    with mp.workdps(150):
        assert true_delta(1 / exactly(ours), exactly(epsilon)) <= exactly(delta)
        less = exactly(ours) * (1 - mp.mpf(10) ** -8)
        assert true_delta(1 / less, exactly(epsilon)) > exactly(delta)


@pytest.mark.parametrize("epsilon", [99, 101, 150, 300, 1000, 10**4, 10**5])
@pytest.mark.parametrize("log_delta", [-2, -5, -12, -50])
def test_the_curve_is_tight_at_every_epsilon(epsilon: int, log_delta: int) -> None:
    """Above 100 the second term was left out, and the noise up to 0.8 % too large."""
    delta = Fraction(10) ** log_delta
    ours = gdp.least_multiplier(Fraction(epsilon), delta)
    price = gdp.least_epsilon(1 / ours**2, delta)
    with mp.workdps(120):
        assert true_delta(1 / exactly(ours), mp.mpf(epsilon)) <= exactly(delta)
        assert true_delta(1 / (exactly(ours) * (1 - mp.mpf(10) ** -12)), mp.mpf(epsilon)) > exactly(delta)
    assert abs(price / epsilon - 1) < Fraction(1, 10**10)


@few
@given(st.floats(-5, 2), st.floats(-60, -0.3))
def test_the_least_epsilon_is_enough_and_hardly_more(log_mu: float, log_delta: float) -> None:
    mu_squared, delta = Fraction(repr(10.0 ** (2 * log_mu))), Fraction(repr(10.0**log_delta))
    ours = gdp.least_epsilon(mu_squared, delta)
    with mp.workdps(150):
        mu = mp.sqrt(exactly(mu_squared))
        assert true_delta(mu, exactly(ours)) <= exactly(delta)
        less = exactly(ours) * (1 - mp.mpf(10) ** -8) - mp.mpf(10) ** -12
        assert ours == 0 or less < 0 or true_delta(mu, less) > exactly(delta)


@few
@given(st.floats(0.01, 9), st.floats(0.01, 9), st.floats(1e-12, 0.1), st.floats(1e-12, 0.1))
def test_less_epsilon_or_delta_needs_more_noise(e1: float, e2: float, d1: float, d2: float) -> None:
    (low, high), (small, large) = sorted(map(Fraction, (e1, e2))), sorted(map(Fraction, (d1, d2)))
    slack = 1 + Fraction(1, 10**9)
    assert gdp.least_multiplier(high, large) <= gdp.least_multiplier(low, large) * slack
    assert gdp.least_multiplier(low, large) <= gdp.least_multiplier(low, small) * slack
    assert gdp.least_epsilon(low, large) <= gdp.least_epsilon(high, large) * slack
    assert gdp.least_epsilon(high, large) <= gdp.least_epsilon(high, small) * slack


def test_enough_noise_costs_no_epsilon_at_all() -> None:
    # delta(0, mu) = 2 Phi(mu/2) - 1, about 0.399 mu
    assert gdp.least_epsilon(Fraction(1, 10**12), Fraction(1, 10**6)) == 0
    assert gdp.least_epsilon(Fraction(1, 10**12), Fraction(3, 10**7)) > 0


@pytest.mark.parametrize("epsilon", ["0.1", "0.3", "0.5", "0.7", "1", "1/3", "2", "3", "8", "10"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-6", "1e-9", "1e-12"])
def test_noise_calibrated_to_epsilon_is_priced_at_it(epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    price = gdp.least_epsilon(1 / gdp.least_multiplier(e, d) ** 2, d)
    assert price <= e if "/" not in epsilon else price <= e * (1 + Fraction(1, 10**10))
    assert price >= e * (1 - Fraction(1, 10**10))


def test_extreme_parameters_still_end() -> None:
    for mu_squared in (Fraction(1, 10**200), Fraction(10**12), Fraction(10**200)):
        for delta in (Fraction(1, 10**100), Fraction(99, 100)):
            assert gdp.least_epsilon(mu_squared, delta) >= 0
    for epsilon in (Fraction(1, 10**9), Fraction(10**4)):
        for delta in (Fraction(1, 10**100), Fraction(99, 100)):
            assert gdp.least_multiplier(epsilon, delta) > 0


@pytest.mark.parametrize("mu", [1e-3, 2e-5, 0.99e-5, 1e-8, 3e-20, 1e-100])
@pytest.mark.parametrize("x", [0.0, 0.5, 3.0, 20.0, 49.0, 51.0])
def test_the_curve_is_right_where_both_terms_are_nearly_the_same(mu: float, x: float) -> None:
    with mp.workdps(400):
        m, e = mp.mpf(mu), mp.mpf(mu * x)
        true = mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))
        assert abs(float(true - gdp._log_delta(mu, mu * x))) < 1e-5


@pytest.mark.parametrize("digits", [50, 100])
def test_next_to_no_price_is_found(digits: int) -> None:
    """Ten Gaussians of multiplier 10^20: the search for it never ended."""
    squared, target = Fraction(10, 10**40), Fraction(1, 10**digits)
    found = gdp.least_epsilon(squared, target)
    with mp.workdps(400):
        m, e = mp.sqrt(mp.mpf(10) ** -39), mp.mpf(found.numerator) / found.denominator
        shown = mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)
        assert 1 - 1e-6 < float(shown * mp.mpf(10) ** digits) <= 1


@pytest.mark.parametrize("multiplier", [10**3, 10**50, 10**100])
def test_a_delta_below_every_float_is_told_at_once(multiplier: int) -> None:
    event = Gaussian(multiplier=multiplier)
    assert sf.delta(event, epsilon=0.999).upper <= 1e-300
