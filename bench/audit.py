"""audit.check on the broken mechanisms that other black-box testers published: StatDP, DP-Sniper and DP-Auditorium.

    python -m bench.audit [--quick] [--check] [--seed N]

Each case is written down here from its description, as code of a user's own: the audit sees outputs and nothing else.
Beside what we prove, with chances of a false alarm of one in a million, stand the samples that the other tool takes for
its own verdict at 5 %. None of the three is on the package index under a name that installs, so their figures are those
of their repositories and papers, and no CPU time is compared.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench import table
from bench.bars import Bar, bars_block, progress
from sfumato import audit
from sfumato.noise import SeededBits

Mechanism = Callable[[Any], Any]
Pairs = Sequence[tuple[Any, Any]]

STATDP = "100 000 to choose, 500 000 to test, p < 0.05"  # README.md of cmla-psu/statdp
AUDITORIUM = "10 000 on each of 10 data sets, 95 %"  # run_mean_mechanism_example.py of google/differential-privacy
SNIPER = "10 700 000, 90 %"  # the paper's defaults, from memory

_ONES = (1.0,) * 5
VECTORS: Pairs = (
    (_ONES, (2.0, *_ONES[1:])),
    (_ONES, (2.0, 0.0, 0.0, 0.0, 0.0)),
    (_ONES, (0.0, 2.0, 2.0, 2.0, 2.0)),
    (_ONES, (2.0,) * 5),
    (_ONES, (0.0,) * 5),
)
"""Query answers that differ by one: in one place, in all, in all but with one the other way. As StatDP's patterns."""

_LONG = (1.0,) * 10
LONG: Pairs = (
    (_LONG, (2.0,) * 10),
    (_LONG, (0.0,) * 5 + (2.0,) * 5),
    (_LONG, (2.0,) * 5 + (0.0,) * 5),
    (_LONG, (0.0,) * 9 + (2.0,)),
)


@dataclass(frozen=True)
class Case:
    """A mechanism, the epsilon it claims, and what the tool that published it takes to judge it."""

    name: str
    make: Callable[[np.random.Generator], Mechanism]
    pairs: Pairs
    claim: float
    wrong: bool
    published: str
    runs: int = 20_000


def _on_grid(value: Any) -> float:
    """Rounded to 2^-10: else the lowest bits of float64 give away even a right mechanism, as in the last case."""
    return float(np.rint(1024 * value) / 1024)


def _noisy_max(rng: np.random.Generator, *, value: bool, exponential: bool, epsilon: float = 0.7) -> Mechanism:
    draw = rng.exponential if exponential else rng.laplace

    def run(answers: Any) -> float:
        noisy = np.asarray(answers) + draw(scale=2 / epsilon, size=len(answers))
        return _on_grid(noisy.max()) if value else int(noisy.argmax())

    return run


def _histogram(rng: np.random.Generator, scale: float) -> Mechanism:
    return lambda answers: _on_grid(answers[0] + rng.laplace(scale=scale))


def _sparse(
    rng: np.random.Generator,
    *,
    threshold_scale: float,
    query_scale: float,
    ends_after: int | None,
    shows: bool = False,
) -> Mechanism:
    """Above-threshold over a list of answers, at threshold 1; `shows` tells the noisy answer of a crossing."""

    def run(answers: Any) -> list[float]:
        threshold = 1 + rng.laplace(scale=threshold_scale)
        noisy = np.asarray(answers) + (rng.laplace(scale=query_scale, size=len(answers)) if query_scale else 0.0)
        above = noisy >= threshold
        asked = np.cumsum(above) - above < (ends_after or len(answers))
        told = np.where(
            asked, np.where(above, np.rint(1024 * noisy) / 1024 if shows else 1.0, 0.0 if not shows else -99.0), -100.0
        )
        return [float(each) for each in told]

    return run


def _mean(rng: np.random.Generator, *, private: bool, epsilon: float = 1.0) -> Mechanism:
    """A mean of numbers in [0, 1] under add and remove; the wrong one divides by the true count, and scales by it."""

    def run(numbers: Any) -> float:
        total, count = float(np.sum(numbers)), float(len(numbers))
        if not private:
            return _on_grid((total + rng.laplace(scale=1 / epsilon)) / max(count, 1))
        return _on_grid((total + rng.laplace(scale=2 / epsilon)) / max(count + rng.laplace(scale=2 / epsilon), 1))

    return run


