"""Vector noise: the laws by brute force, what is drawn, close calls settled, and error bars that cover."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sfumato import exact
from sfumato.audit.losses import misfit
from sfumato.errors import ArgumentError
from sfumato.laws import DiscreteLaplace, RoundedLaplace
from sfumato.noise import Noise, SeededBits, vectors
from sfumato.noise.settle import settle

ALPHA = 1e-6


def many(draw: Callable[[], Any], count: int) -> Any:
    return np.array([draw() for _ in range(count)])


def chi_square(seen: Any, expected: Any) -> tuple[float, int]:
    """Over the cells expected at least five times, and the rest together."""
    often = expected >= 5
    parts = np.append(seen[often], seen[~often].sum()), np.append(expected[often], max(expected[~often].sum(), 1e-9))
    return float(((parts[0] - parts[1]) ** 2 / parts[1]).sum()), int(often.sum())


def fits(seen: Any, expected: Any) -> bool:
    found, degrees = chi_square(seen, expected)
    return found < degrees + 6 * math.sqrt(2 * degrees) + 30


def sup_law(scale: float, reach: int) -> dict[tuple[int, int], float]:
    """P in two dimensions, from the definition: there are 8r vectors of norm r >= 1."""
    total = 1 + sum(8 * r * math.exp(-r / scale) for r in range(1, 400))
    square = product(range(-reach, reach + 1), repeat=2)
    return {k: math.exp(-max(map(abs, k)) / scale) / total for k in square}


def test_sup_norm_noise_has_its_law_in_two_dimensions() -> None:
    noise, count, reach = Noise(SeededBits(1)), 8_000, 12
    drawn = many(lambda: noise.sup_norm(1.5, 2), count)
    law = sup_law(1.5, reach)
    assert sum(law.values()) == pytest.approx(1, abs=0.01)
    cells = {k: i for i, k in enumerate(law)}
    seen = np.bincount([cells.get(tuple(k), len(cells)) for k in drawn.tolist()], minlength=len(cells) + 1)
    expected = count * np.append(list(law.values()), 1 - sum(law.values()))
    assert fits(seen, expected)
    wrong = many(lambda: noise.sup_norm(1.1, 2), count)  # a smaller scale is noticed
    assert not fits(np.bincount([cells.get(tuple(k), len(cells)) for k in wrong.tolist()], minlength=626), expected)


def test_the_loss_of_sup_norm_noise_is_the_norm_of_the_shift() -> None:
    """By brute force over all outcomes nearby: ln P(k)/P(k - d) is at most max |d_i| / scale, and reaches it."""
    law = sup_law(1.5, 9)
    for shift in ((1, 0), (1, 1), (2, -1), (-2, 2)):
        losses = [
            math.log(p / law[k[0] - shift[0], k[1] - shift[1]])
            for k, p in law.items()
            if max(abs(k[0] - shift[0]), abs(k[1] - shift[1])) <= 9
        ]
        assert max(losses) == pytest.approx(max(map(abs, shift)) / 1.5)


@pytest.mark.parametrize("scale", [0.4, 3.0, 1000.0])
def test_sup_norm_noise_of_one_number_is_two_sided_geometric(scale: float) -> None:
    noise = Noise(SeededBits(2))
    gap, allowed = misfit(many(lambda: noise.sup_norm(scale, 1)[0], 4000), DiscreteLaplace(scale), ALPHA)
    assert gap <= allowed


@pytest.mark.parametrize(("scale", "count"), [(2.0, 3), (6.0, 5), (40.0, 40)])
def test_the_radius_of_sup_norm_noise(scale: float, count: int) -> None:
    """P(n) proportional to (2n + 1)^count q^n, summed up directly."""
    n = np.arange(60 * count * max(int(scale), 1))
    logs = count * np.log(2 * n + 1) - n / scale
    law = np.exp(logs - logs.max())
    law /= law.sum()
    bits = SeededBits(3)
    drawn = np.sort([vectors._sup_radius(scale, count, bits) for _ in range(4000)])
    above = np.searchsorted(drawn, n, side="right") / 4000
    assert np.abs(above - np.cumsum(law)).max() <= math.sqrt(math.log(2 / ALPHA) / 8000)


def test_euclidean_noise_of_one_number_is_rounded_laplace() -> None:
    noise = Noise(SeededBits(4))
    for scale in (0.3, 3.0, 5e8):
        drawn = many(lambda s=scale: noise.euclidean(s, 1)[0], 4000)
        gap, allowed = misfit(drawn, RoundedLaplace(scale), ALPHA)
        assert gap <= allowed
        gap, allowed = misfit(drawn, RoundedLaplace(scale * 0.7), ALPHA)
        assert gap > allowed


def test_euclidean_noise_in_three_dimensions_has_a_gamma_radius_and_no_direction() -> None:
    noise, scale, count = Noise(SeededBits(5)), 2.0**20, 4000
    drawn = many(lambda: noise.euclidean(scale, 3), count) / scale
    radius = np.sort(np.sqrt((drawn**2).sum(axis=1)))
    law = 1 - np.exp(-radius) * (1 + radius + radius**2 / 2)  # Gamma(3): r^2 e^-r on the sphere
    allowed = math.sqrt(math.log(2 / ALPHA) / (2 * count))
    assert np.abs(np.arange(count) / count - law).max() <= allowed + 1 / count
    for direction in ((1, 0, 0), (0, 1, 0), (0.6, 0, -0.8)):
        cosine = np.sort(drawn @ direction / np.sqrt((drawn**2).sum(axis=1)))  # uniform on the sphere: Archimedes
        assert np.abs(np.arange(count) / count - (cosine + 1) / 2).max() <= allowed + 1 / count


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_one_coordinate_of_euclidean_noise_is_a_sum_of_laplaces(count: int) -> None:
    noise, scale = Noise(SeededBits(6)), 2.0**20
    drawn = np.sort(np.abs(many(lambda: noise.euclidean(scale, count)[0], 6000))) / scale
    for alpha in (0.5, 0.1, 0.01):
        w = vectors.euclidean_width(1.0, count, alpha)
        assert (drawn > w).mean() == pytest.approx(alpha, abs=5 * math.sqrt(alpha / 6000))
    assert (drawn**2).mean() == pytest.approx(2 * vectors.halves(count), rel=0.15)


def test_close_calls_are_settled_as_the_float_pass_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first words of a draw are the same whoever decides; so deciding everything by enclosures changes nothing."""
    for count, scale in ((1, 0.7), (2, 30.0), (5, 2.0**22), (40, 2.0**10)):
        quick = [vectors.euclidean(scale, count, SeededBits(seed)) for seed in range(6)]
        with monkeypatch.context() as patched:
            patched.setattr(vectors._Size, "rough", lambda self: (_rough(self)[0] * 1.001, 1.0))
            sure = [vectors.euclidean(scale, count, SeededBits(seed)) for seed in range(6)]
        for a, b in zip(quick, sure, strict=True):
            assert (a == b).all()


