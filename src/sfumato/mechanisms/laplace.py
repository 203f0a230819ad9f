"""The Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from .. import bounds, checks, events, exact
from ..checks import Exact
from ..laws import RoundedLaplace
from ..questions import PRICE
from ..record import record
from ..units import Unit
from .additive import Additive


@record("plan-laplace/1")
@dataclass(frozen=True, kw_only=True)
class Laplace(Additive):
    """Laplace noise on a bounded query.

    Guarantee: epsilon-DP for one change of the unit.
    Needs: a finite L1 sensitivity, which the query carries.
    Paper: Dwork, McSherry, Nissim, Smith 2006; on a grid as in Ghosh, Roughgarden, Sundararajan 2009.

    Proof sketch: with scale b >= l1/epsilon on every coordinate, the densities at any point differ between neighbours
    by a factor of at most prod exp(|x_i - x'_i| / b) = exp(||x - x'||_1 / b) <= exp(epsilon). Rounding to the grid is
    post-processing. b is rounded up to a float.
    """

    epsilon: Exact = field(metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        self._check_scale()

    @property
    def event(self) -> events.Laplace:
        return events.Laplace(epsilon=self.epsilon, relation=self.unit.change)

    @property
    def _scale(self) -> Fraction:
        return Fraction(self.query.l1) / self.epsilon

    def _law_in_steps(self, exponent: int) -> RoundedLaplace:
        return RoundedLaplace(exact.float_above(self.query.in_steps(exponent).l1 / self.epsilon))

    @classmethod
    def sample(cls) -> Laplace:
        return cls(query=bounds.clipped_sum("age", 0, 120, Unit("user:id"), per_unit=2), epsilon=1)

    @classmethod
    def counting(cls, unit: Unit, noise: Fraction) -> Laplace:
        return Laplace(query=bounds.count(unit), epsilon=1 / noise)
