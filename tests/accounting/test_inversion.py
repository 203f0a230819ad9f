"""Inversion of the moment function: every error term against the truth, and what happens without it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from sfumato.accounting import decay, inversion, pairs
from sfumato.accounting.decay import Decay
from sfumato.accounting.inversion import Curve, _Layout, _Sum
from sfumato.accounting.pairs import Loss
from sfumato.accounting.quadrature import Nodes
from sfumato.events import (
    Approximate,
    Event,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    Poisson,
    Pure,
    WithoutReplacement,
)

TAIL = 1e-15
MIXED = GaussianMixture(
    shifts=(0, Fraction(1, 2), 1, 2, 3),
    weights=(Fraction(9, 10), Fraction(1, 40), Fraction(1, 40), Fraction(1, 40), Fraction(1, 40)),
)
FAR = GaussianMixture(shifts=(Fraction(1, 10), 5), weights=(Fraction(999, 1000), Fraction(1, 1000)))
EVENTS: dict[str, Event] = {
    **{f"rate {r}, noise {s}": Poisson(Gaussian(multiplier=s), r) for r in (1e-6, 1e-3, 0.5) for s in (0.3, 0.7, 4)},
    "rate 0.05": Poisson(Gaussian(multiplier=1.3), 0.05),
    "rate 0.99": Poisson(Gaussian(multiplier=1.3), 0.99),
    "three shifts": GaussianMixture(shifts=(0, 1, 2), weights=(Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))),
    "five shifts": MIXED,
    "a far shift": FAR,
    "laplace 0.1": Laplace(epsilon=0.1),
    "laplace 5": Laplace(epsilon=5),
    "sampled laplace": Poisson(Laplace(epsilon=1), 0.1),
    "sampled wide laplace": Poisson(Laplace(epsilon=20), 0.1),
    "exponential 0.1": Exponential(epsilon=0.1),
    "exponential 5": Exponential(epsilon=5),
    "without replacement": WithoutReplacement(Gaussian(multiplier=0.5, relation="replace"), 5, 1000),
    "without replacement, wide": WithoutReplacement(Gaussian(multiplier=2, relation="replace"), 5, 1000),
}
TILTS = (0.05, 0.5, 2.0, 8.0, 30.0)  # in standard deviations


def laws(name: str) -> list[tuple[Loss, float]]:
    found = pairs.directions(EVENTS[name], TAIL)
    return [(law, math.sqrt(Nodes(law).variance())) for law in found]


def spectrum(nodes: Nodes, tilt: float, frequency: np.ndarray) -> np.ndarray:
    exponent = nodes.log_mass + tilt * nodes.losses
    shares = np.exp(exponent - exponent.max())
    return np.asarray(np.exp(1j * np.outer(frequency, nodes.losses)) @ (shares / shares.sum()))


def decay_excess(law: Loss, spread: float, tilts: tuple[float, ...]) -> float:
    """How far ln |Phi| lies above -D at worst, over frequencies that two fine quadratures agree on."""
    nodes, fine, finer = Nodes(law), Nodes(law, 0.06), Nodes(law, 0.041)
    worst = -math.inf
    for tilt in np.array(tilts) / spread:
        frequency = np.logspace(-1.5, 2.2, 40) / spread
        phi, check = (np.abs(spectrum(each, tilt, frequency)) for each in (fine, finer))
        known = np.abs(phi - check) < 1e-6 * phi
        excess = np.log(phi) + Decay(nodes, tilt)(frequency)
        worst = max(worst, float(np.where(known, excess, -math.inf).max()))
    return worst


@pytest.mark.parametrize("name", EVENTS)
def test_the_moment_function_decays_as_claimed(name: str) -> None:
    for law, spread in laws(name):
        assert decay_excess(law, spread, TILTS) <= 1e-9


@pytest.mark.parametrize("fault", ["levels", "lengths"])
def test_that_test_would_see_uniform_laws_that_do_not_fit(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    sound = decay.uniforms

    def careless(*args: Any) -> tuple[Any, Any]:
        weights, lengths = sound(*args)
        return (weights * 1.2, lengths) if fault == "levels" else (weights, lengths * 1.2)

    monkeypatch.setattr(decay, "uniforms", careless)
    assert max(decay_excess(law, spread, (0.5, 8.0)) for law, spread in laws("rate 0.05")) > 1e-3


@pytest.mark.parametrize(
    ("floor", "mass"),
    [([1, 2, 9], 1 + 2), ([5, 4, 1], 4 + 1), ([2, 2, 2], 4), ([1, 3, 2, 5, 4, 1], 1 + 2 + 2 + 4 + 1), ([3, 1, 4], 2)],
)
def test_uniform_laws_stay_below_the_density(floor: list[float], mass: float) -> None:
    """On nodes at 0, 1, 2, ... each cell has the lower of its two ends, but for what a valley hides from the peak."""
    places = np.arange(len(floor), dtype=float)
    weights, lengths = decay.uniforms(np.array(floor, float), places, np.ones(len(floor)), np.zeros(len(floor)))
    assert np.all(weights >= 0) and np.all(np.diff(lengths) <= 0)
    assert float(weights.sum()) == pytest.approx(mass, rel=1e-9)


@pytest.mark.parametrize("name", EVENTS)
def test_quadrature_is_off_by_less_than_its_bound(name: str) -> None:
    for law, spread in laws(name):
        truth = Nodes(law, 0.11)
        for tilt in np.array((*TILTS, 100.0)) / spread:
            for width in (4.0, 2.0, 1.0, 0.5):
                nodes = Nodes(law, width)
                whole = nodes.cumulant(tilt)
                if truth.cumulant(tilt) - whole > 100:  # far too few panels: the bound must know
                    assert nodes.quadrature(tilt) == math.inf
                    continue
                for frequency in np.array([0.0, 0.3, 3.0, 30.0, 100.0]) / spread:
                    bound = nodes.quadrature(tilt, frequency)
                    if bound < 1e-12:  # below what the comparison resolves
                        continue
                    integrals = [
                        np.sum(np.exp(each.log_mass + (tilt + 1j * frequency) * each.losses - whole))
                        for each in (nodes, truth)
                    ]
                    assert abs(integrals[0] - integrals[1]) <= bound + 1e-12


def test_quadrature_bounds_are_not_idle() -> None:
    """Few panels and fast oscillation: the error is real, and within a factor of some hundred of the bound."""
    (law, spread), *_ = laws("rate 0.99")
    nodes, truth = Nodes(law, 0.5), Nodes(law, 0.11)
    tilt, frequency = 0.5 / spread, 100 / spread
    whole = nodes.cumulant(tilt)
    off = [np.sum(np.exp(n.log_mass + (tilt + 1j * frequency) * n.losses - whole)) for n in (nodes, truth)]
    assert abs(off[0] - off[1]) > 1e-3 * nodes.quadrature(tilt, frequency) > 1e-12


def exact_delta(mu: float, epsilon: float) -> float:
    return float(stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(0.05, 30), st.integers(1, 10**6), st.sampled_from([1e-12, 1e-6, 1e-3, 0.1]))
def test_composed_gaussians_have_the_exact_curve(multiplier: float, times: int, delta: float) -> None:
    (law,) = pairs.directions(Gaussian(multiplier=multiplier), TAIL)
    found = inversion.epsilon([(law, times)], delta)
    if found.upper > 0:
        mu = math.sqrt(times) / multiplier
        assert log_delta(mu, found.upper * (1 + 1e-13)) <= math.log(delta) + 1e-9 * mu
        assert found.lower == 0 or log_delta(mu, found.lower * (1 - 1e-13)) >= math.log(delta) - 1e-9 * mu
    assert found.width <= 1e-5 * max(1.0, found.upper)


def log_delta(mu: float, epsilon: float) -> float:
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return float(mp.log(mp.ncdf(m / 2 - e / m) - mp.exp(e + mp.log(mp.ncdf(-m / 2 - e / m)))))


def one(mu: float, rate: float, x: np.ndarray) -> np.ndarray:
    """The curve of one sampled Gaussian, removing, at any x > 0."""
    inner = np.maximum((x - 1 + rate) / rate, 1e-300)
    middle = np.log(inner) / mu
    above = rate * (stats.norm.cdf(mu / 2 - middle) - inner * stats.norm.cdf(-mu / 2 - middle))
    return np.where(x <= 1 - rate, 1 - x, above)


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_two_sampled_gaussians_are_a_double_integral(rate: float, epsilon: float) -> None:
    mu = 1.25
    z = np.linspace(-9, 12, 200_001)
    ratio = 1 - rate + rate * np.exp(mu * z - mu * mu / 2)
    first = stats.norm.pdf(z) * ratio
    truth = float(integrate.simpson(first * one(mu, rate, math.exp(epsilon) / ratio), x=z))
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=0.8), rate), 1e-20)
    found = inversion.delta([(law, 2)], epsilon)  # all of [0, 1] if that is too few for it
    assert found.lower <= truth * (1 + 1e-8) and truth * (1 - 1e-8) <= found.upper


def test_an_atom_at_infinity_and_cut_mass_are_added() -> None:
    (smooth,) = pairs.directions(Laplace(epsilon=1), TAIL)
    (lossy,) = pairs.directions(Approximate(epsilon=1, delta=1e-3), TAIL)
    plain = inversion.delta([(smooth, 30)], 8.0)
    both = inversion.delta([(smooth, 30), (lossy, 1)], 8.0)
    assert both.lower >= 1e-3 and both.upper <= 1e-3 + inversion.delta([(smooth, 30), (rr(), 1)], 8.0).upper
    assert plain.upper <= both.upper


def rr() -> Loss:
    return pairs.directions(Pure(epsilon=1), TAIL)[0]


def broken(parts: list[inversion.Part], delta: float, **change: float) -> tuple[Curve, float]:
    """A curve whose layout was tampered with."""
    found = inversion.curve(parts, delta=delta)
    assert found is not None
    curve, guess = found
    layout = curve.layout
    fields = {
        "tilt": layout.tilt,
        "period": layout.period,
        "furthest": layout.furthest,
        "decay": layout.decay,
        **change,
    }
    return Curve(curve.whole, _Layout(**fields), guess), guess


def test_a_period_that_is_too_small_is_caught_by_the_alias_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    (law,) = pairs.directions(Gaussian(multiplier=2), TAIL)
    parts, truth = [(law, 4)], exact_delta(1.0, 1.0)  # mu = 1
    honest = inversion.curve(parts, delta=truth)
    assert honest is not None
    short = honest[0].layout.period / 6
    bad, _ = broken(parts, truth, period=short)
    at = bad.delta(1.0)
    assert at.lower <= truth <= at.upper  # aliases are counted
    monkeypatch.setattr(Curve, "_aliases", lambda self, epsilon: 0.0)
    assert broken(parts, truth, period=short)[0].delta(1.0).lower > truth  # without them the lower end is wrong


def test_a_sum_that_ends_too_early_is_caught_by_the_decay_bound() -> None:
    (law,) = pairs.directions(Gaussian(multiplier=2), TAIL)
    parts, truth = [(law, 4)], exact_delta(1.0, 1.0)
    early = 1.0
    honest = broken(parts, truth, furthest=early, decay=early * early / 2)[0].delta(1.0)
    assert honest.lower <= truth <= honest.upper
    blind = broken(parts, truth, furthest=early, decay=700.0)[0].delta(1.0)
    assert not blind.lower <= truth <= blind.upper


def test_rounding_that_is_forgotten_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """At delta 1e-15 and no tilt to speak of, digits run out; the doubt must cover that."""
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=1), 0.01), 1e-25)
    parts = [(law, 1000)]
    good = inversion.delta(parts, 6.0)
    whole = _Sum.of(parts)
    weak = inversion._layout(whole, 0.3, 6.0, math.log(good.upper), 1e-6)
    found = Curve(whole, weak, 6.0).delta(6.0)
    assert found.lower <= good.upper and good.lower <= found.upper
    assert found.width > 10 * good.width


@pytest.mark.parametrize("name", ["rate 1e-06, noise 0.7", "rate 0.05", "without replacement", "laplace 5"])
def test_rounding_of_the_moment_function_is_within_its_bound(name: str) -> None:
    """Beside sums with three more digits, of the same nodes: what is small is known to its own size."""
    for law, spread in laws(name):
        nodes, tilt, count = Nodes(law, 0.2), min(3 / spread, 6.0), 60
        _, shares, _ = nodes.tilted(tilt)
        spacing = 0.2 / spread
        log_mass, losses = nodes.log_mass.astype(np.longdouble), nodes.losses.astype(np.longdouble)
        exponent = log_mass + tilt * losses
        true = np.exp(exponent - exponent.max())
        true /= true.sum()
        angle = np.outer(spacing * np.arange(count), losses)
        real, imaginary = -2 * np.sin(angle / 2) ** 2 @ true, np.sin(angle) @ true
        off = np.abs(nodes.spectrum(shares, spacing, count) - (real + 1j * imaginary)).astype(float)
        bound = nodes.rounding(shares, tilt, spacing * count)
        assert off.max() <= bound
        assert bound < 1e-10 * float((shares * np.minimum(2, spacing * count * np.abs(nodes.losses))).sum())


@pytest.mark.parametrize("name", EVENTS)
def test_the_bound_on_total_variation_is_above_it_and_close(name: str) -> None:
    for law, _ in laws(name):
        truth = float((law.masses * -np.expm1(-np.maximum(law.atoms, 0.0))).sum())
        for piece in law.pieces:
            start = piece.steepest / 2 if piece.base[2] and len(piece.rates) < 3 else None
            edges = np.linspace(piece.low, piece.high, 100_001)
            if start is not None and piece.low < start < piece.high:
                edges = np.sort(np.append(edges, start))
            z = (edges[1:] + edges[:-1]) / 2
            ratio = piece.log_ratio(z)
            mass = np.diff(edges) * np.exp(piece.log_base(z) + (ratio if piece.forward else 0.0))
            truth += float((mass * -np.expm1(-np.maximum(ratio if piece.forward else -ratio, 0.0))).sum())
        assert truth * (1 + 1e-3) <= inversion.variation([(law, 1)]) <= 1.02 * truth + 1e-14


def test_total_variation_of_gaussians_is_the_closed_form() -> None:
    (law,) = pairs.directions(Gaussian(multiplier=2), TAIL)
    assert inversion.variation([(law, 3)]) == pytest.approx(3 * 1.01 * exact_delta(0.5, 0.0), rel=1e-9)


@pytest.mark.parametrize("name", EVENTS)
def test_the_ceiling_is_above_the_curve(name: str) -> None:
    for law, spread in laws(name):
        for times in (3, 300):
            mean = times * float((np.exp(Nodes(law).log_mass) * Nodes(law).losses).sum())
            for epsilon in mean + np.array([0.0, 2.0, 5.0]) * spread * math.sqrt(times):
                if epsilon > 0:
                    found = inversion.delta([(law, times)], epsilon)
                    assert inversion.ceiling([(law, times)], epsilon) >= found.lower


@pytest.mark.parametrize("tilt", [0.1, 1.0, 7.0])
def test_cumulants_of_plain_gaussians_are_the_closed_form(tilt: float) -> None:
    law, _ = pairs.directions(Poisson(Gaussian(multiplier=2), 1 - Fraction(1, 10**15)), 1e-20)  # by quadrature
    assert Nodes(law).cumulant(tilt) == pytest.approx(0.25 * (tilt * tilt + tilt) / 2, rel=1e-9)


def test_where_nothing_is_smooth_inversion_says_so() -> None:
    assert inversion.epsilon([(rr(), 10)], 1e-6) == (0.0, math.inf)
    assert inversion.delta([(rr(), 10)], 1.0) == (0.0, 1.0)
