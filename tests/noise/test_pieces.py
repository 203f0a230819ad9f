"""Gaussian draws by pieces: the parabolas are as near as they say, and what they answer is what enclosures answer."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.stats import binom, chisquare

from sfumato.errors import ArgumentError
from sfumato.laws import DiscreteGaussian, RoundedGaussian, RoundedLaplace, _Normal
from sfumato.noise import Noise, SecureBits, SeededBits, inversion, pieces
from tests.noise import reference
from tests.noise.scripted import CountingBits
from tests.noise.test_tail_inversion import p_value

DEEP = 1 << pieces.DEEP
TOP = 2**63
SCALES = (1024.1, 2000.0, 2.0**14 * 1.3, 999_999.5, 2.0**22, 2.0**26 - 0.1, 2.0**28, 3e9)
NORMALS: list[_Normal] = [kind(scale) for kind in (RoundedGaussian, DiscreteGaussian) for scale in SCALES]
each_normal = pytest.mark.parametrize("law", NORMALS, ids=repr)


class Aside:
    """The given words for blocks; single words, which settle close calls, from a stream of their own."""

    grade = "seeded"

    def __init__(self, words: np.ndarray) -> None:
        self._left, self._more = words, SeededBits(1)

    def words(self, count: int) -> np.ndarray:
        if count == 1:
            return self._more.words(1)
        out, self._left = self._left[:count].copy(), self._left[count:]
        return out


def words_of(n: np.ndarray, signs: np.ndarray | int = 0) -> np.ndarray:
    return (n.astype(np.uint64) << np.uint64(1)) | np.asarray(signs, dtype=np.uint64)


def read(law: _Normal, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the pieces say, and where they say that it is too close to call."""
    out = np.empty(words.size, dtype=np.int64)
    close = np.zeros(words.size, dtype=bool)
    close[pieces.Reader(law, words.size).read(words, out)] = True
    return out, close


def enclosed(law: _Normal, word: int, guess: int) -> int:
    """The draw by the certified tail of the law alone, at the 63 bits of the word and 64 more."""
    n = ((word >> 1) << 64) | 0x9E3779B97F4A7C15
    magnitude = guess
    while magnitude > 0 and law.enclose_tail(magnitude, 127).hi <= n:
        magnitude -= 1
    while law.enclose_tail(magnitude + 1, 127).lo > n:
        magnitude += 1
    return -magnitude if word & 1 else magnitude


def edges(law: _Normal) -> np.ndarray:
    """The lower ends of all cells, as uniforms, and the upper end of the last."""
    mantissa = pieces._stretched(law.stretch).mantissa
    ends = [(1 << e) + (j << e - mantissa) for e in range(pieces.DEEP, 63) for j in range(1 << mantissa)]
    return np.array([*ends, TOP - 1], dtype=np.uint64)


# the parabolas


@pytest.mark.parametrize("mantissa", [pieces._COARSE, pieces._FINE])
def test_every_parabola_is_as_near_as_it_says_and_the_bound_is_worth_something(mantissa: int) -> None:
    table = pieces.standard(mantissa)
    share = np.array([0.0, 0.067, 0.25, 0.5, 0.75, 0.933, 1.0])[:, None]  # of the cell: its ends, its nodes, between
    cell = np.arange(19 << mantissa)
    least = np.ldexp(1 + (cell % (1 << mantissa)) / (1 << mantissa), pieces.DEEP + (cell >> mantissa))
    n = least * (1 + share / ((1 << mantissa) + cell % (1 << mantissa)))
    found = (table.square[1:] * n + table.linear[1:]) * n + table.constant[1:]
    off = np.abs(found + special.ndtri(n * 2.0**-64))
    assert off.max() < table.error
    assert off.max() > table.error / 3
    assert table.error < 1.1 * 2.0 ** -(7.65 + 3 * mantissa)


