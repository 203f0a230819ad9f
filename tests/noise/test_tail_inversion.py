"""Draws by inversion: the exact law, by the exact rule, word for word."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import numpy as np
import pytest
from scipy.stats import chisquare

from sfumato.errors import ArgumentError
from sfumato.laws import DiscreteGaussian, DiscreteLaplace, Geometric, Law, RoundedGaussian, RoundedLaplace
from sfumato.noise import Noise, SecureBits, SeededBits, inversion
from tests.noise import reference
from tests.noise.reference import LAWS
from tests.noise.scripted import CountingBits, ScriptedBits, joined

Path = Literal["table", "inverse"]
DRAWS = 200_000
TOP = 2**63

# Every law on every path that it has. The discrete Gaussian has no closed inverse below 48.
TABLED = [kind(scale) for kind in LAWS for scale in (0.4, 7.3, 60.0)]
INVERTED = [kind(scale) for kind in LAWS for scale in (60.0, 1e6, 1e9)] + [
    kind(scale) for kind in (RoundedGaussian, RoundedLaplace, DiscreteLaplace, Geometric) for scale in (0.4, 7.3)
]
PATHS: list[tuple[Path, Law]] = [("table", law) for law in TABLED] + [("inverse", law) for law in INVERTED]
each_path = pytest.mark.parametrize(("path", "law"), PATHS, ids=lambda x: x if isinstance(x, str) else repr(x))


def force(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    limit = math.inf if path == "table" else 0.0
    monkeypatch.setattr(inversion, "_SMALL_SCALE", limit)
    monkeypatch.setattr(inversion, "_TABLE_SCALE", limit)
    monkeypatch.setattr(inversion, "_PIECES_SCALE", math.inf)  # tests/noise/test_pieces.py has that way


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Certified tails are computed once per place and precision; it is the same tails, faster."""
    for kind in LAWS:
        monkeypatch.setattr(kind, "enclose_tail", lru_cache(maxsize=None)(kind.enclose_tail))
    yield


# (a) the law, by chi-square


def p_value(draws: np.ndarray, law: Law) -> float:
    """Chi-square of the draws in some 24 cells of about equal mass."""
    edges = np.unique([law.quantile(p) for p in np.linspace(1 / 24, 23 / 24, 23)])
    expected = np.diff(law.cdf(edges), prepend=0.0, append=1.0) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws), minlength=expected.size)
    keep = expected > 20
    if not keep.all():  # the rare cells together
        observed = np.append(observed[keep], observed[~keep].sum())
        expected = np.append(expected[keep], expected[~keep].sum())
    keep = expected > 1e-9 * draws.size
    if observed[~keep].any():
        return 0.0
    return float(chisquare(observed[keep], expected[keep] * observed.sum() / expected[keep].sum()).pvalue)


CHI = [("table", kind(s)) for kind in LAWS for s in (0.5, 3.0, 40.0, 1500.0)] + [
    ("inverse", kind(s)) for kind in LAWS for s in (50.0, 5000.0, 1e6, 1e9)
]


@pytest.mark.parametrize(("path", "law"), CHI, ids=lambda x: x if isinstance(x, str) else repr(x))
def test_draws_have_the_law_and_no_law_30_percent_away(path: Path, law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, path)
    draws = inversion.draw(law, DRAWS, SeededBits(20))
    assert p_value(draws, law) > 1e-6
    for factor in (0.7, 1.3):
        assert p_value(draws, type(law)(law.spread * factor)) < 1e-6


def test_the_wrong_neighbour_among_laws_is_rejected() -> None:
    """The tests above tell a rounded law from a discrete one of the same scale."""
    bits = SeededBits(21)
    for one, other in ((RoundedGaussian, DiscreteGaussian), (RoundedLaplace, DiscreteLaplace)):
        assert p_value(inversion.draw(one(0.7), DRAWS, bits), other(0.7)) < 1e-6
        assert p_value(inversion.draw(other(0.7), DRAWS, bits), one(0.7)) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("law", [kind(s) for kind in LAWS for s in (0.7, 12.0, 900.0, 1e6)], ids=repr)
def test_ten_million_secure_draws_have_the_law(law: Law) -> None:
    assert p_value(inversion.draw(law, 10**7, SecureBits()), law) > 1e-11  # twenty laws, true noise


def test_the_sign_is_fair_and_independent_of_the_magnitude() -> None:
    law = RoundedLaplace(3.0)
    draws = inversion.draw(law, DRAWS, SeededBits(22))
    for k in range(1, 12):
        n = int((np.abs(draws) == k).sum())
        assert abs(int((draws == k).sum()) - n / 2) < 6 * math.sqrt(n / 4)


