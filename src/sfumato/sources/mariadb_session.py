"""One session in MariaDB: one connection, one transaction that only reads, and one snapshot of InnoDB's tables.

Binding is PREPARE, which looks names up and reads no row; and the views that it is asked over have none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ..errors import PlanError
from ..schema import Table
from .base import quoted
from .dbapi_rows import type_sent
from .dbapi_server import DatabaseServer
from .dbapi_session import STORE, DatabaseSession, refuse_computed, refuse_lacking, refuse_type
from .mariadb import MARIADB
from .mariadb_cells import cell_of, sent_cell
from .mariadb_server import BEGIN, SETTINGS
from .mariadb_texts import quoted_text
from .raw_cells import Cell
from .session import RawTable

_OLDEST = (10, 6)
_POINT = "sfumato_bind"
_OTHERS = {
    "VIEW": f"a view, which may compute over all rows at once: {STORE}",
    "SYSTEM VIEW": "a view of the server's own",
    "SEQUENCE": "a sequence",
}


class MariaDBSession(DatabaseSession):
    """Tables of MariaDB, through any driver that takes one statement as a text."""

    lowering = MARIADB

    def _set_up(self) -> None:
        self._ask(*SETTINGS)
        if self._settings.seconds is not None:
            self._ask(f"SET SESSION max_statement_time = {max(self._settings.seconds, 0.001):.3f}")
        self._ask(*BEGIN)

    def _not_set_up(self) -> str:
        version = ""
        with contextlib.suppress(Exception):
            version = str(self._ask("SELECT VERSION()")[0][0])
        first = version.split("-")[0].split(".")[:2]
        old = len(first) == 2 and all(part.isdigit() for part in first) and tuple(map(int, first)) < _OLDEST
        if version and ("mariadb" not in version.lower() or old):
            return f"the server that {self._server.connect!r} leads to is no MariaDB of 10.6 or later: use one"
        return super()._not_set_up()

    def _reached(self, table: Table, parts: tuple[str, ...]) -> RawTable:
        shown = ".".join(parts)
        kind, engine, database, columns = self._catalogue(table, parts)
        if kind is None:
            raise PlanError(
                f"the server has no table {shown!r} for table {table.name!r}, or the account may not read it: correct "
                "the name, or grant SELECT on the table"
            )
        if kind != "BASE TABLE":
            raise PlanError(f"table {table.name!r} is {_OTHERS.get(kind, 'no plain table')} on the server")
        if str(engine).lower() != "innodb":
            raise PlanError(
                f"table {table.name!r} is held by the storage engine {engine!r}, which has no snapshots, or reads from "
                "elsewhere: ALTER TABLE ... ENGINE = InnoDB"
            )
        cells = {column: self._cell_of(table, column, columns) for column in table.columns}
        return RawTable(f"{quoted(database)}.{quoted(parts[-1])}", cells)

    def _catalogue(self, table: Table, parts: tuple[str, ...]) -> tuple[Any, Any, str, dict[str, Any]]:
        """What the catalogue says of a table and its columns, which stay as they are from then on: the table is locked
        against changes of its definition until the transaction ends."""
        if len(parts) > 2:
            raise PlanError(f"the name of table {table.name!r} has too many parts: give 'database.table'")
        with contextlib.suppress(Exception):
            database = parts[0] if len(parts) == 2 else str(self._ask("SELECT DATABASE()")[0][0] or "")
            where = f"BINARY TABLE_SCHEMA = {quoted_text(database)} AND BINARY TABLE_NAME = {quoted_text(parts[-1])}"
            listed = f"SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {where}"
            listed_tables = self._ask(listed)
            if not listed_tables:
                return None, None, database, {}
            with contextlib.suppress(Exception):  # of a column that may not be read, the catalogue says so below
                self._ask(f"SELECT NULL FROM {quoted(database)}.{quoted(parts[-1])} WHERE FALSE")
            columns = self._ask(
                "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE, EXTRA, PRIVILEGES "
                f"FROM information_schema.COLUMNS WHERE {where}"
            )
            ((kind, engine),) = self._ask(listed)
            return kind, engine, database, {str(column[0]): column for column in columns}
        raise PlanError("the server does not answer: see that it runs, and ask again")

    def _cell_of(self, table: Table, column: str, columns: Mapping[str, Any]) -> Cell:
        name = next((each for each in columns if each.lower() == column.lower()), None)
        if name is None:
            raise refuse_lacking(table, column)
        _, type_, whole_type, width, places, extra, rights = columns[name]
        if "select" not in str(rights).lower():
            raise PlanError(f"the account may not read column {column!r} of table {table.name!r}: grant SELECT on it")
        if "virtual" in str(extra).lower():
            raise refuse_computed(table, column)
        digits = (int(width), int(places)) if width is not None and places is not None else None
        cell = cell_of(quoted(name), str(type_).lower(), "unsigned" in str(whole_type).lower(), digits)
        if cell is None:
            raise refuse_type(table, column, str(type_))
        return cell

    def _describe(self, text: str) -> None:
        self._ask(f"PREPARE {_POINT} FROM {quoted_text(text)}", f"DEALLOCATE PREPARE {_POINT}")

    def _sent(self, written: str, types: Mapping[str, Any]) -> tuple[str, Mapping[str, Cell]]:
        shown = ", ".join(f"{name} LONGTEXT PATH '$[{place}]'" for place, name in enumerate(types))
        scan = f"JSON_TABLE({quoted_text(written)}, '$[*]' COLUMNS ({shown})) AS _sent"
        return scan, {name: sent_cell(name, *type_sent(kind)) for name, kind in types.items()}


DatabaseServer.opens |= {"mariadb": MariaDBSession, "mysql": MariaDBSession}
