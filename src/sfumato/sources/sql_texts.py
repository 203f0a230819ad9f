"""Expressions of an engine's own SQL as texts with operands put in: what words become where no node says it.

A text names its operands v_a, v_b, ... What is put in is written out by then, since arguments are lowered before what
they stand in. The whole is one piece that sqlglot writes as it is, in brackets where it is more than one call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .base import needed
from .inferred_types import KIND, kind_of
from .templates import constant, is_loose

_OPERAND = re.compile(r"\bv_([a-z])\b")
_CALL = re.compile(r"[A-Za-z_0-9]+\(")
_CONSTANT = "sfumato-constant"
Written = Callable[..., Any]


def writer(dialect: str) -> Written:
    """What makes an expression of a text and its operands, in this dialect."""

    def written(text: str, **operands: Any) -> Any:
        inner = {name: text_of(node, dialect) for name, node in operands.items()}  # texts stand as they are
        whole = _OPERAND.sub(lambda match: inner[match[1]], text)
        return needed("sqlglot").exp.Var(this=whole if _is_one_call(whole) else f"({whole})")

    return written


def text_of(node: Any, dialect: str) -> str:
    """A lowered expression as the engine reads it, so that it may stand inside of any other."""
    if isinstance(node, str):
        return node
    shown: str = node.sql(dialect=dialect, comments=False)
    return f"({shown})" if is_loose(node) or shown.startswith("-") else shown


def _is_one_call(text: str) -> bool:
    """Is it one function with its arguments, or one name? Brackets within quotes are not told apart, and count."""
    if text.isidentifier():
        return True
    if not _CALL.match(text) or not text.endswith(")"):
        return False
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and sign == ")":
            return place == len(text) - 1
    return False


def of(written: Written, text: str, *names: str) -> Callable[..., Any]:
    """A word from a text over its arguments, which are called so there: v_x, v_y."""

    def lower(*operands: Any) -> Any:
        return written(text, **dict(zip(names or ("x", "y"), operands, strict=False)))

    return lower


def of_node(written: Written, text: str) -> Callable[[Any], Any]:
    """The same of a node, whose operands are v_x and v_y."""

    def lower(node: Any) -> Any:
        other = {"y": node.expression} if node.args.get("expression") else {}
        return written(text, x=node.this, **other)

    return lower


def number_in(node: Any) -> float | None:
    """The number that a constant is, lowered or not; None where it is none."""
    while isinstance(node, needed("sqlglot").exp.Paren):
        node = node.this
    number: float | None = node.meta.get(_CONSTANT)
    return constant(node) if number is None else number


def with_number(node: Any, number: float | None) -> Any:
    """The expression, which is this constant."""
    if number is not None:
        node.meta[_CONSTANT] = number
    return node


def whole_in(node: Any) -> int:
    number = number_in(node)
    assert number is not None and number == int(number)
    return int(number)


def type_kept(node: Any, kind: str | None) -> Any:
    if kind is not None:
        node.meta[KIND] = kind
    return node


def is_flag(node: Any) -> bool:
    return kind_of(node) == "BOOLEAN"
