"""Rényi DP: published values, brute force in many digits, and an upper bound always."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import events
from sfumato.accounting import gdp, moments, pld, renyi, renyi_normal, renyi_pairs, renyi_sampling, zcdp
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    Partition,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
    WithoutReplacement,
    ZeroConcentrated,
)

some = settings(derandomize=True, deadline=None, max_examples=40)
MNIST = 256 / 60000


def training(sigma: float, rate: float, steps: int) -> Repeat:
    return Repeat(Poisson(Gaussian(multiplier=sigma), rate), steps)


def close_above(ours: float, true: Any, relative: float = 1e-10) -> None:
    """Never below the truth, and hardly above it."""
    assert mp.mpf(ours) >= true
    assert mp.mpf(ours) <= true * (1 + mp.mpf(relative)) + mp.mpf(10) ** -300


# Published values


@pytest.mark.parametrize(
    ("rate", "sigma", "order", "value"),
    [
        (0.01, 4, 32, 1.052636066e-4),
        (0.01, 1.1, 8, 5.840703355e-4),
        (MNIST, 1.1, 16, 0.7918914328),
        (0.1, 2, 4, 6.003282964e-3),
    ],
)
def test_sampled_gaussian_at_whole_orders(rate: float, sigma: float, order: int, value: float) -> None:
    event = Poisson(Gaussian(multiplier=sigma), rate)
    assert renyi.divergence(event, order) == pytest.approx(value, rel=1e-9)
    near = renyi.divergence(event, math.nextafter(order, 99))  # by quadrature, not by the binomial sum
    assert near == pytest.approx(value, rel=1e-9)


def test_laplace_and_randomized_response() -> None:
    for scale, values in ((1, (0.61912363, 0.8136892966, 0.978148425)), (2, (0.2003038962, 0.3209265302, 0.478148425))):
        for order, value in zip((2, 4, 32), values, strict=True):
            assert renyi.divergence(Laplace(epsilon=1 / scale), order) == pytest.approx(value, rel=1e-8)
    coin = RandomizedResponse(epsilon=math.log(3), categories=2)
    for order, value in zip((2, 4, 32), (0.8472978604, 1.002870645, 1.089332222), strict=True):
        assert renyi.divergence(coin, order) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize(
    ("event", "delta", "value"),
    [
        (training(1.3, MNIST, 3515), 1e-5, 0.954430),
        (training(1.1, MNIST, 14062), 1e-5, 2.596556),
        (training(0.7, MNIST, 10546), 1e-5, 6.319464),
        (training(2, 0.01, 1000), 1e-5, 0.68619),
        (Repeat(Gaussian(multiplier=1.13), 11), 1e-6, 18.709610),  # tree aggregation, depth 11
        (Repeat(Gaussian(multiplier=8.83), 11), 1e-6, 1.773192),
    ],
)
def test_epsilon_reaches_the_published_values(event: events.Event, delta: float, value: float) -> None:
    """Those were found on a grid of orders: every real order does a little better."""
    assert value * (1 - 1e-3) < renyi.epsilon(event, delta) < value + 6e-7


@pytest.mark.parametrize(
    ("event", "exact", "by_rho"),
    [
        (Pure(epsilon=0.1), 4.774568, 5.221534),  # the optimal composition; epsilon^2/2
        (Laplace(epsilon=0.1), 4.692449, 4.9845),  # the privacy loss; another library's Rényi
        (Exponential(epsilon=0.1), 2.0, 2.419093),  # epsilon^2/8
    ],
)
def test_pure_mechanisms_cost_less_than_their_rho(event: events.Event, exact: float, by_rho: float) -> None:
    assert exact <= renyi.epsilon(Repeat(event, 100), 1e-6) < by_rho


@pytest.mark.parametrize(
    ("rho", "delta", "value"),
    [
        (0.1, 1e-5, 1.914239),
        (0.1, 1e-6, 2.141939),
        (0.5, 1e-5, 4.728387),
        (0.5, 1e-6, 5.221534),
        (1, 1e-5, 7.077197),
        (1, 1e-6, 7.766217),
        ("293764/114921", 1e-10, 17.143551),  # the 2020 census, published as 17.14
        (0.07, 1e-10, 2.387275),
    ],
)
def test_rho_is_a_straight_line(rho: Any, delta: float, value: float) -> None:
    from fractions import Fraction

    event = ZeroConcentrated(rho=Fraction(rho) if isinstance(rho, str) else rho)
    ours = renyi.epsilon(event, delta)
    assert ours == pytest.approx(value, abs=2e-6)
    assert ours >= float(zcdp.epsilon(event.rho, Fraction(repr(delta)))) * (1 - 1e-9)
    assert renyi.delta(event, ours) == pytest.approx(delta, rel=1e-4)


# Pairs, against sums and integrals in 40 digits


def moment(p: list[Any], q: list[Any], order: Any) -> Any:
    return mp.log(mp.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


def sampled(p: list[Any], q: list[Any], rate: Any) -> list[Any]:
    return [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]


def response(epsilon: Any, k: int) -> tuple[list[Any], list[Any]]:
    e = mp.exp(epsilon)
    return [e / (e + k - 1), *[1 / (e + k - 1)] * (k - 1)], [
        1 / (e + k - 1),
        e / (e + k - 1),
        *[1 / (e + k - 1)] * (k - 2),
    ]


def geometric(epsilon: Any, shift: int) -> tuple[list[Any], list[Any]]:
    """Discrete Laplace laws `shift` apart; what lies outside has one ratio on each side and is summed up."""
    p = mp.exp(-epsilon / shift)
    c = (1 - p) / (1 + p)
    inner = range(1, shift)
    first = [1 / (1 + p), *(c * p**k for k in inner), p**shift / (1 + p)]
    return first, first[::-1]


EPSILONS = [1e-9, 1e-3, 0.3, 1, 4, 60]
ORDERS = [1.000001, 1.5, 2, 7.5, 64, 1e4]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_finite_pairs_are_exact(epsilon: float) -> None:
    with mp.workdps(60):
        e = mp.mpf(repr(epsilon))
        for order in ORDERS:
            a = mp.mpf(order)
            for k in (2, 3, 50):
                close_above(
                    renyi.divergence(RandomizedResponse(epsilon=epsilon, categories=k), order),
                    moment(*response(e, k), a),
                )
            for name in (Pure, events.PermuteAndFlip):
                close_above(renyi.divergence(name(epsilon=epsilon), order), moment(*response(e, 2), a))
            for shift in (1, 2, 9):
                ours = renyi.divergence(DiscreteLaplace(epsilon=epsilon, shift=shift), order)
                close_above(ours, moment(*geometric(e, shift), a), 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_is_exact(epsilon: float) -> None:
    with mp.workdps(60):
        e = mp.mpf(repr(epsilon))
        for order in ORDERS:
            a = mp.mpf(order)
            top, bottom = a / (2 * a - 1) * mp.exp((a - 1) * e), (a - 1) / (2 * a - 1) * mp.exp(-a * e)
            close_above(renyi.divergence(Laplace(epsilon=epsilon), order), mp.log(top + bottom) / (a - 1))
    fine = renyi.divergence(DiscreteLaplace(epsilon=epsilon, shift=10**6), 3.0)
    assert fine == pytest.approx(renyi.divergence(Laplace(epsilon=epsilon), 3.0), rel=1e-6)


def spanning(t: Any, e: Any) -> tuple[list[Any], list[Any]]:
    b = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
    return [b * mp.exp(t), (1 - b) * mp.exp(t - e)], [b, 1 - b]


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 8, 40])
@pytest.mark.parametrize("order", [1.001, 1.5, 2, 10, 300])
def test_bounded_range_is_the_worst_span(epsilon: float, order: float) -> None:
    with mp.workdps(60):
        e, a = mp.mpf(repr(epsilon)), mp.mpf(order)
        low, high = mp.mpf(0), e
        for _ in range(60):  # the moment has one top
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if moment(*spanning(left, e), a) > moment(*spanning(right, e), a) else (left, high)
        ours = renyi.divergence(Exponential(epsilon=epsilon), order)
        close_above(ours, moment(*spanning(low, e), a), 1e-9)
        assert ours <= min(order * epsilon**2 / 8, renyi.divergence(Pure(epsilon=epsilon), order)) * (1 + 1e-9)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("order", [1.01, 1.7, 2, 9.5, 100])
def test_sampled_finite_pairs_are_exact_in_the_worse_direction(rate: float, order: float) -> None:
    with mp.workdps(50):
        a, r = mp.mpf(order), mp.mpf(repr(rate))
        for epsilon in (0.01, 1, 6):
            e = mp.mpf(repr(epsilon))
            for event, (p, q) in (
                (Pure(epsilon=epsilon), response(e, 2)),
                (RandomizedResponse(epsilon=epsilon, categories=7), response(e, 7)),
                (DiscreteLaplace(epsilon=epsilon, shift=5), geometric(e, 5)),
            ):
                mix = sampled(p, q, r)
                worst = max(moment(mix, q, a), moment(q, mix, a))
                close_above(renyi.divergence(Poisson(event, rate), order), worst, 1e-9)
            ours = renyi.divergence(Poisson(Exponential(epsilon=epsilon), rate), order)
            pairs = [spanning(e * k / 100, e) for k in range(1, 100)]
            worst = max(max(moment(sampled(p, q, r), q, a), moment(q, sampled(p, q, r), a)) for p, q in pairs)
            assert worst <= ours <= worst * 1.02 + epsilon / 50  # a span of the grid of t


@pytest.mark.parametrize(("rate", "epsilon"), [(0.01, 1), (0.5, 0.1), (0.9, 5)])
@pytest.mark.parametrize("order", [1.1, 16, 40.5])
def test_sampled_laplace(rate: float, epsilon: float, order: float) -> None:
    with mp.workdps(30):
        a, r, e = mp.mpf(order), mp.mpf(repr(rate)), mp.mpf(repr(epsilon))

        def m(v: Any) -> Any:
            return 1 - r + r * mp.exp(v)

        def both(power: Any) -> Any:
            middle = mp.quad(lambda v: mp.exp(-(e + v) / 2) / 4 * m(v) ** power, mp.linspace(-e, e, 9))
            return mp.log(middle + mp.exp(-e) / 2 * m(e) ** power + m(-e) ** power / 2) / (a - 1)

        true = max(both(a), both(1 - a))
        ours = renyi.divergence(Poisson(Laplace(epsilon=epsilon), rate), order)
        assert true <= ours <= true * (1 + 3e-3 if order * epsilon > 50 else 1 + 1e-4)


# Mixtures of normals, against integrals


def integral(weights: list[Any], shifts: list[Any], order: Any, *, forward: bool = True) -> Any:
    """E[M^a] - 1 (or E[M^(1-a)] - 1) by Gauss-Legendre panels."""
    power = order if forward else 1 - order

    def density(z: Any) -> Any:
        m = mp.fsum(w * mp.exp(s * z - s * s / 2) for w, s in zip(weights, shifts, strict=True))
        return mp.npdf(z) * (m**power - 1 - power * (m - 1))

    top = shifts[-1]
    low, high = (-13, order * top + 13) if forward else (-(order - 1) * top - 13, top + 13)
    panels = max(10, int((high - low) * max(0.5, top / 2)))
    return mp.quad(density, mp.linspace(low, high, panels + 1), method="gauss-legendre", maxdegree=4)


def check_sampled(rate: float, sigma: float, order: float) -> None:
    with mp.workdps(35):
        q, s, a = mp.mpf(repr(rate)), 1 / mp.mpf(repr(sigma)), mp.mpf(order)
        ours = renyi.divergence(Poisson(Gaussian(multiplier=sigma), rate), order)
        close_above(ours, mp.log1p(integral([1 - q, q], [mp.mpf(0), s], a)) / (a - 1), 1e-9)


@pytest.mark.parametrize(
    ("rate", "sigma", "order"),
    [(1e-6, 0.5, 1.01), (1e-6, 100, 7.5), (0.01, 1, 20.5), (0.99, 0.3, 1.5), (0.99, 100, 499.5), (0.2, 10, 99.5)],
)
def test_sampled_gaussian_at_real_orders(rate: float, sigma: float, order: float) -> None:
    check_sampled(rate, sigma, order)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 1, 3, 100])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.5, 7.3, 40.5])
def test_sampled_gaussian_on_a_grid(rate: float, sigma: float, order: float) -> None:
    if order / sigma**2 < 120:
        check_sampled(rate, sigma, order)


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.99])
@pytest.mark.parametrize("sigma", [0.3, 1, 100])
@pytest.mark.parametrize("order", [2, 3, 30, 500])
def test_sampled_gaussian_is_the_binomial_sum(rate: float, sigma: float, order: int) -> None:
    with mp.workdps(120):
        q, s = mp.mpf(repr(rate)), 1 / mp.mpf(repr(sigma))
        terms = (
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(k * (k - 1) * s * s / 2)
            for k in range(order + 1)
        )
        event = Poisson(Gaussian(multiplier=sigma), rate)
        true = mp.log(mp.fsum(terms)) / (order - 1)
        close_above(renyi.divergence(event, order), true)
        between = renyi.divergence(event, math.nextafter(order, 1e9))
        assert between >= true * (1 - mp.mpf(10) ** -12)
        assert between <= true * (1 + mp.mpf(10) ** -9) or order / sigma**2 > 1000


@pytest.mark.parametrize(
    ("shifts", "weights", "order"),
    [((0, 0.5, 1), (0.9, 0.05, 0.05), 1.5), ((0.5, 1), (0.5, 0.5), 3.3), ((0, 0.1, 2), (0.5, 0.25, 0.25), 5.5)],
)
def test_mixtures_in_both_directions(shifts: tuple[float, ...], weights: tuple[float, ...], order: float) -> None:
    with mp.workdps(30):
        a, w, s = mp.mpf(order), [mp.mpf(repr(x)) for x in weights], [mp.mpf(repr(x)) for x in shifts]
        mixture = renyi_normal.Mixture(tuple(map(float, shifts)), tuple(map(float, weights)))
        worst = mp.mpf(0)
        for forward, ours in ((True, renyi_normal.forward), (False, renyi_normal.backward)):
            true = integral(w, s, a, forward=forward)
            worst = max(worst, true)
            found = float(ours(mixture, np.array([order]))[0])
            assert mp.log(true) <= found <= mp.log(true) + 1e-10
        event = GaussianMixture(shifts=shifts, weights=weights)
        close_above(renyi.divergence(event, order), mp.log1p(worst) / (a - 1), 1e-9)


def test_the_same_thing_said_differently_costs_the_same() -> None:
    one = Poisson(Gaussian(multiplier=2), 0.1)
    same = [
        GaussianMixture(shifts=(0, 0.5), weights=(0.9, 0.1)),
        Poisson(Poisson(Gaussian(multiplier=2), 0.5), 0.2),
        Poisson(GaussianMixture(shifts=(0, 0.5), weights=(0.5, 0.5)), 0.2),
        Poisson(GaussianMixture(shifts=(0.5,), weights=(1,)), 0.1),
        Poisson(Repeat(Gaussian(multiplier=4), 4), 0.1),
        Poisson(Sequence((Gaussian(multiplier=4), Repeat(Gaussian(multiplier=4), 3))), 0.1),
    ]
    for order in (1.3, 2, 5.5, 40, 300.5):
        for event in same:
            assert renyi.divergence(event, order) == pytest.approx(renyi.divergence(one, order), rel=1e-11)
        assert renyi.divergence(Poisson(Laplace(epsilon=1), 1), order) == renyi.divergence(Laplace(epsilon=1), order)


# Sampling of anything


@st.composite
def pairs(draw: Callable[..., Any]) -> tuple[list[float], list[float]]:
    n = draw(st.integers(2, 5))
    laws = [draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n)) for _ in range(2)]
    return [x / sum(laws[0]) for x in laws[0]], [x / sum(laws[1]) for x in laws[1]]


def divergence(p: Any, q: Any, order: float) -> float:
    p, q = np.array(p), np.array(q)
    return float(np.log(np.sum(q * (p / q) ** order)) / (order - 1))


@some
@given(pairs(), st.floats(0.01, 0.99), st.sampled_from([1.2, 2, 3, 4.5, 10, 30.5]))
def test_any_pair_sampled_stays_under_its_bound(pair: Any, rate: float, order: float) -> None:
    """Also a pair that does not look alike from both sides: there the bound is twice as large."""
    p, q = np.array(pair[0]), np.array(pair[1])

    def price(orders: Any) -> Any:
        ratio, back = (p / q)[:, None] ** orders, (q / p)[:, None] ** orders
        both = np.maximum(np.sum(q[:, None] * ratio, axis=0), np.sum(p[:, None] * back, axis=0))
        return np.maximum(np.log(both) / (orders - 1), 1e-15)

    log_j = renyi_sampling.poisson(np.array([float(order)]), rate, 1 - rate, price, alike=False)
    bound = math.log1p(math.exp(log_j[0])) / (order - 1)
    for x, y in ((p, q), (q, p)):
        mix = (1 - rate) * y + rate * x
        assert max(divergence(mix, y, order), divergence(y, mix, order)) <= bound * (1 + 1e-9) + 1e-14


@some
@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6), st.floats(0.01, 0.99), st.floats(1.01, 40))
def test_forward_is_worse_for_pairs_that_look_alike(law: list[float], rate: float, order: float) -> None:
    p, q = np.array(law) / sum(law), np.array(law[::-1]) / sum(law)
    mix = (1 - rate) * q + rate * p
    assert divergence(mix, q, order) >= divergence(q, mix, order) - 1e-12


def test_a_sampled_discrete_gaussian_stays_under_its_bound() -> None:
    k = np.arange(-60, 62)
    law = np.exp(-(k**2) / (2 * 4.0))
    p, q = law / law.sum(), np.exp(-((k - 1) ** 2) / (2 * 4.0)) / law.sum()
    event = events.DiscreteGaussian(variance=4)
    for order in (1.5, 2, 5.5, 12):
        assert divergence(p, q, order) <= renyi.divergence(event, order)
        for rate in (0.01, 0.5):
            mix = (1 - rate) * q + rate * p
            ours = renyi.divergence(Poisson(event, rate), order)
            worst = max(divergence(mix, q, order), divergence(q, mix, order))
            assert worst <= ours < renyi.divergence(event, order)


@pytest.mark.parametrize(("population", "sample"), [(3, 1), (4, 2), (6, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 1, 3])
def test_a_fixed_sample_by_enumeration(population: int, sample: int, epsilon: float) -> None:
    """A count of ones in the sample, with discrete Laplace noise, neighbours that replace one value."""
    k = np.arange(-200, 203)

    def law(values: list[int]) -> Any:
        laws = [np.exp(-epsilon * np.abs(k - sum(s))) for s in itertools.combinations(values, sample)]
        return sum(laws) / sum(laws).sum()

    event = WithoutReplacement(DiscreteLaplace(epsilon=epsilon, shift=1, relation="replace"), sample, population)
    for order in (1.5, 2, 3, 6.5, 20):
        ours = renyi.divergence(event, order)
        assert ours <= renyi.divergence(event.event, order)
        for rest in ([0] * (population - 1), [1, *[0] * (population - 2)], [1] * (population - 1)):
            assert divergence(law([1, *rest]), law([0, *rest]), order) <= ours
            assert divergence(law([0, *rest]), law([1, *rest]), order) <= ours


def test_small_samples_cost_little() -> None:
    whole = Gaussian(multiplier=2, relation="replace")
    prices = [renyi.divergence(WithoutReplacement(whole, m, 10_000), 4) for m in (10, 100, 1000, 10_000)]
    assert prices == sorted(prices) and prices[-1] == renyi.divergence(whole, 4)
    assert prices[0] < 4 * 4 * (10 / 10_000) ** 2  # about the square of the fraction


# Composition


def test_divergences_add_up_and_parts_do_not() -> None:
    a, b = Laplace(epsilon=1), Gaussian(multiplier=3)
    for order in (1.5, 8.0):
        one, two = renyi.divergence(a, order), renyi.divergence(b, order)
        assert renyi.divergence(Sequence((a, b, a)), order) == pytest.approx(2 * one + two, rel=1e-12)
        assert renyi.divergence(Repeat(Sequence((a, b)), 10**6), order) == pytest.approx(1e6 * (one + two), rel=1e-12)
        assert renyi.divergence(Partition("ward", (a, b)), order) == pytest.approx(max(one, two), rel=1e-12)
    swapped = tuple(Laplace(epsilon=e, relation="replace") for e in (1, 2, 3))
    two_dearest = sum(renyi.divergence(part, 3.0) for part in swapped[1:])
    assert renyi.divergence(Partition("ward", swapped), 3.0) == pytest.approx(two_dearest, rel=1e-12)


def test_the_dearest_part_is_found_at_each_order() -> None:
    parts = Partition("ward", (Pure(epsilon=1), ZeroConcentrated(rho=0.2)))
    for order in (1.01, 1.5, 3, 4.9, 20):
        assert renyi.divergence(parts, order) >= max(renyi.divergence(part, order) for part in parts.events)
    assert renyi.divergence(parts, 1.01) > 0.45 and renyi.divergence(parts, 20) == pytest.approx(4)


def test_best_of_asks_tuning() -> None:
    event = events.BestOf(Gaussian(multiplier=2), shape=1, stop=0.1)
    from sfumato.accounting import tuning

    assert renyi.divergence(event, 3.5) == tuning.divergence(event, 3.5)
    assert renyi.divergence(event, 3.5) > renyi.divergence(event.event, 3.5)


def test_what_has_no_renyi_price_is_refused() -> None:
    local = Pure(epsilon=1, relation="replace")
    for event, text in (
        (events.Approximate(epsilon=1, delta=1e-9), "Approximate has no Rényi price"),
        (events.Shuffled(local, 1000), "amplify prices it"),
        (events.RandomAllocation(Gaussian(multiplier=1), 10), "amplify prices it"),
        (Sequence((Laplace(epsilon=1), events.Approximate(epsilon=1, delta=1e-9))), "Approximate"),
        (Poisson(events.Approximate(epsilon=1, delta=1e-9), 0.1), "Approximate"),
    ):
        with pytest.raises(UnsupportedEventError, match=text):
            renyi.epsilon(event, 1e-5)
    for order in (1, 0.5, 1e17, math.inf, math.nan):
        with pytest.raises(ArgumentError, match="order"):
            renyi.divergence(Laplace(epsilon=1), order)
    with pytest.raises(ArgumentError, match="epsilon"):
        renyi.delta(Laplace(epsilon=1), -1)


# Conversions


CASES = [
    training(1.1, MNIST, 1000),
    training(0.5, 1e-3, 50),
    Repeat(Laplace(epsilon=0.2), 30),
    Repeat(RandomizedResponse(epsilon=1, categories=3), 5),
    Repeat(Gaussian(multiplier=3), 4),
    Poisson(Laplace(epsilon=1), 0.1),
]


@pytest.mark.parametrize("event", CASES, ids=str)
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10])
def test_renyi_is_below_the_old_conversion(event: events.Event, delta: float) -> None:
    ours = renyi.epsilon(event, delta)
    assert ours <= moments.epsilon(event, delta=delta, orders="best") * (1 + 1e-9)
    assert moments.epsilon(event, delta=delta, orders="best") <= moments.epsilon(event, delta=delta) * (1 + 1e-9)
    if ours > 0:
        assert renyi.delta(event, ours) == pytest.approx(delta, rel=2e-3)


@pytest.mark.parametrize("event", [training(1.1, MNIST, 1000), Repeat(Laplace(epsilon=0.2), 30)], ids=str)
def test_privacy_loss_is_below_renyi(event: events.Event) -> None:
    assert pld.epsilon(event, 1e-5).upper <= renyi.epsilon(event, 1e-5)


@pytest.mark.parametrize("event", CASES, ids=str)
def test_the_search_finds_the_best_order(event: events.Event) -> None:
    orders = 1 + np.geomspace(1e-2, 1e3, 600)
    price = renyi.divergences(event, orders)
    for delta in (1e-3, 1e-8):
        grid = price + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        assert renyi.epsilon(event, delta) <= grid.min() * (1 + 1e-4)
    for epsilon in (0.5, 3.0):
        log_delta = (orders - 1) * (price - epsilon) - np.log(orders) + (orders - 1) * np.log1p(-1 / orders)
        assert math.log(renyi.delta(event, epsilon)) <= max(log_delta.min() + 1e-3, -740)


def test_a_gaussian_costs_little_more_than_its_curve() -> None:
    from fractions import Fraction

    for multiplier, delta in itertools.product((0.1, 1, 10, 1000), (1e-3, 1e-12)):
        exact = float(gdp.least_epsilon(Fraction(1) / Fraction(repr(multiplier)) ** 2, Fraction(repr(delta))))
        ours = renyi.epsilon(Gaussian(multiplier=multiplier), delta)
        assert exact <= ours < 1.25 * exact + 1e-9 or exact == 0


def test_a_large_delta_covers_everything() -> None:
    assert renyi.epsilon(Gaussian(multiplier=100), 0.1) == 0
    assert renyi.delta(Gaussian(multiplier=1000), 0) < 1e-3
    assert renyi.delta(Repeat(Gaussian(multiplier=1), 10**6), 1) == 1


# Shape


@some
@given(
    st.floats(-9, 0).map(lambda x: 10.0**x),
    st.floats(-1, 3).map(lambda x: 10.0**x),
    st.floats(-4, 4).map(lambda x: 1 + 10.0**x),
    st.floats(1.0001, 10),
)
def test_more_order_rate_and_less_noise_cost_more(rate: float, sigma: float, order: float, factor: float) -> None:
    def at(q: float, s: float, a: float) -> float:
        return renyi.divergence(Poisson(Gaussian(multiplier=s), q), a) * (1 - 1e-9)

    base = renyi.divergence(Poisson(Gaussian(multiplier=sigma), rate), order)
    assert at(rate, sigma, 1 + (order - 1) / factor) <= base
    assert at(rate / factor, sigma, order) <= base
    assert at(rate, sigma * factor, order) <= base
    assert base <= renyi.divergence(Gaussian(multiplier=sigma), order) * (1 + 1e-12)


EXTREME = [
    Poisson(Gaussian(multiplier=m), q)
    for m, q in itertools.product((1e-3, 0.3, 1, 100, 1e6), (1e-9, 1e-3, 0.5, 1 - 1e-9))
] + [
    make(e)
    for e in (1e-9, 1e-3, 1, 50, 1e4)
    for make in (
        lambda e: Pure(epsilon=e),
        lambda e: Laplace(epsilon=e),
        lambda e: Exponential(epsilon=e),
        lambda e: DiscreteLaplace(epsilon=e, shift=1),
        lambda e: DiscreteLaplace(epsilon=e, shift=2**53),
        lambda e: RandomizedResponse(epsilon=e, categories=2**53),
        lambda e: Poisson(Pure(epsilon=e), 1e-9),
        lambda e: Poisson(Laplace(epsilon=e), 0.3),
        lambda e: Poisson(Exponential(epsilon=e), 1e-3),
        lambda e: Poisson(DiscreteLaplace(epsilon=e, shift=2000), 0.9),
        lambda e: Poisson(DiscreteLaplace(epsilon=e, shift=10**6), 0.9),
        lambda e: Poisson(Sequence((Pure(epsilon=e), Gaussian(multiplier=1))), 1e-3),
        lambda e: Poisson(ZeroConcentrated(rho=e), 1e-6),
        lambda e: WithoutReplacement(Pure(epsilon=e, relation="replace"), 1, 10**9),
        lambda e: GaussianMixture(shifts=(0, e, 2 * e), weights=(0.5, 0.25, 0.25)),
    )
]


@pytest.mark.parametrize("event", EXTREME, ids=str)
def test_far_ends_are_finite_positive_and_monotone(event: events.Event) -> None:
    orders = np.array([1 + 1e-7, 1.5, 2, 2.5, 17, 64.5, 513.5, 5000, 1e6 + 0.5, 1e12])
    found = renyi.divergences(event, orders)
    assert np.all(np.isfinite(found)) and np.all(found > 0)
    assert np.all(np.diff(found) >= -1e-9 * found[:-1])
    for steps, delta in ((10**6, 1e-5), (1, 1e-100)):
        epsilon = renyi.epsilon(Repeat(event, steps), delta)
        assert 0 <= epsilon < math.inf
        assert 0 <= renyi.delta(Repeat(event, steps), min(epsilon, 1e5)) <= 1


def test_the_bend_keeps_its_digits() -> None:
    with mp.workdps(60):
        for b, loss in itertools.product(
            (1e-9, 0.3, 1, 40.0), (-300.0, -3, -0.5, -1e-7, 1e-12, 0.4999, 0.5001, 7, 300)
        ):
            r, a = mp.exp(mp.mpf(loss)), 1 + mp.mpf(b)
            for forward, true in ((True, r**a - 1 - a * (r - 1)), (False, r**-b - 1 + mp.mpf(b) * (r - 1))):
                found = float(renyi_pairs.log_bend(np.array([b]), np.array([float(loss)]), forward=forward)[0, 0])
                assert found == pytest.approx(float(mp.log(true)), rel=1e-13, abs=1e-12)


def test_orders_that_are_named_are_the_only_ones_looked_at() -> None:
    event, delta = Repeat(Poisson(Gaussian(multiplier=1.1), 0.01), 1000), 1e-5
    best = renyi.epsilon(event, delta)
    for order in (1.5, 8.0, 64.0):
        price = renyi.divergence(event, order)
        by_hand = price + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        assert renyi.epsilon(event, delta, orders=[order]) == pytest.approx(by_hand, rel=1e-12)
        assert renyi.delta(event, best, orders=[order]) >= renyi.delta(event, best) * (1 - 1e-9)
    some = renyi.epsilon(event, delta, orders=iter([4, 8.0, Fraction(17, 2), 16]))
    assert best <= some == min(renyi.epsilon(event, delta, orders=[order]) for order in (4, 8, 8.5, 16))


@pytest.mark.parametrize("wrong", [[], [1.0], [2.0, math.nan], [math.inf], ["two"], 3, "8"])
def test_orders_that_are_none_are_refused_by_name(wrong: Any) -> None:
    for price in (renyi.epsilon, renyi.delta):
        with pytest.raises(ArgumentError, match="orders"):
            price(Gaussian(multiplier=1), 1e-5, orders=wrong)
