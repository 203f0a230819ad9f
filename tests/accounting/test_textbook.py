"""The textbook's answers, and where they stand next to the guarantees."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from sfumato.accounting import gdp, renyi, textbook, zcdp
from sfumato.errors import ArgumentError
from sfumato.events import Gaussian, Poisson, Repeat


def test_laplace() -> None:
    scale = textbook.laplace_scale(sensitivity=1, epsilon=0.5)
    assert scale == 2 and math.sqrt(2) * scale == pytest.approx(2.828, abs=5e-4)
    halved = textbook.laplace_scale(sensitivity=1, epsilon=0.25)
    assert (halved / scale) ** 2 == 4  # halving epsilon quadruples the variance


@pytest.mark.parametrize(
    ("epsilon", "delta", "classic", "analytic"),
    [
        (0.1, 1e-5, 48.448053, 30.749566),
        (0.5, 1e-5, 9.689611, 7.031827),
        (1, 1e-5, 4.844805, 3.730632),
        (1, 1e-6, 5.298803, 4.224679),
        (2, 1e-5, 2.422403, 1.993812),
        (4, 1e-5, 1.211201, 1.081162),
        (8, 1e-5, 0.605601, 0.600229),
        (10, 1e-5, 0.484481, 0.499889),  # unsafe
    ],
)
def test_the_classic_gaussian(epsilon: float, delta: float, classic: float, analytic: float) -> None:
    ours = textbook.classic_gaussian_sigma(sensitivity=1, epsilon=epsilon, delta=delta)
    assert ours == pytest.approx(classic, abs=6e-7)
    exact = float(gdp.least_multiplier(Fraction(repr(epsilon)), Fraction(repr(delta))))
    assert exact == pytest.approx(analytic, abs=6e-7)
    assert (ours < exact) == (epsilon == 10)


def test_worked_examples_with_gaussian_noise() -> None:
    epsilon = textbook.classic_gaussian_epsilon(sigma=1.5, sensitivity=0.01, delta=1e-5)
    assert epsilon == pytest.approx(0.0323, abs=5e-5)
    assert float(gdp.least_epsilon(Fraction(1, 150) ** 2, Fraction(1, 10**5))) < epsilon
    age = textbook.classic_gaussian_sigma(sensitivity=120 / 10_000, epsilon=0.1, delta=1e-6)
    assert age == pytest.approx(0.636, abs=5e-4)


def test_randomized_response() -> None:
    if_yes, if_no, epsilon = textbook.coin_response()
    assert (if_yes, if_no) == (0.75, 0.25) and epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert textbook.debias(0.6) == pytest.approx(0.7, rel=1e-14)
    assert textbook.randomized_response_truth(epsilon=math.log(3)) == pytest.approx(0.75, rel=1e-14)
    skewed = textbook.coin_response(truth=0.5, yes=0.1)
    assert skewed[2] == pytest.approx(math.log(0.55 / 0.05))
    assert textbook.coin_response(truth=0.5, yes=0.9)[2] == pytest.approx(math.log(0.55 / 0.05))
    with pytest.raises(ArgumentError, match="if_yes"):
        textbook.debias(0.5, if_yes=0.2, if_no=0.2)
    with pytest.raises(ArgumentError, match="truth"):
        textbook.coin_response(truth=1)


def test_conversions_are_above_the_tight_ones() -> None:
    for rho, delta, value in ((0.1, 1e-5, 2.245966), (0.5, 1e-6, 5.756522), (1, 1e-6, 8.433844)):
        ours = textbook.zcdp_epsilon(rho=rho, delta=delta)
        assert ours == pytest.approx(value, abs=6e-7)
        assert ours > float(zcdp.epsilon(Fraction(repr(rho)), Fraction(repr(delta))))
    assert textbook.zcdp_epsilon(rho=Fraction(293764, 114921), delta=1e-10) == pytest.approx(17.900185, abs=6e-7)
    event = Gaussian(multiplier=1)
    old = textbook.renyi_epsilon_old(divergence=renyi.divergence(event, 5.8), order=5.8, delta=1e-5)
    assert old == pytest.approx(2.9 + math.log(1e5) / 4.8) and old > renyi.epsilon(event, 1e-5)
    with pytest.raises(ArgumentError, match="order"):
        textbook.renyi_epsilon_old(divergence=1, order=1, delta=1e-5)


def test_dp_sgd_by_hand() -> None:
    """Moments at order 10: close to nothing that holds, but what the textbook prints."""
    one = {"rate": 256 / 60000, "steps": 600, "delta": 1e-5}
    assert textbook.moments_approximation(sigma=1, **one) == pytest.approx(1.27, abs=5e-3)  # type: ignore[arg-type]
    assert textbook.moments_approximation(sigma=3, **one) == pytest.approx(1.16, abs=6e-3)  # type: ignore[arg-type]


def test_basic_and_advanced_composition_of_training() -> None:
    """q = 0.01, sigma = 2, T = 1000, delta 1e-5: basic 81.8, advanced 20.9, Rényi 0.686."""
    rate, steps, delta = 0.01, 1000, 1e-5

    def step(at: float) -> float:
        exact = float(gdp.least_epsilon(Fraction(1, 4), Fraction(repr(at / rate))))
        return textbook.subsampled_epsilon(epsilon=exact, rate=rate)

    epsilon, total = textbook.basic_composition([(step(delta / steps), delta / steps)] * steps)
    assert epsilon == pytest.approx(81.8, abs=0.05) and total == pytest.approx(delta)
    shares = [k / 20 for k in range(1, 20)]
    advanced = min(
        textbook.advanced_composition(epsilon=step(share * delta / steps), times=steps, slack=(1 - share) * delta)
        for share in shares
    )
    assert advanced == pytest.approx(20.9, abs=0.05)
    assert renyi.epsilon(Repeat(Poisson(Gaussian(multiplier=2), rate), steps), delta) == pytest.approx(0.686, abs=5e-4)


def test_advanced_composition() -> None:
    assert textbook.advanced_composition(epsilon=0.1, times=100, slack=1e-6) == pytest.approx(6.308231, abs=6e-7)


def test_sampling_groups_and_odds() -> None:
    assert textbook.subsampled_epsilon(epsilon=1, rate=0.1) == pytest.approx(math.log(1 + 0.1 * (math.e - 1)))
    assert textbook.subsampled_epsilon(epsilon=1, rate=1) == pytest.approx(1)
    assert textbook.subsampled_epsilon(epsilon=5000, rate=0.5) == pytest.approx(5000 + math.log(0.5))
    assert textbook.group_epsilon(epsilon=0.5, size=4) == 2
    assert textbook.odds_factor(epsilon=0.1) == pytest.approx(1.105, abs=5e-4)
    assert textbook.odds_factor(epsilon=8) == pytest.approx(2981, abs=0.5)
    with pytest.raises(ArgumentError, match="rate"):
        textbook.subsampled_epsilon(epsilon=1, rate=2)


def test_a_budget_by_basic_composition() -> None:
    """5.0 in all: 0.5, 1.0, 0.8, 1.5 are approved, 2.0 is denied."""
    asked, approved = [0.5, 1.0, 0.8, 1.5, 2.0], []
    for epsilon in asked:
        if textbook.basic_composition([(e, 0) for e in (*approved, epsilon)])[0] <= 5.0:
            approved.append(epsilon)
    assert approved == asked[:4]
    assert textbook.basic_composition([(e, 0) for e in asked]) == (pytest.approx(5.8), 0)
