"""(epsilon, delta) prices of what was fixed in advance."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import events
from sfumato.accounting import approximate, gdp, zcdp
from sfumato.accounting import price as sf_price
from sfumato.errors import UnsupportedEventError
from sfumato.events import Approximate, Gaussian, Laplace, Partition, Pure, Repeat, Sequence, ZeroConcentrated

ZERO, D = Fraction(0), Fraction(1, 10**6)
price = approximate.epsilon


def test_pure_events_cost_their_sum_at_delta_zero() -> None:
    assert price(Laplace(epsilon=0.1), ZERO) == Fraction(1, 10)
    assert price(Sequence((Laplace(epsilon=1), events.Exponential(epsilon=2))), ZERO) == 3
    assert price(Repeat(events.PermuteAndFlip(epsilon=0.5), 4), ZERO) == 2


def test_many_small_pure_events_cost_less_with_a_delta() -> None:
    hundred = Repeat(Laplace(epsilon=0.1), 100)
    assert price(hundred, ZERO) == 10
    assert 4.692449 <= float(price(hundred, D)) <= 4.6928  # by privacy loss; 5.2215 by rho
    assert 2.2 < float(price(Repeat(events.Exponential(epsilon=0.1), 100), D)) < 2.419093  # by Renyi; that by rho
    assert price(Laplace(epsilon=0.1), D) == Fraction(1, 10)  # a single one is best priced pure


def test_a_gaussian_costs_its_exact_curve() -> None:
    for mu_squared, delta, epsilon in ((0.2, "1e-5", 1.760057), (1, "1e-6", 4.886554), (4, "1e-5", 9.997256)):
        event = Gaussian(multiplier=1 / Fraction(repr(mu_squared**0.5)))
        assert float(price(event, Fraction(delta))) == pytest.approx(epsilon, abs=1e-6)
    four = Repeat(Gaussian(multiplier=2), 4)
    assert price(four, D) == price(Gaussian(multiplier=1), D) == gdp.least_epsilon(Fraction(1), D)


def test_mixed_parts_cost_less_than_any_way_of_adding_them_up() -> None:
    mixed = Sequence((Gaussian(multiplier=1), Laplace(epsilon=0.5)))
    basic, concentrated = gdp.least_epsilon(Fraction(1), D) + Fraction(1, 2), zcdp.epsilon(Fraction(5, 8), D)
    assert gdp.least_epsilon(Fraction(1), D) < price(mixed, D) < min(basic, concentrated)
    assert price(Sequence((ZeroConcentrated(rho=0.5), Laplace(epsilon=0.5))), D) <= concentrated


def test_an_approximate_part_takes_its_delta_first() -> None:
    part = Approximate(epsilon=1, delta=D / 2)
    assert price(part, D) == price(part, D / 2) == 1
    assert Fraction(199, 100) < price(Repeat(part, 2), D * 3 / 2) <= 2
    with pytest.raises(UnsupportedEventError, match=r"delta must be at least 1\.5e-06"):
        price(Repeat(part, 3), D)
    both = Sequence((part, Gaussian(multiplier=4)))
    assert 1 < price(both, D) <= 1 + gdp.least_epsilon(Fraction(1, 16), D / 2)
    with pytest.raises(UnsupportedEventError, match="needs a larger delta"):
        price(both, D / 2)


@pytest.mark.parametrize("event", [Gaussian(multiplier=1), ZeroConcentrated(rho=1), Approximate(epsilon=1, delta=0.1)])
def test_what_needs_a_delta_has_no_price_without_one(event: events.Event) -> None:
    for bad in (ZERO, Fraction(-1)):
        with pytest.raises(UnsupportedEventError, match="needs a larger delta"):
            price(event, bad)


def test_a_negative_delta_is_never_priced() -> None:
    with pytest.raises(UnsupportedEventError):
        price(Laplace(epsilon=1), Fraction(-1, 10**9))


def test_unknown_events_are_never_priced() -> None:
    class Strange(events.Event):
        relation = "add-remove"

    for event in (Strange(), Sequence((Laplace(epsilon=1), Strange()))):
        with pytest.raises(UnsupportedEventError, match="Strange"):
            price(event, D)


def test_a_partition_costs_its_dearest_part_or_two_under_replace() -> None:
    def parts(relation: Any) -> Partition:
        return Partition("w", tuple(Pure(epsilon=e, relation=relation) for e in (1, 3, 2)))

    assert price(parts("add-remove"), ZERO) == price(parts("zero-out"), ZERO) == 3
    assert price(parts("replace"), ZERO) == 5
    gaussians = tuple(Gaussian(multiplier=m, relation="replace") for m in (1, 2, 4))
    assert price(Partition("w", gaussians), D) == gdp.least_epsilon(1 + Fraction(1, 4), D)
    alone = Partition("w", gaussians[:1])
    assert price(alone, D) == price(gaussians[0], D)


relations = st.sampled_from(["add-remove", "replace", "zero-out"])


@st.composite
def leaves(draw: st.DrawFn, relation: Any) -> events.Event:
    kind = draw(st.sampled_from(["laplace", "gaussian", "exponential", "zcdp", "approximate"]))
    if kind == "gaussian":
        return Gaussian(multiplier=draw(st.sampled_from([1, 2, 7])), relation=relation)
    if kind == "zcdp":
        return ZeroConcentrated(rho=draw(st.sampled_from([0.01, 0.3])), relation=relation)
    epsilon = draw(st.sampled_from([0.01, 0.3, 1]))
    if kind == "approximate":
        return Approximate(epsilon=epsilon, delta=1e-9, relation=relation)
    return (Laplace if kind == "laplace" else events.Exponential)(epsilon=epsilon, relation=relation)


@st.composite
def bags(draw: st.DrawFn) -> list[events.Event]:
    return draw(st.lists(leaves(draw(relations)), min_size=1, max_size=4))


SLACK = 1 + Fraction(1, 100)  # prices on a lattice are certain to the asked accuracy only


@settings(max_examples=12, deadline=None, derandomize=True)
@given(bags())
def test_prices_respect_composition(parts: list[events.Event]) -> None:
    def alone(part: events.Event) -> Fraction:
        return price(Sequence((part,)), D)  # a single mechanism keeps its own epsilon, though D would buy a little less

    whole = price(Sequence(tuple(parts)), D)
    share = D / len(parts)
    assert whole >= max(map(alone, parts)) / SLACK  # no cheaper than any part of it
    assert whole <= sum(price(part, share) for part in parts) * SLACK  # and no dearer than basic composition
    split = price(Partition("w", tuple(parts)), D)
    reached = 2 if parts[0].relation == "replace" else 1
    assert split <= whole * SLACK
    assert split >= max(map(alone, parts)) / SLACK
    if reached == 2 and len(parts) > 1:
        assert split >= max(price(Sequence((a, b)), D) for i, a in enumerate(parts) for b in parts[i + 1 :]) / SLACK


@settings(max_examples=12, deadline=None, derandomize=True)
@given(bags(), st.integers(1, 5))
def test_repeating_is_a_sequence_of_the_same(parts: list[events.Event], times: int) -> None:
    once = Sequence(tuple(parts))
    assert float(price(Repeat(once, times), D)) == pytest.approx(float(price(Sequence((once,) * times), D)), rel=1e-9)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(bags(), st.floats(1e-7, 0.3), st.floats(1e-7, 0.3))
def test_more_delta_never_costs_more(parts: list[events.Event], d1: float, d2: float) -> None:
    small, large = sorted(map(Fraction, (d1, d2)))
    event = Sequence(tuple(parts))
    assert price(event, large) <= price(event, small) * SLACK + Fraction(1, 10**9)


@pytest.mark.parametrize(
    "event",
    [
        Repeat(events.Exponential(epsilon=0.1), 100),
        Repeat(Laplace(epsilon=0.1), 100),
        Repeat(events.PermuteAndFlip(epsilon=0.2), 30),
        events.Poisson(ZeroConcentrated(rho=0.1), 0.1),
        Sequence((ZeroConcentrated(rho=0.3), Laplace(epsilon=0.5))),
    ],
)
def test_what_is_charged_is_the_upper_end(event: events.Event) -> None:
    found = sf_price.epsilon(event, delta=D)
    assert found.lower < found.upper
    assert found.upper <= float(price(event, D)) * (1 + 1e-12)  # a ledger that charged the lower end would fail here
