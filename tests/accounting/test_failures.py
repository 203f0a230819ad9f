"""Approximate(0, delta): nothing is learned, but for probability delta. Alone and beside everything else."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, MemoryLedger, Unit
from sfumato.accounting import group, members, pld, price, renyi, tradeoff, zcdp
from sfumato.accounting.approximate import epsilon as charged
from sfumato.accounting.compare import METHODS
from sfumato.accounting.failures import unfailing
from sfumato.accounting.filters import Filter
from sfumato.errors import ArgumentError, BudgetError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    DiscreteGaussian,
    Event,
    Gaussian,
    Laplace,
    Partition,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeat,
    Sequence,
    WithoutReplacement,
    ZeroConcentrated,
)
from sfumato.mechanisms import ThresholdKeys

D = Fraction(1, 10**5)
FAIL = Approximate(epsilon=0, delta=D)
RESTS: list[Event] = [
    Gaussian(multiplier=1),
    Gaussian(multiplier=Fraction(1, 3)),
    Laplace(epsilon=1),
    Pure(epsilon=Fraction(1, 2)),
    RandomizedResponse(epsilon=1, categories=3),
    DiscreteGaussian(variance=4),
    Repeat(Laplace(epsilon=Fraction(1, 10)), 30),
    Sequence((Gaussian(multiplier=2), Laplace(epsilon=Fraction(1, 2)))),
    Poisson(Gaussian(multiplier=1), Fraction(1, 10)),
    Approximate(epsilon=1, delta=Fraction(1, 10**6)),
]


def test_epsilon_zero_is_an_event_only_where_there_is_a_delta() -> None:
    assert FAIL.epsilon == 0 and Approximate(epsilon=0.0, delta=1e-5) == FAIL
    for bad in (-1, 1e-12, math.nan, "0", False):
        with pytest.raises(ArgumentError, match="epsilon"):
            Approximate(epsilon=bad, delta=1e-5)
    with pytest.raises(ArgumentError, match="epsilon"):
        Pure(epsilon=0)


@pytest.mark.parametrize("event", [FAIL, Repeat(FAIL, 3), Sequence((FAIL, Approximate(epsilon=0, delta=D / 7)))])
def test_alone(event: Event) -> None:
    missing = {FAIL: 1 - D, Repeat(FAIL, 3): (1 - D) ** 3}.get(event, (1 - D) * (1 - D / 7))
    for epsilon in (0, Fraction(1, 10), 1, 50):
        found = price.delta(event, epsilon=epsilon)
        assert found.lower <= 1 - missing <= found.upper <= float(1 - missing) * (1 + 1e-12)
    assert price.epsilon(event, delta=Fraction(4, 10**5)).upper == 0 == charged(event, Fraction(4, 10**5))
    with pytest.raises(UnsupportedEventError):
        price.epsilon(event, delta=Fraction(9, 10**6))


@pytest.mark.parametrize("rest", RESTS, ids=lambda e: type(e).__name__)
def test_beside_a_mechanism_the_curve_is_the_product(rest: Event) -> None:
    both = Sequence((rest, FAIL))
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(2)):
        alone, found = price.delta(rest, epsilon=epsilon), price.delta(both, epsilon=epsilon)
        low, high = (float(1 - (1 - D) * (1 - Fraction(x))) for x in (alone.lower, alone.upper))
        assert alone.lower <= found.upper and low * (1 - 1e-9) <= found.lower <= found.upper <= high * (1 + 1e-9)
    for delta in (Fraction(1, 10**3), Fraction(1, 20)):
        left = (delta - D) / (1 - D)
        alone, found = price.epsilon(rest, delta=left), price.epsilon(both, delta=delta)
        assert found.upper == pytest.approx(alone.upper, abs=2e-6) and found.lower <= found.upper
        assert charged(both, delta) <= Fraction(found.upper)


def test_a_gaussian_beside_failures_matches_the_closed_form() -> None:
    def curve(mu: float, epsilon: float) -> float:
        def phi(x: float) -> float:
            return math.erfc(-x / math.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)

    for m, d, epsilon in ((1, 1e-5, 1.0), (2, 1e-3, 0.5), (0.5, 0.1, 3.0)):
        found = price.delta(Sequence((Gaussian(multiplier=m), Approximate(epsilon=0, delta=d))), epsilon=epsilon)
        truth = 1 - (1 - d) * (1 - curve(1 / m, epsilon))
        assert curve(1 / m, epsilon) <= found.lower <= truth * (1 + 1e-9) and found.upper <= truth * (1 + 1e-9)
        assert found.lower >= truth * (1 - 1e-9)


def test_what_is_calibrated_comes_back_exactly() -> None:
    assert charged(Sequence((Laplace(epsilon=Fraction(1, 3)), FAIL)), D) == Fraction(1, 3)
    with pytest.raises(UnsupportedEventError):
        charged(Sequence((Laplace(epsilon=Fraction(1, 3)), FAIL)), D / 2)


def test_sampled_failures_happen_less_often() -> None:
    for event in (
        Poisson(FAIL, Fraction(1, 10)),
        WithoutReplacement(Approximate(epsilon=0, delta=D, relation="replace"), 1, 10),
    ):
        assert price.delta(event, epsilon=1).upper == pytest.approx(1e-6, rel=1e-9)
    both = Sequence((Poisson(FAIL, Fraction(1, 10)), Gaussian(multiplier=1)))
    assert price.delta(both, epsilon=0).width < 1e-6


def test_partitions() -> None:
    parts = Partition("ward", (FAIL, Gaussian(multiplier=1)))
    assert price.delta(parts, epsilon=1).upper == pytest.approx(price.delta(Gaussian(multiplier=1), epsilon=1).upper)
    assert price.delta(Partition("ward", (FAIL, FAIL)), epsilon=1).upper == pytest.approx(1e-5)


def test_accountants_that_know_no_failures_refuse() -> None:
    for event in (FAIL, Sequence((Gaussian(multiplier=1), FAIL))):
        for refuse in (zcdp.rho, lambda e: renyi.divergence(e, 2.0)):
            with pytest.raises(UnsupportedEventError):
                refuse(event)
    for name, method in METHODS.items():
        for event in (FAIL, Sequence((Laplace(epsilon=1), FAIL))):
            try:
                found: Any = method(event, Fraction(1, 100))
            except UnsupportedEventError:
                continue
            truth = price.epsilon(event, delta=Fraction(1, 100)).lower
            assert float(getattr(found, "upper", found)) >= truth, name


def test_groups_and_tradeoffs() -> None:
    assert group.group(FAIL, 7) == Approximate(epsilon=0, delta=7 * D)
    with pytest.raises(UnsupportedEventError):
        group.group(Approximate(epsilon=0, delta=Fraction(1, 3)), 3)
    assert tradeoff.tradeoff(FAIL)(0.2) == pytest.approx(0.8 - 1e-5)
    assert tradeoff.tradeoff(Sequence((FAIL, FAIL)))(0.2) == pytest.approx(0.8 - 2e-5, abs=1e-9)


def test_outside_failures_such_a_part_costs_nothing() -> None:
    gauss = Gaussian(multiplier=2)
    assert members.mu_squared(members.sure(Sequence((gauss, FAIL)))) == Fraction(1, 4)
    assert members.rho(members.sure(Repeat(Sequence((gauss, Repeat(FAIL, 2))), 3))) == Fraction(3, 8)
    assert members.own_delta(Repeat(Sequence((gauss, Repeat(FAIL, 2))), 3)) == 6 * D
    assert members.rho(members.sure(FAIL)) < Fraction(1, 10**17)
    assert members.sure(Partition("w", (FAIL, gauss))) == Partition("w", (gauss,))


def test_an_account_counts_failures_against_its_delta() -> None:
    plan = ThresholdKeys(column="k", protects=Unit(), epsilon=1, delta=1e-6)
    ledger = MemoryLedger({"a": Budget(epsilon=10, delta=Fraction(35, 10**7))})
    for turn in range(9):
        if not ledger.quote(("a",), plan):
            break
        ledger.spend(("a",), plan, data=f"a@{turn}", grade="exact", note="")
    assert 1 <= turn <= 3
    wide = Filter.of(Budget(epsilon=10, delta=Fraction(1, 1000)))
    for _ in range(3):
        wide = wide.spend(Sequence((Gaussian(multiplier=8), FAIL)), Fraction(2, 10**5))
    assert all(member.spent >= 3 * D for member in wide.open if member.required) and wide.open[-1].required
    with pytest.raises(BudgetError):
        Filter.of(Budget(epsilon=1, delta=D / 2)).spend(FAIL, D)


def test_unfailing_leaves_other_events_as_they_are() -> None:
    for event in (*RESTS, ZeroConcentrated(rho=1), Sequence(tuple(RESTS[:3]))):
        assert unfailing(event)[0] is event
    rest, (low, high) = unfailing(Sequence((RESTS[0], Repeat(FAIL, 10**6), RESTS[2])))
    assert rest == Sequence((RESTS[0], RESTS[2])) and low <= high
    assert float(high) == pytest.approx((1 - 1e-5) ** 1e6, rel=1e-9) and high - low < Fraction(1, 10**100)
    tiny = Approximate(epsilon=0, delta=Fraction(1, 10**100))
    assert pld.delta(Sequence((RESTS[2], Repeat(tiny, 3))), Fraction(2)).upper == pytest.approx(3e-100, rel=1e-6)
