"""How many rows a unit should count with, chosen privately."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from .. import checks, events
from ..checks import Exact
from ..plan import Plan, Run
from ..questions import FINE, PRICE, REACH
from ..record import record
from ..rows import Rows
from ..units import Unit, rows_or_users
from . import ranking
from .ranking import RankedRows


@record("plan-contribution-limit/1")
@dataclass(frozen=True, kw_only=True)
class ContributionLimit(Plan[Rows, int]):
    """A limit that a share q of the units stays within: the q-quantile of rows per unit, out of 1, ..., most.

    Use it as the `per_unit` of later queries. A unit's rows all count here, NULLs among them.

    Guarantee: epsilon-DP, and epsilon-bounded-range.
    Needs: a unit of many rows (`user:<column>`); the largest limit to consider, in public.
    Paper: Smith 2011 (quantiles); Amin, Kulesza, Munoz Medina, Vassilvitskii 2019 (choosing a limit by a quantile).

    Proof sketch: a unit has one value, its number of rows, clamped to 1..most: weight 1 at one point of the grid. The
    rest is the lemma of `ranking`, with span 2 max(q, 1 - q), or 2 under replace, or 1 at q = 0 and q = 1. (Under
    zero-out a unit keeps its rows, so nothing moves at all.)
    """

    most: int = field(metadata=REACH)
    q: Exact = field(default=Fraction(95, 100), metadata=FINE)
    epsilon: Exact = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)

    def __post_init__(self) -> None:
        rows_or_users(self.protects, "protects")
        if self.unit.column is None:
            raise checks.refuse("protects", self.protects, "a unit of many rows, such as Unit('user:id')")
        object.__setattr__(self, "most", checks.whole(self.most, "most", least=2, most=2**18))
        object.__setattr__(self, "q", ranking.rank(self.q, "q"))
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.Exponential:
        return events.Exponential(epsilon=self.epsilon, relation=self.unit.change)

    @property
    def rate(self) -> Fraction:
        """Log-odds per step of score, which is 1/q.denominator of a unit."""
        return Fraction(self.epsilon / (ranking.span(self.q, self.unit.change) * self.q.denominator * self.unit.group))

    def _run(self, rows: Rows, run: Run) -> int:
        owned = np.bincount(rows.units, minlength=rows.unit_count).astype(np.int64)
        ranked = RankedRows.of(self.most, np.clip(owned, 1, self.most) - 1, None)
        return 1 + ranked.choose(self.q, self.rate, run)

    def rank_error(self, alpha: float) -> float:
        """With probability 1 - alpha, the share q of units is met but for at most so many units."""
        return ranking.rank_error(self.most, self.rate, alpha) / self.q.denominator

    def explain(self) -> list[str]:
        return [
            f"count the rows of every {self.unit.column}, up to {self.most}",
            f"draw a limit by the exponential mechanism: a share of {float(self.q):g} of units stays within it, but "
            f"for {self.rank_error(0.05):.4g} units at 95 %",
        ]

    @classmethod
    def sample(cls) -> ContributionLimit:
        return cls(most=6, q=0.9, epsilon=1, protects=Unit("user:id"))
