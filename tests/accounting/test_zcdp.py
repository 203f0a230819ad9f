"""zCDP: published numbers, and an upper bound of the true conversion always."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import events
from sfumato.accounting import zcdp
from sfumato.errors import UnsupportedEventError
from sfumato.events import Gaussian, Laplace, Partition, Repeat, Sequence, ZeroConcentrated
from tests.helpers import few

RHO_2020 = Fraction(293764, 114921)  # the redistricting data, persons


def at_order(rho: Any, delta: Any, order: Any) -> Any:
    """Canonne, Kamath, Steinke 2020, Proposition 12, at one order."""
    return order * rho + mp.log(1 - 1 / order) - (mp.log(delta) + mp.log(order)) / (order - 1)


def reference(rho: Fraction, delta: Fraction) -> Any:
    """The least over all orders, by golden section in 40 digits."""
    with mp.workdps(40):
        r, d = mp.mpf(rho.numerator) / rho.denominator, mp.mpf(delta.numerator) / delta.denominator
        low, high = mp.mpf(-40), mp.mpf(40)
        golden = (mp.sqrt(5) - 1) / 2
        for _ in range(110):
            a, b = high - golden * (high - low), low + golden * (high - low)
            if at_order(r, d, 1 + mp.exp(a)) < at_order(r, d, 1 + mp.exp(b)):
                high = b
            else:
                low = a
        return max(mp.mpf(0), at_order(r, d, 1 + mp.exp((low + high) / 2)))


@pytest.mark.parametrize(
    ("rho", "delta", "cks", "bun_steinke"),
    [
        (0.1, 1e-5, 1.914239, 2.245966),
        (0.1, 1e-6, 2.141939, 2.450788),
        (0.5, 1e-5, 4.728387, 5.298526),
        (0.5, 1e-6, 5.221534, 5.756522),
        (1, 1e-5, 7.077197, 7.786140),
        (1, 1e-6, 7.766217, 8.433844),
        (RHO_2020, 1e-10, 17.143551, 17.900185),  # published as 17.14
        (Fraction(7, 100), 1e-10, 2.387275, None),
        (Fraction(125, 1000), 1e-6, 2.419093, None),  # 100 exponential mechanisms of 0.1, by bounded range
    ],
)
def test_published_conversions(rho: Any, delta: float, cks: float, bun_steinke: float | None) -> None:
    total, at = Fraction(str(rho)) if not isinstance(rho, Fraction) else rho, Fraction(repr(delta))
    ours = float(zcdp.epsilon(total, at))
    assert ours == pytest.approx(cks, abs=6e-7)
    assert ours >= float(reference(total, at))
    if bun_steinke is not None:
        classic = float(total) + 2 * math.sqrt(float(total) * math.log(1 / delta))
        assert classic == pytest.approx(bun_steinke, abs=6e-7) and ours < classic


def test_the_census_levels_add_up() -> None:
    shares = {"US": 104, "State": 1440, "County": 447, "Tract": 687, "Block group": 1256, "Block": 165}
    parts = {level: RHO_2020 * Fraction(share, 4099) for level, share in shares.items()}
    assert sum(parts.values()) == RHO_2020
    assert float(parts["State"]) == pytest.approx(0.898015, abs=6e-7)
    levels = Sequence(tuple(ZeroConcentrated(rho=part, relation="replace") for part in parts.values()))
    assert zcdp.rho(levels) == RHO_2020


@few
@given(st.floats(-12, 4), st.floats(-90, -0.5))
def test_the_conversion_is_tight_and_never_below_the_truth(log_rho: float, log_delta: float) -> None:
    rho, delta = Fraction(repr(10.0**log_rho)), Fraction(repr(10.0**log_delta))
    ours, true = zcdp.epsilon(rho, delta), reference(rho, delta)
    with mp.workdps(40):
        value = mp.mpf(ours.numerator) / ours.denominator
        assert value >= true
        assert value <= true * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -11


@few
@given(st.floats(1e-9, 50), st.floats(1e-9, 50), st.floats(1e-30, 0.4), st.floats(1e-30, 0.4))
def test_more_rho_costs_more_and_more_delta_costs_less(r1: float, r2: float, d1: float, d2: float) -> None:
    (low, high), (small, large) = sorted(map(Fraction, (r1, r2))), sorted(map(Fraction, (d1, d2)))
    slack = Fraction(1, 10**9)
    assert zcdp.epsilon(low, large) <= zcdp.epsilon(high, large) * (1 + slack) + slack
    assert zcdp.epsilon(high, large) <= zcdp.epsilon(high, small) * (1 + slack) + slack


@pytest.mark.slow
@few
@given(st.floats(-8, 3), st.floats(-60, -1))
def test_the_largest_rho_fits_its_limit_and_hardly_more_would(log_limit: float, log_delta: float) -> None:
    limit, delta = Fraction(repr(10.0**log_limit)), Fraction(repr(10.0**log_delta))
    rho = zcdp.largest_rho(limit, delta)
    assert 0 <= rho <= limit
    with mp.workdps(40):
        if rho:
            assert reference(rho, delta) <= mp.mpf(limit.numerator) / limit.denominator
        more = rho * (1 + Fraction(1, 10**4)) + Fraction(1, 10**25)
        assert more > limit or reference(more, delta) >= (1 - mp.mpf(10) ** -6) * limit.numerator / limit.denominator


@pytest.mark.parametrize(
    ("event", "rho"),
    [
        (Laplace(epsilon=1), Fraction(1, 2)),
        (events.Pure(epsilon=2), 2),
        (events.PermuteAndFlip(epsilon=1), Fraction(1, 2)),  # not bounded range: it pays the full square
        (events.RandomizedResponse(epsilon=1, categories=2), Fraction(1, 2)),
        (events.Exponential(epsilon=1), Fraction(1, 8)),
        (Gaussian(multiplier=2), Fraction(1, 8)),
        (ZeroConcentrated(rho=0.3), Fraction(3, 10)),
        (Repeat(Gaussian(multiplier=2), 8), 1),
        (Sequence((Gaussian(multiplier=1), Laplace(epsilon=1))), 1),
        (Partition("w", (Gaussian(multiplier=1), Laplace(epsilon=2))), 2),
        (Partition("w", (Gaussian(multiplier=1, relation="replace"),) * 3), 1),
    ],
)
def test_what_events_cost(event: events.Event, rho: Any) -> None:
    assert zcdp.rho(event) == rho


def test_what_may_fail_outright_has_no_rho() -> None:
    bad = events.Approximate(epsilon=1, delta=1e-9)
    for event in (bad, Repeat(bad, 2), Sequence((Laplace(epsilon=1), bad)), Partition("w", (bad,))):
        with pytest.raises(UnsupportedEventError, match="no zCDP price"):
            zcdp.rho(event)


def renyi(p: list[Any], q: list[Any], order: Any) -> Any:
    return mp.log(sum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("order", [1.01, 1.5, 2, 4, 32, 300])
def test_rho_bounds_the_renyi_divergence_at_every_order(epsilon: float, order: float) -> None:
    with mp.workdps(60):
        e, a = mp.mpf(repr(epsilon)), mp.mpf(repr(order))
        # randomized response, the worst pure mechanism
        p, q = mp.exp(e) / (1 + mp.exp(e)), 1 / (1 + mp.exp(e))
        pure_rho = zcdp.rho(events.Pure(epsilon=epsilon))
        assert renyi([p, q], [q, p], a) <= a * pure_rho.numerator / pure_rho.denominator
        # the worst epsilon-bounded-range pair on two outcomes: r_1 = t, r_2 = t - epsilon
        rho = zcdp.rho(events.Exponential(epsilon=epsilon))
        for t in [mp.mpf(k) / 50 * e for k in range(1, 50)]:
            b = (1 - mp.exp(t - e)) / (mp.exp(t) - mp.exp(t - e))
            assert renyi([b * mp.exp(t), (1 - b) * mp.exp(t - e)], [b, 1 - b], a) <= a * rho.numerator / rho.denominator


def test_discrete_noise() -> None:
    assert zcdp.rho(events.DiscreteGaussian(variance=4)) == Fraction(1, 8)
    assert zcdp.rho(events.DiscreteGaussian(variance=4, shift_squared=9, coordinates=3)) == Fraction(9, 8)
    assert zcdp.rho(events.DiscreteLaplace(epsilon=1, shift=3)) == Fraction(1, 2)


def reference_delta(rho: Fraction, epsilon: Any) -> Any:
    """ln delta, the least over all orders, by golden section."""
    r, low, high = mp.mpf(rho.numerator) / rho.denominator, mp.mpf(-40), mp.mpf(40)

    def at(log_less: Any) -> Any:
        less = mp.exp(log_less)
        return less * ((1 + less) * r - epsilon) - mp.log1p(less) + less * mp.log(less / (1 + less))

    golden = (mp.sqrt(5) - 1) / 2
    for _ in range(90):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return at((low + high) / 2)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.floats(-8, 3), st.floats(-60, -0.5), st.sampled_from(["0", "0.01", "1", "30"]))
def test_delta_is_tight_and_the_inverse_of_epsilon(log_rho: float, log_delta: float, other: str) -> None:
    rho, delta = Fraction(repr(10.0**log_rho)), Fraction(repr(10.0**log_delta))
    epsilon, variation = zcdp.epsilon(rho, delta), math.sqrt(-math.expm1(-float(rho)))
    if epsilon > 1e-6 and variation > delta:
        assert zcdp.delta(rho, epsilon) == pytest.approx(float(delta), rel=1e-5)
    ours = zcdp.delta(rho, Fraction(other))
    with mp.workdps(30):
        true = mp.exp(reference_delta(rho, mp.mpf(other)))
        if ours < 0.999999 * variation:
            assert ours >= min(true, 1)
        assert ours <= true * (1 + mp.mpf("1e-6")) + mp.mpf(10) ** -300


def test_delta_at_the_ends() -> None:
    assert zcdp.delta(Fraction(1), Fraction(0)) <= math.sqrt(1 - math.exp(-1)) * (1 + 1e-9)
    assert zcdp.delta(Fraction(10**6), Fraction(1)) == 1
    assert 0 < zcdp.delta(Fraction(1, 10**9), Fraction(10**4)) < 1e-300
    from sfumato.accounting import gdp

    for rho, epsilon in ((0.1, 1.0), (0.5, 3.0), (2.0, 8.0)):  # a Gaussian of that rho stays below
        assert gdp.delta(math.sqrt(2 * rho), epsilon) <= zcdp.delta(Fraction(repr(rho)), Fraction(repr(epsilon)))
