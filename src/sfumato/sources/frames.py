"""Tables in memory: Arrow tables, pandas and polars frames, columns by name.

Columns of plain numbers and texts go to the engine as they are, uncopied. All else (lists, Python objects, times, what
Arrow packs) is first read with `sfumato.rows`: engines and Arrow infer one type for a column of objects, and fail on
times that they cannot hold, so that one cell would change, or break, how all others are read. The type of the column
decides, never its cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, tensors
from ..cells import Raw, by_maker, plain_arrow, raw_column
from ..errors import DataError, PlanError
from ..rows import Rows
from ..schema import DROP, Column, Table, key
from ..units import Unit
from .base import Source, needed
from .examples import check_shapes
from .spelling import PYTHON_BLANKS

_MAKERS = {"pyarrow": ("Table", "RecordBatch"), "pandas": ("DataFrame",), "polars": ("DataFrame",)}
_PLAIN = "biuf"  # numpy kinds that the engine takes as they are


def is_frame(given: Any) -> bool:
    """Whether this is a table of a known maker; asks its type only."""
    kinds = [(kind.__module__.split(".")[0], kind.__name__) for kind in type(given).__mro__]
    return any(name in _MAKERS.get(maker, ()) for maker, name in kinds)


@dataclass(frozen=True, eq=False, repr=False)
class Frame(Source):
    """A table in memory: an Arrow table, a pandas or polars frame, or arrays and lists by column name."""

    columns: Any

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) and not is_frame(self.columns):
            raise checks.refuse("columns", type(self.columns), "an Arrow table, a pandas or polars frame, or a mapping")

    def __repr__(self) -> str:
        return f"<Frame of a {type(self.columns).__name__}>"

    def names(self) -> list[str]:
        given = self.columns
        if isinstance(given, Mapping):
            return list(given)
        return list(given.schema.names if type(given).__module__.startswith("pyarrow") else given.columns)

    def check(self, table: Table) -> None:
        """Refuse a table whose columns are not all here, or are of another shape; compares names and shapes only."""
        have = self.names()
        for column in table.columns:
            if have.count(column) != 1:
                count = "no column" if column not in have else "several columns"
                raise PlanError(f"the data of table {table.name!r} has {count} {column!r}")
        if type(self.columns) is dict or is_frame(self.columns):  # another mapping may read when it is asked
            check_shapes(table, self.columns)
            if any(type(self.columns[name]).__module__.startswith("polars") for name in table.columns):
                needed("pyarrow")  # through which polars hands its cells over

    def compare(self, table: Table) -> None:
        """A frame of somebody else's may have lost a column since it was named."""
        self.check(table)

    def emptied(self, table: Table) -> Source:
        """Columns of the same types that hold nothing. What may read when it is asked is not asked."""
        asked = type(self.columns) is dict or is_frame(self.columns)
        return Frame({name: _none_of(self.columns[name]) if asked else [] for name in table.columns})

    def arrow(self, table: Table, names: list[str], there: list[str] | None = None) -> Any:
        """The schema's columns under these names, as an Arrow table that the engine can read to the end. With names for
        it, also whether there is a cell, of columns that are read on the way."""
        arrow = needed("pyarrow")
        columns: dict[str, Any] = {}
        for place, (name, column) in enumerate(table.columns.items()):
            given = tensors.plain(self.columns[name])
            plain = _plain(column, given)
            if plain is None and there is not None:
                columns[there[place]] = _there(given)
                column = replace(column, nulls=DROP)  # what stands in for NULLs is put in later
            columns[names[place]] = _cleaned(column, given) if plain is None else plain
        if len({len(each) for each in columns.values()}) > 1:
            raise DataError
        return arrow.Table.from_arrays(list(columns.values()), names=list(columns))


def _none_of(cells: Any) -> Any:
    try:
        return cells[:0]
    except Exception:  # whatever a stranger's object does
        return []


def _plain(column: Column, raw: Any) -> Any:
    """An Arrow column, uncopied where its type allows; None where only reading with `sfumato.rows` is safe."""
    arrow = needed("pyarrow")
    raw = by_maker(raw)
    if isinstance(raw, arrow.Array | arrow.ChunkedArray):
        if arrow.types.is_run_end_encoded(raw.type):
            raw = arrow.chunked_array([plain_arrow(chunk) for chunk in getattr(raw, "chunks", [raw])])
        days = column.of_kind.takes_days and arrow.types.is_date32(raw.type)
        return _proper(raw) if _is_text(raw.type) else raw if days or _is_number(raw.type) else None
    if isinstance(raw, Raw) and raw.places is None:
        cells, mask = raw.cells, raw.hidden
    elif isinstance(raw, np.ndarray):
        cells, mask = np.asarray(raw), np.ma.getmaskarray(raw) if np.ma.isMaskedArray(raw) else None
    else:
        return None
    return _of_numpy(cells, mask) if cells.ndim == 1 and cells.dtype.kind in _PLAIN else None


def _of_numpy(cells: NDArray[Any], mask: NDArray[np.bool_] | None) -> Any:
    if cells.dtype.kind == "f" and cells.dtype.itemsize not in (4, 8):
        cells = cells.astype(np.float64)
    return needed("pyarrow").array(
        cells.astype(cells.dtype.newbyteorder("="), copy=False), mask=mask, from_pandas=False
    )


def _is_number(kind: Any) -> bool:
    types = needed("pyarrow").types
    if types.is_decimal128(kind):
        return bool(0 <= kind.scale <= kind.precision)
    return bool(
        types.is_integer(kind) or types.is_boolean(kind) or types.is_float32(kind) or types.is_float64(kind)
    )  # fmt: skip


def _is_text(kind: Any) -> bool:
    types = needed("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _proper(given: Any) -> Any:
    """Arrow text, in which cells that are not UTF-8 become NULL: its makers need not check them, and the engine fails
    on them. The other cells are the same, whether there are such or not."""
    arrow = needed("pyarrow")
    try:
        given.validate(full=True)
        return given
    except Exception:  # its text may hold a cell
        pass
    raw = raw_column(given)
    assert raw.places is not None and raw.hidden is not None
    texts = arrow.array(map(_decoded, raw.cells.tolist()), type=arrow.large_string())
    return texts.take(arrow.array(raw.places, mask=raw.hidden))


def _decoded(cell: bytes) -> str | None:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return None


def _there(given: Any) -> Any:
    """Whether there is a cell: a key reads any, but for NULLs of all makers, and text that is not blank."""
    cells = _cleaned(key(), given)
    compute = needed("pyarrow.compute")
    return compute.fill_null(compute.not_equal(compute.utf8_trim(cells, PYTHON_BLANKS), ""), False)


def _cleaned(column: Column, given: Any) -> Any:
    """Each cell read as `sfumato.rows` reads it, then one type for all."""
    arrow = needed("pyarrow")
    series = Rows.read(Table({"cells": column}), {"cells": given}, Unit())["cells"]
    if series.keys is None:
        return column.of_kind.arrow(column, series.values, ~series.valid, arrow)
    codes = np.unique(series.values[series.valid])
    labels, places = map(str, series.label(codes)), np.searchsorted(codes, series.values)
    return arrow.array(labels, type=arrow.large_string()).take(arrow.array(places, mask=~series.valid))
