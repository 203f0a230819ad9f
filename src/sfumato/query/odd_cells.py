"""About how many cells of each column cannot be read: a query like any other, so with a price and error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..errors import PlanError
from .ask import schema_and_unit, sql
from .cell_words import all_rows, checkable
from .expressions.functions.cells import NAME
from .plan import Sql

if TYPE_CHECKING:
    from ..units import Unit


def unreadable(data: Any, table: str | None = None, *, unit: Unit | None = None, **options: Any) -> Sql:
    """The plan that counts, for each column of a table, the cells that are there and cannot be read; and all rows.

    >>> from sfumato import Private, Schema, Unit, schema, unreadable
    >>> people = Private("people", {"age": [25, 37, 52]}, unit=Unit(), schema=Schema.of(age=schema.whole(0, 110)))
    >>> float(unreadable(people, epsilon=0.1).event.epsilon)
    0.1

    data     the Private that it will run on, or a schema (then `unit` says whose presence is hidden)
    table    the private table, where there are several
    options  as `sql` takes them: epsilon, limits, ...
    """
    schema, protects = schema_and_unit(data, unit)
    read = schema.table(table)
    names = checkable(read, protects)
    if not names:
        raise PlanError(f"table {read.name!r} has no column whose cells could be unreadable: keys are read as they are")
    counts = [f"COUNT_IF({NAME.upper()}({_quoted(name)})) AS {_quoted(name)}" for name in names]
    text = f"SELECT {', '.join([f'COUNT(*) AS {_quoted(all_rows(names))}', *counts])} FROM {_quoted(read.name)}"
    plan = sql(text, data, unit=unit, **options)
    assert isinstance(plan, Sql)  # one SELECT over one table
    return plan


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect="duckdb")
