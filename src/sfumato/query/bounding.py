"""The statement that the engine runs: exact integer sums per group, in which no unit counts for more than its limits.

Rows are whole numbers of steps. For every unit and group they are added up (`_pairs`), for every unit the norm of these
sums is taken (`_units`), from it comes the unit's weight (`_weights`), a whole number of 2^-bits, and the groups add up
weight times sum. Nothing but integers is ever added, so no order of rows or threads shows.

Why a weighted unit keeps within its limits: its sums s_j (in steps) count for t_j = ceil(|s_j| A_j / 2^h_j), where
A_j / 2^h_j is at least what a step of j counts for, in units where the limit is 2^20. Q = sum t_j^2 (Laplace: sum t_j)
is exact; weight = floor(2^bits * 2^20 / sqrt(Q)), computed in floats on the low side: weight * norm <= 2^bits * limit.
t_j is held at 2^30 - 1, s_j at 2^42 steps: a unit that reaches either has weight 0, whatever it holds beyond.

Where several statements need the sums of a unit and a group (the adviser's), these are added up once and kept, on a
grid that is known before any noise is drawn (`added_up`), and s_j is read of that: rounded to the steps of its own
statement (`_read`). It is a whole number made of the unit's own rows as before, and that is all that the above needs.

Where every unit has one row at most, its numbers are held at their reaches instead (held_rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from .. import grid
from ..errors import ArgumentError
from .blur import Blur
from .held_rows import HeldRows, clamped
from .measures import LARGEST_SUM, Coordinate
from .relation import UNIT
from .statement_texts import filled, pair, with_steps

ROOM = 1 + Fraction(1, 2**14)
"""Reaches are made longer by this much, and noise with them: what a unit counts for is rounded up, and one that is
just at its limit should still count in full. (Or it would count for 1 - 2^-12 of it, which adds up over many units.)"""
_LIMIT = 2**20  # the norm that a unit's limit is written as
_TOP = 2**30 - 1  # no unit's part counts for more: then its weight is 0
_TOGETHER = 8
_PACKED, _PACKED_WIDTH = 2**40, 2**24
_KEPT = 2**62
COUNT = "n"
"""The column of `added_up` that counts rows."""
_FACTOR_BITS = 20  # times a sum of 42 bits this fits BIGINT


@dataclass(frozen=True)
class Votes:
    """Every unit counts for one in each of its groups, or for less in each where it has many."""

    coordinate: Coordinate
    most_keys: int | None  # None where keys are given: everybody has a say

    def weight(self, groups: int, blur: Blur) -> int:
        """Of a unit with so many groups, as the engine computes it."""
        if self.most_keys is not None and groups > self.most_keys:
            return 0
        full, reach = 1 << self.coordinate.bits, self.coordinate.reach
        if blur.kind == "laplace":
            return min(full, math.floor(full * reach) // groups)
        return min(full, math.isqrt(math.floor((full * reach) ** 2) // groups))


@dataclass(frozen=True)
class Sums:
    """What one statement computes. `rows` gives UNIT, k0, k1, ... and q0, q1, ... for coordinates that need one.

    units   are there units that may have several rows? Otherwise every row counts in full
    single  has every unit at most one row? Then each number is held at its reach, and nothing is weighted
    leaves  rows also have a `leaf`, and the sums are of weights, by group and leaf
    most    of what is cut from a unit, so much counts at most, for each coordinate
    pairs   `rows` are sums already, one row for each unit and group (see `added_up`): by name of the measure, where
            they stand, and the exponent of their steps
    """

    rows: exp.Query
    keys: int
    coordinates: Sequence[Coordinate]
    votes: Votes | None
    blur: Blur
    units: bool
    single: bool = False
    leaves: bool = False
    most: Sequence[int] = ()
    pairs: Mapping[str, tuple[str, int]] | None = None

    @cached_property
    def statement(self) -> exp.Query:
        """Columns k0, ..., then s0, ... and, last, the votes."""
        text = self._by_single() if self._alone else self._by_unit() if self.units else self._by_row()
        return filled(text, self.rows)

    def check(self) -> None:
        """Refuse limits that no weight can be computed for: needs no rows."""
        if self.units and not self._alone:
            self._norm()

    @property
    def _alone(self) -> bool:
        """Is a unit one row, of numbers that are added up?"""
        return self.units and self.single and not self.leaves

    @property
    def bits(self) -> int:
        return (self.votes.coordinate if self.votes else self.coordinates[0]).bits

    def _names(self) -> tuple[str, str]:
        keys = ", ".join(f"k{i}" for i in range(self.keys))
        known = [f"k{i}" for i in range(self.keys)] + [UNIT] * self.units + ["leaf"] * self.leaves
        there = " AND ".join(f"{name} IS NOT NULL" for name in known)
        return keys, f" WHERE {there}" if there and self.pairs is None else ""

    def _by_row(self) -> str:
        """Each row is a unit of its own, within its limits by its bounds alone: only the grid is made finer."""
        keys, there = self._names()
        full = 1 << self.bits
        if self.leaves:
            by = f"{keys}, leaf" if keys else "leaf"
            return f"SELECT {by}, {full} * CAST(count(*) AS INT128) AS s0 FROM _rows{there} GROUP BY {by}"
        sums = [f"{full} * CAST({self._sum(i)} AS INT128) AS s{i}" for i in range(len(self.coordinates))]
        sums += [f"{full} * CAST(count(*) AS INT128) AS v"] if self.votes else []
        columns = ", ".join([*([keys] if keys else []), *sums])
        return f"SELECT {columns} FROM _rows{there}" + (f" GROUP BY {keys}" if keys else "")

    def _sum(self, i: int) -> str:
        counts = self.coordinates[i].measure.row is None
        return "count(*)" if counts else f"coalesce(exact_sum(q{i}), 0)"

    def _held(self, i: int) -> str:
        """A unit's sum in one group, as a BIGINT that products of it stay within."""
        counts = self.coordinates[i].measure.row is None
        total = self._sum(i) if self.pairs is None else self._read(i, self.pairs)
        return f"least_present({total}, {LARGEST_SUM})" if counts else f"CAST({clamped(total, LARGEST_SUM)} AS BIGINT)"

    def _read(self, i: int, pairs: Mapping[str, tuple[str, int]]) -> str:
        """A sum that was added up before, in steps of this statement: rounded, halves away from 0."""
        coordinate = self.coordinates[i]
        if coordinate.measure.row is None:
            return COUNT
        column, exponent = pairs[coordinate.measure.name]
        coarser = coordinate.exponent - exponent
        if coarser <= 0:  # by 2^60 whatever is not 0 is beyond the largest sum
            return f"CAST({clamped(column, LARGEST_SUM)} AS INT128) * {1 << min(-coarser, 60)}" if coarser else column
        wide, half = (f"CAST({column} AS INT128)" if coarser > 60 else column), 1 << (coarser - 1)
        up = f"({wide} + {half}) // {1 << coarser}"
        if coordinate.measure.lower >= 0:
            return up
        return f"CASE WHEN {column} < 0 THEN -(({half} - {wide}) // {1 << coarser}) ELSE {up} END"

    def _pairs(self, by: str, there: str) -> str:
        """A row for each unit and group, with their sums s0, s1, ..."""
        columns = [self._packed] if self._packed else [f"{self._held(i)} AS s{i}" for i in self._all]
        grouped = "" if self.pairs is not None else f" GROUP BY {by}"
        return f"SELECT {', '.join([by, *columns])} FROM _rows{there}{grouped}"

    @cached_property
    def _packed(self) -> str:
        """A count and one sum added up as one number: (2^40 + q - least q) for each row. What engines do for a pair
        is the most of their work, and it nearly halves. Beyond 2^23 rows of a unit in one group the parts mix: no
        matter, since weights are taken of what is read back, whatever that is."""
        if len(self.coordinates) != 2 or self.pairs is not None:
            return ""
        (count, other) = sorted(range(2), key=lambda i: self.coordinates[i].measure.row is not None)
        if self.coordinates[count].measure.row is not None or self.coordinates[other].measure.row is None:
            return ""
        low, high = self._reach_of_rows(other)
        if self.coordinates[other].measure.nullable or not high - low < _PACKED_WIDTH or abs(low) >= _PACKED_WIDTH:
            return ""
        row = f"{_PACKED} + CAST(q{other} AS BIGINT) - {low}" if low else f"{_PACKED} + q{other}"
        return f"CAST(least_present(exact_sum({row}), {2**63 - 1}) AS BIGINT) AS p"

    def _reach_of_rows(self, i: int) -> tuple[int, int]:
        """What one row may add, in steps; rounding may lead a step out of the bounds."""
        low, high = self.coordinates[i].ends
        return (low - 1 if low else 0), high + 1

    def _s(self, i: int) -> str:
        """A unit's sum in one group, out of `_pairs`."""
        if not self._packed:
            return f"s{i}"
        if self.coordinates[i].measure.row is None:
            return "(p >> 40)"
        low, _ = self._reach_of_rows(i)
        if not low:
            return f"(p & {_PACKED - 1})"
        return clamped(f"(p & {_PACKED - 1}) + {low} * (p >> 40)", LARGEST_SUM)

    def _by_unit(self) -> str:
        keys, there = self._names()
        by = f"{UNIT}, {keys}" if keys else UNIT
        pairs = self._pairs(by, there)
        totals = [f"coalesce(exact_sum(w * {self._s(i)}), 0) AS s{i}" for i in self._all]
        totals += ["coalesce(exact_sum(v), 0) AS v"] if self.votes else []
        chosen = " HAVING exact_sum(v) > 0" if self.votes and self.votes.most_keys is not None else ""
        by_group = f" GROUP BY {keys}{chosen}" if keys else ""
        answer = ", ".join([*([keys] if keys else []), *totals])
        weights = f"SELECT {UNIT}, {self._weights()} FROM _units"
        if self.leaves:
            cells = f"SELECT {by}, leaf, count(*) AS c FROM _rows{there} GROUP BY {by}, leaf"
            rows = f"CAST(least_present(exact_sum(c), {LARGEST_SUM}) AS BIGINT)"
            pairs = f"SELECT {by}, {rows} AS s0 FROM _cells GROUP BY {by}"
            units = f"SELECT {UNIT}, {self._norm()} AS norm FROM _pairs GROUP BY {UNIT}"
            steps = {"_cells": cells, "_pairs": pairs, "_units": units, "_weights": weights}
            place = f"{keys}, leaf" if keys else "leaf"
            joined = f"FROM _cells JOIN _weights USING ({UNIT}) GROUP BY {place}"
            return f"{with_steps(steps)} SELECT {place}, exact_sum(w * c) AS s0 {joined}"
        if not keys:  # a unit has one pair, so that its norm needs no others
            units = f"SELECT *, {self._norm(alone=True)} AS norm, 1 AS t FROM _pairs"
            weighted = f"SELECT *, {self._weights()} FROM _units"
            steps = {"_pairs": pairs, "_units": units, "_weighted": weighted}
            return f"{with_steps(steps)} SELECT {answer} FROM _weighted{by_group}"
        units = f"SELECT {UNIT}, count(*) AS t, {self._norm()} AS norm FROM _pairs GROUP BY {UNIT}"
        steps = {"_pairs": pairs, "_units": units, "_weights": weights}
        return f"{with_steps(steps)} SELECT {answer} FROM _pairs JOIN _weights USING ({UNIT}){by_group}"

    def _by_single(self) -> str:
        """A unit's row is all that it has: its numbers, held at their reaches, are added up as they are."""
        (keys, there), rows = self._names(), HeldRows(self.coordinates, self.bits)
        columns = [*([keys] if keys else []), *(f"{rows.total(i)} AS s{i}" for i in self._all)]
        columns += [f"{self.votes.weight(1, self.blur)} * CAST(count(*) AS INT128) AS v"] if self.votes else []
        return f"SELECT {', '.join(columns)} FROM _rows{there}" + (f" GROUP BY {keys}" if keys else "")

    @property
    def _all(self) -> range:
        return range(len(self.coordinates))

    def _norm(self, *, alone: bool = False) -> str:
        """Q of a unit, exactly. Eight squares of 30 bits fit a BIGINT; sums of those are as wide as they need to be."""
        total = sum((each.share for each in self.coordinates), Fraction(0))
        parts = []
        for i, each in enumerate(self.coordinates):
            factor, shift = self._factor(each, each.share / total)
            size = self._s(i) if each.measure.row is None else f"abs({self._s(i)})"
            part = f"least_present(({size} * {factor} + {(1 << shift) - 1}) >> {shift}, {_TOP})"
            parts.append(f"{part} * {part}" if self.blur.kind == "gaussian" else part)
        terms = [" + ".join(parts[at : at + _TOGETHER]) for at in range(0, len(parts), _TOGETHER)]
        wide = [f"CAST({term} AS INT128)" if alone and len(terms) > 1 else term for term in terms]
        return " + ".join(wide if alone else [f"exact_sum({term})" for term in terms]) or "0"

    def _factor(self, coordinate: Coordinate, share: Fraction) -> tuple[int, int]:
        """(A, h) with A / 2^h at least what one step counts for, where the limit is 2^20."""
        step = Fraction(2) ** coordinate.exponent
        exact = self.blur.pull(coordinate.reach, share) * step * _LIMIT
        shift = _FACTOR_BITS - 1 - grid.floor_log2(exact)
        factor = math.ceil(exact * Fraction(2) ** shift)
        if factor * LARGEST_SUM < _TOP << max(shift, 0) or shift > 60:
            raise ArgumentError(
                "the noise would be too small for the limits: give smaller limits, or a smaller epsilon."
            )
        if shift < 0:
            factor, shift = math.ceil(exact), 0
            if factor * LARGEST_SUM >= 2**63:
                raise ArgumentError("a limit is too small beside what one row holds: give a larger one.")
        return factor, shift

    def _weights(self) -> str:
        columns = []
        full = 1 << self.bits
        if self.coordinates:
            columns.append(f"{self._weight(full)} AS w")
        if self.votes:
            columns.append(f"{vote(self.votes, self.blur)} AS v")
        return ", ".join(columns)

    def _weight(self, full: int) -> str:
        if self.blur.kind == "laplace":
            part = f"CAST({full * _LIMIT} // norm AS BIGINT)"
            return f"CASE WHEN norm <= {_LIMIT} THEN {full} WHEN norm >= {_TOP} THEN 0 ELSE {part} END"
        # The root and the quotient of doubles are off by less than 2^-50; 2^-40 less is on the safe side.
        safe = repr(full * _LIMIT * (1 - 2.0**-40))
        return (
            f"CASE WHEN norm <= {_LIMIT**2} THEN {full} WHEN norm >= {_TOP**2} THEN 0 "
            f"ELSE nearest(floor(CAST('{safe}' AS DOUBLE) / sqrt(CAST(norm AS DOUBLE))), BIGINT) END"
        )

    @cached_property
    def cut(self) -> exp.Query:
        """What the weights take from each sum over all groups, one row: s0, s1, ... in the steps of the weighted sums.
        Of no unit more than `most` counts, up or down."""
        assert self.units and not self.votes and not self.leaves
        keys, there = self._names()
        if self._alone:
            rows = HeldRows(self.coordinates, self.bits)
            sums = (f"coalesce(exact_sum({clamped(rows.lost(i), self.most[i])}), 0) AS s{i}" for i in self._all)
            return filled(f"SELECT {', '.join(sums)} FROM _rows{there}", self.rows)
        by = f"{UNIT}, {keys}" if keys else UNIT
        pairs = self._pairs(by, there)
        masses = ", ".join(f"exact_sum({self._s(i)}) AS m{i}" for i in self._all)
        units = f"SELECT {UNIT}, {self._norm()} AS norm, {masses} FROM _pairs GROUP BY {UNIT}"
        full = 1 << self.bits
        listed = ", ".join(f"m{i}" for i in self._all)
        weighted = f"SELECT {listed}, {self._weight(full)} AS w FROM _units"
        parts = []
        for i in self._all:
            lost = f"CAST({full} - w AS INT128) * m{i}"
            parts.append(f"coalesce(exact_sum({clamped(lost, self.most[i])}), 0) AS s{i}")
        steps = {"_pairs": pairs, "_units": units, "_weighted": weighted}
        return filled(f"{with_steps(steps)} SELECT {', '.join(parts)} FROM _weighted", self.rows)


