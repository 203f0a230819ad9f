"""Do intervals hold the truth? Releases of real workloads beside the true answers.

    python -m bench.coverage [--quick] [--check] [--data FOLDER] [--only NAME] [--json FILE]

Each question of bench.coverage_data is released many times with the adviser, at epsilon 0.5, 1 and 3 and delta 1e-6,
with exact noise; every number with its 95 % interval is compared with what the engine says without privacy: nothing
bounded, nothing weighted. `covered` is the share of numbers whose interval holds the truth. `wide` is the median width
of these intervals over that of an oracle's that knows what limits cut (noise alone, at the same limits). `error` is the
median distance to the truth, relative to it. A bar of coverage is missed where chance does not explain it: where
`covered` is below the bar by more than 2.33 standard errors, taken between releases (numbers of one release share what
is not known of the cut). What the engine answers is remembered by statement, so that a release
takes milliseconds. UCI Adult is read from FOLDER/adult/adult.data, where --data is given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from sfumato import sql
from sfumato.noise import Noise, SecureBits
from sfumato.query.advice import ADVICE
from sfumato.query.plan import Sql
from sfumato.query.raised import doubts
from sfumato.query.released.answer import Answer
from sfumato.sources import connect, source

from . import coverage_data, table
from .bars import Bar, bars_block, progress
from .coverage_data import Question, World

EPSILONS = (0.5, 1.0, 3.0)
DELTA, ALPHA = 1e-6, 0.05
COVERED, NARROW, WIDE, LITTLE, PRICE = 0.93, 1.3, 2.0, 0.01, 0.15
CHANCE = 2.33  # standard errors: one row in a hundred that just keeps its bar is further below by chance
RELEASES, QUICK = 400, 12


class Remembered:
    """A connection that asks its engine each statement once."""

    def __init__(self, opened: Any) -> None:
        self._opened, self._answers = opened, dict[str, Any]()
        self.dialect, self.tables = opened.dialect, opened.tables

    def run(self, tree: Any) -> Any:
        text = tree.sql(self.dialect)
        if text not in self._answers:
            self._answers[text] = self._opened.run(tree)
        return self._answers[text]

    def hand_over(self, table: Any, cells: Any) -> None:
        """What a stage released: nothing that was asked of that table is remembered."""
        self._answers = {text: answer for text, answer in self._answers.items() if table.name not in text}
        self._opened.hand_over(table, cells)


@dataclass(frozen=True)
class Row:
    """One column of one question at one epsilon."""

    world: str
    what: str
    by: str
    column: str
    epsilon: float
    cells: int
    covered: float
    between: float  # the standard error of `covered`, between releases
    wide: float
    cut: float
    error: float
    hidden: float

    @property
    def name(self) -> str:
        return f"{self.what}{f' by {self.by}' if self.by else ''}"


def releases(world: World, question: Question, epsilon: float, connection: Any, many: int) -> Iterator[Answer]:
    options = {"keys": question.keys} if question.keys else {}
    plan: Sql = sql(question.text, world.schema, unit=world.protects, epsilon=epsilon, delta=DELTA, **options)
    noise = Noise(SecureBits())
    for _ in range(many):
        yield plan.finish(plan._run(connection, SimpleNamespace(noise=noise)))  # type: ignore[arg-type]


def measure(world: World, question: Question, epsilon: float, connection: Any, many: int) -> list[Row]:
    truth, keys = world.truth(question), question.by.split(", ") if question.by else []
    parts: dict[str, list[np.ndarray]] = {}
    for answer in releases(world, question, epsilon, connection, many):
        labels = list(zip(*([str(cell) for cell in answer[key]] for key in keys), strict=True)) if keys else [()]
        quiet = _without_doubts(answer)
        for place, name in enumerate(answer.numbers):
            true = np.array([(truth.get(label) or [0.0] * 9)[place] or 0.0 for label in labels], dtype=float)
            low, high = np.array(answer.interval(name, ALPHA), dtype=float).reshape(-1, 2).T
            own = np.array(quiet.half_width(name, ALPHA), dtype=float)
            value, bias = (np.array(each, dtype=float) for each in (answer[name], answer.bias(name)))
            held = (true >= low - 1e-9 * np.abs(true)) & (true <= high + 1e-9 * np.abs(true))
            with np.errstate(all="ignore"):
                rate = np.where(value != bias, value / (value - bias), 1.0)
            kept = np.array([label in truth for label in labels])
            stack = np.vstack([held, (high - low) / 2 / (own / np.maximum(rate, 1.0)), np.abs(bias), value, true, kept])
            parts.setdefault(name, []).append(stack[:, kept])
    rows = []
    for name, stacks in parts.items():
        held, wide, bias, value, true, _ = np.hstack(stacks)
        if held.size == 0:
            continue
        with np.errstate(all="ignore"):
            cut = float(np.nanmedian(bias / np.abs(value)))
            error = float(np.nanmedian(np.abs(value - true) / np.abs(true)))
        hidden = 1 - held.size / (len(truth) * many)
        rows.append(
            Row(
                world.name, question.what, question.by, name, epsilon, held.size, float(held.mean()), _between(stacks),
                float(np.nanmedian(wide)), cut, error, max(hidden, 0.0),
            )
        )  # fmt: skip
    return rows


def _between(stacks: list[np.ndarray]) -> float:
    """The standard error of a coverage, from how it differs between releases; at least as if one number more had been
    missed, since a row that misses none is not known exactly."""
    shares = np.array([stack[0].mean() for stack in stacks if stack.shape[1]])
    missed = (np.sum(1 - shares) + 1) / (shares.size + 1)
    numbers = shares.size * max(np.mean([stack.shape[1] for stack in stacks]), 1.0)
    return float(max(shares.std() / np.sqrt(shares.size), np.sqrt(missed * (1 - missed) / numbers)))


def _without_doubts(answer: Answer) -> Answer:
    """The same, if what limits cut were known."""
    names = [name.removeprefix("cut from ") for name in answer._spreads if name.startswith("cut from ")]
    still = {name: (law, 0.0) for name, (law, _) in doubts(names).items()}
    return Answer(list(answer._outputs.values()), {**answer._spreads, **still}, answer._rows)


def worlds(data: Path | None, only: str | None) -> Iterator[World]:
    made: dict[str, Callable[[], World]] = {
        "flights": coverage_data.flights, "skewed": coverage_data.skewed, "star": coverage_data.star,
    }  # fmt: skip
    if data is not None:
        made["adult"] = lambda: coverage_data.adult(data)
    for name, make in made.items():
        if only in (None, name):
            yield make()


def _many(question: Question, many: int) -> int:
    """Where groups are chosen privately each release has hundreds of numbers, and statements of its own."""
    return max(many // 20, 2) if question.chosen else many


def run(data: Path | None, only: str | None, many: int, quick: bool) -> list[Row]:
    rows: list[Row] = []
    for world in worlds(data, only):
        tables = {name: (each, source(rows)) for name, (each, rows) in world.tables.items()}
        opened = connect(tables, threads=2)
        connection = Remembered(opened)
        for question in world.questions[:: 2 if quick else 1]:
            for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                progress(f"{world.name}: {question.what} by {question.by or 'nothing'} at epsilon {epsilon}   ")
                rows += measure(world, question, epsilon, connection, _many(question, many))
        opened.close()
    return rows


def bars(rows: list[Row]) -> Iterator[Bar]:
    share = float(ADVICE)
    yield Bar(f"price of knowing what is cut ≤ {PRICE} of the budget", f"{share:.2f}", share <= PRICE)
    for row in rows:
        name = f"{row.world}, {row.name}, {row.column}, epsilon {row.epsilon:g}"
        kept = row.covered + CHANCE * row.between >= COVERED
        by_chance = " (below by chance)" if kept and row.covered < COVERED else ""
        yield Bar(f"{name}: covered ≥ {COVERED}", f"{row.covered:.3f}{by_chance}", kept)
        most = NARROW if row.cut < LITTLE else WIDE
        yield Bar(f"{name}: wide ≤ {most}", f"{row.wide:.2f}", row.wide <= most)


def report(rows: list[Row]) -> str:
    heads = ("data", "question", "column", "epsilon", "numbers", "covered", "wide", "cut", "error", "hidden")
    lines = [
        (
            row.world, row.name, row.column, f"{row.epsilon:g}", table.count(row.cells), f"{row.covered:.3f}",
            f"{row.wide:.2f}", f"{100 * row.cut:.2g} %", f"{100 * row.error:.2g} %", f"{100 * row.hidden:.2g} %",
        )
        for row in rows
    ]  # fmt: skip
    cells = np.array([row.cells for row in rows], dtype=float)
    covered = float(np.average([row.covered for row in rows], weights=cells))
    whole = f"\nof all {table.count(float(cells.sum()))} numbers {100 * covered:.1f} % are covered; "
    whole += f"the lowest of {len(rows)} rows is {min(row.covered for row in rows):.3f}"
    return table.aligned([heads, *lines], words=3) + whole


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage", description="Do intervals hold the truth?")
    parser.add_argument("--quick", action="store_true", help="a few releases of every other question at epsilon 1")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where adult/adult.data is")
    parser.add_argument("--only", metavar="NAME", help="one table: flights, skewed, star or adult")
    parser.add_argument("--releases", type=int, default=None, help=f"of each question; {RELEASES} by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    many = options.releases or (QUICK if options.quick else RELEASES)
    rows = run(options.data, options.only, many, options.quick)
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
