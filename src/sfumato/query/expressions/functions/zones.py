"""Times of other zones: t AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' is what clocks show in Berlin at t.

Times are UTC here. SQL's AT TIME ZONE leads into a zone from a time that has one, and out of it from one that has
none; a column of the schema does not say which it is. So the query says it: `t AT TIME ZONE 'UTC'` and
`CAST(t AS TIMESTAMPTZ)` are the moment t, and a zone after these leads into it. A zone alone is refused, with both
ways of writing it.

The changes of clocks stand in the statement, as a tree of comparisons with constants: no engine needs to know a zone,
and no cell can raise. They are read from the package tzdata and not from the machine, so that they are the same
wherever the same version of it is installed.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from sqlglot import exp

from .... import times
from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from ..intervals import Interval
from .casts import to_moment, zoned
from .operands import Reader, Rule, constant_text, shown

UTC = ("utc", "etc/utc", "gmt", "z", "+00", "+00:00")
FIRST, LAST = datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)
"""Before the first of these a zone's time is what it was then, after the last what it will be then."""
_STEP = datetime.timedelta(days=7)
_SECOND, _DAYS = datetime.timedelta(seconds=1), datetime.timedelta(days=2)
Change = tuple[datetime.datetime, datetime.timedelta]
"""From which moment on clocks are how far ahead of UTC."""


def at_time_zone(node: exp.AtTimeZone, read: Reader) -> Typed:
    zone = constant_text(node.args["zone"], "The time zone", "AT TIME ZONE 'UTC'")
    moment = to_moment(node, read.time(node.this))
    if zone.lower() in UTC:
        return moment
    bare = _without_zone(node.this)
    if bare is node.this.unnest():
        rule = "Times are UTC here, and a zone after them may lead into it or out of it."
        into = f"{shown(node.this)} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"
        written = (
            "" if isinstance(node.this, exp.Cast) else into
        )  # where the place of TIMESTAMP '...' begins is not known
        raise QueryError(rule, f"write {into} for what clocks show there", node, write=written)
    return _local(moment.tree, _span(read.time(bare).kind), changes(zone, node))


def _without_zone(node: exp.Expr) -> exp.Expression:
    """What stands before the words that make it a moment with a zone."""
    node = node.unnest()
    if isinstance(node, exp.AtTimeZone) and node.args["zone"].name.lower() in UTC:
        return _without_zone(node.this)
    if isinstance(node, exp.Cast) and zoned(node):
        return _without_zone(node.this)
    assert isinstance(node, exp.Expression)
    return node


def _span(kind: Kind) -> Interval:
    """Between which moments it lies."""
    scale = 86_400 * 10**6 if kind.is_date else 1
    return Interval(*(None if end is None else end * scale for end in (kind.lower, kind.upper)))


def _local(moment: exp.Expression, span: Interval, zone: Sequence[Change]) -> Typed:
    """What clocks show: NULL where that could lie outside the years 1 to 9999."""
    first, last = (_moment(end, beyond) for end, beyond in ((span.lower, FIRST), (span.upper, LAST)))
    start = sum(change[0] <= first for change in zone[1:])
    within = [zone[start], *(change for change in zone[start + 1 :] if change[0] <= last)]
    local = trees.cast(_shifted(moment, within), "TIMESTAMP")
    near = (datetime.datetime.min + _DAYS, datetime.datetime.max - _DAYS)
    if span.lower is None or span.upper is None or first < near[0] or last > near[1]:
        low, high = map(trees.moment, near)
        return Typed(
            trees.when(exp.Between(this=trees.wrapped(moment.copy()), low=low, high=high), local), Kind("moment")
        )
    ahead = [Fraction(int(offset / _SECOND) * 10**6) for _, offset in within]
    return Typed(local, Kind("moment", span.lower + min(ahead), span.upper + max(ahead)))


def _moment(end: Fraction | None, beyond: datetime.datetime) -> datetime.datetime:
    moment = beyond if end is None else times.nearest(int(end), "moment")
    assert isinstance(moment, datetime.datetime)
    return moment


def _shifted(moment: exp.Expression, zone: Sequence[Change]) -> exp.Expression:
    """The moment and its zone's offset; one comparison halves the changes that are left."""
    if len(zone) == 1:
        seconds = exp.Interval(this=exp.Literal.string(str(int(zone[0][1] / _SECOND))), unit=exp.var("SECOND"))
        return trees.binary(exp.Add, moment.copy(), seconds)
    middle = len(zone) // 2
    early = trees.binary(exp.LT, moment.copy(), trees.moment(zone[middle][0]))
    return trees.when(early, _shifted(moment, zone[:middle]), _shifted(moment, zone[middle:]))


def changes(zone: str, node: exp.Expression) -> tuple[Change, ...]:
    """A zone's offsets, with the moments in UTC from which they hold; the first holds before, too."""
    table = _changes(zone.lower())
    if table is None:
        hours = f"or, where it is so many hours all the year, {shown(node.this)} + INTERVAL 1 HOUR"
        raise QueryError("There is no time zone of this name.", f"write one such as 'Europe/Berlin', {hours}", node)
    return table


@lru_cache(maxsize=32)
def _changes(zone: str) -> tuple[Change, ...] | None:
    place = _names().get(zone)
    if place is None:
        return None
    with resources.files("tzdata").joinpath("zoneinfo", *place.split("/")).open("rb") as file:
        clocks = ZoneInfo.from_file(file)

    def ahead(moment: datetime.datetime) -> datetime.timedelta:
        offset = moment.replace(tzinfo=datetime.UTC).astimezone(clocks).utcoffset()
        assert offset is not None
        return offset

    table, at = [(FIRST, ahead(FIRST))], FIRST
    while at < LAST:
        after = min(at + _STEP, LAST)
        if ahead(after) != table[-1][1]:
            early, late = at, after
            while late - early > _SECOND:
                middle = early + datetime.timedelta(seconds=int((late - early) / _SECOND) // 2)
                early, late = (middle, late) if ahead(middle) == table[-1][1] else (early, middle)
            table.append((late, ahead(late)))
            after = late
        at = after
    return tuple(table)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """The zones that there are, by their names in lower case."""
    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    return {name.lower(): name for name in listed.split()}


RULES: dict[type[exp.Expression], Rule] = {exp.AtTimeZone: at_time_zone}