def vote(votes: Votes, blur: Blur) -> str:
    """A unit's weight in each of its t groups."""
    full, reach = 1 << votes.coordinate.bits, votes.coordinate.reach
    if blur.kind == "laplace":
        weight = f"least_present({full}, {math.floor(full * reach)} // t)"
    else:
        safe = repr(float(full) * float(reach) * (1 - 2.0**-40))
        weight = (
            f"CASE WHEN t <= {math.floor(reach**2)} THEN {full} "
            f"ELSE nearest(floor(CAST('{safe}' AS DOUBLE) / sqrt(CAST(t AS DOUBLE))), BIGINT) END"
        )
    if votes.most_keys is None:
        return weight
    return f"CASE WHEN t > {votes.most_keys} THEN 0 ELSE {weight} END"


def distinct_values(rows: exp.Query, *, keys: int, most: int, units: bool, numbered: bool = False) -> exp.Query:
    """How many different values of `x` the rows of each group hold, where a unit brings `most` at most, over all
    groups: those that come first in an order of its own. (Any rule on a unit's own rows will do; one that mixes in the
    unit makes different units bring different values.) One unit moves the counts by `most` in sum.

    numbered  units are rows with numbers, which depend on the rows before them: the order must not mix them in
    """
    names = ", ".join(f"k{i}" for i in range(keys))
    by = f"{names}, " if names else ""
    there = " AND ".join(f"{name} IS NOT NULL" for name in [*(f"k{i}" for i in range(keys)), *[UNIT] * units, "x"])
    source = f"SELECT {by}x FROM _rows WHERE {there}"
    if units:
        pairs = f"SELECT DISTINCT {UNIT}, {by}x FROM _rows WHERE {there}"
        mixed = "" if numbered else f"{UNIT}, "
        place = f"row_number() OVER (PARTITION BY {UNIT} ORDER BY ordering_hash({mixed}{by}x), {by}x)"
        placed = f"SELECT {by}x, {place} AS place FROM ({pairs}) AS _held"
        source = f"SELECT {by}x FROM ({placed}) AS _placed WHERE place <= {most}"
    group = f" GROUP BY {names}" if names else ""
    return filled(f"SELECT {by}count(DISTINCT x) AS s0 FROM ({source}) AS _brought{group}", rows)


