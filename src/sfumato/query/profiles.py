"""How much units hold: noisy histograms of the sizes of their vectors.

Every unit falls into one bin of each histogram, so these are cheap: one unit moves one count in each by 1. A bin is
half an octave wide, and a unit's bin is computed from its own exact integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from .. import grid
from ..noise import Noise
from . import running
from .blur import Blur
from .integers import wholes
from .kinds import Kind, Typed
from .measures import ROWS, Coordinate, Measure
from .size_statements import pair_profile, profile, value_profile
from .tails import CLEAR, Tail, fitted
from .unit_sums import BITS, UnitSums

if TYPE_CHECKING:
    from ..sources import Connection
    from .front import Front

Floats = NDArray[np.float64]

BINS = 176
"""Half octaves: sizes up to 2^88 steps."""
_WHOLE = Kind("whole")


@dataclass(frozen=True, eq=False)
class Histogram:
    """Noisy numbers of units by size: bin k holds sizes from 2^(k/2) to 2^((k+1)/2) steps of this size. `power`: sizes
    are whole numbers (1), or roots of whole numbers (2). `clear`: what noise alone hardly ever reaches."""

    counts: Floats
    std: float
    clear: float
    step: float = 1.0
    power: int | None = None

    @property
    def middles(self) -> Floats:
        """What a unit of each bin holds, about: the middle of the bin, or of the whole numbers in it."""
        if self.power is None:
            return np.asarray(2.0 ** ((np.arange(BINS) + 0.5) / 2) * self.step)
        first, last = self._wholes
        return np.asarray(np.where(first <= last, (first + last) / 2, first) ** (1 / self.power) * self.step)

    @property
    def _wholes(self) -> tuple[Floats, Floats]:
        """The first and last whole number (or square) of each bin; there may be none between."""
        ends = np.ceil(2.0 ** (np.arange(BINS + 1) * ((self.power or 1) / 2)) * (1 - 1e-12))
        return ends[:-1], ends[1:] - 1

    def end(self, place: int) -> float:
        """Where a bin ends."""
        return float(2.0 ** ((place + 1) / 2) * self.step)

    def longest(self, place: int) -> float:
        """The largest size of a bin."""
        if self.power is None:
            return self.end(place)
        return float(max(self._wholes[1][place], 1.0) ** (1 / self.power))

    def tail(self, lengths: Floats | None = None, masses: Floats | None = None, most: float = np.inf) -> Tail | None:
        """Curves through it; sizes are lengths, and masses too, unless these say otherwise."""
        own = self.middles
        possible = (
            own <= most if self.power is None else (self._wholes[0] <= self._wholes[1]) & (self._wholes[0] <= most)
        )
        both = (own if lengths is None else lengths), (own if masses is None else masses)
        return fitted(self.counts, self.std, *both, possible, clear=self.clear)


def profiles(
    front: Front,
    blur: Blur,
    connection: Connection,
    noise: Noise,
    pairs: UnitSums,
    measures: tuple[Measure, ...],
    share: Fraction,
    groups: running.Groups | None = None,
    *,
    masses: bool = False,
) -> list[Histogram]:
    """The lengths of units' vectors of each measure, and where `masses` are asked for, what they hold of the first in
    sum. Each for this share of the budget."""
    statement = sizes_statement(front, blur, pairs, measures, groups, masses=masses)
    counts, steps = [each.row is None for each in measures], [2.0 ** pairs.place(each)[1] for each in measures]
    rooted = 2 if blur.kind == "gaussian" and front.keys else 1
    powers = [rooted if alone else None for alone in counts] + [1 if counts[0] else None] * masses
    return _histograms(blur, connection, noise, statement, share, [*steps, *steps[:masses]], powers)


def sizes_statement(
    front: Front, blur: Blur, pairs: UnitSums, measures: tuple[Measure, ...], groups: running.Groups | None = None,
    *, masses: bool,
) -> exp.Query:  # fmt: skip
    """What the engine is asked for them."""
    rows = running.of_groups(front, pairs.rows, groups)
    sums = [pairs.place(each)[0] for each in measures]
    return profile(rows, sums=sums, squares=blur.kind == "gaussian", masses=masses)


def groups_profile(blur: Blur, connection: Connection, noise: Noise, pairs: UnitSums, share: Fraction) -> Histogram:
    """In how many groups units are."""
    return _histograms(blur, connection, noise, pair_profile(pairs.rows), share, [1.0], [1])[0]


def values_profile(
    front: Front, blur: Blur, connection: Connection, noise: Noise, value: exp.Expression, share: Fraction,
    groups: running.Groups,
) -> Histogram:  # fmt: skip
    """How many different values units bring, over all groups."""
    rows = running.of_groups(front, front.rows({"x": Typed(value, _WHOLE)}), groups)
    statement = value_profile(rows, keys=len(front.keys))
    return _histograms(blur, connection, noise, statement, share, [1.0], [1])[0]


def _histograms(
    blur: Blur,
    connection: Connection,
    noise: Noise,
    statement: exp.Query,
    share: Fraction,
    steps: list[float],
    powers: Sequence[int | None],
) -> list[Histogram]:
    bar = bar_of(blur, share)
    law, size = blur.law(bar.steps), 2.0**-bar.bits
    clear = law.half_width(2 * CLEAR) * size
    which, bins, units = (wholes(table, i) for table in [connection.run(statement)] for i in range(3))
    histograms = []
    for i, (step, power) in enumerate(zip(steps, powers, strict=True)):
        counted = np.zeros(BINS, dtype=np.int64)
        mine = (which == i) & (bins >= 0) & (bins < BINS)
        np.add.at(counted, bins[mine], units[mine] << bar.bits)
        noisy = np.asarray((counted + noise.draw(law, BINS)) * size, dtype=np.float64)
        histograms.append(Histogram(noisy, law.std * size, clear, step, power))
    return histograms


def bar_of(blur: Blur, share: Fraction) -> Coordinate:
    """One bar of a histogram for this share: a unit moves one of them by 1."""
    scale = blur.scale(Fraction(1), share)
    return Coordinate(ROWS, Fraction(1), share, scale, min(BITS, max(34 - grid.floor_log2(scale), 0)))
