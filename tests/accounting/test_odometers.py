"""The odometer: readings rise, stay above every fixed-list truth, and below the sum. The adversary is in
test_adversary.py."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import approximate, gdp, pure, zcdp
from sfumato.accounting.members import RenyiOrder
from sfumato.accounting.odometers import Odometer
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import Approximate, Event, Gaussian, Laplace, Poisson, Pure, Repeat, ZeroConcentrated

soundly = settings(derandomize=True, deadline=None, max_examples=50)
ZERO = Fraction(0)


def run(odometer: Odometer, event: Event, delta: Any = 0, times: int = 1) -> Odometer:
    for _ in range(times):
        odometer = odometer.add(event, delta)
    return odometer


def test_it_starts_at_nothing_and_reads_sums_exactly() -> None:
    start = Odometer(1e-6)
    assert start.epsilon == 0
    assert run(start, Laplace(epsilon=0.1)).epsilon == 0.1
    assert run(start, Laplace(epsilon=0.1), times=3).epsilon == 0.30000000000000004  # 3/10 rounded up to a float
    assert run(start, Gaussian(multiplier=4.224679), 1e-7).epsilon >= float(
        approximate.epsilon(Gaussian(multiplier=4.224679), Fraction(1, 10**7))
    )


def test_many_small_ones_cost_less_than_their_sum() -> None:
    many = run(Odometer(1e-6), Pure(epsilon=0.1), times=100)
    fixed = float(zcdp.epsilon(Fraction(1, 2), Fraction(1, 10**6)))
    assert fixed < many.epsilon < 1.15 * fixed < 10  # 5.2215 for a limit fixed in advance
    gaussians = run(Odometer(1e-6), Gaussian(multiplier=100), times=50)
    assert gaussians.epsilon > float(gdp.least_epsilon(Fraction(50, 10**4), Fraction(1, 10**6)))


@pytest.mark.parametrize("a", [1.25, 3, 17, 1025])
def test_a_gauge_reads_divergence_and_offset(a: float) -> None:
    import mpmath

    odometer = run(Odometer(1e-5), Gaussian(multiplier=3), times=2)
    gauge = next(g for g in odometer.gauges if isinstance(g, RenyiOrder) and g.order == Fraction(a))
    d = mpmath.mpf("1e-5") / 2 / 13
    exact = mpmath.mpf(a) * 2 / 18 + mpmath.log1p(-1 / mpmath.mpf(a)) - (mpmath.log(d) + mpmath.log(a)) / (a - 1)
    assert exact <= odometer._reading(gauge) <= exact * (1 + mpmath.mpf("1e-9")) + mpmath.mpf("1e-9")


MENU: list[tuple[Event, float]] = [
    (Laplace(epsilon=0.1), 0),
    (Gaussian(multiplier=10), 1e-8),
    (Gaussian(multiplier=30), 0),
    (Approximate(epsilon=0.05, delta=1e-8), 1e-8),
    (Poisson(Gaussian(multiplier=3), 0.01), 0),
    (ZeroConcentrated(rho=0.001), 0),
]


@soundly
@given(st.lists(st.sampled_from(MENU), max_size=30))
def test_readings_rise_and_gauges_never_come_back(picks: list[tuple[Event, float]]) -> None:
    now = Odometer(1e-6)
    for event, delta in picks:
        after = now.add(event, delta)
        assert after.epsilon >= now.epsilon and math.isfinite(after.epsilon)
        assert {g.currency for g in after.gauges} <= {g.currency for g in now.gauges}
        now = after
    assert now.count == len(picks)


@soundly
@given(st.lists(st.sampled_from([0.01, 0.1, 0.5]), min_size=1, max_size=40))
def test_never_above_the_sum_of_pure_epsilons(sizes: list[float]) -> None:
    now, total = Odometer(1e-6), Fraction(0)
    for size in sizes:
        now, total = now.add(Laplace(epsilon=size)), total + pure.epsilon(Laplace(epsilon=size))
    assert now.epsilon <= float(total) * (1 + 1e-15)


def test_what_it_cannot_read_is_refused_and_changes_nothing() -> None:
    start = run(Odometer(1e-6), Laplace(epsilon=0.1))
    with pytest.raises(UnsupportedEventError, match="larger delta"):
        start.add(Approximate(epsilon=0.1, delta=1e-6), 1e-6)
    assert start.epsilon == 0.1
    for bad in (0, 1, -1e-6, math.nan, "x"):
        with pytest.raises(ArgumentError):
            Odometer(bad)
    with pytest.raises(ArgumentError):
        start.add(Laplace(epsilon=0.1), -1)
    with pytest.raises(ArgumentError, match="event"):
        start.add("laplace")  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [1e-100, 1e-12, 0.5])
def test_no_size_breaks_it(delta: float) -> None:
    for event in (Laplace(epsilon=1e-9), Laplace(epsilon=1e4), Gaussian(multiplier=1e6), Gaussian(multiplier=1e-3)):
        now = run(Odometer(delta), Repeat(event, 10**6), times=3)
        assert 0 <= now.epsilon < math.inf
