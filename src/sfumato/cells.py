"""What somebody gives as a column, as arrays that numpy holds: decided by the type of the column alone.

Claim: whether another row is NULL, or what another row holds, changes no cell of the result. Proof: each road below is
chosen by types (of the container, of Arrow, polars or pandas), never by cells or by how many of them are NULL, and maps
each cell by itself; NULLs are taken out as a mask before numbers are handed over, since Arrow, polars and pandas turn
whole numbers into floats, and times into texts of another form, as soon as one row is NULL. Text is taken as its
bytes: Arrow's makers need not check that it is UTF-8, and whoever decodes all of it fails on one row.

What nothing can be made of (lists, records, intervals of the calendar, unions) is NULL, in every row. Arrow, polars and
pandas are known by their names, and Arrow is imported only where somebody gives it.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import tensors, times

_OF_POLARS = ("Object", "Int128", "UInt128")  # which Arrow does not hold: Python's own objects
_MASKED = ("Int", "UInt", "Float", "Boolean")  # pandas' nullable numbers


class Raw(NamedTuple):
    """One raw column: its cells, which rows are NULL whatever the cell, and the place of each row's cell.

    Without places every row has its own cell. With them `cells` are the different ones, some of which no row may have.
    """

    cells: NDArray[Any]
    hidden: NDArray[np.bool_] | None = None
    places: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.cells if self.places is None else self.places)


def raw_column(column: Any) -> Raw:
    """The column as it can be read. Raises where it is no column at all."""
    column = by_maker(column)
    if isinstance(column, Raw):
        return column
    if tensors.is_arrow(column):
        return _of_arrow(column)
    if isinstance(column, np.ndarray):
        return _of_numpy(column)
    kind = type(column)
    if hasattr(kind, "null_count"):
        return Raw(_objects(column.to_pylist() if hasattr(kind, "to_pylist") else column.to_list()))
    if hasattr(kind, "__array__") and not hasattr(kind, "isna"):
        return _of_numpy(np.asarray(column))
    return Raw(_objects(column))


def by_maker(column: Any) -> Any:
    """What a maker of frames holds inside: an Arrow array, a numpy array, or a raw column; others as they are."""
    column = tensors.plain(column)
    if type(column).__module__.partition(".")[0] == "polars":
        return _of_polars(column)
    return _of_pandas(column) if hasattr(type(column), "isna") and hasattr(column, "dtype") else column


def _objects(cells: Iterable[Any]) -> NDArray[Any]:
    return np.fromiter(cells, dtype=object)


def _nothing(count: int) -> Raw:
    return Raw(np.full(count, None))


def _of_numpy(array: NDArray[Any]) -> Raw:
    hidden = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
    cells = np.asarray(array)
    if cells.ndim == 0:
        raise TypeError("a single cell is no column")
    if cells.dtype.kind in "mM":
        cells = np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("="))
    unit = np.datetime_data(cells.dtype)[0] if cells.dtype.kind in "mM" else ""
    no_time = unit == "generic" or (cells.dtype.kind == "m" and unit in ("Y", "M"))  # of no length
    if cells.ndim > 1 or cells.dtype.kind == "V" or no_time:  # or cells that are themselves tables
        return _nothing(len(cells))
    return Raw(cells, hidden)


def _of_polars(series: Any) -> Any:
    """An Arrow array. Polars' own lists panic on a date beyond year 9999, with a text on the terminal."""
    if series.dtype.is_nested():
        return _nothing(len(series))
    if str(series.dtype) in _OF_POLARS:
        return Raw(_objects(series.to_list()))
    return series.to_arrow()


def _of_pandas(series: Any) -> Any:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return series.to_numpy()
    if not hasattr(dtype, "na_value"):  # not of pandas, only like it
        return Raw(_objects(series))
    name = type(dtype).__name__
    if name == "ArrowDtype" or getattr(dtype, "storage", None) == "pyarrow":
        return series.array.__arrow_array__()
    if name == "CategoricalDtype":
        return _of_codes(np.asarray(series.array.codes, dtype=np.int64), raw_column(dtype.categories))
    if name == "DatetimeTZDtype":  # counts in UTC
        return series.array.to_numpy(dtype=f"M8[{dtype.unit}]")
    if name == "SparseDtype":
        return series.array.to_dense()
    if name.startswith(_MASKED) and hasattr(dtype, "numpy_dtype"):
        hidden = np.asarray(series.isna(), dtype=np.bool_)
        return Raw(series.array.to_numpy(dtype=dtype.numpy_dtype, na_value=dtype.numpy_dtype.type(0)), hidden)
    return Raw(_objects(series))


def _of_codes(codes: NDArray[np.int64], categories: Raw) -> Raw:
    """Rows that name one of the known cells; below 0 is NULL."""
    if not len(categories):
        return _nothing(len(codes))
    hidden, codes = codes < 0, np.maximum(codes, 0)
    if categories.hidden is not None:
        hidden |= categories.hidden[codes]
    return Raw(categories.cells, hidden, codes if categories.places is None else categories.places[codes])


