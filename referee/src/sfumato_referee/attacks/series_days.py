"""B5: a day of a series that is drawn twice, or a unit that counts on more days than it pays for.

A report that is opened every day is asked a thousand times: the same blocks, again under other keys and after a block
failed, after rows came late, and windows that overlap. Whatever is seen of a block must be one draw, or be paid anew.
And somebody who is there every day moves no more blocks than `most` says, whatever comes late.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.curator import Curator
from sfumato.errors import SfumatoError
from sfumato.ledger.memory import MemoryLedger
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.query import Limits, SqlSeries, series
from sfumato.schema import Schema, Table, category, date, key
from sfumato.units import Unit

from ..mutants.ledgers import ReusedParts
from .asking import before_noise
from .verdict import Verdict

DAYS, MOST = 6, 2
START = dt.date(2026, 1, 5)
QUERY = "SELECT ad, COUNT(*) AS n FROM t GROUP BY ad"
UNIT = Unit("user:u")
SCHEMA = Schema(
    {"t": Table({"u": key(), "ad": category(["x", "y"]), "day": date("2025-01-01", "2027-12-31")}, unit="u")}
)
Columns = dict[str, list[Any]]


def _rows(days: int) -> Columns:
    """Twenty people on a day each, and one who is there every day."""
    on = [*(number % days for number in range(20)), *range(days)]
    return {
        "u": [*(f"u{number}" for number in range(20)), *["daily"] * days],
        "ad": [("x", "y")[number % 2] for number in range(20 + days)],
        "day": [(START + dt.timedelta(days=number)).isoformat() for number in on],
    }


def attack(
    ledgers: Callable[[dict[str, Budget]], MemoryLedger] = MemoryLedger,
    *,
    parts: Callable[[SqlSeries], dict[str, Plan[Any, Any]]] = lambda plan: dict(plan.parts),
    repeats: int = 200,
) -> Verdict:
    columns = _rows(DAYS)
    ledger = ledgers({"d": Budget(epsilon=1)})
    curator = Curator(Private("d", columns, unit=UNIT, schema=SCHEMA, version="stream"), ledger)
    plan = series(
        QUERY, SCHEMA, unit=UNIT, column="day", start=START, days=DAYS, levels={"day": {"most": MOST}}, epsilon=1,
        limits=Limits(rows=1),
    )  # fmt: skip
    curator.prepay(plan, key="all")
    before = ledger.spent("d")
    seen: dict[str, set[bytes]] = {name: set() for name in plan.parts}
    first = {name: curator.release(part, key=name) for name, part in plan.parts.items()}
    for column, late in zip(columns.values(), ("late", "x", START.isoformat()), strict=True):
        column.extend([late] * 30)
    for number in range(repeats):
        name, part = list(plan.parts.items())[number % DAYS]
        for named in (None, name, f"{name} {number}"):
            with suppress(SfumatoError):  # refused is one way to draw nothing
                seen[name].add(record.canonical(curator.release(part, key=named).raw))
    twice = sum(len(raws | {record.canonical(first[name].raw)}) > 1 for name, raws in seen.items())
    twice *= ledger.spent("d") == before
    reading = plan.read({name: release.raw for name, release in first.items()})
    windows = {tuple(reading.window(START, START + dt.timedelta(days=3)).raw("n")) for _ in range(repeats)}
    moved = _moved_by_the_daily(parts(plan))
    words = (
        f"{twice} of {DAYS} days were drawn again for nothing, {len(windows)} answer(s) to one window; one person "
        f"moved {moved} days, and {MOST} are paid for."
    )
    broken = twice > 0 or len(windows) > 1 or moved > MOST
    return Verdict("B5", broken, words, {"twice": twice, "windows": len(windows), "moved": moved})


def _moved_by_the_daily(parts: dict[str, Plan[Any, Any]]) -> int:
    """In how many blocks the numbers before the noise are others without the person."""
    whole = _rows(DAYS)
    stays = [place for place, name in enumerate(whole["u"]) if name != "daily"]
    without = {name: [cells[place] for place in stays] for name, cells in whole.items()}
    count = 0
    for part in parts.values():
        one, other = (before_noise(part, {"t": rows}) for rows in (whole, without))
        count += not np.array_equal(one["numbers"]["rows"], other["numbers"]["rows"])
    return count


def control() -> Verdict:
    """Both bugs: a ledger that leaves parts in their list, and parts that count a unit on all of its days."""
    return attack(ReusedParts, parts=_unlimited, repeats=12)


def _unlimited(plan: SqlSeries) -> dict[str, Plan[Any, Any]]:
    whole = series(QUERY, SCHEMA, unit=UNIT, column="day", start=START, days=DAYS, epsilon=DAYS, limits=Limits(rows=1))
    return dict(whole.parts)
