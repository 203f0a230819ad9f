"""Sampling: the textbook formula, whole curves by enumeration, and why shuffled batches are something else."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import gdp
from sfumato.accounting.amplify import curves, sampling
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    BestOf,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1, 8, 50, 1e4])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 1])
def test_the_textbook_formula(epsilon: float, rate: float) -> None:
    with mpmath.workdps(50):
        true = mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon)))
        found, chance = sampling.amplified(epsilon=epsilon, delta=1e-6, rate=rate)
        assert true * (1 - mpmath.mpf(10) ** -15) <= found <= true * (1 + mpmath.mpf(10) ** -12)
    assert chance == pytest.approx(1e-6 * rate)
    assert Fraction(chance) >= Fraction(1, 10**6) * Fraction(str(rate))


def test_a_pure_event_under_poisson_sampling() -> None:
    """The curve of an event known by its epsilon only, by enumeration of join and report."""
    m, q = math.e, 0.3
    report = np.array([m / (1 + m), 1 / (1 + m)])
    present, absent = q * report + (1 - q) * report[::-1], report[::-1]
    for epsilon in (0.0, 0.1, 0.3, 0.41, 0.5):
        remove = np.maximum(present - math.exp(epsilon) * absent, 0).sum()
        add = np.maximum(absent - math.exp(epsilon) * present, 0).sum()
        found = sampling.delta(Poisson(Pure(epsilon=1), q), epsilon)
        assert add <= remove + 1e-15
        assert found == pytest.approx(remove, rel=1e-9, abs=1e-15)
        assert found >= remove * (1 - 1e-15)


def test_a_sample_of_two_out_of_four() -> None:
    """Every sampled unit's bit is sent by randomized response and summed: enumerate samples and reports."""
    local = 1.0
    keep = math.exp(local) / (1 + math.exp(local))

    def law(data: tuple[int, ...]) -> np.ndarray:
        chances = np.zeros(3)
        for sample in combinations(range(4), 2):
            for reports in product((0, 1), repeat=2):
                share = math.prod(
                    keep if report == data[i] else 1 - keep for i, report in zip(sample, reports, strict=True)
                )
                chances[sum(reports)] += share / 6
        return chances

    event = WithoutReplacement(RandomizedResponse(epsilon=local, categories=2, relation="replace"), 2, 4)
    for others in product((0, 1), repeat=3):
        p, q = law((0, *others)), law((1, *others))
        for epsilon in (0.0, 0.2, 0.5):
            for first, second in ((p, q), (q, p)):
                true = np.maximum(first - math.exp(epsilon) * second, 0).sum()
                assert true <= sampling.delta(event, epsilon) + 1e-15


def test_a_gaussian_under_poisson_sampling_by_integration() -> None:
    mu, q = 1.0, 0.2
    x = np.linspace(-12, 13, 200_001)
    zero, one = np.exp(-x * x / 2), np.exp(-((x - mu) ** 2) / 2)
    scale = (x[1] - x[0]) / math.sqrt(2 * math.pi)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        mixed = (1 - q) * zero + q * one
        remove = np.maximum(mixed - math.exp(epsilon) * zero, 0).sum() * scale
        add = np.maximum(zero - math.exp(epsilon) * mixed, 0).sum() * scale
        found = sampling.delta(Poisson(Gaussian(multiplier=1), q), epsilon)
        assert found == pytest.approx(max(remove, add), rel=1e-6)


KINDS: list[Event] = [
    Pure(epsilon=1),
    Laplace(epsilon=2),
    Approximate(epsilon=1, delta=1e-9),
    Gaussian(multiplier=0.8),
    ZeroConcentrated(rho=0.5),
]


