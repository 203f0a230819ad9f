"""Which engine the tables of a schema are asked in, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import PlanError
from ..schema import Table
from .base import Connection, Source
from .duckdb_session import DuckDBSession
from .flat_tables import flat
from .reading import with_flags
from .session import KEPT, Settings

_OURS = ("_frame_", "_file_", KEPT, with_flags(""))
Opens = Callable[..., Connection]
"""A session of one engine."""


def connect(
    tables: Mapping[str, tuple[Table, Source]],
    *,
    threads: int | None = None,
    memory: int | None = None,
    temp: str | Path | None = None,
    seconds: float | None = None,
    only: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    unread: Collection[str] = (),
    session: Opens | None = None,
) -> Connection:
    """One session in which every table of a schema is a view of the same name, which holds the schema's columns as the
    schema means them.

    threads  how many the engine may use; all cores if None
    memory   bytes that the engine may use before it writes to disk; most of the machine's if None
    temp     the folder in which it makes a folder of its own for that
    seconds  after which a statement is stopped
    only     by table: a column, and the texts of the values that its rows must hold there
    unread   tables that are as their headers say and have no rows, whatever is asked of them: nothing was paid yet
    session  of the engine to ask; if None, of the one that holds the tables, or DuckDB where they are files and frames
    """
    settings = engine_settings(threads=threads, memory=memory, temp=temp, seconds=seconds)
    _no_twins(tables, "tables")
    if taken := [name for name in tables if name.lower().startswith(_OURS)]:
        raise PlanError(f"the session keeps names such as {taken[0]!r} to itself: call the table something else")
    for table, _ in tables.values():
        _no_twins(table.columns, f"columns of table {table.name!r}")
    opens = session or engine_of(source for _, source in tables.values()) or DuckDBSession
    tables = {
        name: flat(table, source.emptied(table) if name in unread else source)
        for name, (table, source) in tables.items()
    }
    if isinstance(home := getattr(opens, "home", None), str):  # an engine is loaded when it is first asked
        import_module(f".{home}", __package__)
    return opens(tables, settings, only or {}, unread)


def engine_of(sources: Iterable[Source]) -> Opens | None:
    """The session of the engine that holds some of these tables; None where any engine can take over all of them."""
    sessions = {session for source in sources if (session := source.engine()) is not None}
    if len(sessions) > 1:
        raise PlanError(
            "the tables are held by several engines, and a session asks one: bring them into one of these, or give "
            "those of the other as files or frames"
        )
    return next(iter(sessions), None)


def engine_settings(
    *,
    threads: int | None = None,
    memory: int | None = None,
    temp: str | Path | None = None,
    seconds: float | None = None,
) -> Settings:
    """What an engine is opened with; refuses what it could not be."""
    if threads is not None:
        checks.whole(threads, "threads", most=1024)
    if memory is not None:
        checks.whole(memory, "memory", least=2**24)
    if temp is not None and not Path(checks.path(temp, "temp")).is_dir():
        raise checks.refuse("temp", str(temp), "a folder")
    if seconds is not None and checks.waiting(seconds, "seconds") == 0:
        raise checks.refuse("seconds", seconds, "more than 0 seconds")
    return Settings(threads, memory, temp, seconds)


def _no_twins(names: Mapping[str, Any], what: str) -> None:
    """SQL does not tell upper from lower case in names."""
    seen: dict[str, str] = {}
    for name in names:
        if (first := seen.setdefault(name.lower(), name)) != name:
            raise PlanError(f"two {what} are called {first!r} and {name!r}, which are one name in SQL")
