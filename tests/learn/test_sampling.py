"""Who takes part in a step: by coins of their own, in seats that nobody else's presence moves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato import events
from sfumato.errors import ArgumentError, DataError
from sfumato.learn.sampling import FREE, Fixed, Poisson, packed, seated
from sfumato.noise import Noise, SecureBits, SeededBits

HALF = Fraction(1, 2)
GAUSSIAN = events.Gaussian(multiplier=1)


def test_everybody_joins_by_a_coin_of_their_own() -> None:
    """Over all 2^4 sets of people, by chi-square at a level of 10^-10."""
    sampling, noise = Poisson.of(Fraction(1, 4), 4, Fraction(1, 10**9)), Noise(SecureBits())
    seen = np.zeros(16)
    for _ in range(4000):
        slots = sampling.draw(4, noise)
        seen[sum(1 << int(unit) for unit in slots[slots != FREE])] += 1
    bits = np.array([bin(i).count("1") for i in range(16)])
    expected = 4000 * 0.25**bits * 0.75 ** (4 - bits)
    assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 15) > 1e-10


def test_nobody_sits_twice_and_all_fit() -> None:
    sampling, noise = Poisson.of(HALF, 30, Fraction(1, 10**9)), Noise(SeededBits(1))
    for _ in range(50):
        slots = sampling.draw(30, noise)
        there = slots[slots != FREE]
        assert len(slots) == sampling.slots and len(set(there.tolist())) == len(there) <= 30


def test_one_more_moves_nobody_else() -> None:
    """Seats are drawn one after the other: with the same bits, the last one takes a seat that was free."""
    for seed in range(20):
        few = seated(np.arange(5), 12, Noise(SeededBits(seed)))
        more = seated(np.arange(6), 12, Noise(SeededBits(seed)))
        changed = np.flatnonzero(few != more)
        assert len(changed) == 1 and few[changed[0]] == FREE and more[changed[0]] == 5


def test_the_seat_of_one_more_is_uniform_among_the_free_ones() -> None:
    noise, seen = Noise(SecureBits()), np.zeros(4)
    for _ in range(2000):
        slots = seated(np.arange(2), 4, noise)
        seen[np.flatnonzero(slots == 1)] += 1
    assert stats.chi2.sf(((seen - 500) ** 2 / 500).sum(), 3) > 1e-10


def test_empty_batches_have_all_their_slots() -> None:
    slots = Poisson.of(HALF, 5, Fraction(1, 10**9)).draw(0, Noise(SeededBits(1)))
    assert len(slots) == Poisson.of(HALF, 5, Fraction(1, 10**9)).slots and (slots == FREE).all()


def test_slots_are_public_whatever_the_data_has() -> None:
    """T1 of the bugs seen elsewhere: expected batch and slots come from the public number."""
    sampling, noise = Poisson.of(HALF, 3, Fraction(1, 10**9)), Noise(SeededBits(1))
    assert {(len(sampling.draw(n, noise)), sampling.expected) for n in (0, 1, 2, 3, 4)} == {
        (sampling.room, Fraction(3, 2))
    }


def test_many_more_than_the_public_number_is_refused() -> None:
    sampling = Poisson.of(HALF, 100, Fraction(1, 10**9))
    with pytest.raises(DataError):
        sampling.draw(sampling.most + 1, Noise(SeededBits(1)))
    assert len(sampling.draw(sampling.most, Noise(SeededBits(1)))) == sampling.room


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 8), Fraction(9, 10)])
@pytest.mark.parametrize("population", [10, 1000, 60_000])
def test_the_chance_of_too_many_is_paid(rate: Fraction, population: int) -> None:
    allowed = Fraction(1, 10**10)
    sampling = Poisson.of(rate, population, allowed)
    assert sampling.failure <= allowed
    true = stats.binom.sf(sampling.room - 1, sampling.most, float(rate)) if sampling.room < sampling.most else 0
    assert true <= float(sampling.failure) <= true * 1.01 + 1e-300
    step = sampling.step(GAUSSIAN)
    if sampling.failure:
        assert isinstance(step, events.Sequence)
        drawn, late = step.events
        assert drawn == events.Poisson(GAUSSIAN, rate)
        assert late == events.Approximate(epsilon=0, delta=sampling.failure)
    else:
        assert step == events.Poisson(GAUSSIAN, rate)


def test_too_many_for_the_slots_are_cut_at_random() -> None:
    sampling = Poisson(rate=Fraction(1, 2), population=40, room=48)
    object.__setattr__(sampling, "room", 5)  # what its checks would never let through
    seen = {int(unit) for seed in range(40) for unit in sampling.draw(40, Noise(SeededBits(seed)))}
    assert FREE not in seen and len(seen) > 35


def test_too_few_slots_are_refused() -> None:
    with pytest.raises(ArgumentError, match="room"):
        Poisson(rate=HALF, population=1000, room=510)


@pytest.mark.parametrize("rate", [0, -1, 1.5, float("nan"), float("inf")])
def test_a_rate_is_a_probability(rate: Any) -> None:
    with pytest.raises(ArgumentError, match="rate"):
        Poisson(rate=rate, population=10, room=26)


def test_a_rate_of_one_takes_everybody_and_has_no_amplification() -> None:
    sampling = Poisson.of(Fraction(1), 10, Fraction(1, 10**9))
    assert sampling.step(GAUSSIAN) == GAUSSIAN
    slots = sampling.draw(10, Noise(SeededBits(1)))
    assert sorted(slots[slots != FREE].tolist()) == list(range(10))


# of a fixed size


def test_a_fixed_size_is_for_units_that_are_replaced() -> None:
    with pytest.raises(ArgumentError, match="replace"):
        Fixed(size=4, population=16).step(GAUSSIAN)
    replaced = events.Gaussian(multiplier=1, relation="replace")
    assert Fixed(size=4, population=16).step(replaced) == events.WithoutReplacement(replaced, 4, 16)


def test_a_fixed_size_draws_so_many_without_replacement() -> None:
    sampling, noise, seen = Fixed(size=2, population=4), Noise(SecureBits()), np.zeros((4, 4))
    for _ in range(3000):
        one, two = sampling.draw(4, noise)
        seen[one, two] += 1
    assert not seen.diagonal().any()
    pairs = seen[~np.eye(4, dtype=bool)]
    assert stats.chi2.sf(((pairs - 250) ** 2 / 250).sum(), 11) > 1e-10
    for units in (3, 5):
        with pytest.raises(DataError):
            sampling.draw(units, noise)


def test_a_replaced_unit_keeps_its_slot() -> None:
    """Who sits where does not depend on what anybody's record says."""
    one, two = (Fixed(size=3, population=9).draw(9, Noise(SeededBits(4))) for _ in range(2))
    assert np.array_equal(one, two)


def test_packed_batches_leave_free_slots_to_the_last_part() -> None:
    slots = packed(np.array([FREE, 3, FREE, 1, 2, FREE, FREE]), 2)
    assert slots.tolist() == [3, 1, 2, FREE]
    assert packed(np.array([FREE, FREE]), 2).tolist() == [FREE, FREE]
