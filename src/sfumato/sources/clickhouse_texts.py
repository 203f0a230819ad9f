"""Texts and times in ClickHouse. Texts are compared by their bytes. Days are Date32 and moments DateTime64 in UTC: the
narrower types begin in 1970, and take what does not fit for something else in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import PlanError
from .base import needed
from .clickhouse_numbers import TO_INTEGER, double_text, moment, quoted_text, refusal, to_integer, written
from .inferred_types import KIND, kind_of
from .lowering import type_of
from .mariadb_numbers import SPANS
from .sql_texts import whole_in

_BLANK = r"[ \t\n\v\f\r]"
_BLANKS = r"[ \t\n\v\f\r]*"
_END = r"\z"
_NUMBER = rf"^{_BLANKS}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?{_BLANKS}\z"
_WHOLE = rf"^{_BLANKS}[+-]?[0-9]+{_BLANKS}\z"
_WORDS = {"nan": "nan", r"[+]?inf(inity)?": "inf", r"-inf(inity)?": "-inf"}
_DAY = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_CLOCK = r"([01]?[0-9]|2[0-3]):([0-5]?[0-9])(?::([0-5]?[0-9])(?:[.]([0-9]*))?)?"
_ZONE = r"(?: ?(?:Z|z|UTC|([+-][0-9]{2})(?::?([0-9]{2}))?))?"
_MOMENT = rf"^{_BLANKS}{_DAY}(?:(?:[ ]+|T){_CLOCK}{_ZONE})?{_BLANKS}\z"
_ROOM = 1_000_000
_TRUE, _FALSE = ("true", "t", "1", "yes", "y"), ("false", "f", "0", "no", "n")
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_SECONDS = {"HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_MONTHS_NAMED = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS_NAMED = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def fits(pattern: str, operand: str = "v_x") -> str:
    return f"match({operand}, {quoted_text(pattern)})"


_BARE = f"trimLeft(replaceRegexpAll(v_x, {quoted_text(_BLANK)}, ''), '+')"
DIGITS = fits(_WHOLE)


def _double() -> str:
    words = " ".join(
        f"WHEN {fits(rf'(?i)^{_BLANKS}{word}{_BLANKS}' + _END)} THEN {value}" for word, value in _WORDS.items()
    )
    return f"CASE WHEN {fits(_NUMBER)} THEN toFloat64OrNull({_BARE}) {words} END"


_DOUBLE = _double()


def read_or_null(x: Any, to: Any) -> Any:
    """A text as the value that it writes, else NULL."""
    kind = type_of(to)
    if kind_of(x) not in (None, "VARCHAR"):
        x = written("toString(v_x)", x=x)
    if kind == "VARCHAR":
        return x
    if kind == "DOUBLE":
        return written(_DOUBLE, x=x)
    if kind in SPANS:
        low, high = SPANS[kind]
        # In 128 bits, as far as they hold it for sure, and by the nearest double beyond.
        exact = f"CASE WHEN length({_BARE}) <= 38 THEN toInt128OrNull({_BARE}) END"
        end = double_text(1e38)
        near = f"CASE WHEN {_DOUBLE} BETWEEN -{end} AND {end} THEN {to_integer(_rounded_text(), 'INT128')} END"
        number = f"CASE WHEN {fits(_WHOLE)} THEN {exact} ELSE {near} END"
        inside = f"{number} BETWEEN toInt128('{low}') AND toInt128('{high}')"
        return written(f"CASE WHEN {inside} THEN {TO_INTEGER[kind]}({number}) END", x=x)
    if kind == "BOOLEAN":
        true, false = (", ".join(map(quoted_text, words)) for words in (_TRUE, _FALSE))
        return written(f"CASE WHEN lower(v_x) IN ({true}) THEN 1 WHEN lower(v_x) IN ({false}) THEN 0 END", x=x)
    if kind == "DATE":
        return written(f"CASE WHEN {fits(_BLANKS_AROUND_DAY)} THEN {_day()} END", x=x)
    if kind == "TIMESTAMP":
        return moment_or_null(x)
    raise refusal("read_or_null", "this type")


def _rounded_text() -> str:
    return f"trunc({_DOUBLE} + sign({_DOUBLE}) * 0.49999999999999994)"


_BLANKS_AROUND_DAY = rf"^{_BLANKS}{_DAY}{_BLANKS}\z"


def _group(place: int) -> str:
    return f"toInt64OrZero(regexpExtract(v_x, {quoted_text(_MOMENT)}, {place}))"


def _days_of_month(first: str) -> str:
    """From its first day. Behind the last December there is nothing there."""
    return f"CASE WHEN toMonth({first}) = 12 THEN 31 ELSE toInt64(toDayOfMonth(addDays(addMonths({first}, 1), -1))) END"


def _day() -> str:
    """The day that a text writes, where the calendar has it: the server's own reading goes on into the next month."""
    year, month, day = (_group(place) for place in (1, 2, 3))
    written_day = f"makeDate32({year}, {month}, {day})"
    return (
        f"CASE WHEN {year} >= 1 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND "
        f"{_days_of_month(f'makeDate32({year}, {month}, 1)')} THEN {written_day} END"
    )


