"""Texts and times in MariaDB. Texts are compared by their code points, blanks at the end and all.

Every text that begins here has the collation utf8mb4_nopad_bin: constants, and what casts give, by the connection's own
setting (`mariadb_server`), cells by a clause of theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import KIND, kind_of
from .lowering import type_of
from .mariadb_numbers import LARGEST, SPANS, double, refusal, written
from .sql_texts import number_in, whole_in

COLLATION = "utf8mb4_nopad_bin"
_BLANKS = r"[ \t\n\v\f\r]*"
_END = r"\z"
_NUMBER = rf"^{_BLANKS}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?{_BLANKS}\z"
_WHOLE = rf"^{_BLANKS}[+-]?[0-9]+{_BLANKS}\z"
_WORDS = {r"[+]?inf(inity)?": LARGEST, r"-inf(inity)?": f"-{LARGEST}"}
_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9]([.][0-9]*)?)?"
_ZONE = r"(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"
_MOMENT = rf"^{_BLANKS}{_DAY}(([ ]+|T){_CLOCK}( ?{_ZONE})?)?{_BLANKS}\z"
_LONGEST = 400
"""Signs of a text that writes a number or a time: patterns are matched against no longer ones."""
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_FINE = {"HOUR": "%H:00:00", "MINUTE": "%H:%i:00", "SECOND": "%H:%i:%s"}
_PARTS = {
    "YEAR": "YEAR(v_x)", "QUARTER": "QUARTER(v_x)", "MONTH": "MONTH(v_x)", "WEEK": "WEEK(v_x, 3)",
    "DAY": "DAYOFMONTH(v_x)", "HOUR": "HOUR(CAST(v_x AS DATETIME(6)))", "MINUTE": "MINUTE(CAST(v_x AS DATETIME(6)))",
    "SECOND": "SECOND(CAST(v_x AS DATETIME(6)))", "DOW": "(DAYOFWEEK(v_x) - 1)", "ISODOW": "(WEEKDAY(v_x) + 1)",
    "DOY": "DAYOFYEAR(v_x)",
    "MICROSECOND": "(SECOND(CAST(v_x AS DATETIME(6))) * 1000000 + MICROSECOND(CAST(v_x AS DATETIME(6))))",
    "EPOCH": "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', v_x) / 1e6)",
}  # fmt: skip


def quoted_text(text: str) -> str:
    """A text as MariaDB reads it, where a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def fits(pattern: str, operand: str = "v_x") -> str:
    """Does a text fit the pattern? Never of a long one: the server's patterns have limits of their own."""
    return f"(CHAR_LENGTH({operand}) <= {_LONGEST} AND REGEXP_INSTR({operand}, {quoted_text(pattern)}) > 0)"


_WORD = r"[^ \t\n\v\f\r]+"
_BARE = f"REGEXP_SUBSTR(v_x, {quoted_text(_WORD)})"
DIGITS = f"CASE WHEN v_x IS NOT NULL THEN {fits(_WHOLE)} END"


def _double() -> str:
    words = " ".join(
        f"WHEN {fits(rf'(?i)^{_BLANKS}{word}{_BLANKS}' + _END)} THEN {value}" for word, value in _WORDS.items()
    )
    return f"CASE WHEN {fits(_NUMBER)} THEN CAST({_BARE} AS DOUBLE) {words} END"


_DOUBLE = _double()


def read_or_null(x: Any, to: Any) -> Any:
    """A text as the value that it writes, else NULL."""
    kind = type_of(to)
    if kind_of(x) not in (None, "VARCHAR"):
        x = written("CAST(v_x AS CHAR)", x=x)
    if kind == "VARCHAR":
        return x
    if kind == "DOUBLE":
        return written(_DOUBLE, x=x)
    if kind in SPANS:
        low, high = SPANS[kind]
        number = f"ROUND(CAST({_BARE} AS DECIMAL(65, 25)))"
        own = "DECIMAL(39, 0)" if kind == "INT128" else "SIGNED"
        within = f"CASE WHEN {number} BETWEEN {low} AND {high} THEN CAST({number} AS {own}) END"
        return written(f"CASE WHEN {fits(_NUMBER)} THEN {within} END", x=x)
    if kind == "BOOLEAN":
        true, false = (", ".join(map(quoted_text, words)) for words in (_TRUE, _FALSE))
        return written(f"CASE WHEN LOWER(v_x) IN ({true}) THEN TRUE WHEN LOWER(v_x) IN ({false}) THEN FALSE END", x=x)
    if kind == "DATE":
        pattern = rf"^{_BLANKS}{_DAY}{_BLANKS}\z"
        day = f"CAST({_BARE} AS DATE)"
        return written(f"CASE WHEN {fits(pattern)} THEN CASE WHEN {day} >= '0001-01-01' THEN {day} END END", x=x)
    if kind == "TIMESTAMP":
        return moment_or_null(x)
    raise refusal("read_or_null", "this type")