@pytest.mark.parametrize("mantissa", [pieces._COARSE, pieces._FINE])
def test_parabolas_agree_with_high_precision(mantissa: int) -> None:
    table = pieces.standard(mantissa)
    random = np.random.default_rng(1)
    law = RoundedGaussian(1.0)
    for cell in random.integers(0, 19 << mantissa, 150).tolist():
        octave, place = divmod(cell, 1 << mantissa)
        n = float(np.ldexp(1 + (place + random.uniform()) / (1 << mantissa), pieces.DEEP + octave))
        found = (table.square[cell + 1] * n + table.linear[cell + 1]) * n + table.constant[cell + 1]
        truth = reference.magnitude_at(law, n / 2**63) - 0.5
        assert abs(float(found - truth)) < table.error


def test_the_third_derivative_is_the_one_of_the_docstring() -> None:
    """By differences of the inverse itself, and it falls as u grows."""
    for u in (1e-5, 1e-3, 0.1, 0.5, 0.9):
        h = 0.002 * u
        z = -special.ndtri(0.5 * (u + h * np.arange(-2, 3)))
        third = (z[4] - 2 * z[3] + 2 * z[1] - z[0]) / (2 * h**3)
        said = -(1 + 2 * z[2] ** 2) / (2 * math.exp(-0.5 * z[2] ** 2) / math.sqrt(2 * math.pi)) ** 3
        assert third == pytest.approx(said, rel=1e-3)


# what they answer


@each_normal
def test_draws_by_pieces_have_the_law_and_no_law_30_percent_away(law: _Normal) -> None:
    draws = inversion.draw(law, 200_000, SeededBits(70))
    assert p_value(draws, law) > 1e-6
    for factor in (0.7, 1.3):
        assert p_value(draws, type(law)(law.spread * factor)) < 1e-6
    assert abs(int((draws > 0).sum()) - int((draws < 0).sum())) < 6.5 * math.sqrt(draws.size)
    assert chisquare(np.bincount(draws % 16, minlength=16)).pvalue > 1e-6  # no step of the grid is favoured


