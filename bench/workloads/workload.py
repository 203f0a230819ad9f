"""A workload: tables with their schema, a unit, and queries as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sfumato import Schema, Unit
from sfumato.schema import Table

from . import clinic, shapes, star, tpch, tpch_queries

Rows = pa.Table | Path
THREADS = 2


@dataclass(frozen=True, eq=False)
class Workload:
    """refused  queries that nobody can answer and hide a unit: they must be refused, before anything is paid."""

    name: str
    unit: str
    tables: Mapping[str, tuple[Table, Rows]]
    queries: Mapping[str, str]
    refused: frozenset[str] = frozenset()

    @cached_property
    def schema(self) -> Schema:
        return Schema({name: table for name, (table, _) in self.tables.items()})

    @property
    def protects(self) -> Unit:
        return Unit(f"user:{self.unit}")

    @property
    def data(self) -> dict[str, Any]:
        return {name: str(rows) if isinstance(rows, Path) else rows for name, (_, rows) in self.tables.items()}

    def raw(self, query: str) -> pa.Table:
        """What the engine says without privacy, from opening it to the answer in Arrow."""
        with duckdb.connect(config={"threads": THREADS}) as engine:
            for name, rows in self.data.items():
                if isinstance(rows, str):
                    engine.execute(f"CREATE VIEW {name} AS SELECT * FROM '{rows}'")
                else:
                    engine.register(name, rows)
            return engine.sql(query).to_arrow_table()


def of_tpch(scale: float) -> Workload:
    files = tpch.ready(scale)
    tables = {name: (table, files[name]) for name, table in tpch.TABLES.items()}
    queries = {f"Q{number}": text for number, text in tpch_queries.QUERIES.items()}
    lists = frozenset(f"Q{number}" for number in tpch_queries.LISTS)
    return Workload(f"TPC-H {scale:g}", tpch.UNIT, tables, queries, lists)


def of_star(sales: int) -> Workload:
    return Workload("star", star.UNIT, star.tables(sales), star.REPORTS)


def of_shapes(patients: int) -> Workload:
    return Workload("shapes", clinic.UNIT, clinic.tables(patients), shapes.SHAPES)
