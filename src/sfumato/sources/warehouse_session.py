"""A session in Snowflake, BigQuery, Trino or SQL Server, for people who say that they know it was never run by us.

It reads whole numbers, doubles, truth values, days and texts of base tables, as their information_schema tells them. It
opens no transaction and no snapshot: nobody may write to a table while a release reads it. Binding asks for the
statement over views without rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import PlanError
from ..schema import Table
from .dbapi_server import NOT_RUN, DatabaseServer
from .dbapi_session import STORE, DatabaseSession, refuse_lacking, refuse_type
from .raw_cells import Cell
from .session import RawTable
from .warehouses import BIGQUERY, SNOWFLAKE, SQL_SERVER, TRINO, WAREHOUSES

_BITS = {"tinyint": 8, "smallint": 16, "integer": 32, "int": 32, "bigint": 64, "int64": 64}
_DOUBLES = ("double", "float", "float64", "double precision", "real")
_TEXTS = ("varchar", "text", "string")
_UNPADDED = {"snowflake": "COLLATE({0}, 'utf8')", "bigquery": "COLLATE({0}, '')", "trino": "{0}"}
"""Texts by their bytes, whatever the column says."""
_NOT_A_NUMBER = {
    "snowflake": "{0} = 'NaN'::DOUBLE", "bigquery": "IS_NAN({0})", "trino": "is_nan({0})", "tsql": "1 = 0"
}  # fmt: skip


class WarehouseSession(DatabaseSession):
    """Base tables, through any driver that takes one statement as a text."""

    def _set_up(self) -> None:
        if self._ask("SELECT 1") != [(1,)]:
            raise ValueError

    def _reached(self, table: Table, parts: tuple[str, ...]) -> RawTable:
        if len(parts) not in (2, 3):
            raise PlanError(
                f"the name of table {table.name!r} is not whole: give 'clinic.visits', or 'hospital.clinic.visits'"
            )
        listed_tables, columns = self._catalogue(parts)
        if not listed_tables:
            raise PlanError(
                f"the database has no table {'.'.join(parts)!r} for table {table.name!r}, or the account may not read "
                "it"
            )
        if str(listed_tables[0][0]).upper() != "BASE TABLE":
            raise PlanError(
                f"table {table.name!r} is no base table there, and may compute over all rows at once: {STORE}"
            )
        cells = {column: self._cell_of(table, column, columns) for column in table.columns}
        return RawTable(".".join(map(self._own_quotes, parts)), cells)

    def _catalogue(self, parts: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
        *outer, schema, name = parts
        inside = ".".join(map(self._own_quotes, outer if self.dialect != "bigquery" else (*outer, schema)))
        place = f"{inside}.INFORMATION_SCHEMA" if inside else "INFORMATION_SCHEMA"
        where = f"table_schema = {_literal(schema)} AND table_name = {_literal(name)}"
        with contextlib.suppress(Exception):
            listed_tables = self._ask(f"SELECT table_type FROM {place}.TABLES WHERE {where}")
            columns = self._ask(f"SELECT column_name, data_type FROM {place}.COLUMNS WHERE {where}")
            return listed_tables, {str(column[0]): str(column[1]).lower() for column in columns}
        raise PlanError("the database does not answer, or the account may not look into its information_schema")

    def _cell_of(self, table: Table, column: str, columns: Mapping[str, str]) -> Cell:
        names = [name for name in columns if name.lower() == column.lower()]
        if len(names) != 1:
            raise refuse_lacking(table, column)
        raw, type_ = self._own_quotes(names[0]), columns[names[0]].split("(")[0].strip()
        there = f"({raw} IS NOT NULL)"
        own = WAREHOUSES[self.dialect].own
        if type_ in _BITS:
            if self.dialect == "tsql" and type_ == "tinyint":
                return Cell(f"CAST({raw} AS BIGINT)", "whole", there, span=(0, 255))
            bits = _BITS[type_]
            return Cell(
                f"CAST({raw} AS {own['BIGINT']})", "whole", there, span=(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            )
        if type_ in _DOUBLES:
            nan = _NOT_A_NUMBER[self.dialect].format(raw)
            number = f"CASE WHEN NOT ({nan}) THEN CAST({raw} AS {own['DOUBLE']}) END"
            return Cell(number, "float", f"({raw} IS NOT NULL)")
        if type_ in ("boolean", "bool") and "BOOLEAN" in own:
            return Cell(raw, "flag", there)
        if type_ in _TEXTS and "VARCHAR" in own:
            return Cell(_UNPADDED[self.dialect].format(raw), "text", there)
        if type_ == "date":
            return Cell(raw, "day", there)
        raise refuse_type(table, column, type_)

    def _describe(self, text: str) -> None:
        self._ask(text)

    def _sent(self, written: str, types: Mapping[str, Any]) -> tuple[str, Mapping[str, Cell]]:
        raise PlanError(f"no table in memory is sent to {self.lowering.name}: store it in the database")


def _literal(text: str) -> str:
    if "\\" in text:
        raise PlanError("a name with a backslash is not asked for there: call the table something else")
    return "'" + text.replace("'", "''") + "'"


class SnowflakeSession(WarehouseSession):
    lowering: ClassVar = SNOWFLAKE


class BigQuerySession(WarehouseSession):
    lowering: ClassVar = BIGQUERY


class TrinoSession(WarehouseSession):
    lowering: ClassVar = TRINO


class SqlServerSession(WarehouseSession):
    lowering: ClassVar = SQL_SERVER


_SESSIONS = (SnowflakeSession, BigQuerySession, TrinoSession, SqlServerSession)
DatabaseServer.opens |= dict(zip(NOT_RUN, _SESSIONS, strict=True))