@each_normal
def test_millions_of_words_near_boundaries_are_answered_as_the_tail_says(law: _Normal) -> None:
    """Words within a few margins of a boundary, which is found by the tail, not by the inverse that made the pieces.

    The float tail is good to 2^-45 of itself here; the pieces must not answer closer to a boundary than that.
    """
    random = np.random.default_rng(2)
    count = 250_000
    z = np.abs(random.normal(size=count))
    z[: count // 4] = random.uniform(0, 4.75, count // 4)
    ends = random.choice(edges(law), count // 4).astype(np.float64)  # where parabolas are farthest off
    z[-ends.size :] = -special.ndtri(ends * 2.0**-64) + random.integers(-1, 2, ends.size) / law.spread
    k = np.maximum(1, np.rint(law.spread * np.minimum(z, 4.75))).astype(np.int64)
    boundary = law.tail(k) * 2.0**63
    slope = law.pmf(k) * 2 * 2.0**63  # uniforms to a step
    aside = random.uniform(-3, 3, count) * pieces.margin(law) * slope
    n = np.clip(boundary + aside, DEEP, TOP - 1024).astype(np.uint64)
    signs = random.integers(0, 2, count)
    found, close = read(law, words_of(n, signs))
    gap = boundary - n.astype(np.float64)
    assert close[np.abs(gap) < 2.0**-45 * boundary].all()
    right = np.where(gap > 0, k, k - 1)
    assert np.array_equal(np.abs(found)[~close], right[~close])
    assert (found[~close & (signs == 0)] >= 0).all() and (found[~close & (signs == 1)] <= 0).all()
    # and it answers wherever it should: what may be off by a margin is not close two margins away
    assert not close[np.abs(aside) > 2.01 * pieces.margin(law) * slope].any()
    assert close[np.abs(aside) < 0.01 * pieces.margin(law) * slope].any()


def test_an_error_that_is_understated_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    law = RoundedGaussian(2.0**24)
    monkeypatch.setattr(pieces, "_error", lambda *_: 2.0**-41)
    pieces.forget()
    try:
        with pytest.raises(AssertionError):
            test_millions_of_words_near_boundaries_are_answered_as_the_tail_says(law)
    finally:
        pieces.forget()


@pytest.mark.parametrize("law", [RoundedGaussian(700.7), DiscreteGaussian(2.0**16), RoundedGaussian(1e8)], ids=repr)
def test_all_edges_of_cells_and_their_neighbours_are_answered_as_the_tail_says(law: _Normal) -> None:
    at = edges(law)
    n = np.unique(np.concatenate([at, at - np.uint64(1), np.minimum(at + np.uint64(1), np.uint64(TOP - 1))]))
    found, close = read(law, words_of(n))
    assert close[n < DEEP].all()
    plain = inversion._inverted(law, words_of(n), SeededBits(1))  # by the closed inverse, and settled
    assert np.array_equal(found[~close], plain[~close])
    for index in range(0, n.size, 211):
        assert close[index] or found[index] == enclosed(law, int(n[index]) << 1, int(found[index]))


@each_normal
def test_the_ends_of_the_uniform_are_settled_or_right(law: _Normal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inversion, "_FEW", 0)
    n = [
        0,
        1,
        2,
        2**20,
        2**36,
        DEEP - 1,
        DEEP,
        DEEP + 1,
        TOP // 2 - 1,
        TOP // 2,
        TOP - 1024,
        TOP - 513,
        TOP - 512,
        TOP - 1,
    ]
    words = np.array([2 * m + sign for m in n for sign in (0, 1)], dtype=np.uint64)
    draws = inversion.draw(law, words.size, Aside(words))
    more = SeededBits(1)
    for word, drawn in zip(words.tolist(), draws.tolist(), strict=True):
        if word >> 1 < DEEP:  # settled with one more word each, in this order
            whole = (word >> 1) << 64 | int(more.words(1)[0])
            assert reference.inverts(law, abs(drawn), whole, 127)
        else:
            assert drawn == enclosed(law, word, abs(drawn))
        assert drawn <= 0 if word & 1 else drawn >= 0
    assert abs(draws[0]) > 8 * law.spread and not draws[-2:].any()


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(100.0, 2.0**31),
    kind=st.sampled_from([RoundedGaussian, DiscreteGaussian]),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=12),
)
def test_any_word_at_any_scale_is_drawn_as_the_enclosures_say(
    scale: float, kind: type[_Normal], words: list[int]
) -> None:
    law = kind(scale)
    found, close = read(law, np.array(words, dtype=np.uint64))
    for word, value, open_ in zip(words, found.tolist(), close.tolist(), strict=True):
        assert open_ or value == enclosed(law, word, abs(value))


@each_normal
def test_pieces_and_inverse_make_the_same_of_the_same_words(law: _Normal, monkeypatch: pytest.MonkeyPatch) -> None:
    words = SeededBits(71).words(100_000)
    by_pieces = inversion.draw(law, words.size, Aside(words))
    monkeypatch.setattr(inversion, "_PIECES_SCALE", math.inf)
    monkeypatch.setattr(inversion, "_TABLE_SCALE", 0.0)
    by_inverse = inversion.draw(law, words.size, Aside(words))
    assert np.array_equal(by_pieces, by_inverse)


def test_pieces_and_table_make_the_same_of_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for law in (RoundedGaussian(1900.0), DiscreteGaussian(1033.3)):
        words = SeededBits(72).words(300_000)
        by_pieces = inversion.draw(law, words.size, Aside(words))
        with monkeypatch.context() as patched:
            patched.setattr(inversion, "_PIECES_SCALE", math.inf)
            assert np.array_equal(by_pieces, inversion.draw(law, words.size, Aside(words)))


