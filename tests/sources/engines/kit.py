"""Engines that the suite runs on, and how a word is asked of one.

An engine declares its gaps: words that it refuses by name, and edge cases in which it is not yet what the word says. A
gap that starts to work fails the suite, so the list is never longer than the truth.
"""

from __future__ import annotations

import contextlib
import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
import pytest

from sfumato.sources.clickhouse import CLICKHOUSE
from sfumato.sources.duckdb import DUCKDB
from sfumato.sources.lowering import Engine
from sfumato.sources.mariadb import MARIADB
from sfumato.sources.postgresql import POSTGRES
from sfumato.sources.spark import SPARK
from sfumato.sources.vocabulary import Edge, Word, read
from tests.ledger.stores import server
from tests.query.test_query_rewrites import FILES
from tests.sources.engines.asked_clickhouse import CLICKHOUSE_WRONG, asked_of_clickhouse
from tests.sources.engines.asked_mariadb import MARIADB_WRONG, asked_of_mariadb
from tests.sources.engines.sqlite import SQLITE, SQLITE_WRONG, asked_of_sqlite
from tests.sources.spark import kit as spark_kit

Asks = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Member:
    """An engine of the suite.

    asks   runs its text
    slow   does a statement take so long there that many edge cases are asked in one?
    wrong  by word: the edge cases, form and row, in which the engine gives something else than the word says
    flags  are its truth values 1 and 0?
    rewrites  which golden rewrites it can run
    """

    engine: Engine
    asks: Asks
    wrong: Mapping[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    flags: bool = False
    rewrites: frozenset[str] = frozenset()
    slow: bool = False

    def values(self, word: Word, edge: Edge, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The result of each row; what went wrong in place of one."""
        if self.slow and len(rows) > 1:
            with contextlib.suppress(Exception):
                return self._at_once(word, edge, rows)
        return [self._alone(word, edge, row) for row in rows]

    def _alone(self, word: Word, edge: Edge, row: tuple[Any, ...]) -> Any:
        try:
            return self.value(statement(word, edge, row), edge.gives)
        except Exception as problem:
            return problem

    def _at_once(self, word: Word, edge: Edge, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        empty = [word.fold and not row[0] for row in rows]
        several = [row for row, is_empty in zip(rows, empty, strict=True) if not is_empty]
        by_place = dict(self.asks(self.engine.text(statement_of(word, edge, several))))
        values = iter([by_place[place] for place in range(len(several))])
        return [
            self._alone(word, edge, row) if is_empty else next(values)
            for row, is_empty in zip(rows, empty, strict=True)
        ]

    def value(self, tree: Any, kind: str) -> Any:
        """The one cell of the answer."""
        ((value,),) = self.asks(self.engine.text(tree))
        return bool(value) if self.flags and kind == "BOOLEAN" and value is not None else value


@functools.cache
def _opened() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect(config={"threads": 1})
    opened.execute("SET TimeZone = 'UTC'")  # as in every session
    return opened


def asked_of_duckdb(text: str) -> list[tuple[Any, ...]]:
    return _opened().execute(text).fetchall()


@functools.cache
def _served() -> psycopg.Connection:
    opened = psycopg.connect(server().get_uri(), autocommit=True)
    opened.execute("SET TimeZone = 'UTC'; SET search_path = pg_catalog, pg_temp")
    return opened


def asked_of_postgres(text: str) -> list[tuple[Any, ...]]:
    """Its numbers of any width are decimals to the driver."""
    rows = _served().execute(text.encode()).fetchall()
    return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in rows]


# It has no remainder of doubles, and says so once it knows the type.
POSTGRES_WRONG = {
    "remainder": [("{0} % {1}", 7.5, 2.0, 1.5), ("{0} % {1}", -7.5, 2.0, -1.5), ("{0} % {1}", 1.0, 0.25, 0.0)]
}
_IN_SQLITE = frozenset(file.stem for file in FILES) - {
    "adviser", "generous_bound", "distinct_values", "listed_rows",  # logarithms, a hash
    "written_dates", "frame_by_range", "longer_texts", "time_zone",  # of dates and texts
}  # fmt: skip

# Its decimals have 38 digits, which is less than 127 bits: no statement comes near.
SPARK_WRONG = {"exact_sum": [("exact_sum({0})", [2**126, 2**126 - 1], 2**127 - 1)]}


def asked_of_spark(text: str) -> list[tuple[Any, ...]]:
    return spark_kit.asked(text)


_WITHOUT_FRAMES = frozenset(file.stem for file in FILES) - {"frame_by_range"}

MEMBERS = {
    "duckdb": Member(DUCKDB, asked_of_duckdb, rewrites=frozenset(file.stem for file in FILES)),
    "postgres": Member(POSTGRES, asked_of_postgres, POSTGRES_WRONG, rewrites=frozenset(file.stem for file in FILES)),
    "spark": Member(SPARK, asked_of_spark, SPARK_WRONG, rewrites=frozenset(file.stem for file in FILES), slow=True),
    "clickhouse": Member(CLICKHOUSE, asked_of_clickhouse, CLICKHOUSE_WRONG, True, _WITHOUT_FRAMES),
    "mariadb": Member(MARIADB, asked_of_mariadb, MARIADB_WRONG, True, _WITHOUT_FRAMES),
    "sqlite": Member(SQLITE, asked_of_sqlite, SQLITE_WRONG, flags=True, rewrites=_IN_SQLITE),
}

RUN = [pytest.param(name, marks=spark_kit.SLOW if name == "spark" else ()) for name in MEMBERS]
"""The same for tests that run something: Spark's behind `slow`, and where there is Java."""


def literal(value: Any, kind: str) -> str:
    """A value as a constant of a type, in words."""
    if value is None:
        return f"CAST(NULL AS {kind})"
    if kind == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    written = str(value).replace("'", "''")
    if kind == "VARCHAR":
        return f"'{written}'"
    return f"CAST('{repr(value) if isinstance(value, float) else written}' AS {kind})"


def statement(word: Word, edge: Edge, row: tuple[Any, ...]) -> Any:
    """One edge case as a statement of words: the arguments are columns, so that no engine folds them to constants
    before it runs."""
    columns = [f"a{place}" for place in range(len(edge.takes))]
    asked = edge.form.format(*columns)
    cells = [[value] for value in (*row[0], None)] if word.fold else [row[:-1]]
    rows = []
    for place, values in enumerate(cells):
        listed = [f"{literal(*pair)} AS {name}" for *pair, name in zip(values, edge.takes, columns, strict=True)]
        rows.append(f"SELECT {', '.join(listed)}, {place} AS place")
    size = len(row[0]) if word.fold else 1
    return read(f"SELECT {asked} AS x FROM ({' UNION ALL '.join(rows)}) AS t WHERE place < {size}")


def statement_of(word: Word, edge: Edge, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Several edge cases of one form, each with its place."""
    columns = [f"a{place}" for place in range(len(edge.takes))]
    listed = []
    for place, row in enumerate(rows):
        for values in [[value] for value in row[0]] if word.fold else [row[:-1]]:
            cells = [f"{literal(*pair)} AS {name}" for *pair, name in zip(values, edge.takes, columns, strict=True)]
            listed.append(f"SELECT {', '.join([*cells, f'{place} AS place'])}")
    by = " GROUP BY place" if word.fold else ""
    return read(f"SELECT place, {edge.form.format(*columns)} AS x FROM ({' UNION ALL '.join(listed)}) AS t{by}")


def same(value: Any, expected: Any) -> bool:
    """To the bit: -0.0 is not 0.0 here, NaN is NaN, and 1 is not 1.0."""
    if isinstance(expected, float):
        if not isinstance(value, float):
            return False
        return math.isnan(value) if math.isnan(expected) else struct.pack("<d", value) == struct.pack("<d", expected)
    return type(value) is type(expected) and bool(value == expected)
