"""Numbers of pasted queries: what `/`, AVG, ROUND and casts to whole numbers mean there, in DuckDB's words."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlglot import exp

from ..refusal import QueryError
from .pasting import Change, Paste

_T: Any = exp.DataType.Type
_CUTS = ("tsql", "spark", "databricks")
"""Where a cast to whole numbers cuts off. Others round: halves away from 0, but PostgreSQL's doubles to even."""
_PLAIN_DECIMALS = {
    "bigquery": (38, 9), "snowflake": (38, 0), "tsql": (18, 0), "spark": (10, 0), "databricks": (10, 0),
    "mysql": (10, 0),
}  # fmt: skip
"""What DECIMAL alone means. In PostgreSQL it is a number with as many places as it has."""


def division(node: exp.Div, paste: Paste) -> exp.Expr:
    """Of whole numbers, / cuts off in PostgreSQL and T-SQL. By 0 it is NULL here, as everywhere."""
    if not node.args.get("typed"):
        return exp.Div(this=node.this, expression=node.expression, typed=False, safe=False)
    types = [paste.types.of(each) for each in (node.this, node.expression)]
    if types == ["whole", "whole"]:
        return exp.IntDiv(this=node.this, expression=node.expression)
    if None in types and not {"decimal", "real"} & set(types):
        left, right = paste.shown(node.this), paste.shown(node.expression)
        raise QueryError(
            f"Whether this / cuts off depends on types that only the database knows, in {paste.title}.",
            f"write CAST({left} AS DOUBLE PRECISION) / {right}, or FLOOR({left} / {right})",
            node,
        )
    return exp.Div(this=node.this, expression=node.expression, typed=False, safe=False)


def safe_division(node: exp.SafeDivide, _: Paste) -> exp.Expr:
    left, right = (exp.paren(each) if isinstance(each, exp.Binary) else each for each in (node.this, node.expression))
    return exp.Div(this=left, expression=right, typed=False, safe=False)


def mean(node: exp.Avg, paste: Paste) -> exp.Expr:
    """In T-SQL, the average of whole numbers is cut to one."""
    if paste.dialect != "tsql" or isinstance(node.parent, exp.Trunc):
        return node
    inner = paste.types.of(node)
    if inner is None:
        raise QueryError(
            "Whether AVG cuts off depends on types that only the database knows, in T-SQL.",
            f"write AVG(CAST({paste.shown(node.this)} AS FLOAT))",
            node,
        )
    return exp.Trunc(this=node.copy()) if inner == "whole" else node


def cast(node: exp.Cast, paste: Paste) -> exp.Expr:
    """Casts of numbers to whole ones round in DuckDB, halves to even; elsewhere they cut off or round otherwise."""
    to = node.args["to"]
    if not isinstance(to, exp.DataType):
        return node
    for part in ("format", "default", "action"):
        if node.args.get(part) is not None:
            raise QueryError("A cast takes a value and a type.", "write CAST(x AS DATE)", node)
    if paste.dialect == "postgres" and isinstance(node.this, exp.IntDiv):
        return node.this  # DIV(a, b)
    if to.this in exp.DataType.INTEGER_TYPES:
        return _to_whole(node, to, paste)
    if to.this in (_T.MONEY, _T.SMALLMONEY):
        return exp.cast(node.this, "DECIMAL(19, 4)")
    if to.this is _T.DECIMAL and not to.expressions:
        sizes = _PLAIN_DECIMALS.get(paste.dialect)
        return exp.cast(node.this, "DOUBLE" if sizes is None else f"DECIMAL({sizes[0]}, {sizes[1]})")
    if to.this is _T.DECIMAL and len(to.expressions) == 1:
        return exp.cast(node.this, f"DECIMAL({to.expressions[0].name}, 0)")
    if to.this is _T.BIT:
        return exp.cast(node.this, "BOOLEAN")
    if to.this in exp.DataType.TEXT_TYPES:
        return exp.TryCast(this=node.this, to=exp.DataType.build("VARCHAR"))
    if to.this in (_T.TIMESTAMPTZ, _T.TIMESTAMPLTZ, _T.DATETIME2, _T.SMALLDATETIME, _T.DATETIME) and (
        paste.dialect in ("bigquery", "tsql", "mysql")
    ):
        return exp.cast(node.this, "TIMESTAMP")  # BigQuery's TIMESTAMP is UTC, as moments are here
    return exp.Cast(this=node.this, to=to)


