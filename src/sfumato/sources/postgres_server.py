"""Where a PostgreSQL server is, and a connection to it that reads one snapshot, and calls nothing of somebody else's.

The address is a secret, as it may hold a password: it stands in an environment variable or a file, and a plan, a ledger
or a message names that alone. Nothing that the server says is passed on: its texts quote cells.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import ArgumentError, PlanError, install_line
from ..schema import Table
from .base import Connection, Source
from .session import Settings

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_OLDEST = 160_000
# Unless the address says otherwise. A server that vanished is missed within a minute, not after hours.
_PATIENCE = {"connect_timeout": 20, "keepalives_idle": 30, "keepalives_interval": 10, "tcp_user_timeout": 60_000}
_SETTINGS = {
    # Functions and operators of the server itself, never one of the same name that somebody else made.
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "'UTC'",
    "DateStyle": "'ISO, YMD'",
    "IntervalStyle": "'postgres'",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "client_min_messages": "error",
    # A policy on rows that came after we looked makes a statement fail, where it would hide rows.
    "row_security": "off",
    "jit": "off",  # it takes longer to compile such statements than to run them
    "lock_timeout": "'30s'",
}
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


@dataclass(frozen=True)
class PostgresServer:
    """Where a server's address stands: the name of an environment variable, or the path of a file. It opens
    sessions."""

    place: str

    home: ClassVar[str] = "postgres_session"
    opens: ClassVar[Callable[..., Connection]]
    """The session, which says so itself: it knows the tables, and they know their server."""

    def __post_init__(self) -> None:
        if (
            not isinstance(self.place, str | Path)
            or not str(self.place)
            or "://" in str(self.place)
            or "=" in str(self.place)
        ):
            raise ArgumentError(  # what was given may be the address itself, with a password, and is not shown
                "address is not allowed: give the name of an environment variable, or the path of a file, that holds "
                "the postgresql://... address, not the address itself",
                argument="address",
            )
        object.__setattr__(self, "place", str(self.place))

    def __call__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> Connection:
        return type(self).opens(tables, settings, only, unread, server=self)

    @property
    def _is_variable(self) -> bool:
        return _VARIABLE.fullmatch(self.place) is not None

    def _address(self) -> str:
        if self._is_variable:
            address = os.environ.get(self.place, "")
            if not address.strip():
                raise PlanError(f"the environment variable {self.place!r} holds no address: set it to postgresql://...")
            return address.strip()
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if address := Path(self.place).read_text(encoding="utf-8").strip():
                return address
        raise PlanError(f"the file {Path(self.place).name!r} holds no address: write postgresql://... into it")

    def connect(self, settings: Settings | None = None) -> Any:
        """A connection within a transaction that writes nothing and sees one snapshot. The caller closes it."""
        try:
            psycopg, conninfo = (importlib.import_module(name) for name in ("psycopg", "psycopg.conninfo"))
        except ImportError:
            raise PlanError(f"tables in PostgreSQL need psycopg: {install_line('postgres')}") from None
        address, opened = self._address(), None
        with contextlib.suppress(Exception):
            more: dict[str, Any] = {**_PATIENCE, **conninfo.conninfo_to_dict(address), "client_encoding": "utf8"}
            opened = psycopg.connect(conninfo.make_conninfo("", **more), autocommit=True, prepare_threshold=None)
        if opened is None:  # outside the handlers, so that the server's words are not the context
            raise PlanError(
                f"the PostgreSQL server whose address stands in {self._shown} is not reached: see that it runs, and "
                "that the address and the role are right"
            )
        with contextlib.suppress(Exception):
            _set_up(opened, settings or Settings())
            return opened
        version = opened.info.server_version
        opened.close()
        if 0 < version < _OLDEST:
            raise PlanError(f"the server is PostgreSQL {version // 10_000}: use 16 or later")
        raise PlanError(f"the PostgreSQL server whose address stands in {self._shown} does not take our settings")

    @property
    def _shown(self) -> str:
        return repr(self.place) if self._is_variable else f"the file {Path(self.place).name!r}"


def _set_up(opened: Any, settings: Settings) -> None:
    more = dict(_SETTINGS)
    if settings.seconds is not None:
        more["statement_timeout"] = str(max(1, round(settings.seconds * 1000)))
    if settings.threads is not None:
        more["max_parallel_workers_per_gather"] = str(settings.threads - 1)
    if opened.info.server_version < _OLDEST:
        raise ValueError
    run(opened, *(f"SET {name} = {value}" for name, value in more.items()), _BEGIN)


def run(opened: Any, *statements: str) -> None:
    """Statements of ours that give no rows."""
    opened.execute("; ".join(statements).encode())
