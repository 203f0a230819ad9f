"""Dates of pasted queries: parts, weeks, differences and formats, in DuckDB's words.

A week begins on Monday here, as ISO says. Days of the week are counted from 0 for Sunday by DOW, from 1 for Monday by
ISODOW; what others count otherwise is computed from these.
"""

from __future__ import annotations

import re

from sqlglot import exp

from ..refusal import QueryError
from .pasting import Change, Paste

_SUNDAY_IS_1 = ("bigquery", "spark", "databricks", "mysql", "tsql")
_ISO_WEEKS = ("postgres", "snowflake", "spark", "databricks")
_BOUNDARIES = ("bigquery", "snowflake", "tsql", "mysql")
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second", "isodow", "doy")
_SAME = {
    "years": "year", "yyyy": "year", "yy": "year", "qq": "quarter", "q": "quarter", "mm": "month", "m": "month",
    "months": "month", "days": "day", "dd": "day", "d": "day", "dayofmonth": "day", "dayofyear": "doy", "dy": "doy",
    "y": "doy", "hh": "hour", "hours": "hour", "mi": "minute", "n": "minute", "minutes": "minute", "ss": "second",
    "s": "second", "seconds": "second", "dow_iso": "isodow", "dayofweek_iso": "isodow", "dayofweekiso": "isodow",
    "weekday_iso": "isodow", "isoweek": "isoweek", "iso_week": "isoweek", "isowk": "isoweek", "isoww": "isoweek",
    "weekiso": "isoweek", "week_iso": "isoweek", "weekofyear": "week", "wk": "week", "ww": "week", "weeks": "week",
    "w": "week", "weekday": "dow", "dayofweek": "dow", "dw": "dow",
}  # fmt: skip
_UNITS = ("year", "quarter", "month", "day", "hour", "minute", "second")
_SIGNS = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S"}
_NAMES = {"%B": exp.Monthname, "%A": exp.Dayname}


def _word(node: exp.Expr | None) -> str:
    word = "" if node is None else node.name
    if isinstance(node, exp.WeekStart):
        word = f"week({word})"
    return _SAME.get(word.lower(), word.lower())


def _part(name: str, operand: exp.Expr) -> exp.Expr:
    return exp.Extract(this=exp.var(name.upper()), expression=operand)


def extract(node: exp.Extract, paste: Paste) -> exp.Expr:
    return _named_part(_word(node.this), node.expression, node, paste, fraction=True)


def _named_part(name: str, operand: exp.Expr, node: exp.Expr, paste: Paste, *, fraction: bool = False) -> exp.Expr:
    """The part of a date that another dialect calls so."""
    if name == "dow":
        return _sunday_first(operand, paste)
    if name == "isoweek" or (name == "week" and paste.dialect in _ISO_WEEKS):
        return _part("week", operand)
    if name == "week":
        raise _own_weeks(node, paste, f"EXTRACT(ISOWEEK FROM {paste.shown(operand)})")
    if name == "second" and fraction and paste.dialect in ("postgres", "spark", "databricks"):
        raise QueryError(
            f"Seconds are whole here, and have a fraction in {paste.title}.",
            f"write DATE_TRUNC('second', {paste.shown(operand)})",
            node,
        )
    if name not in _PARTS and not (name == "epoch" and paste.dialect == "postgres"):
        raise QueryError(f"The part {name.upper()} of a date is not one that is read here.", f"use {_PARTS}", node)
    return _part(name, operand)


def _sunday_first(operand: exp.Expr, paste: Paste) -> exp.Expr:
    dow = _part("dow", operand)
    return exp.paren(exp.Add(this=dow, expression=exp.Literal.number(1))) if paste.dialect in _SUNDAY_IS_1 else dow


def _own_weeks(node: exp.Expr, paste: Paste, instead: str) -> QueryError:
    rule = f"Weeks begin on Monday here, as ISO says; {paste.title} counts them otherwise."
    return QueryError(rule, f"write {instead}", node)


def day_of_week(node: exp.DayOfWeek, paste: Paste) -> exp.Expr:
    return _sunday_first(_day(node.this, paste), paste)


def week(node: exp.Week, paste: Paste) -> exp.Expr:
    mode = node.args.get("mode")
    iso = (mode is not None and mode.name == "3") if paste.dialect == "mysql" else paste.dialect in _ISO_WEEKS
    if not iso:
        raise _own_weeks(node, paste, f"WEEKOFYEAR({paste.shown(_day(node.this, paste))})")
    return _part("week", _day(node.this, paste))


