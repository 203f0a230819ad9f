"""A few mechanisms of a few outcomes each: the law of the summed loss, outcome by outcome.

How often each atom of a mechanism comes out in n runs is multinomial; the losses of different mechanisms are added in
all combinations. For mechanisms of which only epsilon is known this is optimal composition of unlike ones (Murtagh and
Vadhan 2016, Theorem 1.5): it is hard in general, and short where there are few kinds and few runs. What is longer goes
to the lattice (pld.py).

Masses are products of at most `_MOST_RUNS` factors, each right to a few roundings: together to `lattice.SLACK`. A sum
of losses is off by a few roundings of the sum of their sizes, which is what `shift` bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from . import single
from .interval import Interval
from .pairs import Floats, Loss

_MOST_RUNS = 200
_MOST_OUTCOMES = 1 << 18


@dataclass(frozen=True)
class Few:
    """The law of the sum; every loss of it is within `shift` of the true one."""

    law: Loss
    shift: float

    def delta(self, epsilon: float) -> Interval:
        least = single.delta(self.law, epsilon + self.shift).lower
        return Interval(least, single.delta(self.law, epsilon - self.shift).upper)

    def epsilon(self, target: float) -> Interval:
        interval = single.epsilon(self.law, target)
        return Interval(max(interval.lower - self.shift, 0.0), interval.upper + self.shift if interval.upper else 0.0)


def few(parts: Sequence[tuple[Loss, int]]) -> Few | None:
    """The law of the sum of these losses; None where they are smooth, or too many."""
    if any(law.pieces for law, _ in parts) or sum(times for _, times in parts) > _MOST_RUNS:
        return None
    if math.prod(math.comb(times + law.atoms.size - 1, times) for law, times in parts) > _MOST_OUTCOMES:
        return None
    losses, masses = np.zeros(1), np.ones(1)
    for law, times in parts:
        more, shares = _runs(law, times)
        losses = np.add.outer(losses, more).ravel()
        masses = np.multiply.outer(masses, shares).ravel()
    largest = sum(times * float(np.abs(law.atoms).max()) for law, times in parts)
    infinite = -math.expm1(sum(times * math.log1p(-law.infinite) for law, times in parts))
    cut = sum(times * law.cut for law, times in parts)
    law = Loss(losses, masses, (), infinite * (1 - 1e-12), cut + 2e-12 * infinite)
    return Few(law, 1e-14 * largest)


def _runs(law: Loss, times: int) -> tuple[Floats, Floats]:
    """The summed losses of so many runs of one mechanism, and their masses."""
    counts = np.array(list(_counts(law.atoms.size, times)), dtype=np.float64)
    ways = np.array([_ways(row) for row in counts.astype(np.int64).tolist()])
    return counts @ law.atoms, ways * np.prod(law.masses**counts, axis=1)


def _counts(kinds: int, times: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield (times,)
        return
    for first in range(times + 1):
        for rest in _counts(kinds - 1, times - first):
            yield (first, *rest)


def _ways(counts: list[int]) -> float:
    left, ways = sum(counts), 1
    for count in counts:
        ways, left = ways * math.comb(left, count), left - count
    return float(ways)