def sampled(rows: exp.Query, *, keys: int, most: int, salt: int) -> exp.Query:
    """Only rows of `most` groups of each unit, those with the least hashes: a rule on the unit's own rows."""
    names = ", ".join([UNIT, *(f"k{i}" for i in range(keys))])
    held = f"SELECT DISTINCT {names} FROM _rows"
    place = f"row_number() OVER (PARTITION BY {UNIT} ORDER BY ordering_hash({names}, {salt}), {names})"
    placed = f"SELECT {names}, {place} AS place FROM ({held}) AS _held"
    chosen = f"SELECT {names} FROM ({placed}) AS _placed WHERE place <= {most}"
    return filled(f"SELECT _rows.* FROM _rows JOIN ({chosen}) AS _chosen USING ({names})", rows)


def added_up(rows: exp.Query, *, keys: int, sums: Sequence[str], counts: bool, single: bool) -> exp.Query:
    """A row for each unit and group: UNIT, k0, k1, ..., n rows where they are to be counted, and by name of a column of
    `rows` its sum, which is held at 2^62 so that it is a BIGINT."""
    names, there = pair(keys)
    totals = [f"coalesce({each}, 0)" if single else f"coalesce(exact_sum({each}), 0)" for each in sums]
    listed = [names, *[f"{'1' if single else 'count(*)'} AS {COUNT}"] * counts]
    listed += [f"CAST({clamped(total, _KEPT)} AS BIGINT) AS {name}" for name, total in zip(sums, totals, strict=True)]
    grouped = "" if single else f" GROUP BY {names}"
    return filled(f"SELECT {', '.join(listed)} FROM _rows WHERE {there}{grouped}", rows)
