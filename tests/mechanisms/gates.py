"""The exact law of what a sparse vector tells, from its definition: a sum over the noise on the threshold."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from sfumato.mechanisms.thresholds import Gate


def sequences(length: int, count: int) -> list[tuple[int, ...]]:
    """Everything that `length` questions can be told, with at most `count` crossings, after which nothing is told."""
    found = set()
    for told in product((0, 1), repeat=length):
        crossings = np.cumsum(told)
        ends = np.flatnonzero(crossings == count)
        found.add(told[: int(ends[0]) + 1] if ends.size else told)
    return sorted(found)


def chances(gate: Gate, values: Any, length: int | None = None) -> dict[tuple[int, ...], float]:
    """P(told) for every sequence; `values` are in steps."""
    values = np.asarray(values, dtype=np.float64)
    reach = int(30 * gate.threshold_law.spread) + 3
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = gate.threshold_law.pmf(z)
    above = np.array([gate.query_law.sf(z - v - 1) for v in values])  # noise >= z - v
    below = np.array([gate.query_law.cdf(z - v - 1) for v in values])
    out = {}
    for told in sequences(len(values), gate.count):
        density = weight.copy()
        for i, each in enumerate(told):
            density *= above[i] if each else below[i]
        out[told] = float(density.sum())
    return out


def chance(gate: Gate, values: Any, told: Any) -> float:
    """P(told) for one sequence."""
    reach = int(30 * gate.threshold_law.spread) + 3
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    density = gate.threshold_law.pmf(z)
    for v, each in zip(values, told, strict=True):
        density = density * (gate.query_law.sf(z - v - 1) if each else gate.query_law.cdf(z - v - 1))
    return float(density.sum())


def loss(gate: Gate, values: Any, others: Any) -> float:
    """The largest |log ratio| over all sequences."""
    here, there = chances(gate, values), chances(gate, others)
    return max(abs(float(np.log(here[told] / there[told]))) for told in here)
