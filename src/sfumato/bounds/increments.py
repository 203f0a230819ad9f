"""How many rows each step adds to a running count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, schema
from ..grid import Integers
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Counting, Floats, Sensitivity, Vector

_MOST = 2**20


@record("increments/1")
@dataclass(frozen=True, kw_only=True)
class Increments(Counting):
    """Rows per step 0, 1, ..., horizon - 1 of a whole-number column (a real one is rounded down); rows of other steps
    do not count.

    Of a unit's rows in the order of their steps, the first `per_unit` count. With a `separation`, a unit counts once in
    a step, and then not before so many steps have passed, and `per_unit` times in all. So what counts at a step never
    depends on rows of later steps, nor on other units.
    """

    column: str
    horizon: int
    separation: int | None = field(default=None, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.label(self.column, "column")
        object.__setattr__(self, "horizon", checks.whole(self.horizon, "horizon", most=_MOST))
        if self.separation is not None:
            if self.unit.column is None:
                raise checks.refuse("separation", self.separation, "None where each row is its own unit")
            apart = checks.whole(self.separation, "separation", most=self.horizon)
            object.__setattr__(self, "separation", apart)

    @property
    def times(self) -> int:
        """How many rows of a unit count at most."""
        return self.per_unit if self.separation is None else min(self.per_unit, -(-self.horizon // self.separation))

    @property
    def sensitivity(self) -> Sensitivity:
        k, two = Fraction(self.times), 2 if self.unit.change == "replace" else 1
        at_once = k if self.separation is None else Fraction(1)
        return Sensitivity(two * k, two * k * at_once, at_once)

    @property
    def exclusive(self) -> bool:
        return True

    @property
    def columns(self) -> Mapping[str, Column]:
        return {self.column: schema.whole(0, max(self.horizon - 1, 1))}

    @property
    def size(self) -> int:
        return self.horizon

    @property
    def names(self) -> tuple[Any, ...]:
        return tuple(range(self.horizon))

    def steps(self, rows: Rows, exponent: int) -> Vector:
        when = self.placed(rows)
        if rows.unit.column is None:
            counted = np.bincount(when, minlength=self.horizon)[: self.horizon]
        else:
            here = when < self.horizon
            pairs, weight = np.unique(rows.units[here] * np.int64(self.horizon) + when[here], return_counts=True)
            weights = self._kept(pairs, weight)
            # Whole numbers that add up to less than 2^53: exact in floats.
            counted = np.bincount(pairs % self.horizon, weights=weights, minlength=self.horizon)
        return counted.astype(np.int64) << -exponent

    def placed(self, rows: Rows) -> Integers:
        """Each row's step; `horizon` for rows that have none of those that count."""
        series = rows[self.column]
        values = series.values
        if values.dtype.kind == "f":
            values = np.where((values >= 0) & (values < self.horizon), values, self.horizon).astype(np.int64)
        if not series.valid.all():
            values = np.where(series.valid, values, self.horizon)
        column = rows.table.column(self.column)
        inside = column.of_kind.is_whole and column.interval[0] >= 0 and column.interval[1] < self.horizon
        if inside and series.valid.all():
            return values  # the schema allows no other numbers
        # A negative number is a huge one without its sign.
        return np.minimum(values.view(np.uint64), np.uint64(self.horizon)).view(np.int64)

    def _kept(self, pairs: Integers, weight: Integers) -> Integers:
        """How many of a unit's `weight` rows in a step count; a pair is unit * horizon + step, rising."""
        if not pairs.size:
            return weight
        owner = pairs // self.horizon
        first = np.append(True, owner[1:] != owner[:-1])
        if self.separation is None:
            before = np.cumsum(weight) - weight
            before -= np.maximum.accumulate(np.where(first, before, 0))  # rows of the unit in earlier steps
            return np.clip(self.per_unit - before, 0, weight)
        # From a pair that counts, the next one is the unit's first at least `separation` later.
        following = np.searchsorted(pairs, pairs + self.separation)
        weights, here = np.zeros(pairs.size, dtype=np.int64), np.flatnonzero(first)
        for _ in range(self.times):
            weights[here] = 1
            ahead = following[here]
            here, ahead = here[ahead < pairs.size], ahead[ahead < pairs.size]
            here = ahead[owner[ahead] == owner[here]]
            if not here.size:
                break
        return weights

    def finish(self, noisy: Floats) -> dict[Any, float]:
        return dict(enumerate(noisy.tolist()))

    def error(self, noisy: Floats, width: float) -> dict[Any, float]:
        return dict.fromkeys(range(self.horizon), width)


class Tally:
    """The same, one step after the other, on data that changes in between: counts the rows of one step as they are now,
    and remembers for how much each unit has counted. Rows that come late, go, or change do not undo the limits, as
    what counted is remembered under the unit's own key."""

    def __init__(self, query: Increments) -> None:
        self._query = query
        self._counted: dict[Any, int] = {}
        self._last: dict[Any, int] = {}

    def count(self, rows: Rows, step: int) -> int:
        """How many rows count at the step."""
        query = self._query
        here = query.placed(rows) == step
        if query.unit.column is None:
            return int(here.sum())
        names = rows[query.unit.column]
        codes, weight = np.unique(names.values[here], return_counts=True)
        units = codes.tolist() if names.keys is None else names.label(codes)
        room = query.times - np.array([self._counted.get(unit, 0) for unit in units], dtype=np.int64)
        if query.separation is not None:
            early = np.array([step - self._last.get(unit, -query.separation) < query.separation for unit in units])
            room = np.where(early, 0, np.minimum(room, 1)) if units else room
        taken = np.clip(room, 0, weight)
        for unit, rows_kept in zip(units, taken.tolist(), strict=True):
            if rows_kept:
                self._counted[unit] = self._counted.get(unit, 0) + rows_kept
                self._last[unit] = step
        return int(taken.sum())
