"""Privacy-loss distributions: certified from both sides, against published values, closed forms and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from sfumato.accounting import inversion, pairs, pld, quadrature, renyi, textbook
from sfumato.accounting.interval import Interval
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
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
    RandomizedResponse,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)

MNIST = Fraction(256, 60000)


def sgd(rate: float | Fraction, multiplier: float | Fraction, steps: int) -> Event:
    return Repeat(Poisson(Gaussian(multiplier=multiplier), rate), steps)


MIXED = Sequence((sgd(0.005, 0.8, 100), Repeat(Gaussian(multiplier=8), 200), Repeat(Laplace(epsilon=0.1), 100)))

# (event, delta, value): published settings, recomputed by others as upper bounds on a lattice of step 1e-4; the steps
# of an epoch rounded down
UPPER_BOUNDS = {
    "MNIST tutorial, sigma 1.3": (sgd(MNIST, 1.3, 3515), 1e-5, 0.864459),
    "MNIST tutorial, sigma 1.1": (sgd(MNIST, 1.1, 14062), 1e-5, 2.381686),
    "MNIST tutorial, sigma 0.7": (sgd(MNIST, 0.7, 10546), 1e-5, 5.639447),
    "textbook, 1000 steps": (sgd(0.01, 2, 1000), 1e-5, 0.62203),
    "textbook, 600 steps": (sgd(MNIST, 1, 600), 1e-5, 0.577329),
    "Abadi, 10,000 steps": (sgd(0.01, 4, 10_000), 1e-5, 0.946999),
    "Abadi, 40,000 steps": (sgd(0.01, 4, 40_000), 1e-5, 2.033357),
    "federated averaging": (sgd(Fraction(5000, 763430), 1, 5000), 1e-9, 3.898829),
    "Tramer-Boneh, MNIST": (sgd(Fraction(512, 60000), 1.23, 40 * 60000 // 512), 1e-5, 2.363291),
    "Tramer-Boneh, Fashion": (sgd(Fraction(2048, 60000), 2.15, 40 * 60000 // 2048), 1e-5, 2.388406),
    "Tramer-Boneh, CIFAR": (sgd(Fraction(1024, 50000), 1.54, 30 * 50000 // 1024), 1e-5, 2.386302),
    "one method's README": (sgd(0.005, 0.8, 1000), 1e-6, 2.004112),
    "the same, mixed": (MIXED, 1e-6, 11.149201),
    "small batches": (sgd(Fraction(256, 100000), 0.9, 4900), 1e-5, 1.139973),
}


@pytest.mark.parametrize("name", UPPER_BOUNDS)
def test_published_settings_are_met_from_below_and_closely(name: str) -> None:
    event, delta, value = UPPER_BOUNDS[name]
    found = pld.epsilon(event, delta)
    assert found.upper <= value + 1e-6 and value - found.upper < 4e-4
    assert found.width < 1e-5


# Certified intervals of other accountants, which must meet ours
INTERVALS = {
    "README": (sgd(0.005, 0.8, 1000), 1e-6, 1.999088, 2.009125),
    "mixed": (MIXED, 1e-6, 11.144776, 11.154860),
    "small batches": (sgd(Fraction(256, 100000), 0.9, 4900), 1e-5, 1.129925, 1.149927),
    "laplace 0.1": (Repeat(Laplace(epsilon=0.1), 100), 1e-6, 4.692449, 4.692667),
    "laplace 1": (Repeat(Laplace(epsilon=1), 20), 1e-4, 18.093628, 18.093818),
}


@pytest.mark.parametrize("name", INTERVALS)
def test_intervals_of_others_meet_ours(name: str) -> None:
    event, delta, low, high = INTERVALS[name]
    found = pld.epsilon(event, delta, accuracy=1e-5)
    assert found.upper >= low - 1e-6 and found.lower <= high + 1e-6 and found.width < 3e-4 * max(1.0, found.upper)


@pytest.mark.parametrize(
    ("event", "delta", "value"),
    [
        (Repeat(Pure(epsilon=0.1), 100), 1e-6, 4.774568),
        (Repeat(Pure(epsilon=0.01), 1000), 1e-6, 1.365447),
        (Repeat(Approximate(epsilon=0.1, delta=1e-9), 30), 1e-6, 2.348259),
        (Repeat(Pure(epsilon=0.5), 20), 1e-5, 9.859411),
    ],
)
def test_optimal_composition_is_exact(event: Event, delta: float, value: float) -> None:
    found = pld.epsilon(event, delta)
    assert found.width < 1e-7 and found.upper == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(
    ("event", "epsilon", "value"),
    [
        (Repeat(Pure(epsilon=0.1), 10), 0.5, 9.929627e-3),
        (Repeat(Pure(epsilon=1), 2), 1, 0.3378347121),
        (DiscreteGaussian(variance=1), 1, 0.14135134),
        (DiscreteGaussian(variance=4), 1, 7.2487768e-3),
        (DiscreteGaussian(variance=16), 1, 3.0554546e-6),
        (DiscreteGaussian(variance=100), 0.5, 6.9343703e-9),
        (Gaussian(multiplier=1), 1, 0.1269367375),
        (Gaussian(multiplier=Fraction(1, 3)), 1, 0.7876007414),
    ],
)
def test_known_deltas(event: Event, epsilon: float, value: float) -> None:
    found = pld.delta(event, epsilon)
    assert found.lower == pytest.approx(value, rel=1e-6) and found.upper == pytest.approx(value, rel=1e-6)


GRID = [
    (rate, multiplier, steps, delta)
    for rate, multiplier, steps in [
        (1e-3, 2.0, 3000),
        (0.01, 2.0, 5000),
        (0.1, 1.0, 30),
        (0.5, 5.0, 200),
        (0.999, 10.0, 100),
    ]
    for delta in (1e-10, 1e-5, 1e-2)
]
HARD = [(1e-4, 1.0, 2000, 1e-5), (1e-3, 1.0, 3000, 1e-10), (0.01, 0.5, 50, 1e-5), (0.3, 0.3, 4, 1e-6)]


@pytest.mark.parametrize(("rate", "multiplier", "steps", "delta"), [*GRID, *HARD])
def test_two_independent_algorithms_agree(rate: float, multiplier: float, steps: int, delta: float) -> None:
    """Inversion of the moment function, and convolution on a lattice."""
    for law in pairs.directions(Poisson(Gaussian(multiplier=multiplier), rate), 1e-9 * delta / steps):
        parts = [(law, steps)]
        one = inversion.epsilon(parts, delta)
        two = pld._on_lattice(parts, delta, 1e-3)
        assert one.lower <= two.upper and two.lower <= one.upper
        assert two.width < 5e-3 * max(1.0, two.upper)
        if (rate, multiplier, steps, delta) in GRID:  # rare large losses and few steps are left to the lattice
            assert one.width < 1e-5


RARE: dict[str, tuple[Event, int, float]] = {
    "a million steps at 1e-5": (Poisson(Gaussian(multiplier=0.595851), 1e-5), 10**6, 1e-12),
    "fixed samples": (WithoutReplacement(Gaussian(multiplier=0.8, relation="replace"), 1, 10**4), 10**5, 1e-8),
    "fixed samples of ten": (WithoutReplacement(Gaussian(multiplier=0.6, relation="replace"), 10, 10**6), 10**5, 1e-7),
}


@pytest.mark.parametrize("name", RARE)
def test_rare_samples_need_no_lattice(name: str) -> None:
    """Nearly nothing happens in a step, and some large losses in all: the two ways agree, and one is far tighter."""
    event, steps, delta = RARE[name]
    law = pairs.directions(event, 1e-9 * delta / steps)[0]
    one, two = inversion.epsilon([(law, steps)], delta), pld._on_lattice([(law, steps)], delta, 0.02)
    assert two.lower <= one.lower <= one.upper <= two.upper
    assert one.width < 5e-4 * one.upper < two.width


def test_a_hundred_thousand_fixed_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """On lattices this took seconds, for [0.3178, 0.4094]."""
    monkeypatch.delattr(pld, "_on_lattice")
    event, steps, delta = RARE["fixed samples"]
    pld.forget()
    found = pld.epsilon(Repeat(event, steps), delta)
    assert found.lower > 0.31924 and 0.40900 < found.upper < 0.40902


@pytest.mark.parametrize("event", [Laplace(epsilon=0.5), Poisson(Laplace(epsilon=1), 0.1), Exponential(epsilon=0.5)])
@pytest.mark.parametrize("times", [60, 1000])
def test_the_two_agree_on_other_noise(event: Event, times: int) -> None:
    for law in pairs.directions(event, 1e-15):
        one = inversion.epsilon([(law, times)], 1e-6)
        two = pld._on_lattice([(law, times)], 1e-6, 1e-3)
        assert one.lower <= two.upper and two.lower <= one.upper and one.upper < math.inf


def test_deltas_of_the_two_agree() -> None:
    for law in pairs.directions(Poisson(Gaussian(multiplier=1), 0.01), 1e-20):
        for epsilon in (0.05, 0.5, 2.0, 4.0):
            one = inversion.delta([(law, 500)], epsilon)
            two = pld._delta_on_lattice([(law, 500)], epsilon, 1e-12)
            assert one.lower <= two.upper and two.lower <= one.upper
            assert one.width < 1e-6 * one.upper + 1e-13 and two.width < 0.05 * two.upper + 1e-12


def _one(mu: float, rate: float, x: np.ndarray, remove: bool) -> np.ndarray:
    """The curve of one sampled Gaussian at any x > 0, in closed form."""
    if remove:
        inner = np.maximum((x - 1 + rate) / rate, 1e-300)
        middle = np.log(inner) / mu
        above = rate * (stats.norm.cdf(mu / 2 - middle) - inner * stats.norm.cdf(-mu / 2 - middle))
        return np.where(x <= 1 - rate, 1 - x, above)
    inner = np.maximum((1 / x - 1 + rate) / rate, 1e-300)
    edge = np.log(inner) / mu + mu / 2
    below = stats.norm.cdf(edge)
    return np.where(1 / x <= 1 - rate, 0.0, below - x * ((1 - rate) * below + rate * stats.norm.cdf(edge - mu)))


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("rate", [0.05, 0.3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_and_two_sampled_gaussians_are_integrals(steps: int, rate: float, epsilon: float) -> None:
    mu, truth = 1.25, 0.0
    for remove in (True, False):
        z = np.linspace(-9, 12, 200_001)
        ratio = 1 - rate + rate * np.exp(mu * z - mu * mu / 2)
        x = math.exp(epsilon)
        if steps == 1:
            value = float(_one(mu, rate, np.array([x]), remove)[0])
        else:
            density = stats.norm.pdf(z) * (ratio if remove else 1.0)
            rest = x / ratio if remove else x * ratio
            value = float(integrate.simpson(density * _one(mu, rate, rest, remove), x=z))
        truth = max(truth, value)
    found = pld.delta(sgd(rate, 0.8, steps), epsilon)
    assert found.lower <= truth * (1 + 1e-8) + 1e-16 and truth * (1 - 1e-8) <= found.upper
    assert found.width <= 0.3 * truth + 1e-11
    back = pld.epsilon(sgd(rate, 0.8, steps), truth)
    assert back.lower <= epsilon + 1e-8 and epsilon <= back.upper + 1e-8 and back.width < 1e-3 * max(1.0, epsilon)


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.5, 1 - 1e-9, 1])
@pytest.mark.parametrize("multiplier", [0.05, 0.5, 3])
@pytest.mark.parametrize("delta", [1e-12, 1e-4, 0.3])
def test_one_sampled_gaussian_to_many_digits(rate: float, multiplier: float, delta: float) -> None:
    """delta at both ends, in high precision, in both directions."""
    found = pld.epsilon(sgd(rate, multiplier, 1), delta)
    with mp.workdps(60):
        mu, r = 1 / mp.mpf(repr(multiplier)), mp.mpf(repr(rate))

        def worst(epsilon: float) -> mp.mpf:
            x = mp.exp(mp.mpf(epsilon))
            inner = (x - 1 + r) / r
            middle = mp.log(inner) / mu
            remove = r * (mp.ncdf(mu / 2 - middle) - inner * mp.ncdf(-mu / 2 - middle))
            if 1 / x <= 1 - r:
                return remove
            edge = mp.log((1 / x - 1 + r) / r) / mu + mu / 2
            add = mp.ncdf(edge) - x * ((1 - r) * mp.ncdf(edge) + r * mp.ncdf(edge - mu))
            return max(remove, add)

        assert worst(found.upper) <= mp.mpf(repr(delta)) * (1 + mp.mpf(10) ** -9)
        assert found.lower == 0 or worst(found.lower) >= mp.mpf(repr(delta)) * (1 - mp.mpf(10) ** -9)
    assert found.width <= 1e-6 * max(1.0, found.upper)


def _enumerated(laws: list[list[tuple[float, float]]], epsilon: float) -> float:
    """The hockey-stick divergence of a product of small discrete pairs, by going through all outcomes."""
    total = 0.0
    for outcome in product(*laws):
        p, q = math.prod(a for a, _ in outcome), math.prod(b for _, b in outcome)
        total += max(p - math.exp(epsilon) * q, 0.0)
    return total


def _outcomes(event: Event) -> list[tuple[float, float]]:
    """P and Q of a small mechanism, written down by hand."""
    if isinstance(event, RandomizedResponse):
        m, k = math.exp(float(event.epsilon)), event.categories
        return [(m / (m + k - 1), 1 / (m + k - 1)), (1 / (m + k - 1), m / (m + k - 1))] + [(1 / (m + k - 1),) * 2] * (
            k - 2
        )
    if isinstance(event, DiscreteLaplace):
        per, shift = float(event.epsilon) / event.shift, event.shift
        k = np.arange(-60, 61)
        p, q = (math.tanh(per / 2) * np.exp(-per * np.abs(k - s)) for s in (shift, 0))
    else:
        assert isinstance(event, DiscreteGaussian)
        shift = math.isqrt(event.shift_squared)
        k = np.arange(-12, 13)
        p, q = (np.exp(-((k - s) ** 2) / (2 * float(event.variance))) for s in (shift, 0))
        whole = np.exp(-(np.arange(-60, 61) ** 2) / (2 * float(event.variance))).sum()
        p, q = p / whole, q / whole
    return list(zip(p.tolist(), q.tolist(), strict=True))


SMALL = st.one_of(
    st.builds(lambda e, k: RandomizedResponse(epsilon=round(e, 3), categories=k), st.floats(0.2, 2), st.integers(2, 4)),
    st.builds(lambda e, s: DiscreteLaplace(epsilon=round(e, 3), shift=s), st.floats(1.5, 3), st.integers(1, 2)),
    st.builds(lambda v: DiscreteGaussian(variance=round(v, 3)), st.floats(0.3, 1.5)),
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(SMALL, min_size=1, max_size=2),
    st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 10), 1 - Fraction(1, 10**9)]),
    st.sampled_from([1e-4, 1e-2, 0.1]),
)
def test_discrete_mechanisms_enclose_what_enumeration_gives(single: list[Event], rate: Fraction, delta: float) -> None:
    found = pld.epsilon(Sequence(tuple(Poisson(each, rate) if rate < 1 else each for each in single)), delta)
    worst = {"lower": 0.0, "upper": 0.0}
    for remove in (True, False):
        laws = []
        for each in single:
            mixed = [(float(1 - rate) * q + float(rate) * p, q) for p, q in _outcomes(each)]
            laws.append(mixed if remove else [(q, p) for p, q in mixed])
        for end in worst:
            worst[end] = max(worst[end], _enumerated(laws, getattr(found, end)))
    assert worst["upper"] <= delta * (1 + 1e-6) + 1e-12  # at the upper end it holds
    assert found.lower == 0 or worst["lower"] >= delta * (1 - 1e-6) - 1e-12  # at the lower end it is no better


def test_a_composition_of_selections_is_bounded_from_below_by_real_selections_only() -> None:
    """Sampled selections too: the lower end is that of two candidates, by enumeration."""
    for inner, epsilon in ((Exponential(epsilon=1), 0.5), (Poisson(Exponential(epsilon=1), 0.5), 0.5)):
        found = pld.delta(Repeat(inner, 3), epsilon)
        m = math.exp(0.5)
        pair = [(m / (1 + m), 1 / (1 + m)), (1 / (1 + m), m / (1 + m))]
        if isinstance(inner, Poisson):
            pair = [((p + q) / 2, q) for p, q in pair]
        both = (_enumerated([each] * 3, epsilon) for each in (pair, [(q, p) for p, q in pair]))
        truth = max(both)
        assert truth * (1 - 2e-3) <= found.lower <= truth * (1 + 1e-9) < 0.9 * found.upper


def ends(event: Event, delta: float) -> Interval:
    found = pld.epsilon(event, delta)
    assert 0 <= found.lower <= found.upper < math.inf
    return found


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(1e-4, 0.5), st.floats(0.4, 10), st.integers(1, 3000), st.sampled_from([1e-10, 1e-6, 1e-3]))
def test_the_price_grows_with_every_parameter(rate: float, multiplier: float, steps: int, delta: float) -> None:
    less = ends(sgd(rate, multiplier, steps), delta)
    for more in (
        ends(sgd(min(1.0, rate * 1.5), multiplier, steps), delta),
        ends(sgd(rate, multiplier / 1.5, steps), delta),
        ends(sgd(rate, multiplier, 2 * steps), delta),
        ends(sgd(rate, multiplier, steps), delta / 10),
        ends(Repeat(Gaussian(multiplier=multiplier), steps), delta),
    ):
        assert less.lower <= more.upper and (less.upper <= more.upper or less.lower <= more.upper)
        if less.width + more.width < 1e-6:
            assert less.upper <= more.upper + 1e-6


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.floats(-9, 0),
    st.floats(math.log10(0.05), 4),
    st.floats(0, 7),
    st.floats(-12, math.log10(0.5)),
)
def test_no_parameters_raise_or_leave_the_range(rate: float, multiplier: float, steps: float, delta: float) -> None:
    found = ends(sgd(10**rate, 10**multiplier, round(10**steps)), 10**delta)
    assert not math.isnan(found.upper)


@pytest.mark.parametrize("rate", [1e-9, 1 - Fraction(1, 10**12), 1])
@pytest.mark.parametrize("multiplier", [0.1, 1000])
@pytest.mark.parametrize("steps", [1, 3, 10**4])
def test_the_corners_of_the_range(rate: float | Fraction, multiplier: float, steps: int) -> None:
    for delta in (1e-12, 0.5):
        ends(sgd(rate, multiplier, steps), delta)


@pytest.mark.parametrize(
    "event",
    [
        Repeat(Pure(epsilon=10_000), 7),
        Repeat(Exponential(epsilon=100), 10),
        Repeat(DiscreteGaussian(variance=0.001), 10),
        Repeat(Laplace(epsilon=1e-9), 10**6),
        Repeat(DiscreteLaplace(epsilon=1, shift=1000), 3),
        Repeat(WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 10, 10_000), 10**5),
        Repeat(WithoutReplacement(Pure(epsilon=1, relation="replace"), 10, 10_000), 100),
        Repeat(Shuffled(Pure(epsilon=1, relation="replace"), 100), 3),
        Repeat(PermuteAndFlip(epsilon=1), 50),
        Repeat(GaussianMixture(shifts=(0, 1, 7), weights=(0.9, 0.09, 0.01)), 100),
    ],
    ids=lambda event: type(event.event).__name__,
)
def test_other_events_at_the_ends_of_their_range(event: Event) -> None:
    for delta in (1e-12, 1e-3):
        ends(event, delta)
    found = pld.delta(event, 1.0)
    assert 0 <= found.lower <= found.upper <= 1


def test_losses_span_thousands_and_the_truth_stays_inside() -> None:
    """Noise 0.1 at rate 1 - 1e-9 is plain noise but for a hair; 0.05 at 1/100, ten times, spans a thousand units."""
    for steps in (10, 10**6):
        sampled, plain = pld.epsilon(sgd(1 - 1e-9, 0.1, steps), 1e-6), pld.epsilon(sgd(1, 0.1, steps), 1e-6)
        assert sampled.upper == pytest.approx(plain.upper, rel=1e-3) and sampled.lower <= plain.upper
    wide = pld.epsilon(sgd(0.01, 0.05, 10), 1e-6)
    # Some 4 of 10 steps sample the unit with chance 2e-6 each time: the loss is near 4 * 200 - 4 ln 100.
    assert 600 < wide.lower <= wide.upper < 900 and wide.width < 1


def test_deltas_below_float64_are_not_lost() -> None:
    """Far out in the tail both ways still hold: 3.4e-293 by inversion."""
    (law,) = pairs.directions(Laplace(epsilon=4.745782917063459), 1e-20)
    for epsilon in (159_000.0, 161_844.2):
        one, two = (f([(law, 40_073)], epsilon) for f in (inversion.delta, lambda *a: pld._delta_on_lattice(*a, 1e-13)))
        assert one.lower <= two.upper and two.lower <= one.upper


def test_order_does_not_matter_and_equal_parts_add_up() -> None:
    a, b, c = sgd(0.01, 1, 100), Repeat(Laplace(epsilon=0.1), 5), Repeat(Pure(epsilon=0.05), 3)
    found = [pld.epsilon(Sequence(order), 1e-6) for order in ((a, b, c), (c, b, a), (b, a, c))]
    assert max(each.lower for each in found) <= min(each.upper for each in found)
    assert max(each.upper for each in found) == pytest.approx(min(each.upper for each in found), abs=2e-3)
    split = Sequence((sgd(0.01, 1, 60), sgd(0.01, 1, 40)))
    assert pld.epsilon(split, 1e-6) == pld.epsilon(a, 1e-6)
    assert pld.epsilon(Repeat(Repeat(Laplace(epsilon=0.1), 5), 4), 1e-6) == pld.epsilon(Repeat(b, 4), 1e-6)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.floats(1e-4, 0.3), st.floats(0.6, 5), st.integers(2, 5000), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_renyi_is_dearer_and_its_old_conversion_dearer_still(
    rate: float, multiplier: float, steps: int, delta: float
) -> None:
    event = sgd(rate, multiplier, steps)
    tight = pld.epsilon(event, delta)
    moments = renyi.epsilon(event, Fraction(repr(delta)))
    assert tight.lower <= moments and tight.upper <= moments + 1e-3
    old = min(
        textbook.renyi_epsilon_old(divergence=renyi.divergence(event, order), order=order, delta=delta)
        for order in (1.5, 2, 3, 5, 8, 16, 32, 64, 128)
    )
    assert moments <= old


@pytest.mark.slow
@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.floats(1e-3, 0.3), st.floats(1, 5), st.integers(500, 5000), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_delta_of_epsilon_is_delta(rate: float, multiplier: float, steps: int, delta: float) -> None:
    event = sgd(rate, multiplier, steps)
    at = pld.epsilon(event, delta)
    if at.lower > 0:
        assert pld.delta(event, at.upper).lower <= delta * (1 + 1e-9)
        assert pld.delta(event, at.lower).upper >= delta * (1 - 1e-9)


def test_a_partition_costs_its_dearest_part_and_two_under_replace() -> None:
    part = Gaussian(multiplier=2)
    assert pld.epsilon(Partition("ward", (part, part, part)), 1e-6) == pld.epsilon(part, 1e-6)
    unlike = Partition("ward", (Gaussian(multiplier=3), sgd(0.01, 1, 100), Laplace(epsilon=0.1)))
    dearest = max(pld.epsilon(each, 1e-6).upper for each in unlike.events)
    assert pld.epsilon(unlike, 1e-6).upper == pytest.approx(dearest, abs=1e-6)
    swap = [Gaussian(multiplier=m, relation="replace") for m in (2, 3, 4)]
    assert pld.epsilon(Partition("ward", (swap[0],) * 3), 1e-6) == pld.epsilon(Repeat(swap[0], 2), 1e-6)
    assert pld.epsilon(Partition("ward", tuple(swap)), 1e-6).upper == pytest.approx(
        pld.epsilon(Sequence((swap[0], swap[1])), 1e-6).upper, abs=1e-6
    )
    # each time the unit is in the same part
    again = Repeat(Partition("ward", (Gaussian(multiplier=2), Gaussian(multiplier=3))), 5)
    assert pld.epsilon(again, 1e-6).upper == pytest.approx(pld.epsilon(Repeat(part, 5), 1e-6).upper, abs=1e-6)


def test_noise_on_several_coordinates_is_its_worst_shift() -> None:
    one = pld.epsilon(Repeat(DiscreteGaussian(variance=10), 3), 1e-6)
    assert pld.epsilon(DiscreteGaussian(variance=10, shift_squared=3, coordinates=5), 1e-6) == one


def test_what_cannot_be_priced_is_refused_by_name() -> None:
    for event in (ZeroConcentrated(rho=1), Poisson(Approximate(epsilon=1, delta=1e-6), 0.1)):
        with pytest.raises(UnsupportedEventError):
            pld.epsilon(event, 1e-5)
    with pytest.raises(UnsupportedEventError, match="delta must be at least 2e-06"):
        pld.epsilon(Repeat(Approximate(epsilon=1, delta=1e-6), 2), 1e-6)
    for rate in (0, -1, 2, math.nan, "1", None):
        with pytest.raises(ArgumentError, match="rate"):
            Poisson(Gaussian(multiplier=1), rate)
    with pytest.raises(ArgumentError, match="replaced is not sampled"):
        Poisson(Gaussian(multiplier=1, relation="replace"), 0.1)


def test_an_interval_is_its_upper_end_as_a_number() -> None:
    found = Interval(1.0, 1.5)
    assert float(found) == 1.5 and found.width == 0.5 and str(found) == "1.5 (at least 1)"


def _direct(laws: list[tuple[int, np.ndarray, int]], first: int, size: int) -> np.ndarray:
    """The circular sum, by plain convolution."""
    total, start = np.ones(1, np.longdouble), 0
    for begin, weights, times in laws:
        for _ in range(times):
            total, start = np.convolve(total, weights.astype(np.longdouble)), start + begin
    around = np.zeros(size, np.longdouble)
    np.add.at(around, (start - first + np.arange(total.size)) % size, total)
    return around


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0, 12), st.sampled_from([np.float64, np.longdouble]))
def test_transforms_are_off_by_no_more_than_they_say(
    seed: int, times: int, peak: float, number: type[np.floating]
) -> None:
    """With a main atom from ordinary to nearly all of the mass."""
    draw = np.random.default_rng(seed)
    laws = []
    for _ in range(2):
        weights = draw.random(12) * 10**-peak
        weights[5] += 1
        laws.append((-5, weights / weights.sum(), times))
    found, worst = pld._convolved(laws, -40, 80, number)
    truth = _direct(laws, -40, 80)
    relative = 8e-16 * (1 + times)  # of doubles, and of the main atom's logarithm: in `relative`, 1e-12 per mechanism
    assert np.all(np.abs(found - truth) <= worst + relative * truth)
    assert worst < 1e-12


def test_logarithms_and_exponentials_near_1_keep_their_digits() -> None:
    z = np.array([1e-9 + 1e-9j, -3e-7 + 1e-3j, 0.3 - 0.2j, 2 + 1j, -0.9 + 0.01j])
    with mp.workdps(40):
        for at, log, power in zip(z, quadrature.log1p(z), pld._expm1(z), strict=True):
            exact = mp.mpc(complex(at))
            assert abs(mp.mpc(complex(log)) - mp.log(1 + exact)) <= 8e-16 * abs(exact / (1 + exact))
            assert abs(mp.mpc(complex(power)) - mp.expm1(exact)) <= 8e-16 * abs(mp.expm1(exact))


@pytest.mark.slow
@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.floats(-9, 0), st.floats(-1.3, 4), st.floats(0, 7), st.floats(-12, math.log10(0.5)))
def test_many_more_parameters(rate: float, multiplier: float, steps: float, delta: float) -> None:
    ends(sgd(10**rate, 10**multiplier, round(10**steps)), 10**delta)
