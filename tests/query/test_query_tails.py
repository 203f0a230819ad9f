"""Curves through noisy histograms: what a limit cuts, and which limit is best."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.query.tails import Aim, Tail, best, fitted

SIZES = 2.0 ** ((np.arange(60) + 0.5) / 2)
EVERYWHERE = np.ones(60, dtype=np.bool_)


def power_law(units: float, fall: float, bins: int = 24) -> np.ndarray:
    counts = np.zeros(60)
    counts[:bins] = units * fall ** np.arange(bins)
    return counts


def tail_of(counts: np.ndarray, std: float = 5.0) -> Tail:
    tail = fitted(counts, std, SIZES, SIZES, EVERYWHERE, clear=5 * std)
    assert tail is not None
    return tail


def cut_of(counts: np.ndarray, limit: float) -> float:
    return float(counts @ np.maximum(SIZES - limit, 0.0))


@pytest.mark.parametrize("fall", [0.45, 0.55, 0.65])
def test_what_noise_hides_is_drawn_on(fall: float) -> None:
    """Most of the cut is in bins that no noisy count shows; the estimate is within its doubt in 19 of 20 draws."""
    rng, counts = np.random.default_rng(3), power_law(4000, fall)
    hits = 0
    for _ in range(100):
        tail = tail_of(counts + rng.normal(0, 5, 60))
        limit = float(SIZES[tail.last])
        second = cut_second(counts, tail, limit) + rng.normal(0, limit)
        mean, doubt = tail.estimate(limit, second, limit)
        hits += abs(cut_of(counts, limit) - mean) <= 1.96 * doubt
    assert hits >= 90


def cut_second(counts: np.ndarray, tail: Tail, limit: float) -> float:
    return float(counts @ np.minimum(np.maximum(SIZES - limit, 0.0), tail.cap(limit)))


def test_a_cliff_is_seen_as_one() -> None:
    """Where counts stop at once, hardly anything is thought to be beyond."""
    counts = np.zeros(60)
    counts[:10] = 3000
    tail = tail_of(counts)
    mean, doubt = tail.estimate(float(SIZES[10]), 0.0, 1.0)
    assert mean + doubt < 0.01 * float(counts @ SIZES)


def test_a_second_measurement_narrows_the_doubt() -> None:
    counts = power_law(4000, 0.6)
    tail, limit = tail_of(counts), 60.0
    exact = cut_second(counts, tail, limit)
    assert tail.expected(limit, 100.0, 10.0)[1] < tail.expected(limit, 100.0, 1e9)[1]
    more, _ = tail.estimate(limit, 3 * exact, 10.0)
    less, _ = tail.estimate(limit, 0.3 * exact, 10.0)
    assert less < more


def test_no_unit_is_where_none_can_be() -> None:
    possible = SIZES < 100
    tail = fitted(power_law(4000, 0.8), 5.0, SIZES, SIZES, possible, clear=25.0)
    assert tail is not None and not tail.curves[:, ~possible].any()
    assert tail.estimate(100.0, 0.0, 1.0) == (0.0, 0.0)


def test_a_count_that_noise_makes_leads_limits_nowhere() -> None:
    """One bin far out, as high as noise makes one in some thousand histograms; beside clear ones less is enough."""
    counts = power_law(4000, 0.5)
    last = tail_of(counts).last
    counts[50] = 4.5 * 5.0
    assert tail_of(counts).last == last
    counts[last + 1] = 3.6 * 5.0
    assert tail_of(counts).last == last + 1


def test_a_sum_loses_with_those_that_share_its_weight() -> None:
    """Its own lengths are all below the limit, and the measurement says that a fifteenth is cut."""
    counts = np.zeros(60)
    counts[0] = 300
    tail = tail_of(counts)
    held = tail.total
    own, _ = tail.estimate(10.0, held / 15, held / 100)
    mean, doubt = tail.with_others(10.0, held / 15, held / 100, rate=0.1, counted=0.8)
    assert own < held / 1000 and abs(mean - held / 12) < 2 * doubt < held / 10


def test_nothing_clear_is_nothing_known() -> None:
    assert fitted(np.full(60, 10.0), 5.0, SIZES, SIZES, EVERYWHERE, clear=25.0) is None


def test_sizes_and_units_are_inverse() -> None:
    tail = tail_of(power_law(4000, 0.5))
    for units in (5.0, 40.0, 900.0):
        size = tail.size_above(units)
        assert tail.units_above(size * 1.5) <= units <= tail.units_above(size / 1.5)


def test_the_best_limit_grows_with_the_budget_and_with_the_tail() -> None:
    def aim(noise: float, spread: float = 1.25, share: float = 0.1) -> Aim:
        return Aim(lambda length: noise * length, lambda cap: 3 * noise * cap, share, spread)

    limits = [float(2 ** (k / 2)) for k in range(1, 40)]
    light, heavy = tail_of(power_law(4000, 0.4)), tail_of(power_law(4000, 0.68))
    assert best(light, limits, aim(4)) <= best(light, limits, aim(0.5))
    assert best(light, limits, aim(2)) <= best(heavy, limits, aim(2))
    chosen = best(heavy, limits, aim(2))
    width, mostly_noise = aim(2).width(heavy, chosen)
    assert mostly_noise and width <= 1.8 * 2 * chosen
