"""Q6: one row that makes a query slow, or large: a text of a million characters, a number that says how often, a person
with very many rows in a join.

Each query is asked of a table with and without that row, under the same limits of memory and time: the same ending, the
same words, the same charge, the same shape. Then with next to no time: whatever is stopped says the fixed text of any
failure, and its charge stays. The time itself is measured and told, and judged by nobody: an engine takes longer over
more, docs/promise.md names the channel, and whoever serves outsiders answers at fixed times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.curator import Curator
from sfumato.errors import DataError, SfumatoError, guarded
from sfumato.ledger.memory import MemoryLedger
from sfumato.noise import Noise, SecureBits
from sfumato.private import Private
from sfumato.query import Limits, Sql
from sfumato.schema import category, key, real, whole
from sfumato.sources import connect, source
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, one_table
from .verdict import Verdict

USER = Unit("user:u")
SCHEMA = one_table(
    {"u": key(), "s": key(), "w": category(["a", "b"]), "n": whole(0, 10**9), "x": real(0, 9)}, "u"
)  # fmt: skip
LENGTH = 10**6
_ROWS = 200
_LIMITS: dict[str, Any] = {"threads": 1, "memory": 2**28}
_SOON = 0.0005  # seconds: no statement of ours is that fast

QUERIES = (
    "SELECT w, COUNT(*) AS n FROM t WHERE s LIKE '%a%b%c%d%' GROUP BY w",
    "SELECT COUNT(*) AS n FROM t WHERE regexp_matches(s, '(x+x+)+y')",
    "SELECT COUNT(*) AS n FROM t WHERE LENGTH(REPLACE(s, 'x', 'xxxxxxxxxx')) > 5",
    "SELECT COUNT(*) AS n FROM t WHERE LENGTH(repeat(s, 2000)) > 5",
    "SELECT COUNT(*) AS n FROM t, range(n)",
    "SELECT COUNT(*) AS n FROM t WHERE LENGTH(s || s || s || s) > 5",
    "SELECT COUNT(*) AS n FROM t a JOIN t b ON a.w = b.w JOIN t c ON b.w = c.w",
    "SELECT a.w, COUNT(*) AS n FROM t a JOIN t b ON a.u = b.u GROUP BY a.w",
    "SELECT w, SUM(x) AS total, COUNT(DISTINCT s) AS k FROM t GROUP BY w",
)


@dataclass(frozen=True)
class Ended:
    """A release as it looks from outside, and how long it took."""

    status: str
    words: str
    charged: str
    shape: str
    seconds: float = 0.0

    def same(self, other: Ended) -> bool:
        return (self.status, self.words, self.charged, self.shape) == (
            other.status,
            other.words,
            other.charged,
            other.shape,
        )


def tables(length: int) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Ordinary rows, and the same with one more: a text of that length, and the largest number."""
    plain: dict[str, list[Any]] = {
        "u": [f"u{i // 2}" for i in range(_ROWS)], "s": ["axbxcxd", "x"] * (_ROWS // 2),
        "w": ["a", "b"] * (_ROWS // 2), "n": [i % 7 for i in range(_ROWS)], "x": [1.0] * _ROWS,
    }  # fmt: skip
    last: dict[str, Any] = {"u": "u0", "s": "x" * length, "w": "a", "n": 10**9, "x": 9.0}
    return plain, {name: [*cells, last[name]] for name, cells in plain.items()}


def attack(asks: Asks = LIBRARY, *, length: int = LENGTH, seconds: float = 20.0) -> Verdict:
    """Each query is given so many seconds: far more than any of ours takes."""
    differ, talkative, refunded, stopped, ratios = [], [], [], 0, []
    plain, heavy = tables(length)
    limits = {**_LIMITS, "seconds": seconds}
    for text in QUERIES:
        one, other = (_asked(asks, text, table, limits) for table in (plain, heavy))
        if not one.same(other):
            differ.append(text)
        if one.status == "answered":
            ratios.append(other.seconds / max(one.seconds, 1e-9))
        short = _asked(asks, text, heavy, {**_LIMITS, "seconds": _SOON})
        if short.status == "answered" or short.status == one.status != DataError.__name__:
            continue  # fast enough, or refused before anything ran
        stopped += 1
        if short.words != DataError.TEXT:
            talkative.append(text)
        if short.charged != one.charged:
            refunded.append(text)
    words = (
        f"{len(differ)} of {len(QUERIES)} queries end otherwise with the row {differ[:1]}; of {stopped} that were "
        f"stopped {len(talkative)} say more than that they failed, and {len(refunded)} are charged otherwise."
    )
    figures: dict[str, float] = {
        "differ": len(differ),
        "stopped": stopped,
        "told": len(talkative),
        "refunded": len(refunded),
    }
    if ratios:
        figures |= {"time with the row, by without: median": statistics.median(ratios), "most": max(ratios)}
    return Verdict("Q6", bool(differ or talkative or refunded), words, figures)


def _asked(asks: Asks, text: str, table: Mapping[str, Any], engine: Mapping[str, Any]) -> Ended:
    """Ask and watch. A planted bug has no JSON, so it runs as a curator would run it."""
    ledger = MemoryLedger({"d": Budget(epsilon=10, delta=0.01)})
    private = Private("d", dict(table), unit=USER, schema=SCHEMA, engine=engine)
    status, words, shape, began = "answered", "", "", time.perf_counter()
    try:
        plan = asks(text, SCHEMA, unit=USER, epsilon=1, limits=Limits())
        if type(plan) is Sql:
            raw = Curator(private, ledger).release(plan).raw
        else:
            raw = guarded(lambda: _ran(plan, table, engine))
        shape = f"{raw['groups']} {raw['keys']} {sorted(raw['numbers'])}"
    except SfumatoError as error:
        status, words = type(error).__name__, str(error)
    return Ended(status, words, str(ledger.spent("d")), shape, time.perf_counter() - began)


def _ran(plan: Any, table: Mapping[str, Any], engine: Mapping[str, Any]) -> Any:
    session: Any = connect({"t": (SCHEMA.table("t"), source(dict(table)))}, **engine)
    try:
        return surface.run(plan, _Stopped(session), Noise(SecureBits()))
    finally:
        session.close()


class _Stopped:
    """The engine of a session, as the planted bug asks it: past the door, but not past the clock."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @property
    def engine(self) -> Any:
        return self

    def sql(self, text: str) -> Any:
        return _Timed(self._session, surface.engine_of(self._session).sql(text))


@dataclass(frozen=True)
class _Timed:
    session: Any
    bound: Any

    def to_arrow_table(self) -> Any:
        return surface.fetch(self.session, self.bound)


CONTROL: Asks = queries.as_written
