"""Texts and times in PostgreSQL. Texts are compared by their bytes: every text that begins here has the collation C."""

from __future__ import annotations

from typing import Any

from ..errors import PlanError
from .base import literal, needed
from .inferred_types import KIND, kind_of
from .lowering import Lowered
from .postgres_templates import written

_COUNT = "CAST(LEAST(GREATEST(v_n, 0), 2147483647) AS INT)"
_SECONDS = {"WEEK": 604_800, "DAY": 86_400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_FINE = ("HOUR", "MINUTE", "SECOND", "MICROSECOND")


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


def trimmed(function: str) -> Lowered:
    def lower(text: Any, signs: Any | None = None) -> Any:
        if signs is None:
            return written(f"{function}(v_x, ' ')", x=text)
        return written(f"{function}(v_x, v_y)", x=text, y=signs)

    return lower


def part(text: Any, start: Any, length: Any | None = None) -> Any:
    """The server counts from 1, too, and what lies before the first character is part of the length."""
    first = _whole(start)
    size = None if length is None else _whole(length)
    where = "" if size is None else f" FOR {max(size, 0)}"
    if first >= 0:
        return written(f"SUBSTRING(v_x FROM {first}{where})", x=text)
    return written(f"SUBSTRING(v_x FROM GREATEST(CHAR_LENGTH(v_x) + {first + 1}, 1){where})", x=text)


def _whole(node: Any) -> int:
    exp, sign = needed("sqlglot").exp, 1
    while isinstance(node, exp.Cast | exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    return sign * int(node.name)


def counted(function: str) -> Lowered:
    """A function of a text and a number, which is a small one there."""
    return of(f"{function}(v_x, {_COUNT})", "x", "n")


def listed(text: Any, between: Any) -> Any:
    return _each(text, between, 'UNNEST(STRING_TO_ARRAY(v_x COLLATE "C", v_y))')


def listed_wholes(text: Any, between: Any) -> Any:
    return _each(text, between, "UNNEST(CAST(STRING_TO_ARRAY(v_x, v_y) AS BIGINT[]))")


def _each(text: Any, between: Any, array: str) -> Any:
    if not text.name:  # no text is no part there, and one that is empty here
        return written("CAST('' AS TEXT) COLLATE \"C\"")
    return written(array, x=_bare(text), y=_bare(between))


def _bare(text: Any) -> Any:
    return needed("sqlglot").exp.Literal.string(text.name)


def one_listed(text: Any, joined: Any, between: Any) -> Any:
    listed = ", ".join(map(literal, joined.name.split(between.name)))
    return written(f"CASE WHEN v_x IN ({listed}) THEN v_x END", x=text)


def like(node: Any) -> Any:
    """Without ESCAPE no character escapes; one that ends a pattern, and escapes nothing, raises for some cells."""
    exp = needed("sqlglot").exp
    node.set("expression", _bare(node.expression))
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string(""))


def escaped(node: Any) -> Any:
    pattern, sign = node.this.expression.name, node.expression.name
    if sign and pattern.replace(sign + sign, "").endswith(sign):
        raise PlanError("a LIKE pattern ends on its escape character: double it, or leave it out")
    node.set("expression", _bare(node.expression))
    return node


def part_of_date(node: Any) -> Any:
    name = node.name.upper()
    if name == "EPOCH":
        return written("CAST(EXTRACT(EPOCH FROM CAST(v_x AS TIMESTAMP)) AS DOUBLE PRECISION)", x=node.expression)
    return written(f"CAST(TRUNC(EXTRACT({name} FROM CAST(v_x AS TIMESTAMP))) AS BIGINT)", x=node.expression)


def start_of(node: Any) -> Any:
    unit = node.args["unit"].name.upper()
    tree = written(f"DATE_TRUNC('{unit.lower()}', CAST(v_x AS TIMESTAMP))", x=node.this)
    return written("CAST(v_x AS DATE)", x=tree) if kind_of(node.this) == "DATE" and unit not in _FINE else tree


def boundaries_between(unit: Any, first: Any, last: Any) -> Any:
    name = unit.name.upper()
    if name in _MONTHS:
        months = " - ".join(
            f"TRUNC((EXTRACT(YEAR FROM {x}) * 12 + EXTRACT(MONTH FROM {x}) - 1) / {_MONTHS[name]})"
            for x in ("CAST(v_y AS TIMESTAMP)", "CAST(v_x AS TIMESTAMP)")
        )
        return written(f"CAST({months} AS BIGINT)", x=first, y=last)
    if name == "MICROSECOND":
        text = "EXTRACT(EPOCH FROM CAST(v_y AS TIMESTAMP) - CAST(v_x AS TIMESTAMP)) * 1000000"
        return written(f"CAST({text} AS BIGINT)", x=first, y=last)
    starts = (f"DATE_TRUNC('{name.lower()}', CAST({x} AS TIMESTAMP))" for x in ("v_y", "v_x"))
    return written(f"CAST(EXTRACT(EPOCH FROM {' - '.join(starts)}) / {_SECONDS[name]} AS BIGINT)", x=first, y=last)


def moved(node: Any) -> Any:
    """So many rows, or parts, are a small number there."""
    for part in ("offset", "this"):
        number = node.args.get(part)
        if number is not None and (part == "offset" or isinstance(node, needed("sqlglot").exp.Ntile)):
            node.set(part, written("CAST(v_x AS INT)", x=number))
    return node


def interval(node: Any) -> Any:
    """Quarters are three months there."""
    exp = needed("sqlglot").exp
    unit, number = node.args["unit"].name.upper(), _whole(node.this)
    many, unit = (number * 3, "MONTH") if unit == "QUARTER" else (number, unit)
    tree = exp.Interval(this=exp.Literal.string(str(many)), unit=exp.var(unit))
    tree.meta[KIND] = "INTERVAL"
    return tree
