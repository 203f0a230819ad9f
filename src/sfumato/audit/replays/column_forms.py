"""How a program would hold the cells of a column, by kind: in numpy, in Arrow, and as what its makers do not take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import times
from ...schema import INT64, Column
from ...sources.base import needed

NO_TEXT, NO_MOMENT = b"\xff\xfe", 2**62


@dataclass(frozen=True)
class CellForm:
    """The cells of a column, as programs hold them.

    numpy  an array of cells, where None is NULL; `awkward` where cells may be anything
    type   its Arrow type
    cell   a raw cell of that type, as near to what is given as the type allows
    odd    a cell that makers of frames and files do not take, or take by mistake
    """

    numpy: Callable[[Column, list[Any], bool], Any]
    type: Callable[[Column, Any], Any]
    cell: Callable[[Column, Any], Any]
    odd: Any = None


def form_of(column: Column) -> CellForm:
    form = CELL_FORMS[column.type]
    return _LISTED[type(column.categories[0])] if column.categories else form


def in_numpy(column: Column, cells: list[Any], *, awkward: bool) -> Any:
    """Numbers, with nan for NULL, and objects."""
    return CELL_FORMS[column.type].numpy(column, cells, awkward)


def in_arrow(column: Column, cells: list[Any]) -> tuple[list[Any], Any]:
    """Raw cells, and their Arrow type."""
    form = form_of(column)
    return [form.cell(column, cell) for cell in cells], form.type(column, needed("pyarrow"))


def raw_text(cell: Any, *, valid: bool = False) -> bytes | None:
    """A text as bytes; `valid`, where the form holds no other, with a sign in the place of what is none."""
    if cell is None:
        return None
    raw = cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "replace").encode() if valid else raw


def as_objects(column: Column, cells: list[Any], awkward: bool) -> Any:
    objects = np.empty(len(cells), dtype=object)
    objects[:] = cells
    return objects


def _as_floats(column: Column, cells: list[Any], awkward: bool) -> Any:
    return np.array([np.nan if cell is None else float(cell) for cell in cells], dtype=np.float64)


def _as_wholes(column: Column, cells: list[Any], awkward: bool) -> Any:
    floats = _as_floats(column, cells, awkward)
    return floats if awkward else floats.astype(np.int64)


def _as_truths(column: Column, cells: list[Any], awkward: bool) -> Any:
    return as_objects(column, cells, awkward) if awkward else np.array(cells, dtype=np.bool_)


def _as_arrays(column: Any, cells: list[Any], awkward: bool) -> Any:
    full = [np.full(column.shape, np.nan) if cell is None else np.asarray(cell, dtype=np.float64) for cell in cells]
    return np.array(full).reshape(len(cells), *column.shape)


def _there(read: Callable[[Any], Any]) -> Callable[[Column, Any], Any]:
    """NaN is NULL, where a type does not hold it."""

    def cell_of(column: Column, cell: Any) -> Any:
        return None if cell is None or (isinstance(cell, float) and cell != cell) else read(cell)

    return cell_of


def _list_type(column: Any, arrow: Any) -> Any:
    return arrow.list_(arrow.float64(), column.size)


def _real_cell(column: Column, cell: Any) -> Any:
    return None if cell is None else float(cell)


def _flat_cell(column: Column, cell: Any) -> Any:
    return None if cell is None else np.asarray(cell, dtype=np.float64).ravel().tolist()


_TEXTS = CellForm(as_objects, lambda column, arrow: arrow.string(), _there(raw_text), NO_TEXT)
_WHOLES = CellForm(
    _as_wholes,
    lambda column, arrow: arrow.int64(),
    _there(lambda cell: int(min(max(cell, INT64[0]), INT64[1]))),
    INT64[1],
)
_TRUTHS = CellForm(_as_truths, lambda column, arrow: arrow.bool_(), _there(bool))
_TIMES = CellForm(
    as_objects,
    lambda column, arrow: arrow.timestamp("us"),
    _there(lambda cell: cell if isinstance(cell, int) else times.microseconds(cell)),
    NO_MOMENT,
)
_LISTED = {str: _TEXTS, int: _WHOLES, bool: _TRUTHS}  # the Arrow form of categories is that of their values

CELL_FORMS: dict[str, CellForm] = {
    "real": CellForm(_as_floats, lambda column, arrow: arrow.float64(), _real_cell, float("nan")),
    "whole": _WHOLES,
    "category": _TEXTS,
    "flag": _TRUTHS,
    "key": _TEXTS,
    "date": _TIMES,
    "moment": _TIMES,
    "tensor": CellForm(_as_arrays, _list_type, _flat_cell),
}
