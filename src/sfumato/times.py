"""Dates and moments as whole numbers: days, or microseconds, since 1970-01-01. A moment with a time zone is in UTC."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EPOCH = dt.datetime(1970, 1, 1)
_DAY = 86_400 * 10**6


def microseconds(value: Any) -> int | None:
    """Of a datetime, a date, a numpy datetime or ISO text; None for what is none of these."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(counted(np.array([value]), "moment")[0])
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip())
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        span = value - _EPOCH
        return (span.days * 86_400 + span.seconds) * 10**6 + span.microseconds
    return (value.toordinal() - _EPOCH.toordinal()) * _DAY if isinstance(value, dt.date) else None


def days(value: Any) -> int | None:
    """Whole days, of the same; a moment belongs to its day."""
    exact = microseconds(value)
    return None if exact is None else exact // _DAY


def read(number: int, type: str) -> dt.date:
    """The date, or the moment, that a number stands for."""
    moment = _EPOCH + (dt.timedelta(days=number) if type == "date" else dt.timedelta(microseconds=number))
    return moment.date() if type == "date" else moment


def nearest(number: int, type: str) -> dt.date:
    """The same; of a number beyond all years that there are, the first or the last of them."""
    first, last = (dt.date.min, dt.date.max) if type == "date" else (dt.datetime.min, dt.datetime.max)
    count = days if type == "date" else microseconds
    ends = count(first), count(last)
    assert ends[0] is not None and ends[1] is not None
    return read(min(max(number, ends[0]), ends[1]), type)


def shown(number: int, type: str) -> str:
    """As ISO text."""
    return str(read(number, type))


def least_and_most(type: str) -> tuple[int, int]:
    """What years 1 to 9999 span."""
    first, last = dt.datetime(1, 1, 1) - _EPOCH, dt.datetime(9999, 12, 31) - _EPOCH
    return (first.days, last.days) if type == "date" else (first.days * _DAY, last.days * _DAY + _DAY - 1)


_DIGITS = {"h": 0, "m": 0, "s": 0, "ms": 3, "us": 6, "ns": 9, "ps": 12, "fs": 15, "as": 18}
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}


@dataclass(frozen=True)
class Clock:
    """A time of day, as Arrow counts it. Its text raises where the number is none."""

    number: int
    unit: str

    def __str__(self) -> str:
        if not 0 <= self.number < 86_400 * 10 ** _DIGITS[self.unit]:
            raise ValueError("no time of day")
        return _clock(self.number, _DIGITS[self.unit])


def in_calendar(moments: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of numpy's moments lie in the years 1 to 9999; others, and NaT, have no name."""
    first, last = _ends(*np.datetime_data(moments.dtype))
    numbers = moments.view(np.int64)
    inside: NDArray[np.bool_] = (numbers >= first) & (numbers <= last) & ~np.isnat(moments)
    return inside


def counted(moments: NDArray[Any], type: str) -> NDArray[np.int64]:
    """Days or microseconds since 1970-01-01, rounded down, of numpy's moments; those beyond years 1 to 9999 count as
    its ends. Fine units are divided here: numpy's own way wraps around near its least number."""
    unit, many = np.datetime_data(moments.dtype)
    numbers = np.clip(moments.view(np.int64), *_ends(unit, many))
    if unit in ("us", "ns", "ps", "fs", "as") and many == 1:
        exact = numbers // 10 ** (_DIGITS[unit] - 6)
        return exact // _DAY if type == "date" else exact
    return numbers.view(moments.dtype).astype(f"datetime64[{'D' if type == 'date' else 'us'}]").astype(np.int64)


def _ends(unit: str, many: int) -> tuple[int, int]:
    """The first and last number of a unit within years 1 to 9999, as far as 64 bits hold them."""
    if unit in ("Y", "M"):
        months = {"Y": 1, "M": 12}[unit]
        first, after = (1 - 1970) * months, (10_000 - 1970) * months
    else:
        days, last = least_and_most("date")
        seconds = (days * 86_400, (last + 1) * 86_400)
        if unit in _SECONDS:
            first, after = (-(-end // _SECONDS[unit]) for end in seconds)
        else:
            first, after = (end * 10 ** _DIGITS[unit] for end in seconds)
    return max(-(-first // many), -(2**63) + 1), min((after - 1) // many, 2**63 - 1)


def written(value: Any) -> str | None:
    """The one text of a date, moment, time of day or duration, whoever holds it: "2026-01-01", "2026-01-01 08:00:00.5",
    "08:00:00", "-30:00:00"; a moment with a time zone is told in UTC. None for what is none of these, raises for what
    has no text. DuckDB writes them in the same way."""
    if isinstance(value, np.datetime64):
        return _of_numpy(value)
    if isinstance(value, np.timedelta64):
        unit, many = np.datetime_data(value.dtype)
        number = int(value.astype(np.int64)) * many * _SECONDS.get(unit, 1)  # months have no length: raises below
        return _span(number, 0 if unit in _SECONDS else _DIGITS[unit])
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        below = value.microsecond * 1000 + getattr(value, "nanosecond", 0)  # of pandas
        return f"{value.year:04}-{value:%m-%d %H:%M:%S}{_fraction(below, 9)}"
    if isinstance(value, dt.timedelta):
        whole = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
        return _span(whole * 1000 + getattr(value, "nanoseconds", 0), 9)
    if isinstance(value, dt.time) and value.tzinfo is None:
        return f"{value:%H:%M:%S}" + _fraction(value.microsecond, 6)
    return None


def _of_numpy(value: np.datetime64) -> str:
    moments = np.array([value])
    if not in_calendar(moments)[0]:
        raise ValueError("no moment of the calendar")
    unit, many = np.datetime_data(value.dtype)
    if unit in ("Y", "M", "W", "D"):
        return shown(int(counted(moments, "date")[0]), "date")
    seconds, below = divmod(int(moments.view(np.int64)[0]) * many * _SECONDS.get(unit, 1), 10 ** _DIGITS[unit])
    return str(_EPOCH + dt.timedelta(seconds=seconds)) + _fraction(below, _DIGITS[unit])


def _span(number: int, digits: int) -> str:
    return "-" * (number < 0) + _clock(abs(number), digits)


def _clock(number: int, digits: int) -> str:
    seconds, below = divmod(number, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + _fraction(below, digits)


def _fraction(below: int, digits: int) -> str:
    return f".{below:0{digits}}".rstrip("0") if below else ""