_rough = vectors._Size.rough


def test_the_size_is_enclosed_to_any_precision() -> None:
    for count in (1, 2, 31, 200):
        size = vectors._Size(3.0, count, SeededBits(count))
        near, spread = size.rough()
        assert spread < 1e-6
        before = size.enclose(64)
        after = size.enclose(256)  # further bits of the same numbers
        assert before.lo << 192 <= after.lo <= after.hi <= before.hi << 192
        assert float(after) == pytest.approx(near, rel=2 * spread + 1e-12)
        with mp.workdps(100):
            product_ = mp.fprod(mp.mpf(n) / mp.mpf(2) ** size.precision for n in size.uniforms)
            truth = 3 * mp.sqrt(-2 * mp.log(product_)) * mp.mpf(2) ** 256
            assert after.lo - 2 <= truth <= after.hi + 2 and after.hi - after.lo < 2**20


def test_a_uniform_that_begins_with_zeros_is_drawn_on() -> None:
    class Zeros:
        grade = "seeded"

        def __init__(self) -> None:
            self.bits, self.asked = SeededBits(1), 0

        def words(self, count: int) -> Any:
            self.asked += 1
            return np.zeros(count, dtype=np.uint64) if self.asked <= 3 else self.bits.words(count)

    drawn = vectors.euclidean(5.0, 3, Zeros())
    assert drawn.shape == (3,) and np.abs(drawn).max() > 100
    assert vectors.sup_norm(5.0, 3, Zeros()).shape == (3,)


