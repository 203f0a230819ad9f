"""Records that come one by one: torch's data sets of map style, and whatever else has a length and places.

All records are read when a paid plan opens the data, into one array per column. A record that cannot be read, or that
raises, is a row of NULLs: it neither fails the release nor moves another row. Torch is known by its names: whoever has
no torch does not need it, and whoever has it gets no copy of his tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import checks, tensors
from ..errors import PlanError
from ..schema import Table, TensorColumn
from .base import Source

_LOADERS = ("DataLoader", "IterableDataset", "Sampler", "_BaseDataLoaderIter")
_OTHERS = ("__array__", "__arrow_c_stream__", "__dataframe__", "keys", "columns")  # of tables and arrays
_STRANGERS = ("builtins", "collections", "array", "torch", __package__.partition(".")[0])  # have places, too
_INSTEAD = (
    "the data set itself, with len() and [place] (such as loader.dataset), or its tensors by column: batches are drawn "
    "here, from the secure source; what another loader or a stream hands out is no Poisson sample"
)


def is_examples(given: Any) -> bool:
    """Has this the form of a data set of map style? Asks its type only. A loader or stream is refused by name."""
    kinds = [kind for kind in type(given).__mro__ if kind.__module__.startswith("torch.utils.data")]
    if any(kind.__name__ in _LOADERS for kind in kinds):
        raise checks.refuse("source", type(given), _INSTEAD)
    if kinds:
        return True
    kind = type(given)
    if isinstance(given, str | bytes | tuple | list) or kind.__module__.partition(".")[0] in _STRANGERS:
        return False
    return _has_places(kind) and not any(hasattr(kind, name) for name in _OTHERS)


def _has_places(kind: type) -> bool:
    return all(hasattr(kind, name) for name in ("__len__", "__getitem__"))


@dataclass(frozen=True, eq=False, repr=False)
class Examples(Source):
    """A data set of map style: `len(items)`, and `items[place]` for each of its records.

    A record is a tuple of cells in the order of the schema's columns, a mapping of cells by column name, or, where the
    schema has one column, the cell itself. What a record is must depend on its own data alone. A transformation that
    draws by chance draws once for each record, when the data is opened.
    """

    items: Any

    def __post_init__(self) -> None:
        if not _has_places(type(self.items)):
            raise checks.refuse("items", type(self.items), "records with len() and [place]")

    def __repr__(self) -> str:
        return f"<Examples of a {type(self.items).__name__}>"

    def check(self, table: Table) -> None:
        """Refuse tensors that are not the schema's columns, one after the other; compares their shapes only."""
        whole = _whole(self.items)
        if whole is None:
            return
        if len(whole) != len(table.columns):
            columns = ", ".join(map(repr, table.columns))
            raise PlanError(f"the data of table {table.name!r} has {len(whole)} tensors for the columns {columns}")
        check_shapes(table, dict(zip(table.columns, whole, strict=True)))

    def emptied(self, table: Table) -> Source:
        return Examples(())

    def columns(self, table: Table) -> Mapping[str, Any]:
        """All records, as raw columns by name."""
        whole = _taken(self.items)
        if whole is not None and len(whole) == len(table.columns):
            return dict(zip(table.columns, whole, strict=True))
        count, names = len(self.items), list(table.columns)
        into = {name: _Place(column, count) for name, column in table.columns.items()}
        for place in range(count):
            for name, cell in _record(self.items, place, names).items():
                into[name].put(place, cell)
        return {name: each.raw() for name, each in into.items()}


def check_shapes(table: Table, columns: Mapping[str, Any]) -> None:
    """Refuse arrays whose type or shape shows that they are not what the schema says; no cell is looked at."""
    for name, column in table.columns.items():
        given = columns[name]
        if isinstance(column, TensorColumn):
            wrong = tensors.misfit(column, given)
        else:
            many = (tensors.is_torch(given) or isinstance(given, np.ndarray)) and given.ndim > 1
            wrong = "each of its rows is an array: squeeze it, or declare it with schema.tensor" if many else None
        if wrong is not None:
            raise PlanError(f"column {name!r} of table {table.name!r} does not fit the schema: {wrong}")


def _kind(given: Any) -> str:
    """The name of a class of torch itself. One that somebody made of it may hand out other records."""
    return type(given).__name__ if type(given).__module__ == "torch.utils.data.dataset" else ""


def _whole(items: Any) -> tuple[Any, ...] | None:
    """The tensors that hold all records, where the data set is nothing more than tensors, or a part of such a one."""
    if _kind(items) == "Subset":
        return _whole(items.dataset)
    return tuple(items.tensors) if _kind(items) == "TensorDataset" else None


def _taken(items: Any) -> tuple[Any, ...] | None:
    """The same, with the records of this part alone."""
    if _kind(items) != "Subset":
        return _whole(items)
    inside = _taken(items.dataset)
    if inside is None:
        return None
    try:
        places = np.fromiter(items.indices, dtype=np.int64)
        return tuple(tensor[places] for tensor in inside)
    except Exception:  # a place that is not there: one by one, where it is one row of NULLs
        return None


def _record(items: Any, place: int, names: list[str]) -> Mapping[str, Any]:
    """The cells of one record by column; none where there is no such record."""
    try:
        item = items[place]
        if isinstance(item, Mapping):
            return {name: item[name] for name in names if name in item}
        if isinstance(item, tuple | list) and len(item) == len(names):
            return dict(zip(names, item, strict=True))
        return {names[0]: item} if len(names) == 1 else {}
    except Exception:  # its text may hold the record
        return {}


class _Place:
    """Where the cells of one column go: a stacked array, or a list of objects. What is not put there is NULL."""

    def __init__(self, column: Any, count: int) -> None:
        self._column = column if isinstance(column, TensorColumn) else None
        self._absent = np.ones(count, dtype=np.bool_)
        if self._column is None:
            self._cells = np.full(count, None)
        else:
            self._cells = np.full((count, *column.shape), column.rest, dtype=column.dtype)

    def put(self, place: int, cell: Any) -> None:
        if self._column is None:
            self._cells[place] = _single(cell)
        else:
            self._absent[place] = not tensors.fill(self._column, cell, self._cells[place])

    def raw(self) -> Any:
        return self._cells if self._column is None else tensors.Block(self._cells, None, self._absent)


def _single(cell: Any) -> Any:
    """The one value of a tensor or array that holds one; other cells as they are."""
    try:
        cell = tensors.plain(cell)
        return cell.item() if isinstance(cell, np.ndarray) and cell.size == 1 else cell
    except Exception:  # whatever a stranger's object does
        return None
