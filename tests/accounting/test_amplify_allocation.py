"""Random allocation: against integrals, enumeration and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import fft, integrate, special, stats

from sfumato.accounting import gdp
from sfumato.accounting.amplify import allocation
from sfumato.accounting.amplify.basket import LogNormal, TwoPoint, _power
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import Approximate, Gaussian, Laplace, Poisson, Pure, RandomAllocation, Repeat


def dealt(multiplier: float, steps: int, picks: int = 1) -> RandomAllocation:
    return RandomAllocation(Gaussian(multiplier=multiplier), steps, picks)


def one_put(mu: float, level: np.ndarray) -> np.ndarray:
    """E[(level - L)+] for one log-normal L: the closed form."""
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (np.log(np.maximum(level, 0)) + mu * mu / 2) / mu
    return np.where(level > 0, level * special.ndtr(d) - special.ndtr(d - mu), 0.0)


def two_put(mu: float, level: float) -> float:
    """E[(level - (L1 + L2)/2)+], by integrating the closed form over L1."""
    last = (math.log(2 * level) + mu * mu / 2) / mu

    def inner(x: float) -> float:
        left = 2 * level - math.exp(mu * x - mu * mu / 2)
        return float(one_put(mu, np.array(left))) / 2 * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)

    return float(integrate.quad(inner, -12, min(last, 12), epsabs=1e-15, epsrel=1e-12, limit=400)[0])


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("log_level", [-2.0, -0.3, 0.0, 0.3, 2.0])
def test_two_steps_by_integration(mu: float, log_level: float) -> None:
    level = math.exp(log_level)
    true = two_put(mu, level)
    found = LogNormal(mu, 2, level, 1e-13).put(level)
    assert true <= found <= true + 1e-8 * max(1, level)


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("log_level", [-0.3, 0.3, 1.5])
def test_three_steps_by_integration(mu: float, log_level: float) -> None:
    level = math.exp(log_level)
    x = np.linspace(-9, 9, 1501)
    weight = stats.norm.pdf(x) * (x[1] - x[0])
    each = np.exp(mu * x - mu * mu / 2)
    left = 3 * level - each[:, None] - each[None, :]
    true = float((one_put(mu, left) / 3 * weight[:, None] * weight[None, :]).sum())
    found = LogNormal(mu, 3, level, 1e-13).put(level)
    assert true * (1 - 1e-7) <= found <= true * (1 + 1e-4) + 1e-8


def test_epsilon_of_two_steps() -> None:
    """The least epsilon of both directions, from the integrals alone."""
    for multiplier in (0.7, 1.0, 2.0):
        mu, found = 1 / multiplier, allocation.epsilon(dealt(multiplier, 2), 1e-5)

        def delta(epsilon: float, mu: float = mu) -> float:
            remove = two_put(mu, math.exp(epsilon)) - math.expm1(epsilon)
            return max(remove, math.exp(epsilon) * two_put(mu, math.exp(-epsilon)))

        assert delta(found.upper) <= 1e-5 * (1 + 1e-3) + 1e-12
        assert delta(found.upper - 5e-3) > 1e-5
        assert delta(found.lower) >= 1e-5 * (1 - 1e-6)


# one epoch of 1000 (or 10,000) steps at delta 1e-5: the price of Poisson sampling, for comparison
@pytest.mark.parametrize(
    ("multiplier", "steps", "poisson"),
    [(0.5, 1000, 3.23888), (0.6, 1000, 1.42526), (0.8, 1000, 0.30355), (1.0, 1000, 0.14890), (0.5, 10000, 1.17527)],
)
def test_one_epoch(multiplier: float, steps: int, poisson: float) -> None:
    found = allocation.epsilon(dealt(multiplier, steps), 1e-5)
    assert found.lower <= found.upper < poisson
    assert found.lower > 0.6 * found.upper
    whole = gdp.least_epsilon(1 / Fraction(multiplier) ** 2, Fraction(1, 10**5))
    assert found.upper < 0.4 * float(whole)


def test_the_lattice_is_fine_enough() -> None:
    fine = allocation.epsilon(dealt(1, 200), 1e-6).upper
    law = LogNormal(1.0, 200, math.exp(2 * fine), 1e-12)
    assert law.remove(fine) <= 1e-6 * (1 + 1e-2)
    assert law.remove(0.98 * fine) > 1e-6


def simulated(mu: float, steps: int, picks: int, epsilon: float) -> tuple[float, float, float]:
    """delta of both directions by simulation, and how far off they may be."""
    random = np.random.default_rng(5)
    each = np.exp(mu * random.standard_normal((400_000, steps)) - mu * mu / 2)
    chosen = list(combinations(range(steps), picks))
    ratio = sum(np.prod(each[:, some], axis=1) for some in chosen) / len(chosen)
    remove = np.maximum(ratio - math.exp(epsilon), 0)
    add = np.maximum(1 - math.exp(epsilon) * ratio, 0)
    return float(remove.mean()), float(add.mean()), 5 * float(max(remove.std(), add.std())) / math.sqrt(len(each))


@pytest.mark.parametrize(
    ("multiplier", "steps", "picks"), [(1.0, 5, 1), (1.0, 5, 2), (2.0, 6, 3), (0.8, 4, 4), (3, 7, 2)]
)
def test_simulation_stays_under_the_price(multiplier: float, steps: int, picks: int) -> None:
    for delta in (0.05, 0.01):
        found = allocation.epsilon(dealt(multiplier, steps, picks), delta)
        remove, add, off = simulated(1 / multiplier, steps, picks, found.upper)
        assert max(remove, add) <= delta + off
        remove, add, off = simulated(1 / multiplier, steps, picks, found.lower)
        assert max(remove, add) >= delta - off


def test_a_price_that_is_too_low_is_caught_by_the_simulation() -> None:
    found = allocation.epsilon(dealt(1.0, 5), 0.01)
    remove, add, off = simulated(1.0, 5, 1, 0.8 * found.upper)
    assert max(remove, add) > 0.01 + off


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_moments_by_integration(mu: float) -> None:
    x = np.linspace(-10, 10 + 6 * mu, 1501)
    weight = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    each = np.exp(mu * x - mu * mu / 2)
    ratio = (each[:, None] + each[None, :]) / 2
    both = weight[:, None] * weight[None, :]
    for order in (2, 3, 5):
        remove = math.log(float((both * ratio**order).sum())) / (order - 1)
        add = math.log(float((both * ratio ** (1 - order)).sum())) / (order - 1)
        moment = float(allocation._log_moments(mu, 2)[order - 2]) / (order - 1)
        assert remove * (1 - 1e-9) <= moment <= remove * (1 + 1e-6) + 1e-9
        assert max(remove, add) <= allocation.divergence(dealt(1 / mu, 2), order) * (1 + 1e-9)
    between = math.log(float((both * ratio**2.5).sum())) / 1.5
    assert between <= allocation.divergence(dealt(1 / mu, 2), 2.5)


def test_moments_of_many_steps_by_the_binomial_theorem() -> None:
    """Order 2: t^-2 (t e^(mu^2) + t (t-1)); order 3 by counting coincidences."""
    t, m = 1000, math.e
    second, third = allocation._log_moments(1.0, t)[:2]
    assert math.exp(second) == pytest.approx((t * m + t * (t - 1)) / t**2, rel=1e-8)
    assert math.exp(third) == pytest.approx((t * m**3 + 3 * t * (t - 1) * m + t * (t - 1) * (t - 2)) / t**3, rel=1e-8)


@pytest.mark.parametrize(("mu", "steps"), [(0.5, 50), (1.0, 200), (2.0, 200)])
def test_the_chance_of_being_late(mu: float, steps: int) -> None:
    """Partial sums of 1 - L pass h t no more often than claimed."""
    random = np.random.default_rng(11)
    sums = np.cumsum(1 - np.exp(mu * random.standard_normal((20_000, steps)) - mu * mu / 2), axis=1)
    for chance in (0.3, 0.05):
        h = allocation._late(mu, steps, chance)
        often = float((sums.max(axis=1) >= h * steps).mean())
        assert often <= chance
        assert (sums.max(axis=1) >= h * steps / 4).mean() > chance  # the claim is not empty


def test_like_poisson_sampling() -> None:
    event = dealt(1, 1000)
    sampled = allocation.as_poisson(event, failure=1e-7)
    assert isinstance(sampled.event, Poisson)
    assert Fraction(1, 1000) < sampled.event.rate < Fraction(2, 1000)
    assert sampled.times == 1000
    several = allocation.as_poisson(dealt(1, 1000, 10), failure=1e-7)
    assert several.times == 1000
    assert isinstance(several.event, Poisson)
    assert several.event.rate > Fraction(10, 1000)


def allocated(channels: list[np.ndarray], steps: int, picks: int, epsilon: float) -> float:
    """delta of both directions for discrete steps, by enumeration: rows are without the unit and with it."""
    chosen = list(combinations(range(steps), picks))
    remove = add = 0.0
    for outputs in product(*(range(channel.shape[1]) for channel in channels)):
        without = math.prod(channel[0, y] for channel, y in zip(channels, outputs, strict=True))
        ratio = [channel[1, y] / channel[0, y] for channel, y in zip(channels, outputs, strict=True)]
        mixed = without * sum(math.prod(ratio[i] for i in some) for some in chosen) / len(chosen)
        remove += max(0.0, mixed - math.exp(epsilon) * without)
        add += max(0.0, without - math.exp(epsilon) * mixed)
    return max(remove, add)


def coin(local: float) -> np.ndarray:
    low = 1 / (math.exp(local) + 1)
    return np.array([[low, 1 - low], [1 - low, low]])


@pytest.mark.parametrize("local", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("steps", [1, 2, 5, 9])
def test_pure_steps_by_enumeration(local: float, steps: int) -> None:
    for share in (0.0, 0.1, 0.5, 0.95):
        true = allocated([coin(local)] * steps, steps, 1, share * local)
        law = TwoPoint(local, steps)
        assert max(law.remove(share * local), law.add(share * local)) == pytest.approx(true, rel=1e-6, abs=1e-12)
        event = RandomAllocation(Pure(epsilon=local), steps)
        assert true <= allocation.delta(event, share * local).upper * (1 + 1e-12)


@pytest.mark.parametrize(("steps", "picks"), [(4, 2), (5, 2), (6, 3)])
def test_several_picks_of_pure_steps(steps: int, picks: int) -> None:
    found = allocation.epsilon(RandomAllocation(Pure(epsilon=0.5), steps, picks), 0.01)
    assert allocated([coin(0.5)] * steps, steps, picks, found.upper) <= 0.01
    assert found.upper < 0.5 * picks


def test_adaptive_steps_cost_no_more() -> None:
    """The second step's channel depends on the first output."""
    random = np.random.default_rng(3)
    local = 1.0
    for _ in range(200):
        first, *second = (np.exp(local / 2 * random.integers(0, 2, (2, 3))) for _ in range(4))
        first, *second = (table / table.sum(axis=1, keepdims=True) for table in (first, *second))
        for epsilon in (0.0, 0.2, 0.6):
            remove = add = 0.0
            for y, z in product(range(3), repeat=2):
                without = first[0, y] * second[y][0, z]
                mixed = (first[1, y] * second[y][0, z] + first[0, y] * second[y][1, z]) / 2
                remove += max(0.0, mixed - math.exp(epsilon) * without)
                add += max(0.0, without - math.exp(epsilon) * mixed)
            law = TwoPoint(local, 2)
            assert remove <= law.remove(epsilon) + 1e-12
            assert add <= law.add(epsilon) + 1e-12


