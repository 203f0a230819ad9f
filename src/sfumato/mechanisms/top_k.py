"""The best k of public candidates, by one-shot Gumbel noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from .. import bounds, checks, events
from ..plan import Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..units import Unit
from .selection import Scored


@record("plan-top-k/1")
@dataclass(frozen=True, kw_only=True)
class TopK(Scored[list[int]]):
    """The k candidates with the largest score plus Gumbel noise, the best first.

    The rate is epsilon/(2 k linf), without the 2 where one change of the unit moves all scores the same way.

    Guarantee: epsilon-DP; priced as k exponential mechanisms of epsilon/k, so less than epsilon once a delta is named.
    Needs: a finite L-infinity sensitivity, which the query carries; candidates known in public, at least k of them.
    Paper: Durfee, Rogers 2019 (one shot equals peeling); Dong, Durfee, Rogers 2020 (composition of bounded range).

    Proof sketch. One shot is k selections one after the other, each among those that are left (peeling). With G_i = -ln
    E_i for independent exponential E_i, the totals s_i + G_i are in the order of falling -ln(E_i e^-s_i): the order of
    arrival of independent exponential clocks of rates e^s_i. The first to ring is i with probability e^s_i / sum_j
    e^s_j; given that and when, the clocks that have not rung start afresh (no memory), so the next is j with
    probability e^s_j / (the sum without i), and so on. So P(i_1, ..., i_k) is the product of k exponential mechanisms'
    probabilities. Each step, whatever came before, is the exponential mechanism on fewer candidates, whose scores move
    no further: (epsilon/k)-bounded-range. Adaptive composition of these is priced by the Repeat, whose curves (the sum
    of epsilons; rho; a pair that dominates every bounded-range mechanism) all hold for adaptive choice.
    """

    k: int = field(metadata=PRICE)
    boxes = (14,)  # bins that come from the data

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "k", checks.whole(self.k, "k", most=len(self.query.names)))
        if self.epsilon / self.k < checks.EPSILON_RANGE[0]:
            raise checks.refuse("k", self.k, "fewer winners, or a larger epsilon: each has epsilon/k of at least 1e-9")

    @property
    def event(self) -> events.Event:
        single = events.Exponential(epsilon=self.epsilon / self.k, relation=self.unit.change)
        return single if self.k == 1 else events.Repeat(single, self.k)

    @cached_property
    def rate(self) -> Fraction:
        """Log-odds per step of score, in each of the k selections."""
        return self.epsilon / (self.k * self.span)

    def _run(self, rows: Rows, run: Run) -> list[int]:
        return run.noise.top(self._scores(rows), self.k, scale=self.rate)

    def finish(self, raw: list[int]) -> list[Any]:
        return [self.query.names[i] for i in raw]

    def expected_error(self, alpha: float) -> float:
        """With probability 1 - alpha, for all places at once, the candidate named in the j-th place scores at most this
        far below the j-th best score: among those left there is always one that scores as much."""
        if not 0 < alpha < 1:
            raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
        return math.log(len(self.query.names) * self.k / alpha) / float(self.rate) * 2.0**self._exponent

    def error(self, raw: list[int], alpha: float) -> list[float]:
        return [self.expected_error(alpha)] * self.k

    def explain(self) -> list[str]:
        return [
            f"score {len(self.query.names)} candidates by {type(self.query).__name__.lower()}; one change of the unit "
            f"moves a score by at most {self.query.linf:g}" + (", all the same way" if self.query.monotone else ""),
            f"add gumbel noise to each score, once, and name the first {self.k} in order, nothing else: as {self.k} "
            f"exponential mechanism(s) of epsilon {float(self.epsilon / self.k):.4g}",
        ]

    @classmethod
    def sample(cls) -> TopK:
        return cls(query=bounds.votes("ward", ("east", "north", "west"), Unit("user:id")), epsilon=1, k=2)
