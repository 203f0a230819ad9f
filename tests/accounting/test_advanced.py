"""Composition by formula: textbook values, and never below the optimal composition."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import advanced, optimal
from sfumato.errors import ArgumentError, UnsupportedEventError
from sfumato.events import (
    Approximate,
    BestOf,
    Event,
    Gaussian,
    Laplace,
    Partition,
    Poisson,
    Pure,
    Repeat,
    Sequence,
    ZeroConcentrated,
)

HUNDRED = [(0.1, 0)] * 100


def test_published_values() -> None:
    assert advanced.basic(HUNDRED) == (10, 0)
    assert advanced.strong(HUNDRED, delta=1e-6) == pytest.approx(6.308231, abs=5e-7)
    assert advanced.closed_form(HUNDRED, delta=1e-6) == pytest.approx(5.756106, abs=5e-7)


def test_the_textbook_training_run() -> None:
    training = Repeat(Poisson(Gaussian(multiplier=2), 0.01), 1000)
    assert advanced.over(training, delta=1e-5, rule="basic") == pytest.approx(81.8, abs=0.05)
    assert advanced.over(training, delta=1e-5) == pytest.approx(20.9, abs=0.05)
    assert 0.62203 < advanced.over(training, delta=1e-5, rule="closed") < 20.9


def test_over_an_event_is_over_its_parts() -> None:
    event = Sequence((Repeat(Laplace(epsilon=0.1), 60), Repeat(Approximate(epsilon=0.2, delta=1e-9), 40)))
    parts = [(0.1, 0)] * 60 + [(0.2, 1e-9)] * 40
    assert advanced.over(event, delta=1e-6) == advanced.strong(parts, delta=1e-6)
    assert advanced.over(event, delta=1e-6, rule="closed") == advanced.closed_form(parts, delta=1e-6)
    assert advanced.over(event, delta=1e-6, rule="basic") == 14


def test_sampling_a_pure_event() -> None:
    event = Repeat(Poisson(Pure(epsilon=1), 0.1), 3)
    assert advanced.over(event, delta=0, rule="basic") == pytest.approx(3 * math.log(1 + 0.1 * math.expm1(1)))
    large = Poisson(Pure(epsilon=1e4), 0.5)
    assert advanced.over(large, delta=0) == pytest.approx(1e4 - math.log(2))
    small = Poisson(Approximate(epsilon=1e-9, delta=1e-6), 1e-9)
    assert advanced.over(small, delta=1e-14, rule="basic") == pytest.approx(1e-18)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.floats(1e-3, 3),
    st.integers(1, 400),
    st.sampled_from([1e-12, 1e-6, 1e-2, 0.3]),
    st.sampled_from([0.0, 1e-7, 1e-4]),
)
def test_optimal_is_at_most_closed_is_at_most_basic(epsilon: float, times: int, delta: float, own: float) -> None:
    parts = [(epsilon, own)] * times
    try:
        best = optimal.epsilon(epsilon0=epsilon, delta0=own, times=times, delta=delta)
    except UnsupportedEventError:
        with pytest.raises(UnsupportedEventError):
            advanced.closed_form(parts, delta=delta)
        return
    closed = advanced.closed_form(parts, delta=delta)
    assert best.lower <= closed <= epsilon * times * (1 + 1e-12)
    if own * times <= delta:
        assert closed <= advanced.strong(parts, delta=delta) * (1 + 1e-9)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0.05, 1.5), min_size=1, max_size=9),
    st.sampled_from([1e-6, 1e-3, 0.05, 0.3]),
    st.sampled_from([0, Fraction(1, 1000)]),
)
def test_unlike_parts_hold_against_enumeration(sizes: list[float], delta: float, own: Fraction) -> None:
    target = Fraction(repr(delta))
    if len(sizes) * own >= target:
        return
    parts = [(size, own) for size in sizes]
    with mpmath.workdps(40):
        chances = [1 / (1 + mpmath.exp(-mpmath.mpf(repr(size)))) for size in sizes]
        for epsilon in (advanced.closed_form(parts, delta=delta), advanced.strong(parts, delta=delta)):
            lost = mpmath.mpf(0)
            for signs in product((0, 1), repeat=len(sizes)):
                ours = mpmath.fprod(p if s else 1 - p for p, s in zip(chances, signs, strict=True))
                theirs = mpmath.fprod(1 - p if s else p for p, s in zip(chances, signs, strict=True))
                lost += max(ours - mpmath.exp(epsilon) * theirs, mpmath.mpf(0))
            unharmed = (1 - mpmath.mpf(own.numerator) / own.denominator) ** len(sizes) if own else mpmath.mpf(1)
            assert 1 - unharmed * (1 - lost) <= mpmath.mpf(repr(delta))


def test_the_split_is_at_least_as_good_as_any_fixed_one() -> None:
    event = Repeat(Gaussian(multiplier=20), 200)
    best = advanced.over(event, delta=1e-5)
    for share in (0.01, 0.1, 0.5, 0.9):
        each = advanced.over(Gaussian(multiplier=20), delta=1e-5 * share / 200, rule="basic")
        spread = each * math.sqrt(400 * math.log(1 / (1e-5 * (1 - share)))) + 200 * each * math.expm1(each)
        assert best <= spread * (1 + 1e-6)


@pytest.mark.parametrize("rule", ["basic", "strong", "closed"])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 0.5])
@pytest.mark.parametrize(
    "event",
    [
        Repeat(Pure(epsilon=1e4), 10**6),
        Repeat(Pure(epsilon=1e-9), 10**6),
        Sequence((Pure(epsilon=1e4), Repeat(Pure(epsilon=1e-3), 10**6))),
        Repeat(Gaussian(multiplier=1e6), 10**6),
        Repeat(Poisson(Gaussian(multiplier=0.5), 1e-9), 10**6),
        Repeat(ZeroConcentrated(rho=1e-8), 10**6),
    ],
    ids=lambda event: str(event)[:40],
)
def test_extremes(event: Event, delta: float, rule: str) -> None:
    found = advanced.over(event, delta=delta, rule=rule)  # type: ignore[arg-type]
    assert math.isfinite(found) and found >= 0


def test_partitions() -> None:
    like = Partition("ward", (Pure(epsilon=0.1), Pure(epsilon=0.1)))
    assert advanced.over(like, delta=0) == 0.1
    swap = Partition("ward", (Pure(epsilon=0.1, relation="replace"),) * 3)
    assert advanced.over(swap, delta=0) == 0.2
    with pytest.raises(UnsupportedEventError, match="unlike"):
        advanced.over(Partition("ward", (Pure(epsilon=0.1), Pure(epsilon=0.2))), delta=0)


def test_refusals() -> None:
    with pytest.raises(UnsupportedEventError, match="larger delta"):
        advanced.strong([(1, 0.1)] * 3, delta=0.2)
    with pytest.raises(UnsupportedEventError, match="larger delta"):
        advanced.closed_form([(1, 0.1)] * 3, delta=0.2)
    with pytest.raises(UnsupportedEventError, match="larger delta"):
        advanced.over(Gaussian(multiplier=1), delta=0)
    with pytest.raises(UnsupportedEventError, match="BestOf"):
        advanced.over(BestOf(Pure(epsilon=1), mean=3), delta=1e-5)
    with pytest.raises(ArgumentError, match="parts"):
        advanced.basic([])
    with pytest.raises(ArgumentError, match="rule"):
        advanced.over(Pure(epsilon=1), delta=0, rule="best")  # type: ignore[arg-type]
