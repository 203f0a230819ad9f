"""Numbers over time, as SVG text: a line for each group, and the band that noise leaves open around it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import NamedTuple

_WIDE, _TALL = 720.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 14.0, 14.0, 30.0
_LABELS = 5

Scale = Callable[[float], float]


class Told(NamedTuple):
    """One window's number: the middle of its days, the value (None: not told), and the ends of its interval.

    hidden  may it be noise alone, or is it below what is told?
    """

    at: date
    value: float | None
    low: float
    high: float
    hidden: bool = False


def over_time(lines: Sequence[tuple[str, Sequence[Told]]]) -> str:
    """A line for each name; a window that cannot be told breaks it. "" where there is nothing to draw."""
    drawn = [point for _, points in lines for point in points if point.value is not None]
    days = sorted({point.at.toordinal() for point in drawn})
    if not drawn:
        return ""
    ends = [end for point in drawn for end in (point.low, point.high)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    span, room = (high - low) or 1.0, (days[-1] - days[0]) or 1

    def x(day: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * ((day - days[0]) / room if len(days) > 1 else 0.5)

    def y(value: float) -> float:
        return _TOP + (_TALL - _TOP - _BOTTOM) * (high - value) / span

    parts = _grid(low, high, y) + _days(days, x)
    for place, (name, points) in enumerate(lines):
        parts += _line(name, place % 6, points, x, y)
    label = "numbers over time with what noise leaves open"
    return f'<svg class="plot" viewBox="0 0 {_WIDE:g} {_TALL:g}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _line(name: str, colour: int, points: Sequence[Told], x: Scale, y: Scale) -> list[str]:
    title = f"<title>{html.escape(name)}</title>"
    parts = []
    for run in _runs(points):
        at = [x(point.at.toordinal()) for point in run]
        values = [(place, y(point.value or 0.0)) for place, point in zip(at, run, strict=True)]
        upper = [(place, y(point.high)) for place, point in zip(at, run, strict=True)]
        lower = [(place, y(point.low)) for place, point in zip(at, run, strict=True)]
        parts.append(
            f'<polygon class="band b{colour}" points="{_listed([*upper, *reversed(lower)])}">{title}</polygon>'
        )
        parts.append(f'<polyline class="gauge g{colour}" points="{_listed(values)}">{title}</polyline>')
        parts += [
            f'<circle class="told g{colour}{" hollow" if point.hidden else ""}" cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>'
            for point, (a, b) in zip(run, values, strict=True)
        ]
    return parts


def _runs(points: Sequence[Told]) -> list[list[Told]]:
    """The windows that can be told, cut where one between them cannot."""
    runs: list[list[Told]] = [[]]
    for point in points:
        if point.value is not None:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _listed(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)


def _grid(low: float, high: float, y: Scale) -> list[str]:
    """Round numbers across the drawing."""
    step = _step((high - low) or 1.0)
    parts = []
    for place in range(math.ceil(low / step), math.floor(high / step) + 1):
        at, value = y(place * step), place * step
        parts += [
            f'<line class="grid" x1="{_LEFT:g}" x2="{_WIDE - _RIGHT:g}" y1="{at:.1f}" y2="{at:.1f}"/>',
            f'<text class="tick" x="{_LEFT - 6:g}" y="{at + 4:.1f}" text-anchor="end">{_short(value)}</text>',
        ]
    return parts


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, of which the span has three to six."""
    size = 10.0 ** math.floor(math.log10(span / 3))
    return max(size * times for times in (1, 2, 5) if size * times <= span / 3 or times == 1)


def _short(value: float) -> str:
    for least, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= least:
            return f"{value / least:,.4g} {letter}"
    return f"{value:,.0f}" if abs(value) >= 10 or value == 0 else f"{value:.2g}"


def _days(days: Sequence[int], x: Scale) -> list[str]:
    step = max(1, -(-len(days) // _LABELS))
    return [
        f'<text class="tick" x="{x(day):.1f}" y="{_TALL - 9:g}" text-anchor="{_anchor(x(day))}">'
        f"{date.fromordinal(day).isoformat()}</text>"
        for day in days[::step]
    ]


def _anchor(at: float) -> str:
    return "start" if at < _LEFT + 45 else "end" if at > _WIDE - _RIGHT - 45 else "middle"
