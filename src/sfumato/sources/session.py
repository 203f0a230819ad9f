"""One DuckDB session over the tables of a schema: sees their files and nothing else, and runs aggregates only."""

from __future__ import annotations

import contextlib
import signal
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import checks
from ..errors import DataError, PlanError, SfumatoError, guarded
from ..schema import Table, TensorColumn
from .base import CLOSED, Connection, Source, literal, needed, quoted
from .catalogue import attach
from .duckdb import DUCKDB
from .examples import Examples
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .reading import enumeration, flag_of, reading, unreadable, with_flags
from .rewriting import in_utf_8, without_odd_cells
from .spelling import there
from .spill import Spill
from .statements import checked

if TYPE_CHECKING:
    import sqlglot

_OURS = ("_frame_", "_file_", with_flags(""))


def connect(
    tables: Mapping[str, tuple[Table, Source]],
    *,
    threads: int | None = None,
    memory: int | None = None,
    temp: str | Path | None = None,
    seconds: float | None = None,
    only: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    unread: Collection[str] = (),
) -> Connection:
    """One session in which every table of a schema is a view of the same name, which holds the schema's columns as the
    schema means them.

    threads  how many the engine may use; all cores if None
    memory   bytes that the engine may use before it writes to disk; most of the machine's if None
    temp     the folder in which it makes a folder of its own for that
    seconds  after which a statement is stopped
    only     by table: a column, and the texts of the values that its rows must hold there
    unread   tables that are as their headers say and have no rows, whatever is asked of them: nothing was paid yet
    """
    settings = engine_settings(threads=threads, memory=memory, temp=temp, seconds=seconds)
    _no_twins(tables, "tables")
    if taken := [name for name in tables if name.lower().startswith(_OURS)]:
        raise PlanError(f"the session keeps names such as {taken[0]!r} to itself: call the table something else")
    for table, _ in tables.values():
        _no_twins(table.columns, f"columns of table {table.name!r}")
    tables = {
        name: _flat(table, each.emptied(table) if name in unread else each) for name, (table, each) in tables.items()
    }
    engine = needed("duckdb")
    spill = Spill(temp)
    try:
        opened = engine.connect(":memory:", config=settings | {"temp_directory": str(spill.path)})
    except BaseException:
        spill.remove()
        raise
    return Session(opened, tables, spill, seconds, only or {}, unread)  # it removes the folder, whatever goes wrong


def _flat(table: Table, source: Source) -> tuple[Table, Source]:
    """The table without its tensor columns, which no engine holds. A data set of records becomes a frame."""
    flat = {name: column for name, column in table.columns.items() if not isinstance(column, TensorColumn)}
    if not flat:
        raise PlanError(f"table {table.name!r} has tensor columns alone, and SQL reads none of them")
    if isinstance(source, Examples):
        source = Frame(guarded(partial(source.columns, table)))
    return table if len(flat) == len(table.columns) else replace(table, columns=flat), source


