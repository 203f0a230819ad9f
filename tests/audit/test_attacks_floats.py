"""Each attack is withstood by the library, and breaks its planted bug."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato import bounds, exact, grid
from sfumato.laws import RoundedLaplace
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.noise import Bits, Noise, SecureBits, SeededBits
from sfumato.plan import Run
from sfumato.rows import Rows
from sfumato.schema import Table, real
from sfumato.units import Unit
from sfumato_referee import attacks
from sfumato_referee.attacks import CouldNotRunError, Verdict, bitwise, float_bits, forked, precision, targets, timing

# The target is the real thing.


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@pytest.mark.parametrize("reach", [1.0, 0.001, 1000.0])
def test_the_library_target_answers_as_a_plan_on_data_does(kind: Any, reach: float) -> None:
    spent: dict[str, Any] = {"epsilon": Fraction(1)} | ({"delta": targets.DELTA} if kind is Gaussian else {})
    plan = kind(query=bounds.clipped_sum("x", 0, Fraction(reach), Unit()), **spent)
    for seed in range(5):
        for values, truth in (([], 0.0), ([2 * reach], reach)):
            rows = Rows.read(Table({"x": real(0, 10**6)}), {"x": values}, Unit())
            answer = plan._run(rows, Run(Noise(SeededBits(seed))))
            assert answer.tolist() == targets.Library(kind, bits=SeededBits(seed)).release(truth, reach, 1).tolist()


def test_the_library_target_for_counts_answers_as_a_count_does() -> None:
    plan = Laplace(query=bounds.count(Unit()), epsilon=Fraction(1))
    rows = Rows.read(Table({"x": real(0, 1)}), {"x": [0.0]}, Unit())
    answer = plan._run(rows, Run(Noise(SeededBits(1))))
    assert answer.tolist() == targets.Library(Laplace, counts=True, bits=SeededBits(1)).release(1.0, 1.0, 1).tolist()


# F1


def test_f1_is_withstood_at_every_scale() -> None:
    verdict = attacks.attack("F1")
    assert not verdict.broken and len(verdict.figures) == 30
    tried = {name.split(",")[0] for name in verdict.figures}
    assert tried == {"Laplace", "Gaussian", "Geometric", "L2Noise", "LInfinityNoise"}
    assert max(verdict.figures.values()) > 0.7  # it does see the epsilon of 1 that was spent, nearly


def test_f1_breaks_textbook_noise_at_every_scale() -> None:
    verdict = attacks.attack("F1", control=True)
    assert verdict.broken and len(verdict.figures) == 20
    assert min(verdict.figures.values()) > 4


def test_f1_breaks_exact_noise_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A right sampler with a wrong scale is also seen, by magnitudes alone."""
    right = Laplace._law_in_steps
    monkeypatch.setattr(Laplace, "_law_in_steps", lambda self, e: RoundedLaplace(right(self, e).scale * 0.7))
    assert float_bits.attack([targets.Library(Laplace)], sensitivities=(1.0,)).broken


def test_f1_breaks_a_grid_that_follows_the_data() -> None:
    """Plant a step chosen from the true value: right noise, on a lattice that tells which value it was."""

    class Following(targets.Library):
        def release(self, value: float, sensitivity: float, count: int) -> Any:
            answers = super().release(value, sensitivity, count)
            step = 2.0**-20 if value else 2.0**-25
            return np.round(answers / step) * step

    assert float_bits.attack([Following(Laplace)], sensitivities=(1.0,)).broken


# F2


