"""All rows of a table, for plans that read rows rather than ask an engine."""

from __future__ import annotations

from typing import Any

from ..schema import Table, TensorColumn
from .base import Source, needed
from .connections import connect
from .examples import Examples
from .files import Parquet
from .frames import Frame


def columns_of(table: Table, source: Source) -> Any:
    """The columns of a table by name: a frame as it is, a file as the engine reads it."""
    if isinstance(source, Frame):
        return source.columns
    if isinstance(source, Examples):
        return source.columns(table)
    if isinstance(source, Parquet) and any(isinstance(column, TensorColumn) for column in table.columns.values()):
        return _arrow(table, source)
    opened = connect({table.name: (table, source)})
    try:
        return opened.run(_every_row(table))
    finally:
        opened.close()


def compare_columns(table: Table, source: Source) -> None:
    """Refuse a source that `columns_of` could not read as this table, whatever its rows are. None of them is read."""
    if isinstance(source, Frame | Examples):
        return
    if isinstance(source, Parquet) and any(isinstance(column, TensorColumn) for column in table.columns.values()):
        source.check_headers(table, source.files())
        return
    opened = connect({table.name: (table, source)}, unread=(table.name,))
    try:
        opened.bind(_every_row(table))
    finally:
        opened.close()


def _every_row(table: Table) -> Any:
    exp = needed("sqlglot").exp
    names = [exp.column(name, quoted=True) for name in table.columns]
    return exp.select(*names).from_(exp.Table(this=exp.to_identifier(table.name, quoted=True)))


def _arrow(table: Table, source: Parquet) -> Any:
    """The files as Arrow holds them, arrays in their shapes: the engine would make lists of them. What a cell means is
    left to `sfumato.rows`, as with any Arrow table."""
    parquet, names, files = needed("pyarrow.parquet"), list(table.columns), source.files()
    source.check_headers(table, files)
    parts = [parquet.ParquetFile(file).read(columns=names).select(names) for file in files]
    return needed("pyarrow").concat_tables([part.replace_schema_metadata(None) for part in parts])
