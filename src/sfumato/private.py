"""Sensitive data behind the door. Only a Curator opens it, and only with a receipt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checks
from .address import Address
from .errors import PlanError, ReceiptError
from .plan import Receipt
from .rows import Rows, Series, check_unit
from .schema import Schema, Table
from .units import Unit


class Private:
    """Sensitive data behind the door: its name, unit and schema are public, its rows are not.

    columns  numpy arrays, lists, or a frame, by column name; read only when a paid plan runs
    version  name it anew when the data changes: the same plan on the same version is answered from the store
    block    the column that says which block (a day, a month) a row belongs to, where blocks have budgets of their own
    """

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Any],
        *,
        unit: Unit,
        schema: Schema,
        version: str = "1",
        block: str | None = None,
    ) -> None:
        self.name = checks.label(name, "name")
        self.version = checks.label(version, "version")
        if not isinstance(unit, Unit):
            raise checks.refuse("unit", unit, "a Unit, such as Unit() or Unit('user:patient')")
        if not isinstance(schema, Schema):
            raise checks.refuse("schema", schema, "a Schema, such as Schema.of(age=real(0, 120))")
        self.unit = unit
        self.schema = schema
        self.table: Table = schema.table()
        if self.table.unit is not None and unit.column is None:
            raise PlanError(
                f"the schema says that {self.table.unit!r} names the unit, but the unit given is a row: use "
                f"Unit('user:{self.table.unit}'), or leave the unit out of the schema to protect single rows"
            )
        check_unit(self.table, unit)
        given = _names(columns)
        for column in self.table.columns:
            if column not in given:
                raise PlanError(f"the data has no column {column!r}, which the schema names")
        self._columns = columns
        self._block = block
        self.blocks = () if block is None else _categories(self.table, block)
        if block is not None and unit.change != "add-remove":
            # A replaced or blanked row may leave its block, so that rows would come and go.
            raise checks.refuse("unit", unit, "a unit that is added or removed, where data has blocks")

    def of_blocks(self, *blocks: str) -> Private:
        """The same data, rows of these blocks only: a release on it is charged to them, and to no other block."""
        if not blocks or self._block is None or not set(blocks) <= set(self.blocks):
            raise checks.refuse("blocks", blocks, f"blocks of this data: {', '.join(self.blocks) or 'it has none'}")
        part = object.__new__(type(self))  # not copy.copy: private data is not copied
        part.__dict__ |= self.__dict__
        part.blocks = tuple(block for block in self.blocks if block in blocks)
        return part

    def _open(self, receipt: Receipt) -> Rows:
        """The only way to the data. Called by a Curator, with a receipt for this data."""
        if not isinstance(receipt, Receipt) or receipt.data != self.address or receipt.unit != self.unit:
            raise ReceiptError("the data opens only with a receipt that was paid for it")
        rows = Rows.read(self.table, self._columns, self.unit)
        return rows if self._block is None else rows.keep(self._in_blocks(rows[self._block]))

    def _in_blocks(self, cells: Series) -> NDArray[np.bool_]:
        """A row whose block is NULL, or none that is known, is in no block: nobody is charged for it."""
        assert self._block is not None
        known = self.table.column(self._block).categories
        read = np.array([str(block) in self.blocks for block in known])
        return cells.valid & read[cells.values]

    @property
    def address(self) -> str:
        """Name, version and blocks in one text that no others share."""
        return str(Address(self.name, self.version, self.blocks))

    def __repr__(self) -> str:
        return f"<Private {self.name} version {self.version}: {', '.join(self.table.columns)}; hides {self.unit}>"

    def __reduce__(self) -> Any:
        raise TypeError("private data is not pickled or copied: pass the source it came from")


def _names(columns: Any) -> Collection[Any]:
    """The column names of a mapping or a frame (Arrow, Polars), without a look at the columns."""
    for attribute in ("column_names", "columns"):
        if hasattr(columns, attribute):
            return tuple(getattr(columns, attribute))
    return tuple(columns)


def _categories(table: Table, column: str) -> tuple[str, ...]:
    """The blocks that a column tells apart: its public categories."""
    given = table.column(column)
    if given.type != "category" or not given.categories:
        raise checks.refuse("block", column, "a column with public categories, one for each block")
    return tuple(str(each) for each in given.categories)
