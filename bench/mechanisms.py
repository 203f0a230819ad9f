"""Mechanisms, side by side with numpy without privacy, and with OpenDP and diffprivlib where they have the same.

    python -m bench.mechanisms [--quick] [--check] [--json FILE]

Ours is the whole way: from raw numpy columns through the curator (plan written, priced, paid, data read, noise drawn,
answer stored) to the finished value. Every round measures everybody once, so that a slow minute of the machine falls
on all of them alike; the figures are medians over the rounds, in CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import peers, table
from bench.bars import Bar, bars_block, progress, times

os.environ.update(peers.ONE_THREAD)  # numpy's libraries read it once, when they load

import numpy as np

from bench.workers.samples import real_numbers, whole_numbers
from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds, mechanisms, schema
from sfumato.plan import Plan
from sfumato.release import Release

ROWS, SEED = 1_000_000, 20_240_229
CELLS, STEPS, LEAVES, ASKED = 100_000, 1_024, 4_096, 99
LEVELS = tuple((i + 1) / (ASKED + 1) for i in range(ASKED))
PEERS = {"opendp": "OpenDP", "diffprivlib": "diffprivlib"}
UNIT = Unit()


@dataclass(frozen=True)
class Job:
    """One thing that everybody does."""

    name: str
    column: np.ndarray
    kind: schema.Column
    plan: Callable[[], Plan[Any, Any]]
    numpy: Callable[[np.ndarray], object]
    take: Callable[[Release], object] = lambda release: release.value
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    nearest: tuple[str, ...] = ()  # peers that have not the same, but something like it

    def ours(self) -> float:
        private = Private("data", {"x": self.column}, unit=UNIT, schema=Schema.of(x=self.kind))
        curator = Curator(private, MemoryLedger({"data": Budget(epsilon=10, delta=1e-5)}))
        return cpu(lambda: self.take(curator.release(self.plan())))

    def plain(self) -> float:
        return cpu(lambda: self.numpy(self.column))


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call: on a shared machine the clock on the wall measures the neighbours too."""
    start = time.process_time()
    work()
    return time.process_time() - start


def jobs() -> tuple[Job, ...]:
    """The same numbers as the peers' workers make."""
    count = {"rows": ROWS, "seed": SEED}
    return (
        Job(
            f"{ASKED} quantiles of {table.count(ROWS)} values",
            real_numbers(ROWS, SEED),
            schema.real(0, 4096),
            lambda: mechanisms.QuantileTree(
                column="x", lower=0, upper=4096, leaves=LEAVES, q=LEVELS, epsilon=1, protects=UNIT
            ),
            lambda x: np.quantile(x, LEVELS),
            peers={
                "opendp": {"do": "quantiles", "leaves": LEAVES, "asked": ASKED, **count},
                "diffprivlib": {"do": "quantiles", "leaves": LEAVES, "asked": 1, **count},
            },
        ),
        Job(
            f"a {table.count(STEPS)}-step continual count of {table.count(ROWS)} rows",
            whole_numbers(ROWS, STEPS, SEED),
            schema.whole(0, STEPS - 1),
            lambda: mechanisms.ContinualCount(query=bounds.increments("x", STEPS, UNIT), epsilon=1, delta=1e-6),
            lambda x: np.cumsum(np.bincount(x, minlength=STEPS)),
            peers={"opendp": {"do": "continual", "steps": STEPS, **count}},
            nearest=("opendp",),
        ),
        Job(
            f"a {table.count(CELLS)}-cell histogram of {table.count(ROWS)} rows",
            whole_numbers(ROWS, CELLS, SEED),
            schema.whole(0, CELLS - 1),
            lambda: mechanisms.Laplace(query=bounds.bins_between("x", 0, CELLS, CELLS, UNIT), epsilon=1),
            lambda x: np.histogram(x, bins=CELLS, range=(0, CELLS)),
            take=lambda release: release.raw,  # noisy counts in an array, as everybody gives them
            peers={peer: {"do": "histogram", "cells": CELLS, **count} for peer in PEERS},
        ),
    )


