"""The privacy-loss random variable: against closed forms, quadrature and the curves that follow from it."""

from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from sfumato.accounting import optimal
from sfumato.accounting.loss import PrivacyLoss, privacy_loss
from sfumato.errors import ArgumentError, SfumatoError, UnsupportedEventError
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
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)


def delta(law: PrivacyLoss, epsilon: float) -> float:
    """E[(1 - e^(epsilon - L))+], by cells of the law's own cdf."""
    found = law.infinite + float((law.masses * np.maximum(-np.expm1(epsilon - law.atoms), 0.0)).sum())
    if law.pieces is not None:
        edges = np.linspace(epsilon, max(law.range[1], epsilon), 100_001)
        middles = (edges[1:] + edges[:-1]) / 2
        found += float((np.diff(law.pieces[1](edges)) * -np.expm1(epsilon - middles)).sum())
    return found


def test_gaussian_loss_is_normal() -> None:
    law = privacy_loss(Gaussian(multiplier=2))
    normal = stats.norm(1 / 8, 1 / 2)
    x = np.linspace(-3, 3, 13)
    assert np.allclose(law.pdf(x), normal.pdf(x), rtol=1e-9)
    assert np.allclose(law.cdf(x), normal.cdf(x), rtol=1e-9)
    assert np.allclose(law.quantile([0.01, 0.5, 0.99]), normal.ppf([0.01, 0.5, 0.99]), atol=1e-9)
    assert law.mean == pytest.approx(1 / 8) and law.variance == pytest.approx(1 / 4)
    assert law.cumulants[2:4] == pytest.approx((0, 0), abs=1e-12)
    assert law.moments(2) == pytest.approx((1 / 8, 1 / 4 + 1 / 64))


def test_laplace_loss_has_two_atoms_and_a_density() -> None:
    law = privacy_loss(Laplace(epsilon=1))
    assert sorted(law.atoms) == [-1, 1]
    assert dict(zip(law.atoms, law.masses, strict=True)) == pytest.approx({1: 0.5, -1: math.exp(-1) / 2})
    inside, _ = integrate.quad(law.pdf, -1, 1)
    assert inside + law.masses.sum() == pytest.approx(1)
    # x ~ Laplace(0, 1), L = |x - 1| - |x|
    mean, _ = integrate.quad(lambda x: (abs(x - 1) - abs(x)) * math.exp(-abs(x)) / 2, -40, 40, points=[0, 1])
    square, _ = integrate.quad(lambda x: (abs(x - 1) - abs(x)) ** 2 * math.exp(-abs(x)) / 2, -40, 40, points=[0, 1])
    assert law.mean == pytest.approx(mean, abs=1e-9) and law.moments(2)[1] == pytest.approx(square, abs=1e-9)
    assert law.cdf(-1) == pytest.approx(math.exp(-1) / 2) and law.cdf(1) == pytest.approx(1)
    assert law.cdf(np.nextafter(1, 0)) == pytest.approx(0.5)


PRICES: list[tuple[Event, float, float]] = [
    (Gaussian(multiplier=1), 1, 0.1269367375),
    (Laplace(epsilon=1), 0.5, 1 - math.exp(-0.25)),
    (DiscreteGaussian(variance=1), 1, 0.14135134),
    (DiscreteGaussian(variance=4), 1, 7.2487768e-3),
    (DiscreteGaussian(variance=16), 1, 3.0554546e-6),
    (DiscreteGaussian(variance=100), 0.5, 6.9343703e-9),
    (RandomizedResponse(epsilon=1, categories=4), 0.5, (math.e - math.exp(0.5)) / (math.e + 3)),
    (Pure(epsilon=1), 0.5, (math.e - math.exp(0.5)) / (math.e + 1)),
    (Approximate(epsilon=1, delta=0.01), 1, 0.01),
    (Repeat(Pure(epsilon=0.1), 10), 0.5, 9.929627e-3),
    (Repeat(Pure(epsilon=1), 2), 1, 0.3378347121),
    (Repeat(Pure(epsilon=0.1), 100), 4.774568, 1e-6),
    (Repeat(Poisson(Gaussian(multiplier=2), 0.01), 1000), 0.62203, 1e-5),
    (Repeat(Laplace(epsilon=1), 20), 18.0937, 1e-4),
    (Repeat(Gaussian(multiplier=4), 16), 1, 0.1269367375),
]


