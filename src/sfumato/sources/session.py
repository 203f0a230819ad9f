"""A session over the tables of a schema, in any engine: sees these and nothing else, and runs aggregates only.

What all sessions share is here: a view for each table, which reads its cells as the schema says, in words that the
engine lowers; the door that statements pass; the order in which things are refused, bound and run. What an engine owes
is in the abstract methods. `duckdb_session` is one, and tests have another (`tests/sources/engines/sqlite_session.py`).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from .. import checks
from ..errors import PlanError, guarded
from ..foreign_keys import linked_columns
from ..schema import Table
from .base import Source, literal, needed, quoted
from .flat_tables import flat
from .frames import Frame
from .lean import Lean
from .lowering import Engine
from .mentions import mentions
from .raw_cells import Cell
from .reading import RAW, Reading, flag_of, reading, stored, unreadable, with_flags
from .statements import checked

if TYPE_CHECKING:
    import sqlglot


KEPT = "_kept_"
"""What tables are called that a session keeps, with a number."""


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
        self._given = dict(tables)
        self._lent: set[str] = set()
        self._settings = settings
        self._only = only
        self._unread = unread
        self._lock = threading.RLock()
        self._held: dict[str, RawTable] = {}
        self._types: dict[str, Mapping[str, str]] = {}
        self._viewed: dict[str, frozenset[str]] = {}
        self._flagged: set[str] = set()
        self._kept: list[str] = []
        self._different: dict[tuple[str, str], bool] = {}
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        self.tables: Mapping[str, Mapping[str, str]] = _Tables(self._given, self._types_of)

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
    def _bound(self, text: str) -> Any:
        """The statement, ready to run: names and types are looked up, no cell is read. One that does not fit them is a
        PlanError with the code "not-taken"."""

    @abstractmethod
    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        """All rows of the statement, as an Arrow table; integers of 128 bits as decimals of 38 digits."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything, also of what was opened halfway. Closed twice, it is closed."""

    def _refilled(self, names: Collection[str]) -> bool:
        """Reach the sources of these tables anew, which may have rows now. False where that takes another session."""
        return False

    def _called(self, name: str) -> str:
        """A column of a view, as the engine's own SQL names it."""
        return quoted(name)

    # What all share.

    def _words(self, text: str) -> str:
        return (self.views or self.lowering).words_in(text)

    @cached_property
    def _as_texts(self) -> Collection[tuple[str, str]]:
        """The columns that hold keys along which tables are joined, as (table, column), where their cells have several
        types. They are read as texts, so that statements may compare them as they are, and no cell raises."""
        tables = {name: table for name, (table, _) in self._given.items()}
        texts: set[tuple[str, str]] = set()
        for columns in linked_columns(tables):
            cells = [(tables[name].columns[key], self._raw_once(name).columns[key]) for name, key in columns]
            types = {reading(meaning, cell, "x").type for meaning, cell in cells}
            texts |= set(columns) if len(types) > 1 else set()
        return texts

    def _raw_once(self, name: str) -> RawTable:
        if name not in self._held:
            self._held[name] = self._raw(name, flagged=False)
        return self._held[name]

    def _read(self, name: str, column: str, cell: Cell, x: str) -> Reading:
        """How the cells of a column are read, where `x` names them."""
        read = reading(self._given[name][0].columns[column], cell, x)
        if (name, column) in self._as_texts and read.type != "VARCHAR":
            return replace(read, value=f"CAST({read.value} AS VARCHAR)", type="VARCHAR")
        return read

    def _view(self, name: str, columns: Collection[str], *, flagged: bool = False) -> None:
        """Make the view of a table, with these columns of it. Cells first, values second: an expression that names its
        cell three times would compute it three times."""
        table, number = self._given[name][0], list(self._given).index(name)
        scan, raw = self._raw(name, flagged=True) if flagged else self._raw_once(name)
        if name in self._unread:
            scan = f"(SELECT * FROM {scan} WHERE false) AS _none"
        cells, values, types, lists = [], [], {}, {}
        for place, (column, meaning) in enumerate(table.columns.items()):
            if column not in columns:
                continue
            cell, x = raw[column], f"x_{number}_{place}"
            read = self._read(name, column, cell, x)
            if read.known:
                lists[x] = read.known
            cells.append(f"{self._cell(read, stored(meaning, cell))} AS {x}")
            values.append(f"{self._words(read.value)} AS {self._called(column)}")
            types[column] = read.type
            if flagged and (flag := flag_of(table, column)) is not None:
                present = f"present_{number}_{place}"
                cells.append(f"{cell.there} AS {present}")
                values.append(f"{self._words(unreadable(meaning, cell, x, present))} AS {self._called(flag)}")
        view = f"SELECT {', '.join(values)} FROM (SELECT {', '.join(cells)} FROM {scan}) AS _cells"
        if name in self._only:
            view = f"SELECT * FROM ({view}) AS _all WHERE {self._words(_within(types, *self._only[name]))}"
        self._make_view(with_flags(name) if flagged else name, view, lists)

    def _cell(self, read: Reading, raw: str) -> str:
        return raw if read.cell == RAW else self._words(read.cell).replace(RAW, raw)

    def _types_of(self, name: str) -> Mapping[str, str]:
        with self._lock:
            if name not in self._types:
                raw = self._raw_once(name).columns
                types = {
                    column: self._read(name, column, raw[column], "x").type for column in self._given[name][0].columns
                }
                self._types[name] = MappingProxyType(types)
            return self._types[name]

    def _make_views(self, tree: sqlglot.exp.Query) -> None:
        """Make the views that a statement asks for, with the columns that it can mean; what nobody asks for costs
        nothing."""
        names, tables, _ = mentions(tree, self._kept)
        asked = {name.lower() for name in tables}
        for name, (table, _) in self._given.items():
            if name.lower() in asked:
                columns = frozenset(column for column in table.columns if names is None or column.lower() in names)
                self._see(name, columns)
            if with_flags(name).lower() in asked and name not in self._flagged:
                self._view(name, table.columns, flagged=True)
                self._flagged.add(name)

    def _see(self, name: str, columns: Collection[str]) -> None:
        """Make the view of a table, unless there is one with these columns."""
        table, before = self._given[name][0], self._viewed.get(name, frozenset())
        columns = frozenset(columns) | ({self._only[name][0]} if name in self._only else set()) or {
            next(iter(table.columns))
        }
        if not columns <= before:
            self._view(name, before | columns)
            self._viewed[name] = before | columns

    def fill(self, tables: Mapping[str, tuple[Table, Source]]) -> bool:
        """Hold the rows of tables that are unread so far, from now on. False where that takes another session."""
        with self._lock:
            before = {name: self._given[name] for name in self._unread}
            now = {name: flat(*tables[name]) for name in self._unread}
            self._given.update(now)
            if not self._refilled(self._unread):
                self._given.update(before)
                return False
            for name in self._unread:
                self._viewed.pop(name, None)
                if now[name][1] is not before[name][1]:  # frames may be read as other types now
                    self._held.pop(name, None)
                    self._types.clear()
                    self.__dict__.pop("_as_texts", None)
            self._flagged.clear()
            self._different.clear()
            self._unread = ()
            return True

    def hand_over(self, table: Table, cells: Any) -> None:
        """One more public table, which statements may read from now on: what a stage of a plan released, as an Arrow
        table. A table of the schema keeps its name; one that was handed over before gives way."""
        name = table.name
        if table.private or name.lower() in {other.lower() for other in self._given if other not in self._lent}:
            raise PlanError(f"{name!r} is not handed over: a table of the session is called so, or it is private")
        with self._lock:
            self._lent.add(name)
            self._given[name] = (table, Frame(cells))
            for known in (self._held, self._types, self._viewed):
                known.pop(name, None)
            self.tables = _Tables(self._given, self._types_of)

    def run(self, tree: sqlglot.exp.Query) -> Any:
        """Run one SELECT over the session's tables. Whatever goes wrong while it runs is a DataError: the engine's own
        words may hold cells. A statement that does not fit the tables' types is refused before it runs."""
        with self._lock:
            text = self._ready(tree)
            bound = self._bound(text)
            return guarded(lambda: self._read_to_the_end(text, bound))

    def parts(self, tree: sqlglot.exp.Query) -> Iterator[Any]:
        """The rows of one SELECT, each of them in one of these tables, of which there is one at least. An engine that
        need not have them all here at once overrides this."""
        yield self.run(tree)

    def _ready(self, tree: sqlglot.exp.Query, *, bound: bool = False) -> str:
        """The text of a statement that is to be run now, with its views; of one that is only bound, as it may run."""
        if not isinstance(tree, needed("sqlglot").exp.Query):
            return self._checked(tree)  # which refuses it
        self._make_views(tree)
        once, tables = mentions(tree, self._kept).once, mentions(tree, self._kept).tables
        different = once if bound else frozenset(mark for mark in once if self._are_different(*mark))
        types = {name: self._types_of(name) for name in tables if name in self._viewed}
        whole = frozenset((name, column) for name in types for column, kind in types[name].items() if kind == "BIGINT")
        return self._checked(tree, Lean(different, whole))

    def _are_different(self, name: str, column: str) -> bool:
        if (name, column) not in self._different:
            known = name in self.tables and column in self.tables[name]
            if known:
                self._see(name, {column})
            self._different[name, column] = known and self._all_different(name, column)
        return self._different[name, column]

    def _all_different(self, name: str, column: str) -> bool:
        """Are the values of a view's column, NULLs left out, known to be different? No, where it takes long to tell."""
        return False

    def keep(self, tree: sqlglot.exp.Query) -> sqlglot.exp.Query:
        """What to select from for the rows of this SELECT, as often as they are needed. An engine that can hold them
        overrides this and computes them once; else they are computed each time."""
        self.bind(tree)
        return tree

    def bind(self, tree: sqlglot.exp.Query) -> None:
        """Refuse a statement that does not fit the tables' names and types; it is not run."""
        with self._lock:
            self._bound(self._ready(tree, bound=True))

    def _checked(self, tree: sqlglot.exp.Query, change: Lean | None = None) -> str:
        return checked(tree, [*self.tables, *map(with_flags, self.tables), *self._kept], self.lowering, change)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session over {', '.join(map(repr, self.tables))}>"


class _Tables(Mapping[str, Mapping[str, str]]):
    """The tables of a session by name; of one that nobody asks for, nobody looks at the types."""

    def __init__(self, names: Collection[str], types: Callable[[str], Mapping[str, str]]) -> None:
        self._names, self._types = tuple(names), types

    def __getitem__(self, name: str) -> Mapping[str, str]:
        if name not in self._names:
            raise KeyError(name)
        return self._types(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _within(types: Mapping[str, str], column: str, allowed: Sequence[str]) -> str:
    """Is the row's value one of these, which are Python's texts of it?"""
    if types[column] == "BOOLEAN":
        return f"{quoted(column)} IN ({', '.join(text.upper() for text in allowed)})"
    return f"CAST({quoted(column)} AS VARCHAR) IN ({', '.join(map(literal, allowed))})"
