"""The grid: rounding stays inside the bounds, sums are exact, and the step is a function of public numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sfumato import bounds, grid
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.units import Unit

timeless = settings(deadline=None)
INT64 = st.integers(-(2**63), 2**63 - 1)
ORDINARY = st.floats(1e-30, 1e30).map(Fraction)
EDGES = (-math.inf, math.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308)


@st.composite
def intervals(draw: Any) -> tuple[Fraction, Fraction]:
    """Bounds of every kind: wide and narrow, around zero and far from it."""
    one = draw(st.just(Fraction(0)) | ORDINARY) * draw(st.sampled_from([1, -1]))
    other = one + draw(ORDINARY) if draw(st.booleans()) else one * (1 + Fraction(draw(st.floats(1e-14, 4))))
    assume(one != other)
    return min(one, other), max(one, other)


@timeless
@given(ORDINARY)
@example(Fraction(1))
@example(Fraction(2**60 - 1, 2**60))
@example(Fraction(2**60 + 1, 2**60))
def test_floor_log2_is_the_largest_power_not_above(x: Fraction) -> None:
    n = grid.floor_log2(x)
    assert Fraction(2) ** n <= x < Fraction(2) ** (n + 1)


@timeless
@given(ORDINARY, ORDINARY, st.booleans())
def test_the_step_is_finer_than_the_noise_and_values_fit(scale: Fraction, largest: Fraction, whole: bool) -> None:
    exponent = grid.exponent_for(
        scale, largest=largest, finer=grid.FINER_COUNTS if whole else grid.FINER_VALUES, coarsest=0 if whole else None
    )
    step = Fraction(2) ** exponent
    assert not whole or exponent <= 0
    if not whole or largest >= 1:  # counts of one are the only whole contributions
        assert largest / step <= 2**43 or exponent == 0
        if grid.floor_log2(largest) <= grid.floor_log2(scale):  # the usual case: noise hides a unit
            assert scale / step >= 2**10


def test_the_step_is_the_same_for_every_value_of_the_data() -> None:
    """It is made of the plan's fields alone."""
    query = bounds.clipped_sum("x", -3, 8, Unit())
    plan = Laplace(query=query, epsilon=Fraction(1, 2))
    assert (
        plan.exponent
        == grid.exponent_for(Fraction(16), largest=Fraction(8), finer=grid.FINER_VALUES)
        == 4 - grid.FINER_VALUES
    )


@timeless
@given(intervals(), st.lists(st.floats(allow_nan=False), max_size=20), ORDINARY)
def test_quantised_reals_stay_inside_the_bounds(
    interval: tuple[Fraction, Fraction], raw: list[float], scale: Fraction
) -> None:
    """The claim that every sensitivity rests on, at every step the library may choose: no value exceeds the bounds."""
    lower, upper = interval
    largest = max(abs(lower), abs(upper))
    scale = max(scale, largest / 10**4)  # epsilon is at most 10^4
    exponent = grid.exponent_for(scale, largest=largest, finer=grid.FINER_VALUES)
    steps = grid.quantise(np.array([*raw, *EDGES, float(lower), float(upper)]), lower, upper, exponent)
    assert steps.dtype == np.int64
    low, high = min(lower, Fraction(0)), max(upper, Fraction(0))  # a sum's sensitivity counts from 0
    step = Fraction(2) ** exponent
    for value in steps.tolist():
        assert low <= value * step <= high


@pytest.mark.parametrize(
    ("lower", "upper", "exponent"),
    [
        (Fraction(-1), Fraction(-1, 2), 9),
        (Fraction(-9, 10), Fraction(-6, 10), -1),
        (-1 - Fraction(2, 10**15), -1 - Fraction(1, 10**15), -42),
    ],
)
def test_an_interval_without_a_grid_point_does_not_reach_beyond_its_bounds(
    lower: Fraction, upper: Fraction, exponent: int
) -> None:
    """No step lies in the interval; what values become must still be within the reach that was paid for."""
    steps = grid.quantise(np.array([-2.0, -0.7, 0.0, -math.inf]), lower, upper, exponent)
    assert all(lower <= value * Fraction(2) ** exponent <= 0 for value in steps.tolist())


def test_a_unit_moves_a_sum_by_no_more_than_its_sensitivity_at_a_very_small_epsilon() -> None:
    """End to end: values in [-1, -1/2] and a step of 512."""
    query = bounds.clipped_sum("x", -1, Fraction(-1, 2), Unit("user:u"), per_unit=1000)
    plan = Laplace(query=query, epsilon=Fraction(1, 10**9))
    steps = grid.quantise(np.array([-0.7]), query.lower, query.upper, plan.exponent)
    assert abs(int(steps[0])) * Fraction(2) ** plan.exponent * query.per_unit <= Fraction(query.l1)


@timeless
@given(st.integers(-1000, 1000), st.integers(1, 2000), st.lists(INT64, max_size=20), st.integers(-30, 0))
def test_quantised_whole_numbers_are_exact(low: int, width: int, raw: list[int], exponent: int) -> None:
    lower, upper = Fraction(low), Fraction(low + width)
    values = np.array([*raw, low, low + width, 2**63 - 1, -(2**63)], dtype=np.int64)
    steps = grid.quantise(values, lower, upper, exponent)
    expected = [min(max(v, low), low + width) * 2**-exponent for v in values.tolist()]
    assert steps.tolist() == expected


@timeless
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.integers(-30, 3))
def test_quantised_reals_are_the_nearest_step(raw: list[float], exponent: int) -> None:
    step = Fraction(2) ** exponent
    steps = grid.quantise(np.array(raw), Fraction(-1000), Fraction(1000), exponent)
    for value, found in zip(raw, steps.tolist(), strict=True):
        assert abs(found * step - Fraction(value)) <= step / 2


@timeless
@given(st.lists(INT64, max_size=50), st.randoms(use_true_random=False))
def test_exact_sum_is_exact_in_any_order(values: list[int], order: Any) -> None:
    shuffled = list(values)
    order.shuffle(shuffled)
    for some in (values, shuffled):
        assert grid.exact_sum(np.array(some, dtype=np.int64)) == sum(values)


def test_exact_sum_of_many_extreme_values_does_not_overflow() -> None:
    for value in (2**63 - 1, -(2**63)):
        assert grid.exact_sum(np.full(10**5, value, dtype=np.int64)) == value * 10**5


@timeless
@given(st.lists(INT64 | st.integers(-(2**100), 2**100), min_size=1, max_size=9), st.integers(-300, 300))
def test_steps_become_the_nearest_float(noisy: list[int], exponent: int) -> None:
    narrow = all(-(2**63) <= v < 2**63 for v in noisy)
    found = grid.to_float(np.array(noisy, dtype=np.int64 if narrow else object), exponent)
    assert found.dtype == np.float64
    assert found.tolist() == [math.ldexp(float(v), exponent) for v in noisy]


@timeless
@given(st.integers(1, 10**6), st.sampled_from([Fraction(1, 10**4), Fraction(1), Fraction(10)]))
def test_the_law_is_at_least_as_wide_as_the_sensitivity_in_steps_asks(reach: int, epsilon: Fraction) -> None:
    query = bounds.clipped_sum("x", 0, reach, Unit())
    laplace = Laplace(query=query, epsilon=epsilon)
    assert Fraction(laplace.law.spread) >= reach / epsilon / Fraction(2) ** laplace.exponent
    gaussian = Gaussian(query=query, rho=epsilon)
    assert Fraction(gaussian.law.spread) ** 2 >= reach**2 / (2 * epsilon) / Fraction(4) ** gaussian.exponent
