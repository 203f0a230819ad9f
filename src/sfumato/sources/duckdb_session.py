"""One DuckDB session over the tables of a schema."""

from __future__ import annotations

import contextlib
import signal
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DataError, PlanError, SfumatoError, guarded
from .base import CLOSED, literal, needed, quoted
from .duckdb import DUCKDB
from .duckdb_tables import RawTables
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .session import KEPT, RawTable, Session
from .spill import Spill

_BITS_EACH, _MOST_BITS = 256, 2**28
"""Of a bitmap by which it is told whether numbers are different."""
_USUAL_SPAN, _WIDEST_SPAN = 12, 20
_ROOM_EACH = 2**11


def _enumeration(x: str) -> str:
    """The name of the enumeration that belongs to the cell."""
    return f"{x}_known"


def _enumerated(text: Any, *_: Any) -> Any:
    """The text if it is in the enumeration of its cell. The engine would make a join of IN (...), and run it in every
    query, also in those that do not ask for the column. It stays a value of the enumeration, which the engine groups by
    its number, and which is its text in every function and comparison; that it is ordered as its text is, `_make_view`
    sees to."""
    exp = needed("sqlglot").exp
    own = exp.DataType.build(_enumeration(text.find(exp.Column).name), dialect="duckdb", udt=True)
    return exp.TryCast(this=text, to=own, safe=True)


class DuckDBSession(Session):
    """In memory, with a folder of its own on disk, and a connection to files that is shut before anything is asked."""

    takes = (Csv, Parquet, DuckDBTable, Frame)
    lowering = DUCKDB
    views = replace(DUCKDB, words={**DUCKDB.words, "listed_or_null": _enumerated})
    _engine: Any = None
    _spill: Any = None

    def _start(self) -> None:
        settings: dict[str, Any] = dict(CLOSED)
        if self._settings.threads is not None:
            settings["threads"] = self._settings.threads
        if self._settings.memory is not None:
            settings["memory_limit"] = f"{self._settings.memory}B"
        engine, spill = needed("duckdb"), Spill(self._settings.temp)
        self._spill = weakref.finalize(self, spill.remove)
        self._engine = engine.connect(":memory:", config=settings | {"temp_directory": str(spill.path)})
        self._do("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        self._do("SET enable_progress_bar = false")  # in a notebook it is on, and counts rows and joins as they go
        self._do(f"SET perfect_ht_threshold = {self._span()}")
        self._tables = RawTables(self._engine, self._given, spill.path, self._unread)
        self._do("SET lock_configuration = true")

    def _do(self, text: str) -> None:
        self._engine.execute(text)

    def _span(self) -> int:
        """Within how many bits the numbers of a column lie that rows are grouped by in an array, and by no hash. Units
        are numbered so, mostly. Every thread has an array of its own, which counts in no limit of memory: all of them
        together stay a small part of it."""
        text = "SELECT parse_formatted_bytes(current_setting('memory_limit')) // current_setting('threads')"
        room = int(self._engine.execute(text).fetchone()[0])
        return min(max((room // _ROOM_EACH).bit_length() - 1, _USUAL_SPAN), _WIDEST_SPAN)

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        return self._tables.table(name, flagged=flagged)

    def _refilled(self, names: Collection[str]) -> bool:
        moved = self._tables.reached_anew(names)
        for name in moved or ():
            self._held.pop(name, None)
        return moved is not None

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        for x, texts in lists.items():
            self._do(f"CREATE TYPE IF NOT EXISTS {_enumeration(x)} AS ENUM ({', '.join(map(literal, sorted(texts)))})")
        self._do(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {text}")

    def keep(self, tree: Any) -> Any:
        """In a table of its own, in memory or in the session's folder."""
        exp, name = needed("sqlglot").exp, f"{KEPT}{len(self._kept)}"
        with self._lock:
            text = self._ready(tree)
            making = _TableMaking(self, f"CREATE TEMP TABLE {name} AS {text}")
            try:
                guarded(lambda: self._read_to_the_end(text, making))
            except DataError:
                self._bound(text)  # a statement that the engine does not take is refused as such
                raise
            self._kept.append(name)
        return exp.select("*").from_(exp.Table(this=exp.to_identifier(name)))

    def _all_different(self, name: str, column: str) -> bool:
        """Whole numbers that lie close together: as many bits as there are numbers."""
        if self._types_of(name)[column] != "BIGINT":
            return False
        cells, view = quoted(column), quoted(name)
        with contextlib.suppress(Exception):  # then it is not known
            [ends] = self._timed(
                self._engine.sql(f"SELECT min({cells}) AS a, max({cells}) AS b, count({cells}) AS n FROM {view}")
            ).to_pylist()
            if not ends["n"]:
                return True
            if ends["b"] - ends["a"] < min(_BITS_EACH * ends["n"], _MOST_BITS):
                bits = f"bit_count(bitstring_agg({cells}, {ends['a']}, {ends['b']}))"
                [counted] = self._timed(self._engine.sql(f"SELECT {bits} AS n FROM {view}")).to_pylist()
                return bool(counted["n"] == ends["n"])
        return False

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        """Where the engine fails on a cell of a Parquet file, the files are written anew without such cells, once; what
        all other cells mean is the same (see rewriting.py)."""
        engine = needed("duckdb")
        try:
            return self._timed(bound)
        except (engine.InvalidInputException, engine.ConversionException):
            if not (anew := self._tables.rewritten()):
                raise
        for name in anew:
            self._held.pop(name, None)
            if name in self._viewed:
                self._view(name, self._viewed[name])
            if name in self._flagged:
                self._view(name, self._given[name][0].columns, flagged=True)
        return self._timed(bound if isinstance(bound, _TableMaking) else self._bound(text))

    def _bound(self, text: str) -> Any:
        engine = needed("duckdb")
        failure: SfumatoError = DataError()
        try:
            statements = self._engine.extract_statements(text)
            if [each.type for each in statements] == [engine.StatementType.SELECT]:
                return self._engine.sql(*statements)
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
        if self._settings.seconds is None:
            return _fetched(bound)
        clock = threading.Timer(self._settings.seconds, self._engine.interrupt)
        clock.start()
        try:
            return _fetched(bound)
        finally:
            clock.cancel()
            clock.join()  # an interrupt that comes late must not hit the next statement

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        if self._spill is not None:
            self._spill()


class _TableMaking:
    """A statement that makes a table, run as those are that give rows."""

    def __init__(self, session: DuckDBSession, text: str) -> None:
        self._session, self._text = session, text

    def to_arrow_table(self) -> None:
        self._session._do(self._text)


def _plain(rows: Any) -> Any:
    """Values of enumerations as texts; a statement that makes a table gives no rows."""
    if rows is None:
        return rows
    for place, field in enumerate(rows.schema):
        if str(field.type).startswith("dictionary"):
            rows = rows.set_column(place, field.name, rows.column(place).cast("string"))
    return rows


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
        return _plain(bound.to_arrow_table())
    except RuntimeError as problem:
        if str(problem) != "Query interrupted":
            raise
    raise KeyboardInterrupt  # outside the handler, so that the engine's error is not its context
