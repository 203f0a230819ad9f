"""Releases without noise: what a query computes is then what the engine says, to rounding."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import record
from sfumato.query.plan import Sql
from sfumato.query.released.answer import Answer
from tests.query.databases import passing_database, session


class Still:
    """Draws zeros, and remembers for which laws."""

    def __init__(self) -> None:
        self.laws: list[tuple[Any, int]] = []

    def draw(self, law: Any, count: int) -> Any:
        self.laws.append((law, count))
        return np.zeros(count, dtype=np.int64)


def raw_of(plan: Sql, tables: Mapping[str, Any], noise: Any = None) -> dict[str, Any]:
    """What the plan releases of these tables, as it is stored; without noise, unless some is given."""
    with session(plan.schema, tables) as opened:
        raw = plan._run(opened, SimpleNamespace(noise=noise or Still()))  # type: ignore[arg-type]
    found: dict[str, Any] = record.parse(record.canonical(raw))
    return found


def answered(plan: Sql, tables: Mapping[str, Any], noise: Any = None) -> Answer:
    """The answer of a release without noise."""
    return plan.finish(raw_of(plan, tables, noise))


def plainly(text: str, tables: Mapping[str, pa.Table]) -> list[tuple[Any, ...]]:
    """What the engine answers when asked without privacy."""
    with passing_database() as engine:
        for name, data in tables.items():
            engine.register(name, data)
        return engine.sql(text).fetchall()