def named_part(name: str) -> Change:
    """YEAR(d) and its like. sqlglot casts the operands of some to dates, which hours would not outlive."""
    operand = _moment if name in ("hour", "minute", "second") else _day
    return lambda node, paste: _named_part(name, operand(node.this, paste), node, paste)


def _day(operand: exp.Expr, paste: Paste) -> exp.Expr:
    """A date or moment of which only the day matters, without the casts that sqlglot puts around what may be text."""
    inner = operand.this if isinstance(operand, exp.Cast) and operand.to.this in exp.DataType.TEMPORAL_TYPES else None
    return inner if inner is not None and paste.types.of(inner) == "time" else operand


def _moment(operand: exp.Expr, paste: Paste) -> exp.Expr:
    """A date or moment: a cast of a date to the moment it begins changes nothing, one to the day may."""
    return operand if isinstance(operand, exp.Cast) and operand.to.is_type("date") else _day(operand, paste)


def truncated(node: exp.DateTrunc | exp.TimestampTrunc, paste: Paste) -> exp.Expr:
    unit = _word(node.args.get("unit"))
    monday = unit in ("isoweek", "week(monday)") or (unit == "week" and paste.dialect in _ISO_WEEKS)
    if unit.startswith("week") and not monday:
        raise _own_weeks(node, paste, f"DATE_TRUNC({paste.shown(node.this)}, ISOWEEK)")
    if node.args.get("zone") is not None:
        raise QueryError("Time zones are not known here.", "leave the time zone out", node)
    word = "week" if monday else unit
    if word not in (*_UNITS, "week"):
        raise QueryError("Dates are cut to years, quarters, months, weeks, days or less.", f"use {_UNITS}", node)
    return exp.TimestampTrunc(this=_moment(node.this, paste), unit=exp.var(word.upper()))


def difference(node: exp.DateDiff | exp.DatetimeDiff, paste: Paste) -> exp.Expr:
    """How many boundaries of the unit lie between; Spark and PostgreSQL do not count those, but of days."""
    unit = _word(node.args.get("unit")) or "day"
    days_only = paste.dialect not in _BOUNDARIES
    later, earlier = _moment(node.this, paste), _moment(node.expression, paste)
    if unit not in _UNITS or (days_only and unit != "day"):
        days = f"count days: DATEDIFF({paste.shown(later)}, {paste.shown(earlier)})"
        raise QueryError(
            f"Differences count days, months and their like here, not what {paste.title} calls {unit.upper() or '?'}.",
            days if days_only else "use DAY, MONTH, QUARTER, YEAR or HOUR",
            node,
        )
    return exp.DateDiff(this=later, expression=earlier, unit=exp.var(unit.upper()))


def no_elapsed(node: exp.TimestampDiff, paste: Paste) -> exp.Expr:
    unit = _word(node.args.get("unit")) or "day"
    later, earlier = paste.shown(node.this), paste.shown(node.expression)
    raise QueryError(
        f"{paste.title} counts units that have passed here, and only boundaries between are counted in this SQL.",
        f"count boundaries: DATE_DIFF({later}, {earlier}, {unit.upper()})"
        if paste.dialect == "bigquery"
        else f"count days: DATEDIFF({later}, {earlier})",
        node,
    )


def moved(node: exp.DateAdd | exp.DateSub | exp.TsOrDsAdd, paste: Paste) -> exp.Expr:
    """d + INTERVAL n UNIT."""
    sign: type[exp.Binary] = exp.Sub if isinstance(node, exp.DateSub) else exp.Add
    number, unit = node.expression, _word(node.args.get("unit")) or "day"
    if isinstance(number, exp.Interval):
        number, unit = number.this, _word(number.args.get("unit")) or unit
    if isinstance(number, exp.Mul) and number.expression.sql() == "-1":  # Spark's DATE_SUB(d, n)
        number, sign = number.this, exp.Sub
    while isinstance(number, exp.Paren):
        number = number.this
    if isinstance(number, exp.Neg):
        number, sign = number.this, exp.Add if sign is exp.Sub else exp.Sub
    if not isinstance(number, exp.Literal) or not number.name.lstrip("-").isdigit():
        raise QueryError(
            "A date is moved by a number that stands in the query.", "write it out, such as INTERVAL 3 DAY", node
        )
    if unit not in (*_UNITS, "week"):
        raise QueryError("A date is moved by years, months, weeks, days or less.", f"use {_UNITS}", node)
    span = exp.Interval(this=exp.Literal.string(number.name), unit=exp.var(unit.upper()))
    return exp.paren(sign(this=_moment(node.this, paste), expression=span))