@pytest.mark.parametrize(("scale", "count"), [(1024.0, 1), (1024.0, 2), (64.0, 7), (2000.0, 50), (2.0**20, 1000)])
def test_error_bars_of_sup_norm_noise_cover_and_are_tight(scale: float, count: int) -> None:
    """Against the sum over all n, directly."""
    top = int(scale * (count + 12 * math.sqrt(count) + 60))
    n = np.arange(0, top, max(1, top // 400_000)) if count > 900 else np.arange(top)
    logs = count * np.log(2.0 * n + 1) - n / scale
    law = np.exp(logs - logs.max())
    law /= law.sum()
    for alpha in (0.3, 0.05, 1e-4):
        w = vectors.sup_norm_width(scale, count, alpha)
        missed = float((law * np.maximum(2.0 * (n - w) / (2.0 * n + 1), 0)).sum())
        assert 0.98 * alpha - 1e-9 < missed <= alpha * (1 + (1e-4 if count > 900 else 1e-9))
        reach = vectors.sup_norm_reach(scale, count, alpha)
        beyond = float(law[n > reach].sum())
        assert beyond <= alpha * (1 + (1e-4 if count > 900 else 0)) and (beyond > 0.5 * alpha or alpha < 0.01)


def test_error_bars_of_euclidean_noise_are_exact() -> None:
    for alpha in (0.5, 0.05, 1e-6):
        assert vectors.euclidean_width(2.0, 1, alpha) == pytest.approx(-2 * math.log(alpha), rel=1e-5)
        w = vectors.euclidean_width(1.0, 3, alpha)  # two Laplaces: P(|x| > w) = (1 + w/2) e^-w
        assert (1 + w / 2) * math.exp(-w) == pytest.approx(alpha, rel=1e-4)
    for count in (100_000, 99_999):  # nearly normal
        assert vectors.euclidean_width(1.0, count, 0.05) == pytest.approx(1.96 * math.sqrt(count + 1), rel=1e-3)
    with pytest.raises(ArgumentError, match="alpha"):
        vectors.euclidean_width(1.0, 3, 0.0)
    with pytest.raises(ArgumentError, match="alpha"):
        vectors.sup_norm_width(1024.0, 3, 1e-300)


def test_long_vectors() -> None:
    noise, count = Noise(SeededBits(7)), 100_000
    square = float((noise.sup_norm(2.0**17, count).astype(float) ** 2).mean())
    assert square / 2.0**34 == pytest.approx(count**2 / 3, rel=0.05)
    square = float((noise.euclidean(2.0**20, count).astype(float) ** 2).mean())
    assert square / 2.0**40 == pytest.approx(count + 2, rel=0.05)


def test_settle_asks_for_bits_until_it_is_decided() -> None:
    third = [settle(_third, SeededBits(seed)) for seed in range(1000)]
    assert np.mean(third) == pytest.approx(1 / 3, abs=0.05)
    asked: list[int] = []

    def late(n: int, precision: int) -> int | None:
        asked.append(precision)
        assert 0 <= n < 1 << precision
        return n if precision == 256 else None

    Noise(SeededBits(1)).settle(late)
    assert asked == [64, 128, 192, 256]


def _third(n: int, precision: int) -> bool | None:
    if 3 * (n + 1) <= 1 << precision:
        return True
    return False if 3 * n >= 1 << precision else None


def test_enclosures_used_here_agree_with_themselves() -> None:
    size = vectors._Size(7.0, 3, SeededBits(2))
    for k in (1, 5, 40):
        tail = size.enclose_tail(k, 128)
        z = (k - 0.5) / float(size.enclose(128))
        assert float(tail) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-10)
        assert isinstance(tail, exact.Enclosure) and tail.hi - tail.lo < 2**30
