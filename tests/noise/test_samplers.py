"""Uniform integers, coins and permutations: unbiased to the last bit."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import binomtest, chisquare

from sfumato import exact
from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits, samplers
from tests.noise.scripted import CountingBits, ScriptedBits, joined

LAST = 2**64 - 1
timeless = settings(deadline=None)
WORD = st.integers(0, LAST)

# integers


@pytest.mark.parametrize("below", [1, 2, 3, 6, 7, 100, 2**10])
def test_integers_are_uniform(below: int) -> None:
    counts = np.bincount(samplers.integers(below, 200_000, SeededBits(1)), minlength=below)
    assert counts.size == below
    if below > 1:
        assert chisquare(counts).pvalue > 1e-6


@timeless
@given(st.integers(1, 2**62) | st.integers(1, 1000) | st.integers(0, 62).map(lambda e: 2**e), WORD, WORD)
def test_integers_redraw_exactly_the_words_of_the_incomplete_run(below: int, word: int, then: int) -> None:
    """Without this the small residues would be likelier; with it each residue keeps the same number of words."""
    kept = 2**64 // below * below
    assert kept % below == 0 and kept + below > 2**64
    accepted = then % kept
    bits = ScriptedBits([word, accepted])
    found = int(samplers.integers(below, 1, bits)[0])
    assert bits.given == (1 if word < kept else 2)
    assert found == (word if word < kept else accepted) % below


@pytest.mark.parametrize(("word", "given_words", "value"), [(LAST - 1, 1, 2), (LAST, 3, 1), (0, 1, 0)])
def test_the_last_word_of_three_is_drawn_again_until_it_fits(word: int, given_words: int, value: int) -> None:
    bits = ScriptedBits([word, LAST, 4])
    assert int(samplers.integers(3, 1, bits)[0]) == value and bits.given == given_words


def test_redrawn_integers_keep_their_places() -> None:
    bits = ScriptedBits([5, LAST, 7, LAST, 10, 11])
    assert samplers.integers(3, 4, bits).tolist() == [2, 1, 1, 2]


def test_a_bound_that_rejects_half_of_all_words_stays_uniform() -> None:
    below = 2**62 // 3 * 2 + 1
    bits = CountingBits(SeededBits(2))
    draws = samplers.integers(below, 50_000, bits)
    assert bits.given > 55_000 and draws.min() >= 0 and draws.max() < below
    assert chisquare(np.bincount((draws // (below // 10 + 1)).astype(np.int64), minlength=10)).pvalue > 1e-6


# coins


def test_a_fair_coin_splits_the_words_in_halves_and_needs_no_more() -> None:
    half = samplers.rational_chance(Fraction(1, 2))
    bits = ScriptedBits([0, 2**63 - 1, 2**63, LAST])
    assert samplers.coins(half, 4, bits).tolist() == [True, True, False, False] and bits.given == 4


@pytest.mark.parametrize(("p", "always"), [(Fraction(0), False), (Fraction(1), True)])
def test_certain_coins_are_certain(p: Fraction, always: bool) -> None:
    bits = ScriptedBits([0, 1, LAST - 1, LAST])
    assert samplers.coins(samplers.rational_chance(p), 4, bits).tolist() == [always] * 4 and bits.given == 4


CHANCES = [
    Fraction(1, 3),
    Fraction(2, 3),
    Fraction(1, 10),
    Fraction(1, 2**64),
    Fraction(1, 2**65),
    Fraction(3, 2**128),
    Fraction(1, 2**200),
    1 - Fraction(1, 2**64),
    1 - Fraction(1, 2**70),
    Fraction(2**64 - 1, 2**64 + 13),
]


@pytest.mark.parametrize("p", CHANCES, ids=str)
def test_a_coin_on_its_boundary_is_decided_by_further_bits(p: Fraction) -> None:
    """U follows the bits of p for one, two and three words, and then leaves them."""
    deep = math.floor(p * 2**256)
    exactly = [(deep >> shift) & LAST for shift in (192, 128, 64, 0)]
    seen = set()
    for place, change in itertools.product(range(4), (-1, 1, -(2**63), 2**63)):
        words = [*exactly[:place], (exactly[place] + change) % 2**64, 2**63, 2**63, 2**63]
        bits = ScriptedBits(words)
        heads = bool(samplers.coins(samplers.rational_chance(p), 1, bits)[0])
        n, precision = joined(words[: bits.given], 64)
        low, high = Fraction(n, 2**precision), Fraction(n + 1, 2**precision)
        assert high <= p if heads else low >= p
        seen.add(bits.given)
    assert 1 in seen and (max(seen) >= 3 or 2**128 % p.denominator == 0)  # a p of 128 bits is decided by as many


@timeless
@given(st.fractions(0, 40, max_denominator=10**6), st.integers(0, 3), st.sampled_from([-1, 1, 99]))
def test_an_exponential_coin_on_its_boundary_is_decided_by_further_bits(x: Fraction, place: int, change: int) -> None:
    with mp.workprec(600):
        p = mp.exp(-mpf(x.numerator) / x.denominator)
        deep = min(int(mp.floor(mp.ldexp(p, 256))), 2**256 - 1)
        exactly = [(deep >> shift) & LAST for shift in (192, 128, 64, 0)]
        words = [*exactly[:place], (exactly[place] + change) % 2**64, 2**63, 2**63, 2**63]
        bits = ScriptedBits(words)
        heads = bool(samplers.coins(samplers.exp_chance(x), 1, bits)[0])
        n, precision = joined(words[: bits.given], 64)
        assert mp.ldexp(mpf(n + 1), -precision) <= p if heads else mp.ldexp(mpf(n), -precision) >= p
        assert bits.given <= place + 2


@pytest.mark.parametrize("p", [0.001, 0.05, 0.3, 0.5, 0.75])
def test_coins_fall_at_their_rate_and_at_no_other(p: float) -> None:
    for chance in (samplers.rational_chance(Fraction(p)), samplers.exp_chance(Fraction(-math.log(p)))):
        heads = int(samplers.coins(chance, 400_000, SeededBits(3)).sum())
        assert binomtest(heads, 400_000, p).pvalue > 1e-6
        for factor in (0.7, 1.3):
            assert binomtest(heads, 400_000, p * factor).pvalue < 1e-6


def test_a_chance_that_is_truncated_to_64_bits_would_be_seen() -> None:
    """Plant the usual shortcut, a comparison with floor(p 2^64): on the boundary it is wrong."""
    p = Fraction(1, 3)
    n = math.floor(p * 2**64)
    shortcut = lambda bits: exact.Enclosure(math.floor(p * 2**64) << (bits - 64), 0, bits)  # noqa: E731
    truncated = samplers._below(np.array([n], dtype=np.uint64), shortcut(64).lo)[0]
    bits = ScriptedBits([n, 0])
    assert not truncated and samplers.coins(samplers.rational_chance(p), 1, bits)[0] and bits.given == 2


def test_settled_coins_keep_their_places() -> None:
    third = math.floor(Fraction(2**64, 3))
    bits = ScriptedBits([third, 0, third, LAST, third, 0, LAST, 1])
    heads = samplers.coins(samplers.rational_chance(Fraction(1, 3)), 5, bits)
    assert heads.tolist() == [True, True, False, False, True]
    assert bits.given == 8


# permutations


def test_permutations_of_four_are_uniform() -> None:
    bits, seen = SeededBits(4), dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(48_000):
        seen[tuple(samplers.permutation(4, bits).tolist())] += 1
    assert chisquare(list(seen.values())).pvalue > 1e-6


def test_a_tie_draws_all_keys_again() -> None:
    bits = ScriptedBits([5, 9, 5, 3, 2, 1])
    assert samplers.permutation(3, bits).tolist() == [2, 1, 0] and bits.given == 6
    bits = ScriptedBits([7, 7, 7, 7, 0, LAST])
    assert samplers.permutation(2, bits).tolist() == [0, 1] and bits.given == 6


@pytest.mark.parametrize("count", [0, 1, 2, 5, 10_000])
def test_a_permutation_holds_everything_once(count: int) -> None:
    order = samplers.permutation(count, SeededBits(5))
    assert order.dtype == np.int64 and sorted(order.tolist()) == list(range(count))


# the front of the house


def test_noise_passes_on_and_names_bad_arguments() -> None:
    noise = Noise(SeededBits(6))
    assert noise.coins(Fraction(1), 3).all() and noise.coins(samplers.exp_chance(Fraction(0)), 3).all()
    assert noise.integers(1, 4).tolist() == [0] * 4 and noise.permutation(1).tolist() == [0]
    bad_below: list[Any] = [0, -1, 2**62 + 1, 2.0, "3", True]
    for below in bad_below:
        with pytest.raises(ArgumentError, match=r"^below = "):
            noise.integers(below, 1)
    for p in (Fraction(-1, 2), Fraction(3, 2)):
        with pytest.raises(ArgumentError, match=r"^p = "):
            noise.coins(p, 1)
    with pytest.raises(ArgumentError, match=r"^x = "):
        samplers.exp_chance(Fraction(-1))
    for call in (noise.permutation, lambda n: noise.integers(3, n), lambda n: noise.coins(Fraction(1, 2), n)):
        with pytest.raises(ArgumentError, match=r"^count = "):
            call(-1)