def to_date(node: exp.TsOrDsToDate, paste: Paste) -> exp.Expr:
    if node.args.get("format") is not None and node.args["format"].name != "%Y-%m-%d":
        raise _own_format(node, paste)
    return exp.cast(node.this, "DATE")


def read_date(node: exp.StrToDate, paste: Paste) -> exp.Expr:
    """TO_DATE(s, 'YYYY-MM-DD')."""
    form = node.args.get("format")
    if form is None or form.name != "%Y-%m-%d":
        raise _own_format(node, paste)
    return exp.cast(node.this, "DATE")


def _own_format(node: exp.Expr, paste: Paste) -> QueryError:
    return QueryError(
        "Dates are read as ISO writes them, 2024-01-31.", f"write CAST({paste.shown(node.this)} AS DATE)", node
    )


def to_moment(node: exp.Expr, _: Paste) -> exp.Expr:
    if any(node.args.get(each) is not None for each in ("expression", "zone")):
        raise QueryError("Time zones are not known here.", "leave the time zone out", node)
    return exp.cast(node.this, "TIMESTAMP")


def written(node: exp.TimeToStr, paste: Paste) -> exp.Expr:
    """TO_CHAR(d, 'YYYY-MM'), DATE_FORMAT, FORMAT_DATE and DATENAME: STRFTIME, where each sign has two digits."""
    operand, form = _moment(node.this, paste), node.args.get("format")
    signs = form.name.replace("strict", "") if isinstance(form, exp.Literal) else ""
    if signs in _NAMES and paste.dialect != "postgres":  # which fills names up with blanks
        return _NAMES[signs](this=_day(node.this, paste))
    return _formatted(node, operand, signs, paste)


def _formatted(node: exp.Expr, operand: exp.Expr, signs: str, paste: Paste) -> exp.Expr:
    if not signs or re.search("[%A-Za-z]", re.sub("%[YmdHMS]", "", signs)):
        raise QueryError(
            "Dates are written with years, months, days, hours, minutes and seconds, in digits.",
            f"write CONCAT(YEAR({paste.shown(operand)}), '-', MONTH({paste.shown(operand)})), or group by DATE_TRUNC",
            node,
        )
    return exp.TimeToStr(this=operand, format=exp.Literal.string(signs))


def to_text(node: exp.ToChar, paste: Paste) -> exp.Expr:
    """TO_CHAR(x) and, in Snowflake, TO_CHAR(d, 'YYYY-MM')."""
    form = node.args.get("format")
    if form is None:
        return exp.cast(node.this, "VARCHAR")
    if paste.types.of(node.this) != "time":
        raise QueryError(
            "Numbers are not written in formats here.", f"write CAST({paste.shown(node.this)} AS VARCHAR)", node
        )
    signs = form.name
    for theirs, ours in _SIGNS.items():
        signs = signs.replace(theirs, ours).replace(theirs.lower(), ours)
    return _formatted(node, _moment(node.this, paste), signs, paste)


def name_of(node: exp.Dayname | exp.Monthname, paste: Paste) -> exp.Expr:
    """Snowflake's names have three letters."""
    whole = type(node)(this=_day(node.this, paste))
    return exp.Left(this=whole, expression=exp.Literal.number(3)) if node.args.get("abbreviated") else whole


def last_day(node: exp.LastDay, paste: Paste) -> exp.Expr:
    return exp.LastDay(this=_day(node.this, paste), unit=node.args.get("unit"))


PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Quarter: "quarter",
    exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second", exp.DayOfYear: "doy", exp.DayOfWeekIso: "isodow",
    exp.WeekOfYear: "isoweek",
}  # fmt: skip

CHANGES: dict[type[exp.Expr], Change] = {
    **{kind: named_part(name) for kind, name in PARTS.items()},
    exp.Extract: extract, exp.DayOfWeek: day_of_week, exp.Week: week, exp.DateTrunc: truncated,
    exp.TimestampTrunc: truncated, exp.DateDiff: difference, exp.DatetimeDiff: difference,
    exp.TimestampDiff: no_elapsed, exp.DateAdd: moved, exp.DateSub: moved, exp.TsOrDsAdd: moved,
    exp.DatetimeAdd: moved, exp.DatetimeSub: moved, exp.TimestampAdd: moved, exp.TimestampSub: moved,
    exp.TsOrDsToDate: to_date, exp.StrToDate: read_date, exp.Timestamp: to_moment, exp.TsOrDsToDatetime: to_moment,
    exp.TimeStrToTime: to_moment, exp.TsOrDsToTimestamp: to_moment, exp.TimeToStr: written, exp.ToChar: to_text,
    exp.Dayname: name_of, exp.Monthname: name_of, exp.LastDay: last_day,
}  # fmt: skip