@pytest.mark.slow
@pytest.mark.parametrize("law", [RoundedGaussian(s) for s in (5000.0, 2.0**22, 2.0**27 * 1.1)], ids=repr)
def test_ten_million_secure_draws_by_pieces_have_the_law(law: RoundedGaussian) -> None:
    assert p_value(inversion.draw(law, 10**7, SecureBits()), law) > 1e-11  # three laws, true noise


# words and close calls


@each_normal
def test_close_calls_are_as_rare_as_the_margin_whatever_the_value(law: _Normal) -> None:
    words = SeededBits(73).words(400_000)
    found, close = read(law, words)
    chance = 2 * pieces.margin(law) + 2.0 ** (pieces.DEEP - 63)
    for group in (np.abs(found) < 0.6745 * law.spread, np.abs(found) >= 0.6745 * law.spread):
        assert binom.sf(int(close[group].sum()) - 1, int(group.sum()), chance) > 1e-6
        assert binom.cdf(int(close[group].sum()), int(group.sum()), chance) > 1e-6


@pytest.mark.parametrize(("scale", "most"), [(2.0**14, 1e-5), (2.0**22, 1e-5), (2.0**26, 3e-5), (2.0**28, 1e-4)])
def test_hardly_any_draw_takes_a_second_word(scale: float, most: float) -> None:
    bits = CountingBits(SeededBits(74))
    inversion.draw(RoundedGaussian(scale), 500_000, bits)
    assert 500_000 <= bits.given <= 500_000 * (1 + most) + 6


@pytest.mark.parametrize("scale", [2.0**30, 3e9])
def test_draws_left_open_come_to_their_places(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and many open draws: some are drawn on the way, the rest at the end."""
    law, words = RoundedGaussian(scale), SeededBits(75).words(20_000)
    whole = inversion.draw(law, words.size, Aside(words))
    monkeypatch.setattr(inversion, "_BLOCK", 37)
    assert read(law, words)[1].sum() > 100
    assert np.array_equal(whole, inversion.draw(law, words.size, Aside(words)))
    sums = np.arange(words.size)
    inversion.add(law, sums, Aside(words))
    assert np.array_equal(sums, whole + np.arange(words.size))


# adding, and threads


@pytest.mark.parametrize("law", [RoundedGaussian(3.0), RoundedGaussian(2.0**20), RoundedLaplace(1e6)], ids=repr)
@pytest.mark.parametrize("count", [0, 1, 5000, inversion._BLOCK + 1, 100_000])
def test_adding_adds_what_drawing_draws(law: Any, count: int) -> None:
    sums = np.arange(count) * 1000
    Noise(SeededBits(76)).add(law, sums)
    assert np.array_equal(sums, np.arange(count) * 1000 + Noise(SeededBits(76)).draw(law, count))


def test_adding_to_every_other_sum() -> None:
    law, sums = RoundedGaussian(2.0**20), np.zeros(20_000, dtype=np.int64)
    Noise(SeededBits(77)).add(law, sums[::2])
    assert not sums[1::2].any() and np.array_equal(sums[::2], Noise(SeededBits(77)).draw(law, 10_000))


def test_sums_that_cannot_be_added_to_are_refused_by_name() -> None:
    fixed = np.zeros(3, dtype=np.int64)
    fixed.flags.writeable = False
    for bad in (
        [1, 2],
        np.zeros(3),
        np.zeros(3, np.int32),
        np.zeros((2, 2), np.int64),
        np.zeros(3, ">i8"),
        fixed,
        None,
    ):
        with pytest.raises(ArgumentError, match=r"^sums = "):
            Noise(SeededBits(1)).add(RoundedGaussian(2.0), bad)  # type: ignore[arg-type]


def test_threads_that_draw_at_once_draw_what_each_would_alone() -> None:
    law, found = RoundedGaussian(2.0**24), {}
    start = threading.Barrier(4)
    pieces.forget()

    def work(seed: int) -> None:
        start.wait()
        found[seed] = inversion.draw(law, 300_000, SeededBits(seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert np.array_equal(found[seed], inversion.draw(law, 300_000, SeededBits(seed)))
