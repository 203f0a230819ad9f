"""The most telling event between two samples of outputs on neighbours.

A guarantee (epsilon, delta) says P(E) <= e^epsilon P'(E) + delta for every event E and both directions. An audit looks
for an event that breaks it. Events are chosen on one part of the samples and judged on another, by Clopper-Pearson
bounds, so that whatever the choice was, an honest mechanism is accused with probability at most `false_alarm`. As the
bounds on P(E) and P'(E) hold together, they are compared with the whole curve of claims, not with one point of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import views
from .counting import Claims, Floats, at_least, at_most, shown
from .outputs import OutputReading
from .views import View

_FALSE_ALARM = 1e-6
_EVENTS = 8  # judged, of both directions together
_ROUGH = 0.2  # an event is ranked by the rates that it may have, at worst, but for this chance
_ATOMS = 12  # single values tried per view
_TAILS = 0.5 ** np.arange(6, 20)
_CUTS = np.unique(np.concatenate([np.linspace(0, 1, 49), _TAILS, 1 - _TAILS]))


@dataclass(frozen=True)
class Finding:
    """The most telling event: how much privacy it shows lost at least, beside what was claimed at the same delta."""

    epsilon: float
    claim: float
    delta: float
    event: str

    @property
    def broken(self) -> bool:
        return self.epsilon > self.claim

    @property
    def lead(self) -> float:
        """By how much the claim is broken; below zero, how near the event comes to breaking it."""
        return float(lead(np.asarray(self.epsilon), self.claim))

    def __str__(self) -> str:
        verdict = "above" if self.broken else "within"
        return f"epsilon >= {self.epsilon:.3f}, {verdict} {self.claim:.3f} at delta = {self.delta:.3g} ({self.event})"


def most_telling(one: Any, other: Any, *, claims: Claims, false_alarm: float = _FALSE_ALARM) -> Finding:
    """The most telling event between two samples of the output (numbers, vectors, or any values) on neighbours.

    An honest mechanism is found broken with probability at most `false_alarm`.
    """
    half = min(len(one), len(other)) // 2
    if half < 1:
        raise ValueError("an audit needs at least two samples of each kind")
    reading = OutputReading.fit(one[:half], other[:half])
    first, second = (reading.of(sample[:half]) for sample in (one, other))
    alpha = false_alarm / (2 * _EVENTS)  # two bounds for each event
    third = (half + 2) // 3  # what is learnt is ranked on samples that it did not learn from
    learnt = [*views.simple(reading.names), *views.fitted(first[:third], second[:third])]
    first, second = (sample[third:] if half > third else sample for sample in (first, second))
    rest = [reading.of(sample[half:]) for sample in (one, other)]
    findings = []
    for candidate in candidates(learnt, first, second, claims, alpha, runs=len(rest[0]), most=_EVENTS):
        low, high = judged(candidate, counted(candidate, rest[0]), counted(candidate, rest[1]), alpha)
        findings.append(worst_claim(low, high, claims, str(candidate)))
    return max(findings, key=lambda finding: finding.lead)


def worst_claim(low: float, high: float, claims: Claims, event: str) -> Finding:
    """Beside which claim P(E) >= low and P'(E) <= high look worst."""
    findings = (Finding(float(shown(low, high, delta)), claims[delta], delta, event) for delta in claims)
    return max(findings, key=lambda finding: finding.lead)


def lead(proven: Any, claim: float) -> Floats:
    """By how much the claim is broken; below zero, how near an event comes to breaking it."""
    return np.asarray(np.where(proven > claim, proven - claim, proven / max(claim, 1e-12) - 1))


@dataclass(frozen=True)
class ViewEvent:
    """A threshold or a single value of one view."""

    sign: int  # 1: at or above the value, -1: at or below it, 0: the value itself
    value: float

    def happens(self, numbers: Floats) -> NDArray[np.bool_]:
        if self.sign == 0:
            return np.asarray(numbers == self.value)
        return np.asarray(self.sign * numbers >= self.sign * self.value)

    def __str__(self) -> str:
        return f"{ {1: '>=', -1: '<=', 0: '=='}[self.sign] } {self.value:.6g}"

    def encode(self) -> dict[str, Any]:
        """As JSON."""
        return {"sign": self.sign, "value": self.value}

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> ViewEvent:
        """What `encode` wrote."""
        sign, value = data["sign"], float(data["value"])
        if sign not in (-1, 0, 1) or not np.isfinite(value):
            raise ValueError("no threshold")
        return cls(sign, value)


@dataclass(frozen=True)
class Candidate:
    """An event that was chosen, and the direction: is it likelier on the first table, or on its neighbour?"""

    view: View
    event: ViewEvent
    forward: bool
    score: float  # the lead it had where it was chosen

    def __str__(self) -> str:
        return f"{self.view.name} {self.event}, likelier on the {'first' if self.forward else 'second'} table"


