"""One session in a Spark, over tables that it reads and public ones of ours.

It is a session of ours alone: functions, views and settings of others are not in it. Views of the schema's tables are
temporary views of the session. Binding parses and analyses a statement, which looks at names and types and at no row.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import DataError, PlanError, guarded
from ..schema import Table
from .base import Source, needed
from .frames import Frame
from .raw_cells import Cell
from .session import RawTable, Settings
from .spark import SPARK
from .spark_cells import cell_of
from .spark_place import SparkPlace, close, is_remote
from .spark_tables import SparkFrame, SparkTable, cells_of
from .spark_templates import name_in_quotes
from .typed_session import TypedSession

_NUMBERS = itertools.count()
_AT_ONCE = 1 << 20
"""So many rows of a statement come here at a time, where it gives more."""
_LOGGERS = ("SQLQueryContextLogger", "py4j.clientserver", "py4j.java_gateway", "pyspark.sql.connect.logging")
"""By which pyspark and py4j write the texts of errors, and all that Spark answers where somebody debugs."""


class SparkSession(TypedSession):
    """Tables of the Spark that the first of them names; public frames are sent along."""

    takes = (SparkTable, SparkFrame, Frame)
    lowering = SPARK

    def __init__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
        *,
        place: SparkPlace,
    ) -> None:
        self._place = place
        self._opened: Any = None
        super().__init__(tables, settings, only, unread)

    def _start(self) -> None:
        for name, (table, source) in self._given.items():
            if table.private and isinstance(source, Frame) and name in self._unread:
                raise PlanError(
                    f"table {name!r} is private and in memory, and is not sent to a cluster, which may log it: write "
                    "it as Parquet for Spark, or give all tables as files or frames"
                )
        self._opened = self._place.session()

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        table, source = self._given[name]
        called = f"_raw_{list(self._given).index(name)}{'_flagged' * flagged}"
        cells: Mapping[str, Cell]
        if isinstance(source, Frame):
            rows, cells = _sent(table, source, flagged=flagged)
            frame = guarded(lambda: self._opened.createDataFrame(rows))
        else:
            assert isinstance(source, SparkTable | SparkFrame)
            frame = source.scan(self._opened, table)
            cells = cells_of(frame, table)
        guarded(lambda: frame.createOrReplaceTempView(called))
        return RawTable(name_in_quotes(called), cells)

    def _refilled(self, names: Collection[str]) -> bool:
        """The files are those that were there when the session was opened."""
        return not any(isinstance(self._given[name][1], Frame) for name in names)

    def _own_quotes(self, name: str) -> str:
        return name_in_quotes(name)

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        called = self._called(name)
        guarded(lambda: self._opened.sql(f"CREATE OR REPLACE TEMPORARY VIEW {called} AS {text}"))

    def _bound(self, text: str) -> Any:
        """Spark looks names and types up, and says of what type the columns are. It plans nothing yet."""
        frame, condition = None, ""
        with _unlogged():
            try:
                frame = self._opened.sql(text)
                _ = frame.schema
            except Exception as problem:
                if type(problem).__name__ not in ("AnalysisException", "ParseException"):
                    frame, condition = None, "-"
                else:
                    condition = _condition(problem)
        if condition == "-" or (frame is None and not condition):
            raise DataError  # outside the handler, so that Spark's words are not the context
        if condition:
            cause = f"the engine does not take this statement ({condition})"
            raise PlanError(cause, cause=cause, code="not-taken")
        return frame

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        with _unlogged(), self._in_time():
            return _plain(bound.toArrow())

    def parts(self, tree: Any) -> Iterator[Any]:
        """Computed once and held in the cluster; what comes here of many rows is a part of them at a time, by a hash of
        the whole row. Each reading may fail as a statement does."""
        with self._lock:
            bound = self._bound(self._ready(tree))
            stored = guarded(lambda: self._held_there(bound))
            try:
                for text in guarded(lambda: self._part_texts(stored)):
                    yield self._named(tree, guarded(lambda text=text: self._part(stored, text)))  # type: ignore[misc]
            finally:
                self._let_go(stored)

    def _held_there(self, bound: Any) -> Any:
        with _unlogged():
            return bound.persist()

    def _let_go(self, stored: Any) -> None:
        with _unlogged(), contextlib.suppress(Exception):
            stored.unpersist()

    def _part_texts(self, stored: Any) -> list[str]:
        """Conditions of which each row fulfils one."""
        with _unlogged(), self._in_time():
            many = -(-stored.count() // _AT_ONCE)
        whole_row = ", ".join(map(name_in_quotes, stored.columns))
        return [f"PMOD(XXHASH64({whole_row}), {many}) = {part}" for part in range(many)] if many > 1 else [""]

    def _part(self, stored: Any, text: str) -> Any:
        return self._read_to_the_end(text, stored.where(text) if text else stored)

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        """Jobs of the statement bear a mark of their own, by which a clock, or whoever interrupts, stops these."""
        tag, over = f"sfumato-{next(_NUMBERS)}", threading.Event()
        mark, unmark, _ = _marks(self._opened)
        mark(tag)
        if self._settings.seconds is not None:
            threading.Thread(target=self._stop_late, args=(tag, over), daemon=True).start()
        try:
            yield
        except BaseException:
            self._stop(tag)
            raise
        finally:
            over.set()
            with contextlib.suppress(Exception):
                unmark(tag)

    def _stop_late(self, tag: str, over: threading.Event) -> None:
        """Again and again: a job that has not begun by then would run on."""
        late = over.wait(self._settings.seconds)
        while not late:
            self._stop(tag)
            late = over.wait(1)

    def _stop(self, tag: str) -> None:
        with contextlib.suppress(Exception):
            _marks(self._opened)[2](tag)

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            close(opened)


def _marks(opened: Any) -> tuple[Any, Any, Any]:
    """How jobs are marked, not marked any more, and cancelled by their mark. A session of this process would cancel
    those of its own thread alone; its context cancels them from any."""
    if is_remote(opened):
        return opened.addTag, opened.removeTag, opened.interruptTag
    context = opened.sparkContext
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _condition(problem: Exception) -> str:
    """Which error it is, by its name in Spark's list of them: a word of Spark's, and no text of anybody's."""
    with contextlib.suppress(Exception):
        return str(problem.getCondition()) or "no name"  # type: ignore[attr-defined]
    return "no name"


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    before = {logger: logger.disabled for logger in map(logging.getLogger, _LOGGERS)}
    for logger in before:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in before.items():
            logger.disabled = disabled


