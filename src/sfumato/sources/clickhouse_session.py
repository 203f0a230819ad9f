"""One session in ClickHouse, a server or the library `chdb`, through any driver that takes one statement as a text.

Each statement sees the parts of a table that were there when it began: there is no snapshot over several. So nobody may
write to a table while a release reads it; `docs/promise.md` says so.

Binding is DESCRIBE, which computes scalar subqueries on its way: the views that it is asked over have no rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import PlanError
from ..schema import Table
from .clickhouse import CLICKHOUSE
from .clickhouse_cells import cell_of, sent_cell
from .clickhouse_numbers import quoted_text
from .clickhouse_settings import BEHIND
from .dbapi_rows import fetched, type_sent
from .dbapi_server import DatabaseServer
from .dbapi_session import STORE, DatabaseSession, refuse_computed, refuse_lacking, refuse_type
from .raw_cells import Cell
from .reading import RAW, Reading
from .session import RawTable

_PLAIN = ("MergeTree", "ReplicatedMergeTree", "SharedMergeTree", "Memory", "Log", "TinyLog", "StripeLog")
_PROBE = "SELECT toString(toDate32('0001-01-01')), toString(least(NULL, 1)), toString(toDate32('9999-12-31'))"


class ClickHouseSession(DatabaseSession):
    """Tables of ClickHouse that hold the rows which were written, as they were written."""

    lowering = CLICKHOUSE

    def _behind(self) -> str:
        more = ""
        if self._settings.seconds is not None:
            more += f", max_execution_time = {max(self._settings.seconds, 0.001):.3f}"
        if self._settings.threads is not None:
            more += f", max_threads = {self._settings.threads}"
        if self._settings.memory is not None:
            more += f", max_memory_usage = {self._settings.memory}"
        return BEHIND + more

    def _set_up(self) -> None:
        if self._ask(_PROBE + self._behind()) != [("0001-01-01", "1", "9999-12-31")]:
            raise ValueError  # days of other centuries would be taken for those of this one

    def _not_set_up(self) -> str:
        return (
            f"{super()._not_set_up()}, or its days do not reach from the year 1 to 9999: use a version from 26 on, and "
            "an account that may change settings"
        )

    def _reached(self, table: Table, parts: tuple[str, ...]) -> RawTable:
        shown = ".".join(parts)
        engine, database, policies, columns = self._catalogue(table, parts)
        if engine is None:
            raise PlanError(
                f"the database has no table {shown!r} for table {table.name!r}, or the account may not read it: "
                "correct the name, or grant SELECT on the table"
            )
        if engine not in _PLAIN:
            raise PlanError(
                f"table {table.name!r} is held by the engine {engine!r}, which computes rows when they are read, "
                f"merges them later, or reads from elsewhere: {STORE}, ENGINE = MergeTree"
            )
        if policies:
            raise PlanError(
                f"table {table.name!r} has policies on rows, which may look at other rows and hide some: give a table "
                "of the rows that are meant"
            )
        cells = {column: _cell_of(table, column, columns) for column in table.columns}
        return RawTable(f"{_quoted(database)}.{_quoted(parts[-1])}", cells)

    def _catalogue(self, table: Table, parts: tuple[str, ...]) -> tuple[Any, str, int, dict[str, Any]]:
        if len(parts) > 2:
            raise PlanError(f"the name of table {table.name!r} has too many parts: give 'database.table'")
        with contextlib.suppress(Exception):
            database = parts[0] if len(parts) == 2 else str(self._ask("SELECT currentDatabase()")[0][0])
            name = quoted_text(parts[-1])
            listed_tables = self._ask(
                f"SELECT engine FROM system.tables WHERE database = {quoted_text(database)} AND name = {name} "
                "AND NOT is_temporary"
            )
            if not listed_tables:
                return None, database, 0, {}
            policies = 0
            if not type(self._opened).__module__.startswith(
                "chdb"
            ):  # the library has no accounts, and shows no policies
                ((policies,),) = self._ask(
                    f"SELECT toInt32(count()) FROM system.row_policies WHERE database = {quoted_text(database)} "
                    f"AND table IN ({name}, '*', '')"
                )
            columns = self._ask(
                f"SELECT name, type, default_kind FROM system.columns WHERE database = {quoted_text(database)} "
                f"AND table = {name}"
            )
            return listed_tables[0][0], database, int(policies), {str(column[0]): column for column in columns}
        raise PlanError(
            "the database does not answer, or the account may not look into its catalogue: grant SELECT on "
            "system.tables, system.columns and system.row_policies, and SHOW ROW POLICIES"
        )

    def _read(self, name: str, column: str, cell: Cell, x: str) -> Reading:
        """What a decimal is the views' words must know: it is cast to integers in another way than doubles are."""
        read = super()._read(name, column, cell, x)
        if cell.kind != "decimal":
            return read
        as_decimal = f"whole_or_null(CAST({RAW} AS DECIMAL(38, {cell.places})))"
        return replace(read, cell=read.cell.replace(f"whole_or_null({RAW})", as_decimal))

    def _describe(self, text: str) -> None:
        self._ask(f"DESCRIBE TABLE ({text}){self._behind()}")

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        cursor = self._opened.cursor()
        try:
            cursor.execute(bound + self._behind())
            return fetched(cursor, self._kinds.get(text))
        finally:
            with contextlib.suppress(Exception):
                cursor.close()

    def _sent(self, written: str, types: Mapping[str, Any]) -> tuple[str, Mapping[str, Cell]]:
        rows = f"arrayJoin(JSONExtract({quoted_text(written)}, 'Array(Array(Nullable(String)))'))"
        shown = ", ".join(f"arrayElement(_row, {place}) AS {name}" for place, name in enumerate(types, 1))
        scan = f"(SELECT {shown} FROM (SELECT {rows} AS _row) AS _rows) AS _sent"
        return scan, {name: sent_cell(name, *type_sent(kind)) for name, kind in types.items()}


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _cell_of(table: Table, column: str, columns: Mapping[str, Any]) -> Cell:
    names = [name for name in columns if name.lower() == column.lower()]
    name = column if column in names else names[0] if len(names) == 1 else None
    if name is None:
        raise refuse_lacking(table, column)
    _, type_, computed = columns[name]
    if computed in ("ALIAS", "EPHEMERAL"):
        raise refuse_computed(table, column)
    cell = cell_of(_quoted(name), str(type_))
    if cell is None:
        raise refuse_type(table, column, str(type_))
    return cell


DatabaseServer.opens |= {"clickhouse": ClickHouseSession}
