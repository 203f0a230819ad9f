"""Databases and sessions for tests: an engine takes longer to open than most statements take to run."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from sfumato import record
from sfumato.schema import Schema
from sfumato.sources import connect, source
from sfumato.sources.base import Connection

_MOST = 6  # sessions that stay open
_numbers = itertools.count()
_sessions: dict[Any, tuple[Connection, Any]] = {}


@functools.cache
def _engine(threads: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": threads, "preserve_insertion_order": threads == 1})


def database(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """An empty database in memory, beside others of the same engine."""
    own, name = _engine(threads).cursor(), f"beside_{next(_numbers)}"
    own.execute(f"ATTACH ':memory:' AS {name}")
    own.execute(f"USE {name}")
    return own


@contextmanager
def passing_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that is gone afterwards, with what was registered in it."""
    own = database()
    try:
        yield own
    finally:
        [(name,)] = own.sql("SELECT current_database()").fetchall()
        own.close()
        _engine(1).execute(f"DETACH {name}")


@contextmanager
def session(schema: Schema, tables: Mapping[str, Any]) -> Iterator[Connection]:
    """A session over these tables, of one thread. It stays open for whoever asks the same cells next."""
    chosen = {name: (schema.table(name), source(data)) for name, data in tables.items()}
    words = tuple((name, _cells(data), record.canonical(schema.table(name))) for name, data in tables.items())
    if any(cells is None for _, cells, _ in words):
        opened = connect(chosen, threads=1)
        try:
            yield opened
        finally:
            opened.close()
        return
    if words not in _sessions:
        while len(_sessions) >= _MOST:
            _sessions.pop(next(iter(_sessions)))[0].close()
        _sessions[words] = (connect(chosen, threads=1), dict(tables))  # held, so that no other table gets its number
    yield _sessions[words][0]


def _cells(data: Any) -> Any:
    """By which the same cells are known again: a table that cannot change by itself, columns by what is in them. None
    for what is not looked into, such as files."""
    if isinstance(data, pa.Table | pl.DataFrame):
        return id(data)
    if not isinstance(data, Mapping):
        return None
    columns = [(name, _column(column)) for name, column in data.items()]
    return None if any(cells is None for _, cells in columns) else tuple(columns)


def _column(column: Any) -> Any:
    if isinstance(column, list | tuple | range):
        return repr(column)
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.dtype.str, column.tobytes()
    return None


def close_all() -> None:
    """Of sessions that stayed open."""
    while _sessions:
        _sessions.popitem()[1][0].close()
