"""Texts of pasted queries: joining, lengths, parts and patterns, in DuckDB's words."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from ..refusal import QueryError
from .pasting import Change, Paste

_BACKSLASH = ("postgres", "mysql", "bigquery", "spark", "databricks")
"""Where a backslash in a pattern takes the next sign for itself, without ESCAPE."""
_VIRTUAL = ("postgres", "tsql")
"""Where places before the first are counted, too; elsewhere a negative place counts from the end, as in DuckDB."""


def added(node: exp.Add, paste: Paste) -> exp.Expr:
    """In T-SQL + joins texts, and is NULL where one of them is."""
    joins = paste.dialect == "tsql" and paste.types.of(node.this) == paste.types.of(node.expression) == "text"
    return exp.DPipe(this=node.this, expression=node.expression, safe=True) if joins else node


def concatenated(node: exp.Concat, _: Paste) -> exp.Expr:
    """CONCAT leaves NULLs out in PostgreSQL, T-SQL and DuckDB; elsewhere it is NULL where one operand is."""
    if node.args.get("coalesce"):
        return exp.Concat(expressions=node.expressions, safe=True, coalesce=True)
    return reduce(lambda left, right: exp.DPipe(this=left, expression=right, safe=True), node.expressions)


def length(node: exp.Length, paste: Paste) -> exp.Expr:
    """LEN leaves blanks at the end out in T-SQL; LENGTH counts bytes in MySQL."""
    if paste.dialect == "mysql" and node.args.get("binary"):
        raise QueryError("LENGTH counts bytes in MySQL.", f"write CHAR_LENGTH({paste.shown(node.this)})", node)
    operand = node.this
    if paste.dialect == "tsql":
        inner = operand.this if isinstance(operand, exp.Cast | exp.TryCast) else operand
        operand = exp.Trim(this=inner if paste.types.of(inner) == "text" else operand, position="TRAILING")
    return exp.Length(this=operand)


def part(node: exp.Substring, paste: Paste) -> exp.Expr:
    start = node.args.get("start") or exp.Literal.number(1)
    before = isinstance(start, exp.Neg) or (isinstance(start, exp.Literal) and start.name == "0")
    if before and (paste.dialect in _VIRTUAL or not isinstance(start, exp.Neg)):
        raise QueryError(
            f"Texts begin at 1 here; what lies before that, {paste.title} counts in its own way.",
            f"write SUBSTRING({paste.shown(node.this)}, 1, n)",
            node,
        )
    return exp.Substring(this=node.this, start=start, length=node.args.get("length"))


def end(node: exp.Left | exp.Right, paste: Paste) -> exp.Expr:
    operand = node.this
    if paste.dialect == "tsql" and isinstance(operand, exp.Cast) and paste.types.of(operand.this) == "text":
        operand = operand.this
    return type(node)(this=operand, expression=node.expression)


def place(node: exp.StrPosition, paste: Paste) -> exp.Expr:
    if any(node.args.get(each) is not None for each in ("position", "occurrence")):
        text, inner = paste.shown(node.this), paste.shown(node.args["substr"])
        raise QueryError("A text is looked for from its beginning here.", f"write STRPOS({text}, {inner})", node)
    return exp.StrPosition(this=node.this, substr=node.args["substr"])


def like(node: exp.Like | exp.ILike, paste: Paste) -> exp.Expr:
    """Patterns are DuckDB's: % and _, and no sign before which these are themselves but for ESCAPE."""
    pattern = node.expression
    if isinstance(node.parent, exp.Escape) or not isinstance(pattern, exp.Literal):
        return node
    if paste.dialect in _BACKSLASH and "\\" in pattern.name:
        shown = pattern.name.replace("!", "!!").replace("\\", "!")
        raise QueryError(
            "Patterns have no escape sign of their own here.",
            f"write {paste.shown(node.this)} LIKE '{shown}' ESCAPE '!'",
            node,
        )
    if paste.dialect == "tsql" and "[" in pattern.name:
        raise QueryError(
            "Patterns know % and _ here, no sets of characters.",
            f"write LEFT({paste.shown(node.this)}, 1) IN ('a', 'b', 'c'), or one LIKE for each",
            node,
        )
    return node


def national(node: exp.National, _: Paste) -> exp.Expr:
    """N'text'."""
    return exp.Literal.string(node.name)


CHANGES: dict[type[exp.Expr], Change] = {
    exp.Add: added, exp.Concat: concatenated, exp.Length: length, exp.Substring: part, exp.Left: end, exp.Right: end,
    exp.StrPosition: place, exp.Like: like, exp.ILike: like, exp.National: national,
}  # fmt: skip