@pytest.mark.parametrize(("event", "epsilon", "value"), PRICES, ids=lambda each: str(each)[:50])
def test_the_curve_follows_from_the_loss(event: Event, epsilon: float, value: float) -> None:
    assert delta(privacy_loss(event), epsilon) == pytest.approx(value, rel=3e-4)


SINGLES: list[Event] = [
    Gaussian(multiplier=1),
    Laplace(epsilon=0.7),
    DiscreteLaplace(epsilon=1, shift=5),
    DiscreteGaussian(variance=3),
    RandomizedResponse(epsilon=1, categories=5),
    Pure(epsilon=0.3),
    Exponential(epsilon=0.3),
    Poisson(Gaussian(multiplier=1), 0.1),
    Poisson(Laplace(epsilon=1), 0.2),
    Poisson(DiscreteLaplace(epsilon=1, shift=3), 0.2),
    GaussianMixture(shifts=(0, 1, 2), weights=(0.5, 0.3, 0.2)),
    Poisson(GaussianMixture(shifts=(1, 2), weights=(0.5, 0.5)), 0.5),
]


@pytest.mark.parametrize("event", SINGLES, ids=lambda each: str(each)[:60])
def test_both_directions_belong_to_one_pair(event: Event) -> None:
    """For any pair H(P, Q, e^x) = 1 - e^x + e^x H(Q, P, e^-x): the two directions check each other."""
    remove, add = (privacy_loss(event, direction=way) for way in ("remove", "add"))  # type: ignore[arg-type]
    for epsilon in (0.0, 0.05, 0.2):
        mirrored = -math.expm1(-epsilon) + math.exp(-epsilon) * delta(remove, epsilon)
        assert delta(add, -epsilon) == pytest.approx(mirrored, abs=2e-6)
    for law in (remove, add):
        assert law.cdf(law.range[1]) == pytest.approx(1) and law.cdf(law.range[0] - 1) == 0
        assert law.mean > 0  # a Kullback-Leibler divergence
        levels = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
        losses = law.quantile(levels)
        assert np.all(law.cdf(losses) >= levels - 1e-9) and np.all(law.cdf(losses - 1e-6) <= levels + 1e-4)
    # E_P[e^-L] = 1 for the pairs here, which have one support
    if remove.pieces is None:
        assert float((remove.masses * np.exp(-remove.atoms)).sum()) == pytest.approx(1)


def test_poisson_sampling_against_quadrature() -> None:
    rate, mu = 0.1, 1.0
    with mpmath.workdps(30):

        def loss(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(1 - rate + rate * mpmath.exp(mu * z - mu * mu / 2))

        def mixed(z: mpmath.mpf) -> mpmath.mpf:
            return (1 - rate) * mpmath.npdf(z) + rate * mpmath.npdf(z, mu)

        places = [-15, -5, 0, 5, 16]
        mean = mpmath.quad(lambda z: loss(z) * mixed(z), places)
        third = mpmath.quad(lambda z: (loss(z) - mean) ** 3 * mixed(z), places)
        other = mpmath.quad(lambda z: -loss(z) * mpmath.npdf(z), places)
    law = privacy_loss(Poisson(Gaussian(multiplier=1), 0.1))
    assert law.mean == pytest.approx(float(mean), rel=1e-10)
    assert law.cumulants[2] == pytest.approx(float(third), rel=1e-10)
    assert privacy_loss(Poisson(Gaussian(multiplier=1), 0.1), direction="add").mean == pytest.approx(
        float(other), rel=1e-10
    )
    assert law.range[0] == pytest.approx(math.log(0.9))


def test_the_mean_of_small_losses_keeps_its_digits() -> None:
    """A Kullback-Leibler divergence of order epsilon^2, out of losses of order epsilon."""
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(mpmath.mpf("-1e-9")))
        q, rate = 1 - p, mpmath.mpf("1e-9")
        mixed = [(1 - rate) * b + rate * a for a, b in ((p, q), (q, p))]
        true = sum(m * mpmath.log(m / b) for m, b in zip(mixed, (q, p), strict=True))
    assert privacy_loss(Poisson(Pure(epsilon=1e-9), 1e-9)).mean == pytest.approx(float(true), rel=1e-8)
    assert privacy_loss(Gaussian(multiplier=1e6)).mean == pytest.approx(5e-13, rel=1e-12)


