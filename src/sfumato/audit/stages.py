"""How an audit sets the scene for a plan: what table it makes up, and what the plan is handed of it.

What holds for every opening stands in `Stage`; one that needs more registers a subclass, as the engine does here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..bounds import Bounded
from ..errors import PlanError
from ..openings import ENGINE, Opening
from ..plan import Plan
from ..schema import Column, Table, flag, key
from .engines import connection_for, read_table

ROWS_ALONE = "present"  # the column of a table whose rows are counted and not read


class Stage:
    """How plans of one opening are audited.

    rows_of_a_unit  so many are usual, where a plan has no number of its own
    most_pairs      so many are tried at most; None where trying one is cheap
    lists_outcomes  can all that a plan may release be listed, with its probabilities?
    """

    rows_of_a_unit: int = 1
    most_pairs: int | None = None
    lists_outcomes: bool = True

    def table(self, plan: Plan[Any, Any]) -> Table:
        """The least table that the plan fits: the columns it reads, and the key that names its unit."""
        columns: dict[str, Column] = {name: _widest(name, column, plan) for name, column in plan.columns.items()}
        for name in plan.unit.naming:
            columns.setdefault(name, key())
        if not columns:
            columns[ROWS_ALONE] = flag()  # a table has at least one column
        return Table(columns, unit=plan.unit.column if plan.unit.takes_rows else None)

    def data(self, plan: Plan[Any, Any], table: Table, raw: Mapping[str, Any]) -> Any:
        """What the plan runs on, of these raw columns."""
        return plan.opens.of(table, raw, plan.unit)

    def fitting(self, table: Table, columns: dict[str, list[Any]], name: str = "pairs") -> dict[str, list[Any]]:
        """Columns that the plan can read. A plan that counts rows reads none: any column says how many there are."""
        lacking = [column for column in table.columns if column not in columns]
        if lacking == [ROWS_ALONE] and len(table.columns) == 1 and columns:
            return {ROWS_ALONE: [True] * len(next(iter(columns.values())))}
        if lacking:
            raise PlanError(
                f"{name} is not allowed: a table has no column {lacking[0]!r}. Give the columns that the plan reads: "
                f"{', '.join(map(repr, table.columns))}."
            )
        return columns

    def repeats(self, plan: Plan[Any, Any]) -> bool:
        """Is it a query whose numbers are answered many times at once?"""
        return False


class _Engine(Stage):
    """Plans that run in an engine: they say themselves which tables they read."""

    rows_of_a_unit = 57
    most_pairs = 30  # each of them takes two statements
    lists_outcomes = False

    def table(self, plan: Plan[Any, Any]) -> Table:
        return read_table(plan)

    def data(self, plan: Plan[Any, Any], table: Table, raw: Mapping[str, Any]) -> Any:
        return connection_for(plan, table, raw)

    def fitting(self, table: Table, columns: dict[str, list[Any]], name: str = "pairs") -> dict[str, list[Any]]:
        return columns  # a query reads the tables of its own schema

    def repeats(self, plan: Plan[Any, Any]) -> bool:
        return plan.bulk != "no"


_USUAL = Stage()
_STAGES: dict[Opening[Any], Stage] = {ENGINE: _Engine()}


def register(opening: Opening[Any], stage: Stage) -> None:
    """From now on, plans of this opening are audited so."""
    _STAGES[opening] = stage


def stage_of(plan: Plan[Any, Any]) -> Stage:
    return _STAGES.get(plan.opens, _USUAL)


def table_for(plan: Plan[Any, Any]) -> Table:
    """The table that an audit of the plan makes up."""
    return stage_of(plan).table(plan)


def data_for(plan: Plan[Any, Any], table: Table, raw: Mapping[str, Any]) -> Any:
    """What the plan runs on, of these raw columns."""
    return stage_of(plan).data(plan, table, raw)


def _widest(name: str, column: Column, plan: Plan[Any, Any]) -> Column:
    """A category with every value that some query of the plan asks for: each of them names only its own."""
    if not column.categories:
        return column
    narrower = [query.columns[name] for query in queries(plan) if name in query.columns]
    values = dict.fromkeys(value for each in (column, *narrower) for value in each.categories)
    return replace(column, categories=tuple(values))


def queries(plan: Plan[Any, Any]) -> list[Bounded]:
    """Every bounded query of the plan, also inside its questions, and of its children."""
    own = [part for value in vars(plan).values() for part in _parts(value)]
    return own + [query for child in plan.children for query in queries(child)]


def _parts(value: Any) -> Iterator[Bounded]:
    if isinstance(value, Bounded):
        yield value
    elif isinstance(value, Mapping | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _parts(part)
