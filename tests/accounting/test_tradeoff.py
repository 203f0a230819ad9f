"""f-DP: trade-off curves against the best tests there are, and never above them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from sfumato.accounting import gdp, optimal
from sfumato.accounting.tradeoff import Tradeoff, tradeoff
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Partition,
    PermuteAndFlip,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
)

ALPHAS = np.concatenate(([0.0], np.logspace(-15, -3, 13), np.linspace(0.01, 0.99, 99), [0.999, 1.0]))

EXACT: list[Event] = [
    Gaussian(multiplier=1),
    Gaussian(multiplier=0.3),
    Laplace(epsilon=0.1),
    Laplace(epsilon=2),
    Pure(epsilon=1),
    PermuteAndFlip(epsilon=0.5),
    Approximate(epsilon=1, delta=0.05),
    RandomizedResponse(epsilon=1, categories=2),
    RandomizedResponse(epsilon=2, categories=6),
    Sequence((Gaussian(multiplier=2), Repeat(Gaussian(multiplier=3), 5))),
    Partition("ward", (Gaussian(multiplier=2, relation="replace"),) * 3),
]


def best_test(p: list[float], q: list[float], alpha: float) -> float:
    """The least false-negative rate of any randomised test of q (null) against p, by Neyman and Pearson."""
    order = sorted(range(len(p)), key=lambda i: -(p[i] / q[i] if q[i] else math.inf))
    left, power = alpha, 0.0
    for i in order:
        share = 1.0 if q[i] <= left else left / q[i]
        power, left = power + share * p[i], left - share * q[i]
        if share < 1:
            break
    return 1 - power


def test_published_values() -> None:
    assert tradeoff(Gaussian(multiplier=1))(0.05) == pytest.approx(0.740489, abs=5e-7)
    assert tradeoff(Gaussian(multiplier=0.5))(0.1) == pytest.approx(0.236240, abs=5e-7)


@pytest.mark.parametrize("multiplier", [0.1, 1, 7])
def test_gaussian_is_never_above_the_truth(multiplier: float) -> None:
    curve = tradeoff(Gaussian(multiplier=multiplier))
    with mpmath.workdps(40):
        for alpha in (1e-300, 1e-50, 1e-12, 1e-3, 0.2, 0.5, 0.9, 0.999999):
            z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha)) if alpha > 1e-30 else None
            if z is None:
                z = mpmath.findroot(
                    lambda t, a=alpha: mpmath.log(mpmath.erfc(t / mpmath.sqrt(2)) / 2) - mpmath.log(a),
                    mpmath.sqrt(-2 * mpmath.log(alpha)),
                )
            truth = mpmath.ncdf(z - 1 / mpmath.mpf(repr(multiplier)))
            assert truth * (1 - mpmath.mpf(10) ** -9) - mpmath.mpf(10) ** -300 <= curve(alpha) <= truth


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3, 30])
def test_laplace_is_the_threshold_test(epsilon: float) -> None:
    """Reject when x > t: alpha = P(x > t), beta = P(x <= t - epsilon), for every t."""
    curve = tradeoff(Laplace(epsilon=epsilon))

    def cdf(x: float) -> float:
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    for t in np.linspace(-3, epsilon + 20, 60):
        alpha, beta = cdf(-t), cdf(t - epsilon)
        assert curve(alpha) <= beta * (1 + 1e-12) + 1e-15
        assert curve(alpha) == pytest.approx(beta, rel=1e-9, abs=1e-12)


def test_small_mechanisms_by_neyman_and_pearson() -> None:
    e = math.e
    pairs = {
        Pure(epsilon=1): ([e / (1 + e), 1 / (1 + e)], [1 / (1 + e), e / (1 + e)]),
        Approximate(epsilon=1, delta=0.05): (
            [0.05, 0.95 * e / (1 + e), 0.95 / (1 + e), 0.0],
            [0.0, 0.95 / (1 + e), 0.95 * e / (1 + e), 0.05],
        ),
        RandomizedResponse(epsilon=1, categories=4): (
            [e / (e + 3), 1 / (e + 3), 1 / (e + 3), 1 / (e + 3)],
            [1 / (e + 3), e / (e + 3), 1 / (e + 3), 1 / (e + 3)],
        ),
    }
    for event, (p, q) in pairs.items():
        curve = tradeoff(event)
        for alpha in ALPHAS:
            truth = best_test(p, q, float(alpha))
            assert truth - 1e-11 <= curve(alpha) <= truth + 1e-15


@pytest.mark.parametrize("event", EXACT, ids=lambda each: str(each)[:60])
def test_shape(event: Event) -> None:
    curve = tradeoff(event)
    beta = curve(ALPHAS)
    assert np.all(beta >= 0) and np.all(beta <= 1 - ALPHAS)
    assert np.all(np.diff(beta) <= 1e-14)  # falling
    slopes = np.diff(beta) / np.diff(ALPHAS)
    assert np.all(np.diff(slopes[14:-2]) >= -1e-9)  # convex
    inner = (beta > 1e-6) & (ALPHAS > 0) & (beta < curve(0.0) - 1e-9)
    assert np.allclose(curve(beta[inner]), ALPHAS[inner], rtol=1e-6, atol=1e-9)  # its own inverse: symmetric
    assert curve.power(0.05) == pytest.approx(1 - curve(0.05))
    assert isinstance(curve(0.5), float) and curve(np.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize("event", EXACT, ids=lambda each: str(each)[:60])
def test_duality(event: Event) -> None:
    """delta(epsilon) = max over alpha of 1 - f(alpha) - e^epsilon alpha, and epsilon(delta) undoes it."""
    curve = tradeoff(event)
    alphas = np.concatenate(([0.0], np.logspace(-12, 0, 20_001)))
    beta = curve(alphas)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        sup = float((1 - beta - math.exp(epsilon) * alphas).max())
        delta = curve.delta(epsilon=epsilon)
        assert sup - 1e-9 <= delta <= sup + 4e-4  # polygons have corners between the alphas
        if delta > max(curve.delta(epsilon=100), 1e-9):
            assert curve.epsilon(delta=delta * (1 + 1e-9)) == pytest.approx(epsilon, abs=1e-6)
    assert curve.advantage() == curve.delta(epsilon=0)
    assert curve.advantage() == pytest.approx(float((1 - beta - alphas).max()), abs=4e-4)


def test_gaussian_epsilons_are_certified() -> None:
    curve = tradeoff(Repeat(Gaussian(multiplier=3), 9))
    assert curve.epsilon(delta=1e-6) == float(gdp.least_epsilon(Fraction(1), Fraction(1, 10**6)))
    with pytest.raises(UnsupportedEventError, match="delta = 0"):
        curve.epsilon(delta=0)


def test_a_composition_from_its_curve() -> None:
    curve = tradeoff(Repeat(Pure(epsilon=0.1), 100))
    for epsilon in (0, 0.3, 1, 2.5, 4):
        truth = optimal.delta(epsilon0=0.1, times=100, epsilon=epsilon)
        assert truth.lower <= curve.delta(epsilon=epsilon) <= truth.upper + 2e-3
    assert curve.epsilon(delta=1e-6) == pytest.approx(4.774568, abs=0.05)
    assert curve.epsilon(delta=0) == 10
    p = 1 / (1 + math.exp(-0.1))
    ones = np.arange(101)
    law = np.exp(special.gammaln(101) - special.gammaln(ones + 1) - special.gammaln(101 - ones))
    ours, theirs = law * p**ones * (1 - p) ** (100 - ones), law * p ** (100 - ones) * (1 - p) ** ones
    for alpha in (0.001, 0.05, 0.3, 0.7):
        truth = best_test(ours.tolist(), theirs.tolist(), alpha)
        assert truth - 3e-3 <= curve(alpha) <= truth + 1e-12


def test_sampled_gaussian_lies_below_both_directions() -> None:
    rate, mu = 0.2, 1.0
    curve = tradeoff(Poisson(Gaussian(multiplier=1), 0.2))
    z = np.linspace(-8, 9, 4001)
    q_above = special.ndtr(-z)
    p_above = (1 - rate) * q_above + rate * special.ndtr(mu - z)
    # Q against P rejects above z, P against Q below z: every point is an attack
    assert np.all(curve(q_above) <= 1 - p_above + 1e-12)
    assert np.all(curve(1 - p_above) <= q_above + 1e-12)
    # The best symmetric promise is the greatest convex curve below both, by its supporting lines
    for alpha in (0.001, 0.02, 0.1, 0.3, 0.6, 0.9):
        best = 0.0
        for epsilon in np.linspace(0, 4, 401):
            factor = math.exp(epsilon)
            delta = max((p_above - factor * q_above).max(), ((1 - q_above) - factor * (1 - p_above)).max())
            best = max(best, 1 - delta - factor * alpha, (1 - delta - alpha) / factor)
        assert best - 3e-3 <= curve(alpha) <= best + 1e-5
    assert curve.advantage() == pytest.approx(rate * (2 * special.ndtr(mu / 2) - 1), abs=1e-3)


def test_discrete_laplace_lies_at_or_below_enumeration() -> None:
    curve = tradeoff(DiscreteLaplace(epsilon=1, shift=3))
    k = np.arange(-150, 151)
    p = np.exp(-np.abs(k) / 3)
    q = np.exp(-np.abs(k - 3) / 3)
    p, q = p / p.sum(), q / p.sum()
    for alpha in (0.01, 0.1, 0.3, 0.6):
        truth = best_test(p.tolist(), q.tolist(), alpha)
        assert truth - 5e-3 <= curve(alpha) <= truth + 1e-9


def test_groups_of_known_curves() -> None:
    assert tradeoff(Gaussian(multiplier=3)).group(3)(0.05) == pytest.approx(0.740489, abs=5e-7)
    assert np.allclose(tradeoff(Laplace(epsilon=0.5)).group(4)(ALPHAS), tradeoff(Laplace(epsilon=2))(ALPHAS))
    one = tradeoff(Pure(epsilon=1))
    assert one.group(1) is one
    assert one.group(3).epsilon(delta=0) == pytest.approx(3)


@pytest.mark.parametrize(
    "event", [Pure(epsilon=0.3), Approximate(epsilon=0.5, delta=0.01), RandomizedResponse(epsilon=1, categories=5)]
)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_groups_iterate_the_curve(event: Event, size: int) -> None:
    curve = tradeoff(event)
    grouped = curve.group(size)
    for alpha in (0.0, 1e-9, 0.001, 0.02, 0.1, 0.4, 0.8):
        reached = alpha
        for _ in range(size):
            reached = min(1.0, 1 - curve(reached))
        assert 1 - reached - 5e-3 <= grouped(alpha) <= 1 - reached + 1e-9


def test_a_groups_promise_is_the_chain() -> None:
    grouped = tradeoff(Approximate(epsilon=0.5, delta=0.01)).group(3)
    chain = 0.01 * (1 + math.exp(0.5) + math.exp(1))
    assert grouped.delta(epsilon=1.5) == pytest.approx(chain, rel=1e-9)
    assert grouped.delta(epsilon=1.5) >= chain * (1 - 1e-13)
    assert grouped.delta(epsilon=1.0) < 0.5 < tradeoff(Approximate(epsilon=1.5, delta=chain)).delta(epsilon=0.2)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data(), st.integers(2, 4))
def test_no_chain_of_small_laws_beats_a_group(data: st.DataObject, size: int) -> None:
    laws = []
    for _ in range(size + 1):
        weights = data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
        laws.append([w / sum(weights) for w in weights])

    def hockey(p: list[float], q: list[float], epsilon: float) -> float:
        return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))

    links = list(pairwise(laws))
    nodes = (0.0, 0.2, 0.5, 1.0, 2.5)
    deltas = [max(max(hockey(a, b, e), hockey(b, a, e)) for a, b in links) for e in nodes]
    grouped = Tradeoff(Pure(epsilon=1), nodes, tuple(deltas)).group(size)
    for epsilon, (p, q) in product((0.0, 0.3, 1.0, 2.0), ((laws[0], laws[-1]), (laws[-1], laws[0]))):
        assert hockey(p, q, epsilon) <= grouped.delta(epsilon=epsilon) + 1e-12
    for alpha in (0.0, 0.05, 0.3, 0.7):
        assert grouped(alpha) <= best_test(laws[0], laws[-1], alpha) + 1e-12


@pytest.mark.parametrize(
    "event",
    [
        Pure(epsilon=1e4),
        Pure(epsilon=1e-9),
        Laplace(epsilon=1e4),
        Laplace(epsilon=1e-9),
        Gaussian(multiplier=1e-3),
        Gaussian(multiplier=1e6),
        Approximate(epsilon=1e4, delta=1e-100),
        Approximate(epsilon=1e-9, delta=0.999),
        RandomizedResponse(epsilon=1e4, categories=10**6),
    ],
    ids=lambda each: str(each)[:60],
)
def test_extremes(event: Event) -> None:
    curve = tradeoff(event)
    for each in (curve, curve.group(2), curve.group(1000)):
        beta = each(np.concatenate((ALPHAS, [5e-324, 1e-300])))
        assert np.all(np.isfinite(beta)) and np.all(beta >= 0) and np.all(beta <= 1)
        for epsilon in (0, 1e-9, 1, 1e4, 1e8):
            assert 0 <= each.delta(epsilon=epsilon) <= 1
        assert 0 <= each.advantage() <= 1
    assert tradeoff(Pure(epsilon=1e-9)).advantage() >= math.tanh(5e-10)
    assert tradeoff(Pure(epsilon=1e4)).delta(epsilon=9999) == pytest.approx(1 - math.exp(-1), rel=1e-9)


def test_refusals() -> None:
    curve = tradeoff(Approximate(epsilon=1, delta=0.05))
    with pytest.raises(UnsupportedEventError, match=r"0\.05"):
        curve.epsilon(delta=0.01)
    for alpha in (-0.1, 1.1, math.nan):
        with pytest.raises(ArgumentError, match="alpha"):
            curve(alpha)
    with pytest.raises(ArgumentError, match="epsilon"):
        curve.delta(epsilon=-1)
    with pytest.raises(ArgumentError, match="size"):
        curve.group(0)
    with pytest.raises(ArgumentError, match="event"):
        tradeoff(0.5)  # type: ignore[arg-type]
