"""N1 to N4 through SQL, and on frames (frame_numbers.py): rounding, overflow, the order of rows, and cells that are no
numbers.

N1  Casacuberta et al. 2022: ones, then values that vanish beside their sum but not beside one less. A running sum of
    doubles moves by 1.00195 where bounds [0, 1] promise 1. All sources at the published size, which is 2^23 rows; other
    orders of rows on 1, 2 and 4 threads at that size, and many more of them at a sixteenth of it.
N2  neighbours around the ends of every integer type.
N3  one set of rows in many orders gives one set of integers.
N4  NaN, infinities, -0.0, the least float, NULL. A file whose statistics are finite (they leave NaN out) makes engines
    fold tests for NaN away, so that one person's infinite cell decides how everybody's NaN is read.
"""

from __future__ import annotations

import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.audit.made_up import MadeUp
from sfumato.audit.sql_losses import SLACK
from sfumato.errors import SfumatoError
from sfumato.query import Limits
from sfumato.schema import category, key, real, whole
from sfumato.sources import connect
from sfumato.sources.base import needed
from sfumato.sources.vocabulary import read
from sfumato.units import Unit

from ..mutants import queries
from . import frame_numbers
from .asking import KINDS, LIBRARY, Asks, before_noise, moved, one_table, source_of, stored
from .verdict import Verdict

ROW, USER = Unit(), Unit("user:u")
ORDERS, THREADS = 20, (1, 2, 4)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POISON = (math.nan, math.inf, -math.inf, -0.0, 5e-324, -5e-324, None, 1e308)
QUESTIONS = (
    "SELECT SUM(x) AS a FROM t",
    "SELECT COUNT(x) AS n, AVG(x) AS a, VARIANCE(x) AS v FROM t",
    "SELECT w, COUNT(*) AS n, SUM(x) AS a FROM t GROUP BY w",
    "SELECT SUM(x * x) AS a, SUM(1 / x) AS b, SUM(ln(x)) AS c FROM t WHERE x <> 3",
    "SELECT SUM(CASE WHEN x > 1 THEN x ELSE -x END) AS a FROM t",
    "SELECT HISTOGRAM(x, [-3, 0, 10]) AS h, MEDIAN(x) AS m FROM t",
    "SELECT COUNT(DISTINCT x) AS k, COUNT(*) FILTER (WHERE x > 0) AS n FROM t",
    "SELECT CORR(x, y) AS r FROM t",
)
_BOUNDS = {"SUM(x * x) AS a": {"a": (0, 100), "b": (-5, 5), "c": (-5, 5)}}


