"""Running totals of what steps add, measured step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .. import checks, questions
from ..questions import PRICE
from ..record import record
from ..strategies import Causal, Prefixes
from .base import Bounded, Sensitivity
from .increments import Increments
from .measured import Measured


@record("running/1")
@dataclass(frozen=True, kw_only=True)
class Running(Measured):
    """The running totals of an increments query, from noisy measurements of a causal strategy.

    What a unit moves: without a separation, `per_unit` rows at most, which may all be in one step: see Measured. With
    one, at most `times` rows in different steps that are `separation` apart: what the strategy says such rows move. No
    entry of a causal strategy is negative; so where a unit is exchanged, two vectors u and v >= 0 take each other's
    place, and |u - v|_1 <= |u|_1 + |v|_1, |u - v|_2^2 <= |u|_2^2 + |v|_2^2, |u - v|_inf <= max(|u|_inf, |v|_inf).
    """

    query: Increments
    strategy: Causal = field(metadata=PRICE)
    workload: Prefixes

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance(self.query, Increments, "query", "an increments query: bounds.increments(...)")
        checks.instance(self.strategy, Causal, "strategy", "SquareRoot, Banded or StepTree of sfumato.strategies")
        checks.instance(self.workload, Prefixes, "workload", "strategies.Prefixes(cells=...)")

    def asks(self) -> Any:
        """The same numbers as its query, added up."""
        return questions.of(self.query)

    @property
    def sensitivity(self) -> Sensitivity:
        if self.query.separation is None:
            return super().sensitivity
        reach = self.strategy.spaced(self.query.times, self.query.separation)
        step, two = Fraction(1, 2**self.strategy.bits), 2 if self.unit.change == "replace" else 1
        return Sensitivity(two * step * reach.l1, two * step**2 * reach.l2_squared, step * reach.linf)

    def in_steps(self, exponent: int) -> Sensitivity:
        # Counts are exact on every grid that is fine enough for them, so nothing is added for rounding.
        return Bounded.in_steps(self, exponent) if self.query.separation is not None else super().in_steps(exponent)
