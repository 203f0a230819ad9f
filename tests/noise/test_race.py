"""Selection: the exact law of the race, and photo finishes decided by the bits."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.polynomial import Polynomial
from scipy.stats import chisquare

from sfumato.errors import ArgumentError
from sfumato.noise import Noise, SeededBits, race
from tests.noise.scripted import CountingBits, ScriptedBits, joined

LAST = 2**64 - 1
timeless = settings(deadline=None)
RACES = 8_000
HALF = Fraction(1, 2)
kinds = pytest.mark.parametrize("kind", race.KINDS)


def exponential_mechanism(scores: list[float], scale: float) -> np.ndarray:
    weights = np.exp(scale * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def permute_and_flip(scores: list[float], scale: float) -> np.ndarray:
    """P(r) = int_0^1 p_r prod_{i != r} (1 - p_i t) dt with p_i = exp(scale (s_i - max)): in a random order, r comes at
    a uniform time t, and everyone before it must have declined."""
    p = np.exp(scale * (np.array(scores) - max(scores)))
    law = []
    for r in range(p.size):
        product = Polynomial([p[r]])
        for i in range(p.size):
            if i != r:
                product *= Polynomial([1.0, -p[i]])
        law.append(product.integ()(1.0))
    return np.array(law)


LAW = {"gumbel": exponential_mechanism, "exponential": permute_and_flip}


def test_the_formulas_give_the_published_numbers() -> None:
    """Published odds, at epsilon 1 and sensitivity 1: the rate is 1/2."""
    assert exponential_mechanism([0, -1, -2], 0.5) == pytest.approx([0.506480, 0.307196, 0.186324], abs=6e-7)
    assert permute_and_flip([0, -1, -2], 0.5) == pytest.approx([0.587172, 0.266077, 0.146751], abs=6e-7)
    assert exponential_mechanism([5, 3], 0.5)[0] == pytest.approx(0.731059, abs=6e-7)
    assert permute_and_flip([5, 3], 0.5)[0] == pytest.approx(0.816060, abs=6e-7)


@timeless
@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8))
def test_permute_and_flip_never_errs_more_than_the_exponential_mechanism(scores: list[float]) -> None:
    em, pf = exponential_mechanism(scores, 0.5), permute_and_flip(scores, 0.5)
    assert pf.sum() == pytest.approx(1) and (pf * scores).sum() >= (em * scores).sum() - 1e-9


def winners(scores: list[float], scale: Fraction, kind: race.Kind, seed: int, count: int = RACES) -> np.ndarray:
    bits, row = SeededBits(seed), np.array(scores, dtype=np.float64)
    return np.bincount([race.select(row, scale, kind, bits) for _ in range(count)], minlength=len(scores))


@kinds
@pytest.mark.parametrize("scores", [[0.0, -1.0, -2.0], [5.0, 3.0], [1.0, 1.0, 4.0, 0.5, -3.0]], ids=str)
def test_winners_have_the_law_and_no_law_30_percent_away(kind: race.Kind, scores: list[float]) -> None:
    won = winners(scores, HALF, kind, 50)
    assert chisquare(won, LAW[kind](scores, 0.5) * RACES).pvalue > 1e-6
    for factor in (0.7, 1.3):
        assert chisquare(won, LAW[kind](scores, 0.5 * factor) * RACES).pvalue < 1e-6


def test_the_two_kinds_are_told_apart() -> None:
    scores = [0.0, -1.0, -2.0]
    assert chisquare(winners(scores, HALF, "gumbel", 51), permute_and_flip(scores, 0.5) * RACES).pvalue < 1e-6
    assert chisquare(winners(scores, HALF, "exponential", 51), exponential_mechanism(scores, 0.5) * RACES).pvalue < 1e-6


@kinds
def test_equal_scores_win_equally_often(kind: race.Kind) -> None:
    assert chisquare(winners([7.0] * 5, Fraction(3), kind, 52)).pvalue > 1e-6


@kinds
def test_the_law_does_not_move_with_all_scores(kind: race.Kind) -> None:
    """Scores far from zero: what counts is their distance from the best."""
    far = winners([1e9, 1e9 - 1, 1e9 - 2], HALF, kind, 50, count=1000)
    assert np.array_equal(far, winners([0.0, -1.0, -2.0], HALF, kind, 50, count=1000))


@kinds
def test_one_candidate_wins_and_takes_one_word(kind: race.Kind) -> None:
    for word in (0, 1, 2**63, LAST):
        bits = ScriptedBits([word])
        assert race.select(np.array([-5.0]), HALF, kind, bits) == 0 and bits.given == 1


@kinds
def test_a_hopeless_candidate_never_wins_and_costs_the_same(kind: race.Kind) -> None:
    for gap in (1e4, 1e15, 1e300, 1.7e308):
        bits = CountingBits(SeededBits(53))
        for _ in range(50):
            assert race.select(np.array([-gap, 0.0, -gap]), HALF, kind, bits) == 1
        assert bits.given == 150


@kinds
def test_every_race_takes_one_word_per_candidate(kind: race.Kind) -> None:
    bits = CountingBits(SeededBits(54))
    for _ in range(200):
        race.select(np.array([0.0, 0.5, 1.0, -3.0]), HALF, kind, bits)
    assert 800 <= bits.given <= 806


@kinds
def test_more_candidates_than_a_block(kind: race.Kind) -> None:
    scores = np.zeros(3 * race._BLOCK + 5)
    scores[-2] = 60.0
    assert race.select(scores, Fraction(1), kind, SeededBits(55)) == scores.size - 2


# Photo finishes. Two runners: every further round takes one word each, so that who has which bits is known.


def totals(score: Fraction, words: list[int], kind: race.Kind) -> tuple[Any, Any]:
    """The least and the largest total that these bits of U allow."""
    n, precision = joined(words, 64)
    at = [mp.ldexp(mpf(m), -precision) for m in (n, n + 1)]
    exponential = [mp.inf if u == 0 else -mp.log(u) for u in at]
    noise = exponential if kind == "exponential" else [mp.inf if e == 0 else -mp.log(e) for e in exponential]
    shift = mpf(score.numerator) / score.denominator
    return shift + min(noise), shift + max(noise)


def run(scores: list[float], scale: Fraction, kind: race.Kind, first: list[int], second: list[int]) -> int:
    """Race two runners on the given words, check the winner against mpmath, return the number of words used."""
    order = [word for pair in zip(first, second, strict=True) for word in pair]
    bits = ScriptedBits(order)
    winner = race.select(np.array(scores), scale, kind, bits)
    rounds = bits.given // 2
    with mp.workprec(1200):
        (low0, high0), (low1, high1) = (
            totals(Fraction(s) * scale, words[:rounds], kind) for s, words in zip(scores, (first, second), strict=True)
        )
        assert low0 >= high1 if winner == 0 else low1 >= high0
    return bits.given


@kinds
@pytest.mark.parametrize("word", [0, 1, 2**24 - 1, 2**24, 2**40, 2**63, 2**64 - 2**34, 2**64 - 2, LAST])
def test_equal_words_and_scores_are_decided_by_further_bits(kind: race.Kind, word: int) -> None:
    for ties in range(1, 4):
        for low, high in ((5, 9), (0, LAST), (2**63, 2**63 + 4), (1, 2)):
            first, second = [word] * ties + [low, 3, 3, 3], [word] * ties + [high, 3, 3, 3]
            assert run([2.0, 2.0], HALF, kind, first, second) > 2 * ties
            run([2.0, 2.0], HALF, kind, second, first)


def tied_words(n: int, gap: Fraction, kind: race.Kind) -> list[int]:
    """The bits of the U that ties with U = n / 2^256 at a score that is `gap` higher."""
    with mp.workprec(1200):
        u, g = mp.ldexp(mpf(n), -256), mpf(gap.numerator) / gap.denominator
        # exponential: -ln v + gap = -ln u; gumbel: -ln(-ln v) + gap = -ln(-ln u)
        v = u * mp.exp(g) if kind == "exponential" else mp.exp(mp.log(u) * mp.exp(g))
        deep = int(mp.floor(mp.ldexp(v, 256)))
    assert 0 <= deep < 2**256
    return [(deep >> shift) & LAST for shift in (192, 128, 64, 0)]


@kinds
@pytest.mark.parametrize(
    "scale", [HALF, Fraction(1, 3), Fraction(1, 3) + Fraction(1, 2**80), Fraction(7, 10**6)], ids=str
)
@pytest.mark.parametrize("start", [2**20, 2**40, 2**60, 2**62 + 12345, 2**63])
def test_constructed_ties_are_decided_as_exact_arithmetic_says(kind: race.Kind, scale: Fraction, start: int) -> None:
    """Totals that agree for 64, 128, 192 bits; a rounded scale or score would choose the wrong one."""
    scores = [0.0, 0.7]  # 0.7 means the float, exactly
    mine = [start, 0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0]
    n, _ = joined(mine, 64)
    other = tied_words(n, Fraction(0.7) * scale, kind)
    used = set()
    for place in range(4):
        for change in (-(2**40), -30, 30, 2**40):
            if 0 <= other[place] + change <= LAST:
                theirs = [*other[:place], other[place] + change, *[2**63] * (3 - place), 1, 1]
                used.add(run(scores, scale, kind, [*mine, 1, 1], theirs))
    assert used & {6, 8, 10}


@kinds
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_outer_words_are_decided_exactly(kind: race.Kind, data: Any) -> None:
    """Uniforms next to 0 and to 1, where the float pass does not look."""
    outer = st.integers(0, 2**26) | st.integers(2**64 - 2**36, LAST) | st.integers(0, 3) | st.integers(LAST - 3, LAST)
    word = outer | st.integers(0, LAST)
    scores = [data.draw(st.sampled_from([0.0, 1.0, 20.0, 44.0])), data.draw(st.sampled_from([0.0, 0.3, 21.0]))]
    more = [2**63 + 1, 77, 5, 5]
    run(scores, Fraction(1), kind, [data.draw(outer), *more], [data.draw(word), *more[::-1]])


@kinds
def test_the_float_pass_and_the_enclosures_name_the_same_winner(
    kind: race.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = np.array([0.0, 0.4, -0.2, 0.1, -3.0])
    words = SeededBits(56).words(5 * 120).tolist()
    fast = [race.select(row, HALF, kind, ScriptedBits(words[i : i + 5])) for i in range(0, 600, 5)]
    monkeypatch.setattr(race, "_SLACK", 1e9)  # everybody stays in the race
    bits = SeededBits(57).words(100).tolist()
    slow = [race.select(row, HALF, kind, ScriptedBits(words[i : i + 5] + bits)) for i in range(0, 600, 5)]
    assert fast == slow and len(set(fast)) >= 4


@kinds
def test_a_slack_that_is_too_small_is_seen(kind: race.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a float pass that trusts itself: some constructed ties are then decided before their bits are known."""
    monkeypatch.setattr(race, "_SLACK", 0.0)
    early = 0
    for start in SeededBits(64).words(60).tolist():
        mine = [start // 8, 5, 5]  # so low that the tied U is below 1
        n = joined([*mine, 0], 64)[0]
        theirs = tied_words(n, Fraction(0.7) * Fraction(1, 3), kind)[:3]
        try:
            run([0.0, 0.7], Fraction(1, 3), kind, [*mine, 1], [*theirs[:2], 9, 1])
        except AssertionError:
            early += 1
    assert early > 5


def test_a_huge_gap_times_a_small_scale_is_a_small_gap() -> None:
    """scores * scale is what counts, exactly: 3.4e308 / 1e308 = 3.4, although the gap itself is no float64."""
    won = winners([-1.7e308, 1.7e308], Fraction(1, 10**308), "gumbel", 58, count=3000)
    expected = 3000 / (1 + math.exp(3.4))
    assert abs(won[0] - expected) < 6 * math.sqrt(expected)


def test_a_scale_below_every_float_makes_all_alike() -> None:
    won = winners([-1e308, 1e308], Fraction(1, 10**400), "gumbel", 59, count=2000)
    assert chisquare(won).pvalue > 1e-6


@pytest.mark.parametrize("bad", [[], [[1.0]], [math.nan], [1.0, math.inf], [1.0, -math.inf], 3.0])
def test_bad_scores_are_refused_without_being_shown(bad: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^scores = '...' is not allowed"):
        Noise(SeededBits(61)).select(bad)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^kind = "):
        Noise(SeededBits(62)).select([1.0], noise="normal")  # type: ignore[arg-type]


def test_noise_selects_through_here() -> None:
    noise, bits = Noise(SeededBits(63)), SeededBits(63)
    scores = [0, 1, 2, 3]
    row = np.array(scores, dtype=np.float64)
    for _ in range(50):
        assert noise.select(scores) == race.select(row, Fraction(1), "gumbel", bits)


# Weights: a candidate that stands for many.


def weighted_law(scores: list[float], weights: list[int], scale: float) -> np.ndarray:
    odds = np.array(weights) * np.exp(scale * (np.array(scores) - max(scores)))
    return odds / odds.sum()


@pytest.mark.parametrize(
    ("scores", "weights"),
    [([0.0, -1.0, -2.0], [1, 5, 2]), ([3.0, 3.0, 3.0, 3.0], [1, 2, 3, 4]), ([0.0, -80.0], [1, 2**60])],
    ids=str,
)
def test_weighted_winners_have_the_law_and_no_other(scores: list[float], weights: list[int]) -> None:
    noise = Noise(SeededBits(70))
    won = np.bincount([noise.select(scores, scale=HALF, weights=weights) for _ in range(RACES)], minlength=len(scores))
    law = weighted_law(scores, weights, 0.5)
    assert chisquare(won, law * RACES).pvalue > 1e-6
    wrong = weighted_law(scores, [2 * weights[0], *weights[1:]], 0.5)
    assert chisquare(won, wrong * RACES).pvalue < 1e-6


def test_a_weight_of_one_is_no_weight() -> None:
    plain, weighted = Noise(SeededBits(71)), Noise(SeededBits(71))
    for _ in range(200):
        assert plain.select([0, 1, 2]) == weighted.select([0, 1, 2], weights=[1, 1, 1])


def test_nobody_runs_with_a_weight_of_zero() -> None:
    scores, weights = [1e300, 0.0, 5.0, 0.0], np.array([0, 3, 0, 1])
    for word in (0, 1, 2**24, 2**63, 2**64 - 2**33, LAST):  # also with words that float64 does not judge
        bits = ScriptedBits([word] * 4 + list(range(8)))
        assert Noise(bits).select(scores, weights=weights) in (1, 3)
    bits = CountingBits(SeededBits(72))
    assert {Noise(bits).select(scores, weights=weights) for _ in range(100)} == {1, 3}
    assert 400 <= bits.given <= 402  # one word per candidate, whoever runs


def test_weighted_races_far_apart_and_large_and_tied() -> None:
    noise = Noise(SeededBits(73))
    assert noise.select([0.0, 1e6, 2e6], weights=[2**60, 2**60, 1]) == 2
    many = np.zeros(10**6)
    assert 0 <= noise.select(many, weights=np.full(10**6, 2**60)) < 10**6
    heavy = np.ones(10**6, dtype=np.int64)
    heavy[-7] = 2**60
    assert noise.select(many, weights=heavy) == 10**6 - 7


@pytest.mark.parametrize("weights", [(2**60, 2**60 - 1), (3, 1), (1, 2**53 + 1)], ids=str)
@pytest.mark.parametrize("start", [2**40, 2**60, 2**61])
def test_weights_in_a_photo_finish_are_exact(weights: tuple[int, int], start: int) -> None:
    """Words whose totals tie once ln w is counted, as a rational score would not."""
    with mp.workprec(1200):
        n, _ = joined([start, 0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0], 64)
        u = mp.ldexp(mpf(n), -256)
        v = mp.exp(mp.log(u) * weights[1] / weights[0])  # the U of the second that ties with the first's u
        deep = int(mp.floor(mp.ldexp(v, 256)))
    other = [(deep >> shift) & LAST for shift in (192, 128, 64, 0)]
    mine = [start, 0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0]
    for place in range(1, 4):
        for change in (-(2**40), -(2**20), 2**20, 2**40):
            if not 0 <= other[place] + change <= LAST:
                continue
            theirs = [*other[:place], other[place] + change, *[2**63] * (3 - place), 1, 1]
            bits = ScriptedBits([w for pair in zip([*mine, 1, 1], theirs, strict=True) for w in pair])
            winner = Noise(bits).select([0.0, 0.0], weights=np.array(weights))
            assert winner == (1 if change > 0 else 0)  # the larger U runs further
            assert bits.given > 2


@pytest.mark.parametrize("bad", [[1], [1, -1], [0, 0], [1.0, 2.0], [1, 2**60 + 1], [[1, 1]], [1, 2**70], "ab"], ids=str)
def test_bad_weights_are_refused_without_being_shown(bad: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^weights = '...' is not allowed"):
        Noise(SeededBits(74)).select([0, 1], weights=bad)


def test_weights_go_with_gumbel_noise_only() -> None:
    with pytest.raises(ArgumentError, match=r"^noise = 'exponential'"):
        Noise(SeededBits(75)).select([0, 1], weights=[1, 2], noise="exponential")


# The first k in order.


def peeled(scores: list[float], scale: float, k: int) -> dict[tuple[int, ...], float]:
    """The law of k winners, each drawn by the exponential mechanism among those that are left."""
    law = {}
    for order in permutations(range(len(scores)), k):
        chance, left = 1.0, list(range(len(scores)))
        for winner in order:
            odds = {i: math.exp(scale * scores[i]) for i in left}
            chance *= odds[winner] / sum(odds.values())
            left.remove(winner)
        law[order] = chance
    return law


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_first_k_have_the_law_of_peeling(k: int) -> None:
    scores, noise = [0.0, 1.0, 1.0, 2.5], Noise(SeededBits(80 + k))
    seen = Counter(tuple(noise.top(scores, k, scale=HALF)) for _ in range(RACES))
    law = peeled(scores, 0.5, k)
    assert set(seen) <= set(law)
    assert chisquare([seen[o] for o in law], [p * RACES for p in law.values()]).pvalue > 1e-6
    for wrong in (0.35, 0.65):
        other = peeled(scores, wrong, k)
        assert chisquare([seen[o] for o in law], [p * RACES for p in other.values()]).pvalue < 1e-6


def test_the_first_of_the_first_k_is_the_winner() -> None:
    for seed in range(100):
        scores = [0.0, 0.3, -0.2, 0.1]
        assert Noise(SeededBits(seed)).top(scores, 2)[0] == Noise(SeededBits(seed)).select(scores)


@pytest.mark.parametrize("slack", [2.0**-20, 0.5, 1e9])
def test_float_ranks_and_enclosures_agree(slack: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wide slack clusters, or everybody, are settled by enclosures: the order must be the same."""
    row = SeededBits(81).words(12).astype(np.float64) / 2**63
    words = SeededBits(82).words(12 * 25).tolist()
    more = SeededBits(83).words(100).tolist()
    want = [race.top(row, 5, Fraction(1, 3), ScriptedBits(words[i : i + 12] + more)) for i in range(0, len(words), 12)]
    monkeypatch.setattr(race, "_SLACK", slack)
    got = [race.top(row, 5, Fraction(1, 3), ScriptedBits(words[i : i + 12] + more)) for i in range(0, len(words), 12)]
    assert got == want and len({tuple(order) for order in got}) > 20


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_orders_are_those_of_exact_arithmetic(data: Any) -> None:
    """Ties, outer words and hopeless scores: the order is the one that the bits used determine."""
    count = data.draw(st.integers(1, 5))
    word = st.integers(0, LAST) | st.integers(0, 2**25) | st.integers(LAST - 2**35, LAST) | st.just(2**63)
    scores = data.draw(
        st.lists(st.sampled_from([0.0, 0.0, 1.0, -1e9, -1e9 + 1e-7, 3.0]), min_size=count, max_size=count)
    )
    first = data.draw(st.lists(word, min_size=count, max_size=count))
    k = data.draw(st.integers(1, count))
    bits = CountingBits(ScriptedBits([*first, *SeededBits(84).words(200).tolist()]))
    order = race.top(np.array(scores), k, HALF, bits)
    assert len(set(order)) == k
    with mp.workprec(1200):
        bounds = [totals(Fraction(s) * HALF, [w], "gumbel") for s, w in zip(scores, first, strict=True)]
        for place, winner in enumerate(order):
            for other in range(count):
                if other not in order[: place + 1]:
                    assert bounds[winner][1] >= bounds[other][0]


def test_far_behind_ranks_are_not_trusted_to_floats() -> None:
    """Totals of -1e15 are whole numbers in float64, so gaps below that must be settled."""
    scores = [0.0, -1e15 - 0.125, -1e15]
    for seed in range(30):
        words = SeededBits(seed).words(3).tolist()
        order = race.top(np.array(scores), 2, Fraction(1), ScriptedBits(words + SeededBits(99).words(30).tolist()))
        with mp.workprec(400):
            low = [totals(Fraction(s), [w], "gumbel")[0] for s, w in zip(scores, words, strict=True)]
        assert order == [0, 1 if low[1] > low[2] else 2]


def test_ranking_takes_one_word_per_candidate_and_scales() -> None:
    bits = CountingBits(SeededBits(85))
    order = race.top(np.arange(10.0**5) * 1e-5, 50, Fraction(1), bits)
    assert len(set(order)) == 50 and 10**5 <= bits.given <= 10**5 + 60
    assert race.top(np.zeros(3), 3, HALF, ScriptedBits([5, 5, 5, 1 << 60, 2 << 60, 3 << 60])) == [2, 1, 0]


@pytest.mark.parametrize("bad", [0, 3, 1.0, True])
def test_bad_counts_are_refused(bad: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^count = "):
        Noise(SeededBits(86)).top([0.0, 1.0], bad)


def test_weighted_float_pass_and_enclosures_name_the_same_winner(monkeypatch: pytest.MonkeyPatch) -> None:
    row, weights = np.array([0.0, 0.4, -25.0, 0.1, -80.0]), np.array([3, 1, 2**20, 0, 2**60])
    words, more = SeededBits(90).words(5 * 100).tolist(), SeededBits(91).words(100).tolist()
    races = [words[i : i + 5] for i in range(0, 500, 5)]
    fast = [race.select(row, HALF, "gumbel", ScriptedBits([*each, *more]), weights) for each in races]
    monkeypatch.setattr(race, "_SLACK", 1e9)  # everybody stays in the race
    slow = [race.select(row, HALF, "gumbel", ScriptedBits([*each, *more]), weights) for each in races]
    assert fast == slow and 3 not in fast and len(set(fast)) >= 3