def _plain(rows: Any) -> Any:
    """Moments without a zone, as the statement's own are."""
    types = needed("pyarrow").types
    for place, field in enumerate(rows.schema):
        if types.is_timestamp(field.type) and field.type.tz:
            rows = rows.set_column(place, field.name, rows.column(place).cast(needed("pyarrow").timestamp("us")))
    return rows


def _sent(table: Table, source: Frame, *, flagged: bool) -> tuple[Any, dict[str, Cell]]:
    """A table in memory, as Spark takes it, and its cells."""
    cells, flags = ([f"{sign}{place}" for place in range(len(table.columns))] for sign in ("c", "t"))
    source.check(table)
    rows = guarded(lambda: source.arrow(table, cells, flags if flagged else None))
    rows = guarded(lambda: _taken(rows))
    columns = {}
    for column, cell, flag in zip(table.columns, cells, flags, strict=True):
        own = cell_of(name_in_quotes(cell), _type_of(rows.schema.field(cell).type))
        if own is None:
            raise PlanError(f"table {table.name!r} in memory has a column of a type that is not sent to Spark")
        there = f"COALESCE({name_in_quotes(flag)}, FALSE)"
        columns[column] = replace(own, there=there) if flag in rows.column_names else own
    return rows, columns


def _taken(rows: Any) -> Any:
    """In types that Spark has: none without a sign, and no codes for texts."""
    arrow = needed("pyarrow")
    wider = {
        "uint8": arrow.int16(), "uint16": arrow.int32(), "uint32": arrow.int64(), "uint64": arrow.decimal128(20, 0),
        "halffloat": arrow.float64(), "large_string": arrow.string(), "string_view": arrow.string(),
    }  # fmt: skip
    for place, field in enumerate(rows.schema):
        kind = field.type.value_type if arrow.types.is_dictionary(field.type) else field.type
        kind = wider.get(str(kind), kind)
        if kind != field.type:
            rows = rows.set_column(place, field.name, rows.column(place).cast(kind))
    return rows


def _type_of(kind: Any) -> str:
    """Spark's name of an Arrow type."""
    types = needed("pyarrow").types
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "timestamp"
    by_name = {
        "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double",
        "bool": "boolean", "string": "string", "date32[day]": "date",
    }  # fmt: skip
    return by_name.get(str(kind), str(kind))


SparkPlace.opens = SparkSession
