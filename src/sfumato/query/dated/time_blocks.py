"""The blocks of time that a series releases: whole days, weeks (from Monday), months, quarters and years of a horizon.

Which blocks there are follows from the first day and the number of days alone: nothing here looks at a clock, or at
data.
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from ... import checks

LEVELS = ("day", "week", "month", "quarter", "year")
"""From fine to coarse. Engines truncate dates to them by the same words."""
MOST_DAYS = 1100
"""Three years: a longer series is several."""
_ONE = dt.timedelta(days=1)
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


class TimeBlock(NamedTuple):
    """The days from `first` on, up to and without `after`."""

    level: str
    first: dt.date
    after: dt.date

    @property
    def name(self) -> str:
        return f"{self.level} {self.first.isoformat()}"

    @property
    def days(self) -> int:
        return (self.after - self.first).days


def begins(day: dt.date, level: str) -> dt.date:
    """The first day of the block that a day is in."""
    if level == "day":
        return day
    if level == "week":
        return day - day.weekday() * _ONE
    months = _MONTHS[level]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


def follows(first: dt.date, level: str) -> dt.date:
    """The first day of the block after the one that begins so."""
    if level in ("day", "week"):
        return first + (1 if level == "day" else 7) * _ONE
    place = first.month - 1 + _MONTHS[level]
    return first.replace(year=first.year + place // 12, month=place % 12 + 1)


def blocks_within(start: dt.date, days: int, level: str) -> list[TimeBlock]:
    """The whole blocks of the horizon. What lies in no whole one is told by finer levels alone."""
    end = start + days * _ONE
    first, whole_blocks = begins(start, level), []
    if first < start:
        first = follows(first, level)
    while (after := follows(first, level)) <= end:
        whole_blocks.append(TimeBlock(level, first, after))
        first = after
    return whole_blocks


def in_order(blocks: list[TimeBlock]) -> list[TimeBlock]:
    """As they are over: blocks that end on one day from fine to coarse."""
    return sorted(blocks, key=lambda block: (block.after, LEVELS.index(block.level)))


def day_of(value: object, name: str) -> dt.date:
    """A day, given as a date or as its ISO text."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if isinstance(value, str):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    raise checks.refuse(name, value, "a day, such as '2026-01-01'")
