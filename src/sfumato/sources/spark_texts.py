"""Texts, times and windows in Spark. Texts are compared by their bytes, and times are those of UTC, as each session of
ours has it."""

from __future__ import annotations

from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import KIND, kind_of
from .spark_numbers import refusal
from .spark_templates import Lowered, text_of, written

_COUNT = "CAST(LEAST(GREATEST(v_n, 0), 2147483647) AS INT)"
_SECONDS = {"WEEK": 604_800, "DAY": 86_400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1, "MICROSECOND": 0.000001}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MOST_YEARS = 100_000
_ESCAPE = "!"
_MOMENT = "CAST(v_x AS TIMESTAMP_NTZ)"
_MICROS = "UNIX_MICROS(CAST(v_x AS TIMESTAMP_LTZ))"
_PARTS = {
    "YEAR": "YEAR(v_x)", "QUARTER": "QUARTER(v_x)", "MONTH": "MONTH(v_x)", "WEEK": "WEEKOFYEAR(v_x)",
    "DAY": "DAYOFMONTH(v_x)", "HOUR": f"HOUR({_MOMENT})", "MINUTE": f"MINUTE({_MOMENT})",
    "SECOND": f"SECOND({_MOMENT})", "MICROSECOND": f"PMOD({_MICROS}, 60000000L)", "DOW": "(DAYOFWEEK(v_x) - 1)",
    "ISODOW": "(WEEKDAY(v_x) + 1)", "DOY": "DAYOFYEAR(v_x)",
}  # fmt: skip
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def trimmed(side: str) -> Lowered:
    def lower(text: Any, signs: Any | None = None) -> Any:
        if signs is None:
            return written(f"TRIM({side} ' ' FROM v_x)", x=text)
        return written(f"TRIM({side} v_y FROM v_x)", x=text, y=signs)

    return lower


def part(text: Any, start: Any, length: Any | None = None) -> Any:
    """Spark counts from 1, too; 0 is its 1, and what lies before the first character is no part of the length."""
    first, size = _whole(start), None if length is None else max(_whole(length), 0)
    if first == 0 and size is not None:
        size = max(size - 1, 0)
    where = "" if size is None else f", {size}"
    if first >= 0:
        return written(f"SUBSTRING(v_x, {max(first, 1)}{where})", x=text)
    return written(f"SUBSTRING(v_x, GREATEST(CHAR_LENGTH(v_x) + {first + 1}, 1){where})", x=text)


