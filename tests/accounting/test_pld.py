"""Privacy-loss distributions: certified from both sides, against published values, the exact Gaussian curve and
enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import gdp, losses, pld
from sfumato.accounting.interval import Interval
from sfumato.accounting.lattice import Cells, Lattice
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    Event,
    Gaussian,
    Laplace,
    Partition,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
    ZeroConcentrated,
)

MNIST = Fraction(256, 60000)


def sgd(rate: float | Fraction, multiplier: float, steps: int) -> Event:
    return Repeat(Poisson(Gaussian(multiplier=multiplier), rate), steps)


MIXED = Sequence((sgd(0.005, 0.8, 100), Repeat(Gaussian(multiplier=8), 200), Repeat(Laplace(epsilon=0.1), 100)))

# (event, delta, the value to four or five digits): recomputed from published settings with other accountants
PUBLISHED = {
    "MNIST tutorial, sigma 1.3": (sgd(MNIST, 1.3, 3516), 1e-5, 0.864459),
    "MNIST tutorial, sigma 1.1": (sgd(MNIST, 1.1, 14063), 1e-5, 2.381686),
    "MNIST tutorial, sigma 0.7": (sgd(MNIST, 0.7, 10547), 1e-5, 5.639447),
    "textbook, 1000 steps": (sgd(0.01, 2, 1000), 1e-5, 0.62203),
    "textbook, 600 steps": (sgd(MNIST, 1, 600), 1e-5, 0.577329),
    "federated averaging": (sgd(Fraction(5000, 763430), 1, 5000), 1e-9, 3.898829),
    "one method's README": (sgd(0.005, 0.8, 1000), 1e-6, 2.004107),
    "the same, mixed": (MIXED, 1e-6, 11.149201),
    "small batches": (sgd(Fraction(256, 100000), 0.9, 4900), 1e-5, 1.139973),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_settings_lie_in_the_interval(name: str) -> None:
    event, delta, value = PUBLISHED[name]
    found = pld.epsilon(event, delta)
    assert found.lower - 1e-6 <= value <= found.upper + 1e-6
    assert found.width <= 5e-4 * max(1.0, found.upper)


@pytest.mark.parametrize(("steps", "loose"), [(10_000, 0.946999), (40_000, 2.033357)])
def test_a_finer_lattice_settles_what_a_coarse_one_overstates(steps: int, loose: float) -> None:
    # 0.946999 and 2.033357 come from an upper bound on a lattice of step 1e-4: above the truth by 1.3e-4 and 2.9e-4.
    found = pld.epsilon(sgd(0.01, 4, steps), 1e-5, accuracy=1e-4)
    assert found.upper < loose < found.upper + 4e-4 and found.width < 2.1e-4


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
    assert found.width < 1e-8 and found.upper == pytest.approx(value, abs=1e-6)


def test_many_laplace_mechanisms() -> None:
    for event, delta, low, high in (
        (Repeat(Laplace(epsilon=0.1), 100), 1e-6, 4.692449, 4.692667),
        (Repeat(Laplace(epsilon=1), 20), 1e-4, 18.093628, 18.093818),
    ):
        found = pld.epsilon(event, delta, accuracy=2e-5)
        assert found.lower <= high + 1e-6 and found.upper >= low - 1e-6 and found.width < 5e-4


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.floats(1, 20), st.integers(1, 50), st.sampled_from([1e-9, 1e-5, 1e-3, 0.1]))
def test_composed_gaussians_enclose_the_exact_curve(multiplier: float, times: int, delta: float) -> None:
    found = pld.epsilon(Repeat(Gaussian(multiplier=multiplier), times), delta)
    mu_squared = times / Fraction(repr(multiplier)) ** 2
    exact = float(gdp.least_epsilon(mu_squared, Fraction(repr(delta))))
    assert found.lower - 1e-9 <= exact <= found.upper + 1e-9


def _enumerated(pairs: list[list[tuple[float, float]]], epsilon: float) -> float:
    """The hockey-stick divergence of a product of small discrete pairs, by going through all outcomes."""
    total = 0.0
    for outcome in product(*pairs):
        p, q = math.prod(a for a, _ in outcome), math.prod(b for _, b in outcome)
        total += max(p - math.exp(epsilon) * q, 0.0)
    return total


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(0.2, 2), st.integers(2, 4)), min_size=1, max_size=3),
    st.sampled_from([1.0, 0.5, 0.1]),
    st.sampled_from([1e-3, 1e-2, 0.1]),
)
def test_discrete_mechanisms_enclose_what_enumeration_gives(
    kinds: list[tuple[float, int]], rate: float, delta: float
) -> None:
    single = [RandomizedResponse(epsilon=round(e, 3), categories=k) for e, k in kinds]
    event = Sequence(tuple(Poisson(each, rate) if rate < 1 else each for each in single))
    found = pld.epsilon(event, delta)
    worst = {"lower": 0.0, "upper": 0.0}
    for remove in (True, False):
        laws = []
        for each in single:
            mixed = [((1 - rate) * q + rate * p, q) for p, q in losses.pair(each).atoms]
            laws.append(mixed if remove else [(q, p) for p, q in mixed])
        for end in worst:
            worst[end] = max(worst[end], _enumerated(laws, getattr(found, end)))
    assert worst["upper"] <= delta * (1 + 1e-6) + 1e-12  # at the upper end it holds
    assert found.lower == 0 or worst["lower"] >= delta * (1 - 1e-6) - 1e-12  # at the lower end it is no better


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.floats(1e-4, 0.5), st.floats(0.5, 10), st.integers(1, 3000), st.sampled_from([1e-10, 1e-6, 1e-3]))
def test_the_interval_is_sound_and_grows_with_every_parameter(
    rate: float, multiplier: float, steps: int, delta: float
) -> None:
    found = pld.epsilon(sgd(rate, multiplier, steps), delta)
    assert 0 <= found.lower <= found.upper < math.inf
    for more in (
        pld.epsilon(sgd(min(1.0, rate * 1.5), multiplier, steps), delta),
        pld.epsilon(sgd(rate, multiplier / 1.5, steps), delta),
        pld.epsilon(sgd(rate, multiplier, 2 * steps), delta),
        pld.epsilon(sgd(rate, multiplier, steps), delta / 10),
    ):
        assert found.lower <= more.upper + 1e-12
    without = gdp.least_epsilon(steps / Fraction(repr(multiplier)) ** 2, Fraction(repr(delta)))
    assert found.lower <= float(without)  # sampling only helps


@pytest.mark.parametrize("rate", [1e-6, 0.999999, 1])
@pytest.mark.parametrize("multiplier", [0.3, 100])
def test_the_ends_of_the_range_neither_raise_nor_go_negative(rate: float, multiplier: float) -> None:
    for delta in (1e-12, 0.5):
        found = pld.epsilon(sgd(rate, multiplier, 10), delta)
        assert 0 <= found.lower <= found.upper < math.inf


def test_order_does_not_matter_and_equal_parts_add_up() -> None:
    a, b = sgd(0.01, 1, 100), Repeat(Laplace(epsilon=0.1), 5)
    one, two = pld.epsilon(Sequence((a, b)), 1e-6), pld.epsilon(Sequence((b, a)), 1e-6)
    assert one.upper == pytest.approx(two.upper, abs=1e-3)
    split = Sequence((sgd(0.01, 1, 60), sgd(0.01, 1, 40)))
    assert pld.epsilon(split, 1e-6) == pld.epsilon(a, 1e-6)


def test_a_partition_of_like_parts_costs_one_of_them_and_two_under_replace() -> None:
    part = Gaussian(multiplier=2)
    assert pld.epsilon(Partition("ward", (part, part, part)), 1e-6) == pld.epsilon(part, 1e-6)
    swap = Gaussian(multiplier=2, relation="replace")
    assert pld.epsilon(Partition("ward", (swap, swap, swap)), 1e-6) == pld.epsilon(Repeat(swap, 2), 1e-6)


def test_what_cannot_be_priced_is_refused_by_name() -> None:
    for event in (
        ZeroConcentrated(rho=1),
        Partition("ward", (Gaussian(multiplier=1), Gaussian(multiplier=2))),
        Poisson(Approximate(epsilon=1, delta=1e-6), 0.1),
    ):
        with pytest.raises(UnsupportedEventError):
            pld.epsilon(event, 1e-6)
    for rate in (0, -1, 2, math.nan, "1", None):
        with pytest.raises(ArgumentError, match="rate"):
            Poisson(Gaussian(multiplier=1), rate)
    with pytest.raises(ArgumentError, match="replaced is not sampled"):
        Poisson(Gaussian(multiplier=1, relation="replace"), 0.1)


def _curve(law: Lattice, epsilons: np.ndarray) -> np.ndarray:
    gains = 1 - np.exp(np.minimum(epsilons[:, None] - law.losses[None, :], 0.0))
    return (gains * law.p[None, :]).sum(axis=1) + law.infinite


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 1)), min_size=1, max_size=12),
    st.sampled_from([0.05, 0.2, 0.5]),
)
def test_the_lattice_laws_bracket_any_law(atoms: list[tuple[float, float]], step: float) -> None:
    places = np.array([place for place, _ in atoms])
    masses = np.array([mass for _, mass in atoms])
    masses /= masses.sum() * max(1.0, float(np.sum(masses * np.exp(-places)) / masses.sum()))  # Q at most 1 as well
    pairs = tuple((float(p), float(p * np.exp(-loss))) for loss, p in zip(places, masses, strict=True))
    cells = losses.Pair(pairs).cells(step, 1e-9, remove=True)
    epsilons = np.linspace(-3, 3, 121)
    gains = 1 - np.exp(np.minimum(epsilons[:, None] - places[None, :], 0.0))
    truth = (gains * masses[None, :]).sum(axis=1)
    assert np.all(_curve(cells.upper(), epsilons) >= truth - 1e-12)
    below = cells.lower()
    assert np.all(_curve(below, epsilons) <= truth + 1e-12)
    assert np.all(below.p >= 0) and below.p.sum() <= masses.sum() + 1e-12


def test_a_coarser_lattice_brackets_the_finer_one() -> None:
    fine = losses.pair(Gaussian(multiplier=1)).cells(0.01, 1e-12, remove=True).upper()
    epsilons = np.linspace(-2, 4, 61)
    coarse = fine.coarser(8)
    assert isinstance(coarse, Cells)
    truth = _curve(fine, epsilons)
    assert np.all(_curve(coarse.upper(), epsilons) >= truth - 1e-12)
    assert np.all(_curve(coarse.lower(), epsilons) <= truth + 1e-12)


def test_an_interval_is_its_upper_end_as_a_number() -> None:
    found = Interval(1.0, 1.5)
    assert float(found) == 1.5 and found.width == 0.5 and str(found) == "1.5 (at least 1)"


def test_the_test_of_the_lower_side_would_see_chords_that_are_not_lowered() -> None:
    cells = losses.Pair(((0.6, 0.3), (0.2, 0.5))).cells(0.5, 1e-9, remove=True)
    epsilons = np.linspace(-3, 3, 121)
    places, masses = np.array([math.log(2), math.log(0.4)]), np.array([0.6, 0.2])
    truth = ((1 - np.exp(np.minimum(epsilons[:, None] - places, 0.0))) * masses).sum(axis=1)
    assert np.any(_curve(cells.upper(), epsilons) > truth + 1e-3)
