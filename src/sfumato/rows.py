"""The core's data: numpy columns with null masks, read so that every row speaks only for itself.

Reading is total: whatever a cell holds, it becomes a value or a NULL. It never raises (a failure is one bit about the
data) and never changes how another row is read (that would make one row move many, and no sensitivity would hold).
So nothing is inferred from a column as a whole: what the cells are is decided by the column's type (`sfumato.cells`),
and its kind reads them (`sfumato.column_kinds`): arrays that numpy holds as numbers as one block, and everything else
cell by cell, each different one once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import tensors
from .cells import Raw
from .column_kinds import cell_values
from .column_kinds.cell_values import label_of
from .errors import ArgumentError, DataError, PlanError
from .owners import owner
from .schema import Column, Table
from .units import Unit

YES, NO = cell_values.YES, cell_values.NO


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Series:
    """One column: `values` (float64 for real, else int64) and `valid`; a slot that is not valid holds 0.

    A tensor column's values are an array of float32, or int64, in which the rows come first; all of them are within the
    bounds, and a row that is not valid is full of the column's `rest`. They may be the memory that the data came in.

    A real is not clamped yet and may be infinite, never nan. A whole is within its bounds. A category is its place
    among the categories, a flag 0 or 1, a key a code that is equal where keys are equal and means nothing else: even
    the order of codes is data. `keys` are the different cells of a key column, by code; `label` names them.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_]
    keys: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for name in ("values", "valid") if self.keys is None else ("values", "valid", "keys"):
            frozen = getattr(self, name).view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def keep(self, mask: NDArray[np.bool_]) -> Series:
        return Series(self.values[mask], self.valid[mask], self.keys)

    def label(self, codes: NDArray[np.int64]) -> list[int | float | str]:
        """The keys with these codes as plain values: 12 for 12, 12.0 and '12', whoever spelt it how; a float that is
        not whole; text for all else. Different keys have different labels, and no label depends on other rows."""
        if self.keys is None:
            raise PlanError("only a key column has keys")
        return [label_of(cell) for cell in self.keys[codes]]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Series of {self.values.dtype}>"


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of one table: a Series by column name, and for each row the code 0..unit_count-1 of its unit."""

    table: Table
    unit: Unit
    series: Mapping[str, Series]
    units: NDArray[np.int64]
    unit_count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", MappingProxyType(dict(self.series)))

    @classmethod
    def read(cls, table: Table, raw: Mapping[str, Any], unit: Unit) -> Rows:
        """Raw columns that the schema does not name are left alone. A row whose unit is NULL is nobody's: dropped."""
        check_unit(table, unit)
        cells = {name: _raw(raw, name, column) for name, column in table.columns.items()}
        lengths = {_length(each) for each in cells.values()}
        if len(lengths) != 1:
            raise DataError
        series = {name: Series(*column.of_kind.read(column, cells[name])) for name, column in table.columns.items()}
        count = lengths.pop()
        if unit.column is None:
            return cls(table, unit, series, _each_its_own(count), count)
        named = series[unit.column]
        # keep() makes the codes dense, so they may be anything here.
        return cls(table, unit, series, named.values, count).keep(named.valid)

    def keep(self, mask: Any) -> Rows:
        """The rows where `mask` is True. Rows of one unit stay rows of one unit; codes are dense again."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.ndim != 1:
            raise ArgumentError("mask is not allowed: give a one-dimensional array of booleans.")
        if len(chosen) != len(self):
            raise DataError
        series = {name: each.keep(chosen) for name, each in self.series.items()}
        if self.unit.column is None:
            count = int(chosen.sum())
            return Rows(self.table, self.unit, series, _each_its_own(count), count)
        present, units = np.unique(self.units[chosen], return_inverse=True)
        return Rows(self.table, self.unit, series, _frozen(units.reshape(-1).astype(np.int64)), len(present))

    def __getitem__(self, name: str) -> Series:
        self.table.column(name)
        return self.series[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.series)

    def __contains__(self, name: object) -> bool:
        return name in self.series

    def __len__(self) -> int:
        """The number of rows (not of columns)."""
        return len(self.units)

    def __repr__(self) -> str:
        return f"<Rows of table {self.table.name!r}: columns {', '.join(self.series)}>"


def check_unit(table: Table, unit: Unit) -> None:
    """Refuse a unit that the table does not name by its own column: compares public things only."""
    column = owner(table, unit)
    if table.leads is not None:
        raise PlanError(
            f"the rows of table {table.name!r} are owned by {table.leads}: plans that read rows look at one table, and "
            f"need the unit's own column {unit.column!r} there; SQL follows the key"
        )
    if column != unit.column:
        raise PlanError(
            f"the rows of table {table.name!r} are named by {table.unit!r}: plans that read rows need the unit's own "
            f"column {unit.column!r} there"
        )


_USUAL = 2**20  # up to so many rows share one array of what is the same for all tables


@lru_cache(maxsize=1)
def _usual() -> NDArray[np.int64]:
    return _frozen(np.arange(_USUAL))


def _each_its_own(count: int) -> NDArray[np.int64]:
    """The units of rows that are units: 0, 1, 2, ..."""
    return _usual()[:count] if count <= _USUAL else _frozen(np.arange(count))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _length(raw: tensors.Block | Raw) -> int:
    return len(raw) if isinstance(raw, Raw) else len(raw.cells)


def _raw(data: Mapping[str, Any], name: str, column: Column) -> Any:
    """One raw column as numpy holds it."""
    try:
        cells = data[name]
    except Exception:  # frames of different makers raise different errors here
        raise PlanError(f"the data has no column {name!r}, which the schema names") from None
    try:
        return column.of_kind.raw(column, cells)
    except Exception:
        raise DataError from None
