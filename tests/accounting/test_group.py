"""Group privacy: exact where the mechanism is known, and never below brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from sfumato.accounting import group as groups
from sfumato.accounting import pure
from sfumato.accounting.group import group
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    BestOf,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    Partition,
    PermuteAndFlip,
    Poisson,
    Pure,
    RandomAllocation,
    RandomizedResponse,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)


def test_known_mechanisms_move_three_times_as_far() -> None:
    for event, three in (
        (Laplace(epsilon=0.5), Laplace(epsilon=1.5)),
        (DiscreteLaplace(epsilon=0.5, shift=2), DiscreteLaplace(epsilon=1.5, shift=6)),
        (Gaussian(multiplier=3), Gaussian(multiplier=1)),
        (
            DiscreteGaussian(variance=4, shift_squared=5, coordinates=2),
            DiscreteGaussian(variance=4, shift_squared=45, coordinates=2),
        ),
        (Exponential(epsilon=0.5), Exponential(epsilon=1.5)),
        (PermuteAndFlip(epsilon=0.5), PermuteAndFlip(epsilon=1.5)),
        (Pure(epsilon=0.5, relation="replace"), Pure(epsilon=1.5, relation="replace")),
        (ZeroConcentrated(rho=0.5), ZeroConcentrated(rho=4.5)),
        (RandomizedResponse(epsilon=1, categories=3), Repeat(RandomizedResponse(epsilon=1, categories=3), 3)),
        (Poisson(Laplace(epsilon=0.5), 1), Laplace(epsilon=1.5)),
    ):
        assert group(event, 3) == three
        assert group(event, 1) is event


def test_sequences_and_repeats_go_by_parts() -> None:
    event = Sequence((Repeat(Laplace(epsilon=0.5), 4), Gaussian(multiplier=2)))
    assert group(event, 2) == Sequence((Repeat(Laplace(epsilon=1), 4), Gaussian(multiplier=1)))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.fractions(Fraction(1, 1000), 3, max_denominator=1000), st.sampled_from([1e-100, 1e-12, 1e-4]), st.integers(1, 60)
)
def test_approximate_is_the_chain_rounded_up(epsilon: Fraction, delta: float, size: int) -> None:
    with mpmath.workdps(50):
        one = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        chain = mpmath.mpf(repr(delta)) * mpmath.fsum(mpmath.exp(i * one) for i in range(size))
        if chain >= 1 - 1e-6:
            with pytest.raises(UnsupportedEventError, match="says nothing"):
                groups.approximate(epsilon=epsilon, delta=delta, size=size)
            return
        total, found = groups.approximate(epsilon=epsilon, delta=delta, size=size)
        assert total == size * epsilon
        assert chain <= mpmath.mpf(found.numerator) / found.denominator <= chain * (1 + mpmath.mpf(10) ** -11)


def _hockey(p: list[Fraction], q: list[Fraction], factor: Fraction) -> Fraction:
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.integers(2, 4), st.sampled_from([Fraction(2), Fraction(3, 2), Fraction(5)]))
def test_no_chain_of_neighbours_beats_the_iteration(data: st.DataObject, size: int, factor: Fraction) -> None:
    """Random laws on four outcomes: each link's own delta at e^epsilon = factor bounds the ends of the chain."""
    laws = []
    for _ in range(size + 1):
        weights = data.draw(st.lists(st.integers(1, 9), min_size=4, max_size=4))
        laws.append([Fraction(w, sum(weights)) for w in weights])
    delta = max(max(_hockey(a, b, factor), _hockey(b, a, factor)) for a, b in pairwise(laws))
    chain = delta * sum((factor**i for i in range(size)), Fraction(0))
    ends = _hockey(laws[0], laws[-1], factor**size)
    assert ends <= chain
    if delta and chain < 1:
        _, found = groups.approximate(epsilon=math.log(factor) * (1 - 1e-15), delta=delta, size=size)
        assert found >= chain * (1 - Fraction(1, 10**10))


