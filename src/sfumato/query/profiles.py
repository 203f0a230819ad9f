"""How much units hold: noisy histograms of the lengths of their vectors.

Every unit falls into one bin of each histogram, so these are cheap: one unit moves one count in each by 1. A bin is
half an octave wide, and a unit's bin is computed from its own exact integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import exact, grid
from ..noise import Noise
from . import running
from .blur import Blur
from .bounding import profile
from .front import Front
from .integers import wholes
from .kinds import Kind, Typed
from .measures import Coordinate, Measure

if TYPE_CHECKING:
    from ..sources import Connection

Floats = NDArray[np.float64]

_BINS = 176  # half octaves: lengths up to 2^88 steps
_CLEAR = 5.7e-7  # the chance of noise alone, at 5 standard deviations of a Gaussian: a false heavy bin counts for a lot
_LIKELY = 1.5
_FINE = 20
_BITS = 8
_WHOLE = Kind("whole")
_BEYOND = 12  # bins that a tail is drawn on over


@dataclass(frozen=True)
class Profile:
    """How many units have a length in each bin: the middles of the bins, and noisy counts, tidied."""

    middles: Floats
    counts: Floats

    @property
    def total(self) -> float:
        return float(self.counts @ self.middles)

    @property
    def largest(self) -> float:
        """The end of the last bin that has units."""
        some = np.flatnonzero(self.counts > 0)
        return float(self.middles[some[-1]]) * 2**0.25 if some.size else 1.0

    def above(self, length: float) -> float:
        """How many units are longer; within a bin, in proportion to logarithms."""
        part = np.clip(np.log2(self.middles / length) * 2 + 0.5, 0.0, 1.0)
        return float(self.counts @ part)

    def length(self, units: float) -> float:
        """The length that so many units exceed."""
        ends = np.append(self.middles / 2**0.25, self.middles[-1] * 2**0.25)
        over = np.append(np.cumsum(self.counts[::-1])[::-1], 0.0)  # units above each end
        place = int(np.flatnonzero(over >= units)[-1]) if over[0] >= units else 0
        inside = self.counts[place] if place < self.counts.size else 0.0
        part = (over[place] - units) / inside if inside > 0 else 0.0
        return float(ends[place] * 2 ** (min(max(part, 0.0), 1.0) / 2))

    def beyond(self, limit: float) -> float:
        """The share of the total that is lost where every unit is held to the limit."""
        return float(self.counts @ np.maximum(self.middles - limit, 0.0)) / max(self.total, 1e-300)

    def lost(self, limit: float, masses: Profile, power: float = 1.0) -> float:
        """The share of all masses that a limit on lengths takes away, if the longest are the most massive; `power` 1/2
        where weights are roots."""
        ends, length, mass = paired(self, masses)
        units = np.diff(ends, prepend=0.0)
        total = float(units @ mass)
        kept = np.minimum(1.0, limit / length) ** power
        return 0.0 if total <= 0 else float(units @ (mass * (1 - kept))) / total


def paired(one: Profile, two: Profile) -> tuple[Floats, Floats, Floats]:
    """Both from the heaviest unit down: at which numbers of units either changes, and what both are up to there."""
    found = []
    for each in (one, two):
        some = np.flatnonzero(each.counts > 0)[::-1]
        found.append((np.cumsum(each.counts[some]), each.middles[some]))
    (ends, lengths), (its, masses) = found
    if not ends.size or not its.size:
        return np.zeros(1), np.ones(1), np.zeros(1)
    every = np.union1d(ends, its)
    every = every[every <= min(ends[-1], its[-1])]
    return every, lengths[np.searchsorted(ends, every)], masses[np.searchsorted(its, every)]


def profiles(
    front: Front,
    blur: Blur,
    connection: Connection,
    noise: Noise,
    measures: tuple[Measure, ...],
    share: Fraction,
    groups: running.Groups | None = None,
) -> list[Profile]:
    """The lengths of units' vectors of each measure, and what they hold of the first in sum; without measures, in how
    many groups they are. For this share of the budget."""
    many = len(measures) + 1
    bar = bar_of(blur, many, share)
    fine = [_quantum(each) for each in measures]
    columns = {f"q{i}": Typed(tree, _WHOLE) for i, (tree, _) in enumerate(fine) if tree is not None}
    rows = running.of_groups(front, front.rows(columns), groups)
    counts = [tree is None for tree, _ in fine]
    table = connection.run(profile(rows, keys=len(front.keys), counts=counts, squares=blur.kind == "gaussian"))
    law, step = blur.law(bar.steps), 2.0**-bar.bits
    which, bins, units = (wholes(table, i) for i in range(3))
    found, clear = [], law.half_width(_CLEAR) * step
    for i in range(many):
        counted = np.zeros(_BINS, dtype=np.int64)
        mine = (which == i) & (bins >= 0) & (bins < _BINS)
        np.add.at(counted, bins[mine], units[mine] << bar.bits)
        noisy = np.asarray((counted + noise.draw(law, _BINS)) * step, dtype=np.float64)
        size = 2.0 ** (fine[i % len(measures)][1] if measures else 0)  # the last is of the first measure again
        tidied = _tidied(noisy, law.std * step, clear)
        found.append(Profile(2.0 ** ((np.arange(_BINS) + 0.5) / 2) * size, tidied))
    return found


def bar_of(blur: Blur, many: int, share: Fraction) -> Coordinate:
    """One bar of so many histograms for this share: a unit moves one in each."""
    reach = Fraction(many) if blur.kind == "laplace" else Fraction(exact.sqrt_above(Fraction(many)))
    scale = blur.scale(reach, share)
    return Coordinate(running.ROWS, reach, share, scale, min(_BITS, max(34 - grid.floor_log2(scale), 0)))


def _quantum(measure: Measure) -> tuple[Any, int]:
    """A measure's rows in steps fine enough to tell lengths, and the exponent of a step."""
    coordinate = Coordinate(measure, measure.largest, Fraction(1), measure.largest * 2 ** (34 - _BITS - _FINE), _BITS)
    return coordinate.quantum(), coordinate.exponent


def _tidied(noisy: Floats, std: float, least: float) -> Floats:
    """Counts without what noise may have made alone. Beyond the last bin that stands out, counts go on falling as they
    did before it: few units, that noise hides, often hold much."""
    clear = np.flatnonzero(noisy > least)
    if not clear.size:
        return np.zeros_like(noisy)
    last = int(clear[-1])
    kept = np.where(noisy > _LIKELY * std, noisy, 0.0)
    kept[last + 1 :] = 0.0
    before = noisy[last - 1] if last >= 1 and noisy[last - 1] > noisy[last] else noisy[last] ** 2 / (0.5 * std)
    after = noisy[last + 1] if last + 1 < noisy.size else 0.0
    fall = min(math.sqrt(max(after, 0.5 * std) / before), 0.75)
    for place in range(last + 1, min(last + 1 + _BEYOND, noisy.size)):
        kept[place] = min(kept[place - 1] * fall, least)
        if kept[place] < 0.5:
            kept[place] = 0.0
            break
    return kept