def _float_laplace(rng: np.random.Generator, epsilon: float = 0.1) -> Mechanism:
    """The inverse of the distribution function, in float64."""

    def run(answer: float) -> float:
        u = rng.random() - 0.5
        return answer - math.copysign(1 / epsilon, u) * math.log(1 - 2 * abs(u))

    return run


NUMBERS: Pairs = (((), (1.0,)), ((0.0,), (0.0, 1.0)), ((1.0,), (1.0, 0.0)), ((1.0, 1.0), (1.0, 1.0, 0.0)))
CASES = (
    Case("noisy max, index", lambda r: _noisy_max(r, value=False, exponential=False), VECTORS, 0.7, False, STATDP),
    Case("noisy max, value", lambda r: _noisy_max(r, value=True, exponential=False), VECTORS, 0.7, True, STATDP),
    Case("noisy max, exp., value", lambda r: _noisy_max(r, value=True, exponential=True), VECTORS, 0.7, True, STATDP),
    Case("histogram", lambda r: _histogram(r, 1 / 0.7), VECTORS[:1], 0.7, False, STATDP),
    Case("histogram, scale epsilon", lambda r: _histogram(r, 0.7), VECTORS[:1], 0.7, True, STATDP),
    Case(
        "sparse vector",
        lambda r: _sparse(r, threshold_scale=2 / 0.7, query_scale=4 / 0.7, ends_after=1),
        LONG,
        0.7,
        False,
        STATDP,
    ),
    Case(
        "iSVT1, no query noise",
        lambda r: _sparse(r, threshold_scale=2 / 0.7, query_scale=0.0, ends_after=None),
        LONG,
        0.7,
        True,
        STATDP,
    ),
    Case(
        "iSVT2, no end",
        lambda r: _sparse(r, threshold_scale=2 / 1.5, query_scale=2 / 1.5, ends_after=None),
        LONG,
        1.5,
        True,
        STATDP,
    ),
    Case(
        "iSVT3, noise without N",
        lambda r: _sparse(r, threshold_scale=4 / 1.5, query_scale=4 / 4.5, ends_after=4),
        LONG,
        1.5,
        True,
        STATDP,
        40_000,
    ),
    Case(
        "iSVT4, value shown",
        lambda r: _sparse(r, threshold_scale=2 / 1.5, query_scale=2 / 1.5, ends_after=1, shows=True),
        LONG,
        1.5,
        True,
        STATDP,
        60_000,
    ),
    Case("mean", lambda r: _mean(r, private=True), NUMBERS, 1.0, False, AUDITORIUM),
    Case("mean, true count", lambda r: _mean(r, private=False), NUMBERS, 1.0, True, AUDITORIUM),
    Case("Laplace in float64", _float_laplace, ((0.0, 1.0),), 0.1, True, SNIPER),
)


@dataclass(frozen=True)
class Row:
    case: Case
    found: Any
    seconds: float


def measured(case: Case, seed: int, share: float) -> Row:
    start = time.process_time()
    runs = max(int(case.runs * share), 2_000)
    run = case.make(np.random.default_rng(seed))
    found = audit.check_mechanism(run, case.pairs, case.claim, runs=runs, bits=SeededBits(seed))
    return Row(case, found, time.process_time() - start)


def block(rows: Sequence[Row]) -> str:
    head = ("mechanism", "published by its tester at", "claimed", "proven", "runs a side", "CPU", "verdict")
    lines = [
        (
            row.case.name,
            row.case.published,
            f"{row.case.claim:g}",
            f"{row.found.epsilon:.3f}",
            table.count(row.found.runs),
            table.duration(row.seconds),
            row.found.verdict,
        )
        for row in rows
    ]
    return table.aligned([head, *lines], words=2)


def bars(rows: Sequence[Row]) -> list[Bar]:
    wrong, right = ([row for row in rows if row.case.wrong is kind] for kind in (True, False))
    caught, spared = sum(row.found.broken for row in wrong), sum(not row.found.broken for row in right)
    return [
        Bar("every wrong mechanism is found out", f"{caught} of {len(wrong)}", caught == len(wrong)),
        Bar("no right mechanism is accused", f"{spared} of {len(right)}", spared == len(right)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="half the runs, and at most a minute")
    parser.add_argument("--check", action="store_true", help="fail where a bar is missed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows = []
    for case in CASES:
        progress(f"{case.name:40}")
        rows.append(measured(case, given.seed, 0.5 if given.quick else 1.0))
    print("Black-box audits of published mechanisms\n" + block(rows))
    kept = bars(rows)
    print("\n" + bars_block(kept))
    return int(given.check and not all(bar.kept for bar in kept))


if __name__ == "__main__":
    sys.exit(main())
