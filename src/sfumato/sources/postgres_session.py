"""One session in a PostgreSQL server, over tables that it holds and public ones of ours.

It is one connection and one transaction that only reads: every statement of a release sees the same snapshot. Nothing
is made in the server. What other engines have as views stands in front of each statement, as WITH, which the server
writes out; names of the schema's tables can mean nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DataError, PlanError
from ..schema import Table
from .base import Source
from .frames import Frame
from .postgres_rows import arrow_of, described, sent
from .postgres_server import PostgresServer
from .postgres_tables import PostgresTable
from .postgresql import POSTGRES
from .raw_cells import Cell
from .reading import RAW, Reading
from .server_session import ServerSession
from .session import RawTable, Settings

_WITH = "WITH "


class PostgresSession(ServerSession):
    """Tables of the server that the first of them names; public frames are sent along with each statement."""

    takes = (PostgresTable, Frame)
    lowering = POSTGRES
    written_out = "AS NOT MATERIALIZED"

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
        *,
        server: PostgresServer,
    ) -> None:
        self._server = server
        self._opened: Any = None
        super().__init__(tables, settings, only, unread)

    def _start(self) -> None:
        self._no_private_frames()
        self._opened = self._server.connect(self._settings)

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        table, source = self._given[name]
        if isinstance(source, Frame):
            return sent(table, source, flagged=flagged)
        assert isinstance(source, PostgresTable)
        return source.reached(self._opened, table)

    def _refilled(self, names: Collection[str]) -> bool:
        return all(isinstance(self._given[name][1], PostgresTable) for name in names)

    def _read(self, name: str, column: str, cell: Cell, x: str) -> Reading:
        """A truth value is cast to no number there but INT."""
        read = super()._read(name, column, cell, x)
        if cell.kind != "flag":
            return read
        return replace(read, cell=read.cell.replace(f"CAST({RAW} AS", f"CAST(CAST({RAW} AS INT) AS"))

    def _bound(self, text: str) -> Any:
        """The server looks names and types up, and says of what type the columns are. It plans nothing yet: for that it
        would look at what it knows of the rows."""
        full, answer = self._with_views(text), None
        with contextlib.suppress(Exception):
            answer = described(self._opened, full)
        if answer is None:
            raise DataError
        if isinstance(answer, str):
            cause = f"the engine does not take this statement (SQLSTATE {answer})"
            raise PlanError(cause, cause=cause, code="not-taken")
        return answer

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        full, fields = bound
        with self._opened.cursor() as cursor, cursor.copy(b"COPY (" + full + b") TO STDOUT (FORMAT csv)") as copy:
            written = b"".join(map(bytes, copy))
        return arrow_of(written, fields)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with contextlib.suppress(Exception):
                opened.close()


PostgresServer.opens = PostgresSession
