"""A session in SQLite: what `sources.session.Session` asks of an engine, and a source that brings its tables there."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.errors import DataError, PlanError, SfumatoError
from sfumato.schema import Table
from sfumato.sources.base import Source, literal, no_arrays, quoted
from sfumato.sources.frames import Frame
from sfumato.sources.raw_cells import Cell
from sfumato.sources.session import RawTable, Session
from tests.sources.engines.sqlite import SQLITE
from tests.sources.engines.sqlite_functions import decoded, encoded, register

_KINDS = {"INTEGER": "whole", "REAL": "float", "BOOLEAN": "flag"}
_SHUT = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


@dataclass(frozen=True)
class SqliteTable(Source):
    """One table of a SQLite file, called as in the schema."""

    path: Path

    def engine(self) -> type[SqliteSession]:
        return SqliteSession

    @property
    def absent(self) -> bool:
        return not self.path.is_file()

    def check(self, table: Table) -> None:
        no_arrays(table, "a SQLite file")

    def compare(self, table: Table) -> None:
        if self.absent:
            raise PlanError(f"there is no file {self.path.name!r}: correct its path, or put it there")


def _whole(cell: Any) -> Any:
    """Cells of one column may be of any type there, and each is read by its own."""
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < 2**63 else None
    return cell if isinstance(cell, int) else None


def _float(cell: Any) -> Any:
    return float(cell) if isinstance(cell, int | float) else None


def _flag(cell: Any) -> Any:
    return cell if cell in (0, 1) else None


def _text(cell: Any) -> Any:
    try:
        return cell.decode() if isinstance(cell, bytes) else cell if isinstance(cell, str) else str(cell)
    except UnicodeDecodeError:
        return None


def _there(cell: Any) -> bool:
    return bool(cell.strip(b" \t\n\v\f\r" if isinstance(cell, bytes) else " \t\n\v\f\r")) if hasattr(
        cell, "strip"
    ) else cell is not None  # fmt: skip


def _allow(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action in _SHUT else sqlite3.SQLITE_OK


_OF_CELLS = {"whole": _whole, "float": _float, "flag": _flag, "text": _text}


class SqliteSession(Session):
    """In memory, with the files attached for reading."""

    takes = (SqliteTable, Frame)
    lowering = SQLITE
    _opened: sqlite3.Connection | None = None

    def _start(self) -> None:
        self._opened = register(sqlite3.connect(":memory:", uri=True, check_same_thread=False))
        for kind, function in _OF_CELLS.items():
            self._sqlite.create_function(f"cell_{kind}", 1, _of_cell(function), deterministic=True)
        self._sqlite.create_function("cell_there", 1, _there, deterministic=True)
        for number, (_, source) in enumerate(self._given.values()):
            if isinstance(source, SqliteTable):
                address = literal(f"{source.path.absolute().as_uri()}?mode=ro")
                self._sqlite.execute(f"ATTACH {address} AS file_{number}")
        self._sqlite.set_authorizer(_allow)

    @property
    def _sqlite(self) -> sqlite3.Connection:
        assert self._opened is not None
        return self._opened

    def _raw(self, name: str, *, flagged: bool) -> RawTable:
        table, source = self._given[name]
        number = list(self._given).index(name)
        if isinstance(source, Frame):
            return self._frame(f"frame_{number}{'_flagged' * flagged}", table, source)
        listed = self._sqlite.execute(
            "SELECT name, type FROM pragma_table_info(?, ?)", (name, f"file_{number}")
        ).fetchall()
        types = {column: declared.upper() for column, declared in listed}
        if lacking := [column for column in table.columns if column not in types]:
            raise PlanError(f"the data of table {name!r} has no column {lacking[0]!r}, which the schema names")
        cells = {column: _cell(quoted(column), types[column]) for column in table.columns}
        return RawTable(f"file_{number}.{quoted(name)}", cells)

    def _frame(self, called: str, table: Table, source: Frame) -> RawTable:
        names = [f"c{place}" for place in range(len(table.columns))]
        arrow = source.arrow(table, names)
        self._sqlite.execute(f"DROP TABLE IF EXISTS temp.{called}")
        self._sqlite.execute(f"CREATE TEMP TABLE {called} ({', '.join(names)})")
        places = ", ".join("?" * len(names))
        rows = zip(*(map(encoded, column.to_pylist()) for column in arrow.columns), strict=True)
        self._sqlite.executemany(f"INSERT INTO {called} VALUES ({places})", rows)
        types = [_declared(column.type) for column in arrow.columns]
        cells = [_cell(cell, declared) for cell, declared in zip(names, types, strict=True)]
        return RawTable(called, dict(zip(table.columns, cells, strict=True)))

    def _make_view(self, name: str, text: str, lists: Mapping[str, Sequence[str]]) -> None:
        self._sqlite.execute(f"DROP VIEW IF EXISTS temp.{quoted(name)}")
        self._sqlite.execute(f"CREATE TEMP VIEW {quoted(name)} AS {text}")

    def _bound(self, text: str) -> Any:
        failure: SfumatoError = DataError()
        try:
            self._sqlite.execute(f"EXPLAIN {text}")
            return text
        except sqlite3.OperationalError as error:
            failure = PlanError(f"the engine does not take this statement: {error}", code="not-taken")
        except Exception:
            pass
        raise failure

    def _read_to_the_end(self, text: str, bound: Any) -> Any:
        if self._settings.seconds is not None:
            end = time.monotonic() + self._settings.seconds
            self._sqlite.set_progress_handler(lambda: int(time.monotonic() > end), 10_000)
        found = self._sqlite.execute(bound)
        rows = found.fetchall()
        names = [described[0] for described in found.description]
        return pa.Table.from_arrays([_column([row[place] for row in rows]) for place in range(len(names))], names)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _cell(raw: str, declared: str) -> Cell:
    kind: Any = _KINDS.get(declared, "text")
    return Cell(f"cell_{kind}({raw})", kind, f"cell_there({raw})")


def _declared(kind: Any) -> str:
    types = pa.types
    if types.is_integer(kind):
        return "INTEGER"
    return "REAL" if types.is_floating(kind) else "BOOLEAN" if types.is_boolean(kind) else "TEXT"


def _of_cell(function: Any) -> Any:
    return lambda cell: None if cell is None else function(cell)


def _column(cells: list[Any]) -> Any:
    """Wide integers are decimals of 128 bits."""
    values = [decoded(cell) for cell in cells]
    if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values):
        return pa.array(values, type=pa.decimal128(38, 0))
    return pa.array(values, type=None if any(value is not None for value in values) else pa.int64())
