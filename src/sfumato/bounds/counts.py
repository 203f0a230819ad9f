"""How many rows there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Counting, Sensitivity, Vector
from .gather import whole_vector


@record("count/1")
@dataclass(frozen=True, kw_only=True)
class Count(Counting):
    """How many rows there are (of a unit's rows, at most `per_unit` count)."""

    @property
    def sensitivity(self) -> Sensitivity:
        k = Fraction(self.per_unit)
        return Sensitivity(k, k * k, k)

    @property
    def columns(self) -> Mapping[str, Column]:
        return {}

    @property
    def names(self) -> tuple[str]:
        return ("count",)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        counted = np.minimum(np.bincount(rows.units, minlength=rows.unit_count), self.per_unit)
        return whole_vector([int(counted.sum()) << -exponent])
