"""Expressions of PostgreSQL's SQL from texts, with operands put in.

A text names its operands v_a, v_b, ... One that it needs several times is computed once: where it is more than a small
expression, it is bound in a subquery of one row. (OFFSET 0 keeps the planner from writing it out again.) A window
cannot be moved into a subquery, nor can COUNT(*), which would count that one row; the server itself computes equal ones
once.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from .base import needed

LET = "_let"
_SMALL = 24
"""Nodes of an expression that is computed again sooner than bound: a subquery costs about as much."""


def written(text: str, **operands: Any) -> Any:
    """The text with these operands; by name, without their v_."""
    exp = needed("sqlglot").exp
    counts = Counter(column.name for column in _parsed(text).find_all(exp.Column))
    let = {
        name: operand for name, operand in operands.items()
        if counts[f"v_{name}"] > 1 and not _is_small(operand) and not _is_of_rows(operand)
    }  # fmt: skip
    inner = {name: exp.column(name, LET) if name in let else operand for name, operand in operands.items()}
    tree = _filled(text, inner)
    if not let:
        return tree
    row = exp.select(*(exp.alias_(operand.copy(), name) for name, operand in let.items())).offset(0)
    return exp.Subquery(this=exp.select(tree).from_(row.subquery(LET)))


def _filled(text: str, operands: dict[str, Any]) -> Any:
    exp = needed("sqlglot").exp
    around = exp.Paren(this=_parsed(text).copy())
    for column in list(around.find_all(exp.Column)):
        if column.name[:2] == "v_" and not column.table:
            column.replace(operand(operands[column.name[2:]]))
    tree = around.this.pop()
    return exp.Paren(this=tree) if is_loose(tree) else tree


def operand(node: Any) -> Any:
    """A copy that may stand inside of any expression."""
    exp = needed("sqlglot").exp
    return exp.Paren(this=node.copy()) if is_loose(node) else node.copy()


def is_loose(node: Any) -> bool:
    exp = needed("sqlglot").exp
    tight = (
        exp.Paren | exp.Column | exp.Literal | exp.Func | exp.Subquery | exp.Boolean | exp.Null | exp.DataType | exp.Var
    )
    return not isinstance(node, tight) or isinstance(node, exp.Connector | exp.Predicate | exp.Binary)


@lru_cache(maxsize=512)
def _parsed(text: str) -> Any:
    return needed("sqlglot").parse_one(text, dialect="postgres")


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


def constant(node: Any) -> float | None:
    """The number that a constant is; None where it is none."""
    exp, sign = needed("sqlglot").exp, 1.0
    while isinstance(node, exp.Paren | exp.Cast | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal):
        return None
    try:
        return sign * float(node.name)
    except ValueError:
        return None
