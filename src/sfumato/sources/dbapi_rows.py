"""Rows between a driver by PEP 249 and Arrow: results batch by batch and column by column, public tables as one text.

A driver gives rows as tuples; they are turned into columns by `zip` and handed to Arrow, which converts a column at a
time. Only the driver itself loops over cells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import PlanError, guarded
from ..schema import Table
from .base import needed
from .frames import Frame
from .inferred_types import INTEGERS

_BATCH = 65_536
_MOST_CELLS = 2_000_000


def fetched(cursor: Any, kinds: Sequence[str | None] | None) -> Any:
    """All rows of a cursor that was asked, as an Arrow table. `kinds` has the types of its columns, where they are
    known: what a type is must not hang on the rows."""
    arrow = needed("pyarrow")
    names = [column[0] for column in cursor.description]
    kinds = list(kinds) if kinds is not None and len(kinds) == len(names) else [None] * len(names)
    pieces: list[list[Any]] = [[] for _ in names]
    while rows := cursor.fetchmany(_BATCH):
        for piece, cells in zip(pieces, zip(*rows, strict=True), strict=True):
            piece.append(cells)
    scales = [column[5] for column in cursor.description]
    columns = [
        arrow.chunked_array([_column(cells, _type(kind, scale)) for cells in piece or [()]])
        for piece, kind, scale in zip(pieces, kinds, scales, strict=True)
    ]
    return arrow.Table.from_arrays(columns, names=names)


def _type(kind: str | None, scale: Any) -> Any:
    arrow = needed("pyarrow")
    if kind in INTEGERS:
        return arrow.int64()
    if kind == "DECIMAL":
        return arrow.decimal128(38, scale) if isinstance(scale, int) and 0 <= scale <= 38 else None
    named = {
        "INT128": arrow.decimal128(38, 0), "DOUBLE": arrow.float64(), "BOOLEAN": arrow.bool_(), "DATE": arrow.date32(),
        "VARCHAR": arrow.string(), "TIMESTAMP": arrow.timestamp("us"),
    }  # fmt: skip
    return named.get(kind or "")


def _column(cells: Sequence[Any], kind: Any) -> Any:
    arrow = needed("pyarrow")
    if kind is None:
        inferred = arrow.array(cells)
        return inferred.cast(arrow.int64()) if inferred.type == arrow.null() else inferred
    try:
        return arrow.array(cells, type=kind)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        # Truth values as 1 and 0, whole numbers as decimals or texts: what the driver has in place of the type.
        return arrow.array(cells).cast(kind)


def sent(table: Table, source: Frame, *, flagged: bool) -> tuple[str, dict[str, str], dict[str, str], dict[str, Any]]:
    """A public table in memory: its rows as one JSON text, whose cells are texts or null; by column of the schema, how
    the cells are called there; by column, how the cells are called that say whether there was one; and the cells' types
    in Arrow."""
    arrow = needed("pyarrow")
    cells, flags = ([f"{sign}{place}" for place in range(len(table.columns))] for sign in ("c", "t"))
    source.check(table)
    rows = guarded(lambda: source.arrow(table, cells, flags if flagged else None))
    if rows.num_rows * rows.num_columns > _MOST_CELLS:
        raise PlanError(
            f"table {table.name!r} in memory is too large to be sent with each statement: store it in the database"
        )
    types = {name: rows.column(name).type for name in rows.column_names}
    texts = guarded(lambda: [_texts(rows.column(name), arrow) for name in rows.column_names])
    written = json.dumps(list(zip(*texts, strict=True)) if texts else [])
    there = {column: flag for column, flag in zip(table.columns, flags, strict=True) if flag in types}
    return written, dict(zip(table.columns, cells, strict=True)), there, types


def _texts(column: Any, arrow: Any) -> list[str | None]:
    kind = column.type
    if arrow.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if arrow.types.is_boolean(kind):
        column = column.cast(arrow.int8())
    texts: list[str | None] = column.cast(arrow.large_string()).to_pylist()
    return texts


def type_sent(kind: Any) -> tuple[str, tuple[int, int] | None]:
    """The type of the vocabulary that a column in memory is sent as; of a decimal, its digits."""
    types = needed("pyarrow").types
    if types.is_boolean(kind):
        return "BOOLEAN", None
    if str(kind) == "uint64":
        return "DECIMAL", (20, 0)
    if types.is_integer(kind):
        return "BIGINT", None
    if types.is_floating(kind):
        return "DOUBLE", None
    if types.is_decimal(kind):
        return "DECIMAL", (kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return "TIMESTAMP", None
    return ("DATE", None) if types.is_date(kind) else ("VARCHAR", None)
