"""Iteration: the formulas, the theorem's side conditions, and two runs whose last iterates are known exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato.accounting.amplify import full_batch_rho, single_pass_divergence, single_pass_rho, single_pass_rhos
from sfumato.errors import ArgumentError

SETTING: dict[str, Any] = {"lipschitz": 1, "noise": 4, "smooth": 1, "rate": 1}


def test_the_published_formula() -> None:
    """order * 2 L^2 / (noise^2 (n + 1 - t)): Feldman et al. 2018, Theorem 23."""
    for n, t, length, noise in ((100, 1, 1, 4), (100, 100, 2, 4), (7, 3, Fraction(1, 2), 10)):
        found = single_pass_divergence(
            order=8, index=t, steps=n, lipschitz=length, noise=noise, smooth=1, rate=Fraction(1, 10)
        )
        assert found == 8 * 2 * Fraction(length) ** 2 / (Fraction(noise) ** 2 * (n + 1 - t))


def test_the_last_unit_pays_the_whole_gaussian() -> None:
    """Its own step is a Gaussian mechanism of sensitivity 2 L, noise standard deviation `noise`."""
    assert single_pass_rho(index=50, steps=50, **SETTING) == Fraction(2**2, 2 * 4**2)
    assert single_pass_rho(index=50, steps=50, **SETTING, relation="zero-out") == Fraction(1, 2 * 4**2)


def test_the_curve_over_units() -> None:
    rhos = single_pass_rhos(steps=20, **SETTING)
    assert list(rhos) == sorted(rhos)
    assert rhos == tuple(single_pass_rho(index=t, steps=20, **SETTING) for t in range(1, 21))
    assert rhos[-1] == 20 * rhos[0]


def last_iterate_rho(shifts: list[Fraction], pull: Fraction, noise: Fraction) -> Fraction:
    """Two runs w <- (1 - pull) w + shift + N(0, noise^2), one with the shifts and one without: exact rho of the ends.

    The last iterates are normal with one variance, so rho = distance^2 / (2 variance).
    """
    distance = variance = Fraction(0)
    for shift in shifts:
        distance = (1 - pull) * distance + shift
        variance = (1 - pull) ** 2 * variance + noise**2
    return distance**2 / (2 * variance)


@pytest.mark.parametrize("pull", [0, Fraction(1, 10), Fraction(1, 2), 1, 2])
@pytest.mark.parametrize("index", [1, 5, 9])
def test_linear_runs_stay_under_the_bound(pull: Fraction | int, index: int) -> None:
    """Quadratic losses of curvature pull/rate; the first unit of linear losses (pull = 0) attains the bound."""
    steps, rate, noise = 9, Fraction(1, 3), Fraction(4)
    shifts = [rate * 2 if t == index else Fraction(0) for t in range(1, steps + 1)]
    true = last_iterate_rho(shifts, Fraction(pull), rate * noise)
    bound = single_pass_rho(
        index=index,
        steps=steps,
        lipschitz=1,
        noise=noise,
        smooth=max(Fraction(pull), Fraction(1, 10)) / rate,
        rate=rate,
    )
    assert true <= bound
    if pull == 0 and index == 1:
        assert true == bound


def test_full_batches_without_a_diameter_compose() -> None:
    one = full_batch_rho(steps=1, units=10, **SETTING)
    assert one == Fraction(2, 10) ** 2 / (2 * 4**2)
    assert full_batch_rho(steps=1000, units=10, **SETTING) == 1000 * one


def test_full_batches_stop_paying() -> None:
    """2 D d / s^2 with d = 2 rate L / n and s = rate noise, up to the rounding of k; never above composition."""
    prices = [full_batch_rho(steps=t, units=10, diameter=5, **SETTING) for t in (1, 5, 25, 100, 10**6)]
    assert prices == sorted(prices)
    assert prices[-1] == prices[-2] == Fraction(2) * 5 * Fraction(2, 10) / 4**2
    assert prices[0] == full_batch_rho(steps=1, units=10, **SETTING)
    wide = full_batch_rho(steps=100, units=10, diameter=10**6, **SETTING)
    assert wide == full_batch_rho(steps=100, units=10, **SETTING)


@pytest.mark.parametrize("steps", [1, 3, 30, 300])
def test_full_batches_of_linear_runs(steps: int) -> None:
    """Runs that a diameter keeps together: with pull p the iterates stay d/p apart, which is the diameter needed."""
    shift, pull, noise = Fraction(1, 10), Fraction(1, 20), Fraction(2)
    true = last_iterate_rho([shift] * steps, pull, noise)
    bound = full_batch_rho(
        steps=steps, units=20, lipschitz=1, noise=2, smooth=Fraction(1, 20), rate=1, diameter=shift / pull
    )
    assert true <= bound


def test_the_best_number_of_steps_to_keep() -> None:
    shift, wide = Fraction(2, 10), Fraction(17, 10)
    best = min(k * (shift + wide / k) ** 2 for k in range(1, 60)) / (2 * 4**2)
    found = full_batch_rho(steps=10**9, units=10, diameter=wide, **SETTING)
    assert found == best


def test_conditions() -> None:
    with pytest.raises(ArgumentError, match="contraction"):
        single_pass_rho(index=1, steps=2, lipschitz=1, noise=1, smooth=3, rate=1)
    with pytest.raises(ArgumentError, match="contraction"):
        full_batch_rho(steps=2, units=1, lipschitz=1, noise=1, smooth=3, rate=1)
    with pytest.raises(ArgumentError, match="zero-out"):
        single_pass_rho(index=1, steps=2, **SETTING, relation="add-remove")
    with pytest.raises(ArgumentError, match="index"):
        single_pass_rho(index=3, steps=2, **SETTING)
    with pytest.raises(ArgumentError, match="order"):
        single_pass_divergence(order=1, index=1, steps=2, **SETTING)
