"""F4, the time of a draw: Jin, McMurtry, Rubinstein, Ohrimenko, "Are we there yet? Timing and floating-point attacks on
differential privacy systems" (IEEE S&P 2022).

Samplers of discrete noise that loop (geometric trials, rejection) take longer for larger noise; who can time a release
learns the size of the noise and takes it off. What can be checked exactly is the cause: the number of random words that
a draw takes must not depend on the value drawn. It is checked
    on a lattice of words, from one end of the uniform to the other: every one takes the same number of words; and
    on secure random draws: those that took more words are as often small as large.
The time itself is reported (mean over the quarter of largest |noise| by that of the smallest, slowest 1 % dropped) and
never judged: on a shared machine it is mostly other people's.

What remains, and is not hidden here: a draw so deep in the tail (the last 2^-19 of the mass) that it is settled by
certified arithmetic takes a second word and a thousand times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato import bounds, laws
from sfumato.audit import surface
from sfumato.mechanisms.laplace import Laplace
from sfumato.noise import Bits, Noise, SecureBits, SeededBits
from sfumato.noise.bits import Words
from sfumato.rows import Rows
from sfumato.schema import Table, real
from sfumato.units import Unit

from .verdict import FALSE_ALARM, Verdict

Sampler = Callable[[Bits], int]
"""Draws once and returns the noise (what an observer of the time would like to know)."""

DRAWS = 20_000
_LATTICE = 1024
REPORTED_RATIO = 1.05  # above this the promise page names the channel


class CountedBits:
    """A source that counts its words; the first one can be given."""

    def __init__(self, source: Bits, first: int | None = None) -> None:
        self.grade = source.grade
        self.taken = 0
        self._source, self._first = source, first

    def words(self, count: int) -> Words:
        out = self._source.words(count)
        if self._first is not None and self.taken == 0 and count:
            out[0] = self._first
        self.taken += count
        return out


def library() -> dict[str, Sampler]:
    """Every law at a scale of each path, a selection, and a whole release of a count."""

    def drawn(law: laws.Law) -> Sampler:
        return lambda bits: int(Noise(bits).draw(law, 1)[0])

    rows = Rows.read(Table({"x": real(0, 1)}), {"x": [0.5] * 100}, Unit())
    plan = Laplace(query=bounds.count(Unit()), epsilon=Fraction(1))
    kinds = (laws.RoundedLaplace, laws.RoundedGaussian, laws.DiscreteLaplace, laws.DiscreteGaussian, laws.Geometric)
    samplers = {f"{kind.__name__}({scale:g})": drawn(kind(scale)) for kind in kinds for scale in (20.0, 1e6)}
    samplers["selection among 4"] = lambda bits: Noise(bits).select([0.0, 0.3, -0.2, 1.0])
    step = 2.0**plan.exponent
    samplers["release of a count"] = lambda bits: round((surface.run(plan, rows, Noise(bits))[0] - 100) / step)
    return samplers


def looping_geometric(bits: Bits) -> int:
    """The planted bug: heads in a row, one word per throw. Exact, and as slow as the noise is large."""
    k = 0
    while int(bits.words(1)[0]) < int(0.95 * 2**64):
        k += 1
    return k


@dataclass(frozen=True)
class Timed:
    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    ratio: float


def attack(samplers: Mapping[str, Sampler] | None = None, *, draws: int = DRAWS) -> Verdict:
    figures: dict[str, float] = {}
    broken = []
    samplers = library() if samplers is None else samplers
    for name, sampler in samplers.items():
        steps = set(_on_lattice(sampler))
        timed = _on_chance(sampler, draws)
        chance = independence(timed.counts, timed.sizes)
        figures[f"{name}: word counts on the lattice"] = len(steps)
        figures[f"{name}: p-value that more words and |noise| are independent"] = chance
        figures[f"{name}: time, largest quarter by smallest"] = timed.ratio
        if len(steps) > 1:
            broken.append(f"{name} takes from {min(steps)} to {max(steps)} words")
        elif chance < FALSE_ALARM / len(samplers):
            broken.append(f"{name} takes more words where the noise is large or small (p = {chance:.3g})")
    slow = [name for name, value in figures.items() if "time" in name and value > REPORTED_RATIO]
    text = (
        f"The number of words depends on the value: {broken[0]}."
        if broken
        else f"All {len(samplers)} samplers take the same number of words whatever the value. "
        + (f"Times above {REPORTED_RATIO:g} are to be named in the promise: {len(slow)}." if slow else "")
    )
    return Verdict("F4", bool(broken), text.strip(), figures)


def _on_lattice(sampler: Sampler) -> list[int]:
    """Words taken for evenly spread first words; what follows them is always the same."""
    taken = []
    for j in range(_LATTICE):
        bits = CountedBits(SeededBits(4), first=(2 * j + 1) << 53)
        sampler(bits)
        taken.append(bits.taken)
    return taken


def _on_chance(sampler: Sampler, draws: int) -> Timed:
    source = SecureBits()
    counts, sizes, times = np.zeros(draws, np.int64), np.zeros(draws, np.int64), np.zeros(draws, np.int64)
    for i in range(draws):
        bits = CountedBits(source)
        start = time.perf_counter_ns()
        sizes[i] = abs(sampler(bits))
        times[i] = time.perf_counter_ns() - start
        counts[i] = bits.taken
    usual = np.sort(np.argsort(times)[: max(8, draws * 99 // 100)])  # in the order drawn, where sizes are equal
    by_size = usual[np.argsort(sizes[usual], kind="stable")]
    quarter = usual.size // 4
    return Timed(counts, sizes, float(times[by_size[-quarter:]].mean() / times[by_size[:quarter]].mean()))


def independence(counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Exact and two-sided: given how many draws took more words than the least, do they fall on large and small values
    as all draws do?"""
    more = counts > counts.min()
    large = sizes > np.median(sizes)
    among, both, total = int(large.sum()), int((more & large).sum()), int(more.sum())
    if total in (0, counts.size) or among in (0, counts.size):
        return 1.0
    share = among / counts.size
    upper = float(special.bdtrc(both - 1, total, share)) if both else 1.0
    lower = float(special.bdtr(both, total, share))
    return min(1.0, 2 * min(upper, lower))
