"""Drawings of a report, as SVG text: error bars, a budget's bar, and a budget over time. Colours are the page's own."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

_BAR, _HIGH = 132.0, 18.0  # an error bar's drawing
_WIDE, _TALL = 720.0, 250.0  # the plot
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 14.0, 16.0, 30.0


def error_bars(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """One drawing for each cell of a column, all on one scale; "" where there is nothing to draw."""
    spans = [_span(cell) for cell in cells]
    ends = [end for span in spans if span is not None for end in span if end is not None]
    if not ends or min(ends) == max(ends):
        return [""] * len(cells)
    low, high = min(ends), max(ends)
    if low > 0 and low < 0.5 * high:
        low = 0.0  # most columns are counts: a common zero lets lengths be compared
    if high < 0 and high > 0.5 * low:
        high = 0.0
    return [
        "" if span is None else _error_bar(span, low, high, bool(cell.get("hidden")))
        for span, cell in zip(spans, cells, strict=True)
    ]


def _span(cell: Mapping[str, Any]) -> tuple[float | None, float, float | None] | None:
    value = _position(cell.get("value"))
    low, high = _position(cell.get("low")), _position(cell.get("high"))
    if value is None or not cell.get("error"):
        return None
    return low, value, high


def _position(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(date.fromisoformat(value).toordinal()) if len(value) == 10 else _seconds(value)
    except ValueError:
        return None


def _seconds(value: str) -> float:
    return datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()


def _error_bar(span: tuple[float | None, float, float | None], low: float, high: float, hidden: bool) -> str:
    size = max(abs(low), abs(high))  # so that no difference overflows
    room = (_BAR - 12) / (high / size - low / size)

    def x(value: float) -> float:
        return 6 + room * (min(max(value, low), high) / size - low / size)

    first, value, last = span
    left, right, middle = x(low if first is None else first), x(high if last is None else last), _HIGH / 2
    parts = []
    if low <= 0 <= high:
        start, wide = min(x(0), x(value)), abs(x(value) - x(0))
        parts.append(f'<rect class="size" x="{start:.1f}" y="{middle - 5:g}" width="{wide:.1f}" height="10"/>')
        parts.append(f'<line class="zero" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="1" y2="{_HIGH - 1:g}"/>')
    parts.append(f'<line class="span" x1="{left:.1f}" x2="{right:.1f}" y1="{middle:g}" y2="{middle:g}"/>')
    for end, at in ((first, left), (last, right)):
        if end is not None:
            parts.append(f'<line class="span" x1="{at:.1f}" x2="{at:.1f}" y1="{middle - 4:g}" y2="{middle + 4:g}"/>')
    parts.append(f'<circle class="{"dot hollow" if hidden else "dot"}" cx="{x(value):.1f}" cy="{middle:g}" r="2.4"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR:g} {_HIGH:g}" width="{_BAR:g}" height="{_HIGH:g}" role="img" '
        f'aria-label="error bar">{"".join(parts)}</svg>'
    )


def meter(before: float | None, after: float | None) -> str:
    """A limit as a bar: what was spent before, what this took, what is left. None where that is not known."""
    if after is None and before is None:
        return ""
    was = min(max(before if before is not None else after or 0.0, 0.0), 1.0)
    now = min(max(after if after is not None else was, was), 1.0)
    label = f"{100 * now:.3g} % of the limit is spent"
    return (
        f'<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<rect class="left" x="0" y="0" width="100" height="6" rx="1.2"/>'
        f'<rect class="was" x="0" y="0" width="{100 * was:.2f}" height="6"/>'
        f'<rect class="this" x="{100 * was:.2f}" y="0" width="{100 * (now - was):.2f}" height="6"/></svg>'
    )


def steps(lines: Mapping[str, Any], marks: Sequence[float] = ()) -> str:
    """A budget over time: a line of steps for each gauge, as a share of its limit, and the limit itself."""
    gauges: Sequence[Mapping[str, Any]] = lines["gauges"]
    every = [point[0] for gauge in gauges for point in gauge["points"]]
    if not every:
        return ""
    first, last = min(every), max(every)
    span = last - first or 1.0
    first, last = first - 0.04 * span, last + 0.04 * span
    wide, tall = _WIDE - _LEFT - _RIGHT, _TALL - _TOP - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + wide * (value - first) / (last - first)

    def y(share: float) -> float:
        return _TOP + tall * (1 - share / 1.05)

    parts = [
        f'<line class="grid" x1="{_LEFT:g}" x2="{_WIDE - _RIGHT:g}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
        f'<text class="tick" x="{_LEFT - 6:g}" y="{y(share) + 4:.1f}" text-anchor="end">{100 * share:.0f} %</text>'
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    parts += [
        f'<line class="mark" x1="{_LEFT:g}" x2="{_WIDE - _RIGHT:g}" y1="{y(mark):.1f}" y2="{y(mark):.1f}"/>'
        for mark in marks
        if 0 < mark < 1
    ]
    parts.append(f'<line class="limit" x1="{_LEFT:g}" x2="{_WIDE - _RIGHT:g}" y1="{y(1):.1f}" y2="{y(1):.1f}"/>')
    parts.append(f'<text class="tick" x="{_WIDE - _RIGHT:g}" y="{y(1) - 5:.1f}" text-anchor="end">the limit</text>')
    parts += _x_axis(lines["by"], first + 0.04 * span, last - 0.04 * span, x)
    parts += [_line(gauge, place, x, y, last) for place, gauge in enumerate(gauges)]
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDE:g} {_TALL:g}" role="img" aria-label="budget over time">'
        f"{''.join(parts)}</svg>"
    )


def _line(gauge: Mapping[str, Any], place: int, x: Any, y: Any, last: float) -> str:
    points = gauge["points"]
    path = [f"M{x(points[0][0]):.1f} {y(0):.1f}V{y(points[0][1]):.1f}"]
    path += [f"H{x(at):.1f}V{y(share):.1f}" for at, share in points[1:]]
    end = x(last) if gauge["open"] else x(points[-1][0])
    path.append(f"H{end:.1f}")
    colour = place % 6
    name = html.escape(gauge["currency"])
    drawn = f'<path class="gauge g{colour}" d="{"".join(path)}"><title>{name}</title></path>'
    if gauge["open"]:
        return drawn
    at = y(points[-1][1])
    cross = f"M{end - 4:.1f} {at - 4:.1f}l8 8m0 -8l-8 8"
    return drawn + f'<path class="gauge g{colour} closed" d="{cross}"><title>{name}: closed</title></path>'


def _x_axis(by: str, first: float, last: float, x: Any) -> list[str]:
    """Up to four labels below, none of them twice."""
    labels: dict[str, float] = {}
    for part in range(4):
        at = first + (last - first) * part / 3
        labels.setdefault(_label(by, at, last - first), at)
    return [
        f'<text class="tick" x="{x(at):.1f}" y="{_TALL - 9:g}" text-anchor="{_anchor(x(at))}">{text}</text>'
        for text, at in labels.items()
    ]


def _anchor(at: float) -> str:
    return "start" if at < _LEFT + 45 else "end" if at > _WIDE - _RIGHT - 45 else "middle"


def _label(by: str, at: float, span: float) -> str:
    if by == "entry":
        return f"entry {at:.0f}"
    time = datetime.fromtimestamp(at, UTC)
    if span > 3 * 86400:
        return f"{time:%Y-%m-%d}"
    return f"{time:%m-%d %H:%M}" if span > 3600 else f"{time:%H:%M:%S}"
