"""Dates and moments without time zones, in the years 1 to 9999."""

from __future__ import annotations

from .words import Word, edge

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
PARTS = (*UNITS, "DOW", "ISODOW", "DOY", "EPOCH")

WORDS = (
    Word(
        "part_of_date", "a part by name and a date or moment", "an integer, or a DOUBLE for EPOCH",
        "the part; weeks as in ISO 8601, DOW from 0 on Sunday, ISODOW from 1 on Monday",
        (
            edge(
                "CAST(extract(WEEK FROM {0}) AS BIGINT)", "DATE", "BIGINT",
                ("2024-12-30", 1), ("2021-01-03", 53), (None, None),
            ),
            edge("CAST(extract(DOW FROM {0}) AS BIGINT)", "DATE", "BIGINT", ("2024-06-02", 0), ("2024-06-01", 6)),
            edge("CAST(extract(ISODOW FROM {0}) AS BIGINT)", "DATE", "BIGINT", ("2024-06-02", 7)),
            edge("CAST(extract(DOY FROM {0}) AS BIGINT)", "DATE", "BIGINT", ("2024-12-31", 366), ("0001-01-01", 1)),
            edge("CAST(extract(YEAR FROM {0}) AS BIGINT)", "DATE", "BIGINT", ("9999-12-31", 9999), ("0001-01-01", 1)),
            edge(
                "CAST(extract(EPOCH FROM {0}) AS DOUBLE)", "TIMESTAMP", "DOUBLE",
                ("1970-01-01 00:00:00.5", 0.5), ("1969-12-31 23:59:59", -1.0),
            ),
        ),
        "Extract",
    ),
    Word(
        "start_of", "a unit by name and a date or moment", "a date or moment",
        "the first moment of the year, quarter, month, week (from Monday), day, hour, minute or second",
        (
            edge(
                "CAST(CAST(date_trunc('WEEK', {0}) AS DATE) AS VARCHAR)", "DATE", "VARCHAR",
                ("2024-06-02", "2024-05-27"), ("2024-05-27", "2024-05-27"), (None, None),
            ),
            edge(
                "CAST(CAST(date_trunc('QUARTER', {0}) AS DATE) AS VARCHAR)", "DATE", "VARCHAR",
                ("2024-06-30", "2024-04-01"), ("0001-02-01", "0001-01-01"),
            ),
        ),
        "TimestampTrunc",
    ),
    Word(
        "boundaries_between", "a unit as a constant text, and two moments or dates", "BIGINT",
        "how many beginnings of the unit lie after the first, up to the second; negative where the second is earlier",
        (
            edge(
                "boundaries_between('day', {0}, {1})", "DATE DATE", "BIGINT",
                ("2024-02-28", "2024-03-01", 2), ("2024-03-01", "2024-02-28", -2),
                ("0001-01-01", "9999-12-31", 3652058),
                (None, "2024-01-01", None),
            ),
            edge(
                "boundaries_between('hour', {0}, {1})", "TIMESTAMP TIMESTAMP", "BIGINT",
                ("2024-01-01 00:59:59", "2024-01-01 01:00:00", 1), ("2024-01-01 01:00:00", "2024-01-01 01:59:59", 0),
            ),
            edge(
                "boundaries_between('month', {0}, {1})", "DATE DATE", "BIGINT",
                ("2024-01-31", "2024-02-01", 1), ("2024-01-01", "2024-01-31", 0),
            ),
        ),
        least=3, most=3,
    ),
    Word(
        "last_day", "a date or moment", "a date", "the last day of its month",
        (
            edge(
                "CAST(CAST(last_day({0}) AS DATE) AS VARCHAR)", "DATE", "VARCHAR",
                ("2024-02-01", "2024-02-29"), ("2023-02-28", "2023-02-28"), ("9999-12-01", "9999-12-31"), (None, None),
            ),
        ),
        "LastDay",
    ),
    Word(
        "month_name", "a date or moment", "VARCHAR", "January to December, in English",
        (edge("month_name({0})", "DATE", "VARCHAR", ("2024-09-01", "September"), (None, None)),),
    ),
    Word(
        "day_name", "a date or moment", "VARCHAR", "Monday to Sunday, in English",
        (edge("day_name({0})", "DATE", "VARCHAR", ("2024-06-02", "Sunday"), (None, None)),),
    ),
    Word(
        "interval", "a constant number and a unit by name", "an interval",
        "so many units, to be added to a date or moment; the 31st moved to a shorter month is its last day",
        (
            edge(
                "CAST(CAST({0} + INTERVAL '1' MONTH AS DATE) AS VARCHAR)", "DATE", "VARCHAR",
                ("2024-01-31", "2024-02-29"), ("2023-12-31", "2024-01-31"), (None, None),
            ),
            edge(
                "CAST({0} - INTERVAL '-1' SECOND AS VARCHAR)", "TIMESTAMP", "VARCHAR",
                ("2023-12-31 23:59:59", "2024-01-01 00:00:00"),
            ),
        ),
        "Interval",
    ),
)  # fmt: skip