def rounding(
    asks: Asks = LIBRARY,
    *,
    half: int = 2**22,
    kinds: Sequence[str] = KINDS,
    orders: int = ORDERS,
    mixed: int = 2**18,
) -> Verdict:
    """N1. Tables of twice `half` rows, and `orders` of tables of at most twice `mixed`."""
    x, order = frame_numbers.ones_then_tiny(half), MadeUp(1)
    worst, seen = 0.0, defaultdict[tuple[str, int], set[float]](set)
    with tempfile.TemporaryDirectory() as folder:
        for unit in (ROW, USER):
            schema = one_table({"u": key(), "x": real(0, 1)}, unit.column)
            plan = asks("SELECT SUM(x) AS a FROM t", schema, unit=unit, epsilon=1, limits=Limits())

            def added(cells: Any, kind: str = "arrow", threads: int = 1, plan: Any = plan) -> float:
                return _sum(plan, stored({"u": np.arange(len(cells)), "x": cells}, kind, Path(folder)), threads)

            for kind in kinds:
                pair = [added(x[k:], kind) for k in (0, 1)]
                worst = max(worst, abs(pair[0] - pair[1]))
                seen[str(unit), half].add(pair[0])
            less = frame_numbers.ones_then_tiny(min(half, mixed))
            turns = [(x, threads) for threads in THREADS if orders and len(x) > len(less)]
            for cells, threads in [*turns, *((less, THREADS[turn % len(THREADS)]) for turn in range(orders))]:
                seen[str(unit), len(cells) // 2].add(added(cells[order.order(len(cells))], threads=threads))
    if asks is LIBRARY:
        share, sums = frame_numbers.rounding(half, len(THREADS) if orders else 0)
        worst = max(worst, share, float(_lost_by_the_engine()), float(_missed_decimals()))
        seen["frames", half] |= set(range(sums))
    values = max(map(len, seen.values()))
    text = f"One row of [0, 1] moves a sum by {worst:.9g}; orders, threads and sources give {values} value(s)."
    return Verdict("N1", worst > SLACK or values > 1, text, {"moved": worst, "values": values})


def _lost_by_the_engine() -> int:
    """By how much the engine's own exact sum is off, of integers whose sum no double holds."""
    cells = [2**62, 2**62, *[1] * 7]
    table = one_table({"x": whole(0, 2**62)}, None).table("t")
    with connect({"t": (table, source_of({"x": cells}))}) as session:  # type: ignore[attr-defined]
        answer = session.run(read("SELECT CAST(exact_sum(x) AS INT128) AS s FROM t"))
    return abs(int(answer["s"][0].as_py()) - sum(cells))


def _missed_decimals() -> int:
    """How many of nine rows are not counted that a condition on decimals holds for; of doubles none is."""
    cents = real(0, 1, decimals=2)
    schema = one_table({"u": key(), "x": cents, "y": cents}, "u")
    text = (
        "SELECT COUNT_IF(x + y = 0.3 AND (1 - x) * (1 - y) = 0.72 AND CAST(3 * x AS DECIMAL(5, 2)) = y + x) AS n FROM t"
    )
    plan = LIBRARY(text, schema, unit=USER, epsilon=1, limits=Limits())
    cells = {"u": list(range(9)), "x": [0.1] * 9, "y": [0.2] * 9}
    return 9 - round(_sum(plan, source_of(cells), 1))


def _sum(plan: Any, table: Any, threads: int) -> float:
    (numbers,) = before_noise(plan, {"t": table}, threads)["numbers"].values()
    return float(numbers[0])


def overflowing(asks: Asks = LIBRARY, *, kinds: Sequence[str] = INTEGERS) -> Verdict:
    """N2: whatever row is taken away, from a table far beyond the end of the type and from one just beyond it."""
    worst, failed, refused = 0.0, [], 0
    arrow = needed("pyarrow")
    for kind in kinds:
        low, top = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        far, near = [top] * 3 + [low] * 2 + [1], [top, 1]
        for column in (whole(max(low, -(2**63)), min(top, 2**63 - 1)), real(low, top), whole(-1, 1)):
            for unit in (ROW, USER):
                schema = one_table({"u": key(), "x": column}, unit.column)
                try:
                    plan = asks("SELECT SUM(x) AS a FROM t", schema, unit=unit, epsilon=1, limits=Limits())
                except SfumatoError:  # wider noise than can be drawn: nothing was read
                    refused += 1
                    continue
                try:
                    for cells, gone in ((far, (0, 3, 5)), (near, (0, 1))):
                        parts = [cells, *(cells[:i] + cells[i + 1 :] for i in gone)]
                        tables = [arrow.table({"u": range(len(part)), "x": arrow.array(part, kind)}) for part in parts]
                        answers = [before_noise(plan, {"t": table}) for table in tables]
                        worst = max(worst, *(_share(plan, answers[0], less, column) for less in answers[1:]))
                except Exception:
                    failed.append(f"{kind}, {unit}")
    if asks is LIBRARY:
        worst = max(worst, frame_numbers.overflowing(kinds))
    text = f"The worst row moves a sum by {worst:.9g} of its bound; {len(failed)} failed {failed[:1]}."
    figures = {"moved": worst, "failed": len(failed), "refused unread": refused}
    return Verdict("N2", bool(failed) or worst > SLACK, text, figures)


def _share(plan: Any, one: Any, other: Any, column: Any) -> float:
    """Of a planted bug, which has no design, the bound is the column's."""
    if hasattr(plan, "fixed"):
        return moved(plan, one, other)
    (here,), (there,) = (next(iter(each["numbers"].values())) for each in (one, other))
    return abs(here - there) / float(max(abs(Fraction(column.lower)), abs(Fraction(column.upper))))


def reordered(asks: Asks = LIBRARY, *, orders: int = 50) -> Verdict:
    """N3."""
    draw = MadeUp(3)
    x = np.concatenate(
        [draw.uniform(-150, 150, 400), [math.nan, math.inf, -math.inf, 0.1, 1e-300, -0.0, 0.0, 1e17, -1e17]]
    )
    u, w = np.arange(len(x)) % 23, np.array(["a", "b", "c"])[np.arange(len(x)) % 3]
    seen = set()
    for unit in (ROW, USER):
        schema = one_table({"u": key(), "x": real(-1e16, 1e16), "w": category(["a", "b", "c"])}, unit.column)
        text = "SELECT w, COUNT(*) AS n, SUM(x) AS a, SUM(x * x) AS b FROM t GROUP BY w ORDER BY w"
        plan = asks(text, schema, unit=unit, epsilon=1, limits=Limits(rows=3), bounds={"b": (0, 1e17)})
        for turn in range(orders):
            p = draw.order(len(x))
            answer = before_noise(plan, {"t": {"u": u[p], "x": x[p], "w": w[p]}}, THREADS[turn % len(THREADS)])
            seen.add((str(unit), str(answer["numbers"])))
    sets = max(len(seen), frame_numbers.reordered(x, orders) if asks is LIBRARY else 0)
    text = f"The same rows in {orders} orders gave {sets} sets of numbers for 2 units."
    return Verdict("N3", sets > 2, text, {"sets": sets})


def poisoned(
    asks: Asks = LIBRARY, *, kinds: Sequence[str] = ("arrow", "parquet", "csv", "duckdb"), every: int = 1
) -> Verdict:
    """N4. `every` so many of the pairs of tables is tried."""
    worst, failed, odd = 0.0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for plan, one, other in _pairs(asks, kinds, Path(folder), every):
            try:
                pair = [before_noise(plan, {"t": table}) for table in (one, other)]
            except Exception:
                failed += 1
                continue
            odd += sum(not math.isfinite(each) for found in pair for each in _numbers(found))
            worst = max(worst, moved(plan, *pair)) if hasattr(plan, "fixed") else worst
        worst = max(worst, *(_folded(asks, Path(folder), kind) for kind in kinds))
    if asks is LIBRARY:
        worst = max(worst, frame_numbers.poisoned(POISON))
    text = (
        f"A poisoned row moves {worst:.9g} of its bound at most; {failed} runs failed, {odd} numbers were not finite."
    )
    return Verdict("N4", worst > SLACK or failed + odd > 0, text, {"moved": worst, "failed": failed, "odd": odd})


def _numbers(answer: Any) -> Iterator[float]:
    yield from (each for column in answer["numbers"].values() for each in column)


def _pairs(asks: Asks, kinds: Sequence[str], folder: Path, every: int) -> Iterator[tuple[Any, Any, Any]]:
    arrow = needed("pyarrow")
    clean: dict[str, list[Any]] = {
        "u": [1, 1, 2, 3],
        "x": [1.0, 2.5, -1.0, 9.0],
        "y": [2.0, 2.0, 0.0, 1.0],
        "w": ["a", "b", "a", "b"],
    }
    for unit in (ROW, USER):
        columns = {"u": key(), "x": real(-3, 10), "y": real(0, 2), "w": category(["a", "b"])}
        schema = one_table(columns, unit.column)
        for place, text in enumerate(QUESTIONS):
            bounds = next((given for part, given in _BOUNDS.items() if part in text), {})
            plan = asks(text, schema, unit=unit, epsilon=1, limits=Limits(rows=2, values=2), bounds=bounds)
            for turn, poison in enumerate(POISON):
                if (place + turn) % every:
                    continue
                added = {"u": 4, "x": poison, "y": poison, "w": "a"}
                rows = {name: [*cells, added[name]] for name, cells in clean.items()}
                neighbours = [
                    {name: arrow.array(c, arrow.float64() if name in "xy" else None) for name, c in each.items()}
                    for each in (clean, rows)
                ]
                for inner in ("one", "other"):
                    (folder / inner).mkdir(exist_ok=True)
                kind = kinds[turn % len(kinds)]
                yield plan, stored(neighbours[0], kind, folder / "one"), stored(neighbours[1], kind, folder / "other")


def _folded(asks: Asks, folder: Path, kind: str) -> float:
    """Ninety people's NaN, and one infinite cell of somebody whom the query leaves out: by how many rows' worth of the
    bound does it move the others' sum? A file without it has finite statistics."""
    finite = [float(i % 7) for i in range(200)] + [math.nan] * 90
    schema = one_table({"u": key(), "x": real(0, 100)}, "u")
    plan = asks("SELECT SUM(x) AS a FROM t WHERE u <> 290", schema, unit=USER, epsilon=1, limits=Limits())
    totals = []
    for cells in (finite, [*finite, math.inf]):
        table = stored({"u": np.arange(len(cells)), "x": np.array(cells)}, kind, folder)
        (numbers,) = before_noise(plan, {"t": table})["numbers"].values()
        totals.append(numbers[0])
    gap = abs(totals[0] - totals[1]) / 100
    return gap if math.isfinite(gap) else math.inf


def folding() -> float:
    """The control of N4's file: the same by an engine's own test for NaN. More than 1 row's worth moves."""
    totals = []
    with tempfile.TemporaryDirectory() as folder:
        finite = [float(i % 7) for i in range(200)] + [math.nan] * 90
        for cells in (finite, [*finite, math.inf]):
            path = stored({"u": np.arange(len(cells)), "x": np.array(cells)}, "parquet", Path(folder))
            read = f"SELECT sum(CASE WHEN isnan(x) THEN NULL ELSE least(x, 100) END) FROM '{path}' WHERE u <> 290"
            totals.append(needed("duckdb").sql(read).fetchall()[0][0])
    return abs(totals[0] - totals[1]) / 100


CONTROL: Asks = queries.as_written
WRAPPING: Asks = queries.wrapping
