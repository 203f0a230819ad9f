"""Tables in any database that a driver by PEP 249 reaches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from .. import checks
from ..schema import Table
from .base import Connection, Source, no_arrays
from .dbapi_server import DatabaseServer


@dataclass(frozen=True)
class DatabaseTable(Source):
    """One table of a database that a driver by PEP 249 reaches.

    connect   "package.module:function", a function without arguments that returns a new connection of the driver; or
              the name of an environment variable that holds such a text. Never an address
    table     its name there, with its schema or database: "clinic.visits"; called as in ours if None
    dialect   whose SQL the database takes: "mariadb" ("mysql" is the same) or "clickhouse"; and, with `untested`,
              "snowflake", "bigquery", "trino" and "tsql"
    untested  you know that sfumato's statements were never run on an engine of this dialect by its authors
    """

    connect: str
    table: str | None = None
    dialect: str = "mariadb"
    untested: bool = False

    def __post_init__(self) -> None:
        DatabaseServer(self.connect, self.dialect, self.untested)
        if self.table is not None and not (isinstance(self.table, str) and all(self.table.split("."))):
            raise checks.refuse("table", self.table, "the name of a table, such as 'clinic.visits'")

    @property
    def server(self) -> DatabaseServer:
        return DatabaseServer(self.connect, self.dialect, self.untested)

    def engine(self) -> Callable[..., Connection]:
        return self.server

    def check(self, table: Table) -> None:
        no_arrays(table, "a database")

    def compare(self, table: Table) -> None:
        """Asked of the database now: is the table there, and its columns, and may they be read?"""
        from .connections import connect

        opened = connect({table.name: (table, self)}, unread=(table.name,))
        try:
            _ = {name: dict(types) for name, types in opened.tables.items()}
        finally:
            with contextlib.suppress(Exception):
                opened.close()

    def names(self, table: Table) -> tuple[str, ...]:
        """The parts of the table's name, from the database on."""
        return tuple((self.table or table.name).split("."))