# (b) forced refinement


def boundaries(law: Law) -> list[int]:
    """Magnitudes whose boundary is hit: the first, the middle, and down to where a 63-bit uniform ends."""
    found = {1, 2}
    for depth in (0.7, 10, 19, 30, 45, 61):
        found.add(max(1, reference.magnitude_of(law, int(2 ** (80 - depth)), 80)))
    return sorted(found)


def scripts_at(law: Law, k: int) -> Iterator[list[int]]:
    """Words that put U at, or next to, the boundary P(X >= k), with more words than should be needed."""
    deep = reference.scaled(reference.tail(law, k), 63 + 4 * 64)[0]
    exact = [deep >> 256, *((deep >> shift) & (2**64 - 1) for shift in (192, 128, 64, 0))]
    spare = [0x9E3779B97F4A7C15, 0x243F6A8885A308D3, 0x13198A2E03707344]
    for place in range(4):  # the bits of the boundary, up to one word that is next to it
        for change in (-1, 1, -12, 12):
            words = list(exact)
            words[place] += change
            if 0 <= words[place] < (TOP if place == 0 else 2**64):
                yield words[: place + 1] + spare
    yield [*exact[:1], 0, *spare]
    yield [*exact[:1], 2**64 - 1, *spare]
    yield [*exact[:2], 0, *spare]
    yield [*exact[:2], 2**64 - 1, *spare]


def draw_one(law: Law, script: list[int], sign: int) -> tuple[int, list[int]]:
    """One draw from a script whose first entry is the 63 bits of the magnitude; the words it used."""
    words = [script[0] << 1 | sign, *script[1:]]
    bits = ScriptedBits(words)
    value = int(inversion.draw(law, 1, bits)[0])
    return value, words[: bits.given]


def check(law: Law, value: int, words: list[int]) -> None:
    """The value is the inversion of the complete bit string, and the string determines it."""
    n, precision = joined(words, 63)
    assert reference.inverts(law, abs(value), n, precision)
    assert value >= 0 if law.one_sided or words[0] & 1 == 0 else value <= 0


def words_needed(law: Law, value: int, words: list[int]) -> int:
    """The least number of the words that determine the value."""
    return next(c for c in range(1, len(words) + 1) if reference.inverts(law, abs(value), *joined(words[:c], 63)))


@each_path
def test_close_calls_are_settled_as_the_complete_bit_string_says(
    path: Path, law: Law, monkeypatch: pytest.MonkeyPatch, remembered: None
) -> None:
    force(monkeypatch, path)
    used = set()
    for k in boundaries(law):
        for number, script in enumerate(scripts_at(law, k)):
            value, words = draw_one(law, script, number % 2)
            check(law, value, words)
            needed = words_needed(law, value, words)
            assert needed <= len(words) <= needed + 1
            used.add(len(words))
    assert used >= {2, 3, 4}  # the bits really ran out, twice and more


@each_path
def test_tiny_uniforms_are_inverted_exactly(
    path: Path, law: Law, monkeypatch: pytest.MonkeyPatch, remembered: None
) -> None:
    """The far tail, down to uniforms of which the first 63 bits are zero."""
    force(monkeypatch, path)
    for n in (0, 1, 2**20, 2**36 - 1, 2**36, 2**43, 2**44 - 1, 2**44):
        for more in ([1, 5], [2**63, 7], [2**64 - 1, 2**64 - 1]):
            value, words = draw_one(law, [n, *more, 3, 3], 1)
            check(law, value, words)
            assert (len(words) >= 2) or n >= 2**36


