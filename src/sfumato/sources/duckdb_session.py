"""One DuckDB session over the tables of a schema."""

from __future__ import annotations

import contextlib
import signal
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DataError, PlanError, SfumatoError
from .base import CLOSED, literal, needed, quoted
from .duckdb import DUCKDB
from .duckdb_tables import RawTables
from .files import Csv, DuckDBTable, Parquet
from .frames import Frame
from .session import RawTable, Session
from .spill import Spill


def _enumeration(x: str) -> str:
    """The name of the enumeration that belongs to the cell."""
    return f"{x}_known"


def _enumerated(text: Any, *_: Any) -> Any:
    """The text if it is in the enumeration of its cell. The engine would make a join of IN (...), and run it in every
    query, also in those that do not ask for the column."""
    exp = needed("sqlglot").exp
    own = exp.DataType.build(_enumeration(text.find(exp.Column).name), dialect="duckdb", udt=True)
    return exp.Cast(this=exp.TryCast(this=text, to=own, safe=True), to=exp.DataType.build("VARCHAR"))


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
        self._tables = RawTables(self._engine, self._given, spill.path, self._unread)

    def _seal(self) -> None:
        self._do("SET lock_configuration = true")

    def _do(self, text: str) -> None:
        self._engine.execute(text)

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        return self._tables.table(name, flagged=flagged)

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        for x, texts in lists.items():
            self._do(f"CREATE TYPE IF NOT EXISTS {_enumeration(x)} AS ENUM ({', '.join(map(literal, texts))})")
        self._do(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS {text}")

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        """Where the engine fails on a cell of a Parquet file, the files are written anew without such cells, once; what
        all other cells mean is the same (see rewriting.py)."""
        engine = needed("duckdb")
        try:
            return self._timed(bound)
        except (engine.InvalidInputException, engine.ConversionException):
            if not (anew := self._tables.rewritten()):
                raise
        for number, name in anew:
            for flagged in (False, True)[: 1 + (name in self._flagged)]:
                self._view(number, name, flagged=flagged)
        return self._timed(self._bound(text))

    def _bound(self, text: str) -> Any:
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
