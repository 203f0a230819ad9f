"""A session over the tables of a schema, in any engine: sees these and nothing else, and runs aggregates only.

What all sessions share is here: a view for each table, which reads its cells as the schema says, in words that the
engine lowers; the door that statements pass; the order in which things are refused, bound and run. What an engine owes
is in the abstract methods. `duckdb_session` is one, and tests have another (`tests/sources/engines/sqlite_session.py`).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from .. import checks
from ..errors import guarded
from ..schema import Table
from .base import Source, literal, needed, quoted
from .lowering import Engine
from .raw_cells import Cell
from .reading import RAW, Reading, flag_of, reading, stored, unreadable, with_flags
from .statements import checked

if TYPE_CHECKING:
    import sqlglot


class Settings(NamedTuple):
    """How much an engine may use: threads, bytes of memory before it writes to disk, the folder for that, and after how
    many seconds a statement is stopped. None leaves it to the engine."""

    threads: int | None = None
    memory: int | None = None
    temp: str | Path | None = None
    seconds: float | None = None


class RawTable(NamedTuple):
    """A table as its source holds it.

    scan     what to select from, in the engine's own SQL
    columns  by column of the schema: its raw cells
    """

    scan: str
    columns: Mapping[str, Cell]


class Session(ABC):
    """An open session. Its tables' types are public; what `run` gives is not, before noise is added to it.

    takes     the kinds of sources that the engine can read
    lowering  what words of statements become there
    views     what words of readings become there, where that is something else
    """

    takes: ClassVar[tuple[type[Source], ...]]
    lowering: ClassVar[Engine]
    views: ClassVar[Engine | None] = None

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> None:
        for _, source in tables.values():
            if not isinstance(source, self.takes):
                names = [kind.__name__ for kind in self.takes]
                raise checks.refuse("source", source, f"a {', '.join(names[:-1])} or {names[-1]}")
        self.dialect: str = self.lowering.dialect
        self.gaps: Collection[str] = self.lowering.gaps
        self._given = tables
        self._settings = settings
        self._only = only
        self._unread = unread
        self._lock = threading.Lock()
        self._flagged: set[str] = set()
        try:
            self._start()
            types = {name: self._view(number, name) for number, name in enumerate(tables)}
            self._seal()
        except BaseException:
            self.close()
            raise
        self.tables: Mapping[str, Mapping[str, str]] = MappingProxyType(types)

    # What an engine owes.

    @abstractmethod
    def _start(self) -> None:
        """Open the engine, so that it can reach the tables' sources and nothing else."""

    @abstractmethod
    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        """How a table is held; `flagged` where it matters which cells cannot be read."""

    @abstractmethod
    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        """A view of this name that is the session's own, in place of one of that name. By cell, the texts that it is
        looked up in: they stand in the view already, and an engine that has something better may prepare it."""

    @abstractmethod
    def _seal(self) -> None:
        """All views are there: shut what only making them needed."""

    @abstractmethod
    def _bound(self, text: str) -> Any:
        """The statement, ready to run: names and types are looked up, no cell is read. One that does not fit them is a
        PlanError with the code "not-taken"."""

    @abstractmethod
    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        """All rows of the statement, as an Arrow table; integers of 128 bits as decimals of 38 digits."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything, also of what was opened halfway."""

    # What all share.

    def _words(self, text: str) -> str:
        return (self.views or self.lowering).words_in(text)

    def _view(self, number: int, name: str, *, flagged: bool = False) -> Mapping[str, str]:
        """Make the view of a table. Cells first, values second: an expression that names its cell three times would
        compute it three times."""
        table, _ = self._given[name]
        scan, columns = self._raw(name, flagged=flagged)
        if name in self._unread:
            scan = f"(SELECT * FROM {scan} WHERE false)"
        cells, values, types, lists = [], [], {}, {}
        for place, (column, meaning) in enumerate(table.columns.items()):
            cell, x = columns[column], f"x_{number}_{place}"
            read = reading(meaning, cell, x)
            if read.known:
                lists[x] = read.known
            cells.append(f"{self._cell(read, stored(meaning, cell))} AS {x}")
            values.append(f"{self._words(read.value)} AS {quoted(column)}")
            types[column] = read.type
            if flagged and (flag := flag_of(table, column)) is not None:
                present = f"present_{number}_{place}"
                cells.append(f"{cell.there} AS {present}")
                values.append(f"{self._words(unreadable(meaning, cell, x, present))} AS {quoted(flag)}")
        view = f"SELECT {', '.join(values)} FROM (SELECT {', '.join(cells)} FROM {scan})"
        if name in self._only:
            view = f"SELECT * FROM ({view}) WHERE {self._words(_within(types, *self._only[name]))}"
        self._make_view(with_flags(name) if flagged else name, view, lists)
        return MappingProxyType(types)

    def _cell(self, read: Reading, raw: str) -> str:
        return raw if read.cell == RAW else self._words(read.cell).replace(RAW, raw)

    def _flag(self, tree: sqlglot.exp.Query) -> None:
        """Make the views with flags that a statement asks for; others cost nothing."""
        asked = {each.name.lower() for each in tree.find_all(needed("sqlglot").exp.Table)}
        for number, name in enumerate(self._given):
            if with_flags(name).lower() in asked and name not in self._flagged:
                self._view(number, name, flagged=True)
                self._flagged.add(name)

    def run(self, tree: sqlglot.exp.Query) -> Any:
        """Run one SELECT over the session's tables. Whatever goes wrong while it runs is a DataError: the engine's own
        words may hold cells. A statement that does not fit the tables' types is refused before it runs."""
        text = self._checked(tree)
        with self._lock:
            self._flag(tree)
            bound = self._bound(text)
            return guarded(lambda: self._read_to_the_end(text, bound))

    def bind(self, tree: sqlglot.exp.Query) -> None:
        """Refuse a statement that does not fit the tables' names and types; it is not run."""
        text = self._checked(tree)
        with self._lock:
            self._flag(tree)
            self._bound(text)

    def _checked(self, tree: sqlglot.exp.Query) -> str:
        return checked(tree, [*self.tables, *map(with_flags, self.tables)], self.lowering)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session over {', '.join(map(repr, self.tables))}>"


def _within(types: Mapping[str, str], column: str, allowed: Sequence[str]) -> str:
    """Is the row's value one of these, which are Python's texts of it?"""
    if types[column] == "BOOLEAN":
        return f"{quoted(column)} IN ({', '.join(text.upper() for text in allowed)})"
    return f"CAST({quoted(column)} AS VARCHAR) IN ({', '.join(map(literal, allowed))})"
