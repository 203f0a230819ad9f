"""How much of the budget each table of a `Nested` strategy gets, so that the total squared error is least.

With shares p the total is sum over residuals t of c_t / pi_t(p), where c_t is what all queries ask of it and pi_t is
linear in p (Gaussian noise) or in p^2 (Laplace noise). For Gaussian noise this is convex, and an A-optimal design: the
rule p <- p sqrt(-gradient), made to add up to 1, lowers it at every step (Yu 2010). For Laplace noise the same rule
with a third root finds a point where the gradient is even, from several starts; it may be a local optimum.

Nothing here touches data or a price: a bad optimum costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .base import Floats
from .nested import Level, Nested, NestedColumn, exact_shares

MOST_TABLES = 3000
_ROUNDS, _CLOSE = 400, 1e-4
_NOTHING = {"gaussian": 2e-4, "laplace": 5e-3}  # noise that is hundreds of times wider tells nothing


@dataclass(frozen=True, eq=False)
class Demand:
    """The queries of one table: its columns, and for each of them the sum of |Q_t q|^2 over its queries, by level."""

    columns: tuple[int, ...]
    energies: tuple[Floats, ...]

    def finest(self, columns: Sequence[NestedColumn]) -> Level:
        return tuple(len(column.groups) - 1 if place in self.columns else 0 for place, column in enumerate(columns))


def best_shares(groups: tuple[tuple[int, ...], ...], demands: Sequence[Demand], noise: str, most: int) -> Nested | None:
    """The strategy over these groups, with tables of at most `most` numbers in all. None where there is none."""
    columns = tuple(map(NestedColumn, groups))
    asked_for = [demand.finest(columns) for demand in demands]
    levels = _within(asked_for)
    if len(levels) > MOST_TABLES:
        return None
    tables = list(levels)
    union = tuple(map(max, zip(*asked_for, strict=True)))
    if union not in levels and math.prod(c.groups[level] for c, level in zip(columns, union, strict=True)) <= most:
        tables.append(union)
    finer = _finer(tables, levels)
    gains = finer * np.array([math.prod(c.least(level) for c, level in zip(columns, t, strict=True)) for t in tables])
    wanted = _asked(columns, demands, levels)
    starts = [np.ones(len(tables))] if noise == "gaussian" else _starts(tables, asked_for)
    ends = [_descend(wanted, gains, start, noise) for start in starts]
    weights = min(ends, key=lambda pair: pair[0])[1]
    chosen = _kept(weights, gains, _NOTHING[noise])
    shares = exact_shares([float(weights[place]) for place in chosen])
    strategy = Nested(groups=groups, tables=tuple(tables[place] for place in chosen), shares=shares)
    return strategy if strategy.measurements <= most else None


def total_squared(strategy: Nested, demands: Sequence[Demand], noise: str) -> float:
    """The total squared error of all queries, in units of the noise of a table that is measured alone."""
    total = 0.0
    for demand in demands:
        single = [energies[:, None] for energies in demand.energies]
        total += float(strategy.squared(demand.columns, single, noise).sum())
    return total


def _within(tables: Sequence[Level]) -> list[Level]:
    """All levels that are no finer than one of these."""
    below = (product(*(range(level + 1) for level in table)) for table in tables)
    return sorted({level for levels in below for level in levels})


def _finer(tables: Sequence[Level], levels: Sequence[Level]) -> NDArray[np.bool_]:
    """Which tables tell of which residuals."""
    return np.asarray((np.array(tables)[None, :, :] >= np.array(levels)[:, None, :]).all(axis=2))


def _asked(columns: Sequence[NestedColumn], demands: Sequence[Demand], levels: Sequence[Level]) -> Floats:
    """c_t: the sum over all queries of |Q_t q|^2."""
    place = {level: at for at, level in enumerate(levels)}
    wanted = np.zeros(len(levels))
    for demand in demands:
        rest = math.prod(column.cells for at, column in enumerate(columns) if at not in demand.columns)
        for level in product(*(range(top + 1) for top in demand.finest(columns))):
            pairs = zip(demand.columns, demand.energies, strict=True)
            wanted[place[level]] += rest * math.prod(float(energies[level[at]]) for at, energies in pairs)
    return wanted


def _starts(tables: Sequence[Level], wanted: Sequence[Level]) -> list[Floats]:
    """All alike; hardly any but those that are asked; hardly any but the last, which may be all columns together."""
    even = np.ones(len(tables))
    mostly = np.array([1.0 if table in wanted else 0.01 for table in tables])
    last = np.full(len(tables), 0.01)
    last[-1] = 1.0
    return [even, mostly, last]


def _descend(wanted: Floats, gains: Floats, start: Floats, noise: str) -> tuple[float, Floats]:
    power, root = (1, 0.5) if noise == "gaussian" else (2, 1 / 3)
    shares = start / start.sum()
    best, least = shares, math.inf
    for _ in range(_ROUNDS):
        learnt = gains @ shares**power
        cost = float((wanted / learnt).sum())
        if cost < least:
            best, least = shares, cost
        slope = ((wanted / learnt**2) @ gains) * shares ** (power - 1)
        if float(slope.max()) <= (1 + _CLOSE) * float(slope @ shares):
            break
        shares = shares * slope**root
        shares = np.maximum(shares / shares.sum(), 1e-12)
        shares = shares / shares.sum()
    return least, best


def _kept(weights: Floats, gains: Floats, nothing: float) -> list[int]:
    """Tables that get more than next to nothing, and enough of them that every residual is told."""
    chosen = np.flatnonzero(weights / weights.sum() >= nothing).tolist()
    for residual in np.flatnonzero(gains[:, chosen].sum(axis=1) == 0).tolist():
        if not gains[residual, chosen].any():
            chosen.append(int(np.argmax(weights * (gains[residual] > 0))))
    return sorted(chosen)
