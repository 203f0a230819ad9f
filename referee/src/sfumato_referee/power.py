"""Would the audit see it? The chance that a planted fault is caught, and the settings at which it shows most.

An audit that finds nothing says little unless it is known what it would have found. Here the fault is known (half the
noise, mutants/scaled.py), so is the law of what it does, and the chance of being caught is a sum over two binomial
counts: with P, P' the faulty probabilities of an event on neighbours, hits ~ Bin(n, P) and others ~ Bin(n, P'), and it
is caught when the Clopper-Pearson bounds of `audit.check` prove an epsilon above the claim.

    predicted(plan, pair, runs=...)  that chance, at the event that is worst by the law
    pick(make, epsilons)             the epsilon at which the fewest runs catch it
    STRONGEST                        for every plan of shipped.PLANS: telling parameters, and pairs where they help
    caught(name, bits)               one audit of the mutant at these
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from sfumato import checks
from sfumato.audit import neighbours
from sfumato.audit.checking import check
from sfumato.audit.claims import claims_of
from sfumato.audit.counting import Claims, at_least, at_most
from sfumato.audit.enumerating import ListedLaw, listed
from sfumato.audit.neighbours import Pair
from sfumato.audit.results import Result
from sfumato.audit.scripted import Scripted, TooManyError
from sfumato.audit.verifying import listable
from sfumato.noise import Bits, Noise
from sfumato.plan import Plan

from . import moved, strongest
from .mutants.scaled import Scaled, halved, narrowed

__all__ = ["STRONGEST", "Caught", "TellingEvent", "caught", "detection", "events", "pick", "predicted"]

_EVENTS = 15  # that audit.check judges: its error is shared over two bounds of each
_ALPHA = 1e-6 / (2 * _EVENTS)
_RUNS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)

STRONGEST = strongest.SETTINGS


@dataclass(frozen=True)
class TellingEvent:
    """Something that happens with probability `one` on one table and `other` on its neighbour."""

    one: float
    other: float
    words: str = ""


def detection(event: TellingEvent, claims: Claims, runs: int, alpha: float = _ALPHA) -> float:
    """The chance that `runs` on each side prove an epsilon above one of the claims, by this event."""
    if event.one <= event.other:
        return 0.0
    hits, others = (_likely(runs, p) for p in (event.one, event.other))
    low, high = at_least(hits, runs, alpha), at_most(others, runs, alpha)
    best = 0.0
    below = np.append(0.0, np.cumsum(stats.binom.pmf(others, runs, event.other)))
    chance = stats.binom.pmf(hits, runs, event.one)
    for delta, epsilon in claims.items():
        # Caught if (low - delta) / e^epsilon exceeds the upper bound, which rises with the other count.
        seen = below[np.searchsorted(high, (low - delta) / math.exp(min(epsilon, 700.0)), side="left")]
        best = max(best, float(chance @ seen))
    return min(best, 1.0)


def _likely(runs: int, p: float) -> Any:
    """The counts that matter: all but a chance of 1e-12 at either end."""
    low, high = (int(stats.binom.ppf(q, runs, p)) for q in (1e-12, 1 - 1e-12))
    return np.arange(max(low, 0), min(max(high, low), runs) + 1)


class _Faulty(Scaled, Scripted):
    """The listed noise, at half its scale."""


def events(plan: Plan[Any, Any], pair: Pair, *, faulty: bool = True, most: int = 5_000) -> Iterator[TellingEvent]:
    """The events that tell most, by the law of the plan with half its noise: large likelihood
    ratios of numbers with noise, and where outcomes can be listed, the sets of those whose probabilities differ most.
    None for other plans."""
    moves = moved.moves(plan, pair)
    if moves is not None:
        for t, here, there in moved.tails([(narrowed(law) if faulty else law, move) for law, move in moves]):
            yield TellingEvent(here, there, f"a loss of {t:.3g} or more")
        return
    try:
        run = listable(halved(plan) if faulty else plan)
        sides = [_floats(listed(run, rows, most=most, noise=_Faulty if faulty else Scripted)) for rows in pair]
    except TooManyError:
        return
    for one, other in (sides, sides[::-1]):
        order = sorted(one, key=lambda name: -one[name] / max(other.get(name, 0.0), 1e-300))
        for size in range(1, len(order) + 1):
            chosen = order[:size]
            yield TellingEvent(
                sum(one[x] for x in chosen), sum(other.get(x, 0.0) for x in chosen), f"one of {size} outputs"
            )


def _floats(outcomes: ListedLaw) -> dict[bytes, float]:
    return {name: float(chance) for name, chance in outcomes.chances.items()}


def predicted(
    plan: Plan[Any, Any], pair: Pair, *, runs: int, claims: Claims | None = None, faulty: bool = True
) -> float:
    """The chance that the plan with half its noise is caught on this pair, by its worst event; nan where its law is not
    known."""
    sold = claims_of(plan) if claims is None else claims
    telling = list(events(plan, pair, faulty=faulty))
    if not telling and moved.moves(plan, pair) is not None:
        return 0.0  # the pair moves nothing
    telling.sort(key=lambda event: -_score(event, sold, runs))
    return max((detection(event, sold, runs) for event in telling[:4]), default=math.nan)


def _score(event: TellingEvent, claims: Claims, runs: int) -> float:
    if event.one <= 0:
        return -math.inf
    # A Clopper-Pearson bound at 1e-8 is about six standard deviations of either count.
    low = event.one - 6 * math.sqrt(event.one / runs)
    high = event.other + 6 * math.sqrt(event.other / runs) + 18 / runs
    return max(math.log(max(low - d, 1e-300) / high) - e for d, e in claims.items())


@dataclass(frozen=True)
class EpsilonChoice:
    """Where a fault shows most: at this epsilon, so many runs catch it with this chance."""

    epsilon: float
    runs: int
    power: float


def pick(
    make: Callable[[float], Plan[Any, Any]], epsilons: Sequence[float] = (0.5, 1, 2, 4, 6), *, sure: float = 0.999
) -> EpsilonChoice:
    """The epsilon at which the fewest runs catch half the noise, by the law; over the usual pairs of neighbours."""
    best: EpsilonChoice | None = None
    for epsilon in epsilons:
        plan = make(epsilon)
        sold = claims_of(plan)
        tried = [pair for _, pair in zip(range(12), neighbours.pairs(plan), strict=False)]
        for runs in _RUNS:
            if best is not None and best.power >= sure and runs > best.runs:
                break
            chances = [predicted(plan, pair, runs=runs, claims=sold) for pair in tried]
            choice = EpsilonChoice(epsilon, runs, max((each for each in chances if not math.isnan(each)), default=0.0))
            if best is None or _better(choice, best, sure):
                best = choice
            if choice.power >= sure:
                break
    assert best is not None
    return best


def _better(one: EpsilonChoice, other: EpsilonChoice, sure: float) -> bool:
    """Fewest runs among those that are sure; else the larger power."""
    if (one.power >= sure) != (other.power >= sure):
        return one.power >= sure
    return (one.runs, -one.power) < (other.runs, -other.power) if one.power >= sure else one.power > other.power


@dataclass(frozen=True)
class Caught:
    """One audit of a mutant: which ways of looking called it broken, and the processor's seconds it took."""

    name: str
    broken: bool
    ways: tuple[str, ...]
    epsilon: float
    claim: float
    seconds: float
    result: Result


def caught(name: str, bits: Bits, *, mutant: bool = True) -> Caught:
    """Audit a plan at its telling parameters, with half its noise or, as a control, with all of it."""
    checks.one_of(name, "name", tuple(STRONGEST))
    setting = STRONGEST[name]
    plan = setting.make()
    noise: Callable[[Bits], Noise] = Scaled if mutant else Noise
    started = time.process_time()
    pairs = None if setting.pairs is None else setting.pairs(plan)
    result = check(halved(plan) if mutant else plan, noise=noise, runs=setting.runs, bits=bits, pairs=pairs)
    ways = tuple(each.way for each in result.found if each.broken and each.way != "exact loss")
    return Caught(name, bool(ways), ways, result.epsilon, result.claim, time.process_time() - started, result)


def shares(audits: Sequence[Caught]) -> dict[str, Fraction]:
    """How often each way of looking caught it."""
    names = sorted({way for each in audits for way in each.ways})
    return {name: Fraction(sum(name in each.ways for each in audits), max(len(audits), 1)) for name in names}