@dataclass(frozen=True)
class Compared:
    """Medians in CPU seconds; a peer that lacks the thing, or failed at it, is not there."""

    job: str
    sfumato: float
    numpy: float
    peers: dict[str, float]
    absent: dict[str, str]
    nearest: tuple[str, ...]

    @property
    def to_numpy(self) -> float:
        return self.sfumato / self.numpy

    def faster_than(self, peer: str) -> float | None:
        return self.peers[peer] / self.sfumato if peer in self.peers else None


def measure(rounds: int, limit: float, say: Callable[[str], object]) -> list[Compared]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    absent: dict[str, dict[str, str]] = defaultdict(dict)
    everything = jobs()
    for job in everything:
        job.ours()  # code and tables loaded: nobody's first time is measured
    for number in range(rounds):
        for job in everything:
            say(f"round {number + 1} of {rounds}: {job.name}")
            for _ in range(3):
                found[job.name, "sfumato"].append(job.ours())
                found[job.name, "numpy"].append(job.plain())
            for peer, payload in job.peers.items():
                if peer not in absent[job.name]:
                    peer_round(peer, payload, limit, found[job.name, peer], absent[job.name])
    return [
        Compared(
            job.name,
            statistics.median(found[job.name, "sfumato"]),
            statistics.median(found[job.name, "numpy"]),
            {peer: statistics.median(found[job.name, peer]) for peer in PEERS if found.get((job.name, peer))},
            absent[job.name],
            job.nearest,
        )
        for job in everything
    ]


def peer_round(peer: str, payload: dict[str, Any], limit: float, found: list[float], absent: dict[str, str]) -> None:
    try:
        answer = peers.run(peer, f"{peer}_mechanisms", {"jobs": [payload | {"limit": limit, "warm": True}]})["answers"]
    except (peers.PeerMissingError, peers.PeerFailedError) as problem:
        absent[peer] = str(problem)
        return
    if "failed" in answer[0]:
        absent[peer] = answer[0]["failed"]
    else:
        found.append(answer[0]["seconds"])


def bars(figures: list[Compared]) -> Iterator[Bar]:
    for each in figures:
        yield Bar(f"{each.job}: sfumato / numpy ≤ 5", times(each.to_numpy), kept=each.to_numpy <= 5)
        for peer, name in PEERS.items():
            ratio = each.faster_than(peer)
            if ratio is not None and peer not in each.nearest:
                yield Bar(f"{each.job}: {name} / sfumato ≥ 10", times(ratio), kept=ratio >= 10)
            elif peer in each.absent:
                yield Bar(
                    f"{each.job}: {name} measured", each.absent[peer], kept="not done within" in each.absent[peer]
                )


def report(figures: list[Compared], rounds: int) -> str:
    head = (
        "what",
        "sfumato",
        "numpy, no privacy",
        *PEERS.values(),
        "sfumato / numpy",
        "OpenDP / s.",
        "diffprivlib / s.",
    )
    rows = [
        (
            each.job,
            table.duration(each.sfumato),
            table.duration(each.numpy),
            *(table.duration(each.peers[peer]) if peer in each.peers else "–" for peer in PEERS),
            times(each.to_numpy),
            *(times(each.faster_than(peer)) for peer in PEERS),
        )
        for each in figures
    ]
    notes = [
        f"  {name}, {each.job}: {each.absent[peer]}"
        for each in figures
        for peer, name in PEERS.items()
        if peer in each.absent
    ]
    return "\n".join(
        (
            f"Mechanisms: sfumato and its peers · Python {platform.python_version()} · numpy {np.__version__}",
            f"CPU time from raw columns to finished values, medians of {rounds} interleaved rounds",
            table.aligned([head, *rows]),
            "  diffprivlib releases quantiles one by one: its time is for one of them.",
            "  OpenDP has no continual count: its tree over all steps, released at once, stands beside ours.",
            *notes,
        )
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mechanisms", description="Mechanisms, side by side.")
    parser.add_argument("--quick", action="store_true", help="fewer repeats, under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    options = parser.parse_args(arguments)
    rounds = 2 if options.quick else 7
    figures = measure(rounds, limit=20 if options.quick else 60, say=progress)
    print(report(figures, rounds))
    if options.json:
        content = {"figures": list(map(asdict, figures)), "bars": list(map(asdict, bars(figures)))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if not options.check:
        return 0
    found = list(bars(figures))
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
