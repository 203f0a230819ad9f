"""Tables in the form that a pipeline holds them in: frames of pandas, polars and Arrow, and files.

A pipeline that reads a Parquet file, or gets a frame, meets what such tables do: NULLs beside numbers, texts that are
not UTF-8, moments that no calendar holds. So neighbours are made in the very form, and in the very types, of the table
that is given, or, where rows are made up, in the types that a program would choose for the schema.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ArgumentError
from ...schema import Column, Table
from ...sources import Csv, DuckDBTable, Parquet, Source, source
from ...sources.base import needed, quoted
from ...sources.frames import is_frame
from ..awkward import arrow_array
from ..forms import FORMS
from ..neighbours import Columns
from .column_forms import CELL_FORMS, in_arrow, raw_text

HELD = ("pandas", "polars", "arrow", "csv", "parquet", "duckdb")
_CSV = "csv utf-8"


@dataclass(frozen=True)
class Storage:
    """How a table lies there: its form, one of HELD, and what makes a column of cells, by name."""

    form: str
    kinds: Mapping[str, Any]

    def stored(self, columns: Columns, folder: Path) -> Any:
        """The columns as a frame, or as the source of a file."""
        if self.form == "csv":
            return FORMS[_CSV]({name: list(map(_bytes, cells)) for name, cells in columns.items()}, folder)
        typed_columns = {name: self._column(name, cells) for name, cells in columns.items()}
        table = FORMS[self.form](typed_columns, folder)
        return DuckDBTable(table, "data") if self.form == "duckdb" else table

    def _column(self, name: str, cells: list[Any]) -> Any:
        kind = self.kinds[name]
        if isinstance(kind, Column):
            cells, kind = in_arrow(kind, cells)
        elif self.form == "pandas":
            return _in_pandas(cells, kind)
        if _is_text(kind):
            cells = [raw_text(cell, valid=self.form == "duckdb") for cell in cells]
        return _in(self.form, arrow_array(kind, cells))


def _in_pandas(cells: list[Any], dtype: Any) -> Any:
    pandas = needed("pandas")
    try:
        return pandas.Series(cells, dtype=dtype)
    except (TypeError, ValueError):  # a cell that is blank now
        return pandas.Series(cells, dtype=object)


def by_schema(form: str, table: Table) -> Storage:
    """Made-up rows, in the types that a program would hold them in."""
    return Storage(form, table.columns)


def held_data(data: Any) -> tuple[Storage, Columns] | None:
    """The form of rows that somebody gives, and their cells by column; None for columns by name."""
    if isinstance(data, Mapping) or not (is_frame(data) or isinstance(data, str | Path | Source)):
        return None
    place = source(data)
    if isinstance(place, Csv):
        return _of_csv(place)
    if isinstance(place, Parquet):
        return _of_arrow("parquet", needed("pyarrow.parquet").ParquetDataset(place.files()).read())
    if isinstance(place, DuckDBTable):
        return _of_arrow("duckdb", _database(place))
    maker = type(data).__module__.partition(".")[0]
    if maker == "pyarrow":
        return _of_arrow("arrow", needed("pyarrow").table(data))
    if maker == "polars":  # whose own lists panic on moments that no calendar holds
        return _of_arrow("polars", data.to_arrow())
    names = [str(name) for name in data.columns]
    return Storage("pandas", {name: data[name].dtype for name in names}), {name: list(data[name]) for name in names}


def _of_csv(place: Csv) -> tuple[Storage, Columns]:
    with Path(place.file()).open(encoding=place.codec(), errors="surrogateescape", newline="") as lines:
        rows = list(csv.reader(lines, delimiter=place.delimiter))
    names, rows = (rows[0], rows[1:]) if place.header and rows else ([], rows)
    if not names:
        raise ArgumentError("data is not allowed: a CSV file needs a header here, which names its columns.")
    cells = {name: [row[at] if at < len(row) else None for row in rows] for at, name in enumerate(names)}
    return Storage("csv", dict.fromkeys(names)), cells


def _database(place: DuckDBTable) -> Any:
    opened = needed("duckdb").connect(place.file(), read_only=True)
    try:
        if place.table is None:
            raise ArgumentError("data is not allowed: name the table, as in DuckDBTable(path, 'visits').")
        return opened.sql(f"SELECT * FROM {quoted(place.table)}").to_arrow_table()
    finally:
        opened.close()


def _of_arrow(form: str, table: Any) -> tuple[Storage, Columns]:
    names = list(table.schema.names)
    cells = {}
    for name in names:
        cells[name] = [cell for chunk in table[name].chunks for cell in _as_raw(chunk).to_pylist()]
    return Storage(form, {name: table.schema.field(name).type for name in names}), cells


def _as_raw(chunk: Any) -> Any:
    """Texts as bytes and times as numbers: as Python's own values some of them cannot be held."""
    pa = needed("pyarrow")
    if _is_text(chunk.type):
        return chunk.cast(pa.large_binary())
    if pa.types.is_temporal(chunk.type) and not pa.types.is_interval(chunk.type):
        return chunk.view(pa.int32() if chunk.type.bit_width == 32 else pa.int64())
    return chunk


def _is_text(kind: Any) -> bool:
    types = needed("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _bytes(cell: Any) -> bytes:
    """A cell as a line of CSV holds it."""
    text = raw_text(cell) or b""
    return b'"' + text.replace(b'"', b'""') + b'"' if any(sign in text for sign in b',"\r\n') else text


def _in(form: str, array: Any) -> Any:
    if form == "polars":
        return needed("polars").from_arrow(array)
    if form == "pandas":
        pandas = needed("pandas")
        return pandas.Series(array, dtype=pandas.ArrowDtype(array.type))
    return array


def odd_row(table: Table, unit: str | None) -> dict[str, Any]:
    """A row of cells that makers of frames and files do not take, or take by mistake."""
    return {name: CELL_FORMS[column.type].odd for name, column in table.columns.items() if name != unit}
