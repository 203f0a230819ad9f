"""Lattice laws lie above and below the true one, before and after composition."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.accounting import lattice, pairs
from sfumato.accounting.lattice import Lattice, LatticeCells
from sfumato.accounting.pairs import Loss
from sfumato.events import Event, Exponential, Gaussian, Laplace, Poisson, WithoutReplacement

EPSILONS = np.linspace(-3, 3, 121)


def curve(losses: np.ndarray, masses: np.ndarray, infinite: float = 0.0) -> np.ndarray:
    return (-np.expm1(np.minimum(EPSILONS[:, None] - losses, 0.0)) * masses).sum(axis=1) + infinite


def lattice_curve(law: Lattice) -> np.ndarray:
    return curve(law.losses + law.offset, law.p, law.infinite)


def atoms(places: list[float], weights: list[float]) -> Loss:
    """A law of losses whose Q has mass at most 1 as well."""
    losses, masses = np.array(places), np.array(weights)
    masses = masses / (masses.sum() * max(1.0, float((masses * np.exp(-losses)).sum() / masses.sum())))
    return Loss(losses, masses)


LAWS = st.lists(st.tuples(st.floats(-2, 2), st.floats(0.01, 1)), min_size=1, max_size=12)
STEPS = st.sampled_from([0.05, 0.2, 0.5, 1.3])


@settings(max_examples=120, deadline=None, derandomize=True)
@given(LAWS, STEPS)
def test_the_lattice_laws_bracket_any_law(points: list[tuple[float, float]], step: float) -> None:
    law = atoms([place for place, _ in points], [mass for _, mass in points])
    below, above = LatticeCells.of(law, step)
    truth = curve(law.atoms, law.masses)
    assert np.all(lattice_curve(above.upper()) >= truth - 1e-9)  # a loss within 1e-9 steps of a node counts as on it
    for cells in (below, above):  # with what lies near 0 made one, and without
        under = cells.lower()
        assert np.all(lattice_curve(under) - under.excess <= truth + 1e-9)
        assert np.all(under.p >= 0) and under.excess < 1e-9


@settings(max_examples=40, deadline=None, derandomize=True)
@given(LAWS, LAWS, st.sampled_from([0.2, 0.5]))
def test_they_bracket_the_composition_of_any_two_laws(
    first: list[tuple[float, float]], second: list[tuple[float, float]], step: float
) -> None:
    laws = [atoms([place for place, _ in points], [mass for _, mass in points]) for points in (first, second)]
    sums = np.add.outer(laws[0].atoms, laws[1].atoms).ravel()
    truth = curve(sums, np.multiply.outer(laws[0].masses, laws[1].masses).ravel())
    cells = [LatticeCells.of(law, step) for law in laws]
    for bounds, sign in (([a.upper() for _, a in cells], 1), ([b.lower() for b, _ in cells], -1)):
        one, two = bounds
        places = np.add.outer(one.losses + one.offset, two.losses + two.offset).ravel()
        composed = curve(places, np.multiply.outer(one.p, two.p).ravel())
        assert np.all(sign * (composed - truth) >= -1e-9)


SMOOTH: dict[str, Event] = {
    "gaussian": Gaussian(multiplier=1),
    "sampled": Poisson(Gaussian(multiplier=0.8), 0.05),
    "rarely sampled": Poisson(Gaussian(multiplier=0.8), 1e-5),
    "laplace": Laplace(epsilon=1),
    "sampled laplace": Poisson(Laplace(epsilon=2), 0.3),
    "exponential": Exponential(epsilon=1),
    "without replacement": WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 1, 10),
}


def smooth_curve(law: Loss) -> np.ndarray:
    """By the midpoint rule on a fine grid in z."""
    total = curve(law.atoms, law.masses)
    for piece in law.pieces:
        edges = np.linspace(piece.low, piece.high, 40_001)
        z = (edges[1:] + edges[:-1]) / 2
        ratio = piece.log_ratio(z)
        mass = np.diff(edges) * np.exp(piece.log_base(z) + (ratio if piece.forward else 0.0))
        loss = ratio if piece.forward else -ratio
        total += np.array([float((mass * -np.expm1(np.minimum(e - loss, 0.0))).sum()) for e in EPSILONS])
    return total


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("step", [0.01, 0.1, 0.5])
def test_smooth_laws_lie_between_and_close(name: str, step: float) -> None:
    for law in pairs.directions(SMOOTH[name], 1e-12):
        truth = smooth_curve(law)
        below, above = LatticeCells.of(law, step)
        high, low = lattice_curve(above.upper()), lattice_curve(below.lower())
        assert np.all(high >= truth - 2e-8) and np.all(low <= truth + 2e-8)  # 2e-8: the midpoint rule
        assert float((high - low).max()) <= step / 2


def test_cell_masses_are_right_to_the_slack_that_is_claimed() -> None:
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=0.5), 0.01), 1e-14)
    _, above = LatticeCells.of(law, 0.25)
    (piece,) = law.pieces
    nodes = 0.25 * np.arange(1, 9)
    # ln w = node at z = (ln((e^node - 0.99)/0.01) + 2)/2
    z = (np.log((np.exp(nodes) - 0.99) / 0.01) + 2) / 2
    mass = np.diff(0.99 * stats.norm.cdf(z) + 0.01 * stats.norm.cdf(z - 2))
    index = np.arange(1, 8) - above.first
    found = above.left[index] + above.right[index]
    assert np.allclose(found, mass, rtol=1e-11, atol=1e-17) and piece.steepest == 2


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(0.001, 60), st.integers(1, 60))
def test_tails_are_sums_however_long_the_law(step: float, size: int) -> None:
    mass = np.linspace(1, 2, size)
    direct = [sum(mass[j] * math.exp(-step * (j - k)) for j in range(k, size)) for k in range(size)]
    assert np.allclose(lattice.tails(mass, step), direct, rtol=1e-13)


def test_tails_do_not_underflow_over_a_thousand_units_of_loss() -> None:
    mass = np.ones(200_001)
    found = lattice.tails(mass, 0.02)  # spans 4000
    assert found[0] == pytest.approx(1 / -math.expm1(-0.02), rel=1e-12) and found[-1] == 1


def test_losses_in_the_thousands_neither_overflow_nor_leave_the_bracket() -> None:
    law = Loss(np.array([-2.0, 1.3, 4000.1]), np.array([0.1, 0.2, 0.7]))
    below, above = LatticeCells.of(law, 0.5)
    for bound, sign in ((above.upper(), 1), (below.lower(), -1)):
        assert np.all(np.isfinite(bound.p)) and np.all(bound.p >= 0)
        for epsilon in (0.0, 1.0, 2000.0, 4000.0):
            truth = float((law.masses * -np.expm1(np.minimum(epsilon - law.atoms, 0.0))).sum())
            found = float((bound.p * -np.expm1(np.minimum(epsilon - bound.losses - bound.offset, 0.0))).sum())
            assert sign * (found - truth) >= -1e-9


def test_chords_that_are_not_lowered_would_be_seen() -> None:
    law = atoms([math.log(2), math.log(0.4)], [0.6, 0.2])
    below, above = LatticeCells.of(law, 0.5)
    truth = curve(law.atoms, law.masses)
    assert np.any(lattice_curve(above.upper()) > truth + 1e-3)
    assert np.any(lattice_curve(replace(below.upper(), infinite=0.0)) > truth + 1e-3)


def test_an_offset_that_is_forgotten_would_be_seen() -> None:
    law = atoms([0.3, 0.2, -0.1, 1.7], [0.3, 0.4, 0.2, 0.1])
    below, _ = LatticeCells.of(law, 0.5)
    under = below.lower()
    assert under.offset > 0.05
    truth = curve(law.atoms, law.masses)
    assert np.all(lattice_curve(under) <= truth + 1e-12)
    assert np.any(lattice_curve(replace(under, offset=under.offset + 0.1)) > truth + 1e-3)


def test_atoms_on_nodes_are_exact_on_both_sides() -> None:
    law = atoms([-1.0, 0.0, 0.5, 2.0], [0.2, 0.3, 0.3, 0.2])
    below, above = LatticeCells.of(law, 0.5)
    truth = curve(law.atoms, law.masses)
    assert np.allclose(lattice_curve(above.upper()), truth, atol=1e-15)
    assert np.allclose(lattice_curve(below.lower()), truth, atol=1e-15)


def test_mass_cut_off_is_infinite_above_and_nothing_below() -> None:
    law = Loss(np.array([0.5, -0.5]), np.array([0.5, 0.3]), infinite=0.05, cut=0.01)
    below, above = LatticeCells.of(law, 0.25)
    assert above.upper().infinite == pytest.approx(0.06) and below.lower().infinite == 0.05


def test_dropping_concave_nodes_keeps_both_sums_and_lowers_the_curve() -> None:
    for values in product((-0.1, 0.2, 0.5), repeat=4):
        p = np.array([1.0, *values, 1.0])
        losses = 0.3 * np.arange(6)
        before = p.copy()
        forgotten = lattice._drop_concave(p, 0.3)
        assert np.all(p >= 0) and forgotten == 0
        assert p.sum() == pytest.approx(before.sum())
        assert (p * np.exp(-losses)).sum() == pytest.approx((before * np.exp(-losses)).sum())
        assert np.all(curve(losses, p) <= curve(losses, before) + 1e-12)