def moment_or_null(x: Any) -> Any:
    """What stands behind the day and the clock is a zone, whose hours and minutes are taken away: the server's own
    functions of zones leave moments of other centuries as they are."""
    day = f"REGEXP_SUBSTR(v_x, {quoted_text(_DAY)})"
    clock = f"REGEXP_SUBSTR(v_x, {quoted_text('(?<=[ T])' + _CLOCK)})"
    zone = f"REGEXP_SUBSTR(v_x, {quoted_text('[+-][0-9]{2}(:?[0-9]{2})?(?=' + _BLANKS + _END + ')')})"
    moment = f"CAST(CONCAT({day}, ' ', CASE WHEN {clock} = '' THEN '00:00' ELSE {clock} END) AS DATETIME(6))"
    minutes = (
        f"CASE WHEN {clock} = '' OR {zone} = '' THEN 0 ELSE (CASE WHEN LEFT({zone}, 1) = '-' THEN -1 ELSE 1 END) * "
        f"(CAST(SUBSTRING({zone}, 2, 2) AS SIGNED) * 60 "
        f"+ CASE WHEN CHAR_LENGTH({zone}) > 3 THEN CAST(RIGHT({zone}, 2) AS SIGNED) ELSE 0 END) END"
    )
    whole = f"CASE WHEN {moment} >= '0001-01-01' THEN {moment} - INTERVAL ({minutes}) MINUTE END"
    return written(f"CAST(CASE WHEN {fits(_MOMENT)} THEN {whole} END AS DATETIME(6))", x=x)


def time_or_null(x: Any, to: Any) -> Any:
    return written("CAST(v_x AS DATE)" if type_of(to) == "DATE" else "CAST(v_x AS DATETIME(6))", x=x)


def trimmed(side: str) -> Callable[..., Any]:
    def lower(text: Any, signs: Any | None = None) -> Any:
        listed = " " if signs is None else signs.name
        if len(listed) == 1:
            return written(f"TRIM({side} v_s FROM v_x)", x=text, s=quoted_text(listed))
        if not listed:
            return text
        one = f"[{re.escape(listed)}]+"
        ends = {"LEADING": f"^{one}", "TRAILING": rf"{one}\z", "BOTH": rf"^{one}|{one}\z"}
        return written("REGEXP_REPLACE(v_x, v_p, '')", x=text, p=quoted_text(ends[side]))

    return lower


def part(text: Any, start: Any, length: Any | None = None) -> Any:
    first, size = whole_in(start), None if length is None else max(whole_in(length), 0)
    if first < 0:
        where = f"GREATEST(CHAR_LENGTH(v_x) + {first + 1}, 1)"
    else:
        size = None if size is None or first else max(size - 1, 0)
        if length is not None and first:
            size = max(whole_in(length), 0)
        where = str(max(first, 1))
    return written(f"SUBSTRING(v_x, {where}{'' if size is None else f', {size}'})", x=text)


def counted(function: str) -> Callable[..., Any]:
    return lambda text, number: written(
        f"{function}(v_x, LEAST(GREATEST(v_n, 0), 2147483647))", x=text, n=number
    )  # fmt: skip


def listed(text: Any, between: Any) -> Any:
    return _each(text, text.name.split(between.name), f"CONVERT(_part USING utf8mb4) COLLATE {COLLATION}")


def listed_wholes(text: Any, between: Any) -> Any:
    return _each(text, text.name.split(between.name), "CAST(_part AS SIGNED)")


def _each(text: Any, parts: list[str], shown: str) -> Any:
    """The parts are rows of a table: the SELECT that lists them reads it."""
    exp = needed("sqlglot").exp
    select = text.find_ancestor(exp.Select)
    rows = quoted_text(json.dumps(parts))
    table = f"JSON_TABLE({rows}, '$[*]' COLUMNS (_part LONGTEXT PATH '$')) AS _listed"
    select.set("from_", exp.From(this=exp.Var(this=table)))
    return exp.Var(this=shown)


def one_listed(text: Any, joined: Any, between: Any) -> Any:
    parts = joined.name.split(between.name)
    text_of_part = f"CAST(CASE WHEN v_x IN (v_l) THEN v_x END AS CHAR({max(map(len, parts)) or 1}))"
    return written(text_of_part, x=text, l=", ".join(map(quoted_text, parts)))


def like(node: Any) -> Any:
    """Without ESCAPE no character escapes. A pattern is made of parts that mean themselves: a backslash, which escapes
    in the server, is doubled."""
    if isinstance(node.parent, needed("sqlglot").exp.Escape):
        return node
    return _like(node, node.expression.name.replace("\\", "\\\\"))


def _like(node: Any, pattern: str) -> Any:
    any_case = isinstance(node, needed("sqlglot").exp.ILike)
    return written("LOWER(v_x) LIKE LOWER(v_p)" if any_case else "v_x LIKE v_p", x=node.this, p=quoted_text(pattern))


