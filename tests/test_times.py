"""Dates and moments: bounds in the schema, cells in the rows, made-up ones."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from sfumato import Schema, Unit, record, times
from sfumato.errors import ArgumentError
from sfumato.noise import SeededBits
from sfumato.rows import Rows
from sfumato.schema import Column, date, moment

YEAR = date("2020-01-01", "2020-12-31")
LOW, HIGH = 18262, 18627


def read(column: Column, cells: Any) -> list[int | None]:
    rows = Rows.read(Schema.of(when=column).table(), {"when": cells}, Unit())
    series = rows["when"]
    return [value if valid else None for value, valid in zip(series.values.tolist(), series.valid, strict=True)]


def test_bounds_are_days_and_survive_json() -> None:
    assert (YEAR.lower, YEAR.upper) == (LOW, HIGH)
    assert "date in [2020-01-01, 2020-12-31]" in str(YEAR)
    both = Schema.of(d=YEAR, m=moment("2020-01-01", dt.datetime(2021, 1, 1, tzinfo=dt.UTC)))
    assert record.parse(record.canonical(both)) == both


@pytest.mark.parametrize("bound", [None, "soon", 5, "2019-13-01", float("nan"), "2021-01-01"])
def test_what_is_no_first_day_is_refused(bound: Any) -> None:
    with pytest.raises(ArgumentError, match="lower"):
        date(bound, "2020-12-31")


def test_every_cell_is_read_or_null() -> None:
    cells = [
        "2020-02-01",
        None,
        "x",
        dt.date(1900, 1, 1),
        10**30,
        np.datetime64("2020-03-03"),
        dt.datetime(2020, 1, 2, 23),
    ]
    assert read(YEAR, cells) == [18293, None, None, LOW, None, 18324, 18263]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ms", "us", "ns"])
def test_arrays_of_any_unit_clamp_and_never_wrap(unit: str) -> None:
    cells = np.array([2**62, -(2**62), "NaT"], dtype=object).astype(f"datetime64[{unit}]")
    assert read(YEAR, cells) == [HIGH, LOW, None]
    assert read(moment("2020-01-01", "2020-01-02"), cells)[2] is None


def test_a_moment_counts_in_utc() -> None:
    there = dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert times.microseconds(there) == times.microseconds("2019-12-31 23:00:00")
    assert times.shown(LOW, "date") == "2020-01-01"


def test_made_up_dates_lie_within_the_bounds() -> None:
    made = Schema.of(d=YEAR).table().make_up(200, SeededBits(1).words, awkward=False)["d"]
    assert (
        made.dtype == np.dtype("datetime64[D]") and (made.astype(int) >= LOW).all() and (made.astype(int) <= HIGH).all()
    )


def test_numbers_beyond_all_years_are_the_first_or_last_day() -> None:
    assert times.nearest(10**9, "date") == dt.date.max and times.nearest(-(10**9), "date") == dt.date.min
    assert times.nearest(10**30, "moment") == dt.datetime.max and times.nearest(0, "date") == times.read(0, "date")