def _to_whole(node: exp.Cast, to: exp.DataType, paste: Paste) -> exp.Expr:
    inner = paste.types.of(node.this)
    if inner is None:
        cut = "cuts off or rounds" if paste.dialect in _CUTS else "rounds halves up or to even"
        raise QueryError(
            f"Whether this cast {cut} depends on types that are not known here.",
            f"write FLOOR({paste.shown(node.this)}) or ROUND({paste.shown(node.this)})",
            node,
        )
    number: exp.Expr = node.this
    if inner in ("real", "decimal"):
        if paste.dialect in _CUTS:
            number = exp.Trunc(this=number)
        elif inner == "decimal" or paste.dialect != "postgres":
            number = exp.Round(this=number)
    return exp.Cast(this=number, to=to)


def convert(node: exp.Convert, paste: Paste) -> exp.Expr:
    """CONVERT(type, x) in T-SQL."""
    if node.args.get("style") is not None:
        raise QueryError(
            "CONVERT with a style writes or reads texts in T-SQL's own ways.",
            f"write CONVERT({paste.shown(node.this)}, {paste.shown(node.expression)}), without the style",
            node,
        )
    return cast(exp.Cast(this=node.expression, to=node.this), paste)


def to_number(node: exp.ToNumber, paste: Paste) -> exp.Expr:
    if node.args.get("format") is not None:
        raise QueryError("Numbers are read as they are written, without a format.", "leave the format out", node)
    sizes = [node.args[part].name if node.args.get(part) is not None else "" for part in ("precision", "scale")]
    return exp.cast(node.this, f"DECIMAL({sizes[0] or 38}, {sizes[1] or 0})")


def rounded(node: exp.Round, paste: Paste) -> exp.Expr:
    if node.args.get("truncate") is not None:
        raise QueryError("ROUND takes a number and its places here.", f"write TRUNC({paste.shown(node.this)})", node)
    return exp.Round(this=node.this, decimals=node.args.get("decimals"))


def cut(node: exp.Trunc, _: Paste) -> exp.Expr:
    return exp.Trunc(this=node.this, decimals=node.args.get("decimals"))


def extreme(node: exp.Greatest | exp.Least, _: Paste) -> exp.Expr:
    """NULL if any operand is, in every dialect: see docs/sql.md."""
    return type(node)(this=node.this, expressions=node.expressions)


def counted(node: exp.CountIf, _: Paste) -> exp.Expr:
    return exp.CountIf(this=node.this)


def quantile(node: exp.ApproxQuantile, _: Paste) -> exp.Expr:
    """How exact an approximation is to be does not matter: the noise says."""
    return exp.Quantile(this=node.this, quantile=node.args["quantile"])


def within_group(node: exp.WithinGroup, _: Paste) -> exp.Expr:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x): QUANTILE_CONT(x, p)."""
    order = node.expression.expressions[0] if isinstance(node.expression, exp.Order) else None
    if order is None or not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        raise QueryError("WITHIN GROUP belongs to PERCENTILE_CONT and PERCENTILE_DISC.", "use one of these", node)
    chance: exp.Expr = node.this.this
    if order.args.get("desc"):
        chance = exp.Sub(this=exp.Literal.number(1), expression=chance)
        if isinstance(node.this.this, exp.Literal) and not node.this.this.is_string:
            chance = exp.Literal.number(f"{1 - Decimal(node.this.this.name)}")
    return type(node.this)(this=order.this, expression=chance)


CHANGES: dict[type[exp.Expr], Change] = {
    exp.Div: division, exp.SafeDivide: safe_division, exp.Avg: mean, exp.Cast: cast, exp.TryCast: cast,
    exp.Convert: convert, exp.ToNumber: to_number, exp.Round: rounded, exp.Trunc: cut, exp.Greatest: extreme,
    exp.Least: extreme, exp.CountIf: counted, exp.ApproxQuantile: quantile, exp.WithinGroup: within_group,
}  # fmt: skip