@pytest.mark.parametrize("inner", KINDS, ids=lambda event: type(event).__name__)
def test_a_sample_of_everybody_is_no_sample(inner: Event) -> None:
    curve = curves.curve(inner)
    for epsilon in (0.0, 0.5, 0.99, 3.0):
        assert sampling.delta(Poisson(inner, 1), epsilon) == pytest.approx(curve(epsilon), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("inner", KINDS, ids=lambda event: type(event).__name__)
def test_epsilon_and_delta_agree(inner: Event) -> None:
    event = Poisson(inner, 0.05)
    found = sampling.epsilon(event, 1e-6)
    assert sampling.delta(event, found) <= 1e-6
    assert sampling.delta(event, found * 0.999) > 1e-6


def test_curves_against_their_own_definitions() -> None:
    for mu, epsilon in ((1.0, 1.0), (0.5, 2.0), (3.0, 0.1), (1e-3, 0.01), (0.1, 2.0)):
        certified = gdp.enclose_delta(Fraction(str(mu)), Fraction(str(epsilon)), 400)
        found = curves.curve(Gaussian(multiplier=1 / Fraction(str(mu))))(epsilon)
        true = Fraction(certified.hi, 1 << 400)
        assert true <= Fraction(found) <= true * Fraction(1000001, 1000000)
    x = np.linspace(-60, 60, 1_200_001)
    p, q = np.exp(-np.abs(x)) / 2, np.exp(-np.abs(x - 1.5)) / 2
    for epsilon in (0.0, 0.5, 1.2):
        true = np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0])
        assert curves.curve(Laplace(epsilon=1.5))(epsilon) == pytest.approx(true, rel=1e-3)
    # rho-zCDP holds for a Gaussian of that rho, whose exact curve must lie below
    for epsilon in (0.5, 3.0, 8.0):
        rho, exact = curves.curve(ZeroConcentrated(rho=0.5)), curves.curve(Gaussian(multiplier=1))
        assert exact(epsilon) < rho(epsilon) < 20 * exact(epsilon)


@pytest.mark.parametrize("size", [1e-9, 0.3, 2, 40, 1e4])
def test_curves_of_pure_noise_are_above_the_truth_and_close(size: float) -> None:
    with mpmath.workdps(60):
        whole = mpmath.mpf(Fraction(str(size)).numerator) / Fraction(str(size)).denominator
        for share in (0.0, 0.5, 0.999, 1.0, 1.5):
            at = mpmath.mpf(size * share)
            gap = mpmath.exp(min(at - whole, 0))
            truth = {
                Laplace(epsilon=size): 1 - mpmath.sqrt(gap),
                Pure(epsilon=size): (1 - gap) / (1 + mpmath.exp(-whole)),
                RandomizedResponse(epsilon=size, categories=9): (1 - gap) / (1 + 8 * mpmath.exp(-whole)),
                Exponential(epsilon=size): (1 - mpmath.sqrt(gap)) ** 2 / (1 - mpmath.exp(-whole)),
            }
            for event, true in truth.items():
                found = curves.curve(event)(size * share)
                assert float(true) * (1 - 1e-15) <= found <= float(true) * (1 + 1e-10) + 1e-15 * (1 + size)
                assert share <= 1 or found == 0


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.sampled_from(KINDS), st.floats(1e-9, 1), st.floats(1e-9, 1), st.sampled_from(["1e-100", "1e-12", "1e-5", "0.1"])
)
def test_monotone_in_the_rate(inner: Event, one: float, two: float, delta: str) -> None:
    low, high = sorted((one, two))
    if isinstance(inner, Approximate) and delta in ("1e-100", "1e-12"):
        return
    cheap, dear = (sampling.epsilon(Poisson(inner, rate), Fraction(delta)) for rate in (low, high))
    assert 0 <= cheap <= dear * (1 + 1e-8)
    assert dear <= sampling.epsilon(Poisson(inner, 1), Fraction(delta)) * (1 + 1e-8)


def test_noise_of_too_many_atoms_is_priced_by_its_epsilon() -> None:
    fine, pure = DiscreteLaplace(epsilon=1, shift=10**9), Pure(epsilon=1)
    assert sampling.delta(Poisson(fine, 0.1), 0.05) == sampling.delta(Poisson(pure, 0.1), 0.05) > 0


def test_samples_of_samples_and_of_shuffles() -> None:
    twice = Poisson(Poisson(Pure(epsilon=1), 0.1), 0.2)
    once = Poisson(Pure(epsilon=1), 0.02)
    assert sampling.epsilon(twice, 1e-6) == pytest.approx(sampling.epsilon(once, 1e-6), rel=1e-6)
    shuffled = Shuffled(Pure(epsilon=1, relation="replace"), 1000)
    assert 0 < sampling.epsilon(WithoutReplacement(shuffled, 10, 100), 1e-5) < 0.03


