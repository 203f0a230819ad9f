"""`workload(...)`: a plan for many tables of one query's cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import checks
from ..errors import ArgumentError
from ..units import Unit
from .ask import schema_and_unit
from .comments import options_in
from .dialects.pasted import dialect_of, in_duckdb_sql
from .keys import check_groups
from .limits import Limits, limits_of
from .plan import Sql
from .refusal import QueryError
from .tabled.asked_tables import tables_of
from .tabled.choosing import KINDS
from .tabled.workload_plan import SqlWorkload, columns_of, strategy_for


def workload(
    text: str,
    data: Any,
    *,
    tables: Any = None,
    ways: Any = None,
    unit: Unit | None = None,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    limits: Limits | Mapping[str, Any] | None = None,
    keys: Mapping[str, Any] | None = None,
    bounds: Mapping[str, Any] | None = None,
    shares: Mapping[str, Any] | None = None,
    strategy: str = "auto",
    dialect: str = "duckdb",
) -> SqlWorkload:
    """Many tables, ranges and cumulative sums of one query's cells, measured together for one price.

    >>> from sfumato import Schema, Unit, schema, workload
    >>> people = Schema.of(sex=schema.category(["f", "m"]), age=schema.whole(0, 99))
    >>> plan = workload("SELECT sex, age, COUNT(*) AS n FROM data GROUP BY sex, age", people, unit=Unit(),
    ...     tables={"sex": ["sex"], "ages": {"age": "cumulative"}, "both": ["sex", "age"]}, epsilon=1)
    >>> len(plan.tables), plan.strategy.measurements < 500
    (3, True)

    text      the finest cells: COUNT and SUM by public groups
    tables    what is told, by name or as a list: columns such as ["sex", "age"], or forms by column: "values",
              "cumulative" (up to each value), "ranges" (from each value to each later one), [(0, 17), (18, 99)] (these)
    ways      beside them, every table of at most so many columns
    epsilon   for all of it; with delta, or rho, Gaussian noise, else Laplace noise
    limits    how much one unit counts for at most, in all of its rows together: {"rows": 3}
    strategy  what is measured: "auto" (the least expected total squared error), "cells" (of all columns), "columns"
              (the best known for each column), "tables" (tables and coarser groups, with weights)
    """
    schema, protects = schema_and_unit(data, unit)
    checks.instance(text, str, "text", "a query")
    checks.one_of(strategy, "strategy", KINDS)
    if written := options_in(text, dialect):
        raise ArgumentError(f"a comment of the query gives {', '.join(written)}: say it of the workload instead.")
    query = in_duckdb_sql(text, dialect_of(dialect), schema)
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta or 0, "rho": rho}
    options |= {"keys": keys or {}, "bounds": bounds or {}, "shares": shares or {}}
    try:
        cells = Sql(text=query, schema=schema, protects=protects, limits=limits_of(limits, "limits"), **options)
        check_groups(cells.front.keys)
        wanted = tables_of(tables, [column.name for column in columns_of(cells).values()], ways)
        return SqlWorkload(cells=cells, tables=wanted, strategy=strategy_for(cells, wanted, strategy))
    except QueryError as problem:
        raise problem.within(query) from None
