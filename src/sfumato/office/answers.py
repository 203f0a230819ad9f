"""An answer on its way out: as a table of columns and rows with all that is known of each number, and as a file.

The answer to SQL is a table by itself. Any other release is one of three columns: name, value, error.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

from ..plain_text import seen_json
from ..query.released.answer import Answer
from ..release import Figure, Release
from .documents import Column, Expected, Json, Number

FORMATS = ("csv", "parquet", "json")
NAME, VALUE = "name", "value"


def columns_of(release: Release, alpha: float) -> list[Column]:
    answer = release.value
    if not isinstance(answer, Answer):
        named = [Column(name=NAME, kind="key")] if _named(release.figures(alpha)) else []
        return [*named, Column(name=VALUE, kind="number", exact=True)]
    exact = answer.exact
    return [
        Column(name=name, kind="number", exact=exact[name]) if name in exact else Column(name=name, kind="key")
        for name in answer.columns
    ]


def rows_of(release: Release, alpha: float) -> list[dict[str, Number | Json]]:
    """Each row by column: keys as they are, numbers with all that is known of them."""
    answer = release.value
    if not isinstance(answer, Answer):
        return _figure_rows(release.figures(alpha))
    rows: list[dict[str, Number | Json]] = [{} for _ in range(len(answer))]
    for name in answer.columns:
        values = answer[name]
        if name not in answer.numbers:
            for row, value in zip(rows, values, strict=True):
                row[name] = plain(value)
            continue
        parts = zip(
            values, answer.half_width(name, alpha), answer.interval(name, alpha), answer.std[name],
            answer.bias(name), answer.unreliable[name], strict=True,
        )  # fmt: skip
        for row, (value, width, ends, std, bias, doubt) in zip(rows, parts, strict=True):
            low, high = _ends(ends)
            row[name] = Number(
                value=plain(value), error=plain(width), low=low, high=high, std=plain(std), bias=plain(bias),
                reliable=not doubt,
            )  # fmt: skip
    return rows


def count_of(release: Release) -> int:
    """How many rows the table has."""
    answer = release.value
    return len(answer) if isinstance(answer, Answer) else len(release.figures())


def notes_of(release: Release) -> list[str]:
    """What was weighted, dropped and left out."""
    answer = release.value
    return list(answer.notes) if isinstance(answer, Answer) else []


def encoded(release: Release, format: str, alpha: float) -> bytes:
    """The file's bytes. Of SQL: after each column of numbers c also c_std, c_low, c_high and c_bias."""
    return table_bytes(release, release.value, format, alpha)


def table_bytes(shown: Release | Answer, answer: Any, format: str, alpha: float) -> bytes:
    """The same of an answer that nobody paid for, which shows itself."""
    if format == "csv":
        return str(shown.to_csv(alpha=alpha)).encode("utf-8")
    if format == "parquet":
        from pyarrow import BufferOutputStream, parquet

        sink = BufferOutputStream()
        parquet.write_table(shown.to_arrow(alpha), sink)
        return bytes(sink.getvalue().to_pybytes())
    if isinstance(answer, Answer):
        table = answer.table(alpha)
        rows = [dict(zip(table, map(plain, cells), strict=True)) for cells in zip(*table.values(), strict=True)]
    else:
        assert isinstance(shown, Release)
        rows = [{key: plain(cell) for key, cell in figure._asdict().items()} for figure in shown.figures(alpha)]
    return (seen_json(json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)) + "\n").encode("utf-8")


def expected_errors(release_errors: Mapping[str, float], whole: float | None) -> list[Expected]:
    """The half-widths that a plan knows before it runs: by name, or the one of its only answer."""
    if release_errors:
        return [Expected(column=name, error=width) for name, width in release_errors.items()]
    why = None if whole is not None else "it depends on the data; the answer will say it where there is one"
    return [Expected(column=VALUE, error=whole, why=why)]


def plain(value: Any) -> Json:
    """What JSON has a form for: dates are ISO text, and what is not finite is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return str(value)


def _named(figures: list[Figure]) -> bool:
    return len(figures) != 1 or bool(figures[0].name)


def _figure_rows(figures: list[Figure]) -> list[dict[str, Number | Json]]:
    named = _named(figures)
    return [({NAME: figure.name} if named else {}) | {VALUE: _number(figure)} for figure in figures]


def _number(figure: Figure) -> Number:
    width = figure.error if isinstance(figure.error, int | float) else None
    around = figure.is_number and width is not None
    low, high = (figure.value - width, figure.value + width) if around and width is not None else (None, None)
    return Number(
        value=plain(figure.value), error=plain(width), low=plain(low), high=plain(high), std=None, bias=None,
        reliable=True,
    )  # fmt: skip


def _ends(ends: Any) -> tuple[Json, Json]:
    if isinstance(ends, list):  # of a list of quantiles: one for each place
        pairs = [_ends(pair) for pair in ends]
        return [low for low, _ in pairs], [high for _, high in pairs]
    low, high = (None, None) if ends is None else ends
    return plain(low), plain(high)
