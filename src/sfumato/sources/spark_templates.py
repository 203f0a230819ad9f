"""Expressions of Spark's SQL from texts, with operands put in, and constants that mean the same under any setting.

An operand that a text needs several times stands there several times: Spark computes equal expressions once, and has no
subquery of one row that it would plan as an expression. So statements may grow, and one that grows too long is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..errors import PlanError
from .base import needed
from .templates import filled, uses

_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;+*/()<>=!?@#%&|~^-]*")
_MOST_NODES = 20_000
Lowered = Callable[..., Any]


def written(text: str, **operands: Any) -> Any:
    """The text with these operands; by name, without their v_."""
    for name, count in uses(text, "spark").items():
        if count > 1 and _is_long(operands[name[2:]]):
            raise PlanError(
                "this expression becomes too long for Spark, which has no name for a part of it: compute its parts in "
                "a subquery of their own, or leave some of them out"
            )
    return filled(text, operands, "spark")


def _is_long(node: Any) -> bool:
    return sum(1 for _ in zip(node.walk(), range(_MOST_NODES), strict=False)) >= _MOST_NODES


def text_of(text: str) -> str:
    """An SQL text. Whether Spark takes a backslash, two quotes or ${name} for themselves is a matter of its settings;
    of bytes in hexadecimal it is not."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode('utf-8', 'surrogatepass').hex().upper()}' AS STRING)"


def name_in_quotes(name: str) -> str:
    """An SQL identifier: double quotes are those of a text under some settings."""
    return "`" + name.replace("`", "``") + "`"


def of(text: str, *names: str) -> Lowered:
    """A word from a text over its operands, which are called so there: v_x, v_y."""

    def lower(*operands: Any) -> Any:
        return written(text, **dict(zip(names or ("x", "y"), operands, strict=False)))

    return lower


def of_node(text: str) -> Lowered:
    """The same of a node, whose operands are v_x and v_y."""

    def lower(node: Any) -> Any:
        other = {"y": node.expression} if node.args.get("expression") else {}
        return written(text, x=node.this, **other)

    return lower


def function(name: str, *arguments: Any) -> Any:
    """A call of one of Spark's functions."""
    return needed("sqlglot").exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
