"""Rows between a PostgreSQL server and Arrow: results as it writes them into CSV, and public tables as arrays.

Neither loops over cells here: Arrow reads the CSV, with the types that the server told before it ran anything, and
writes the arrays.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..errors import PlanError, guarded
from ..schema import Table
from .base import literal, needed, quoted
from .frames import Frame
from .postgres_cells import cell_of
from .raw_cells import Cell
from .session import RawTable

Field = tuple[str, Any]
_MOST_CELLS = 2_000_000
_OF_ARROW = {
    "bool": ("BOOLEAN", "bool"), "double": ("DOUBLE PRECISION", "float8"), "float": ("DOUBLE PRECISION", "float8"),
    "halffloat": ("DOUBLE PRECISION", "float8"), "date32[day]": ("DATE", "date"), "uint64": ("DECIMAL", "numeric"),
}  # fmt: skip
_POINT = b"sfumato_bind"


def described(opened: Any, text: str) -> tuple[bytes, list[Field]] | str:
    """The statement and its columns, as the server reads it without planning or running it; an SQLSTATE where it does
    not take it."""
    pq, wire = needed("psycopg").pq, opened.pgconn
    if "\0" in text:  # which would end the statement before its end
        return "22021"
    full = text.encode()
    opened.execute(b"SAVEPOINT " + _POINT)
    result = _answer(opened, lambda: wire.send_prepare(b"", full))
    if result.status != pq.ExecStatus.COMMAND_OK:
        state: bytes | None = result.error_field(pq.DiagnosticField.SQLSTATE)
        opened.execute(b"ROLLBACK TO SAVEPOINT " + _POINT)
        return (state or b"").decode("ascii")
    result = _answer(opened, lambda: wire.send_describe_prepared(b""))
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise ConnectionError
    fields = [
        ((result.fname(place) or b"").decode(), _arrow_type(result.ftype(place), result.fmod(place)))
        for place in range(result.nfields)
    ]
    opened.execute(b"RELEASE SAVEPOINT " + _POINT)
    return full, fields


def _answer(opened: Any, ask: Callable[[], None]) -> Any:
    """Of a question of the wire's own. Its short forms wait in C and hold on to the interpreter meanwhile: a server
    that does not answer would stop every other thread, and Ctrl-C."""
    ask()
    return opened.wait(needed("psycopg.generators").execute(opened.pgconn))[-1]


def _arrow_type(oid: int, typmod: int) -> Any:
    arrow = needed("pyarrow")
    if oid == 1700:
        places = 0 if typmod < 4 else ((typmod - 4 & 0x7FF) ^ 1024) - 1024
        return arrow.decimal128(38, max(places, 0))
    by_oid = {
        16: arrow.bool_(), 21: arrow.int16(), 23: arrow.int32(), 20: arrow.int64(), 700: arrow.float64(),
        701: arrow.float64(), 1082: arrow.date32(), 1114: arrow.timestamp("us"),
    }  # fmt: skip
    return by_oid.get(oid, arrow.string())


def arrow_of(written: bytes, fields: list[Field]) -> Any:
    """The rows of a result. NULL is nothing between delimiters, and an empty text is two quotes."""
    arrow, csv = needed("pyarrow"), needed("pyarrow.csv")
    places = {f"c{place}": kind for place, (_, kind) in enumerate(fields)}
    if written:
        rows = csv.read_csv(
            io.BytesIO(written),
            read_options=csv.ReadOptions(column_names=list(places), use_threads=False),
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=places, null_values=[""], true_values=["t"], false_values=["f"], strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    else:
        rows = arrow.schema(list(places.items())).empty_table()
    return rows.rename_columns([name for name, _ in fields])


def sent(table: Table, source: Frame, *, flagged: bool) -> RawTable:
    """A table in memory as arrays that stand in the statement itself, cell by cell as text."""
    cells, flags = ([f"{sign}{place}" for place in range(len(table.columns))] for sign in ("c", "t"))
    source.check(table)
    rows = guarded(lambda: source.arrow(table, cells, flags if flagged else None))
    if rows.num_rows * rows.num_columns > _MOST_CELLS:
        raise PlanError(
            f"table {table.name!r} in memory is too large to be sent with each statement: store it in the database"
        )
    arrays, columns = [], {}
    for name in rows.column_names:
        type_, cell = _column(table, rows.column(name), quoted(name))
        texts = guarded(lambda name=name: _array(rows.column(name)))  # type: ignore[misc]
        arrays.append(f"CAST({literal(texts)} AS {type_}[])")
        columns[name] = cell
    shown = {
        column: replace(columns[cell], there=f"COALESCE({quoted(flag)}, FALSE)") if flag in columns else columns[cell]
        for column, cell, flag in zip(table.columns, cells, flags, strict=True)
    }
    return RawTable(f"UNNEST({', '.join(arrays)}) AS _sent ({', '.join(map(quoted, rows.column_names))})", shown)


def _column(table: Table, column: Any, raw: str) -> tuple[str, Cell]:
    types, kind = needed("pyarrow").types, column.type
    type_, own, digits = "TEXT", "text", None
    if str(kind) in _OF_ARROW:
        type_, own = _OF_ARROW[str(kind)]
        digits = (20, 0) if own == "numeric" else None
    elif types.is_integer(kind):
        type_, own = "BIGINT", "int8"
    elif types.is_decimal(kind):
        type_, own, digits = "DECIMAL", "numeric", (kind.precision, kind.scale)
    elif types.is_timestamp(kind):
        type_, own = "TIMESTAMP", "timestamp"
    cell = cell_of(raw, own, digits)
    if cell is None:
        raise PlanError(f"table {table.name!r} in memory has a column of a type that is not sent to a server")
    return type_, cell


def _array(column: Any) -> str:
    """An array as the server reads it. Texts that hold the sign of number 0, which it cannot store, are NULL."""
    arrow, compute = needed("pyarrow"), needed("pyarrow.compute")
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type)
    texts = column.cast(arrow.large_string())
    if is_text:
        texts = compute.if_else(compute.match_substring(texts, "\0"), arrow.scalar(None, arrow.large_string()), texts)
        for sign in ("\\", '"'):
            texts = compute.replace_substring(texts, sign, "\\" + sign)
        quote, nothing = (arrow.scalar(sign, arrow.large_string()) for sign in ('"', ""))
        texts = compute.binary_join_element_wise(quote, texts, quote, nothing)
    return "{" + ",".join(compute.fill_null(texts, "NULL").to_pylist()) + "}"
