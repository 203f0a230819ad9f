"""The geometric mechanism: whole counts stay whole."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from .. import bounds, checks, events, exact
from ..checks import Exact
from ..laws import SCALES, DiscreteLaplace
from ..questions import PRICE
from ..record import record
from ..units import Unit
from .additive import Additive


@record("plan-geometric/1")
@dataclass(frozen=True, kw_only=True)
class Geometric(Additive):
    """Two-sided geometric noise on whole counts, P(k) proportional to exp(-|k| epsilon / l1) on every count. Whole
    numbers leave.

    Guarantee: epsilon-DP for one change of the unit. For one count it is the best there is: for every loss function and
        every prior, an analyst loses least (Ghosh, Roughgarden, Sundararajan 2009).
    Needs: a query of whole numbers (count, histogram), with a finite L1 sensitivity, which the query carries. Where a
        histogram shares a user's rows out (more rows than `per_unit`, in several categories), each share is rounded
        down to a whole row; `Laplace` keeps the fractions.
    Paper: Ghosh, Roughgarden, Sundararajan 2009.

    Proof sketch: counts that move by d change the probability of an outcome by a factor of at most
    prod exp(|d_i|/scale) = exp(|d|_1/scale), and scale >= l1/epsilon. l1 is rounded up to a whole number, the scale to
    a float. Rounding a unit's shares down only shrinks what it brings, and l1 bounds that in whole rows as well.
    """

    epsilon: Exact = field(metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        if not self.query.whole or self.query.coarsest is None or self.query.coarsest < 0:
            raise checks.refuse(
                "query", type(self.query).__name__, "a query of whole numbers, such as bounds.count(unit); else Laplace"
            )
        if not SCALES[0] <= self._scale <= SCALES[1] / 2:
            raise checks.refuse("epsilon", float(self.epsilon), "an epsilon with l1/epsilon from 2^-12 to 2^39")

    @property
    def _shift(self) -> int:
        return math.ceil(self.query.in_steps(0).l1)

    @property
    def event(self) -> events.DiscreteLaplace:
        return events.DiscreteLaplace(epsilon=self.epsilon, shift=self._shift, relation=self.unit.change)

    @cached_property
    def exponent(self) -> int:
        return 0

    @property
    def _scale(self) -> Fraction:
        return self._shift / self.epsilon

    def _law_in_steps(self, exponent: int) -> DiscreteLaplace:
        return DiscreteLaplace(exact.float_above(self._scale))

    def width(self, alpha: float) -> float:
        """As in Additive, without half a step: nothing was rounded."""
        return float(self.law.half_width(alpha / self.query.combined))

    @classmethod
    def sample(cls) -> Geometric:
        return cls(query=bounds.histogram("ward", ("east", "north", "west"), Unit("user:id"), per_unit=2), epsilon=1)
