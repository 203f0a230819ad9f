"""How an account's budget went over time: a step for each release, gauge by gauge."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from .accounts.history import moment
from .accounts.releases import Released

MOST = 400  # steps of one gauge that are kept: a plot has no more columns


class OverTime:
    """Takes releases in any order; gives a line for each gauge, each point a share of the limit there was then."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._points: dict[str, list[tuple[int, str | None, float]]] = {}
        self._last: dict[int, tuple[str, ...]] = {}

    def take(self, row: Released) -> None:
        """One release. What a hold spent is known at its end, so it stands there."""
        gauges = row.after.get(self._account)
        if gauges is None:
            return
        at = row.settled if row.draws and row.settled else row.at
        self._last[row.number] = tuple(gauge.currency for gauge in gauges)
        for gauge in gauges:
            share = float(gauge.spent / gauge.limit) if gauge.limit else 1.0
            self._points.setdefault(gauge.currency, []).append((row.number, at, min(share, 1.0)))

    def lines(self) -> dict[str, Any]:
        """{"by": "time" or "entry", "gauges": [{"currency", "open", "points": [[x, share], ...]}]}

        x is seconds since 1970 where every clock rose, else the number of the entry.
        """
        for points in self._points.values():
            points.sort(key=lambda point: (moment(point[1]) or _NEVER, point[0]))
        by_time = bool(self._points) and all(_rises(points) for points in self._points.values())
        if not by_time:
            for points in self._points.values():
                points.sort()
        last = self._last[max(self._last)] if self._last else ()
        gauges = [
            {
                "currency": name,
                "open": name in last,
                "points": [[_x(point, by_time), point[2]] for point in _thinned(points)],
            }
            for name, points in self._points.items()
        ]
        return {"by": "time" if by_time else "entry", "gauges": gauges}


_NEVER = datetime.max.replace(tzinfo=UTC)


def _rises(points: list[tuple[int, str | None, float]]) -> bool:
    """Are all times known, and does what was spent never fall in their order? (A raised limit lowers shares: then the
    order of entries must be that of times.)"""
    if any(moment(at) is None for _, at, _ in points):
        return False
    falls = any(later[2] < earlier[2] for earlier, later in pairwise(points))
    return not falls or points == sorted(points)


def _x(point: tuple[int, str | None, float], by_time: bool) -> float:
    time = moment(point[1])
    return time.timestamp() if by_time and time is not None else float(point[0])


def _thinned(points: Iterable[tuple[int, str | None, float]]) -> list[tuple[int, str | None, float]]:
    """Every k-th, and the last."""
    listed = list(points)
    if len(listed) <= MOST:
        return listed
    step = -(-len(listed) // MOST)
    return [*listed[:-1:step], listed[-1]]
