"""What Spark's subqueries see: tables of the query that they stand in, and of none around that one."""

from __future__ import annotations

from typing import Any

from ..errors import PlanError
from .base import needed


def refuse_far_columns(around: Any) -> None:
    """Refuse a column that a subquery takes from two queries out, by its name, before Spark does without one."""
    exp = needed("sqlglot").exp
    for column in around.find_all(exp.Column):
        if column.table and _steps(column, exp) > 1:
            raise PlanError(
                f"column {column.name!r} of {column.table!r} is used in a subquery within a subquery, and Spark looks "
                "one query out alone: join its table in the subquery between them"
            )


def _steps(column: Any, exp: Any) -> int:
    """Through how many subqueries of expressions a column reaches; 0 for one of its own query's tables."""
    steps, select = 0, column.find_ancestor(exp.Select)
    while select is not None and column.table.lower() not in _sources(select, exp):
        steps += not isinstance(select.parent_select and _holder(select, exp), exp.From | exp.Join | exp.CTE)
        select = select.parent_select
    return 0 if select is None else steps


def _holder(select: Any, exp: Any) -> Any:
    """What a query stands in, through brackets and set operations."""
    node = select.parent
    while isinstance(node, exp.Subquery | exp.SetOperation | exp.Paren):
        node = node.parent
    return node


def _sources(select: Any, exp: Any) -> set[str]:
    first = select.args.get("from_") or select.args.get("from")
    tables = [] if first is None else [first.this, *(join.this for join in select.args.get("joins") or [])]
    return {table.alias_or_name.lower() for table in tables}
