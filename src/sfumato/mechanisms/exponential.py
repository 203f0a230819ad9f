"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import bounds, events
from ..noise.race import Kind
from ..record import record
from ..units import Unit
from .selection import Selection


@record("plan-exponential/1")
@dataclass(frozen=True, kw_only=True)
class Exponential(Selection):
    """The candidate i wins with probability proportional to exp(epsilon * score_i / (2 linf)); without the 2 where one
    change of the unit moves all scores the same way.

    Guarantee: epsilon-DP, and epsilon-bounded-range.
    Needs: a finite L-infinity sensitivity, which the query carries; candidates known in public.
    Paper: McSherry, Talwar 2007; bounded range: Durfee, Rogers 2019.

    Proof sketch: let r_i be the log of P(i)/P'(i) between neighbours: rate * (change of score i) minus one constant,
    the log ratio of the normalisers. Changes of score lie in [-linf, linf], or in [0, linf] or [-linf, 0] where
    monotone, so all r_i lie in an interval of length epsilon. As both laws sum to 1 the interval holds 0, and
    |r_i| <= epsilon.
    """

    noise: ClassVar[Kind] = "gumbel"

    @property
    def event(self) -> events.Exponential:
        return events.Exponential(epsilon=self.epsilon, relation=self.unit.change)

    @classmethod
    def sample(cls) -> Exponential:
        return cls(query=bounds.votes("ward", ("east", "north", "west"), Unit()), epsilon=1)
