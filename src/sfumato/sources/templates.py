"""Expressions of an engine's own SQL from texts, with operands put in.

A text names its operands v_a, v_b, ... What an engine does about one that the text needs several times is its own
affair (`postgres_templates`, `spark_templates`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .base import needed


def filled(text: str, operands: Mapping[str, Any], dialect: str) -> Any:
    """The text in this dialect with these operands; by name, without their v_."""
    exp = needed("sqlglot").exp
    around = exp.Paren(this=_parsed(text, dialect).copy())
    for column in list(around.find_all(exp.Column)):
        if column.name[:2] == "v_" and not column.table:
            column.replace(operand(operands[column.name[2:]]))
    tree = around.this.pop()
    return exp.Paren(this=tree) if is_loose(tree) else tree


def uses(text: str, dialect: str) -> Mapping[str, int]:
    """How often the text names each operand, with its v_."""
    return Counter(column.name for column in _parsed(text, dialect).find_all(needed("sqlglot").exp.Column))


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


@lru_cache(maxsize=1024)
def _parsed(text: str, dialect: str) -> Any:
    return needed("sqlglot").parse_one(text, dialect=dialect)


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
