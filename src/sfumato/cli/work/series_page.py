"""The page of a series: what its blocks told in the windows that somebody wants to see, drawn and in a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from ...plan import price_text
from ...query.dated.series_plan import SqlSeries
from ...query.dated.told_windows import ToldWindows
from ...report import pages, proof, svg_windows
from ...report.redaction import Redaction
from ...report.svg_windows import Told

MOST_LINES = 6  # groups of one drawing: the largest
MOST_ROWS = 2000


def series_page(title: str, plan: SqlSeries, windows: ToldWindows) -> str:
    """HTML that stands alone. Everything in it follows from what was released."""
    table = windows.table()
    rows = list(zip(*table.values(), strict=True))
    heads = ["from", "to", *windows.keys, *(column.title for column in windows.columns)]
    return pages.page(
        {
            "report": "series/1",
            "title": title,
            "made": proof.origin(Redaction(())),
            "redacted": (),
            "price": price_text(plan),
            "prices": dict(plan.expected_work()),
            "hides": plan.hides,
            "query": plan.query,
            "first": plan.start,
            "days": plan.days,
            "drawings": [drawing(windows, place) for place in range(len(windows.columns))],
            "heads": heads,
            "rows": [_cells(windows, row) for row in rows[:MOST_ROWS]],
            "more": max(0, len(rows) - MOST_ROWS),
            "notes": windows.notes,
        },
        "",
    )


def drawing(windows: ToldWindows, place: int) -> Mapping[str, Any]:
    """One column over time: its largest groups, or only one window's bars, which the table shows better."""
    column = windows.columns[place]
    raw, shown = windows.raw(column.title), windows.shown(column.title)
    ends, table = windows.interval(column.title), windows.table()
    names = [table[name] for name in list(table)[2 : 2 + len(windows.keys)]]
    by_group: dict[str, list[Told]] = {}
    until: dict[str, dt.date] = {}
    days = zip(table["first_day"], table["last_day"], strict=True)
    for at, (first, last) in sorted(enumerate(days), key=lambda item: item[1]):
        name = ", ".join(str(cells[at]) for cells in names) or column.title
        points, (low, high) = by_group.setdefault(name, []), ends[at] or (0.0, 0.0)
        if first > until.get(name, first):
            points.append(Told(first, None, 0.0, 0.0))  # windows between were not released
        until[name] = last + dt.timedelta(days=1)
        hidden = shown[at] is None and raw[at] is not None
        points.append(Told(first + (last - first) / 2, raw[at], low, high, hidden))
    size = {name: sum(point.value or 0.0 for point in points) for name, points in by_group.items()}
    largest = sorted(by_group, key=lambda name: -size[name])[:MOST_LINES]
    lines = [(name, by_group[name]) for name in largest]
    several = len({point.at for _, points in lines for point in points}) > 1
    return {
        "title": column.title,
        "names": largest,
        "left_out": len(by_group) - len(largest),
        "svg": svg_windows.over_time(lines) if several else "",
    }


def _cells(windows: ToldWindows, row: Sequence[Any]) -> list[str]:
    """A row as people read it: from, to, groups, then each number with its half-width."""
    keys = 2 + len(windows.keys)
    shown = [cell.isoformat() if isinstance(cell, dt.date) else str(cell) for cell in row[:keys]]
    for place in range(len(windows.columns)):
        value, raw, low, high = row[keys + 4 * place : keys + 4 * place + 4]
        if raw is None:
            shown.append("not told")
        else:
            shown.append(f"{'hidden' if value is None else f'{value:,.0f}'} ± {(high - low) / 2:,.0f}")
    return shown