def test_a_steep_mixture_has_its_mass_where_it_should() -> None:
    """Rare sampling of little noise: the loss is flat, bends sharply and then rises steeply."""
    rate, mu = 1e-3, 50.0
    law = privacy_loss(Poisson(Gaussian(multiplier=0.02), 1e-3))
    for loss in (-math.log1p(rate), -1e-4, 1e-6, 0.5, 10.0, 1100.0, 1243.0, 1300.0):
        inner = (math.exp(min(loss, 700.0)) - (1 - rate)) / rate
        log_inner = math.log(inner) if loss < 700 and inner > 0 else loss - math.log(rate)
        z = log_inner / mu + mu / 2 if inner > 0 else -math.inf
        true = (1 - rate) * stats.norm.cdf(z) + rate * stats.norm.cdf(z - mu)
        assert law.cdf(loss) == pytest.approx(true, abs=1e-12)


def test_whole_shifts_of_several_coordinates() -> None:
    """A unit that moves two counters by one each loses twice what it loses by one."""
    both = privacy_loss(DiscreteGaussian(variance=2, coordinates=3, shift_squared=2))
    twice = privacy_loss(Repeat(DiscreteGaussian(variance=2), 2))
    k = np.arange(-60, 61)
    mass = np.exp(-(k**2) / 4.0)
    pair = np.add.outer(0.25 * (1 - 2 * k), 0.25 * (1 - 2 * k))
    chance = np.multiply.outer(mass, mass) / mass.sum() ** 2
    for level in (-2.0, 0.5, 3.0):
        assert both.cdf(level + 1e-9) == pytest.approx(chance[pair <= level + 1e-9].sum(), abs=1e-12)
    assert both.mean == pytest.approx(float((chance * pair).sum())) == pytest.approx(twice.mean)


def test_a_fixed_size_sample_loses_alike_both_ways() -> None:
    """Its curve is that of removing under Poisson sampling, at every epsilon >= 0."""
    event = WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 10, 100)
    poisson = privacy_loss(Poisson(Gaussian(multiplier=1), 0.1))
    for direction in ("remove", "add"):
        law = privacy_loss(event, direction=direction)  # type: ignore[arg-type]
        assert float(law.cdf(law.range[1])) == pytest.approx(1, abs=1e-12)
        for epsilon in (0.0, 0.4):
            assert delta(law, epsilon) == pytest.approx(delta(poisson, epsilon), rel=1e-6)


def test_composed_moments_add_up() -> None:
    one, two = Laplace(epsilon=0.5), Poisson(Gaussian(multiplier=1), 0.2)
    law = privacy_loss(Sequence((Repeat(one, 3), two)))
    for n in range(4):
        parts = 3 * privacy_loss(one).cumulants[n] + privacy_loss(two).cumulants[n]
        assert law.cumulants[n] == pytest.approx(parts, rel=1e-9)
    x = np.linspace(*law.range, 20_001)
    mass = law.pdf(x) * (x[1] - x[0])
    assert mass.sum() == pytest.approx(1, abs=1e-4)
    assert float((mass * x).sum()) == pytest.approx(law.mean, abs=1e-4)