@pytest.fixture
def sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the attacks see is true noise: a false alarm in a million runs is too many for tests."""
    for each in (float_bits, precision, timing):
        monkeypatch.setattr(each, "FALSE_ALARM", 1e-10)


def test_f2_is_withstood(sure: None) -> None:
    verdict = attacks.attack("F2")
    assert not verdict.broken and len(verdict.figures) == 9


def test_f2_breaks_textbook_noise_at_every_scale() -> None:
    verdict = attacks.attack("F2", control=True)
    assert verdict.broken and max(verdict.figures.values()) < 1e-50


def test_homogeneity_tells_equal_laws_from_unequal_ones() -> None:
    words = SeededBits(9).words(60_000)
    lows = bitwise.lowest_bit((words >> np.uint64(20)).astype(np.float64))
    assert precision.homogeneous([lows[:20_000], lows[20_000:40_000], lows[40_000:]]) > 1e-6
    assert precision.homogeneous([lows[:30_000], np.minimum(lows[30_000:], 3)]) < 1e-50
    assert precision.homogeneous([lows[:50], lows[50:100]]) == 1.0  # too few to say


finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)


@settings(deadline=None)
@given(finite)
@example(0.0)
@example(-0.0)
@example(1.0)
@example(-(2.0**53) + 1)
def test_magnitude_and_lowest_bit_are_read_off_exactly(y: float) -> None:
    size, low = int(bitwise.magnitude(np.array([y]))[0]), int(bitwise.lowest_bit(np.array([y]))[0])
    if y == 0:
        assert size < -1100 and low > 1100
        return
    assert Fraction(2) ** size <= abs(Fraction(y)) < Fraction(2) ** (size + 1)
    odd = Fraction(y) / Fraction(2) ** low
    assert odd.denominator == 1 and odd.numerator % 2 == 1


# F4


def test_f4_is_withstood_by_every_sampler() -> None:
    verdict = timing.attack(draws=1000)
    assert not verdict.broken and len(verdict.figures) == 36


def test_f4_breaks_a_sampler_that_loops() -> None:
    verdict = timing.attack({"geometric by a loop": timing.looping_geometric}, draws=1000)
    assert verdict.broken and "words" in verdict.text


def test_f4_breaks_a_sampler_that_takes_a_word_more_for_large_noise() -> None:
    """The lattice catches it at once; so would chance alone, on draws that the lattice misses."""

    def leaky(bits: Bits) -> int:
        value = int(Noise(bits).draw(RoundedLaplace(20.0), 1)[0])
        if abs(value) > 60:
            bits.words(1)
        return value

    assert timing.attack({"leaky": leaky}, draws=200).broken
    timed = timing._on_chance(leaky, 4000)
    assert timing.independence(timed.counts, timed.sizes) < 1e-20


def test_refinements_that_ignore_the_value_are_no_alarm() -> None:
    sizes = np.arange(10_000)
    counts = np.ones(10_000, dtype=np.int64)
    assert timing.independence(counts, sizes) == 1.0
    counts[::97] = 2
    assert timing.independence(counts, sizes) > 0.5
    counts[5000::7] = 2
    assert timing.independence(counts, sizes) < 1e-6


# F5


@pytest.mark.slow
def test_f5_is_withstood_by_64_of_each_kind() -> None:
    verdict = attacks.attack("F5")
    assert not verdict.broken
    assert sum("64 streams" in name for name in verdict.figures) == 3, verdict


@pytest.mark.slow
def test_f5_breaks_a_source_that_is_not_renewed() -> None:
    verdict = forked.attack(forked.copied(), spawned=1)
    assert verdict.broken
    assert all(value > 0 for name, value in verdict.figures.items() if name.startswith("equal"))


def test_f5_breaks_the_library_when_forks_do_not_renew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SecureBits, "renew", lambda self: None)
    verdict = forked.attack(children=4, spawned=0)
    assert verdict.broken and verdict.figures["equal 128-bit blocks, forked, 4 streams"] > 0
    assert verdict.figures["equal 128-bit blocks, unpickled, 4 streams"] == 0


def test_equal_blocks_are_counted() -> None:
    a, b = bytes(range(16)), bytes(16)
    assert [forked.equal_blocks(parts) for parts in ([a, b], [a + b, b], [a, a, a])] == [0, 1, 2]


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "import numpy.random",
        "from numpy import random",
        "from random import gauss",
        "from numpy.random import default_rng",
        "import numpy as np\nx = np.random.default_rng()",
        "import torch\ntorch.manual_seed(1)",
    ],
)
def test_other_generators_in_the_release_path_are_found(line: str, tmp_path: Path) -> None:
    (tmp_path / "mechanisms").mkdir()
    (tmp_path / "mechanisms" / "sound.py").write_text("from .noise import samplers\nrandom = 3\n")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "beside.py").write_text("import random\n")
    assert list(forked.generators(tmp_path)) == []
    (tmp_path / "mechanisms" / "leaky.py").write_text(line + "\n")
    assert list(forked.generators(tmp_path))
    assert forked.attack(children=1, spawned=0, package=tmp_path).broken


def test_what_is_no_attack_cannot_be_run() -> None:
    with pytest.raises(CouldNotRunError, match="no attack 'F99'"):
        attacks.attack("F99")


def test_every_attack_has_its_planted_bug() -> None:
    assert attacks.ATTACKS.keys() == attacks.CONTROLS.keys() >= {"F1", "F2", "F4", "F5", "V1", "V2", "V3"}


# How often: false alarms and misses.


@pytest.mark.slow
def test_mutants_are_caught_in_99_of_100_runs() -> None:
    caught = dict.fromkeys(("F1", "F2", "F4", "F5"), 0)
    for _ in range(100):
        for target in targets.TEXTBOOK:
            caught["F1"] += float_bits.attack([target], sensitivities=(1.0,)).broken
            caught["F2"] += precision.attack([target]).broken
        caught["F4"] += timing.attack({"loop": timing.looping_geometric}, draws=200).broken
        caught["F5"] += forked.attack(forked.copied(), children=2, spawned=0).broken
    assert caught["F1"] >= 198 and caught["F2"] >= 198 and caught["F4"] >= 99 and caught["F5"] >= 99


@pytest.mark.slow
def test_the_library_is_never_called_broken_in_many_runs(sure: None) -> None:
    for _ in range(30):
        assert not attacks.attack("F1", quick=True).broken
        assert not attacks.attack("F2").broken
    assert not any(attacks.attack(each).broken for each in ("F1", "F4"))


def test_f1_bounds_hold_on_laws_that_are_known() -> None:
    """Two lattices with exactly e as the ratio of their likeliest events: the epsilon shown stays below 1."""
    bits = SeededBits(10)
    noise = Noise(bits)
    law = RoundedLaplace(exact.float_above(Fraction(2**10)))
    for _ in range(5):
        zero, one = (grid.to_float(noise.draw(law, 200_000) + shift, -10) for shift in (0, 2**10))
        shown = float_bits.most_telling(zero, one, 1.0, delta=0.0, alpha=1e-6)
        assert 0.7 < shown.epsilon < 1
        assert float_bits.most_telling(zero, zero, 1.0, delta=0.0, alpha=1e-6).epsilon == 0


def test_verdicts_print_their_figures() -> None:
    text = str(Verdict("F1", True, "Broken thus.", {"epsilon at least": 3.5}))
    assert text.startswith("F1: BROKEN. Broken thus.") and "epsilon at least: 3.5" in text
    assert "withstood" in str(Verdict("F2", False, "Fine."))