def test_the_chain_is_attained() -> None:
    """Laws whose links are exactly (epsilon, delta) apart and whose ends are as far apart as the iteration says."""
    factor, delta, size = Fraction(2), Fraction(1, 100), 3
    masses = [Fraction(0)]
    for _ in range(size):
        masses.append(factor * masses[-1] + delta)
    laws = [[m, 1 - m] for m in masses]
    assert all(_hockey(b, a, factor) == delta for a, b in pairwise(laws))
    _, found = groups.approximate(epsilon=math.log(2), delta=delta, size=size)
    assert _hockey(laws[-1], laws[0], factor**size) == delta * 7 == pytest.approx(found)


def test_randomized_responses_of_a_group_are_independent() -> None:
    event = RandomizedResponse(epsilon=1, categories=3, relation="replace")
    assert pure.epsilon(group(event, 4)) == 4


def test_discrete_laplace_groups_by_enumeration() -> None:
    event = DiscreteLaplace(epsilon=0.6, shift=2)
    three = group(event, 3)
    assert isinstance(three, DiscreteLaplace)
    law = [math.exp(-abs(k) * 0.3) for k in range(-200, 201)]
    ratios = [math.log(law[i] / law[i - 6]) for i in range(6, len(law))]
    assert max(ratios) == pytest.approx(float(three.epsilon)) and three.epsilon / three.shift == Fraction(3, 10)


def _mixture_delta(shifts: list[float], weights: list[float], epsilon: float, *, remove: bool) -> float:
    """The hockey-stick of a one-dimensional mixture of normals against N(0, 1), by the place where the loss crosses."""
    low, high = -60.0, 60.0
    level = epsilon if remove else -epsilon
    for _ in range(200):
        z = (low + high) / 2
        loss = math.log(sum(w * math.exp(s * z - s * s / 2) for s, w in zip(shifts, weights, strict=True)))
        low, high = (low, z) if loss > level else (z, high)
    z = (low + high) / 2
    if remove:
        ours = sum(w * special.ndtr(s - z) for s, w in zip(shifts, weights, strict=True))
        return float(ours - math.exp(epsilon) * special.ndtr(-z))
    theirs = sum(w * special.ndtr(z - s) for s, w in zip(shifts, weights, strict=True))
    return float(special.ndtr(z) - math.exp(epsilon) * theirs)


def test_sampled_gaussians_of_a_group_are_a_binomial_mixture() -> None:
    event = Repeat(Poisson(Gaussian(multiplier=2), Fraction(1, 4)), 7)
    with pytest.raises(UnsupportedEventError, match="together=True"):
        group(event, 3)
    three = group(event, 3, together=True)
    assert three == Repeat(
        GaussianMixture(
            shifts=(0, Fraction(1, 2), 1, Fraction(3, 2)),
            weights=(Fraction(27, 64), Fraction(27, 64), Fraction(9, 64), Fraction(1, 64)),
        ),
        7,
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("angle", [0.0, 0.7, math.pi / 2, 2.5])
def test_no_two_vectors_beat_the_mixture(epsilon: float, angle: float) -> None:
    """Two units with vectors at an angle, each joining with probability 0.3: by a grid over the plane."""
    rate, first = 0.3, np.array([1.0, 0.0])
    second = 0.9 * np.array([math.cos(angle), math.sin(angle)])
    grid = np.linspace(-8, 9, 681)
    x, y = np.meshgrid(grid, grid)
    cell = (grid[1] - grid[0]) ** 2

    def normal(at: np.ndarray) -> np.ndarray:
        return np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 2) / (2 * math.pi)

    p = np.zeros_like(x)
    for a, b in product((0, 1), repeat=2):
        p += rate ** (a + b) * (1 - rate) ** (2 - a - b) * normal(a * first + b * second)
    q = normal(np.zeros(2))
    event = group(Poisson(Gaussian(multiplier=1), 0.3), 2, together=True)
    assert isinstance(event, GaussianMixture)
    shifts, weights = [float(s) for s in event.shifts], [float(w) for w in event.weights]
    for ours, theirs, remove in ((p, q, True), (q, p, False)):
        plane = float(np.maximum(ours - math.exp(epsilon) * theirs, 0.0).sum() * cell)
        assert plane <= _mixture_delta(shifts, weights, epsilon, remove=remove) + 1e-6