def counted(candidate: Candidate, sample: Floats) -> tuple[int, int]:
    """How often the event happened, of how many."""
    return int(candidate.event.happens(candidate.view.of(sample)).sum()), len(sample)


def judged(candidate: Candidate, one: tuple[int, int], other: tuple[int, int], alpha: float) -> tuple[float, float]:
    """P(E) is at least the first number, and P'(E) at most the second, each but for a chance of alpha."""
    here, there = (one, other) if candidate.forward else (other, one)
    return float(at_least(*here, alpha)), float(at_most(*there, alpha))


@dataclass(frozen=True)
class ViewTally:
    """Every event of one view, with how often it happened on both samples."""

    view: View
    events: Sequence[ViewEvent]
    hits: tuple[NDArray[np.int64], NDArray[np.int64]]
    trials: tuple[int, int]

    def rates(self, forward: bool) -> tuple[Floats, Floats]:
        """P(E) and P'(E) on the cautious side: what was rare may have been luck."""
        return self._both(forward, _cautious)

    def bounds(self, forward: bool, runs: int, alpha: float) -> tuple[Floats, Floats]:
        """What so many fresh runs would prove at these rates: P(E) at least, P'(E) at most."""
        return self._both(forward, partial(_proven, runs, alpha))

    def _both(self, forward: bool, least: Callable[[int], Floats]) -> tuple[Floats, Floats]:
        """A lower bound by the number of hits, and for the neighbour the upper bound: 1 less that on the misses."""
        here, there = (0, 1) if forward else (1, 0)
        return (
            least(self.trials[here])[self.hits[here]],
            1.0 - least(self.trials[there])[self.trials[there] - self.hits[there]],
        )


@lru_cache(maxsize=8)
def _cautious(trials: int) -> Floats:
    """For each number of hits, the rate that there may have been at least."""
    return at_least(np.arange(trials + 1), trials, _ROUGH)


@lru_cache(maxsize=8)
def _proven(runs: int, alpha: float, trials: int) -> Floats:
    """For each number of hits, what `runs` at that rate prove. A table: many events of many views ask for it."""
    return at_least(_cautious(trials) * runs, runs, alpha)


def tally(view: View, first: Floats, second: Floats) -> ViewTally:
    """Thresholds at quantiles of both samples together, dense in the tails, and the values that are frequent."""
    mine, theirs = np.sort(view.of(first)), np.sort(view.of(second))
    both = np.concatenate([mine, theirs])
    cuts = np.unique(np.quantile(both, _CUTS, method="nearest"))
    values, counts = np.unique(both, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_ATOMS]
    atoms = values[common[50 * counts[common] >= both.size]]
    events = [*(ViewEvent(1, float(c)) for c in cuts), *(ViewEvent(-1, float(c)) for c in cuts)]
    events += [ViewEvent(0, float(value)) for value in atoms]

    def hits(sample: Floats) -> NDArray[np.int64]:
        above = sample.size - np.searchsorted(sample, cuts, side="left")
        below = np.searchsorted(sample, cuts, side="right")
        exactly = np.searchsorted(sample, atoms, side="right") - np.searchsorted(sample, atoms, side="left")
        return np.concatenate([above, below, exactly]).astype(np.int64)

    return ViewTally(view, events, (hits(mine), hits(theirs)), (mine.size, theirs.size))


def candidates(
    learnt: Sequence[View], first: Floats, second: Floats, claims: Claims, alpha: float, *, runs: int, most: int
) -> list[Candidate]:
    """The events that look worst beside the claims, of all thresholds and values of all views."""
    tallies = [tally(view, first, second) for view in learnt]
    return list(worst(tallies, claims, alpha, runs=runs, most=most))


def worst(tallies: Sequence[ViewTally], claims: Claims, alpha: float, *, runs: int, most: int) -> Iterator[Candidate]:
    """The events that will look worst beside the claims after so many fresh runs. Where none will show anything,
    those whose rates differ most."""
    scored: dict[tuple[int, int, bool], Candidate] = {}  # events that happened equally often are one event
    for tally in tallies:
        for forward in (True, False):
            bounds, rates = tally.bounds(forward, runs, alpha), tally.rates(forward)
            ahead = np.max(
                [
                    lead(shown(*bounds, delta), claims[delta]) + 1e-3 * lead(shown(*rates, delta), claims[delta])
                    for delta in claims
                ],
                axis=0,
            )
            for i in np.argsort(-ahead, kind="stable")[:most]:
                seen = int(tally.hits[0][i]), int(tally.hits[1][i]), forward
                scored.setdefault(seen, Candidate(tally.view, tally.events[i], forward, float(ahead[i])))
    yield from sorted(scored.values(), key=lambda candidate: -candidate.score)[:most]
