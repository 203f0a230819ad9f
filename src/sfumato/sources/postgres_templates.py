"""Expressions of PostgreSQL's SQL from texts, with operands put in.

A text names its operands v_a, v_b, ... One that it needs several times is computed once: where it is more than a small
expression, it is bound in a subquery of one row. (OFFSET 0 keeps the planner from writing it out again.) A window
cannot be moved into a subquery, nor can COUNT(*), which would count that one row; the server itself computes equal ones
once.
"""

from __future__ import annotations

from typing import Any

from .base import needed
from .templates import filled, uses

LET = "_let"
_SMALL = 24
"""Nodes of an expression that is computed again sooner than bound: a subquery costs about as much."""


def written(text: str, **operands: Any) -> Any:
    """The text with these operands; by name, without their v_."""
    exp = needed("sqlglot").exp
    counts = uses(text, "postgres")
    let = {
        name: operand for name, operand in operands.items()
        if counts.get(f"v_{name}", 0) > 1 and not _is_small(operand) and not _is_of_rows(operand)
    }  # fmt: skip
    inner = {name: exp.column(name, LET) if name in let else operand for name, operand in operands.items()}
    tree = filled(text, inner, "postgres")
    if not let:
        return tree
    row = exp.select(*(exp.alias_(operand.copy(), name) for name, operand in let.items())).offset(0)
    return exp.Subquery(this=exp.select(tree).from_(row.subquery(LET)))


def _is_small(node: Any) -> bool:
    return sum(1 for _ in zip(node.walk(), range(_SMALL), strict=False)) < _SMALL


def _is_of_rows(node: Any) -> bool:
    exp = needed("sqlglot").exp
    for inner in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(inner, exp.Window):
            return True
        if isinstance(inner, exp.AggFunc) and all(column.table == LET for column in inner.find_all(exp.Column)):
            return True
    return False
