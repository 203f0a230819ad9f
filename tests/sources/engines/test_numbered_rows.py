"""Rows that are units keep their numbers where an engine computes a table of WITH twice."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sfumato.query import Limits, Sql, sql
from sfumato.schema import Schema, Table, category, key, real
from sfumato.sources.lowering import Engine
from sfumato.sources.postgresql import POSTGRES
from sfumato.sources.typed_engine import TypedEngine
from sfumato.sources.warehouses import WAREHOUSES
from sfumato.units import Unit
from tests.sources.engines.kit import MEMBERS

SCHEMA = Schema(
    {
        "t": Table({"w": category(["a", "b"]), "x": real(0, 50)}),
        "p": Table({"w": category(["a", "b"]), "item": key()}, private=False),
    }
)
TYPES = {"t": {"w": "VARCHAR", "x": "DOUBLE"}, "p": {"w": "VARCHAR", "item": "VARCHAR"}}
REPEATED = "SELECT item, COUNT(*) AS n, SUM(x) AS s FROM t JOIN p USING (w) GROUP BY item"
TYPED = [each.engine for each in MEMBERS.values() if isinstance(each.engine, TypedEngine)]
ENGINES: list[TypedEngine] = [*TYPED, *WAREHOUSES.values()]


def text_on(engine: TypedEngine) -> str:
    plan = sql(REPEATED, SCHEMA, unit=Unit(), epsilon=1, delta=1e-6, limits=Limits())
    assert isinstance(plan, Sql)
    (tree,) = plan._statements.values()
    return replace(engine, tables=TYPES).text(tree)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_a_number_follows_all_columns_or_is_computed_once(engine: Engine) -> None:
    assert isinstance(engine, TypedEngine)
    text = text_on(engine)
    if engine.computes_once:
        assert "AS MATERIALIZED" in text
        return
    assert "MATERIALIZED" not in text
    (order,) = re.findall(
        r"(?:ROW_NUMBER|row_number|COUNT|count)\((?:\*?)\) OVER \(ORDER BY (.*?) AS [`\"\[]?_unit", text
    )
    assert re.search(r"\bw\b", order) and re.search(r"\bx\b", order) and order.count("x") >= 2, "and the sign of a zero"


def test_postgres_computes_once_and_the_others_do_not() -> None:
    assert [engine.name for engine in ENGINES if engine.computes_once] == [POSTGRES.name]