def moment_or_null(x: Any) -> Any:
    hour, minute, second = (_group(place) for place in (4, 5, 6))
    part = f"toInt64OrZero(rightPad(substring(regexpExtract(v_x, {quoted_text(_MOMENT)}, 7), 1, 6), 6, '0'))"
    zone = f"regexpExtract(v_x, {quoted_text(_MOMENT)}, 8)"
    behind = f"(CASE WHEN startsWith({zone}, '-') THEN -1 ELSE 1 END) * (abs({_group(8)}) * 3600 + {_group(9)} * 60)"
    seconds = f"{hour} * 3600 + {minute} * 60 + {second} - {behind}"
    start = f"toDateTime64({_day()}, 6, 'UTC')"
    whole = f"addMicroseconds(addSeconds({start}, {seconds}), {part})"
    return written(f"CASE WHEN {fits(_MOMENT)} THEN {whole} END", x=x)


def time_or_null(x: Any, to: Any) -> Any:
    return written("toDate32(v_x)" if type_of(to) == "DATE" else "toDateTime64(v_x, 6, 'UTC')", x=x)


def trimmed(side: str) -> Callable[..., Any]:
    def lower(text: Any, signs: Any | None = None) -> Any:
        listed = " " if signs is None else signs.name
        if not listed:
            return text
        return written(f"TRIM({side} v_s FROM v_x)", x=text, s=quoted_text(listed))

    return lower


def part(text: Any, start: Any, length: Any | None = None) -> Any:
    first, size = whole_in(start), None if length is None else max(whole_in(length), 0)
    if first < 0:
        where = f"greatest(toInt64(lengthUTF8(v_x)) + {first + 1}, 1)"
    else:
        size = size if first or size is None else max(size - 1, 0)
        where = str(max(first, 1))
    return written(f"substringUTF8(v_x, {where}{'' if size is None else f', {size}'})", x=text)


def counted(function: str, most: int) -> Callable[..., Any]:
    def lower(text: Any, number: Any) -> Any:
        return written(f"{function}(v_x, toInt64(least(greatest(v_n, 0), {most})))", x=text, n=number)

    return lower


def repeated(text: Any, number: Any) -> Any:
    """As often as there is room for: a text that grows too large raises. Statements cut texts far before."""
    copies = f"least(greatest(v_n, 0), intDiv({_ROOM}, greatest(toInt64(length(v_x)), 1)))"
    return written(f"repeat(v_x, toInt64({copies}))", x=text, n=number)


def replaced(text: Any, what: Any, by: Any) -> Any:
    return written("replaceAll(v_x, v_y, v_z)", x=text, y=what, z=by) if what.name else text


def listed(text: Any, between: Any) -> Any:
    return written("arrayJoin([v_l])", l=", ".join(map(quoted_text, text.name.split(between.name))))


def listed_wholes(text: Any, between: Any) -> Any:
    return written("arrayJoin([v_l])", l=", ".join(f"toInt64('{part}')" for part in text.name.split(between.name)))


def one_listed(text: Any, joined: Any, between: Any) -> Any:
    parts = ", ".join(map(quoted_text, joined.name.split(between.name)))
    return written("CASE WHEN v_x IN (v_l) THEN v_x END", x=text, l=parts)


def like(node: Any) -> Any:
    """Without ESCAPE no character escapes: a backslash, which escapes in the server, is doubled."""
    if isinstance(node.parent, needed("sqlglot").exp.Escape):
        return node
    return _like(node, node.expression.name.replace("\\", "\\\\"))


def _like(node: Any, pattern: str) -> Any:
    function = "ilike" if isinstance(node, needed("sqlglot").exp.ILike) else "like"
    return written(f"{function}(v_x, v_p)", x=node.this, p=quoted_text(pattern))


def escaped(node: Any) -> Any:
    """The pattern written with backslashes, which escape in the server."""
    return _like(node.this, with_backslashes(node.this.expression.name, node.expression.name))


