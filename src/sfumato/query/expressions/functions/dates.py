"""Dates and moments: parts, truncation, differences and shifts.

Every date and moment lies in the years 1 to 9999 or is NULL: the schema's bounds lie there, casts and shifts that lead
out of them give NULL. There the engine's own functions cannot fail. Nothing reads the clock.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

from sqlglot import exp

from .... import times
from ....sources.vocabulary import call
from ...kinds import Kind, Likely, Typed
from ...refusal import QueryError
from .. import trees
from ..intervals import Interval
from .operands import MANY, Reader, Rule, constant_text, constant_whole, shown, wholes

PARTS: dict[str, tuple[int, int]] = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
EPOCH = datetime.datetime(1970, 1, 1)
ALIASES = {
    "dayofweek": "dow",
    "weekday": "dow",
    "dayofyear": "doy",
    "dayofmonth": "day",
    "weekofyear": "week",
}
DAYS = ("year", "quarter", "month", "week", "day")
"""Units of whole days: a date shifted or truncated by them is a date again."""
UNITS = (*DAYS, "hour", "minute", "second")
DAY_LIMIT = 3_700_000
LONGEST = {"year": 10_000, "quarter": 40_000, "month": 120_000, "week": 530_000, "day": DAY_LIMIT}
LONGEST |= {"hour": 24 * DAY_LIMIT, "minute": 1440 * DAY_LIMIT, "second": 86_400 * DAY_LIMIT}
"""Ten thousand years: any date plus so much is within what the engine can hold (290,000 years), and out of ours."""
MONTHS: tuple[str, ...] = ("January", "February", "March", "April", "May", "June", "July")
MONTHS += ("August", "September", "October", "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def part(node: exp.Expression, name: str, operand: exp.Expression, read: Reader) -> Typed:
    """One part of a date, such as its month. The values of all but the year are public."""
    found = read.time(operand)
    name = _unit_name(name)
    name = ALIASES.get(name, name)
    if name == "epoch":
        return Typed(trees.cast(_extracted("epoch", _moment(found)), "DOUBLE"), Kind("real"))
    if name not in PARTS:
        known = ", ".join(PARTS)
        raise QueryError(f"There is no part {name!r} of a date here.", f"use one of: {known}, epoch", node)
    low, high = _years(found.kind) if name == "year" else PARTS[name]
    tree = _extracted(name, _moment(found) if name in ("hour", "minute", "second") else found.tree)
    kind = wholes(Interval(Fraction(low), Fraction(high)))
    return Typed(trees.cast(tree, "BIGINT"), kind)


def _years(kind: Kind) -> tuple[int, int]:
    if kind.lower is None or kind.upper is None:
        return PARTS["year"]
    return times.read(int(kind.lower), kind.type).year, times.read(int(kind.upper), kind.type).year


def extract(node: exp.Extract, read: Reader) -> Typed:
    return part(node, node.this.name, node.expression, read)


def named_part(name: str) -> Rule:
    """The rule of a function that gives one part, such as MONTH(d)."""
    return lambda node, read: part(node, name, node.this, read)


def date_part(node: exp.Anonymous, read: Reader) -> Typed:
    """DATE_PART('month', d)."""
    if len(node.expressions) != 2:
        raise QueryError("DATE_PART needs a part and a date.", "write DATE_PART('month', d)", node)
    name, operand = node.expressions
    return part(node, constant_text(name, "The part", "DATE_PART('month', d)"), operand, read)


def any_part(name: str) -> Rule:
    """The same for functions that sqlglot has no node for, such as WEEKDAY(d)."""

    def rule(node: exp.Anonymous, read: Reader) -> Typed:
        if len(node.expressions) != 1:
            raise QueryError(f"{node.name.upper()} takes one date.", f"write {node.name.upper()}(d)", node)
        return part(node, name, node.expressions[0], read)

    return rule


def name_of(word: str, values: tuple[str, ...]) -> Rule:
    """MONTHNAME and DAYNAME."""
    return lambda node, read: Typed(call(word, read.time(node.this).tree), Kind("text", values=values))


def last_day(node: exp.LastDay, read: Reader) -> Typed:
    if node.args.get("unit") is not None:
        raise QueryError("LAST_DAY takes one date.", "write LAST_DAY(d)", node)
    return Typed(trees.cast(exp.LastDay(this=read.time(node.this).tree), "DATE"), Kind("date"))


def truncated(node: exp.Expression, read: Reader) -> Typed:
    """DATE_TRUNC('month', d): a date stays a date where the unit is a day or longer."""
    unit = _unit(node, node.args.get("unit"), "DATE_TRUNC('month', d)")
    if node.args.get("zone") is not None:
        raise QueryError("Time zones are not known here.", "write DATE_TRUNC('month', d)", node)
    found = read.time(node.this)
    tree: exp.Expression = exp.TimestampTrunc(this=found.tree, unit=exp.var(unit.upper()))
    if found.kind.is_date and unit in DAYS:
        kind = Kind("date", *_truncated(found.kind, unit), values=starts_between(found.kind, unit))
        return Typed(trees.cast(tree, "DATE"), kind)
    return Typed(trees.cast(tree, "TIMESTAMP"), Kind("moment"))


def _start(day: datetime.date, unit: str) -> datetime.date:
    """The first day of the year, quarter, month or week."""
    if unit == "week":
        return day - datetime.timedelta(days=day.weekday())
    if unit == "day":
        return day
    month = {"year": 1, "quarter": day.month - (day.month - 1) % 3, "month": day.month}[unit]
    return day.replace(month=month, day=1)


def _truncated(kind: Kind, unit: str) -> tuple[Fraction | None, Fraction | None]:
    if kind.lower is None or kind.upper is None:
        return None, None
    first = _start(times.read(int(kind.lower), "date"), unit)
    return Fraction(times.days(first) or 0), kind.upper


def starts_between(kind: Kind, unit: str) -> tuple[datetime.date, ...] | None:
    """All first days between public bounds, unless there are very many."""
    if kind.lower is None or kind.upper is None:
        return None
    day, last = (times.read(int(end), "date") for end in (kind.lower, kind.upper))
    longest = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
    if (last - day).days // longest > MANY:
        return None
    found = [_start(day, unit)]
    while (following := _start(found[-1] + datetime.timedelta(days=longest), unit)) <= last:
        found.append(following)
    return tuple(found)


def difference(node: exp.DateDiff, read: Reader) -> Typed:
    """DATE_DIFF('day', a, b): how many boundaries of the unit lie from a to b."""
    unit = _unit(node, node.args.get("unit"), "DATE_DIFF('day', a, b)")
    later, earlier = read.time(node.this), read.time(node.expression)
    tree = call("boundaries_between", trees.text(unit), _moment(earlier), _moment(later))
    return Typed(tree, Kind("whole", likely=between(later.kind, earlier.kind, unit)))


def between(later: Kind, earlier: Kind, unit: str) -> Likely | None:
    """How many boundaries of a unit may lie between values of these kinds: it grows with the later, and falls with the
    earlier. It is no more than likely, so that groups by it are chosen as they were before it was known."""
    ends = [_ends(later), _ends(earlier)]
    if None in ends:
        return None
    (first, last), (start, stop) = ([_boundaries(moment, unit) for moment in each or ()] for each in ends)
    return Likely(Fraction(first - stop), Fraction(last - start))


def _ends(kind: Kind) -> tuple[datetime.datetime, datetime.datetime] | None:
    """The first and the last moment."""
    if kind.values:  # of a constant
        moments = [datetime.datetime.fromisoformat(each.isoformat()) for each in kind.values]
        return min(moments), max(moments)
    if kind.lower is None or kind.upper is None:
        return None
    low, high = (times.nearest(int(end), kind.type).isoformat() for end in (kind.lower, kind.upper))
    return datetime.datetime.fromisoformat(low), datetime.datetime.fromisoformat(high)


def _boundaries(moment: datetime.datetime, unit: str) -> int:
    """How many boundaries of the unit lie before a moment, counted from somewhere."""
    if unit in ("year", "quarter", "month"):
        return {"year": moment.year, "quarter": moment.year * 4 + (moment.month - 1) // 3}.get(
            unit, moment.year * 12 + moment.month
        )
    size = {"week": 7 * 86_400, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}[unit]
    seconds = (moment.toordinal() - 1) * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second
    return seconds // size  # the first day of the year 1 was a Monday


def interval(node: exp.Interval, _: Reader) -> Typed:
    """INTERVAL 3 MONTH, its number standing in the query."""
    example = "INTERVAL 3 MONTH, or d + w for a column w of whole days"
    given = node.this
    unit = _unit(node, node.args.get("unit"), example)
    if isinstance(given, exp.Literal) and given.is_string:
        digits = given.name.strip()
        if not digits.removeprefix("-").isdigit() or len(digits) > 12:
            raise QueryError("An interval is one whole number and one unit.", f"write {example}", node)
        count = int(digits)
    else:
        count = constant_whole(given, "The length of an interval", example, -(10**12), 10**12)
    most = LONGEST[unit]
    if abs(count) > most:
        raise QueryError(f"The interval is longer than {most} {unit}s: no date is left.", f"write {example}", node)
    tree = exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit.upper()))
    return Typed(tree, Kind("span"))


def shifted(node: exp.Expression, left: Typed, right: Typed, sign: type[exp.Expression] | None = None) -> Typed:
    """Date + interval, date - interval, date + whole days, date - date (in days)."""
    kinds = (left.kind.type, right.kind.type)
    sign = sign or type(node)
    if sign is exp.Add and kinds[0] in ("span", "whole"):
        left, right, kinds = right, left, (kinds[1], kinds[0])
    if sign is exp.Sub and kinds == ("date", "date"):
        tree = call("boundaries_between", trees.text("day"), right.tree, left.tree)
        return Typed(tree, Kind("whole", likely=between(left.kind, right.kind, "day")))
    if sign not in (exp.Add, exp.Sub) or kinds[0] not in ("date", "moment") or kinds[1] not in ("span", "whole"):
        instead = "use date + INTERVAL 3 DAY, date + whole days, date - date, or DATE_DIFF('hour', a, b)"
        raise QueryError("This cannot be computed with dates.", instead, node)
    if kinds[1] == "span":
        fine = right.tree.args["unit"].name.lower() not in DAYS
        moved = trees.binary(sign, left.tree, right.tree)
        if kinds[0] == "date" and not fine:
            return Typed(trees.known_date(trees.cast(moved, "DATE")), Kind("date"))
        return Typed(trees.known_moment(trees.cast(moved, "TIMESTAMP")), Kind("moment"))
    if kinds[0] == "moment":
        instead = f"write CAST({shown(node.this)} AS DATE), or add INTERVAL 1 DAY"
        raise QueryError("Whole days are added to dates, not to timestamps.", instead, node)
    # Ten thousand years of days fit into INTEGER and, added to any date here, into the engine's dates.
    most = DAY_LIMIT
    near = exp.Between(this=trees.wrapped(right.tree.copy()), low=trees.whole(-most), high=trees.whole(most))
    days = trees.cast(trees.when(near, right.tree), "INT")
    return Typed(trees.known_date(trees.binary(sign, left.tree, days)), Kind("date"))


def added(node: exp.DateAdd, read: Reader) -> Typed:
    """DATE_ADD(d, INTERVAL 1 DAY)."""
    return shifted(node, read.time(node.this), read.read(node.expression), exp.Add)


def clock(node: exp.Expression, _: Reader) -> Typed:
    rule = "The clock and random numbers are no part of a row, so the answer would not be the data's alone."
    chance = isinstance(node, exp.Rand | exp.Randn | exp.Uuid) or "RAND" in node.name.upper()
    draw = "leave it out: the noise of the answer is random already, and rows are not drawn"
    raise QueryError(rule, draw if chance else "give the date as a literal, such as DATE '2024-01-31'", node)


def _moment(found: Typed) -> exp.Expression:
    return trees.cast(found.tree, "TIMESTAMP") if found.kind.is_date else found.tree


def _extracted(name: str, tree: exp.Expression) -> exp.Expression:
    return exp.Extract(this=exp.var(name.upper()), expression=tree)


def _unit_name(name: str) -> str:
    name = name.lower()
    return name[:-1] if name.endswith("s") and name[:-1] in UNITS else name


def _unit(node: exp.Expression, given: exp.Expression | None, example: str) -> str:
    name = _unit_name(given.name) if given is not None else ""
    if name not in UNITS or not isinstance(given, (exp.Var, exp.Literal)):
        known = ", ".join(UNITS)
        raise QueryError(f"The unit is one of {known}.", f"write {example}", node)
    return name


PART_NODES: dict[type[exp.Expression], str] = {
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
    exp.DayOfWeek: "dow",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "doy",
    exp.Quarter: "quarter",
    exp.Week: "week",
    exp.WeekOfYear: "week",
}

RULES: dict[type[exp.Expression], Rule] = {
    **{node: named_part(name) for node, name in PART_NODES.items()},
    exp.Extract: extract,
    exp.Monthname: name_of("month_name", MONTHS),
    exp.Dayname: name_of("day_name", WEEKDAYS),
    exp.LastDay: last_day,
    exp.TimestampTrunc: truncated,
    exp.DateTrunc: truncated,
    exp.DateDiff: difference,
    exp.Interval: interval,
    exp.DateAdd: added,
    exp.CurrentDate: clock,
    exp.CurrentTimestamp: clock,
    exp.CurrentTime: clock,
    exp.CurrentDatetime: clock,
    exp.Localtimestamp: clock,
    exp.Localtime: clock,
    exp.Rand: clock,
    exp.Uuid: clock,
}

NAMED: dict[str, Rule] = {
    "date_part": date_part,
    "datepart": date_part,
    "weekday": any_part("dow"),
    **dict.fromkeys(("now", "get_current_timestamp", "transaction_timestamp", "gen_random_uuid", "uuidv7"), clock),
    **dict.fromkeys(("getdate", "getutcdate", "sysdate", "sysdatetime", "curdate", "curtime", "newid"), clock),
}
