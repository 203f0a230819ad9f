"""Faults of the SQL passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sfumato.audit import seams
from sfumato.query import bounding, candidates, design, front, measures, running
from sfumato.query.expressions import decimals, trees
from sfumato.query.relations import around, chosen_rows, naming

from ..mutant import Shelf, attacks, plant, swap, swap_everywhere

FAULTS = Shelf("SQL", needs="duckdb")


@FAULTS.fault("units are not weighted", by=attacks("Q4"))
def no_weights() -> None:
    plant(seams.SQL_WEIGHT, lambda _: lambda self, full: str(full))


@FAULTS.fault("the unit is lost on the way", by=attacks("Q4"))
def no_unit() -> None:
    swap(front.Front, "units", lambda _: lambda self: False)


@FAULTS.fault("EXISTS across units", by=attacks("Q4"))
def other_units() -> None:
    """The engine does not tie a subquery's rows to the unit of the row around it."""
    swap(around, "same_unit", lambda _: lambda rows, row: trees.flag(True))


@FAULTS.fault("different values of all units together", by=attacks("Q4"))
def values_of_all() -> None:
    """SUM(DISTINCT x) per unit takes each value from one row of the whole table."""

    def of_all_rows(window: Any) -> Any:
        return lambda rows, keys, *more: window(replace(rows, unit=None), [], *more)

    swap(chosen_rows, "unit_window", of_all_rows)


@FAULTS.fault("a product of groups", by=attacks("Q2"))
def product_of_groups() -> None:
    """Keys that hang together are listed each by itself, and no condition narrows them."""

    def take_apart(blocks: Any) -> Any:
        return lambda keys, facts: [
            replace(block, places=(place,)) for place, key in enumerate(keys) for block in blocks([key], ())
        ]

    swap(candidates, "blocks", take_apart)


@FAULTS.fault("groups are listed from the rows that are there", by=attacks("Q2"))
def groups_of_rows() -> None:
    def from_rows(honest: Any) -> Any:
        def look(front: Any, connection: Any) -> Any:
            names = [f"k{i}" for i in range(len(front.keys))]
            if not names:
                return honest(front, connection)
            rows = front.rows({}).subquery("_rows")
            table = connection.run(exp.select(*names).distinct().from_(rows))
            listed = zip(*(column.to_pylist() for column in table.columns), strict=True)
            return running.Groups([row for row in listed if None not in row], True)

        return look

    swap(running, "given", from_rows)


@FAULTS.fault("half the threshold", by=attacks("Q2"))
def half_threshold() -> None:
    swap(design.Design, "threshold", lambda threshold: lambda self: threshold(self) // 2)


@FAULTS.fault("the threshold for one group where a unit may have many", by=attacks("Q2"))
def one_group() -> None:
    def assume_one_group(least: Any) -> Any:
        return lambda law, delta, cases: least(law, delta, tuple((height, 1) for height, _ in cases))

    swap(design, "least_threshold", assume_one_group)


@FAULTS.fault("sums of doubles", by=attacks("N1", "N3"))
def doubles() -> None:
    def cast_to_double(_: Any) -> Any:
        def quantum(self: Any) -> Any:
            return None if self.measure.row is None else trees.cast(self.measure.row.copy(), "DOUBLE")

        return quantum

    swap(measures.Coordinate, "quantum", cast_to_double)


@FAULTS.fault("decimals are computed as doubles", by=attacks("N1"))
def double_decimals() -> None:
    swap_everywhere(decimals.computed, lambda _: lambda *operands: None)


@FAULTS.fault("casts that raise", by=attacks("Q1"))
def casts() -> None:
    swap_everywhere(trees.read_or_null, lambda _: trees.cast)
    swap_everywhere(trees.nearest_or_null, lambda _: trees.nearest)
    swap_everywhere(trees.narrowed_or_null, lambda _: trees.cast)


@FAULTS.fault("a unit brings as many values as it has", by=attacks("Q4"))
def all_values() -> None:
    def take_all_values(distinct: Any) -> Any:
        return lambda rows, *, most, **named: distinct(rows, most=10**9, **named)

    swap_everywhere(bounding.distinct_values, take_all_values)


@FAULTS.fault("row numbers choose the values", by=attacks("Q4"))
def numbers_choose() -> None:
    def ignore_numbers(distinct: Any) -> Any:
        return lambda rows, *, numbered=False, **named: distinct(rows, numbered=False, **named)

    swap_everywhere(bounding.distinct_values, ignore_numbers)


@FAULTS.fault("parts of a SELECT that are not known are passed over", by=attacks("Q3", "Q5", "Q1"))
def anything_goes() -> None:
    swap_everywhere(naming.known_parts, lambda _: lambda node, names: None)


@FAULTS.fault("noise without the share of the budget", by=attacks("Q4"))
def no_share() -> None:
    from sfumato.query import blur

    swap(blur.Blur, "scale", lambda scale: lambda self, reach, share: scale(self, reach, Fraction(1)))


@FAULTS.fault("groups come in the order of the engine", by=attacks("Q2", "N3"))
def engine_order() -> None:
    swap(running, "ordering", lambda _: lambda value: (0, 0))


@FAULTS.fault("who is replaced moves sums once", by=attacks("Q4"))
def one_side() -> None:
    from sfumato.query import blur

    swap(blur.Blur, "sides", lambda _: lambda self: self.unit.group)


@FAULTS.fault("every level of a quantile gets its whole share", by=attacks("Q4"))
def every_level() -> None:
    plant(seams.SQL_SCALE, lambda scale: lambda self, name, reach, levels=1: scale(self, name, reach))


@FAULTS.fault("a tenth of a query's noise is lost", by=("check Sql",))
def narrower() -> None:
    from sfumato.query import blur

    swap(blur.Blur, "scale", lambda scale: lambda self, *terms: scale(self, *terms) * Fraction(9, 10))


@FAULTS.fault("columns are taken to stand in the schema's order", by=attacks("O1"))
def schema_order() -> None:
    from sfumato.sources import Csv

    from ...mutants.files import SchemaOrder

    swap(Csv, "compare", lambda _: SchemaOrder.compare)
    swap(Csv, "places", lambda _: SchemaOrder.places)


@FAULTS.fault("files of killed processes stay", by=attacks("P2"))
def unswept() -> None:
    from sfumato.sources import spill

    swap(spill, "sweep", lambda _: lambda place: 0)


@FAULTS.fault("private rows are joined with a released table", by=attacks("Q5"))
def joined_with_released() -> None:
    from sfumato.query.above import above_rules, query_blocks

    def call_rows_public(source: Any) -> Any:
        def read(self: Any, node: Any, names: Any) -> Any:
            status, tree = source(self, node, names)
            return ("public" if status == "rows" and names.above else status), tree

        return read

    swap(query_blocks.QuerySplit, "source", call_rows_public)
    swap_everywhere(above_rules.public_tables, lambda _: lambda schema: dict(schema.tables))


@FAULTS.fault("a unit of a series counts in every block", by=attacks("B5"))
def every_block() -> None:
    from sfumato.query.dated import block_text

    def without_rank(source: Any) -> Any:
        return lambda self, block, start, most: source(self, block, start, None)

    swap(block_text.DatedQuery, "of_block", without_rank)


@FAULTS.fault("a later stage compares with the exact number", by=attacks("Q7"))
def exact_stages() -> None:
    from sfumato.query.above import stages_plan

    from ...mutants.queries import with_exact_numbers

    swap(stages_plan.SqlStages, "_run", lambda _: with_exact_numbers)
