"""What those who change a pasted query are handed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from .value_types import ValueTypes

TITLES = {
    "duckdb": "DuckDB", "postgres": "PostgreSQL", "bigquery": "BigQuery", "snowflake": "Snowflake", "tsql": "T-SQL",
    "spark": "Spark", "databricks": "Databricks", "mysql": "MySQL",
}  # fmt: skip

ALIASES = {"postgresql": "postgres", "sqlserver": "tsql", "mssql": "tsql", "mariadb": "mysql"}


@dataclass(frozen=True)
class Paste:
    """A query of another dialect on its way."""

    dialect: str
    types: ValueTypes

    @property
    def title(self) -> str:
        return TITLES[self.dialect]

    def shown(self, node: exp.Expr) -> str:
        """A part of the query for a message, in its own SQL."""
        text = node.sql(self.dialect)
        return text if len(text) <= 60 else "..."


Change = Callable[[Any, Paste], exp.Expr]
"""A node of another dialect, its operands done, becomes one that DuckDB's SQL writes with the same meaning."""
