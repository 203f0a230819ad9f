"""A released answer as tables whose numbers carry their error bars: from the stored answer and its plan alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

from . import words

MOST = 200  # rows of a table that a report shows
MOST_TABLES = 20
ALPHA = 0.05
_LARGEST = 10**300

Cell = dict[str, Any]


def tables(value: Any, error: Any, title: str = "") -> list[dict[str, Any]]:
    """The tables of a finished answer: one, or one for each part of a list of queries."""
    return list(itertools.islice(_tables(value, error, title), MOST_TABLES))


def _tables(value: Any, error: Any, title: str) -> Iterator[dict[str, Any]]:
    if _is_table(value):
        yield _of_columns(value, title)
    elif isinstance(value, Mapping) and any(map(_is_table, value.values())):
        for name, part in value.items():
            yield from _tables(part, error.get(name) if isinstance(error, Mapping) else None, _inner(title, str(name)))
    else:
        yield _of_numbers(value, error, title)


def _is_table(value: Any) -> bool:
    """An answer to SQL knows its own columns and intervals."""
    return hasattr(value, "interval") and hasattr(value, "columns")


def _table(title: str, columns: list[dict[str, str]], rows: list[list[Cell]], total: int, notes: Any) -> dict[str, Any]:
    return {"title": title, "columns": columns, "rows": rows, "rows_in_all": total, "notes": list(notes)}


def _of_columns(answer: Any, title: str) -> dict[str, Any]:
    columns, cells = [], []
    for name in answer.columns:
        numbers = name in answer.numbers
        columns.append({"name": name, "kind": "number" if numbers else "key"})
        cells.append(_numbers(answer, name) if numbers else [_key(each) for each in answer[name][:MOST]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return _table(title, columns, rows, len(answer), answer.notes)


def _numbers(answer: Any, name: str) -> list[Cell]:
    values, doubts = answer[name][:MOST], answer.unreliable[name][:MOST]
    ends, widths = answer.interval(name, ALPHA)[:MOST], answer.half_width(name, ALPHA)[:MOST]
    return [_cell(*each) for each in zip(values, ends, widths, doubts, strict=True)]


def _cell(value: Any, ends: Any, width: Any, doubt: bool) -> Cell:
    if isinstance(value, list):
        items = [_cell(*each, doubt) for each in zip(value, ends, width, strict=True)]
        return _number("[" + ", ".join(item["text"] for item in items) + "]", None, None, None, "", doubt) | {
            "items": items
        }
    low, high = ends
    return _number(words.number(value, width), value, low, high, words.bar(width, value), doubt)


def _number(text: str, value: Any, low: Any, high: Any, error: str, doubt: bool) -> Cell:
    return {
        "text": text, "value": _json(value), "low": _json(low), "high": _json(high), "error": error, "hidden": doubt
    }  # fmt: skip


def _key(value: Any) -> Cell:
    return {"text": words.number(value), "value": _json(value)}


def _of_numbers(value: Any, error: Any, title: str) -> dict[str, Any]:
    leaves = _leaves("", value, error)
    rows = [[_key(name), _leaf(item, width)] for name, item, width in itertools.islice(leaves, MOST)]
    total = len(rows) + sum(1 for _ in leaves)
    if total == 1 and not rows[0][0]["text"]:
        return _table(title, [{"name": "value", "kind": "number"}], [[rows[0][1]]], 1, ())
    return _table(title, [{"name": "", "kind": "key"}, {"name": "value", "kind": "number"}], rows, total, ())


def _leaf(value: Any, width: Any) -> Cell:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if width is None or not isinstance(width, int | float):
        return _number(words.number(value), value, None, None, "", False)
    if not plain:  # a selection: what was chosen, and how good it is at least
        return _number(
            words.number(value), value, None, None, f"scores within {words.number(width)} of the best", False
        )
    ends = (value - width, value + width)
    return _number(words.number(value, width), value, *ends, words.bar(width, value), False)


def _leaves(name: str, value: Any, error: Any) -> Iterator[tuple[str, Any, Any]]:
    """(name, value, half-width) of everything in an answer, however it is nested."""
    value, error = _listed(value), _listed(error)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(_inner(name, str(key)), item, error.get(key) if isinstance(error, Mapping) else None)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            known = isinstance(error, list | tuple) and place < len(error)
            yield from _leaves(f"{name} [{place}]".strip(), item, error[place] if known else None)
    else:
        yield name, value, error


def _listed(value: Any) -> Any:
    """Arrays as lists, their numbers as Python's, and whole numbers that no float holds as texts."""
    plain = value.tolist() if hasattr(value, "tolist") else value
    return str(plain) if isinstance(plain, int) and abs(plain) > _LARGEST else plain


def _inner(outer: str, name: str) -> str:
    return f"{outer} / {name}" if outer else name


def _json(value: Any) -> Any:
    """A number, a text or nothing: an end that is open is nothing."""
    value = _listed(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