def test_a_uniform_of_127_zero_bits_is_settled_with_more_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes once in 2^127 draws, and then it must end too: no tail is certainly below [0, 1) / 2^127."""
    calls, side = 0, inversion._side

    def counted(*args: object) -> int:
        nonlocal calls
        calls += 1
        if calls > 2000:
            pytest.fail("settle does not come to an end while all bits are zero")
        return side(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(inversion, "_side", counted)
    law = RoundedLaplace(1.0)
    value, words = draw_one(law, [0, 0, 12345, 6], 0)
    check(law, value, words)


@pytest.mark.parametrize("guess", [0, 1, 5, 30, 1000])
def test_settling_does_not_depend_on_the_guess(guess: int) -> None:
    for law in (RoundedGaussian(8.0), DiscreteGaussian(8.0), Geometric(8.0)):
        for n in (3, 2**40, 2**60, 2**62, TOP - 1):
            value = inversion.settle(law, n, guess, ScriptedBits([77]))
            assert reference.inverts(law, value, (n << 64) | 77, 127)


def test_settled_draws_keep_their_place_in_a_block(remembered: None) -> None:
    """Several close calls among ordinary words: each gets its own further bits, in order."""
    law = RoundedGaussian(5.0)
    at = [reference.scaled(reference.tail(law, k), 63)[0] for k in (1, 4, 9)]
    plain = [TOP // 3, TOP // 5, TOP // 7]
    first = [at[0], plain[0], plain[1], at[1], plain[2], at[2]]
    extra = [2**64 - 1, 0, 2**63]
    bits = ScriptedBits([n << 1 for n in first] + extra)
    draws = inversion.draw(law, len(first), bits).tolist()
    assert bits.given == 9
    for index, further in zip((0, 3, 5), extra, strict=True):
        assert reference.inverts(law, draws[index], (first[index] << 64) | further, 127)
    for index in (1, 2, 4):
        assert reference.inverts(law, draws[index], first[index], 63)


# (c) the table, the inverse and the enclosures are one function of the word


def magnitudes(law: Law, path: Path, words: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    force(monkeypatch, path)
    bits = _Then(words)
    return np.abs(inversion.draw(law, words.size, bits))


def settled(law: Law, words: np.ndarray, guesses: np.ndarray, bits: SeededBits) -> list[int]:
    """Magnitudes by enclosures alone."""
    return [inversion.settle(law, int(w) >> 1, int(g), bits) for w, g in zip(words, guesses, strict=True)]


class _Then:
    """The given words first, then a stream that is the same every time."""

    grade = "seeded"

    def __init__(self, words: np.ndarray) -> None:
        self._left, self._more = words, SeededBits(1)

    def words(self, count: int) -> np.ndarray:
        if self._left.size:
            out, self._left = self._left[:count].copy(), self._left[count:]
            assert out.size == count
            return out
        return self._more.words(count)


@pytest.mark.parametrize("law", [kind(s) for kind in LAWS for s in (1.0, 25.0, 150.0)], ids=repr)
def test_all_ways_to_decide_agree(law: Law, monkeypatch: pytest.MonkeyPatch, remembered: None) -> None:
    words = SeededBits(31).words(20_000)
    table = magnitudes(law, "table", words, monkeypatch)
    if law.invert(np.full(1, 0.5)) is not None:
        assert np.array_equal(table, magnitudes(law, "inverse", words, monkeypatch))
    assert table.tolist() == settled(law, words, table, SeededBits(32))


@pytest.mark.parametrize("law", [kind(s) for kind in LAWS for s in (1000.0, 1e6, 1e9)], ids=repr)
def test_the_inverse_and_the_enclosures_agree_at_large_scales(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    words = SeededBits(33).words(250)
    found = magnitudes(law, "inverse", words, monkeypatch)
    assert found.tolist() == settled(law, words, found, SeededBits(34))
    if law.spread <= 2048:
        assert np.array_equal(found, magnitudes(law, "table", words, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("law", [kind(s) for kind in LAWS for s in (0.3, 60.0, 1e6)], ids=repr)
def test_all_ways_to_decide_agree_on_many_words(law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    words = SeededBits(35).words(20_000)
    path: Path = "table" if law.spread <= 2048 else "inverse"
    found = magnitudes(law, path, words, monkeypatch)
    if path == "table" and law.invert(np.full(1, 0.5)) is not None:
        assert np.array_equal(found, magnitudes(law, "inverse", words, monkeypatch))
    assert found.tolist() == settled(law, words, found, SeededBits(34))


def test_a_margin_that_is_too_small_is_seen(monkeypatch: pytest.MonkeyPatch, remembered: None) -> None:
    """Plant a boundary that is off by more than the margin: close calls are then decided wrongly."""
    law = RoundedGaussian(7.3)
    right = inversion._boundaries

    monkeypatch.setattr(inversion, "_boundaries", lambda law: right(law) + 2 * inversion._MARGIN)
    inversion.forget()
    try:
        wrong = 0
        for script in scripts_at(law, 3):
            value, words = draw_one(law, script, 0)
            wrong += not reference.inverts(law, abs(value), *joined(words, 63))
    finally:
        inversion.forget()
    assert wrong > 5


# (d) a lattice of words and all neighbours of all boundaries; (e) the number of words


@pytest.mark.parametrize(
    ("path", "law"),
    [("table", kind(s)) for kind in LAWS for s in (0.4, 7.3)] + [("inverse", kind(50.0)) for kind in LAWS],
    ids=lambda x: x if isinstance(x, str) else repr(x),
)
def test_every_word_of_a_lattice_and_every_neighbour_of_a_boundary_is_inverted_exactly(
    path: Path, law: Law, monkeypatch: pytest.MonkeyPatch, remembered: None
) -> None:
    force(monkeypatch, path)
    lattice = [j << 54 for j in range(512)] + [(j << 54) - 1 for j in range(1, 513)]
    octaves = [(1 << e) + d for e in range(63) for d in (-1, 0, 1) if (1 << e) + d < TOP]
    edges, k = [], 1
    while (n := reference.scaled(reference.tail(law, k), 63)[0]) > 0 and k < 300:
        edges += [m for d in (-1, 0, 1) for m in (n + d, n + d * inversion._MARGIN) if 0 <= m < TOP]
        k += 1
    at = np.array([reference.scaled(reference.tail(law, j), 63)[0] for j in range(1, k + 1)], dtype=np.float64)
    for n in {*lattice, *octaves, *edges}:
        value, words = draw_one(law, [n, 2**63 + 12345, 1, 1], n % 2)
        check(law, value, words)
        near = n < 2 ** (44 if path == "inverse" else 36) or float(np.abs(at - n).min()) <= 4 * inversion._MARGIN
        if path == "table" and not near:
            assert len(words) == 1  # (e): one word, whatever the value
    assert k > 2 or law.spread < 1


@each_path
def test_a_draw_takes_one_word_whatever_its_value(path: Path, law: Law, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refinements apart, which are as rare as promised: here, none or few in 50,000 draws."""
    force(monkeypatch, path)
    bits = CountingBits(SeededBits(40))
    inversion.draw(law, 50_000, bits)
    chance = (
        2.0**-26
        if path == "table"
        else 2.0**-18 + 4 * law.spread * 32 * 2.0**-48 + 16 / law.spread**3 * (isinstance(law, DiscreteGaussian))
    )
    assert 50_000 <= bits.given <= 50_000 + 6 + 3 * 50_000 * chance


