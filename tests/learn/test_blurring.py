"""The noise of a step: enough of it for what a unit can do, on a grid, once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ArgumentError
from sfumato.learn.blurring import Blur, Drawn, StepSum
from sfumato.noise import Noise, SecureBits, SeededBits

ETA = Fraction(1, 64)


def blur(**fields: Any) -> Blur:
    return Blur(
        **({"parameters": 10, "sensitivity": 1 + ETA, "multiplier": Fraction(2), "count": None, "changes": 1} | fields)
    )


@settings(deadline=None, max_examples=25)
@given(
    parameters=st.integers(1, 10**7),
    norm=st.floats(2.0**-30, 2.0**30),
    multiplier=st.fractions(Fraction(1, 10), 100),
    changes=st.sampled_from([1, 2]),
)
def test_noise_is_the_multiplier_times_all_that_a_unit_can_do(
    parameters: int, norm: float, multiplier: Fraction, changes: int
) -> None:
    made = blur(parameters=parameters, multiplier=multiplier, changes=changes)
    step = Fraction(2) ** made.exponent(norm)
    reach = changes * Fraction(norm) * (1 + ETA) / step
    assert Fraction(made.law(norm).sigma) >= multiplier * (reach + Fraction(math.isqrt(parameters)))
    most = float(multiplier) * changes * norm * float(1 + ETA) * (1 + 2.0**-7)
    assert made.deviation(norm) <= most * 1.0001 + float(step), "rounding to the grid costs a percent at most"


def test_whole_numbers_pay_for_no_rounding() -> None:
    exactly, rounded = blur(sensitivity=Fraction(1), whole=True), blur(sensitivity=Fraction(1))
    assert exactly.law(1.0).sigma < rounded.law(1.0).sigma
    assert Fraction(exactly.law(1.0).sigma) >= 2 / Fraction(2) ** exactly.exponent(1.0)


@settings(deadline=None, max_examples=25)
@given(multiplier=st.fractions(Fraction(1, 4), 20), count=st.fractions(1, 1000), changes=st.sampled_from([1, 2]))
def test_the_count_is_paid_from_the_same_multiplier(multiplier: Fraction, count: Fraction, changes: int) -> None:
    """1/z^2 is the sum of both parts' (sensitivity / deviation)^2: together they are the Gaussian that is paid for."""
    half = Fraction(changes, 2)
    if 1 / multiplier**2 <= (half / count) ** 2:
        with pytest.raises(ArgumentError, match="count"):
            blur(multiplier=multiplier, count=count, changes=changes)
        return
    made = blur(multiplier=multiplier, count=count, changes=changes)
    step = Fraction(2) ** made.exponent(1.0)
    reach = changes * (1 + ETA) / step + Fraction(math.isqrt(10))
    paid = (reach / Fraction(made.law(1.0).sigma)) ** 2 + (changes / Fraction(made.count_law.sigma)) ** 2
    assert paid <= 1 / multiplier**2


def sums(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(values, dtype=torch.float32)]


def test_micro_batches_add_up_in_any_order() -> None:
    parts = [sums(*np.random.default_rng(i).normal(size=4)) for i in range(50)]
    made = []
    for order in (parts, parts[::-1], parts[25:] + parts[:25]):
        whole = StepSum(parts[0], -10)
        for part in order:
            whole.add(part)
        made.append(whole.released(np.zeros(4), 1.0)[0])
    assert all(torch.equal(made[0], each) for each in made[1:])


def test_what_is_released_lies_on_the_grid() -> None:
    whole = StepSum(sums(0, 0, 0), -6)
    whole.add(sums(0.3, -1.7, 1e-9))
    noise = Noise(SeededBits(1)).draw(blur().law(1.0), 3)
    (out,) = whole.released(noise, 1.0)
    assert torch.equal(out * 64, torch.round(out * 64))
    assert (out * 64 - torch.from_numpy(noise.astype(float))).tolist() == [19, -109, 0]


def test_neighbours_move_by_what_the_noise_is_for() -> None:
    """Rounding adds one step to each coordinate at most, once, as one micro-batch differs."""
    random = np.random.default_rng(0)
    made = blur(parameters=40)
    exponent = made.exponent(1.0)
    for _ in range(200):
        base, change = random.normal(size=40), random.normal(size=40)
        change /= np.linalg.norm(change)
        both = []
        for part in (base, base + change):
            whole = StepSum([torch.zeros(40, dtype=torch.float64)], exponent)
            whole.add([torch.from_numpy(part)])
            both.append(whole._total.copy())
        assert np.linalg.norm(both[0] - both[1]) <= made.law(1.0).sigma / 2


def test_sums_of_whole_numbers_stay_exact() -> None:
    whole = StepSum([torch.zeros(2)], 0)
    for _ in range(1000):
        whole.add_steps([torch.tensor([2.0**40 + 1, -3.0], dtype=torch.float64)])
    assert whole._total.tolist() == [1000 * (2.0**40 + 1), -3000]


def test_noise_drawn_beside_is_the_same_noise() -> None:
    law, beside = blur().law(1.0), Drawn()
    try:
        coming = beside.begin(Noise(SeededBits(5)), law, 1000)
        assert np.array_equal(coming.result(), Noise(SeededBits(5)).draw(law, 1000))
        two = [beside.begin(Noise(SecureBits()), law, 100).result() for _ in range(2)]
        assert not np.array_equal(*two)
    finally:
        beside.close()


def test_noise_that_fails_beside_fails_the_step() -> None:
    class Broken(Noise):
        def draw(self, law: Any, count: int) -> Any:
            raise ValueError("no bits")

    beside = Drawn()
    try:
        coming = beside.begin(Broken(SeededBits(1)), blur().law(1.0), 3)
        with pytest.raises(ValueError, match="no bits"):
            coming.result()
    finally:
        beside.close()
