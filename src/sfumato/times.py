"""Dates and moments as whole numbers: days, or microseconds, since 1970-01-01. A moment with a time zone is in UTC."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

_EPOCH = dt.datetime(1970, 1, 1)
_DAY = 86_400 * 10**6


def microseconds(value: Any) -> int | None:
    """Of a datetime, a date, a numpy datetime or ISO text; None for what is none of these."""
    if isinstance(value, np.datetime64):
        exact = int(value.astype("datetime64[us]").astype(np.int64))
        return None if np.isnat(value) else exact
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


def shown(number: int, type: str) -> str:
    """As ISO text."""
    return str(read(number, type))


def least_and_most(type: str) -> tuple[int, int]:
    """What years 1 to 9999 span."""
    first, last = dt.datetime(1, 1, 1) - _EPOCH, dt.datetime(9999, 12, 31) - _EPOCH
    return (first.days, last.days) if type == "date" else (first.days * _DAY, last.days * _DAY + _DAY - 1)
