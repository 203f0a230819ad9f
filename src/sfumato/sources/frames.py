"""Tables in memory: Arrow tables, pandas and polars frames, columns by name.

Columns that hold one plain type go to the engine as they are, uncopied. Lists and columns of Python objects are first
read cell by cell with `sfumato.rows`: engines and Arrow infer one type for such a column, so that one cell would
change, or break, how all others are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, tensors
from ..errors import DataError, PlanError
from ..rows import Rows, Series
from ..schema import Column, Table
from ..units import Unit
from .base import Source, needed
from .examples import check_shapes

_MAKERS = {"pyarrow": ("Table", "RecordBatch"), "pandas": ("DataFrame",), "polars": ("DataFrame",)}
_PLAIN = "biufM"  # numpy kinds that the engine takes as they are


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

    def arrow(self, table: Table, names: list[str]) -> Any:
        """The schema's columns under these names, as an Arrow table that the engine can read to the end."""
        arrow = needed("pyarrow")
        columns = [_column(column, self.columns[name]) for name, column in table.columns.items()]
        if len({len(each) for each in columns}) > 1:
            raise DataError
        return arrow.Table.from_arrays(columns, names=names)


def _column(column: Column, given: Any) -> Any:
    given = tensors.plain(given)
    plain = _plain(given)
    return _cleaned(column, given) if plain is None else plain


def _plain(given: Any) -> Any:
    """An Arrow column, uncopied where its type allows; None where only reading cell by cell is safe. The type decides,
    never the cells."""
    arrow = needed("pyarrow")
    if type(given).__module__.startswith("polars"):
        given = None if str(given.dtype) == "Object" else given.to_arrow()
    elif hasattr(given, "dtype") and not isinstance(given, np.ndarray):
        given = _of_pandas(given)
    if isinstance(given, arrow.Array | arrow.ChunkedArray):
        return None if _nested(given) else _proper(given)
    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype.kind not in _PLAIN:
        return None
    return _of_numpy(given)


def _of_pandas(given: Any) -> Any:
    dtype = given.dtype
    if isinstance(dtype, np.dtype):
        return given.to_numpy()
    kind = type(dtype).__name__
    masked = kind.startswith(("Int", "UInt", "Float", "Boolean", "Arrow")) and kind.endswith("Dtype")
    if masked or getattr(dtype, "storage", None) == "pyarrow":
        return needed("pyarrow").array(given)
    return None


def _of_numpy(given: NDArray[Any]) -> Any:
    arrow = needed("pyarrow")
    mask = np.ma.getmaskarray(given) if isinstance(given, np.ma.MaskedArray) else None
    cells = np.asarray(given)
    if cells.dtype.kind == "f" and cells.dtype.itemsize not in (4, 8):
        cells = cells.astype(np.float64)
    if cells.dtype.kind == "M" and np.datetime_data(cells.dtype) not in ((unit, 1) for unit in ("s", "ms", "us", "ns")):
        return None
    return arrow.array(cells.astype(cells.dtype.newbyteorder("="), copy=False), mask=mask, from_pandas=False)


def _nested(given: Any) -> bool:
    types, kind = needed("pyarrow").types, given.type
    return bool(types.is_nested(kind) or types.is_union(kind) or (types.is_dictionary(kind) and not _is_text(kind)))


def _is_text(kind: Any) -> bool:
    types = needed("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _proper(given: Any) -> Any:
    """Arrow text that is not UTF-8, which its makers need not check and the engine fails on, becomes NULL."""
    if not _is_text(given.type):
        return given
    arrow = needed("pyarrow")
    try:
        given.validate(full=True)
        return given
    except Exception:  # its text may hold a cell
        pass
    if arrow.types.is_dictionary(given.type):
        given = given.cast(given.type.value_type)
    cells = given.cast(arrow.binary_view() if arrow.types.is_string_view(given.type) else arrow.large_binary())
    return arrow.array(map(_decoded, cells.to_pylist()), type=arrow.large_string())


def _decoded(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return None


def _cleaned(column: Column, given: Any) -> Any:
    """The slow way: each cell read as `sfumato.rows` reads it, then one type for all."""
    arrow = needed("pyarrow")
    series = Rows.read(Table({"cells": column}), {"cells": _cells(given)}, Unit())["cells"]
    hidden = ~series.valid
    if column.type == "key":
        return arrow.array(_key_texts(series), type=arrow.string())
    if column.type == "category":
        known = np.fromiter(column.categories, dtype=object)
        kind = {str: arrow.string(), int: arrow.int64(), bool: arrow.bool_()}[type(column.categories[0])]
        values = known[series.values]
        values[hidden] = None
        return arrow.array(values, type=kind)
    values = series.values
    if column.type == "flag":
        values = values.astype(np.bool_)
    elif column.type == "date":
        return arrow.array(values.astype(np.int32), mask=hidden, type=arrow.int32()).cast(arrow.date32())
    elif column.type == "moment":
        return arrow.array(values, mask=hidden, type=arrow.int64()).cast(arrow.timestamp("us"))
    return arrow.array(values, mask=hidden, from_pandas=False)


def _cells(given: Any) -> Any:
    """What `sfumato.rows` reads: lists and records are no values to it, nor is anything that Arrow nests."""
    arrow = needed("pyarrow")
    if isinstance(given, arrow.Array | arrow.ChunkedArray) and not arrow.types.is_dictionary(given.type):
        return np.full(len(given), None)
    return given


def _key_texts(series: Series) -> list[str | None]:
    """Keys as text; one that is no UTF-8 text names nobody whom the engine could hold."""
    assert series.keys is not None
    labels = [_text(label) for label in series.label(np.arange(len(series.keys)))]
    pairs = zip(series.values.tolist(), series.valid.tolist(), strict=True)
    return [labels[code] if valid else None for code, valid in pairs]


def _text(label: int | float | str) -> str | None:
    text = str(label)
    return None if any("\ud800" <= sign <= "\udfff" for sign in text) else text
