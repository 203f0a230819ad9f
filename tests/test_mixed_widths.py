"""Error bars of mixtures of independent noise: safe against exact convolutions, and not much wider."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from sfumato.errors import ArgumentError
from sfumato.laws import (
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Law,
    RoundedGaussian,
    RoundedLaplace,
    _spread_of_laplace,
)

LAWS: list[Law] = [RoundedLaplace(20.0), DiscreteLaplace(20.0), RoundedGaussian(20.0), DiscreteGaussian(20.0)]
MIXTURES = [(1,), (1, 1), (3, 1), (1, 1, 1, 1), (2, -1, 1), (1,) * 9, (5, 1, 1, 1, 1, 1)]


def chances(law: Law, weights: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The exact law of sum b_i X_i, by convolution, cut where nothing is left."""
    reach = math.ceil(law.spread * 45)
    total = np.ones(1)
    for weight in weights:
        spaced = np.zeros(2 * reach * abs(weight) + 1)
        spaced[:: abs(weight)] = law.pmf(np.arange(-reach, reach + 1))
        total = np.convolve(total, spaced)
    middle = total.size // 2
    return np.arange(total.size) - middle, total


def exact_width(law: Law, weights: tuple[int, ...], alpha: float) -> float:
    places, chance = chances(law, weights)
    size = np.bincount(np.abs(places), chance)
    beyond = np.cumsum(size[::-1])[::-1]  # P(|S| >= w)
    return float(np.flatnonzero(beyond <= alpha)[0] - 1)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("weights", MIXTURES, ids=str)
def test_bounds_hold_and_are_near(law: Law, weights: tuple[int, ...]) -> None:
    size = np.abs(weights)
    norms = size.sum(), np.sqrt((size**2).sum()), size.max()
    for alpha in (0.3, 0.1, 0.05, 0.01, 1e-4):
        wanted, found = exact_width(law, weights, alpha), float(law.mixed_half_width(*norms, alpha))
        assert found >= wanted
        slack = norms[0] + 1
        looser = 2.0 if isinstance(law, DiscreteGaussian) else 1.35  # which is bounded by its moments alone
        assert found <= looser * wanted + slack, (alpha, found, wanted)


def test_one_weight_is_exact_and_shapes_are_kept() -> None:
    law = RoundedLaplace(1000.0)
    one = law.mixed_half_width([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], 0.05)
    assert one.tolist() == [law.half_width(0.05) + 0.5, 2 * law.half_width(0.05) + 1]
    assert law.mixed_half_width(2.0, 1.5, 1.0, 0.05).shape == ()
    assert law.mixed_half_width(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)), 0.05).shape == (2, 3)
    assert law.mixed_half_width(9.0, [1.5, 2.0], 1.0, 0.05).shape == (2,)
    assert law.mixed_half_width(0.0, 0.0, 0.0, 0.05) < 1e-290  # an answer made of nothing has no error
    assert np.isfinite(law.mixed_half_width(1e9, 1e5, 1.0, 1e-12))


def test_many_equal_weights_come_near_the_normal_law() -> None:
    n = 10_000
    found = RoundedLaplace(1000.0).mixed_half_width(n, math.sqrt(n), 1, 0.05)
    normal = 1.959964 * math.sqrt(2) * 1000 * math.sqrt(n)
    assert normal < found < 1.15 * normal


def test_the_bound_for_all_mixtures_of_laplace_noise() -> None:
    """Between one Laplace draw and the normal law lie all mixtures; two of them in closed form."""
    for alpha in (0.5, 0.3, 0.1, 0.05, 0.01, 1e-3, 1e-6):
        w = _spread_of_laplace(alpha)
        assert w >= -math.log(alpha) and w >= math.sqrt(2) * _normal_quantile(alpha)
        # b1 = b2: P(|S| > w) = (1 + t/2) e^-t with t = w sqrt(2)
        t = w * math.sqrt(2)
        assert (1 + t / 2) * math.exp(-t) <= alpha
        for share in np.linspace(0.02, 0.98, 25):  # b1^2 = share: a difference of exponentials
            a, b = share, 1 - share
            if a == b:
                continue
            tail = (a * math.exp(-w / math.sqrt(a)) - b * math.exp(-w / math.sqrt(b))) / (a - b)
            assert tail <= alpha
    assert _spread_of_laplace(0.05) < 1.03 * -math.log(0.05)


def _normal_quantile(alpha: float) -> float:
    return float(optimize.brentq(lambda z: math.erfc(z / math.sqrt(2)) - alpha, 0, 40))


def test_nonsense_is_refused() -> None:
    for alpha in (0, 1, -1, 2, math.nan):
        with pytest.raises(ArgumentError, match="alpha"):
            LAWS[0].mixed_half_width(1, 1, 1, alpha)


@pytest.mark.parametrize("weights", MIXTURES, ids=str)
def test_noise_on_one_side_is_covered_too(weights: tuple[int, ...]) -> None:
    law, size = Geometric(20.0), np.abs(weights)
    norms = size.sum(), np.sqrt((size**2).sum()), size.max()
    for alpha in (0.3, 0.05, 1e-4):
        wanted, found = exact_width(law, weights, alpha), float(law.mixed_half_width(*norms, alpha))
        assert wanted <= found <= 2.7 * exact_width(law, tuple(size.tolist()), alpha) + norms[0] + 1
