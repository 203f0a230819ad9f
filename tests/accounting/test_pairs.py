"""Dominating pairs against closed forms, numerical integrals and enumeration of whole mechanisms."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, pairwise, product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from sfumato.accounting import pairs
from sfumato.accounting.pairs import Loss
from sfumato.events import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    PermuteAndFlip,
    Poisson,
    Pure,
    RandomizedResponse,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)

TAIL = 1e-15
EPSILONS = (0.0, 0.03, 0.3, 1.0, 2.5)


def curve(law: Loss, epsilon: float) -> float:
    """delta(epsilon) of a law: its atoms, and its pieces on a fine grid of its own (Simpson), cut at the kink."""
    total = law.infinite + float((law.masses * -np.expm1(np.minimum(epsilon - law.atoms, 0.0))).sum())
    for piece in law.pieces:
        z = np.linspace(piece.low, piece.high, 100_001)
        ratio = piece.log_ratio(z)
        loss = ratio if piece.forward else -ratio
        density = np.exp(piece.log_base(z) + (ratio if piece.forward else 0.0))
        total += float(integrate.simpson(density * -np.expm1(np.minimum(epsilon - loss, 0.0)), x=z))
    return total


def gauss(mu: float, x: float) -> float:
    """The curve of N(mu, 1) against N(0, 1) at x = e^epsilon, any x > 0."""
    middle = math.log(x) / mu
    return float(stats.norm.cdf(mu / 2 - middle) - x * stats.norm.cdf(-mu / 2 - middle))


def sampled(inner: Callable[[float], float], rate: float, x: float) -> float:
    """Removing a sampled unit: (1 - r) Q + r P against Q."""
    return 1 - x if x <= 1 - rate else rate * inner((x - 1 + rate) / rate)


def added(mu: float, rate: float, x: float) -> float:
    """Adding a sampled unit: Q against (1 - r) Q + r P, for Gaussians; the likelihood ratio rises, so Q wins below."""
    if 1 / x <= 1 - rate:
        return 0.0
    edge = math.log((1 / x - 1 + rate) / rate) / mu + mu / 2
    below = stats.norm.cdf(edge)
    return float(below - x * ((1 - rate) * below + rate * stats.norm.cdf(edge - mu)))


def enumerated(p: np.ndarray, q: np.ndarray, x: float) -> float:
    return float(np.maximum(p - x * q, 0.0).sum())


EVERY: dict[str, Event] = {
    "gaussian": Gaussian(multiplier=1.5),
    "sampled gaussian": Poisson(Gaussian(multiplier=0.7), 0.01),
    "rarely sampled": Poisson(Gaussian(multiplier=0.7), 1e-9),
    "nearly all sampled": Poisson(Gaussian(multiplier=0.7), 1 - Fraction(1, 10**9)),
    "twice sampled": Poisson(Poisson(Laplace(epsilon=1), 0.5), 0.1),
    "mixture": GaussianMixture(shifts=(0, 1, 2), weights=(Fraction(9, 10), Fraction(3, 40), Fraction(1, 40))),
    "laplace": Laplace(epsilon=0.7),
    "exponential": Exponential(epsilon=0.7),
    "small exponential": Exponential(epsilon=1e-6),
    "sampled exponential": Poisson(Exponential(epsilon=2), 0.2),
    "permute and flip": PermuteAndFlip(epsilon=0.7),
    "pure": Pure(epsilon=3),
    "approximate": Approximate(epsilon=1, delta=1e-3),
    "randomized response": RandomizedResponse(epsilon=1, categories=5),
    "discrete laplace": DiscreteLaplace(epsilon=1, shift=3),
    "discrete gaussian": DiscreteGaussian(variance=2, shift_squared=9),
    "without replacement": WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 7, 100),
    "without replacement, laplace": WithoutReplacement(Laplace(epsilon=1, relation="replace"), 7, 100),
    "all taken": WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 100, 100),
    "shuffled": Shuffled(RandomizedResponse(epsilon=1, categories=3, relation="replace"), 50),
}


@pytest.mark.parametrize("name", EVERY)
def test_both_laws_of_a_pair_are_probabilities(name: str) -> None:
    for law in pairs.directions(EVERY[name], TAIL):
        p, q = law.infinite + float(law.masses.sum()), float((law.masses * np.exp(-law.atoms)).sum())
        for piece in law.pieces:
            z = np.linspace(piece.low, piece.high, 100_001)
            own, other = np.exp(piece.log_base(z) + piece.log_ratio(z)), np.exp(piece.log_base(z))
            p += float(integrate.simpson(own if piece.forward else other, x=z))
            q += float(integrate.simpson(other if piece.forward else own, x=z))
        assert p == pytest.approx(1, abs=1e-9) and q <= 1 + 1e-9 and law.cut <= 2 * TAIL
        assert q == pytest.approx(1 - law.infinite, abs=1e-9)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
def test_sampled_gaussians_have_the_curve_of_the_formula(mu: float, rate: float) -> None:
    event = Poisson(Gaussian(multiplier=1 / Fraction(repr(mu))), rate)
    remove, add = pairs.directions(event, TAIL)
    for epsilon in EPSILONS:
        x = math.exp(epsilon)
        assert curve(remove, epsilon) == pytest.approx(sampled(lambda y: gauss(mu, y), rate, x), rel=1e-6, abs=1e-13)
        assert curve(add, epsilon) == pytest.approx(added(mu, rate, x), rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("size", [0.01, 1.0, 8.0])
def test_laplace_has_its_curve_and_so_has_its_sampling(size: float) -> None:
    def truth(x: float) -> float:
        return 1 - x if x <= math.exp(-size) else max(1 - math.sqrt(x * math.exp(-size)), 0.0)

    (law,) = pairs.directions(Laplace(epsilon=size), TAIL)
    forward, _ = pairs.directions(Poisson(Laplace(epsilon=size), 0.1), TAIL)
    for epsilon in EPSILONS:
        assert curve(law, epsilon) == pytest.approx(truth(math.exp(epsilon)), abs=1e-8)
        assert curve(forward, epsilon) == pytest.approx(sampled(truth, 0.1, math.exp(epsilon)), abs=1e-8)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(0.01, 6), st.floats(0, 1), st.floats(-1.5, 1.5))
def test_every_bounded_range_pair_lies_below_the_envelope(size: float, share: float, at: float) -> None:
    t, epsilon = share * size, at * size
    (law,) = pairs.directions(Exponential(epsilon=repr_fraction(size)), TAIL)
    p = -math.expm1(t - size) / -math.expm1(-size)  # at loss t; the rest at t - size
    two = p * -math.expm1(min(epsilon - t, 0.0)) + (1 - p) * -math.expm1(min(epsilon - t + size, 0.0))
    assert two <= _exact_envelope(size, epsilon) + 1e-12
    if abs(epsilon) < size:  # and the law of the pair is the envelope itself
        assert curve(law, epsilon) == pytest.approx(_exact_envelope(size, epsilon), abs=1e-8)


def repr_fraction(value: float) -> Fraction:
    return Fraction(repr(value))


def _exact_envelope(size: float, epsilon: float) -> float:
    if epsilon >= size:
        return 0.0
    if epsilon <= -size:
        return -math.expm1(epsilon)
    return math.expm1((epsilon - size) / 2) ** 2 / -math.expm1(-size)


def test_the_envelope_is_reached_at_its_best_range() -> None:
    size, epsilon = 1.5, 0.4
    t = (epsilon + size) / 2
    p = -math.expm1(t - size) / -math.expm1(-size)
    assert p * -math.expm1(epsilon - t) == pytest.approx(_exact_envelope(size, epsilon), rel=1e-12)


def _laplace_curve(size: float, log_x: float) -> float:
    if log_x <= -size:
        return -math.expm1(log_x)
    return max(-math.expm1((log_x - size) / 2), 0.0)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(0.05, 4), st.floats(0.05, 4), st.floats(-1, 1))
def test_one_laplace_coordinate_with_the_whole_shift_is_worst(a: float, b: float, at: float) -> None:
    epsilon = at * (a + b)
    total = 0.5 * _laplace_curve(b, epsilon - a) + 0.5 * math.exp(-a) * _laplace_curve(b, epsilon + a)
    kinks = sorted({-a, a, *(e for e in (epsilon - b, epsilon + b) if -a < e < a)})
    for low, high in pairwise(kinks):
        total += integrate.quad(
            lambda loss: math.exp((loss - a) / 2) / 4 * _laplace_curve(b, epsilon - loss), low, high, epsabs=1e-13
        )[0]
    assert total <= _laplace_curve(a + b, epsilon) + 1e-11


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 3), st.integers(1, 3), st.floats(0.1, 2), st.floats(0, 1))
def test_one_discrete_laplace_coordinate_with_the_whole_shift_is_worst(a: int, b: int, per: float, at: float) -> None:
    k = np.arange(-400, 401)
    noise = np.exp(-per * np.abs(k)) * math.tanh(per / 2)
    x = math.exp(at * per * (a + b))

    def pair(shift: int) -> tuple[np.ndarray, np.ndarray]:
        return np.exp(-per * np.abs(k - shift)) * math.tanh(per / 2), noise

    p = np.multiply.outer(pair(a)[0], pair(b)[0])
    q = np.multiply.outer(noise, noise)
    assert enumerated(p, q, x) <= enumerated(*pair(a + b), x) + 1e-12


@pytest.mark.parametrize("rate", [1, Fraction(1, 3), 1 - Fraction(1, 10**6)])
@pytest.mark.parametrize("kind", ["response", "laplace", "gaussian"])
def test_discrete_noise_is_what_enumeration_gives(kind: str, rate: Fraction) -> None:
    k = np.arange(-300, 301).astype(float)
    event: Event
    if kind == "response":
        event = RandomizedResponse(epsilon=1.2, categories=4)
        p = np.array([math.exp(1.2), 1, 1, 1]) / (math.exp(1.2) + 3)
        q = np.roll(p, 1)
    elif kind == "laplace":
        event = DiscreteLaplace(epsilon=1.2, shift=4)
        weight = np.exp(-0.3 * np.abs(k))
        p, q = np.roll(weight, 4) / weight.sum(), weight / weight.sum()
    else:
        event = DiscreteGaussian(variance=0.8, shift_squared=4)
        weight = np.exp(-k * k / 1.6)
        p, q = np.roll(weight, 2) / weight.sum(), weight / weight.sum()
    laws = pairs.directions(Poisson(event, rate), TAIL)
    share = float(rate)
    mixed = share * p + float(1 - rate) * q
    for epsilon in EPSILONS:
        assert curve(laws[0], epsilon) == pytest.approx(enumerated(mixed, q, math.exp(epsilon)), abs=1e-12)
        assert curve(laws[-1], epsilon) == pytest.approx(enumerated(q, mixed, math.exp(epsilon)), abs=1e-12)


@pytest.mark.parametrize("rate", [1e-3, 0.5, 1 - 1e-9])
def test_a_mixture_of_gaussians_is_what_integration_gives(rate: float) -> None:
    shifts, weights = np.array([0.3, 1.0, 2.0]), np.array([0.5, 0.3, 0.2])
    inner = GaussianMixture(shifts=(0.3, 1, 2), weights=(0.5, 0.3, 0.2))
    laws = pairs.directions(Poisson(inner, rate), TAIL)
    z = np.linspace(-10, 13, 200_001)
    q = stats.norm.pdf(z)
    p = (1 - rate) * q + rate * (weights[:, None] * stats.norm.pdf(z - shifts[:, None])).sum(axis=0)
    for epsilon in EPSILONS:
        x = math.exp(epsilon)
        for law, own, other in ((laws[0], p, q), (laws[1], q, p)):
            assert curve(law, epsilon) == pytest.approx(
                float(integrate.simpson(np.maximum(own - x * other, 0), x=z)), rel=1e-6, abs=1e-12
            )


@pytest.mark.parametrize("sample", [1, 2, 4])
def test_a_sample_without_replacement_is_no_worse_than_its_pair(sample: int) -> None:
    """All samples of 4 units out of which one differs, and randomised response on the number of ones in the sample."""
    local = 1.3
    inner = RandomizedResponse(epsilon=local, categories=sample + 1, relation="replace")
    event = WithoutReplacement(inner, sample, 4)
    (law,) = pairs.directions(event, TAIL)
    keep, other = math.exp(local) / (math.exp(local) + sample), 1 / (math.exp(local) + sample)

    def outcome(data: tuple[int, ...]) -> np.ndarray:
        chance = np.zeros(sample + 1)
        for drawn in combinations(data, sample):
            chance += np.where(np.arange(sample + 1) == sum(drawn), keep, other)
        return chance / math.comb(4, sample)

    worst = 0.0
    for rest in product((0, 1), repeat=3):
        first, second = outcome((1, *rest)), outcome((0, *rest))
        for epsilon in (-1.0, -0.2, *EPSILONS):
            x = math.exp(epsilon)
            bound = curve(law, epsilon)
            assert enumerated(first, second, x) <= bound + 1e-12 and enumerated(second, first, x) <= bound + 1e-12
            worst = max(worst, enumerated(first, second, x) / max(bound, 1e-9))
    assert worst > 0.999  # some data and epsilon reach it


def test_without_replacement_the_curve_is_the_sampled_one_above_1_and_symmetric() -> None:
    event = WithoutReplacement(Gaussian(multiplier=0.5, relation="replace"), 3, 100)
    (law,) = pairs.directions(event, TAIL)
    for epsilon in EPSILONS:
        x = math.exp(epsilon)
        value = curve(law, epsilon)
        assert value == pytest.approx(sampled(lambda y: gauss(2.0, y), 0.03, x), abs=1e-9)
        assert curve(law, -epsilon) == pytest.approx(1 - 1 / x + value / x, abs=1e-9)


@pytest.mark.parametrize("users", [2, 3, 5])
@pytest.mark.parametrize("categories", [2, 3])
def test_shuffled_reports_are_no_worse_than_their_pair(users: int, categories: int) -> None:
    local = 1.1
    event = Shuffled(RandomizedResponse(epsilon=local, categories=categories, relation="replace"), users)
    (law,) = pairs.directions(event, TAIL)

    def reports(values: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        chance: dict[tuple[int, ...], float] = {}
        whole = math.exp(local) + categories - 1
        for seen in product(range(categories), repeat=users):
            weight = math.prod((math.exp(local) if a == b else 1) / whole for a, b in zip(values, seen, strict=True))
            chance[tuple(sorted(seen))] = chance.get(tuple(sorted(seen)), 0.0) + weight
        return chance

    for others in product(range(categories), repeat=users - 1):
        p, q = reports((0, *others)), reports((1, *others))
        for epsilon in EPSILONS:
            x = math.exp(epsilon)
            assert sum(max(p[key] - x * q[key], 0) for key in p) <= curve(law, epsilon) + 1e-12


@pytest.mark.parametrize("name", EVERY)
def test_what_is_attained_lies_below_what_dominates(name: str) -> None:
    event = EVERY[name]
    above, below = pairs.directions(event, TAIL), pairs.attained(event, TAIL)
    for epsilon in EPSILONS:
        top = max(curve(law, epsilon) for law in above)
        assert max(curve(law, epsilon) for law in below) <= top + 1e-8
        if pairs.is_attained(event):
            assert max(curve(law, epsilon) for law in below) == pytest.approx(top, abs=1e-8)


def test_selections_do_not_attain_their_pair_however_they_are_sampled() -> None:
    for inner in (Exponential(epsilon=1), PermuteAndFlip(epsilon=1)):
        assert not pairs.is_attained(inner)
        assert not pairs.is_attained(Poisson(inner, 0.5)) and not pairs.is_attained(Poisson(Poisson(inner, 0.5), 0.5))
    assert pairs.is_attained(Poisson(Laplace(epsilon=1), 0.5))


def test_the_attained_selections_are_those_of_real_candidates() -> None:
    """Two candidates whose scores change places, drawn by exp(score eps/2); permute-and-flip by its definition."""
    epsilon = 0.9
    (two,) = pairs.attained(Exponential(epsilon=epsilon), TAIL)
    scores = np.array([0.5, -0.5])
    moved, base = np.exp(epsilon / 2 * scores), np.exp(-epsilon / 2 * scores)
    moved, base = moved / moved.sum(), base / base.sum()
    for at in (0.0, 0.1, 0.3):
        assert curve(two, at) == pytest.approx(enumerated(moved, base, math.exp(at)), abs=1e-12)
    flip = pairs.attained(PermuteAndFlip(epsilon=epsilon), TAIL)
    worse = math.exp(-epsilon) / 2  # the worse candidate comes first (1/2), and is taken with chance e^-epsilon
    p, q = np.array([0.5, 0.5]), np.array([1 - worse, worse])
    for at in (0.0, 0.2, 0.6):
        assert curve(flip[0], at) == pytest.approx(enumerated(p, q, math.exp(at)), abs=1e-12)
        assert curve(flip[1], at) == pytest.approx(enumerated(q, p, math.exp(at)), abs=1e-12)


def test_nothing_is_claimed_from_below_where_no_mechanism_is_known() -> None:
    for event in (Shuffled(Pure(epsilon=1, relation="replace"), 10),):
        (law,) = pairs.attained(event, TAIL)
        assert curve(law, 0.0) == 0.0
    (law,) = pairs.attained(ZeroConcentrated(rho=0.5), TAIL)  # a Gaussian with mu = 1
    assert curve(law, 1.0) == pytest.approx(gauss(1.0, math.e), rel=1e-7)


@pytest.mark.parametrize("rate", [Fraction(1, 10**9), Fraction(1, 100), 1 - Fraction(1, 10**12)])
@pytest.mark.parametrize("multiplier", [0.05, 0.3, 1.0, 100.0])
def test_losses_keep_their_digits_at_all_rates(rate: Fraction, multiplier: float) -> None:
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=multiplier), rate), TAIL)
    (piece,) = law.pieces
    z = np.linspace(piece.low, piece.high, 41)
    with mp.workdps(50):
        mu, r = mp.mpf(piece.steepest), mp.mpf(rate.numerator) / rate.denominator
        for at, found in zip(z.tolist(), piece.log_ratio(z).tolist(), strict=True):
            exponent = mu * at - mu * mu / 2
            truth = mp.log1p(r * mp.expm1(exponent))
            slope = r * mu * mp.exp(exponent - truth)
            assert abs(found - truth) <= 4 * 2.0**-53 * (abs(truth) + slope * (abs(at) + mu))


def test_atoms_keep_their_digits_at_rates_near_1() -> None:
    rate = 1 - Fraction(1, 10**12)
    _, add = pairs.directions(Poisson(Pure(epsilon=60), rate), TAIL)
    with mp.workdps(50):
        truth = -mp.log(mp.mpf(10) ** -12 + (1 - mp.mpf(10) ** -12) * mp.exp(-60))
    assert float(add.atoms.max()) == pytest.approx(float(truth), rel=1e-15)


@pytest.mark.parametrize("multiplier", [0.02, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.9])
def test_the_loss_is_zero_where_it_is_said_to_be(multiplier: float, rate: float) -> None:
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=multiplier), rate), TAIL)
    (piece,) = law.pieces
    assert piece.zero() == pytest.approx(piece.steepest / 2, rel=1e-15, abs=1e-15)
    wanted = np.linspace(*piece.log_ratio(np.array([piece.low, piece.high])), 33)[1:-1]
    found = piece.log_ratio(piece.place(wanted))
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_pairs_can_be_imported_first() -> None:
    subprocess.run([sys.executable, "-c", "import sfumato.accounting.pairs"], check=True)