def test_samples_of_several_releases() -> None:
    """Four Gaussians of multiplier 2 are one of multiplier 1: here by privacy loss, there by the exact curve."""
    several = sampling.epsilon(Poisson(Repeat(Gaussian(multiplier=2), 4), 0.1), 1e-5)
    one = sampling.epsilon(Poisson(Gaussian(multiplier=1), 0.1), 1e-5)
    assert one * (1 - 1e-6) <= several <= one * 1.01


def test_what_has_no_theorem_is_refused() -> None:
    with pytest.raises(ArgumentError, match="add-remove or zero-out"):
        Poisson(Gaussian(multiplier=1, relation="replace"), 0.1)
    with pytest.raises(ArgumentError, match="replace"):
        WithoutReplacement(Gaussian(multiplier=1), 10, 100)
    with pytest.raises(UnsupportedEventError, match="larger delta"):
        sampling.epsilon(Poisson(Approximate(epsilon=1, delta=1e-3), 0.5), 1e-6)
    with pytest.raises(UnsupportedEventError, match="BestOf"):
        sampling.epsilon(Poisson(BestOf(Gaussian(multiplier=1), mean=3), 0.5), 1e-6)
    with pytest.raises(ArgumentError, match="rate"):
        sampling.amplified(epsilon=1, rate=1.5)
    with pytest.raises(ArgumentError, match="Poisson or WithoutReplacement"):
        sampling.epsilon(Pure(epsilon=1), 1e-6)  # type: ignore[arg-type]


def test_fixed_batches_are_priced_once_per_epoch() -> None:
    step = Gaussian(multiplier=1, relation="zero-out")
    assert sampling.fixed_batches(step, epochs=7) == Repeat(step, 7)
    with pytest.raises(ArgumentError, match="zero-out"):
        sampling.fixed_batches(Gaussian(multiplier=1), epochs=7)
    assert "not Poisson" in sampling.shuffled_batches_warning()


# one epoch at delta 1e-5: (multiplier, batches, the price of Poisson sampling, what the attack attains)
SHUFFLED = [
    (0.5, 1000, 3.23888, 9.996),
    (0.6, 1000, 1.42526, 7.987),
    (0.8, 1000, 0.30355, 5.235),
    (1.0, 1000, 0.14890, 2.882),
    (0.5, 10000, 1.17527, 9.991),
]


@pytest.mark.parametrize(("multiplier", "batches", "poisson", "attained"), SHUFFLED)
def test_shuffled_batches_leak_more_than_poisson_sampling_claims(
    multiplier: float, batches: int, poisson: float, attained: float
) -> None:
    found = sampling.shuffled_batches_at_least(multiplier=multiplier, batches=batches, delta=1e-5)
    assert found == pytest.approx(attained, abs=1.1e-3)
    assert found > 2 * poisson
    honest = gdp.least_epsilon(1 / Fraction(str(multiplier)) ** 2, Fraction(1, 10**5))
    assert found <= honest  # and the price without amplification covers it


def test_the_attack_by_simulation() -> None:
    """Shuffle for real: with one unit of +1 among -1s, "some batch stands out" is as likely as the formula says."""
    random = np.random.default_rng(2)
    scale, batches, size, cut, runs = 1.0, 20, 5, 3.0, 40_000
    seen = []
    for mine in (1.0, 0.0):
        place = random.integers(0, batches, runs)
        sums = np.full((runs, batches), -float(size))
        sums[np.arange(runs), place] += 1 + mine
        noisy = sums + scale * random.standard_normal(sums.shape)
        seen.append(float((noisy.max(axis=1) >= cut - size).mean()))
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    for often, shift in zip(seen, (2, 1), strict=True):
        assert often == pytest.approx(1 - phi(cut - shift) * phi(cut) ** (batches - 1), abs=0.012)


@pytest.mark.parametrize("multiplier", [1e-3, 1, 1e6])
@pytest.mark.parametrize("batches", [1, 2, 10**9])
@pytest.mark.parametrize("delta", ["1e-100", "1e-5", "0.9"])
def test_the_attack_at_the_ends_of_its_range(multiplier: float, batches: int, delta: str) -> None:
    found = sampling.shuffled_batches_at_least(multiplier=multiplier, batches=batches, delta=Fraction(delta))
    honest = gdp.least_epsilon(1 / Fraction(str(multiplier)) ** 2, Fraction(delta))
    assert 0 <= found <= honest
