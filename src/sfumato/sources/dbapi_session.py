"""One session in a database that a driver by PEP 249 reaches, over tables that it holds and public ones of ours.

It is one connection, and one transaction that only reads and sees one snapshot where the database has such. Nothing is
made there. What other engines have as views stands in front of each statement, as WITH.

A statement is bound over views without rows, whatever was paid: some databases compute subqueries when they are asked
for types alone.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DataError, PlanError, SfumatoError
from ..schema import Table
from .base import Source
from .dbapi_rows import fetched, sent
from .dbapi_server import DatabaseServer, rows_of
from .dbapi_tables import DatabaseTable
from .frames import Frame
from .inferred_types import column_kinds
from .lean import Lean
from .raw_cells import Cell
from .server_session import ServerSession
from .session import RawTable, Settings

NOT_TAKEN = "the engine does not take this statement"
STORE = "make a table of it (CREATE TABLE ... AS SELECT ...) where no row's cells depend on another unit's rows"


class DatabaseSession(ServerSession):
    """A session by PEP 249; what a database has of its own is in its subclasses."""

    takes = (DatabaseTable, Frame)

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
        *,
        server: DatabaseServer,
    ) -> None:
        self._server = server
        self._opened: Any = None
        self._empty: dict[str, str] = {}
        self._kinds: dict[str, Sequence[str | None] | None] = {}
        self._into = self._empty
        super().__init__(tables, settings, only, unread)

    # What a database owes.

    @abstractmethod
    def _set_up(self) -> None:
        """Settings that statements lean on, and a snapshot that is only read; an exception where they are not taken."""

    @abstractmethod
    def _reached(self, table: Table, parts: tuple[str, ...]) -> RawTable:
        """A table as the database holds it, by its catalogue: no row is looked at."""

    @abstractmethod
    def _describe(self, text: str) -> None:
        """Have the database look a statement's names and types up; any exception where they do not fit."""

    @abstractmethod
    def _sent(self, written: str, types: Mapping[str, Any]) -> tuple[str, Mapping[str, Cell]]:
        """What to select from for rows that were sent as JSON, and their cells by name."""

    # What all share.

    def _start(self) -> None:
        self._no_private_frames()
        self._opened = self._server.connected()
        with contextlib.suppress(Exception):
            self._set_up()
            return
        raise PlanError(self._not_set_up())

    def _not_set_up(self) -> str:
        return f"the database that {self._server.connect!r} leads to does not take the settings of {self.lowering.name}"

    def _ask(self, *statements: str) -> list[tuple[Any, ...]]:
        return rows_of(self._opened, *statements)

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        table, source = self._given[name]
        if isinstance(source, Frame):
            written, cells, flags, types = sent(table, source, flagged=flagged)
            scan, by_name = self._sent(written, types)
            return RawTable(scan, {column: self._flagged_cell(by_name, cells, flags, column) for column in cells})
        assert isinstance(source, DatabaseTable)
        return self._reached(table, source.names(table))

    @staticmethod
    def _flagged_cell(
        by_name: Mapping[str, Cell], cells: Mapping[str, str], flags: Mapping[str, str], column: str
    ) -> Cell:
        cell = by_name[cells[column]]
        return replace(cell, there=f"COALESCE({by_name[flags[column]].sql}, FALSE)") if column in flags else cell

    def _refilled(self, names: Collection[str]) -> bool:
        return all(isinstance(self._given[name][1], DatabaseTable) for name in names)

    def _view(self, name: str, columns: Collection[str], *, flagged: bool = False) -> None:
        """Made twice: as it is read, and without rows, over which statements are bound."""
        unread = self._unread
        try:
            self._unread, self._into = (name,), self._empty
            super()._view(name, columns, flagged=flagged)
        finally:
            self._unread, self._into = unread, self._texts
        super()._view(name, columns, flagged=flagged)

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        self._into[name] = text

    def _checked(self, tree: Any, change: Lean | None = None) -> str:
        text = super()._checked(tree, change)
        if text not in self._kinds:
            self._kinds[text] = column_kinds(tree, self._engine_of(tree).tables)
        return text

    def _bound(self, text: str) -> Any:
        failure: SfumatoError | None = None
        try:
            self._describe(self._with_views(text, self._empty))
        except Exception:
            failure = DataError() if self._is_gone() else PlanError(f"{NOT_TAKEN}.", cause=NOT_TAKEN, code="not-taken")
        if failure is not None:  # outside the handler, so that the driver's words are not its context
            raise failure
        return self._with_views(text)

    def _is_gone(self) -> bool:
        with contextlib.suppress(Exception):
            return self._ask("SELECT 1") != [(1,)]
        return True

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        cursor = self._opened.cursor()
        try:
            cursor.execute(bound)
            return fetched(cursor, self._kinds.get(text))
        finally:
            with contextlib.suppress(Exception):
                cursor.close()

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with contextlib.suppress(Exception):
                opened.close()


def refuse_lacking(table: Table, column: str) -> PlanError:
    return PlanError(
        f"the data of table {table.name!r} has no column {column!r}, which the schema names, or the account may not "
        "read it: correct the schema or the table, or grant SELECT"
    )


def refuse_type(table: Table, column: str, type_: str) -> PlanError:
    return PlanError(
        f"column {column!r} of table {table.name!r} is of the type {type_!r}, which is not read: leave it out of the "
        "schema, or store it as a number, a text, a truth value, a date or a timestamp"
    )


def refuse_computed(table: Table, column: str) -> PlanError:
    return PlanError(
        f"column {column!r} of table {table.name!r} is computed when it is read: store its cells, or leave the column "
        "out of the schema and compute it in the query"
    )
