"""Queries that people write, asked as they stand: how many are answered, how true, how far off, how fast.

    python -m bench.sql_workloads [--quick] [--check] [--scale 1] [--only NAME] [--json FILE]

TPC-H (bench.workloads.tpch: customers are units, orders and line items theirs through keys), a star schema of our own
and the shapes that documentation shows, each query word for word, with the adviser, at epsilon 1 and delta 1e-6.
`covered` is the share of numbers whose 95 % interval holds what the engine says without privacy, `off` the median of
their relative errors; rows are matched by their keys, and groups that were not shown are in neither. Times are on the
wall with two threads, from the files to the answer in Python, the engine without privacy and a release taking turns;
with limits given, these are the ones that an adviser chose before.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np

from sfumato import Budget, Curator, MemoryLedger, Private, public, sql
from sfumato.errors import SfumatoError
from sfumato.noise import Noise, SecureBits
from sfumato.query.above.above_rules import PublicOnlyError
from sfumato.query.advice import Advice
from sfumato.query.refusal import QueryError

from . import table
from .bars import Bar, bars_block, progress, times
from .coverage import Remembered
from .workloads.workload import THREADS, Workload, of_shapes, of_star, of_tpch

EPSILON, DELTA, ALPHA = 1.0, 1e-6, 0.05
BUDGET = Budget(epsilon=1.5, delta=1e-5)
COVERED, SHAPES, LIMITED, ADVISED, SLOWEST = 0.93, 0.95, 2.0, 3.0, 6.0


@dataclass
class Figures:
    """Of one query: why it was refused, or how true, how far off and how slow its answer is."""

    workload: str
    query: str
    refused: str = ""
    must_refuse: bool = False
    cells: int = 0
    covered: int = 0
    off: float | None = None
    open: int = 0  # numbers whose interval has no end on one side
    seconds: float | None = None
    limited: float | None = None  # release over raw, with limits given
    advised: float | None = None

    @property
    def right(self) -> bool:
        return bool(self.refused) == self.must_refuse


@dataclass(frozen=True)
class Effort:
    releases: int
    turns: int
    scale: float
    sales: int
    patients: int


FULL = Effort(releases=10, turns=3, scale=1, sales=1_000_000, patients=20_000)
QUICK = Effort(releases=2, turns=0, scale=0.1, sales=50_000, patients=3_000)


def measure(workload: Workload, name: str, effort: Effort) -> Figures:
    figures = Figures(workload.name, name, must_refuse=name in workload.refused)
    text = workload.queries[name]
    data = Private("data", workload.data, unit=workload.protects, schema=workload.schema, engine={"threads": THREADS})
    try:
        plan = sql(text, data, epsilon=EPSILON, delta=DELTA)
        data.compare(plan)
        answers = list(_answers(data, plan, effort.releases))
    except PublicOnlyError:
        return _of_public(figures, data, text, workload.raw(text))
    except SfumatoError as problem:
        figures.refused = str(problem).splitlines()[0]
        return figures
    try:
        truth = workload.raw(text)
    except duckdb.CatalogException:  # words of other databases, which DuckDB does not know
        return figures
    _hold(figures, [answer for answer, _ in answers], truth)
    if effort.turns:
        limits = _limits(answers[0][1])
        figures.advised, figures.seconds = _turns(workload, data, text, effort.turns)
        with suppress(QueryError):  # of sizes that nobody bounded, limits by rows do not tell the reach
            if limits is not None:
                figures.limited, _ = _turns(workload, data, text, effort.turns, limits=limits)
    return figures


def _of_public(figures: Figures, data: Private, text: str, truth: Any) -> Figures:
    """Rows of an answer without noise, for nothing: each is there or not."""
    rows = {tuple(map(_label, row.values())) for row in public(text, data).rows}
    figures.cells = truth.num_rows
    figures.covered = sum(tuple(map(_label, row.values())) in rows for row in truth.to_pylist())
    figures.off = 0.0 if figures.covered == figures.cells == len(rows) else 1.0
    return figures


def _answers(data: Private, plan: Any, many: int) -> Iterator[tuple[Any, Any]]:
    """What is released, again and again; the engine is asked each statement once."""
    opened = plan.opens._open(data._tables)
    try:
        connection, noise = Remembered(opened), Noise(SecureBits())
        for _ in range(many):
            raw = plan._run(connection, SimpleNamespace(noise=noise))
            yield plan.finish(raw), raw
    finally:
        opened.close()


def _limits(raw: Any) -> Any:
    advice = raw.get("limits") if isinstance(raw, dict) else None
    return None if advice is None else Advice.read(advice).limits


def _hold(figures: Figures, answers: list[Any], truth: Any) -> None:
    """Every number beside what the engine says."""
    errors: list[float] = []
    for answer in answers:
        names, numbers = list(answer.columns), set(answer.numbers)
        keys = [place for place, name in enumerate(names) if name not in numbers]
        columns = [column.to_pylist() for column in truth.columns]
        rows = {tuple(_label(columns[place][row]) for place in keys): row for row in range(truth.num_rows)}
        labels = list(zip(*([_label(cell) for cell in answer[names[place]]] for place in keys), strict=True))
        for place, name in enumerate(names):
            if name not in numbers:
                continue
            intervals = answer.interval(name, ALPHA)
            for row, (value, interval) in enumerate(zip(answer[name], intervals, strict=True)):
                at = rows.get(labels[row] if keys else ())
                if at is None or isinstance(value, list) or value is None or columns[place][at] is None:
                    continue
                true, (low, high) = float(columns[place][at]), interval
                slack = 1e-9 * abs(true)
                figures.cells += 1
                figures.covered += (low is None or low - slack <= true) and (high is None or true <= high + slack)
                figures.open += low is None or high is None or not np.isfinite(low) or not np.isfinite(high)
                errors.append(abs(float(value) - true) / abs(true) if true else np.inf * (value != 0))
    if errors:
        figures.off = float(np.median(np.nan_to_num(errors, nan=0.0)))


def _label(cell: Any) -> str:
    """A key as both sides write it: 10.0 is 10, and a day the moment that it begins."""
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        cell = datetime.datetime.combine(cell, datetime.time())
    if isinstance(cell, decimal.Decimal):
        cell = float(cell)
    return f"{cell:g}" if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def _turns(workload: Workload, data: Private, text: str, many: int, **options: Any) -> tuple[float, float]:
    """The median ratio of a release to the raw query, and the seconds of the latter; one turn does not count."""

    def release() -> None:
        plan = sql(text, data, epsilon=EPSILON, delta=DELTA, **options)
        len(Curator(data, MemoryLedger({"data": BUDGET})).release(plan).value)

    pairs = []
    for number in range(many + 1):
        work = (release, lambda: workload.raw(text))
        took = dict(_timed(each) for each in (work if number % 2 else reversed(work)))
        pairs.append((took[release], took[work[1]]))
    return (
        statistics.median(mine / raw for mine, raw in pairs[1:]),
        statistics.median(raw for _, raw in pairs[1:]),
    )


def _timed(work: Callable[[], object]) -> tuple[Callable[[], object], float]:
    start = time.perf_counter()
    work()
    return work, time.perf_counter() - start


def bars(rows: list[Figures]) -> Iterator[Bar]:
    for name in dict.fromkeys(row.workload for row in rows):
        own = [row for row in rows if row.workload == name]
        right, least = sum(row.right for row in own), SHAPES if name == "shapes" else 1.0
        wanted = "as written" if name == "shapes" else "answered as written, or refused as they list units"
        yield Bar(f"{name}: {least:.0%} {wanted}", f"{right} of {len(own)}", right >= least * len(own))
    cells = sum(row.cells for row in rows)
    covered = sum(row.covered for row in rows) / cells if cells else 0.0
    yield Bar(f"numbers covered ≥ {COVERED}", f"{covered:.3f} of {cells}", covered >= COVERED)
    timed = [row for row in rows if row.advised is not None and row.workload.startswith("TPC-H")]  # large enough
    for what, most in (("limited", LIMITED), ("advised", ADVISED)):
        ratios = [getattr(row, what) for row in timed if getattr(row, what) is not None]
        middle = statistics.median(ratios) if ratios else None
        spoken = "limits given" if what == "limited" else "the adviser"
        if middle is not None:
            yield Bar(f"TPC-H: release / raw with {spoken}, median ≤ {most}", times(middle), middle <= most)
            yield Bar(
                f"TPC-H: release / raw with {spoken}, none above {SLOWEST}", times(max(ratios)), max(ratios) <= SLOWEST
            )


def report(rows: list[Figures]) -> str:
    heads = ("workload", "query", "answered", "numbers", "covered", "open", "off", "raw", "limits", "adviser")
    lines = [heads]
    for row in rows:
        answered = "refused" if row.refused else "yes"
        lines.append(
            (
                row.workload, row.query, answered + ("" if row.right else " !"), table.count(row.cells),
                f"{row.covered / row.cells:.3f}" if row.cells else "–", table.count(row.open),
                "–" if row.off is None else f"{100 * row.off:.2g} %",
                "–" if row.seconds is None else table.duration(row.seconds), times(row.limited), times(row.advised),
            )
        )  # fmt: skip
    refusals = [f"  {row.workload} {row.query}: {row.refused}" for row in rows if row.refused]
    offs = [row.off for row in rows if row.off is not None]
    middle = f"\nmedian of the errors: {100 * statistics.median(offs):.2g} %" if offs else ""
    return table.aligned(lines, words=3) + middle + "\n\nrefused:\n" + "\n".join(refusals)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sql_workloads", description="Queries as people write them.")
    parser.add_argument("--quick", action="store_true", help="little data, two releases each, no times; under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--scale", type=float, help="of TPC-H")
    parser.add_argument("--only", help="one workload, or one query of one: star, tpch/Q1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    make: dict[str, Callable[[], Workload]] = {
        "shapes": lambda: of_shapes(effort.patients),
        "star": lambda: of_star(effort.sales),
        "tpch": lambda: of_tpch(options.scale or effort.scale),
    }
    workload, _, query = (options.only or "").partition("/")
    rows: list[Figures] = []
    for name, build in make.items():
        if workload in ("", name):
            asked = build()
            for one in asked.queries:
                if query in ("", one):
                    progress(f"{asked.name}: {one}" + " " * 30)
                    rows.append(measure(asked, one, effort))
    print(report(rows))
    found = list(bars(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
