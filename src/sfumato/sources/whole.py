"""All rows of a table, for plans that read rows rather than ask an engine."""

from __future__ import annotations

from typing import Any

from ..schema import Table
from .base import Source, needed
from .frames import Frame
from .session import connect


def columns_of(table: Table, source: Source) -> Any:
    """The columns of a table by name: a frame as it is, a file as the engine reads it."""
    if isinstance(source, Frame):
        return source.columns
    exp = needed("sqlglot").exp
    opened = connect({table.name: (table, source)})
    try:
        names = [exp.column(name, quoted=True) for name in table.columns]
        return opened.run(exp.select(*names).from_(exp.to_table(table.name)))
    finally:
        opened.close()
