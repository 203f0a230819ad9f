"""Tables in databases for the tests: made by an administrator, read by an account that may do no more."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from sfumato import record
from sfumato.schema import Table
from sfumato.sources import DatabaseTable, Source, connect
from sfumato.sources.clickhouse_numbers import quoted_text
from tests.query.still import Still
from tests.sources.dbapi import clickhouse_engine, mariadb_server

_NAMES = itertools.count()
_TYPES = {
    "int8": "tinyint", "uint8": "tinyint unsigned", "uint16": "smallint unsigned", "uint32": "int unsigned",
    "uint64": "bigint unsigned", "null": "longtext",
    "int64": "bigint", "int32": "int", "int16": "smallint", "double": "double", "float": "float", "bool": "boolean",
    "date32[day]": "date", "timestamp[us]": "datetime(6)", "string": "longtext",
}  # fmt: skip


def named(opens: Callable[[], Any]) -> str:
    """The name by which a source finds this function."""
    name = f"opens_{next(_NAMES)}"
    setattr(sys.modules[__name__], name, opens)
    return f"{__name__}:{name}"


def database() -> str:
    """A new database."""
    name = f"clinic_{next(_NAMES)}"
    mariadb_server.run(f"CREATE DATABASE {name}")
    return name


def account(*grants: str, name: str = "reader") -> str:
    """What opens connections of an account that may do no more than these grants say."""
    mariadb_server.run(
        f"CREATE USER IF NOT EXISTS {name}@localhost", *(f"GRANT {grant} TO {name}@localhost" for grant in grants)
    )
    return _opening(name)


@functools.cache
def _opening(name: str) -> str:
    return named(lambda: mariadb_server.opened(name))


def create(place: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], more: str = "") -> None:
    opened = mariadb_server.opened(database=place)
    try:
        with opened.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES,ALLOW_INVALID_DATES'")
            cursor.execute(f"CREATE TABLE {table} ({', '.join(columns)}) {more}")
            if rows:
                cursor.executemany(
                    f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})",
                    [tuple(map(_held, row)) for row in rows],
                )
    finally:
        opened.close()


def _held(cell: Any) -> Any:
    """MariaDB has no infinity, and no NaN."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else math.copysign(sys.float_info.max, cell)
    return cell


def store(place: str, table: str, rows: pa.Table) -> DatabaseTable:
    """A table with these rows, read by an account that may read it."""
    columns = [f'"{field.name}" {_TYPES[str(field.type)]}' for field in rows.schema]
    create(place, table, columns, list(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
    return DatabaseTable(account(f"SELECT ON {place}.*"), f"{place}.{table}")


_OF_CLICKHOUSE = {
    "int8": "Int8", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "null": "String",
    "int64": "Int64", "int32": "Int32", "int16": "Int16", "double": "Float64", "bool": "Bool",
    "date32[day]": "Date32", "timestamp[us]": "DateTime64(6, 'UTC')", "string": "String",
}  # fmt: skip


def clickhouse_table(name: str, columns: str, more: str = "ENGINE = MergeTree ORDER BY tuple()") -> DatabaseTable:
    """A new table of ClickHouse."""
    clickhouse_engine.run(f"CREATE TABLE {name} ({columns}) {more}")
    return clickhouse(name)


def clickhouse(name: str) -> DatabaseTable:
    return DatabaseTable(f"{__name__}:_open_clickhouse", name, dialect="clickhouse")


def _open_clickhouse() -> Any:
    return clickhouse_engine.opened()


def store_in_clickhouse(rows: pa.Table) -> DatabaseTable:
    """A new table of ClickHouse with these rows."""
    name = f"stored_{next(_NAMES)}"
    columns = ", ".join(f"`{field.name}` Nullable({_OF_CLICKHOUSE[str(field.type)]})" for field in rows.schema)
    table = clickhouse_table(name, columns)
    listed = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    values = ", ".join(f"({', '.join(map(_constant, row))})" for row in listed)
    if values:
        clickhouse_engine.run(f"INSERT INTO {name} VALUES {values}")
    return table


def _constant(cell: Any) -> str:
    if cell is None:
        return "NULL"
    return repr(cell) if isinstance(cell, int | float) else quoted_text(str(cell))


def before_noise(plan: Any, tables: dict[str, tuple[Table, Source]]) -> bytes:
    opened = connect(tables, threads=1)
    try:
        return record.canonical(plan._run(opened, SimpleNamespace(noise=Still())))
    finally:
        opened.close()
