"""sf.epsilon and sf.delta: the least of all sound prices, whatever the event."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.accounting import gdp, pld, price, renyi, ways, zcdp
from sfumato.errors import ArgumentError, UnsupportedEventError
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
    PermuteAndFlip,
    Poisson,
    Pure,
    RandomAllocation,
    RandomizedResponse,
    Repeat,
    Sequence,
    Shuffled,
    WithoutReplacement,
    ZeroConcentrated,
)

SWAP = Gaussian(multiplier=2, relation="replace")
LOCAL = Pure(epsilon=1, relation="replace")
EVERY: dict[str, Event] = {
    "laplace": Laplace(epsilon=1),
    "discrete laplace": DiscreteLaplace(epsilon=1, shift=3),
    "gaussian": Gaussian(multiplier=2),
    "discrete gaussian": DiscreteGaussian(variance=5),
    "discrete gaussian, many coordinates": DiscreteGaussian(variance=5, shift_squared=6, coordinates=50),
    "mixture": GaussianMixture(shifts=(0, 1, 2), weights=(0.9, 0.09, 0.01)),
    "randomized response": RandomizedResponse(epsilon=1, categories=4),
    "exponential": Exponential(epsilon=1),
    "permute and flip": PermuteAndFlip(epsilon=1),
    "pure": Pure(epsilon=1),
    "approximate": Approximate(epsilon=1, delta=1e-9),
    "zero-concentrated": ZeroConcentrated(rho=0.1),
    "sampled": Poisson(Gaussian(multiplier=1), 0.01),
    "sampled selection": Poisson(Exponential(epsilon=1), 0.1),
    "without replacement": WithoutReplacement(SWAP, 10, 1000),
    "allocation": RandomAllocation(Gaussian(multiplier=2), 100),
    "shuffled": Shuffled(LOCAL, 1000),
    "best of": BestOf(Gaussian(multiplier=5), shape=1, stop=0.1),
    "partition": Partition("ward", tuple(Gaussian(multiplier=m) for m in range(1, 100))),
    "a list": Sequence((Gaussian(multiplier=2), ZeroConcentrated(rho=0.1), Repeat(Laplace(epsilon=0.1), 3))),
    "a list under replace": Sequence((SWAP, Shuffled(LOCAL, 100), WithoutReplacement(SWAP, 10, 1000))),
    "hardly any noise": Repeat(Poisson(Gaussian(multiplier=0.001), 0.5), 3),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_event_has_a_price_from_both_sides(name: str) -> None:
    found = sf.epsilon(EVERY[name], delta=1e-6)
    assert 0 <= found.lower <= found.upper < math.inf and float(found) == found.upper
    more = sf.epsilon(EVERY[name], delta=1e-7)
    assert found.lower <= more.upper
    back = sf.delta(EVERY[name], epsilon=found.upper)
    assert 0 <= back.lower <= back.upper <= 1 and back.lower <= 1e-6 * (1 + 1e-9)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("times", [1, 4])
def test_no_price_exceeds_what_rho_or_renyi_say(name: str, times: int) -> None:
    event = Repeat(EVERY[name], times)
    found = sf.epsilon(event, delta=1e-6)
    try:
        assert found.upper <= renyi.epsilon(event, Fraction(1, 10**6)) * (1 + 1e-3)
    except UnsupportedEventError:
        assert name in {"allocation", "approximate", "shuffled", "a list under replace"}


def test_a_tight_price_is_that_of_the_privacy_loss() -> None:
    event = Repeat(Poisson(Gaussian(multiplier=1), 0.01), 1000)
    assert sf.epsilon(event, delta=1e-6) == pld.epsilon(event, Fraction(1, 10**6))
    assert sf.delta(event, epsilon=1) == pld.delta(event, Fraction(1))


def test_rho_alone_is_priced_by_its_conversion_and_no_lower_than_a_gaussian() -> None:
    rho, delta = Fraction(1, 10), Fraction(1, 10**6)
    found = sf.epsilon(ZeroConcentrated(rho=rho), delta=delta)
    assert found.upper == pytest.approx(float(zcdp.epsilon(rho, delta)), rel=1e-12)
    assert found.lower == pytest.approx(float(gdp.least_epsilon(2 * rho, delta)), rel=1e-6)


def test_beside_others_what_is_known_by_rho_takes_a_share_of_delta_at_most() -> None:
    both = Sequence((ZeroConcentrated(rho=Fraction(1, 8)), Gaussian(multiplier=2)))  # rho 1/8 each
    found = sf.epsilon(both, delta=1e-6)
    all_rho = float(zcdp.epsilon(Fraction(1, 4), Fraction(1, 10**6)))
    two_gaussians = float(gdp.least_epsilon(Fraction(1, 2), Fraction(1, 10**6)))
    assert two_gaussians * (1 - 1e-6) <= found.upper <= all_rho * (1 + 1e-3)
    assert found.lower <= two_gaussians * (1 + 1e-6)


def test_without_delta_pure_events_add_up_and_others_are_refused() -> None:
    assert sf.epsilon(Repeat(Laplace(epsilon=0.1), 10)).upper == pytest.approx(1.0, abs=1e-15)
    sampled = sf.epsilon(Poisson(Pure(epsilon=1), 0.1))
    assert sampled.lower <= math.log1p(0.1 * math.expm1(1)) <= sampled.upper and sampled.width < 1e-12
    with pytest.raises(UnsupportedEventError, match="Gaussian"):
        sf.epsilon(Gaussian(multiplier=1))


def test_many_unlike_parts_cost_the_dearest_at_most_by_renyi() -> None:
    parts = Partition("ward", tuple(Gaussian(multiplier=m) for m in range(1, 100)))
    found = sf.epsilon(parts, delta=1e-6)
    assert found.upper >= pld.epsilon(Gaussian(multiplier=1), 1e-6).lower
    assert found.upper <= float(zcdp.epsilon(Fraction(1, 2), Fraction(1, 10**6))) * (1 + 1e-6)


def test_what_nobody_can_price_is_refused_with_the_reasons() -> None:
    with pytest.raises(UnsupportedEventError, match="no accountant prices"):
        sf.epsilon(Sequence((Approximate(epsilon=1, delta=1e-3), Gaussian(multiplier=1))), delta=1e-6)


def test_arguments_are_checked() -> None:
    for wrong in (-1, 1, 2, math.nan, "1e-6", None):
        with pytest.raises(ArgumentError, match="delta"):
            sf.epsilon(Gaussian(multiplier=1), delta=wrong)
    for wrong in (-1, math.nan, math.inf, "1", None):
        with pytest.raises(ArgumentError, match="epsilon"):
            sf.delta(Gaussian(multiplier=1), epsilon=wrong)
    for function in (lambda: sf.epsilon("gaussian", delta=1e-6), lambda: sf.delta(1, epsilon=1)):
        with pytest.raises(ArgumentError, match="event"):
            function()


def test_the_first_way_wins_only_if_it_is_tight() -> None:
    """A wide first price is improved by the others, and never below the lower end."""
    wide = iter([lambda: price.Interval(1.0, 4.0), lambda: price.Interval(0.0, 2.0), lambda: price.Interval(0.0, 3.0)])
    assert ways._least(Gaussian(multiplier=1), wide, lambda: 0.5) == (1.0, 2.0)
    tight = iter([lambda: price.Interval(1.0, 1.001), lambda: pytest.fail("not needed")])
    assert ways._least(Gaussian(multiplier=1), tight, lambda: 0.5) == (1.0, 1.001)


def _refuse() -> price.Interval:
    raise UnsupportedEventError("not mine")


def test_a_way_that_refuses_is_passed_over() -> None:
    several = iter([_refuse, lambda: price.Interval(0.0, 2.0), _refuse])
    assert ways._least(Gaussian(multiplier=1), several, lambda: 0.5) == (0.5, 2.0)

    def no_bound() -> float:
        raise UnsupportedEventError("nothing from below either")

    several = iter([_refuse, lambda: price.Interval(0.0, 2.0)])
    assert ways._least(Gaussian(multiplier=1), several, no_bound) == (0.0, 2.0)
    with pytest.raises(UnsupportedEventError, match="not mine"):
        ways._least(Gaussian(multiplier=1), iter([_refuse, _refuse]), no_bound)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(set(EVERY) - {"hardly any noise", "best of", "allocation", "partition"})),
    st.integers(1, 5),
    st.floats(-12, -1),
)
def test_any_event_any_number_of_times_at_any_delta(name: str, times: int, log_delta: float) -> None:
    delta = 10**log_delta
    if name == "approximate" and delta < 5e-8:
        return
    found = sf.epsilon(Repeat(EVERY[name], times), delta=delta)
    assert 0 <= found.lower <= found.upper < math.inf


def test_what_is_left_of_delta_may_be_nothing() -> None:
    event = Sequence((Approximate(epsilon=1, delta=1e-6), Laplace(epsilon=1)))
    found = price.epsilon(event, delta=1e-6)
    assert found.upper == 2 and found.lower <= 2
    assert price.epsilon(event, delta=2e-6).upper < 2
    huge = price.epsilon(Sequence((ZeroConcentrated(rho=1e5), Gaussian(multiplier=1))), delta=1e-6)
    assert 1e5 < huge.lower <= huge.upper < 1.1e5


def test_errors_name_the_argument_and_the_fix() -> None:
    with pytest.raises(UnsupportedEventError, match="give a delta above 0, such as delta=1e-6"):
        price.epsilon(Gaussian(multiplier=1))
    for bad in (0, -1, math.nan, "much"):
        with pytest.raises(ArgumentError, match="accuracy"):
            price.epsilon(Gaussian(multiplier=1), delta=1e-6, accuracy=bad)  # type: ignore[arg-type]
