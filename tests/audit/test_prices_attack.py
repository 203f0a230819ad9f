"""A1: lower bounds on prices from first principles are what they say, and hold every accountant."""

from __future__ import annotations

import math

import pytest

from sfumato.accounting import gdp
from sfumato_referee.attacks import prices


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 3.0])
def test_the_gaussian_bound_is_just_below_the_exact_curve(mu: float, epsilon: float) -> None:
    bound, exact = prices.normal(mu).delta(epsilon), gdp.delta(mu, epsilon)
    assert bound <= exact * (1 + 1e-9) and bound > exact - 2e-3


def test_the_laplace_bound_is_just_below_the_exact_curve() -> None:
    for epsilon in (0.0, 0.4, 0.99):
        exact = 1 - math.exp((epsilon - 1) / 2)
        assert exact - 2e-3 < prices.laplace(1.0).delta(epsilon) <= exact * (1 + 1e-9)
    assert prices.laplace(1.0).delta(1.0) == 0


def test_two_points_compose_as_binomials() -> None:
    twice = prices.together(prices.two_points(1.0), prices.two_points(1.0))
    p = 1 / (1 + math.exp(-1))
    assert twice.delta(1.0) == pytest.approx(p * p * (1 - math.exp(-1)), abs=5e-3)
    assert prices.two_points(1.0, 0.01).delta(1.0) == pytest.approx(0.01, abs=1e-9)


def test_no_price_is_below_cost_and_no_account_takes_more_than_its_budget() -> None:
    verdict = prices.attack()
    assert not verdict.broken and verdict.figures["prices"] > 300, verdict
    assert (verdict.figures["accounts"], verdict.figures["overfull"]) == (42, 0), verdict


def test_textbook_formulas_are_below_cost() -> None:
    verdict = prices.control()
    assert verdict.broken and verdict.figures["below cost"] > 10


def test_a_price_that_is_one_percent_low_is_seen() -> None:
    low = {"low": lambda event, delta: 0.99 * prices.by_charge(event, delta)}
    assert prices.attack(low).broken
