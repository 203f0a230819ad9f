"""Pure DP: exact addition."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import events
from sfumato.accounting import pure
from sfumato.errors import UnsupportedEventError
from sfumato.events import Laplace, Partition, Pure, Repeat, Sequence
from tests.helpers import few

epsilons = st.fractions(Fraction(1, 1000), 5, max_denominator=1000)


@pytest.mark.parametrize(
    "event",
    [
        Laplace(epsilon=0.3),
        events.RandomizedResponse(epsilon=0.3, categories=5),
        events.Exponential(epsilon=0.3),
        events.PermuteAndFlip(epsilon=0.3),
        Pure(epsilon=0.3),
    ],
)
def test_a_pure_event_costs_its_own_epsilon(event: events.Event) -> None:
    assert pure.epsilon(event) == Fraction(3, 10)
    assert pure.epsilon(Repeat(event, 10)) == 3


@pytest.mark.parametrize(
    "event",
    [events.Gaussian(multiplier=1), events.Approximate(epsilon=1, delta=0.1), events.ZeroConcentrated(rho=1)],
)
def test_what_is_not_pure_is_never_priced(event: events.Event) -> None:
    for each in (event, Repeat(event, 2), Sequence((Laplace(epsilon=1), event)), Partition("w", (event,))):
        with pytest.raises(UnsupportedEventError, match="no pure epsilon"):
            pure.epsilon(each)


def test_an_event_that_nobody_knows_is_never_priced() -> None:
    class Strange(events.Event):
        relation = "add-remove"

    with pytest.raises(UnsupportedEventError, match="Strange"):
        pure.epsilon(Strange())


def test_tenths_add_up_exactly() -> None:
    assert pure.epsilon(Sequence(tuple(Laplace(epsilon=0.1) for _ in range(10)))) == 1
    assert pure.epsilon(Repeat(Laplace(epsilon=1e-6), 10**6)) == 1
    assert pure.epsilon(Repeat(Laplace(epsilon=Fraction(1, 3)), 3)) == 1


@few
@given(st.lists(epsilons, min_size=1, max_size=6))
def test_a_sequence_is_the_sum_and_a_partition_the_largest_or_two(parts: list[Fraction]) -> None:
    for relation, reached in (("add-remove", 1), ("zero-out", 1), ("replace", 2)):
        leaves = tuple(Pure(epsilon=e, relation=relation) for e in parts)  # type: ignore[arg-type]
        assert pure.epsilon(Sequence(leaves)) == sum(parts)
        assert pure.epsilon(Partition("w", leaves)) == sum(sorted(parts, reverse=True)[:reached])


def test_composites_nest() -> None:
    inner = Partition("w", (Repeat(Laplace(epsilon=0.5), 3), Sequence((Laplace(epsilon=1), Laplace(epsilon=1)))))
    assert pure.epsilon(Repeat(Sequence((inner, Laplace(epsilon=0.25))), 2)) == Fraction(9, 2)


def test_sampling_and_shuffling_keep_a_pure_epsilon() -> None:
    for rate, size in ((0.1, 1), (0.5, 0.01), (1e-6, 5), (1e-3, 600), (0.3, 499)):
        found = pure.epsilon(events.Poisson(Laplace(epsilon=size), rate))
        truth = mpmath.log1p(
            mpmath.mpf(Fraction(repr(rate)).numerator)
            / Fraction(repr(rate)).denominator
            * mpmath.expm1(mpmath.mpf(repr(size)))
        )
        price = mpmath.mpf(found.numerator) / found.denominator
        assert truth * (1 - mpmath.mpf(2) ** -52) <= price <= truth * (1 + mpmath.mpf(10) ** -13)
        assert pure.epsilon(events.Poisson(Laplace(epsilon=size), 1)) == Fraction(repr(size))
    swap = Laplace(epsilon=1, relation="replace")
    assert pure.epsilon(events.WithoutReplacement(swap, 10, 100)) == pure.epsilon(events.Poisson(Pure(epsilon=1), 0.1))
    assert pure.epsilon(events.Shuffled(swap, 100)) == 1
    with pytest.raises(UnsupportedEventError):
        pure.epsilon(events.Poisson(events.Gaussian(multiplier=1), 0.1))