def test_tiny_binomial_weights_move_up_never_down() -> None:
    for rate, size in ((Fraction(1, 10**9), 20), (Fraction(9, 10), 300), (Fraction(1, 2), 700), (Fraction(1, 3), 900)):
        event = group(Poisson(Gaussian(multiplier=1), rate), size, together=True)
        assert isinstance(event, GaussianMixture)
        assert sum(event.weights) == 1 and max(event.shifts) == size
        for least in (0, size // 2, size - 1):
            ours = sum(w for s, w in zip(event.shifts, event.weights, strict=True) if s > least)
            theirs = sum(math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(least + 1, size + 1))
            assert ours >= theirs  # stochastically larger


def test_sampled_promises_go_by_the_chain() -> None:
    event = group(Poisson(Laplace(epsilon=1), Fraction(1, 10)), 3)
    assert isinstance(event, Pure)
    assert float(event.epsilon) == pytest.approx(3 * math.log(1 + math.expm1(1) / 10), rel=1e-11)
    sampled = group(Poisson(Approximate(epsilon=1, delta=1e-6), 0.1), 2)
    assert isinstance(sampled, Approximate) and sampled.delta > Fraction(2, 10**7)


def test_groups_may_touch_many_parts() -> None:
    parts = Partition("ward", (Laplace(epsilon=0.5), Pure(epsilon=1)))
    assert group(parts, 3) == Pure(epsilon=3)
    noisy = Partition("ward", (Gaussian(multiplier=2), Repeat(Gaussian(multiplier=2), 4)))
    assert group(noisy, 2) == Gaussian(multiplier=Fraction(1, 2))
    swapped = Partition("ward", (Pure(epsilon=1, relation="replace"), Pure(epsilon=2, relation="replace")))
    assert group(swapped, 2) == Pure(epsilon=6, relation="replace")
    mixed = Partition("ward", (Gaussian(multiplier=1), Pure(epsilon=2)))
    assert group(mixed, 2) == ZeroConcentrated(rho=8)
    irrational = group(Partition("ward", (Repeat(Gaussian(multiplier=1), 2),)), 2)
    assert isinstance(irrational, Gaussian) and 1 / irrational.multiplier**2 >= 8


def test_renyi_groups() -> None:
    def gaussian(order: float) -> float:
        return order / 2

    assert groups.renyi(gaussian, order=2, size=1) == 1
    assert groups.renyi(gaussian, order=2, size=2) == pytest.approx(3 * 4 / 2)
    assert groups.renyi(gaussian, order=2, size=3) == pytest.approx(9 * 8 / 2)
    assert groups.renyi(gaussian, order=5, size=4) >= 16 * gaussian(5)  # the truth for a Gaussian
    with pytest.raises(ArgumentError, match="order"):
        groups.renyi(gaussian, order=1.5, size=2)


def test_the_other_notions() -> None:
    assert groups.pure(epsilon=0.1, size=30) == 3
    assert groups.zero_concentrated(rho=0.1, size=3) == Fraction(9, 10)
    assert groups.gaussian(mu=0.5, size=3) == Fraction(3, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BestOf(Pure(epsilon=1), mean=3),
        lambda: Shuffled(Pure(epsilon=1, relation="replace"), 100),
        lambda: RandomAllocation(Gaussian(multiplier=1), 10),
        lambda: WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 5, 10),
        lambda: GaussianMixture(shifts=(0, 1), weights=(0.5, 0.5)),
        lambda: Poisson(ZeroConcentrated(rho=1), 0.5),
        lambda: Partition("ward", (Approximate(epsilon=1, delta=1e-6), Pure(epsilon=1))),
    ],
)
def test_what_is_not_known_is_refused(make: Callable[[], Event]) -> None:
    with pytest.raises(UnsupportedEventError):
        group(make(), 2, together=True)


def test_beyond_the_range_of_events_is_refused() -> None:
    for event in (Pure(epsilon=1e4), Approximate(epsilon=1e4, delta=1e-100), Laplace(epsilon=20)):
        with pytest.raises(UnsupportedEventError):
            group(event, 1000)
    for size in (0, -1, 1.5, True):
        with pytest.raises(ArgumentError, match="size"):
            group(Pure(epsilon=1), size)  # type: ignore[arg-type]
