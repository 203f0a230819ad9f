"""Where a connection by PEP 249 comes from: a function of the user's, which is named, and a name is all that is kept.

What the function knows (an address, a password) stands in no plan, no ledger and no message. Nothing that a driver or a
server says is passed on: its texts quote cells.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import checks
from ..errors import ArgumentError, PlanError
from ..schema import Table
from .base import Connection, Source
from .session import Settings

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*:[A-Za-z_][A-Za-z_0-9]*")
RUN = ("mariadb", "mysql", "clickhouse")
"""The dialects whose engines were run by us."""
NOT_RUN = ("snowflake", "bigquery", "trino", "tsql")
"""Those whose statements were checked as texts alone."""


@dataclass(frozen=True)
class DatabaseServer:
    """The function that gives connections, by name, and whose SQL they take. It opens sessions."""

    connect: str
    dialect: str
    untested: bool = False

    opens: ClassVar[dict[str, Callable[..., Connection]]] = {}
    """By dialect: the session, which says so itself."""

    @property
    def home(self) -> str:
        """The module of the session."""
        if self.dialect in NOT_RUN:
            return "warehouse_session"
        return "clickhouse_session" if self.dialect == "clickhouse" else "mariadb_session"

    def __post_init__(self) -> None:
        place = self.connect
        if not isinstance(place, str) or not (_VARIABLE.fullmatch(place) or _FUNCTION.fullmatch(place)):
            raise ArgumentError(  # what was given may be an address with a password, and is not shown
                "connect is not allowed: give 'package.module:function', where the function opens a connection of your "
                "driver, or the name of an environment variable that holds such a text; not an address",
                argument="connect",
            )
        checks.one_of(self.dialect, "dialect", (*RUN, *NOT_RUN))
        checks.flag(self.untested, "untested")

    def __call__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> Connection:
        self.check_run()
        return self.opens[self.dialect](tables, settings, only, unread, server=self)

    def check_run(self) -> None:
        """Refuse an engine on which nothing was ever run, unless somebody says that they know."""
        if self.dialect in NOT_RUN and not self.untested:
            raise PlanError(
                f"sfumato was never run on an engine of the dialect {self.dialect!r}: its statements were checked as "
                "texts alone, and what they mean there is read off manuals. Where you compared its answers before "
                "noise with DuckDB's yourself, say so (untested)"
            )

    def _function(self) -> str:
        if ":" in self.connect:
            return self.connect
        named = os.environ.get(self.connect, "").strip()
        if _FUNCTION.fullmatch(named) is None:
            raise PlanError(
                f"the environment variable {self.connect!r} names no function: set it to 'package.module:function', "
                "which opens a connection of your driver"
            )
        return named

    def connected(self) -> Any:
        """A new connection by PEP 249. The caller closes it."""
        module, _, name = self._function().partition(":")
        opened = None
        with contextlib.suppress(Exception):
            opened = getattr(importlib.import_module(module), name)()
        if opened is None or not hasattr(opened, "cursor"):
            raise PlanError(  # outside the handler, so that the driver's words are not the context
                f"the function that {self.connect!r} names gives no connection: see that it can be imported, that the "
                "server runs, and that it returns what the driver's connect() does"
            )
        return opened


def rows_of(opened: Any, *statements: str) -> list[tuple[Any, ...]]:
    """Statements of ours, one after the other; the rows of the last, where it has any."""
    cursor = opened.cursor()
    try:
        for statement in statements:
            cursor.execute(statement)
        return list(map(tuple, cursor.fetchall())) if cursor.description else []
    finally:
        cursor.close()
