"""Two further ways to read the same counts: the hockey-stick divergence at each epsilon, and Rényi divergences.

Both choose events on one part of the samples, and both are judged by the Clopper-Pearson bounds P(E) >= low and
P'(E) <= high that every event of the audit gets; so they add events to the list, and no new kind of error.

Hockey stick   The least delta at epsilon is sup_E P(E) - e^epsilon P'(E), reached by E = {ln P/P' > epsilon}. The event
               is the union of the cells of a histogram whose ratio exceeds e^epsilon; low - e^epsilon high bounds delta
               from below. (Kong, Medina, Ribero, Syed, "DP-Auditorium" 2023, estimate the same divergence.)
Rényi          A partition of the outputs has no larger Rényi divergence than the outputs (data processing, van Erven
               and Harremoës 2014, Theorem 1). For the partition {E, not E} it is that of two coins,
                   D_a(p, q) = 1/(a - 1) ln(p^a q^(1-a) + (1 - p)^a (1 - q)^(1-a)),
               which for p >= q rises with p and falls with q: dD/dp has the sign of (p/q)^(a-1) - ((1-p)/(1-q))^(a-1),
               dD/dq that of ((1-p)/(1-q))^a - (p/q)^a. So D_a(low, high) is a lower bound where low >= high, else 0.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..accounting import renyi
from ..errors import UnsupportedEventError
from ..events import Event
from .counting import Claims, Floats
from .results import Found
from .telling import Candidate, ViewTally
from .telling import ViewEvent as Cut

ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)
_LARGEST_EPSILON = 50.0  # no number of runs shows more


def hockey_sticks(
    tallies: Sequence[ViewTally], claims: Claims, alpha: float, *, runs: int, most: int
) -> list[Candidate]:
    """For the points of the claimed curve, the union of cells that looks worst there."""
    scored: list[Candidate] = []
    for tally in tallies:
        for forward in (True, False):
            low, high = tally.bounds(forward, runs, alpha)
            for delta, epsilon in claims.items():
                if epsilon < _LARGEST_EPSILON:
                    over = low - math.exp(epsilon) * high - delta
                    best = int(np.argmax(over))
                    scored.append(Candidate(tally.view, tally.events[best], forward, float(over[best])))
    scored.sort(key=lambda candidate: -candidate.score)
    return list(_different(scored))[:most]


def hockey_stick(low: float, high: float, epsilon: float) -> float:
    """The delta at epsilon that P(E) >= low and P'(E) <= high prove."""
    return max(low - math.exp(epsilon) * high, 0.0) if epsilon < _LARGEST_EPSILON else 0.0


def sticks_found(judged: Sequence[tuple[float, float]], claims: Claims) -> Found | None:
    """The point of the claimed curve at which most delta is proven, beside what is allowed there."""
    rows = [
        (hockey_stick(low, high, epsilon) - delta, hockey_stick(low, high, epsilon), delta, epsilon, low, high)
        for low, high in judged
        for delta, epsilon in claims.items()
        if epsilon < _LARGEST_EPSILON
    ]
    if not rows:
        return None
    over, proven, delta, epsilon, low, high = max(rows)
    shown = math.log(max(low - delta, 1e-300) / max(high, 1e-300))
    words = f"delta >= {proven:.4g} at epsilon = {epsilon:.4g}, where {delta:.3g} is claimed"
    return Found("hockey stick", max(shown, 0.0), epsilon, delta, words, over > 0)


def claimed_divergences(event: Event) -> dict[float, float]:
    """The accountant's Rényi curve; empty where it has none."""
    curve: dict[float, float] = {}
    for order in ORDERS:
        with contextlib.suppress(UnsupportedEventError):
            value = renyi.divergence(event, order)
            if math.isfinite(value):
                curve[order] = value
    return curve


def coins(low: Any, high: Any, order: float) -> Floats:
    """D_a of two coins, 0 where low < high. A sure coin against a coin that never falls has no finite divergence, and
    Clopper-Pearson bounds never say so: they are kept inside (0, 1)."""
    p = np.clip(np.asarray(low, dtype=np.float64), 1e-300, 1 - 1e-16)
    q = np.clip(np.asarray(high, dtype=np.float64), 1e-300, 1 - 1e-16)
    one = order * np.log(p) + (1 - order) * np.log(q)
    other = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
    return np.asarray(np.where(p > q, np.maximum(np.logaddexp(one, other), 0.0) / (order - 1), 0.0))


def divergences(
    tallies: Sequence[ViewTally], claimed: Mapping[float, float], alpha: float, *, runs: int, most: int
) -> list[Candidate]:
    """The coins that look worst beside the claimed Rényi curve."""
    scored: list[Candidate] = []
    for tally in tallies:
        for forward in (True, False):
            low, high = tally.bounds(forward, runs, alpha)
            for order, claim in claimed.items():
                share = coins(low, high, order) / max(claim, 1e-12)
                best = int(np.argmax(share))
                scored.append(Candidate(tally.view, tally.events[best], forward, float(share[best])))
    scored.sort(key=lambda candidate: -candidate.score)
    return list(_different(scored))[:most]


def divergence_found(judged: Sequence[tuple[float, float]], claimed: Mapping[float, float]) -> Found | None:
    """The order at which most divergence is proven, beside what is claimed there."""
    rows = [
        (float(coins(low, high, order)) / max(claim, 1e-12), order, float(coins(low, high, order)), claim)
        for low, high in judged
        for order, claim in claimed.items()
    ]
    if not rows:
        return None
    _, order, proven, claim = max(rows)
    words = f"Rényi divergence of order {order:g} >= {proven:.4g}, where {claim:.4g} is claimed"
    return Found("renyi", proven, claim, 0.0, words, proven > claim * (1 + 1e-9))


def _different(scored: Sequence[Candidate]) -> Iterator[Candidate]:
    seen: set[tuple[int, Cut, bool]] = set()
    for candidate in scored:
        mark = (id(candidate.view), candidate.event, candidate.forward)
        if mark not in seen:
            seen.add(mark)
            yield candidate