def escaped(node: Any) -> Any:
    """The pattern written with backslashes, which escape in the server."""
    exp, sign = needed("sqlglot").exp, node.expression.name
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike):
        raise PlanError("an ESCAPE stands behind a LIKE")
    pattern, pieces, place = inner.expression.name, [], 0
    while place < len(pattern):
        if sign and pattern[place] == sign:
            if place + 1 == len(pattern):
                raise PlanError("a LIKE pattern ends on its escape character: double it, or leave it out")
            pieces.append("\\" + pattern[place + 1])
            place += 2
            continue
        pieces.append("\\\\" if pattern[place] == "\\" else pattern[place])
        place += 1
    return _like(inner, "".join(pieces))


def part_of_date(node: Any) -> Any:
    return written(_PARTS[node.name.upper()], x=node.expression)


_MONTH_START = "DATE_SUB(DATE(v_x), INTERVAL DAYOFMONTH(v_x) - 1 DAY)"
_STARTS = {
    "YEAR": "DATE_SUB(DATE(v_x), INTERVAL DAYOFYEAR(v_x) - 1 DAY)",
    "QUARTER": f"DATE_SUB({_MONTH_START}, INTERVAL MOD(MONTH(v_x) - 1, 3) MONTH)",
    "MONTH": _MONTH_START,
    "WEEK": "DATE_SUB(DATE(v_x), INTERVAL WEEKDAY(v_x) DAY)",
    "DAY": "DATE(v_x)",
    **{unit: f"CAST(DATE_FORMAT(v_x, '%Y-%m-%d {form}') AS DATETIME(6))" for unit, form in _FINE.items()},
}


def start_of(node: Any) -> Any:
    unit = node.args["unit"].name.upper()
    whole = _STARTS[unit] if kind_of(node.this) == "DATE" else f"CAST({_STARTS[unit]} AS DATETIME(6))"
    return written(whole, x=node.this)


def boundaries_between(unit: Any, first: Any, last: Any) -> Any:
    name = unit.name.upper()
    if name in _MONTHS:
        months = ("((YEAR({0}) * 12 + MONTH({0}) - 1) DIV " + f"{_MONTHS[name]})").format
        return written(f"({months('v_y')} - {months('v_x')})", x=first, y=last)
    if name in ("DAY", "WEEK"):
        if name == "DAY":
            return written("DATEDIFF(v_y, v_x)", x=first, y=last)
        weeks = "(TO_DAYS({0}) - WEEKDAY({0}))".format
        return written(f"(({weeks('v_y')} - {weeks('v_x')}) DIV 7)", x=first, y=last)
    starts = [
        (_STARTS[name] if name in _FINE else "CAST(v_x AS DATETIME(6))").replace("v_x", x) for x in ("v_x", "v_y")
    ]
    return written(f"TIMESTAMPDIFF({name}, {', '.join(starts)})", x=first, y=last)


def interval(node: Any) -> Any:
    tree = written(f"INTERVAL {whole_in(_number(node.this))} {node.args['unit'].name.upper()}")
    tree.set("this", tree.name.strip("()"))
    tree.meta[KIND] = "INTERVAL"
    return tree


def _number(node: Any) -> Any:
    exp, bare = needed("sqlglot").exp, node.unnest()
    return exp.Literal.number(bare.name) if isinstance(bare, exp.Literal) and bare.is_string else node


def hashed(*values: Any) -> Any:
    """64 bits of the MD5 of the values, each with its length before it, so that no two lists are one text."""
    pieces, operands = [], {}
    for place, value in enumerate(values):
        name = chr(ord("a") + place % 26) if place < 26 else None
        shown = f"CONCAT(0e0 + v_{name}, '')" if kind_of(value) == "DOUBLE" else f"CONCAT(v_{name}, '')"
        if name is None:
            raise refusal("ordering_hash", "more than 26 values")
        operands[name] = value
        pieces.append(f"COALESCE(CONCAT(OCTET_LENGTH({shown}), ':', {shown}), '-')")
    return written(
        f"CAST(CONV(LEFT(MD5(CONCAT({', '.join(pieces)})), 16), 16, 10) AS DECIMAL(39, 0))", **operands
    )  # fmt: skip


def extreme_of_present(function: str) -> Callable[..., Any]:
    """LEAST and GREATEST are NULL there where one value is: what is NULL is taken for the first that is present."""

    def lower(*values: Any) -> Any:
        if len(values) > 26:
            raise refusal("least_present", "more than 26 values")
        if "DOUBLE" in map(kind_of, values):
            values = tuple(map(double, values))
        operands = {chr(ord("a") + place): value for place, value in enumerate(values)}
        every = ", ".join(f"v_{name}" for name in operands)
        constants = [name for name, value in operands.items() if _is_present(value)]
        filled = [
            f"v_{name}" if name in constants else f"COALESCE(v_{name}, {f'v_{constants[0]}' if constants else every})"
            for name in operands
        ]
        return written(f"{function}({', '.join(filled)})", **operands)

    return lower


def _is_present(value: Any) -> bool:
    return number_in(value) is not None


def text_of_cell(raw: str) -> str:
    return f"(CONVERT({raw} USING utf8mb4) COLLATE {COLLATION})"
