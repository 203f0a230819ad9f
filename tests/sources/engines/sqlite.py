"""A second engine, as small as one can be: SQLite of Python's own library. It follows "add an engine" in CONTRIBUTING.

It holds integers of 64 bits and no NaN, and its SUM fails beyond 2^63; so it has no word for exact sums, and no type
for wide integers, doubles and decimals, and refuses statements that need them. Nothing of the library runs on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlglot import exp

from sfumato.sources.lowering import Engine, as_is, named

_AS_IS = """
    sum_of_two difference product negative shifted_right bits_of_both size equal different less at_most greater at_least
    between among exists is_null both either not case branch first_present null_if joined count minimum maximum
    row_number rank dense_rank tile earlier later first_of last_of nth_of table_once cast
"""


def _whole_quotient(node: Any) -> Any:
    """Its / of integers cuts off towards 0."""
    return exp.Div(this=node.this, expression=node.expression, typed=True, safe=True)


def _same(node: Any) -> Any:
    return exp.Is(this=node.this, expression=node.expression)


def _not_same(node: Any) -> Any:
    return exp.Not(this=exp.Paren(this=exp.Is(this=node.this, expression=node.expression)))


def _least(*values: Any) -> Any:
    return _extreme("MIN", *values)


def _greatest(*values: Any) -> Any:
    return _extreme("MAX", *values)


def _extreme(name: str, one: Any, other: Any, *more: Any) -> Any:
    """Its MIN and MAX of several are NULL where one is: each is replaced by the other there."""
    if more:
        return _extreme(name, _extreme(name, one, other), *more)
    first = exp.Coalesce(this=one, expressions=[other])
    second = exp.Coalesce(this=other.copy(), expressions=[one.copy()])
    return named(name)(first, second)


SQLITE = Engine(
    "SQLite",
    "sqlite",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        "whole_quotient": _whole_quotient,
        "remainder": as_is,
        "same": _same,
        "not_same": _not_same,
        "least_present": _least,
        "greatest_present": _greatest,
        "characters": named("LENGTH"),
        "trimmed": named("TRIM"),
        "trimmed_before": named("LTRIM"),
        "trimmed_behind": named("RTRIM"),
        "part": named("SUBSTR"),
        "replaced": named("REPLACE"),
        "place_of": named("INSTR"),
    },
    {"BIGINT": "BIGINT", "INT": "INT", "VARCHAR": "TEXT", "BOOLEAN": "BOOLEAN"},
)

SQLITE_WRONG: Mapping[str, Sequence[tuple[Any, ...]]] = {}


def asked_of_sqlite(text: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as opened:
        return opened.execute(text).fetchall()