@pytest.mark.parametrize("multiplier", [1e-3, 0.1, 1, 1e6])
@pytest.mark.parametrize(("steps", "picks"), [(1, 1), (2, 2), (10**6, 1), (10**6, 1000)])
@pytest.mark.parametrize("delta", ["1e-12", "1e-5", "0.5"])
def test_the_ends_of_the_range(multiplier: float, steps: int, picks: int, delta: str) -> None:
    found = allocation.epsilon(dealt(multiplier, steps, picks), Fraction(delta))
    whole = gdp.least_epsilon(picks / Fraction(str(multiplier)) ** 2, Fraction(delta))
    assert 0 <= found.lower <= found.upper <= float(whole) * (1 + 1e-12)


def test_monotone() -> None:
    by_steps = [allocation.epsilon(dealt(1, steps), 1e-5).upper for steps in (1, 2, 8, 64, 1000, 30000)]
    assert by_steps == sorted(by_steps, reverse=True)
    by_noise = [allocation.epsilon(dealt(noise, 50), 1e-5).upper for noise in (0.3, 0.6, 1, 3, 20)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_picks = [allocation.epsilon(RandomAllocation(Laplace(epsilon=1), 64, k), 1e-5).upper for k in (1, 2, 8, 64)]
    assert by_picks == sorted(by_picks)


def test_delta_and_epsilon_agree() -> None:
    for event in (dealt(1, 20), RandomAllocation(Pure(epsilon=1), 20)):
        found = allocation.epsilon(event, 1e-4)
        assert allocation.delta(event, found.upper).upper == pytest.approx(1e-4, rel=1e-2)
    spread = allocation.delta(dealt(1, 20), 0.5)
    assert 0 < spread.lower < spread.upper < 1


def test_what_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match=r"Approximate.*Repeat"):
        allocation.epsilon(RandomAllocation(Approximate(epsilon=1, delta=1e-6), 3), 1e-5)
    with pytest.raises(UnsupportedEventError, match="several picks"):
        allocation.delta(dealt(1, 4, 2), 1)
    with pytest.raises(UnsupportedEventError, match="Rényi"):
        allocation.divergence(RandomAllocation(Pure(epsilon=1), 3), 2)
    with pytest.raises(UnsupportedEventError, match="Poisson"):
        allocation.as_poisson(RandomAllocation(Pure(epsilon=1), 3), failure=1e-6)
    with pytest.raises(ArgumentError, match="order"):
        allocation.divergence(dealt(1, 3), 1)
    with pytest.raises(ArgumentError, match="RandomAllocation"):
        allocation.epsilon(Repeat(Gaussian(multiplier=1), 2), 1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, 2, 50, 10**5, 10**7])
@pytest.mark.parametrize("kept", [2, 50, 5000, 1 << 14])
def test_round_off_of_the_transform_is_bounded(times: int, kept: int) -> None:
    """Against the same in extended precision."""
    if np.finfo(np.longdouble).eps > 1e-18:
        pytest.skip("no extended precision here")
    masses = np.zeros(1 << 14)
    masses[:kept] = np.random.default_rng(1).random(kept) ** 3
    masses /= masses.sum()
    found, wrong = _power(masses, times)
    spectrum = fft.rfft(masses.astype(np.longdouble))
    true = fft.irfft(np.exp(times * np.log(spectrum)), masses.size)
    assert float(np.linalg.norm((found - true).astype(np.float64))) <= wrong < 1e-13 * (1 + times)
