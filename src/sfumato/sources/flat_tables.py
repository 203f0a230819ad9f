"""Tables as engines hold them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..errors import PlanError, guarded
from ..schema import Table, TensorColumn
from .base import Source
from .examples import Examples
from .frames import Frame


def flat(table: Table, source: Source) -> tuple[Table, Source]:
    """The table without its tensor columns, which no engine holds. A data set of records becomes a frame."""
    columns = {name: column for name, column in table.columns.items() if not isinstance(column, TensorColumn)}
    if not columns:
        raise PlanError(f"table {table.name!r} has tensor columns alone, and SQL reads none of them")
    if isinstance(source, Examples):
        source = Frame(guarded(partial(source.columns, table)))
    return table if len(columns) == len(table.columns) else replace(table, columns=columns), source
