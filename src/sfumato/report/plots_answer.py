"""A plot of an answer: a point and an error bar for each number, and which of them noise hides."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import checks, display
from ..plain_text import printable
from ..release import Release
from .axes import axes

MOST = 30
"""Rows of a plot with names: of longer tables the largest numbers are drawn."""

_WIDEST = 40
_HIDDEN, _OPEN = "hidden by noise", "open: what limits cut is not known"
_STYLES: dict[str, dict[str, str]] = {
    "released": {"color": "C0"},
    _OPEN: {"color": "C0", "markerfacecolor": "none"},
    _HIDDEN: {"color": display.SHORT, "markerfacecolor": "none"},
}


class Point(NamedTuple):
    """One number, its interval, and how it is drawn."""

    label: Any
    value: Any
    low: Any
    high: Any
    style: str = "released"


def plot_answer(release: Any, column: str | None = None, *, alpha: float = 0.05, ax: Any = None) -> Any:
    """The numbers of a release with their error bars. What noise hides is hollow and red; hollow is also what is open,
    since nobody knows what limits cut: only an end that is known is drawn.

    release  a Release, or the answer to a query (`release.value`)
    column   of a query, the column of numbers to draw; of a sequence, the part: by default the first, or all

    Groups that are numbers or dates are drawn along an axis, others one below the other; of more than 30 of those the
    largest.
    """
    title, points = _points(release, column, alpha)
    drawn = [each for each in points if each.value is not None]
    notes = [f"{len(points) - len(drawn)} without a number left out"] if len(drawn) < len(points) else []
    along = _is_scale([each.label for each in drawn])
    if not along and len(drawn) > MOST:
        notes.insert(0, f"the {MOST} largest of {len(drawn)}")
        least = sorted((_size(each.value) for each in drawn), reverse=True)[MOST - 1]
        drawn = [each for each in drawn if _size(each.value) >= least][:MOST]
    if not drawn:
        raise checks.refuse("release", "a release without numbers", "a release that holds a number")
    ax = axes(ax)
    (_along if along else _below)(ax, drawn, title)
    remarks = [f"± at {100 * (1 - alpha):g} %", *notes]
    ax.set_title(f"{title} ({', '.join(remarks)})" if title else ", ".join(remarks), parse_math=False)
    if any(each.style != "released" for each in drawn):
        ax.legend()
    return ax


def _along(ax: Any, points: Sequence[Point], title: str) -> None:
    """Vertical error bars over an axis of numbers or dates."""
    for name, style in _STYLES.items():
        some = [each for each in points if each.style == name]
        if some:
            at = [each.label for each in some]
            ax.vlines(at, [each.low for each in some], [each.high for each in some], color=style["color"], alpha=0.6)
            size = 6 if len(points) <= MOST else 3
            ax.plot(at, [each.value for each in some], "o", label=name, markersize=size, **style)
    ax.set_ylabel(title, parse_math=False)


def _below(ax: Any, points: Sequence[Point], title: str) -> None:
    """Horizontal error bars, the first one on top."""
    for name, style in _STYLES.items():
        some = [each for each in points if each.style == name]
        if some:
            at = [place for place, each in enumerate(points) if each.style == name]
            ax.hlines(at, [each.low for each in some], [each.high for each in some], color=style["color"], alpha=0.6)
            ax.plot([each.value for each in some], at, "o", label=name, **style)
    ax.set_yticks(range(len(points)), [_short(each.label) for each in points], parse_math=False)
    ax.set_ylim(len(points) - 0.5, -0.5)
    ax.set_xlabel(title, parse_math=False)


def _points(release: Any, column: str | None, alpha: float) -> tuple[str, list[Point]]:
    value = release.value if isinstance(release, Release) else release
    if column is not None and isinstance(release, Release) and column in release.plan.parts:
        value = value[column]
        if not _is_table(value):
            inside = [each for each in release.figures(alpha) if each.name.split(" / ")[0] == column]
            return column, [_point(each) for each in inside]
        column = None
    if _is_table(value):
        return _of_table(value, column, alpha)
    if not isinstance(release, Release):
        raise checks.refuse("release", type(release).__name__, "a Release, or the answer to a query")
    if column is not None:
        parts = ", ".join(map(repr, release.plan.parts)) or "no column: this release has none"
        raise checks.refuse("column", column, parts)
    return "", [_point(each) for each in release.figures(alpha)]


def _is_table(value: Any) -> bool:
    return hasattr(value, "interval") and hasattr(value, "unreliable") and not isinstance(value, Mapping)


def _of_table(answer: Any, column: str | None, alpha: float) -> tuple[str, list[Point]]:
    keys = [name for name in answer.columns if name not in answer.numbers]
    if column is None:
        if not answer.numbers:
            raise checks.refuse("release", "a table of keys", "a table with a column of numbers")
        column = answer.numbers[0]
        if not keys and len(answer) == 1:  # one row of several numbers
            return "", [
                each._replace(label=name) for name in answer.numbers for each in _cells(answer, name, (), alpha)
            ]
    ends = answer.interval(column, alpha)  # also refuses a column that is none
    if any(isinstance(each, list) for each in ends):
        raise checks.refuse("column", column, "a column with one number in each row, not a list of them")
    return column, _cells(answer, column, keys, alpha)


def _cells(answer: Any, column: str, keys: Sequence[str], alpha: float) -> list[Point]:
    labels: list[Any] = list(zip(*(answer[key] for key in keys), strict=True)) if keys else [(column,)] * len(answer)
    labels = [each[0] if len(each) == 1 else ", ".join(map(str, each)) for each in labels]
    rows = zip(labels, answer[column], answer.interval(column, alpha), answer.unreliable[column], strict=True)
    return [_bounded(label, value, low, high, doubt=doubt) for label, value, (low, high), doubt in rows]


def _point(figure: Any) -> Point:
    if not figure.is_number or not math.isfinite(figure.value):
        return Point(figure.name, None, None, None)
    width = figure.error or 0.0
    return _bounded(figure.name or "value", figure.value, figure.value - width, figure.value + width)


def _bounded(label: Any, value: Any, low: Any, high: Any, *, doubt: bool = False) -> Point:
    """An end that is not known, or infinite, is not drawn."""
    if value is None:
        return Point(label, None, None, None)
    ends = [value if end is None or (isinstance(end, float) and math.isinf(end)) else end for end in (low, high)]
    return Point(label, value, ends[0], ends[1], _HIDDEN if doubt else _OPEN if ends != [low, high] else "released")


def _is_scale(labels: Sequence[Any]) -> bool:
    dates = all(isinstance(each, datetime.date) for each in labels)
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in labels)
    return len(labels) > 1 and (dates or numbers)


def _size(value: Any) -> float:
    """Of dates, the latest are the largest."""
    return abs(value) if isinstance(value, int | float) else float(value.toordinal())


def _short(label: Any) -> str:
    words = "NULL" if label is None else printable(label)
    return words if len(words) <= _WIDEST else words[: _WIDEST - 3] + "..."
