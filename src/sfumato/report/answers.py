"""A released answer as tables whose numbers carry their error bars: from the stored answer and its plan alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from . import biases, words

MOST = 200  # rows of a table that a report shows
MOST_TABLES = 20
ALPHA = 0.05
_LARGEST = 10**300

Cell = dict[str, Any]


def tables(value: Any, error: Any, title: str = "", most: int = MOST) -> list[dict[str, Any]]:
    """The tables of a finished answer: one, or one for each part of a list of queries. `bias` of each says what limits
    took from its columns, where the answer knows or does not know it; an answer that never limits says nothing."""
    return list(itertools.islice(_tables(value, error, title, most), MOST_TABLES))


def _tables(value: Any, error: Any, title: str, most: int) -> Iterator[dict[str, Any]]:
    if _is_table(value):
        yield _of_columns(value, title, most)
    elif isinstance(value, Mapping) and any(map(_is_table, value.values())):
        for name, part in value.items():
            inside = error.get(name) if isinstance(error, Mapping) else None
            yield from _tables(part, inside, _inner(title, str(name)), most)
    else:
        yield _of_numbers(value, error, title, most)


def _is_table(value: Any) -> bool:
    """An answer to SQL knows its own columns and intervals."""
    return hasattr(value, "interval") and hasattr(value, "columns")


def _table(
    title: str, columns: list[dict[str, str]], rows: list[list[Cell]], total: int, notes: Any = (), bias: Any = ()
) -> dict[str, Any]:
    return {
        "title": title, "columns": columns, "rows": rows, "rows_in_all": total, "notes": list(notes), "bias": list(bias)
    }  # fmt: skip


def _of_columns(answer: Any, title: str, most: int) -> dict[str, Any]:
    columns, cells, taken = [], [], []
    for name in answer.columns:
        numbers = name in answer.numbers
        columns.append({"name": name, "kind": "number" if numbers else "key"})
        if numbers:
            by_row = biases.taken(answer, name)
            cells.append(_numbers(answer, name, most, by_row))
            sides = _open_sides(answer.interval(name, ALPHA))
            taken += [] if by_row is None else [biases.sentence(_inner(title, name), by_row, sides)]
        else:
            cells.append([_key(each) for each in answer[name][:most]])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return _table(title, columns, rows, len(answer), map(words.without_advice, answer.notes), taken)


def _numbers(answer: Any, name: str, most: int, taken: list[biases.Taken | None] | None) -> list[Cell]:
    values, doubts = answer[name][:most], answer.unreliable[name][:most]
    ends, widths = answer.interval(name, ALPHA)[:most], answer.half_width(name, ALPHA)[:most]
    noise = answer.noise_width(name, ALPHA)[:most] if hasattr(answer, "noise_width") else widths
    cells = [_cell(*each) for each in zip(values, ends, widths, noise, doubts, strict=True)]
    if taken is None:
        return cells
    return [cell | {"bias": biases.as_json(each)} for cell, each in zip(cells, taken, strict=False)]


def _open_sides(intervals: Sequence[Any]) -> str:
    """What the truth may be, where an interval is open: larger, smaller, or both. Dates have no infinite end."""
    ends = [end for interval in intervals for end in (interval if isinstance(interval, list) else [interval]) if end]
    below = any(low is None or _infinite(low) for low, _ in ends)
    above = any(high is None or _infinite(high) for _, high in ends)
    return " or ".join(["larger"] * (above or not below) + ["smaller"] * below)


def _infinite(end: Any) -> bool:
    return isinstance(end, float) and math.isinf(end)


def _cell(value: Any, ends: Any, width: Any, noise: Any, doubt: bool) -> Cell:
    if isinstance(value, list):
        items = [_cell(*each, doubt) for each in zip(value, ends, width, noise, strict=True)]
        return _number("[" + ", ".join(item["text"] for item in items) + "]", None, None, None, "", doubt) | {
            "items": items
        }
    low, high = ends
    shown = words.number(value, noise if _infinite(width) else width)
    return _number(shown, value, low, high, _bar(width, noise, value, low, high), doubt)


def _bar(width: Any, noise: Any, value: Any, low: Any, high: Any) -> str:
    """How far off; of an interval that is open at one side, where the other one ends, and at both, the noise."""
    open_low, open_high = _infinite(low), _infinite(high)
    if open_high and not open_low and low is not None:
        return f"at least {words.number(low, _distance(value, low))}"
    if open_low and not open_high and high is not None:
        return f"at most {words.number(high, _distance(value, high))}"
    if _infinite(width) and not _infinite(noise):
        return f"noise {words.bar(noise, value)}"
    return words.bar(width, value)


def _distance(value: Any, end: Any) -> float | None:
    """To round by."""
    return abs(value - end) if isinstance(value, int | float) and isinstance(end, int | float) else None


def _number(text: str, value: Any, low: Any, high: Any, error: str, doubt: bool) -> Cell:
    return {
        "text": text, "value": _json(value), "low": _json(low), "high": _json(high), "error": error, "hidden": doubt
    }  # fmt: skip


def _key(value: Any) -> Cell:
    return {"text": words.number(value), "value": _json(value)}


def _of_numbers(value: Any, error: Any, title: str, most: int) -> dict[str, Any]:
    leaves = _leaves("", value, error)
    rows = [[_key(name), _leaf(item, width)] for name, item, width in itertools.islice(leaves, most)]
    total = len(rows) + sum(1 for _ in leaves)
    if total == 1 and not rows[0][0]["text"]:
        return _table(title, [{"name": "value", "kind": "number"}], [[rows[0][1]]], 1)
    return _table(title, [{"name": "", "kind": "key"}, {"name": "value", "kind": "number"}], rows, total)


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
            has_error = isinstance(error, list | tuple) and place < len(error)
            yield from _leaves(f"{name} [{place}]".strip(), item, error[place] if has_error else None)
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