def engine_settings(
    *,
    threads: int | None = None,
    memory: int | None = None,
    temp: str | Path | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """What an engine is opened with; refuses what it could not be."""
    settings: dict[str, Any] = dict(CLOSED)
    if threads is not None:
        settings["threads"] = checks.whole(threads, "threads", most=1024)
    if memory is not None:
        settings["memory_limit"] = f"{checks.whole(memory, 'memory', least=2**24)}B"
    if temp is not None and not Path(checks.path(temp, "temp")).is_dir():
        raise checks.refuse("temp", str(temp), "a folder")
    if seconds is not None and checks.waiting(seconds, "seconds") == 0:
        raise checks.refuse("seconds", seconds, "more than 0 seconds")
    return settings


class Session:
    """An open session. Its tables' types are public; what `run` gives is not, before noise is added to it."""

    dialect = "duckdb"
    lowering = DUCKDB

    def __init__(
        self,
        engine: Any,
        tables: Mapping[str, tuple[Table, Source]],
        spill: Spill,
        seconds: float | None,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> None:
        self._engine = engine
        self._only = only
        self._seconds = seconds
        self._spill = weakref.finalize(self, spill.remove)
        self._lock = threading.Lock()
        try:
            self._do("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
            self._do("SET enable_progress_bar = false")  # in a notebook it is on, and counts rows and joins as they go
            self._raw = _Raw(self._engine, tables, spill.path, unread)
            self._given = tables
            self._flagged: set[str] = set()
            types = {
                name: self._view(name, number, table, *self._raw.table(name))
                for number, (name, (table, _)) in enumerate(tables.items())
            }
            self._do("SET lock_configuration = true")
        except BaseException:
            self.close()
            raise
        self.tables: Mapping[str, Mapping[str, str]] = MappingProxyType(types)

    def _do(self, text: str) -> None:
        self._engine.execute(text)

    def _view(
        self,
        name: str,
        number: int,
        table: Table,
        scan: str,
        columns: Mapping[str, Held],
        *,
        flagged: bool = False,
    ) -> Mapping[str, str]:
        """Cells first, values second: an expression that names its cell three times would compute it three times."""
        cells, values, types = [], [], {}
        for place, (column, meaning) in enumerate(table.columns.items()):
            raw, physical, there = columns[column]
            x = f"x_{number}_{place}"
            read = reading(meaning, quoted(raw), physical, x)
            if read.known:
                self._do(f"CREATE TYPE IF NOT EXISTS {enumeration(x)} AS ENUM ({', '.join(map(literal, read.known))})")
            cells.append(f"{read.cell} AS {x}")
            values.append(f"{read.value} AS {quoted(column)}")
            types[column] = read.type
            if flagged and (flag := flag_of(table, column)) is not None:
                held = f"held_{number}_{place}"
                cells.append(f"{there} AS {held}")
                values.append(f"{unreadable(meaning, physical, x, held)} AS {quoted(flag)}")
        inner = f"SELECT {', '.join(cells)} FROM {scan}"
        view = f"SELECT {', '.join(values)} FROM ({inner})"
        if name in self._only:
            column, allowed = self._only[name]
            if types[column] == "BOOLEAN":  # which the engine writes in small letters
                allowed = [each.lower() for each in allowed]
            listed = ", ".join(map(literal, allowed))
            view = f"SELECT * FROM ({view}) WHERE CAST({quoted(column)} AS VARCHAR) IN ({listed})"
        self._do(f"CREATE OR REPLACE TEMP VIEW {quoted(with_flags(name) if flagged else name)} AS {view}")
        return MappingProxyType(types)

    def _flag(self, tree: sqlglot.exp.Query) -> None:
        """Make the views with flags that a statement asks for; others cost nothing."""
        asked = {each.name.lower() for each in tree.find_all(needed("sqlglot").exp.Table)}
        for number, (name, (table, _)) in enumerate(self._given.items()):
            if with_flags(name).lower() in asked and name not in self._flagged:
                self._view(name, number, table, *self._raw.table(name, flagged=True), flagged=True)
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

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        """Where the engine fails on a cell of a Parquet file, the files are written anew without such cells, once; what
        all other cells mean is the same (see rewriting.py)."""
        engine = needed("duckdb")
        try:
            return self._timed(bound)
        except (engine.InvalidInputException, engine.ConversionException):
            if not (anew := self._raw.rewritten()):
                raise
        for number, name, table in anew:
            for flagged in (False, True)[: 1 + (name in self._flagged)]:
                self._view(name, number, table, *self._raw.table(name, flagged=flagged), flagged=flagged)
        return self._timed(self._bound(text))

    def _bound(self, text: str) -> Any:
        """Names and types are looked up, no cell is read."""
        engine = needed("duckdb")
        failure: SfumatoError = DataError()
        try:
            if [each.type for each in self._engine.extract_statements(text)] == [engine.StatementType.SELECT]:
                return self._engine.sql(text)
        except (engine.BinderException, engine.CatalogException, engine.ParserException) as error:
            text = f"the engine does not take this statement: {str(error).splitlines()[0]}"
            failure = PlanError(text, cause=text.strip().rstrip("."), code="not-taken")
        except Exception:
            pass
        raise failure  # outside the handlers, so that the engine's error is not its context

    def _timed(self, bound: Any) -> Any:
        with _heard(self._engine):
            return self._in_time(bound)

    def _in_time(self, bound: Any) -> Any:
        if self._seconds is None:
            return _fetched(bound)
        clock = threading.Timer(self._seconds, self._engine.interrupt)
        clock.start()
        try:
            return _fetched(bound)
        finally:
            clock.cancel()
            clock.join()  # an interrupt that comes late must not hit the next statement

    def close(self) -> None:
        self._engine.close()
        self._spill()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session over {', '.join(map(repr, self.tables))}>"


class Held(NamedTuple):
    """A column as its source holds it: its name and engine type, and SQL for whether there is a cell at all."""

    name: str
    type: str
    there: str


def _held(name: str, type_: str) -> Held:
    return Held(name, type_, there(quoted(name), type_))


@contextlib.contextmanager
def _heard(engine: Any) -> Iterator[None]:
    """Ctrl-C reaches the engine's own threads, too: by itself it only stops the thread that waits for them, which then
    waits on until they are through."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        engine.interrupt()
        before(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:  # who was called may have put another in its place
            signal.signal(signal.SIGINT, before)


def _fetched(bound: Any) -> Any:
    """The rows of a statement. An engine that Ctrl-C stopped says so in its own words, which are no word of the data;
    one that its clock stopped says it otherwise."""
    try:
        return bound.to_arrow_table()
    except RuntimeError as problem:
        if str(problem) != "Query interrupted":
            raise
    raise KeyboardInterrupt  # outside the handler, so that the engine's error is not its context


class _Raw:
    """The tables as their sources hold them. Making it shuts the engine off from every other file."""

    def __init__(
        self, engine: Any, tables: Mapping[str, tuple[Table, Source]], folder: Path, unread: Collection[str]
    ) -> None:
        self._engine = engine
        self._tables = tables
        self._unread = unread
        self._files: dict[str, list[str]] = {}
        self._anew: dict[str, list[str]] = {}  # where files would be written anew, by table
        self._attached: dict[str, str] = {}
        for number, (name, (_, source)) in enumerate(tables.items()):
            if isinstance(source, Parquet):
                self._files[name] = source.files()
                self._anew[name] = [
                    str(Path(folder, f"{number}_{place}.parquet")) for place in range(len(self._files[name]))
                ]
            elif isinstance(source, Csv):
                file = str(Path(folder, f"{number}.csv"))
                if name in unread:
                    Path(file).touch()
                    self._files[name] = [file]
                else:
                    self._files[name] = [guarded(partial(in_utf_8, source.file(), source.codec(), file))]
            elif isinstance(source, DuckDBTable):
                self._attach(name, source.file())
        allowed = ", ".join(
            literal(file) for each in (self._files, self._anew) for files in each.values() for file in files
        )
        engine.execute(f"SET allowed_paths = [{allowed}]; SET enable_external_access = false")

    def rewritten(self) -> list[tuple[int, str, Table]]:
        """Write the Parquet files anew, those that are not yet; which tables these are, by number and name."""
        anew = []
        for number, (name, (table, _)) in enumerate(self._tables.items()):
            if targets := self._anew.pop(name, []):
                for file, target in zip(self._files[name], targets, strict=True):
                    without_odd_cells(file, list(table.columns), target)
                self._files[name] = targets
                anew.append((number, name, table))
        return anew

    def _attach(self, name: str, file: str) -> None:
        if file in self._attached:
            return
        self._attached[file] = f"_file_{len(self._attached)}"
        attach(self._engine, file, self._attached[file], name)

    def table(self, name: str, *, flagged: bool = False) -> tuple[str, Mapping[str, Held]]:
        """What to select from, and how every column of the schema is held there; `flagged` where it matters which cells
        cannot be read."""
        scan, columns = self._scanned(name, flagged=flagged)
        return (f"(SELECT * FROM {scan} WHERE false)" if name in self._unread else scan), columns

    def _scanned(self, name: str, *, flagged: bool) -> tuple[str, Mapping[str, Held]]:
        table, source = self._tables[name]
        if isinstance(source, Csv):
            return self._csv(name, table, source)
        if isinstance(source, Frame):
            return self._frame(name, table, source, flagged)
        if isinstance(source, DuckDBTable):
            scan = source.scan(self._engine, self._attached[source.file()], name, table)
            broken = f"the DuckDB file of table {name!r} cannot be read"
            return scan, self._known(table, self._described(scan, broken))
        if not isinstance(source, Parquet):
            raise checks.refuse("source", source, "a Csv, Parquet, DuckDBTable or Frame")
        files = self._files[name]
        broken = f"a file of table {name!r} cannot be read as Parquet"
        each = [self._known(table, self._described(Parquet.scan([file]), broken)) for file in files]
        if any(other != each[0] for other in each):
            raise PlanError(f"the files of table {name!r} do not have the same types in the schema's columns")
        return Parquet.scan(files), each[0]

    def _csv(self, name: str, table: Table, source: Csv) -> tuple[str, Mapping[str, Held]]:
        count, places = source.places(table)
        cells = [f"c{place}" for place in range(count)]
        [file] = self._files[name]
        scan = source.scan(cells, file)
        if source.plain:
            return scan, {column: _held(cells[place], "VARCHAR") for column, place in places.items()}
        shown = (
            f"{source.plain_cell(table, column, cells[place])} AS p{place}, {source.text(cells[place])} AS t{place}"
            for column, place in places.items()
        )
        held = {column: Held(f"p{place}", "VARCHAR", there(f"t{place}", "VARCHAR")) for column, place in places.items()}
        return f"(SELECT {', '.join(shown)} FROM {scan})", held

    def _frame(self, name: str, table: Table, source: Frame, flagged: bool) -> tuple[str, Mapping[str, Held]]:
        cells, flags = ([f"{sign}{place}" for place in range(len(table.columns))] for sign in ("c", "t"))
        scan = f"_frame_{list(self._tables).index(name)}{'_flagged' * flagged}"
        source.check(table)
        self._engine.register(scan, guarded(lambda: source.arrow(table, cells, flags if flagged else None)))
        types = self._described(scan, f"the data of table {name!r} cannot be read")
        return scan, {
            column: Held(cell, types[cell], flag if flag in types else there(quoted(cell), types[cell]))
            for column, cell, flag in zip(table.columns, cells, flags, strict=True)
        }

    def _described(self, scan: str, failure: str) -> dict[str, str]:
        with contextlib.suppress(Exception):
            return {row[0]: row[1] for row in self._engine.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
        raise PlanError(failure)  # outside of the block, so that the engine's error is not its context

    @staticmethod
    def _known(table: Table, types: Mapping[str, str]) -> dict[str, Held]:
        for column in table.columns:
            if column not in types:
                raise PlanError(
                    f"the data of table {table.name!r} has no column {column!r}, which the schema names: correct the "
                    "schema, or the file"
                )
        return {column: _held(column, types[column]) for column in table.columns}


def _no_twins(names: Mapping[str, Any], what: str) -> None:
    """SQL does not tell upper from lower case in names."""
    seen: dict[str, str] = {}
    for name in names:
        if (first := seen.setdefault(name.lower(), name)) != name:
            raise PlanError(f"two {what} are called {first!r} and {name!r}, which are one name in SQL")
