"""Promises that a benchmark holds its figures against."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from . import table


@dataclass(frozen=True)
class Bar:
    """A promise, and what came of it."""

    promise: str
    found: str
    kept: bool


def bars_block(found: list[Bar]) -> str:
    rows = [("", "bar", "found"), *(("PASS" if bar.kept else "MISS", bar.promise, bar.found) for bar in found)]
    missed = sum(not bar.kept for bar in found)
    verdict = f"{missed} of {len(found)} bars missed" if missed else f"all {len(found)} bars kept"
    return f"Bars\n{table.aligned(rows, words=2)}\n  {verdict}"


def times(value: float | None) -> str:
    return "–" if value is None else f"{table.figure(value)}×"


def progress(line: str) -> None:
    """For a person who waits; a log has no use for it."""
    if sys.stderr.isatty():
        print(f"\r{line}", end="\r", file=sys.stderr, flush=True)