@pytest.mark.parametrize("law", [RoundedLaplace(2.0), RoundedGaussian(1e6)], ids=repr)
def test_single_draws_of_every_size_take_one_word(law: Law) -> None:
    sizes = set()
    for seed in range(2000):
        bits = CountingBits(SeededBits(seed))
        sizes.add(abs(int(inversion.draw(law, 1, bits)[0])))
        assert bits.given == 1
    assert len(sizes) > 10


# odds and ends


def test_a_law_without_table_and_inverse_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "inverse")
    with pytest.raises(ArithmeticError, match="neither"):
        inversion.draw(DiscreteGaussian(3.0), 5, SeededBits(1))


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("scale", [2.0**-12, 0.05, 2047.0, 2048.0, 2048.1, 2.0**39])
def test_the_ends_of_the_scales_work(kind: type[Law], scale: float) -> None:
    count = 5000 if scale < 1e6 else 40
    draws = inversion.draw(kind(scale), count, SeededBits(41))
    assert draws.dtype == np.int64 and draws.size == count
    if scale < 0.04:
        assert not draws.any()
    if scale > 1000:
        assert 0.3 * scale < np.abs(draws).mean() < 3 * scale


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, inversion._BLOCK, inversion._BLOCK + 1, 3 * inversion._BLOCK])
def test_the_number_of_draws_does_not_change_the_first_ones(count: int) -> None:
    law = RoundedGaussian(100.0)  # below 4096 draws by the inverse, above by the table
    words = SeededBits(42).words(inversion._BLOCK)
    draws = inversion.draw(law, count, _Then(np.append(words, SeededBits(43).words(2 * inversion._BLOCK))))
    few = inversion.draw(law, 1000, _Then(words))
    assert draws.size == count and np.array_equal(draws[:1000], few[:count])


def test_forgetting_tables_changes_nothing() -> None:
    law = DiscreteLaplace(9.0)
    first = inversion.draw(law, 100, SeededBits(44))
    inversion.forget()
    assert np.array_equal(first, inversion.draw(law, 100, SeededBits(44)))


def test_noise_draws_through_here_and_refuses_bad_counts() -> None:
    law = RoundedGaussian(2.0)
    assert np.array_equal(Noise(SeededBits(3)).draw(law, 50), inversion.draw(law, 50, SeededBits(3)))
    for bad in (-1, 1.0, "3", None, 2**41):
        with pytest.raises(ArgumentError, match=r"^count = "):
            Noise(SeededBits(3)).draw(law, bad)  # type: ignore[arg-type]
