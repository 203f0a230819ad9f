"""The SQL above releases, run on what was released; and again on copies with fresh noise, for its error bars.

An interval is the basic bootstrap's: if copies stray from what was released as that strayed from the truth, the truth
lies between 2 v - q(1 - a/2) and 2 v - q(a/2), with q the quantiles of the copies. Rows are told apart from copy to
copy by the columns that noise has no part in; where there are none, by their places.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from ...sources.released_engine import ReleasedEngine, ReleasedError, Rowset
from ..parsing import parsed
from ..running import plain_key
from . import released_tables
from .above_rules import AboveError, written
from .noisy_columns import noisy
from .released_tables import COPY, ReleasedColumn, arrow

if TYPE_CHECKING:
    import pyarrow

    from ..plan import Sql

COPIES, FEWEST, MOST_ROWS = 200, 25, 400_000
LEVELS = (0.005, 0.025, 0.05, 0.16, 0.25, 0.5, 0.75, 0.84, 0.95, 0.975, 0.995)
"""At which quantiles of the copies are kept."""
_NORMAL = NormalDist()
SCORES = tuple(_NORMAL.inv_cdf(level) for level in LEVELS)


def shown(
    parts: Mapping[str, Sql], raws: Mapping[str, Any], text: str, public: Mapping[str, pyarrow.Table]
) -> dict[str, Any]:
    """Columns, cells and error bars of the answer, as plain JSON values."""
    rows = sum(int(raw["groups"]) for raw in raws.values()) + sum(table.num_rows for table in public.values())
    copies = max(FEWEST, min(COPIES, MOST_ROWS // max(rows, 1)))
    tree = parsed(text)
    measured = {f"_{name}": released_tables.noisy_columns(part, raws[name]) for name, part in parts.items()}
    beside = {name: dict.fromkeys(table.column_names, False) for name, table in public.items()}
    flags = noisy(tree, {**measured, **beside}) if parts else None
    if not parts or (flags is not None and not any(flags)):  # nothing shown is noisy, so nothing has bars
        copies = 0
    columns = {name: released_tables.released(part, raws[name], copies) for name, part in parts.items()}
    tables = {f"_{name}": arrow(columns[name], copies, int(raws[name]["groups"])) for name in parts}
    with ReleasedEngine({**tables, **public}) as engine:
        statement = _of_copy(tree, columns)
        try:
            answer = engine.ask(statement, [0] if parts else [])
        except ReleasedError as problem:
            return {"failed": problem.words}
        if flags is None or len(flags) != len(answer.names):
            flags = [bool(parts)] * len(answer.names)
        bars = _bars(engine, _of_copy(_unordered(tree, flags), columns), answer, flags, copies)
    is_open = any(column.open_ for table in columns.values() for column in table)
    return {
        "columns": list(answer.names),
        "types": [_kind(type_) for type_ in answer.types],
        "noisy": flags,
        "cells": [[_cell(row[place]) for row in answer.rows] for place in range(len(answer.names))],
        "bars": bars,
        "copies": copies,
        "open": is_open,
    }


def bind(text: str, tables: Mapping[str, pyarrow.Schema]) -> None:
    """Refuse what the engine does not take, on tables without rows."""
    words = _refusal(text, tuple(tables.items()))
    if words is None:
        return
    fix = "correct that in the SELECT that reads what was released"
    raise AboveError(f"The SQL above the releases cannot be run: {words}.", fix, parsed(text))


@lru_cache(maxsize=64)
def _refusal(text: str, tables: tuple[tuple[str, pyarrow.Schema], ...]) -> str | None:
    """What the engine says of it: asked once."""
    with ReleasedEngine({name: columns.empty_table() for name, columns in tables}) as engine:
        try:
            engine.ask(text)
        except ReleasedError as problem:
            return problem.words
    return None


def _of_copy(tree: exp.Query, columns: Mapping[str, Sequence[ReleasedColumn]]) -> str:
    """The statement over one copy of every release, whose number is its parameter."""

    def change(node: exp.Expression) -> exp.Expression:
        name = node.name[1:] if isinstance(node, exp.Table) else ""
        if name not in columns or not node.name.startswith("_"):
            return node
        listed = [exp.column(column.name, quoted=True) for column in columns[name]]
        one = exp.Select(expressions=listed).from_(exp.to_table(node.name, quoted=True))
        one = one.where(
            exp.EQ(this=exp.column(COPY, quoted=True), expression=exp.Parameter(this=exp.Literal.number(1)))
        )
        alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name, quoted=True))
        return exp.Subquery(this=one, alias=alias)

    changed = tree.copy().transform(change)
    assert isinstance(changed, exp.Query)
    return written(changed)


def _unordered(tree: exp.Query, flags: Sequence[bool]) -> exp.Query:
    """Where columns tell rows apart, all rows are wanted of a copy, not its own first ones."""
    if all(flags):
        return tree
    bare = tree.copy()
    for part in ("order", "limit", "offset"):
        bare.set(part, None)
    return bare


def _bars(engine: ReleasedEngine, statement: str, answer: Rowset, flags: Sequence[bool], copies: int) -> list[Any]:
    """By column and row: quantiles of how far copies stray, in how many of them the row is; None for other columns."""
    places = [place for place, flag in enumerate(flags) if flag and _kind(answer.types[place]) in ("whole", "real")]
    keys = [place for place, flag in enumerate(flags) if not flag]
    if not places or not answer.rows:
        return [None] * len(answer.names)
    labels = _labels(answer.rows, keys)
    numbers = np.full((copies, len(places), len(labels)), np.nan)
    order = {label: row for row, label in enumerate(labels)}
    for copy in range(copies):
        rows = engine.ask(statement, [copy + 1]).rows
        for label, row in zip(_labels(rows, keys), rows, strict=True):
            if label in order:
                numbers[copy, :, order[label]] = [_number(row[place]) for place in places]
    real = np.array([[_number(row[place]) for row in answer.rows] for place in places])
    strayed = numbers - real[None]
    bars: list[Any] = [None] * len(answer.names)
    for at, place in enumerate(places):
        bars[place] = [_quantiles(strayed[:, at, row]) for row in range(len(labels))]
    return bars


def _quantiles(strayed: Any) -> list[float] | None:
    there = strayed[np.isfinite(strayed)]
    return np.quantile(there, LEVELS).tolist() if there.size >= FEWEST // 2 else None


def _labels(rows: Sequence[tuple[Any, ...]], keys: Sequence[int]) -> list[Any]:
    """What tells a row from the others: its keys, and how many of the same came before it."""
    seen: dict[Any, int] = {}
    labels = []
    for row in rows:
        label = tuple(row[place] for place in keys)
        seen[label] = seen.get(label, 0) + 1
        labels.append((label, seen[label]))
    return labels


def _kind(type_: str) -> str:
    word = type_.partition("(")[0].upper()
    if "INT" in word and "INTERVAL" not in word:
        return "whole"
    if word in ("DOUBLE", "FLOAT", "DECIMAL", "REAL", "NUMBER"):
        return "real"
    kinds = {"BOOLEAN": "flag", "DATE": "date", "TIMESTAMP": "moment", "BOOL": "flag", "DATETIME": "moment"}
    return "list" if type_.endswith("[]") else kinds.get(word.partition(" ")[0], "text")


def _number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _cell(value: Any) -> Any:
    """As a plain JSON value; what is no number is NULL."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, list):
        return [_cell(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value)
    if isinstance(value, datetime.date):
        return plain_key(value)
    return str(value)
