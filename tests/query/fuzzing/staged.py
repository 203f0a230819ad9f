"""Queries in stages: a seed's query that compares with what all rows come to, and tables that earlier stages might have
left. What a later stage keeps must hold whatever these hold, so they hold anything: NULLs, strangers, far numbers."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
from sqlglot import exp

from sfumato.query import SqlStages, sql
from sfumato.query.parsing import parsed
from sfumato.query.plan import Sql
from sfumato.schema import Column, Table
from sfumato.units import Unit

from .queries import Question, question
from .worlds import DRUGS, World

VALUES = (
    "(SELECT AVG(amount) FROM claims)",
    "(SELECT COUNT(*) / 7 FROM visits WHERE ok)",
    "(SELECT MEDIAN(days) FROM visits)",
    "(SELECT MAX(m) FROM (SELECT ward, AVG(days) AS m FROM visits GROUP BY ward))",
    "(SELECT SUM(days) FROM visits WHERE days > (SELECT AVG(weight) FROM patients))",
)
ROWS = (
    "EXISTS (SELECT 1 FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) WHERE n > 5)",
    "'d0' IN (SELECT drug FROM visits GROUP BY drug HAVING COUNT(*) > 3)",
)
WHOLE = (
    "SELECT COUNT(*) AS x0, SUM(t.days) AS x1 FROM visits AS t JOIN wards AS w ON t.ward = w.ward "
    "WHERE w.beds > 5 AND t.days < (SELECT AVG(v.days) FROM visits AS v WHERE v.ward = w.ward)",
    "SELECT t.ward AS g0, COUNT(*) AS x0 FROM visits AS t JOIN (SELECT drug, AVG(days) AS m FROM visits GROUP BY drug) "
    "AS q ON q.drug = t.drug WHERE t.days > q.m GROUP BY t.ward",
    "SELECT SUM(CASE WHEN t.amount > (SELECT AVG(amount) FROM claims) THEN 1 ELSE 0 END) AS x0 FROM claims AS t",
)
_COMPARED = (exp.GT, exp.LT, exp.GTE, exp.LTE)


def question_of(seed: int, *, users: bool) -> Question:
    """The query of a seed, in stages."""
    asked, draw = question(seed, users=users), random.Random(seed)
    if seed % 5 == 0:
        options = {name: value for name, value in asked.options.items() if name in ("epsilon", "delta", "limits")}
        if users and "delta" in options:
            return Question(WHOLE[seed // 5 % len(WHOLE)], options, {"staged whole"})
    tree = parsed(asked.text)
    numbers = [node for node in tree.find_all(*_COMPARED) if isinstance(node.expression, exp.Literal)]
    numbers = [node for node in numbers if not node.expression.is_string and node.find_ancestor(exp.Where)]
    if numbers and draw.random() < 0.7:
        draw.choice(numbers).set("expression", _read(draw.choice(VALUES)))
        return Question(tree.sql("duckdb"), asked.options, asked.features | {"staged value"})
    assert isinstance(tree, exp.Select)
    return Question(tree.where(_read(draw.choice(ROWS))).sql("duckdb"), asked.options, asked.features | {"staged rows"})


def stages_of(seed: int, opened: World, *, users: bool) -> tuple[Question, tuple[Sql, ...]]:
    """What the stages of a seed's query release; the sessions hold tables that earlier ones might have left."""
    asked, draw = question_of(seed, users=users), random.Random(seed)
    unit = Unit(opened.unit.of, draw.choice(["add-remove", "replace"]), draw.choice([1, 1, 2]))
    plan = sql(asked.text, opened.schema, unit=unit, **asked.options)
    assert isinstance(plan, SqlStages) and plan.stages
    for part in plan.sqls.values():
        for table in part.released.values():
            left = _left(table, draw)
            for session in opened.sessions.values():
                session.hand_over(table, left)
    return asked, tuple(plan.sqls.values())


def _read(text: str) -> exp.Expression:
    tree = parsed(f"SELECT {text}")
    return tree.expressions[0].copy()  # type: ignore[no-any-return]


def _left(table: Table, draw: random.Random) -> pa.Table:
    """Five rows of whatever the columns can hold."""
    return pa.table({name: [_cell(column, draw) for _ in range(5)] for name, column in table.columns.items()})


def _cell(column: Any, draw: random.Random) -> Any:
    assert isinstance(column, Column)
    if column.type in ("real", "whole"):
        whole = column.type == "whole"
        return draw.choice([None, 0, 1, -3, 20, 10**17] if whole else [None, 0.0, 0.5, -7.25, 19.5, 1e17, float("nan")])
    if column.type == "date":
        return datetime.date(2024, draw.randrange(1, 13), 3)
    if column.type == "moment":
        return datetime.datetime(2024, draw.randrange(1, 13), 3, 4, 5)
    if column.type == "flag":
        return draw.choice([True, False, None])
    return draw.choice([*DRUGS, "a", "b", None])
