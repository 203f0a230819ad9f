"""Ways to get the bounding wrong, each planted for the length of a block. The check must find every one."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

from sqlglot import exp

from sfumato.query import bounding, cuts, plan, running
from sfumato.query.bounding import Sums
from sfumato.query.expressions import trees
from sfumato.query.measures import LARGEST_SUM, Coordinate
from sfumato.query.relation import UNIT
from sfumato.query.relations import around, bases, chosen_rows, joins, rows_of
from sfumato.query.relations.bases import as_text, named, of
from sfumato.sources import duckdb_tables, session

Mutant = Callable[[], AbstractContextManager[Any]]


def rounded_up() -> Any:
    """A unit's weight is the next whole number above, not the one below."""
    honest = Sums._weight
    return mock.patch.object(Sums, "_weight", lambda self, full: honest(self, full).replace("floor(", "ceil("))


def float_norm() -> Any:
    """The norm comes from float sums of what rows held before they were rounded to the grid."""
    by_unit, norm, added = Sums._by_unit, Sums._norm, Sums._sum
    rounded = re.compile(r"\bq(\d+)\b")

    def with_floats(self: Sums) -> str:
        text = by_unit(self)
        for i in self._reals:  # type: ignore[attr-defined]
            text = text.replace(
                f" AS s{i}",
                f" AS s{i}, CAST(floor(least(abs(coalesce(sum(q{i}), 0)), {LARGEST_SUM})) AS BIGINT) AS f{i}",
                1,
            )
        return text

    def from_floats(self: Sums, *, alone: bool = False) -> str:
        text = norm(self, alone=alone)
        for i in self._reals:  # type: ignore[attr-defined]
            text = text.replace(f"abs(s{i})", f"f{i}")
        return text

    def reals(self: Sums) -> list[int]:
        return (
            [] if self.single or self.leaves else [i for i in self._all if self.coordinates[i].measure.row is not None]
        )

    def rounded_later(self: Sums, i: int) -> str:
        return rounded.sub(r"CAST(q\1 AS BIGINT)", added(self, i))

    stack = ExitStack()
    methods = {"_by_unit": with_floats, "_norm": from_floats, "_sum": rounded_later, "_reals": property(reals)}
    for name, method in methods.items():
        stack.enter_context(mock.patch.object(Sums, name, method, create=True))
    stack.enter_context(mock.patch.object(Coordinate, "quantum", _unrounded))
    return stack


def _unrounded(self: Coordinate) -> exp.Expression | None:
    """What a row adds in steps, clamped but not rounded; what is not a number stays so."""
    if self.measure.row is None:
        return None
    low, high = (trees.real(float(end)) for end in self.ends)
    scaled = trees.binary(exp.Mul, trees.cast(self.measure.row.copy(), "DOUBLE"), trees.real(2.0**-self.exponent))
    cases = [
        (trees.binary(exp.GT, scaled.copy(), trees.cast(trees.text("inf"), "DOUBLE")), scaled.copy()),  # NaN
        (trees.binary(exp.LT, scaled.copy(), low), low.copy()),
        (trees.binary(exp.GT, scaled.copy(), high), high.copy()),
    ]
    return trees.cases(cases, scaled)


def by_table() -> Any:
    """Units are bounded in each part of a UNION ALL for itself."""

    def unit_of(place: int, parts: int, unit: Any, one_type: bool) -> exp.Expression:
        return exp.DPipe(this=as_text(of("_part", UNIT)), expression=exp.Literal.string(f"/{place}"))

    return mock.patch.object(rows_of, "_unit_of", unit_of)


def units_mixed_in_joins() -> Any:
    """Rows of different units meet in a join."""
    return mock.patch.object(joins, "same_unit", lambda left, right: exp.true())


def units_mixed_in_subqueries() -> Any:
    """A subquery in an expression reads the rows of all units."""
    return mock.patch.object(around, "same_unit", lambda rows, row: exp.true())


def values_of_all_units() -> Any:
    """SUM(DISTINCT x) per unit takes each value from one row of the whole table."""
    honest = chosen_rows.unit_window

    def of_all_rows(rows: Any, keys: Any, *more: Any) -> Any:
        return honest(replace(rows, unit=None), [], *more)

    return mock.patch.object(chosen_rows, "unit_window", of_all_rows)


def owner_lost_on_the_way() -> Any:
    """Rows that are owned through a key belong to the key: each order is hidden, and a person promised."""
    honest = bases._unit
    return mock.patch.object(
        bases, "_unit", lambda owned: honest(owned) if owned.link is None else of(bases._OWNERS, bases._KEY)
    )


def one_owner_for_a_key() -> Any:
    """A key that several units hold belongs to the first of them: without that one, its rows are another's."""

    def first(link: Any, schema: Any, whose: Any) -> exp.Select:
        owned = whose[link.table]
        unit, key = exp.Min(this=bases._unit(owned)), bases._own(link.key, owned)
        return bases._from(link.table, schema, whose).select(named(unit, UNIT), named(key, bases._KEY)).group_by(key)

    return mock.patch.object(bases, "_pairs", first)


def nan_is_a_number() -> Any:
    """What is not a number is read as it is, and added up."""
    honest, cell_of = session.reading, duckdb_tables.cell_of

    def reading(column: Any, cell: Any, x: str) -> Any:
        read = honest(column, cell, x)
        if column.type != "real" or cell.kind != "float":
            return read
        return replace(read, value=f"CASE WHEN not_a_number({x}) THEN {x} ELSE {read.value} END")

    def with_nan(raw: str, physical: str, present: str = "") -> Any:
        cell = cell_of(raw, physical, present)
        return replace(cell, sql=raw) if physical == "DOUBLE" else cell

    stack = ExitStack()
    stack.enter_context(mock.patch.object(session, "reading", reading))
    stack.enter_context(mock.patch.object(duckdb_tables, "cell_of", with_nan))
    stack.enter_context(mock.patch.object(Coordinate, "quantum", _unrounded))
    return stack


def heavy_counts_in_full() -> Any:
    """Units beyond what the norm can hold have full weight, not none."""
    honest = Sums._weight
    return mock.patch.object(Sums, "_weight", lambda self, full: honest(self, full).replace("THEN 0 ", f"THEN {full} "))


def too_many_values() -> Any:
    """COUNT(DISTINCT) takes one value more of each unit."""
    honest = bounding.distinct_values

    def one_more(rows: Any, *, most: int, **more: Any) -> Any:
        return honest(rows, most=most + 1, **more)

    return mock.patch.object(running, "distinct_values", one_more)


def numbers_of_rows_decide() -> Any:
    """Which values a row brings to COUNT(DISTINCT) depends on its number among all rows."""

    def not_numbered(rows: Any, *, numbered: bool = False, **more: Any) -> Any:
        return bounding.distinct_values(rows, **more)

    return mock.patch.object(running, "distinct_values", not_numbered)


def advice_for_free() -> Any:
    """What the adviser asks is not taken off the other questions' shares."""
    honest = plan.shares_of

    def all_of_it(questions: Any, weights: Any, rest: Fraction, **more: Any) -> Any:
        return honest(questions, weights, Fraction(1), **more)

    return mock.patch.object(plan, "shares_of", all_of_it)


def everybody_votes() -> Any:
    """Units with more groups than may have a say have one all the same."""
    honest = bounding.vote
    return mock.patch.object(bounding, "vote", lambda votes, blur: honest(replace(votes, most_keys=None), blur))


def no_caps() -> Any:
    """What is cut from one unit counts in full, in totals whose noise is for a part of it."""
    return mock.patch.object(cuts, "_most", lambda cap, fine, step: 2**62)
