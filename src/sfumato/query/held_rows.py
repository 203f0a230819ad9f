"""Single rows: every number of them held at its own reach.

Where every unit has one row at most there are no weights: each number x_j of the row is held at its reach R_j. With
shares s_j that add up to 1, sum s_j (t_j / R_j)^2 <= 1 then, and sum s_j |t_j| / R_j <= 1: the bound that weights keep
(blur.py). And no number pays for the size of another: a count counts everybody, whatever a sum beside it cuts, and an
average divides by all whom it is taken of. In any one of several groups the row is all there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .measures import LARGEST_SUM, Coordinate

_MANY_STEPS = 2**10


@dataclass(frozen=True)
class HeldRows:
    """What the rows add to each coordinate, in steps of 2^-bits of the rows' own."""

    coordinates: Sequence[Coordinate]
    bits: int

    def total(self, i: int) -> str:
        """Over the rows of a group."""
        full, most = 1 << self.bits, self._most(i)
        if self.coordinates[i].measure.row is None:
            return f"{min(full, most)} * CAST(count(*) AS INT128)"
        if most % full:
            return f"coalesce(exact_sum({clamped(self._row(i), most)}), 0)"
        row = clamped(f"coalesce(q{i}, 0)", most // full)
        return f"{full} * CAST(coalesce(exact_sum({row}), 0) AS INT128)"

    def lost(self, i: int) -> str:
        """What holding it takes from one row."""
        return f"{self._row(i)} - {clamped(self._row(i), self._most(i))}"

    def _row(self, i: int) -> str:
        row = "1" if self.coordinates[i].measure.row is None else f"coalesce(q{i}, 0)"
        return f"{1 << self.bits} * CAST({row} AS INT128)"

    def _most(self, i: int) -> int:
        """The reach, rounded down: to whole steps of the rows, where that loses next to nothing."""
        number, full = self.coordinates[i], 1 << self.bits
        reach = min(number.reach / Fraction(2) ** number.exponent, Fraction(LARGEST_SUM))
        whole = math.floor(reach)
        plain = number.measure.row is not None and (whole >= _MANY_STEPS or whole >= max(map(abs, number.ends)))
        return whole * full if plain else math.floor(reach * full)


def clamped(number: str, most: int) -> str:
    """A number, held between -most and most."""
    return f"greatest_present(least_present({number}, {most}), {-most})"
