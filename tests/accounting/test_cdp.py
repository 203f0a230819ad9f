"""Concentrated DP with mean and spread: its definition by integration, and conversions that are upper bounds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import cdp, gdp, zcdp
from sfumato.errors import UnsupportedEventError
from sfumato.events import Approximate, Exponential, Gaussian, Laplace, Partition, Pure, Repeat, Sequence

some = settings(derandomize=True, deadline=None, max_examples=40)


def test_what_events_cost() -> None:
    assert cdp.concentrated(Gaussian(multiplier=2)) == (Fraction(1, 8), Fraction(1, 4))
    assert cdp.concentrated(Repeat(Gaussian(multiplier=2), 8)) == (1, 2)
    assert cdp.concentrated(Exponential(epsilon=2)) == (Fraction(1, 2), 1)
    mu, tau_squared = cdp.concentrated(Laplace(epsilon=0.5))
    assert float(mu) == pytest.approx(0.25 * math.expm1(0.5), rel=1e-11) and tau_squared == Fraction(1, 4)
    both = cdp.concentrated(Sequence((Gaussian(multiplier=1), Pure(epsilon=1))))
    assert both.tau_squared == 2 and both.mean == both.tau_squared / 2
    assert cdp.concentrated(Partition("w", (Gaussian(multiplier=1), Gaussian(multiplier=2)))).tau_squared == 1
    with pytest.raises(UnsupportedEventError, match="no \\(mu, tau\\)"):
        cdp.concentrated(Approximate(epsilon=1, delta=1e-6))


@some
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.floats(0.01, 3), st.integers(0, 1000))
def test_pure_losses_are_as_concentrated_as_claimed(tilts: list[float], epsilon: float, seed: int) -> None:
    """Any epsilon-DP pair: its loss has the mean and the moments that `from_pure` promises."""
    base = np.random.default_rng(seed).dirichlet(np.ones(len(tilts)))
    p = base * np.exp(np.array(tilts) * epsilon / 2)
    p /= p.sum()
    loss = np.log(p / base)
    assert np.max(np.abs(loss)) <= epsilon + 1e-12
    claim = cdp.from_pure(Fraction(repr(epsilon)))
    mean = float(np.sum(p * loss))
    assert mean <= float(claim.mean) + 1e-12 <= float(claim.mu) + 2e-12
    for t in (-20, -3, -0.1, 0.1, 1, 5, 20):
        log_moment = math.log(float(np.sum(p * np.exp(t * (loss - mean)))))
        assert log_moment <= t * t * float(claim.tau_squared) / 2 + 1e-12


def test_a_gaussian_loses_little_and_stays_above_its_curve() -> None:
    for multiplier in (Fraction(1, 2), Fraction(1), Fraction(7)):
        loss = cdp.concentrated(Gaussian(multiplier=multiplier))
        assert cdp.to_zcdp(loss) == zcdp.rho(Gaussian(multiplier=multiplier))
        for delta in (Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**12)):
            exact = gdp.least_epsilon(1 / multiplier**2, delta)
            ours = cdp.epsilon(loss, delta)
            assert exact <= ours <= cdp.tail_epsilon(loss, delta)
            assert ours <= zcdp.epsilon(cdp.to_zcdp(loss), delta)
            assert cdp.delta(loss, ours) >= gdp.delta(float(1 / multiplier), float(ours))
            assert cdp.delta(loss, ours) == pytest.approx(float(delta), rel=1e-6)


def test_a_small_mean_helps() -> None:
    """A loss of mean 0.1 and spread 1: the straight line starts lower."""
    low = cdp.ConcentratedLoss(Fraction(1, 10), Fraction(1))
    high = cdp.ConcentratedLoss(Fraction(5), Fraction(1))
    delta = Fraction(1, 10**5)
    assert cdp.epsilon(high, delta) - cdp.epsilon(low, delta) == Fraction(4, 10)  # 5 counts as tau^2/2
    assert cdp.delta(low, Fraction(3)) < cdp.delta(high, Fraction(3))
    # the tail of such a loss, were it normal: epsilon = mean + z_delta is the most it could need
    assert float(cdp.epsilon(low, delta)) > 0.1 + 4.0


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1, 100, 1e4])
def test_far_ends(epsilon: Any) -> None:
    loss = cdp.concentrated(Repeat(Pure(epsilon=epsilon), 10**6))
    for delta in (Fraction(1, 10**100), Fraction(1, 3)):
        found = cdp.epsilon(loss, delta)
        assert 0 <= found < math.inf and 0 <= cdp.delta(loss, found) <= 1