def _whole(node: Any) -> int:
    exp, sign = needed("sqlglot").exp, 1
    while isinstance(node, exp.Cast | exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    return sign * int(node.name)


def counted(function: str) -> Lowered:
    """A function of a text and a number, which is a small one there."""

    def lower(text: Any, number: Any) -> Any:
        return written(f"{function}(v_x, {_COUNT})", x=text, n=number)

    return lower


def listed(text: Any, between: Any) -> Any:
    return written(f"EXPLODE({_split(text, between)})")


def listed_wholes(text: Any, between: Any) -> Any:
    return written(f"EXPLODE(CAST({_split(text, between)} AS ARRAY<BIGINT>))")


def _split(text: Any, between: Any) -> str:
    """By a pattern there; each sign of it stands for itself."""
    pattern = "".join(f"\\x{{{ord(sign):x}}}" for sign in between.name)
    return f"SPLIT({text_of(text.name)}, {text_of(pattern)}, -1)"


def one_listed(text: Any, joined: Any, between: Any) -> Any:
    parts = ", ".join(map(text_of, joined.name.split(between.name)))
    return written(f"CASE WHEN v_x IN ({parts}) THEN v_x END", x=text)


def like(node: Any) -> Any:
    """Without ESCAPE no character escapes."""
    if isinstance(node.parent, needed("sqlglot").exp.Escape):
        return node
    return _escaped_anew(node, "")


def escaped(node: Any) -> Any:
    return _escaped_anew(node.this, node.expression.name)


def _escaped_anew(like: Any, sign: str) -> Any:
    """With an escape character that no setting changes, before nothing but %, _ and itself: elsewhere it raises."""
    exp, pattern = needed("sqlglot").exp, like.expression.name
    anew, signs = [], iter(pattern)
    for character in signs:
        if character == sign:
            character = next(signs, "")
            if not character:
                raise PlanError("a LIKE pattern ends on its escape character: double it, or leave it out")
            anew.append(_ESCAPE + character if character in ("%", "_", _ESCAPE) else character)
        else:
            anew.append(_ESCAPE * 2 if character == _ESCAPE else character)
    like.set("expression", exp.Literal.string("".join(anew)))
    return exp.Escape(this=like.copy(), expression=exp.Literal.string(_ESCAPE))


def part_of_date(node: Any) -> Any:
    name = node.name.upper()
    if name == "EPOCH":
        return written(f"CAST({_MICROS} AS DOUBLE) / 1000000D", x=node.expression)
    return written(f"CAST({_PARTS[name]} AS BIGINT)", x=node.expression)


def start_of(node: Any) -> Any:
    unit, of_days = node.args["unit"].name.upper(), kind_of(node.this) == "DATE"
    if of_days and unit == "DAY":
        return node.this
    if of_days and unit in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        return written(f"TRUNC(v_x, '{unit}')", x=node.this)
    return written(f"CAST(DATE_TRUNC('{unit}', CAST(v_x AS TIMESTAMP_LTZ)) AS TIMESTAMP_NTZ)", x=node.this)


def boundaries_between(unit: Any, first: Any, last: Any) -> Any:
    name = unit.name.upper()
    if name in _MONTHS:
        one, other = (f"FLOOR((YEAR({x}) * 12L + MONTH({x}) - 1) / {_MONTHS[name]})" for x in ("v_y", "v_x"))
        return written(f"CAST({one} - {other} AS BIGINT)", x=first, y=last)
    if name in ("DAY", "WEEK"):
        starts = ["CAST(v_y AS DATE)", "CAST(v_x AS DATE)"]
        if name == "WEEK":
            starts = [f"TRUNC({start}, 'WEEK')" for start in starts]
        return written(
            f"CAST(DATEDIFF({', '.join(starts)}) DIV {7 if name == 'WEEK' else 1} AS BIGINT)", x=first, y=last
        )
    one, other = (f"UNIX_MICROS(DATE_TRUNC('{name}', CAST({x} AS TIMESTAMP_LTZ)))" for x in ("v_y", "v_x"))
    return written(f"({one} - {other}) DIV {round(_SECONDS[name] * 1_000_000)}", x=first, y=last)


def name_of_part(number: str, names: tuple[str, ...]) -> Lowered:
    """Spark's own names are short, and its formats are a matter of settings."""
    shown = ", ".join(f"'{name}'" for name in names)

    def lower(x: Any) -> Any:
        return written(f"ELT({number}, {shown})", x=x)

    return lower


def interval(node: Any) -> Any:
    """Of months or of seconds, up to as many years as a moment there may be away from another."""
    exp = needed("sqlglot").exp
    unit, number = node.args["unit"].name.upper(), _whole(node.this)
    years = abs(number) * (_MONTHS[unit] / 12 if unit in _MONTHS else _SECONDS[unit] / 31_556_952)
    if years > _MOST_YEARS:
        raise refusal("interval", f"more than {_MOST_YEARS} years")
    if unit in _MONTHS:
        text = f"MAKE_YM_INTERVAL(0, {number * _MONTHS[unit]})"
    else:
        micros = number if unit == "MICROSECOND" else number * int(_SECONDS[unit]) * 1_000_000
        days, rest = divmod(abs(micros), 86_400_000_000)
        sign = "-" if micros < 0 else ""
        text = f"MAKE_DT_INTERVAL({sign}{days}, 0, 0, {sign}{rest // 1_000_000}.{rest % 1_000_000:06d})"
    tree = written(text)
    tree.meta[KIND] = "INTERVAL"
    assert isinstance(tree, exp.Expr)
    return tree


def moved(node: Any) -> Any:
    """So many rows, or parts, are a small number there."""
    exp = needed("sqlglot").exp
    for name in ("offset", "this"):
        number = node.args.get(name)
        if number is not None and (name == "offset" or isinstance(node, exp.Ntile)):
            node.set(name, written("CAST(v_x AS INT)", x=number))
    return node
