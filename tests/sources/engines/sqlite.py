"""A second engine, as small as one can be: SQLite of Python's own library. It follows "add an engine" in CONTRIBUTING.

What its SQL means otherwise is asked of functions of Python (`sqlite_functions`). It has no dates, no decimals and no
hash, and refuses statements that need them. Nothing of the library runs on it: it shows what a second engine costs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlglot import exp

from sfumato.sources.lowering import Engine, Lowered, as_is, named, type_of
from sfumato.sources.vocabulary import WORDS
from tests.sources.engines.sqlite_functions import OF_ANY, OF_VALUES, decoded, name_of, register

_AS_IS = """
    among exists is_null both either not case branch first_present null_if joined count minimum maximum
    row_number rank dense_rank tile earlier later first_of last_of nth_of table_once
"""


def _asked_of_python(word: str) -> Lowered:
    """A function of the word's name, of what the node or the call is asked of; a type is the text of its name."""

    def lower(*arguments: Any) -> Any:
        if WORDS[word].node:
            (node,) = arguments
            arguments = tuple(node.args[part] for part in ("this", "expression", "to") if node.args.get(part))
        return named(name_of(word))(*map(_without_type, arguments))

    return lower


def _without_type(argument: Any) -> Any:
    return exp.Literal.string(type_of(argument)) if isinstance(argument, exp.DataType) else argument


def _between(node: Any) -> Any:
    low = named(name_of("at_most"))(node.args["low"], node.this)
    return exp.Paren(this=exp.And(this=low, expression=named(name_of("at_most"))(node.this.copy(), node.args["high"])))


def _same(node: Any) -> Any:
    return exp.Is(this=node.this, expression=node.expression)


def _not_same(node: Any) -> Any:
    return exp.Not(this=exp.Paren(this=exp.Is(this=node.this, expression=node.expression)))


SQLITE = Engine(
    "SQLite",
    "sqlite",
    {
        **dict.fromkeys(_AS_IS.split(), as_is),
        **{word: _asked_of_python(word) for word in (*OF_VALUES, *OF_ANY, "exact_sum")},
        "between": _between,
        "same": _same,
        "not_same": _not_same,
        "characters": named("LENGTH"),
        "trimmed": named("TRIM"),
        "trimmed_before": named("LTRIM"),
        "trimmed_behind": named("RTRIM"),
        "part": named("SUBSTR"),
        "replaced": named("REPLACE"),
        "place_of": named("INSTR"),
    },
    {name: name for name in ("BIGINT", "INT", "INT128", "DOUBLE", "VARCHAR", "BOOLEAN")},
)

SQLITE_WRONG: Mapping[str, Sequence[tuple[Any, ...]]] = {}


def asked_of_sqlite(text: str) -> list[tuple[Any, ...]]:
    with closing(register(sqlite3.connect(":memory:"))) as opened:
        return [tuple(map(decoded, row)) for row in opened.execute(text)]