def test_composed_lattices_keep_their_atoms() -> None:
    law = privacy_loss(Repeat(Pure(epsilon=1), 3))
    p = math.e / (1 + math.e)
    wanted = {3: p**3, 1: 3 * p**2 * (1 - p), -1: 3 * p * (1 - p) ** 2, -3: (1 - p) ** 3}
    assert {round(a): m for a, m in zip(law.atoms, law.masses, strict=True)} == pytest.approx(wanted)
    many = privacy_loss(Repeat(Approximate(epsilon=0.1, delta=1e-4), 100))
    assert many.infinite == pytest.approx(1 - (1 - 1e-4) ** 100)
    truth = optimal.delta(epsilon0=0.1, delta0=1e-4, times=100, epsilon=3).upper
    assert delta(many, 3) == pytest.approx(truth, rel=1e-6)


def test_infinite_losses() -> None:
    law = privacy_loss(Approximate(epsilon=1, delta=0.01))
    assert law.infinite == 0.01 and law.quantile(0.995) == math.inf and law.quantile(0.98) == pytest.approx(1)
    for ask in (lambda: law.mean, lambda: law.variance, lambda: law.moments()):
        with pytest.raises(UnsupportedEventError, match="infinite"):
            ask()


@pytest.mark.parametrize(
    "event",
    [
        Pure(epsilon=1e4),
        Repeat(Pure(epsilon=1e4), 10),
        Laplace(epsilon=1e4),
        Laplace(epsilon=1e-9),
        Gaussian(multiplier=1e-3),
        Gaussian(multiplier=1e6),
        Poisson(Gaussian(multiplier=1e-2), 1e-9),
        Poisson(Pure(epsilon=1e4), 1e-9),
        Repeat(Poisson(Gaussian(multiplier=1), 1e-4), 10**6),
        Repeat(RandomizedResponse(epsilon=0.01, categories=9), 10**6),
        Poisson(Pure(epsilon=1e-9), 1e-9),
        Repeat(Poisson(Laplace(epsilon=1e-9), 1e-9), 10**6),
        Poisson(Gaussian(multiplier=1e-2), 0.5),
        Repeat(Gaussian(multiplier=1e-3), 10**8),
        Sequence((Gaussian(multiplier=1e-3), Gaussian(multiplier=1e6))),
        WithoutReplacement(Gaussian(multiplier=1, relation="replace"), 10, 1000),
        Shuffled(Pure(epsilon=1, relation="replace"), 1000),
    ],
    ids=lambda each: str(each)[:70],
)
def test_extremes(event: Event) -> None:
    for direction in ("remove", "add"):
        law = privacy_loss(event, direction=direction)  # type: ignore[arg-type]
        levels = law.quantile([0.0, 0.01, 0.5, 0.99, 1.0])
        assert np.all(np.isfinite(levels)) and np.all(np.diff(levels) >= 0)
        assert np.all(np.isfinite(law.pdf(levels))) and np.all(np.isfinite(law.cdf(levels)))
        assert math.isfinite(law.mean) and law.mean > 0 and law.variance >= 0


def test_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(SfumatoError, match=r"\.\[plots\]"):
        privacy_loss(Laplace(epsilon=1)).plot()

    class Axes:
        calls: list[str] = []  # noqa: RUF012

        def __getattr__(self, name: str) -> object:
            return lambda *_, **__: self.calls.append(name)

    axes = Axes()
    for event in (Laplace(epsilon=1), Approximate(epsilon=1, delta=0.1), Repeat(Gaussian(multiplier=1), 3)):
        assert privacy_loss(event).plot(axes) is axes
    assert {"plot", "vlines", "set_xlabel"} <= set(axes.calls)


def test_refusals() -> None:
    for event in (ZeroConcentrated(rho=1), BestOf(Gaussian(multiplier=1), mean=3)):
        with pytest.raises(UnsupportedEventError, match=type(event).__name__):
            privacy_loss(event)
    with pytest.raises(UnsupportedEventError, match="unlike"):
        privacy_loss(Partition("ward", (Pure(epsilon=1), Pure(epsilon=2))))
    with pytest.raises(ArgumentError, match="direction"):
        privacy_loss(Pure(epsilon=1), direction="both")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="probability"):
        privacy_loss(Pure(epsilon=1)).quantile(1.5)
    with pytest.raises(ArgumentError, match="count"):
        privacy_loss(Pure(epsilon=1)).moments(99)
