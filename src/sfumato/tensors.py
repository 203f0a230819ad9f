"""Columns whose cells are arrays: what is given as such a column, read so that every row speaks only for itself.

The rules are those of `sfumato.rows`. Reading is total: a number outside the bounds is clamped, a missing one (nan, or
masked) reads as the bound nearest to 0, or as 0, and a row that holds no array of numbers of the right shape is NULL.
A flat row of as many numbers has the right shape, too: many files keep no other.
Arrays that hold all rows in one block are read as one block, without a copy where every number is fine already; lists
and arrays of objects are read row by row. Torch and Arrow are known by their names: neither is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

INT64 = (-(2**63), 2**63 - 1)
_NUMBERS = "biuf"


class ArrayColumn(Protocol):
    """What is asked here of a column of arrays; `schema.TensorColumn` is one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def whole(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def dtype(self) -> type[np.int64 | np.float32]: ...
    @property
    def ends(self) -> tuple[Any, Any]: ...
    @property
    def rest(self) -> Any: ...


class Block(NamedTuple):
    """One raw column: an array of all rows or of one object per row, which numbers are missing, which rows are."""

    cells: NDArray[Any]
    missing: NDArray[np.bool_] | None = None
    absent: NDArray[np.bool_] | None = None


def is_torch(given: Any) -> bool:
    """Is this a tensor of torch? Asks for the names of its types only."""
    return any(kind.__module__.partition(".")[0] == "torch" and kind.__name__ == "Tensor" for kind in _family(given))


def is_arrow(given: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "pyarrow" for kind in _family(given))


def _family(given: Any) -> tuple[type, ...]:
    return type(given).__mro__


def plain(given: Any) -> Any:
    """A torch tensor as a numpy array that shares its memory where both can hold it; anything else as it is."""
    if not is_torch(given):
        return given
    tensor = given.detach()
    if getattr(tensor, "is_quantized", False):
        tensor = tensor.dequantize()
    if str(tensor.layout) != "torch.strided":
        tensor = tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:  # bfloat16 and smaller, which numpy does not know; float32 holds all of their numbers
        return tensor.float().numpy()


def misfit(column: ArrayColumn, given: Any) -> str | None:
    """What is wrong with a raw column as a whole, in words, as far as its type tells: no cell is looked at."""
    if is_arrow(given):
        return arrow_misfit(column, given.type)
    if not is_torch(given) and not isinstance(given, np.ndarray):
        return None
    rows = tuple(given.shape[1:]) if given.ndim else None
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "O":
            return None if given.ndim == 1 or _right(column, rows) else _shapes(column, rows)
        numbers = given.dtype.kind in _NUMBERS
    else:
        numbers = not given.is_complex() and not given.is_nested
    if not numbers:
        return f"it holds {given.dtype}, and a tensor column holds real or whole numbers"
    return None if _right(column, rows) else _shapes(column, rows)


def _right(column: ArrayColumn, rows: tuple[int, ...] | None) -> bool:
    return rows in (column.shape, (column.size,))


def _shapes(column: ArrayColumn, rows: tuple[int, ...] | None) -> str:
    return f"each of its rows has the shape {rows}, and the schema says {column.shape}: reshape it, or the schema"


def arrow_misfit(column: ArrayColumn, kind: Any) -> str | None:
    """The same of an Arrow type."""
    if hasattr(kind, "permutation"):  # an array of fixed shape
        turned = kind.permutation is not None and list(kind.permutation) != sorted(kind.permutation)
        if turned:
            return "its arrays are stored in another order than their shape: write them without a permutation"
        return None if tuple(kind.shape) == column.shape else _shapes(column, tuple(kind.shape))
    kind, size = getattr(kind, "storage_type", kind), 1
    if not hasattr(kind, "value_field"):
        return f"it holds {kind}, and a tensor column is a list of numbers of fixed size"
    while hasattr(kind, "list_size"):
        size, kind = size * kind.list_size, kind.value_type
    if hasattr(kind, "value_field") or size == column.size:  # lists of any size are looked at row by row
        return None
    return f"each of its rows holds {size} numbers, and an array of shape {column.shape} holds {column.size}"


def block(column: ArrayColumn, given: Any) -> Block:
    """A raw column as numpy holds it."""
    if isinstance(given, Block):
        return given
    given = plain(given)
    if type(given).__module__.partition(".")[0] == "polars":
        given = given.to_list() if str(given.dtype) == "Object" else given.to_arrow()
    if hasattr(getattr(given, "dtype", None), "pyarrow_dtype"):  # a pandas column that Arrow holds
        given = given.array.__arrow_array__()
    if is_arrow(given):
        return _of_arrow(column, given)
    if isinstance(given, np.ma.MaskedArray) and given.dtype.kind != "O":
        return Block(np.asarray(given), np.ma.getmaskarray(given))
    if isinstance(given, np.ndarray):
        return Block(np.asarray(given.filled(None) if isinstance(given, np.ma.MaskedArray) else given))
    return Block(np.fromiter(given, dtype=object))


def _of_arrow(column: ArrayColumn, given: Any) -> Block:
    if arrow_misfit(column, given.type) is not None:
        return Block(np.full(len(given), None))
    chunks = list(given.chunks) if hasattr(given, "chunks") else [given]
    try:
        parts = [_chunk(column, chunk) for chunk in chunks]
    except Exception:  # a type that Arrow cannot hand over as a block
        return Block(np.fromiter((cell for chunk in chunks for cell in _lists(column, chunk)), dtype=object))
    if len(parts) == 1:
        return parts[0]
    parts = parts or [Block(np.zeros((0, *column.shape), dtype=column.dtype))]
    masks = [np.zeros(part.cells.shape, bool) if part.missing is None else part.missing for part in parts]
    rows = [np.zeros(len(part.cells), bool) if part.absent is None else part.absent for part in parts]
    return Block(np.concatenate([part.cells for part in parts]), np.concatenate(masks), np.concatenate(rows))


def _chunk(column: ArrayColumn, chunk: Any) -> Block:
    """One piece of an Arrow column of lists, uncopied where all its lists are of fixed size and none is NULL."""
    absent, missing = _nulls(chunk), None
    chunk = getattr(chunk, "storage", chunk)
    rows, size = len(chunk), 1
    while hasattr(chunk.type, "list_size"):
        size *= chunk.type.list_size
        inner = chunk.values.slice(chunk.offset * chunk.type.list_size, len(chunk) * chunk.type.list_size)
        missing = None if missing is None else np.repeat(missing, chunk.type.list_size)
        missing, chunk = _either(missing, _nulls(inner)), inner
    if hasattr(chunk.type, "value_field"):
        return _of_any_size(column, chunk, absent) if size == 1 else _refused()
    cells = _flat(chunk).reshape(rows, *column.shape)
    return Block(cells, None if missing is None else missing.reshape(cells.shape), absent)


def _of_any_size(column: ArrayColumn, chunk: Any, absent: NDArray[np.bool_] | None) -> Block:
    """Lists that say their own size; those of the right one are gathered, the others are absent."""
    offsets = chunk.offsets.to_numpy().astype(np.int64)
    wrong = np.diff(offsets) != column.size
    absent = wrong if absent is None else wrong | absent
    values, missing = _flat(chunk.values), _nulls(chunk.values)
    if not absent.any() and len(offsets) > 1:
        parts = slice(offsets[0], offsets[-1])
        cells = values[parts].reshape(-1, *column.shape)
        return Block(cells, None if missing is None else missing[parts].reshape(cells.shape))
    places = offsets[:-1][~absent, None] + np.arange(column.size)
    cells = np.zeros((len(absent), column.size), dtype=values.dtype)
    cells[~absent] = values[places]
    if missing is not None:
        hidden = np.zeros(cells.shape, dtype=np.bool_)
        hidden[~absent] = missing[places]
        missing = hidden.reshape(-1, *column.shape)
    return Block(cells.reshape(-1, *column.shape), missing, absent)


def _nulls(values: Any) -> NDArray[np.bool_] | None:
    return values.is_null().to_numpy(zero_copy_only=False).astype(np.bool_) if values.null_count else None


def _either(first: NDArray[np.bool_] | None, second: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    return second if first is None else first if second is None else first | second


def _flat(values: Any) -> NDArray[Any]:
    """Arrow's numbers. One NULL would turn all whole numbers into floats, so NULLs are filled first."""
    cells: NDArray[Any] = (values.fill_null(0) if values.null_count else values).to_numpy(zero_copy_only=False)
    return cells if cells.dtype.kind in _NUMBERS else _refused()


def _refused() -> Any:
    raise TypeError


def _lists(column: ArrayColumn, chunk: Any) -> Iterable[Any]:
    """The same as Python's own lists. Arrow keeps no shape in a flat list, so it is given the column's."""
    for cell in getattr(chunk, "storage", chunk).to_pylist():
        flat = np.fromiter(_leaves(cell), dtype=object) if isinstance(cell, list) else np.zeros(0, dtype=object)
        yield flat.reshape(column.shape) if flat.size == column.size else None


def _leaves(cell: Any) -> Iterable[Any]:
    if not isinstance(cell, list):
        yield cell
        return
    for each in cell:
        yield from _leaves(each)


def read(column: ArrayColumn, given: Block) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The numbers of every row, within the bounds, and which rows hold an array at all."""
    cells, missing = given.cells, given.missing
    with np.errstate(all="ignore"):
        if cells.dtype.kind in _NUMBERS and _right(column, cells.shape[1:]):
            shape = (len(cells), *column.shape)
            missing = None if missing is None else missing.reshape(shape)
            values, valid = _numbers(column, cells.reshape(shape), missing), np.ones(len(cells), dtype=np.bool_)
        else:
            values, valid = _each(column, cells if cells.dtype.kind == "O" else np.full(len(cells), None))
    if given.absent is not None and given.absent.any():
        values = np.where(given.absent.reshape(-1, *[1] * len(column.shape)), column.rest, values)
        valid &= ~given.absent
    return values, valid


def _numbers(column: ArrayColumn, cells: NDArray[Any], missing: NDArray[np.bool_] | None) -> NDArray[Any]:
    low, high = column.ends
    if column.whole:
        values, there = rounded(cells)
        hidden = _either(None if there is None else ~there, missing)
    else:
        values, hidden = np.ascontiguousarray(cells, dtype=np.float32), missing
    if hidden is None and (not values.size or (low <= values.min() and values.max() <= high)):
        return np.ascontiguousarray(values)  # nan is not within bounds, so there is none
    if not column.whole:
        hidden = _either(hidden, np.isnan(values))
    clamped = np.clip(values, low, high)
    if hidden is not None and hidden.any():
        clamped[hidden] = column.rest
    return np.ascontiguousarray(clamped)


def rounded(cells: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Numbers as whole ones, halves to even; what int64 cannot hold as its end. And which are numbers; None for all."""
    kind = cells.dtype.kind
    if kind in "bi":
        return cells.astype(np.int64, copy=False), None
    if kind == "u":
        return np.minimum(cells.astype(np.uint64, copy=False), np.uint64(INT64[1])).astype(np.int64), None
    near = np.rint(cells.astype(np.float64))
    valid = ~np.isnan(near)
    below, above = near < -(2.0**63), near >= 2.0**63
    # A cast of what int64 cannot hold is undefined, so those cells are set by hand.
    values = np.where(valid & ~below & ~above, near, 0.0).astype(np.int64)
    values[below], values[above] = INT64
    return values, valid


def _each(column: ArrayColumn, cells: Iterable[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    rows = list(cells)
    values = np.full((len(rows), *column.shape), column.rest, dtype=column.dtype)
    valid = np.zeros(len(rows), dtype=np.bool_)
    for place, cell in enumerate(rows):
        valid[place] = fill(column, cell, values[place])
    return values, valid


def fill(column: ArrayColumn, cell: Any, into: NDArray[Any]) -> bool:
    """Read one cell into its place, and say whether it was an array of the column's shape. Never raises."""
    try:
        missing = np.ma.getmaskarray(cell).reshape(column.shape) if isinstance(cell, np.ma.MaskedArray) else None
        array = _array(cell)
        if not _right(column, array.shape) or array.dtype.kind not in "O" + _NUMBERS:
            return False
        array = array.reshape(column.shape)
        with np.errstate(all="ignore"):
            into[...] = _read_alone(column, array) if array.dtype.kind == "O" else _numbers(column, array, missing)
    except Exception:  # whatever a stranger's object does
        into[...] = column.rest
        return False
    return True


def _array(cell: Any) -> NDArray[Any]:
    cell = plain(cell)
    if isinstance(cell, list | tuple):
        found = np.asarray(cell, dtype=object)  # of one row: a number beside a NULL, or beside a text, is still one
        return found if found.dtype.kind == "O" else np.asarray(cell)
    return np.asarray(cell)


def _read_alone(column: ArrayColumn, array: NDArray[Any]) -> NDArray[Any]:
    """Objects one by one. What is no number is missing, also a text: arrays come from programs, not from hands."""
    kind: type[Any] = int if column.whole else float
    low, high = map(kind, column.ends)
    rest = kind(column.rest)

    def number(each: Any) -> Any:
        each = each.item() if hasattr(each, "item") else each
        if not isinstance(each, Real | Decimal) or each != each:
            return rest
        return low if each <= low else high if each >= high else round(each) if column.whole else float(each)

    return np.fromiter(map(number, array.flat), dtype=column.dtype, count=array.size).reshape(array.shape)