def _of_arrow(array: Any) -> Raw:
    """All chunks as one: how a column is cut is nobody's business."""
    if not len(array):
        return _nothing(0)
    chunks = [plain_arrow(chunk) for chunk in (array.chunks if hasattr(array, "chunks") else [array])]
    arrow, kind = importlib.import_module("pyarrow"), chunks[0].type
    types = arrow.types
    if _is_text(kind, types):
        return _of_bytes(arrow.chunked_array([_as_bytes(chunk, arrow) for chunk in chunks]), array.type)
    if types.is_decimal(kind):
        return Raw(np.concatenate([_objects(chunk.to_pylist()) for chunk in chunks]))
    parts = [_block(chunk, arrow) for chunk in chunks]
    if parts[0] is None:
        return _nothing(len(array))
    hidden = None
    if any(chunk.null_count for chunk in chunks):
        hidden = np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in chunks])
    block = parts[0] if len(parts) == 1 else np.concatenate(parts)  # type: ignore[arg-type]
    if types.is_time(kind):  # numpy has no time of day
        different, places = np.unique(block, return_inverse=True)
        cells = _objects(times.Clock(int(each), kind.unit) for each in different)
        return Raw(cells, hidden, places.reshape(-1).astype(np.int64, copy=False))
    return Raw(block, hidden)


def plain_arrow(chunk: Any) -> Any:
    """The array without what only packs it: extensions, dictionaries, runs. Text in them gets offsets of 64 bits, as
    what is packed may hold more than 32 can count."""
    arrow = importlib.import_module("pyarrow")
    while True:
        kind = chunk.type
        if hasattr(kind, "storage_type"):
            chunk = chunk.storage
        elif arrow.types.is_dictionary(kind):
            chunk = _wide(chunk.dictionary, arrow).take(chunk.indices)
        elif arrow.types.is_run_end_encoded(kind):
            ends = chunk.run_ends.to_numpy()
            rows = np.arange(chunk.offset, chunk.offset + len(chunk))
            chunk = _wide(chunk.values, arrow).take(arrow.array(np.searchsorted(ends, rows, side="right")))
        else:
            return chunk


def _wide(values: Any, arrow: Any) -> Any:
    if arrow.types.is_string(values.type):
        return values.cast(arrow.large_string())
    return values.cast(arrow.large_binary()) if arrow.types.is_binary(values.type) else values


def _is_text(kind: Any, types: Any) -> bool:
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_binary(kind)
        or types.is_large_binary(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind)
    )  # fmt: skip


def _as_bytes(chunk: Any, arrow: Any) -> Any:
    if arrow.types.is_fixed_size_binary(chunk.type):
        chunk = chunk.cast(arrow.binary())
    return chunk.cast(arrow.large_binary())


def _of_bytes(chunked: Any, kind: Any) -> Raw:
    """Each different text once: Python looks at those alone."""
    coded = chunked.dictionary_encode().unify_dictionaries()
    hidden = np.concatenate([chunk.is_null().to_numpy(zero_copy_only=False) for chunk in coded.chunks])
    places = np.concatenate([chunk.indices.fill_null(0).to_numpy() for chunk in coded.chunks]).astype(np.int64)
    cells = _objects(coded.chunk(0).dictionary.to_pylist())
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        cells = _objects(uuid.UUID(bytes=cell) for cell in cells)
    return Raw(cells, hidden, places)


def _block(chunk: Any, arrow: Any) -> NDArray[Any] | None:
    """One chunk of a type that numpy holds; whatever stands where a NULL is. None for other types."""
    types, kind = arrow.types, chunk.type
    if types.is_boolean(kind):
        return _filled(chunk, False)
    if types.is_integer(kind) or types.is_floating(kind):
        return _filled(chunk, 0)
    if types.is_date32(kind):
        return _filled(chunk.view(arrow.int32()), 0).astype(np.int64).view("M8[D]")
    if types.is_time32(kind):
        return _filled(chunk.view(arrow.int32()), 0).astype(np.int64)
    if types.is_time64(kind):
        return _filled(chunk.view(arrow.int64()), 0)
    if types.is_date64(kind):  # in milliseconds, and still a day
        return (_filled(chunk.view(arrow.int64()), 0) // 86_400_000).view("M8[D]")
    if types.is_timestamp(kind) or types.is_duration(kind):
        return _filled(chunk.view(arrow.int64()), 0).view(f"{'m' if types.is_duration(kind) else 'M'}8[{kind.unit}]")
    return None


def _filled(chunk: Any, value: Any) -> NDArray[Any]:
    cells: NDArray[Any] = (chunk.fill_null(value) if chunk.null_count else chunk).to_numpy(zero_copy_only=False)
    return cells
