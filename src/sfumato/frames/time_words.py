"""`.dt`: parts of dates and moments, as far as SQL here has what polars means."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from .operators import alone, function
from .terms import Term, unlike

if TYPE_CHECKING:
    from .expr import Expr

_UNITS = {
    "1s": "SECOND", "1m": "MINUTE", "1h": "HOUR", "1d": "DAY", "1w": "WEEK", "1mo": "MONTH", "1q": "QUARTER",
    "1y": "YEAR",
}  # fmt: skip
_OFFSETS = {"s": "SECOND", "m": "MINUTE", "h": "HOUR", "d": "DAY", "w": "WEEK", "mo": "MONTH", "y": "YEAR"}
_FORMAT = re.compile(r"(?:%[YmdjHMS%]|[^%])*")
_OF_DAYS = ("SECOND", "MINUTE", "HOUR")


class Times:
    """Parts of a date or a moment. Built of an expression: `col("day").dt`."""

    def __init__(self, expr: Expr) -> None:
        self._expr = expr

    def _part(self, name: str, node: type[exp.Expr], lower: int = 0) -> Expr:
        return self._expr._then(
            f"dt.{name}", lambda term: function(term, node(this=term.tree.copy()), "whole", lower=lower)
        )

    def year(self) -> Expr:
        return self._part("year", exp.Year)

    def quarter(self) -> Expr:
        return self._part("quarter", exp.Quarter)

    def month(self) -> Expr:
        return self._part("month", exp.Month)

    def week(self) -> Expr:
        return self._part("week", exp.Week)

    def day(self) -> Expr:
        return self._part("day", exp.Day)

    def weekday(self) -> Expr:
        """Monday is 1, Sunday 7."""
        return self._part("weekday", exp.DayOfWeekIso)

    def ordinal_day(self) -> Expr:
        return self._part("ordinal_day", exp.DayOfYear)

    def hour(self) -> Expr:
        return self._part("hour", exp.Hour)

    def minute(self) -> Expr:
        return self._part("minute", exp.Minute)

    def second(self) -> Expr:
        return self._part("second", exp.Second)

    def date(self) -> Expr:
        return self._expr._then("dt.date", lambda term: function(term, exp.cast(term.tree.copy(), "DATE"), "date"))

    def truncate(self, every: str) -> Expr:
        """The start of the second, minute, hour, day, week (Monday), month, quarter or year."""
        if every not in _UNITS:
            raise unlike(f"truncate({every!r}) is none of SQL's", f"write one of {', '.join(_UNITS)}")

        def cut(term: Term) -> Term:
            if term.kind.is_date and _UNITS[every] in _OF_DAYS:
                return term
            tree = exp.TimestampTrunc(this=term.tree.copy(), unit=exp.var(_UNITS[every]))
            return function(term, tree, term.kind.type)

        return self._expr._then("dt.truncate", cut)

    def month_start(self) -> Expr:
        return self.truncate("1mo")._then("dt.month_start", _of_date("month_start"))

    def month_end(self) -> Expr:
        def last(term: Term) -> Term:
            return function(_of_date("month_end")(term), exp.LastDay(this=term.tree.copy()), "date")

        return self._expr._then("dt.month_end", last)

    def offset_by(self, by: str) -> Expr:
        match = re.fullmatch(r"(-?\d+)(mo|[smhdwy])", by) if isinstance(by, str) else None
        if match is None:
            raise unlike(f"offset_by({by!r}) is none of SQL's", "write a number and s, m, h, d, w, mo or y, as '3d'")
        many, unit = int(match[1]), _OFFSETS[match[2]]

        def moved(term: Term) -> Term:
            if term.kind.is_date and unit in _OF_DAYS:
                raise unlike("A date has no hours", "cast it to datetime first")
            step = exp.Interval(this=exp.Literal.string(str(abs(many))), unit=exp.var(unit))
            tree = (exp.Add if many >= 0 else exp.Sub)(this=term.tree.copy(), expression=step)
            return function(term, tree, term.kind.type)

        return self._expr._then("dt.offset_by", moved)

    def total_days(self) -> Expr:
        """Of a difference of two dates: how many days it is."""

        def days(term: Term) -> Term:
            if term.kind.type != "span":
                raise unlike("total_days() is of a difference of dates", "write (col('a') - col('b')).dt.total_days()")
            return term.of(alone(term, "dt").tree, "whole")

        return self._expr._then("dt.total_days", days)

    def strftime(self, format: str) -> Expr:
        if not isinstance(format, str) or not _FORMAT.fullmatch(format):
            raise unlike("Dates are written by %Y %m %d %j %H %M %S alone", "leave other codes out, as in '%Y-%m'")
        text = exp.Literal.string(format)
        return self._expr._then(
            "dt.strftime", lambda term: function(term, exp.TimeToStr(this=term.tree.copy(), format=text.copy()), "text")
        )

    to_string = strftime


def _of_date(name: str) -> Callable[[Term], Term]:
    def check(term: Term) -> Term:
        if not term.kind.is_date:
            raise unlike(f"{name}() of a moment keeps its hours in polars", f"write .dt.date().dt.{name}()")
        return term

    return check
