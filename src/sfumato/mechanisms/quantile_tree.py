"""All quantiles of a column at once, from noisy counts in a tree of intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, grid
from ..bounds import EqualBins, Measured
from ..checks import Exact
from ..errors import ArgumentError
from ..events import Event
from ..plan import Plan, Run
from ..questions import ANY_ORDER, CLIP, PRICE, REACH
from ..record import record
from ..rows import Rows
from ..strategies import Prefixes, Tree, best_tree
from ..units import Unit, rows_or_users
from .additive import Additive
from .gaussian import Gaussian
from .laplace import Laplace

Floats = NDArray[np.float64]

_MOST_RANKS = 1000
_HANDFUL = tuple(Fraction(each, 100) for each in (5, 25, 50, 75, 95))


@record("plan-quantile-tree/1")
@dataclass(frozen=True, kw_only=True)
class QuantileTree(Plan[Rows, Floats]):
    """Every quantile of a column's values, each clamped to [lower, upper]; NULLs count as absent.

    q         the quantiles that are shown, above 0 and below 1; `at` reads any others off the same release, free
    leaves    intervals of equal width that the values are counted in; answers are interpolated inside them
    per_unit  a unit's rows count with weight min(1, per_unit / its rows) each, so with at most per_unit in all
    tree      which sums of leaves are measured; without it, those with the least error of a running total

    Say how much noise in one way: `epsilon` alone (Laplace noise), or `epsilon` with `delta`, `rho` or `multiplier`
    (Gaussian noise).

    Guarantee: that of Laplace or Gaussian noise on a measured histogram, whose event this is.
    Needs: an interval known in public.
    Paper: Hay, Rastogi, Miklau, Suciu 2010 (noisy trees); Dwork, Naor, Pitassi, Rothblum 2010 (error that grows with
        the log of the size only); Qardaji, Yang, Li 2013 (which branching).

    Proof sketch: rows are counted in `leaves` intervals; a unit's counts are scaled down together so that they add up
    to at most per_unit. Each count, and sums of them up a tree, get noise for what one unit moves all of them together
    (`Measured`). Quantiles are read off the estimated running totals: post-processing.
    """

    column: str
    lower: Exact = field(metadata=CLIP)
    upper: Exact = field(metadata=CLIP)
    protects: Unit = field(metadata=PRICE)
    q: tuple[Exact, ...] = field(default=_HANDFUL, metadata=ANY_ORDER)
    leaves: int = field(default=2**14, metadata=PRICE)
    per_unit: int = field(default=1, metadata=REACH)
    epsilon: Exact = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    rho: Exact = field(default=None, metadata=PRICE)
    multiplier: Exact = field(default=None, metadata=PRICE)
    tree: Any = field(default=None, metadata=PRICE)
    family = "quantile"

    def __post_init__(self) -> None:
        rows_or_users(self.protects, "protects")
        object.__setattr__(self, "q", _ranks(self.q))
        object.__setattr__(self, "leaves", checks.whole(self.leaves, "leaves", least=2, most=2**20))
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        if self.tree is None:
            best = best_tree(self.leaves, "laplace" if self._pure else "gaussian", change=self.protects.change)
            object.__setattr__(self, "tree", best)
        checks.instance(self.tree, Tree, "tree", "a strategies.Tree, or None for the best one")
        # The parts check the rest, and give it back as they hold it.
        for name in ("lower", "upper", "per_unit"):
            object.__setattr__(self, name, getattr(self._bins, name))
        for name in ("epsilon", "rho", "multiplier"):
            object.__setattr__(self, name, getattr(self.noisy, name, None))

    @cached_property
    def _bins(self) -> EqualBins:
        return EqualBins(
            column=self.column,
            lower=self.lower,
            upper=self.upper,
            count=self.leaves,
            unit=self.protects,
            per_unit=self.per_unit,
        )

    @property
    def _pure(self) -> bool:
        return not self.delta and self.rho is None and self.multiplier is None

    @cached_property
    def noisy(self) -> Laplace | Gaussian:
        """Noise on the tree of counts, with running totals for answers."""
        if self.epsilon is None and self.rho is None and self.multiplier is None:
            raise ArgumentError("say how much noise in one way: epsilon, epsilon with delta, rho, or multiplier.")
        query = Measured(unit=self.unit, query=self._bins, strategy=self.tree, workload=Prefixes(cells=self.leaves))
        if self._pure:
            return Laplace(query=query, epsilon=self.epsilon)
        return Gaussian(query=query, epsilon=self.epsilon, delta=self.delta, rho=self.rho, multiplier=self.multiplier)

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> Event:
        return self.noisy.event

    @property
    def children(self) -> tuple[Additive]:
        return (self.noisy,)

    def _run(self, rows: Rows, run: Run) -> Floats:
        steps = self.noisy.query.steps(rows, self.noisy.exponent)
        return grid.to_float(steps + run.noise.draw(self.noisy.law, steps.size), self.noisy.exponent)

    def finish(self, raw: Floats) -> dict[float, float]:
        return self.at(raw, self.q)

    def at(self, raw: Floats, q: Iterable[Any]) -> dict[float, float]:
        """Any quantiles of a release, free: they never fall as q grows."""
        ranks = [float(each) for each in _ranks(q)]
        return dict(zip(ranks, self._values(self._totals(raw), np.array(ranks)).tolist(), strict=True))

    def _estimated(self, raw: Floats) -> Floats:
        """Rows below each edge, without bias."""
        return np.append(0.0, np.cumsum(self.tree.estimate(np.asarray(raw, dtype=np.float64))))

    def _totals(self, raw: Floats) -> Floats:
        """The same, never falling, from 0 to the estimate of all. Where no estimate is off by more than E, none of
        these is: a true total is at least every true total before it, and at most every one after."""
        rough = self._estimated(raw)
        rising = np.maximum.accumulate(rough) + np.minimum.accumulate(rough[::-1])[::-1]
        return np.maximum(np.minimum(rising / 2, rough[-1]), 0.0)

    def _values(self, totals: Floats, ranks: Floats) -> Floats:
        edges, wanted = self._bins.cuts, ranks * totals[-1]
        if totals[-1] <= 0:  # noise hides whatever rows there are
            return np.asarray(edges[0] + ranks * (edges[-1] - edges[0]))
        leaf = np.searchsorted(totals, wanted, side="left").clip(1, self.leaves)
        below, above = totals[leaf - 1], totals[leaf]
        part = (wanted - below) / np.where(above > below, above - below, 1.0)
        return np.asarray(edges[leaf - 1] + part.clip(0, 1) * (edges[leaf] - edges[leaf - 1]))

    def rank_error(self, alpha: float) -> float:
        """With probability 1 - alpha, for all quantiles at once: an answer lies in an interval of the tree's leaves
        that holds an exact quantile of another rank, with q n off by at most so many rows (by weight)."""
        widths = self._widths(alpha / self.leaves)
        return float(widths.max() + widths[-1])

    def _widths(self, alpha: float) -> Floats:
        """P(an estimated running total is off by more) <= alpha, for each."""
        widths = self.noisy.mixed_widths(alpha)
        assert widths is not None
        return np.append(0.0, widths)

    def error(self, raw: Floats, alpha: float) -> dict[float, float]:
        """How far from each answer the true quantile of the clamped values may be.

        It is in the leaf where F(j - 1) < q N <= F(j), for true totals F and N = F(end). With probability 1 - alpha the
        estimates of F - q N at both edges of that leaf are off by less than their widths at alpha/2, so the leaf is one
        of those that the estimates do not rule out; the bar reaches to the furthest of them.
        """
        rough, edges = self._estimated(raw), self._bins.cuts
        bars: dict[float, float] = {}
        for q, value in self.finish(raw).items():
            gap, width = rough - q * rough[-1], self._gap_widths(q, alpha / 2)
            leaves = np.flatnonzero((gap[:-1] <= width[:-1]) & (gap[1:] >= -width[1:]))
            low, high = (edges[leaves[0]], edges[leaves[-1] + 1]) if leaves.size else (edges[0], edges[-1])
            bars[q] = float(max(value - low, high - value))
        return bars

    @cached_property
    def _norms(self) -> tuple[Floats, Floats]:
        """Of the weights of measurements in the totals below each edge, and above it: rows l1, l2, linf."""
        below = np.array(self.noisy.query.mixing)
        above = np.array(self.tree.prefix_norms(np.arange(self.leaves), -1.0))
        nothing = np.zeros((3, 1))
        return np.concatenate([nothing, below], axis=1), np.concatenate([below[:, -1:], above], axis=1)

    def _gap_widths(self, q: float, alpha: float) -> Floats:
        """P(the estimate of F - q N at an edge is off by more) <= alpha. With p for the weights of F and t for those of
        N, p - q t = (1 - q) p - q (t - p): norms are convex, and the square of l2 is known exactly."""
        below, above = self._norms
        l1, l2, linf = (1 - q) * below + q * above
        square = (1 - q) * below[1] ** 2 + q * above[1] ** 2 - q * (1 - q) * below[1, -1] ** 2
        l2 = np.minimum(l2, np.sqrt(np.maximum(square, 0.0)) + 1e-9)
        # Rounded up to a percent, most norms are the same. (And l1 by two: it stays above linf.)
        high, low = np.ceil(100 * np.log(np.maximum([l2, linf], 1e-9))).astype(np.int64)
        pairs, place = np.unique(high * 2**20 + (low + 2**19), return_inverse=True)
        sizes = np.exp(np.array([pairs >> 20, (pairs & (2**20 - 1)) - 2**19]) / 100)
        widths = self.noisy.law.mixed_half_width(1.02 * l1.max(), sizes[0], sizes[1], alpha)
        return widths[place.reshape(-1)] * 2.0**self.noisy.exponent

    def explain(self) -> list[str]:
        return [
            f"count {self.column} in {self.leaves} intervals from {float(self.lower):g} to {float(self.upper):g}; "
            "values outside count in the outer ones",
            f"add the counts up in groups of {self.tree.branching}, and those again: {self.tree.height} levels",
            *self.noisy.explain()[1:],
            "make the counts consistent, and read the quantiles off the running totals: ranks are within "
            f"{self.rank_error(0.05):.4g} rows at 95 %, all at once",
        ]

    @classmethod
    def sample(cls) -> QuantileTree:
        return cls(column="age", lower=0, upper=120, epsilon=1, leaves=4, protects=Unit(change="replace"))


def _ranks(q: Any) -> tuple[Fraction, ...]:
    allowed = f"a list of 1 to {_MOST_RANKS} different numbers above 0 and below 1"
    if isinstance(q, str | bytes) or not isinstance(q, Iterable):
        raise checks.refuse("q", q, allowed)
    ranks = tuple(checks.rational(each, "q", allowed) for each in q)
    different = {float(each) for each in ranks}
    if not 1 <= len(ranks) <= _MOST_RANKS or len(different) < len(ranks) or not all(0 < each < 1 for each in different):
        raise checks.refuse("q", q, allowed)
    return ranks