def with_backslashes(pattern: str, sign: str) -> str:
    """A LIKE pattern whose escape character is a backslash, in place of the one that it has."""
    pieces, place = [], 0
    while place < len(pattern):
        if sign and pattern[place] == sign:
            if place + 1 == len(pattern):
                raise PlanError("a LIKE pattern ends on its escape character: double it, or leave it out")
            pieces.append("\\" + pattern[place + 1])
            place += 2
            continue
        pieces.append("\\\\" if pattern[place] == "\\" else pattern[place])
        place += 1
    return "".join(pieces)


_PARTS = {
    "YEAR": "toYear(v_x)", "QUARTER": "toQuarter(v_x)", "MONTH": "toMonth(v_x)", "WEEK": "toISOWeek(v_x)",
    "DAY": "toDayOfMonth(v_x)", "HOUR": "toHour(v_m)", "MINUTE": "toMinute(v_m)", "SECOND": "toSecond(v_m)",
    "DOW": "toDayOfWeek(v_x) % 7", "ISODOW": "toDayOfWeek(v_x)", "DOY": "toDayOfYear(v_x)",
    "MICROSECOND": "positiveModulo(toUnixTimestamp64Micro(v_m), 60000000)",
}  # fmt: skip


def part_of_date(node: Any) -> Any:
    name, x = node.name.upper(), node.expression
    if name == "EPOCH":
        return written("toUnixTimestamp64Micro(v_m) / 1000000.", m=moment(x))
    return written(f"toInt64({_PARTS[name]})", x=x, m=moment(x))


_MONTH_START = "addDays(toDate32(v_x), 1 - toInt64(toDayOfMonth(v_x)))"
_STARTS = {
    "YEAR": "addDays(toDate32(v_x), 1 - toInt64(toDayOfYear(v_x)))",
    "QUARTER": f"addMonths({_MONTH_START}, -toInt64((toMonth(v_x) - 1) % 3))",
    "MONTH": _MONTH_START,
    "WEEK": "addDays(toDate32(v_x), 1 - toInt64(toDayOfWeek(v_x)))",
    "DAY": "toDate32(v_x)",
}


def start_of(node: Any) -> Any:
    unit = node.args["unit"].name.upper()
    if unit in _SECONDS:
        micros = _SECONDS[unit] * 1_000_000
        return written(
            f"addMicroseconds(v_m, -positiveModulo(toUnixTimestamp64Micro(v_m), {micros}))", m=moment(node.this)
        )
    start = _STARTS[unit]
    return written(start if kind_of(node.this) == "DATE" else f"toDateTime64({start}, 6, 'UTC')", x=node.this)


def boundaries_between(unit: Any, first: Any, last: Any) -> Any:
    name = unit.name.upper()
    if name in _MONTHS:
        months = ("intDiv(toInt64(toYear({0})) * 12 + toMonth({0}) - 1, " + f"{_MONTHS[name]})").format
        return written(f"({months('v_y')} - {months('v_x')})", x=first, y=last)
    if name in ("DAY", "WEEK"):
        days = f"dateDiff('day', {_STARTS[name]}, {_STARTS[name].replace('v_x', 'v_y')})"
        return written(days if name == "DAY" else f"intDiv({days}, 7)", x=first, y=last)
    micros = _SECONDS.get(name, 0) * 1_000_000 or 1
    starts = [f"toUnixTimestamp64Micro({x})" for x in ("v_y", "v_x")]
    counted = [f"intDiv({start} - positiveModulo({start}, {micros}), {micros})" for start in starts]
    return written(" - ".join(counted), x=moment(first), y=moment(last))


def last_day(node: Any) -> Any:
    return written(f"addDays({_MONTH_START}, {_days_of_month(_MONTH_START)} - 1)", x=node.this)


def month_name(x: Any) -> Any:
    return written(f"arrayElement([{', '.join(map(quoted_text, _MONTHS_NAMED))}], toMonth(v_x))", x=x)


def day_name(x: Any) -> Any:
    return written(f"arrayElement([{', '.join(map(quoted_text, _DAYS_NAMED))}], toDayOfWeek(v_x))", x=x)


def interval(node: Any) -> Any:
    exp, bare = needed("sqlglot").exp, node.this.unnest()
    number = exp.Literal.number(bare.name) if isinstance(bare, exp.Literal) and bare.is_string else node.this
    tree = exp.Var(this=f"INTERVAL {whole_in(number)} {node.args['unit'].name.upper()}")
    tree.meta[KIND] = "INTERVAL"
    return tree


def hashed(*values: Any) -> Any:
    """-0.0 and 0.0 are one value, and have one hash."""
    shown = [written("v_x + 0.", x=value) if kind_of(value) == "DOUBLE" else value for value in values]
    listed = ", ".join(each.sql(dialect="clickhouse", comments=False) for each in shown)
    return written("toInt128(sipHash64(tuple(v_l)))", l=listed)
