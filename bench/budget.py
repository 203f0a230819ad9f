"""What an account lets through before it refuses anything, beside the tightest accountant there is.

    python -m bench.budget [--quick] [--check] [--json FILE]

A year of mixed work is drawn at random from the kinds of a mix, and released one after the other on a fresh account
with its default members, through the same filter that a ledger asks, until the first release is refused. What was let
through is then priced by the tightest sound accountant, at the account's delta: privacy loss of the whole list, the
events' own deltas among it, as if the list had been fixed in advance.

No sound rule for adaptive work can let through more than that: one that accepts a list whose own curve lies above
(epsilon, delta) breaks its promise on those who ask for just this list. So that accountant's own stop, on the same list
in the same order, is the most there is, though it is no filter itself (decision 0010); the figure is

    used  =  epsilon of what the account let through  /  epsilon of what that accountant would have let through.

Where an event is known by its Renyi divergences alone (zCDP), the tightest accountant of the list goes by those.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

from sfumato import Budget
from sfumato.accounting import gdp, price
from sfumato.accounting.filters import Filter
from sfumato.accounting.holds import own_delta
from sfumato.accounting.members import sure
from sfumato.cli.work.draft import ONE_RELEASE
from sfumato.errors import BudgetError
from sfumato.events import (
    Approximate,
    Bundle,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Poisson,
    Repeat,
    Sequence,
    ZeroConcentrated,
)

from . import table
from .bars import Bar, bars_block, progress

SHORTEST = 0.90  # of what the tightest accountant allows
_MOST = 20_000
Kind = tuple[Event, Fraction]  # what a release costs, and its own delta


@dataclass(frozen=True)
class Mix:
    """Kinds of releases, each with its weight in a draw; `fixed` ones come once each, at the places named."""

    name: str
    kinds: tuple[tuple[Kind, int], ...]
    fixed: tuple[tuple[int, Kind], ...] = ()

    def releases(self, seed: int) -> Iterator[Kind]:
        drawn = random.Random(seed)
        kinds, weights = zip(*self.kinds, strict=True)
        once = dict(self.fixed)
        for place in range(_MOST):
            yield once[place] if place in once else drawn.choices(kinds, weights)[0]


@dataclass(frozen=True)
class Figure:
    mix: str
    limit: str
    seed: int
    releases: int
    epsilon: float
    allowed: float  # the epsilon that the tightest accountant reaches before it refuses
    failed: float  # the part of delta that the releases' own deltas take
    refused: str  # the kind that was refused first

    @property
    def used(self) -> float:
        return self.epsilon / self.allowed


def count(budget: Budget, part: Fraction = Fraction(1, 5)) -> Kind:
    """A count with Gaussian noise, at what a project asks for by default: a fifth of epsilon."""
    delta = budget.delta * ONE_RELEASE
    return Gaussian(multiplier=gdp.least_multiplier(budget.epsilon * part, delta)), delta


def unknown_keys(budget: Budget, part: Fraction = Fraction(1, 5)) -> Kind:
    """The same where groups are not known: half of its delta is for groups of one person alone."""
    delta = budget.delta * ONE_RELEASE
    noise = Gaussian(multiplier=gdp.least_multiplier(budget.epsilon * part, delta / 2))
    return Bundle((noise, Approximate(epsilon=0, delta=delta / 2))), delta


def median(epsilon: Fraction) -> Kind:
    """A median by the exponential mechanism."""
    return Exponential(epsilon=epsilon), Fraction(0)


def laplace(epsilon: Fraction) -> Kind:
    return Laplace(epsilon=epsilon), Fraction(0)


def training(multiplier: Fraction, rate: Fraction, steps: int, delta: Fraction) -> Kind:
    return Repeat(Poisson(Gaussian(multiplier=multiplier), rate), steps), delta


def synthetic(rho: Fraction) -> Kind:
    """A synthetic table, known by its rho."""
    return ZeroConcentrated(rho=rho), Fraction(0)


def mixes(budget: Budget) -> tuple[Mix, ...]:
    epsilon, delta = budget.epsilon, budget.delta
    rho = epsilon**2 / 8000
    sgd = training(4 / epsilon, Fraction(1, 40), 200, delta / 100)
    larger = training(6 / epsilon, Fraction(1, 20), 150, delta / 100)
    some, few = Fraction(1, 10), Fraction(1, 20)
    return (
        Mix("counts, as a project asks by default", ((count(budget), 1),)),
        Mix(
            "counts and unknown keys, large and small",
            ((count(budget), 2), (unknown_keys(budget), 2), (count(budget, few), 8), (unknown_keys(budget, few), 8)),
        ),
        Mix(
            "counts, Laplace sums, medians, unknown keys",
            (
                (count(budget, some), 4),
                (laplace(epsilon / 40), 3),
                (laplace(epsilon / 100), 3),
                (median(epsilon / 20), 3),
                (unknown_keys(budget, some), 2),
            ),
        ),
        Mix(
            "two trainings, counts, unknown keys",
            ((count(budget, some), 3), (unknown_keys(budget, some), 1)),
            ((5, sgd), (12, larger)),
        ),
        Mix(
            "synthetic tables by rho, a large one, counts",
            ((synthetic(rho), 3), (count(budget, some), 1)),
            ((4, synthetic(20 * rho)),),
        ),
    )


def let_through(budget: Budget, releases: Iterator[Kind]) -> tuple[list[Kind], Kind]:
    """What the account accepts before it refuses anything, and what it refused."""
    account, accepted = Filter.of(budget), []
    for event, delta in releases:
        try:
            account = account.spend(event, delta)
        except BudgetError:
            return accepted, (event, delta)
        accepted.append((event, delta))
    raise RuntimeError(f"nothing was refused in {_MOST} releases: the mix is too small")


def tightest(budget: Budget, accepted: list[Kind]) -> float:
    """Epsilon of the whole list at the account's delta, from above. Failures are independent of the rest and show
    everything, so what is left of delta for the rest is (delta - f) / (1 - f)."""
    failed = sum((own_delta(event) for event, _ in accepted), Fraction(0))
    if failed >= budget.delta:
        return float("inf")
    kinds = Counter(_plain(event) for event, _ in accepted)
    whole = Sequence(tuple(Repeat(event, times) for event, times in kinds.items()))
    return price.epsilon(whole, delta=(budget.delta - failed) / (1 - failed)).upper


def _plain(event: Event) -> Event:
    """Outside of its failures; one Gaussian as itself."""
    rest = sure(event)
    return rest.events[0] if isinstance(rest, Sequence) and len(rest.events) == 1 else rest


def allowed(budget: Budget, drawn: Iterator[Kind], least: int) -> float:
    """Epsilon of the longest beginning of the list that the tightest accountant accepts: at least so many of it."""
    releases = list(islice(drawn, least + 1))
    while tightest(budget, releases) <= budget.epsilon:
        releases += islice(drawn, len(releases))
    low, high = least, len(releases)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tightest(budget, releases[:middle]) <= budget.epsilon else (low, middle)
    return tightest(budget, releases[:low])


def measure(budget: Budget, mix: Mix, seed: int) -> Figure:
    accepted, refused = let_through(budget, mix.releases(seed))
    epsilon = tightest(budget, accepted)
    failed = sum((own_delta(event) for event, _ in accepted), Fraction(0))
    return Figure(
        mix.name,
        str(budget),
        seed,
        len(accepted),
        epsilon,
        allowed(budget, mix.releases(seed), len(accepted)),
        float(failed / budget.delta),
        type(refused[0]).__name__,
    )


def report(figures: list[Figure]) -> str:
    head = ("mix", "limit", "releases", "epsilon", "tightest", "used", "own deltas", "refused first")
    rows = [
        (
            each.mix,
            each.limit,
            table.count(each.releases),
            f"{each.epsilon:.4f}",
            f"{each.allowed:.4f}",
            f"{each.used:.1%}",
            f"{each.failed:.1%} of delta",
            each.refused,
        )
        for each in figures
    ]
    return "\n".join(
        (
            "What an account lets through before it refuses anything",
            "used = its epsilon by the tightest accountant / what that accountant would have let through",
            table.aligned([head, *rows], words=2),
        )
    )


def bars(figures: list[Figure]) -> Iterator[Bar]:
    for name in dict.fromkeys(each.mix for each in figures):
        least = min((each for each in figures if each.mix == name), key=lambda each: each.used)
        promise = f"{name}: at least {SHORTEST:.0%} used"
        yield Bar(promise, f"{least.used:.1%} ({least.limit}, draw {least.seed})", least.used >= SHORTEST)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description="What an account lets through.")
    parser.add_argument("--quick", action="store_true", help="one budget and one draw of each mix, under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    limits = [Budget(epsilon=2, delta=1e-6)]
    limits += [] if options.quick else [Budget(epsilon=1, delta=1e-5), Budget(epsilon=4, delta=1e-7)]
    figures = []
    for budget in limits:
        for mix in mixes(budget):
            for seed in range(1 if options.quick else 3):
                progress(f"{budget}: {mix.name}, draw {seed}")
                figures.append(measure(budget, mix, seed))
    print(report(figures))
    found = list(bars(figures))
    if options.json:
        content = {"figures": [{**asdict(each), "used": each.used} for each in figures]}
        options.json.write_text(json.dumps({**content, "bars": list(map(asdict, found))}, indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
