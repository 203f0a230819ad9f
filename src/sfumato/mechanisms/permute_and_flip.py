"""Permute-and-flip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import bounds, events
from ..noise.race import Kind
from ..record import record
from ..units import Unit
from .selection import Selection


@record("plan-permute-and-flip/1")
@dataclass(frozen=True, kw_only=True)
class PermuteAndFlip(Selection):
    """Go through the candidates in random order and take each with probability exp(rate * (score - best score)); the
    rate is epsilon/(2 linf), without the 2 where one change of the unit moves all scores the same way. Never worse than
    the exponential mechanism at the same epsilon.

    Guarantee: epsilon-DP. It is not epsilon-bounded-range, and is priced pure.
    Needs: a finite L-infinity sensitivity, which the query carries; candidates known in public.
    Paper: McKenna, Sheldon 2020; as report-noisy-max with exponential noise: Ding, Kifer, Sajid Nikesh 2021.

    Proof sketch (noisy max): candidate i wins when its exponential noise E_i exceeds t = max_{j != i}(s_j + E_j) - s_i.
    Given the other noises, P(E_i > t) = exp(-max(t, 0)), and between neighbours t changes by at most rate * 2 linf =
    epsilon in general, and by at most rate * linf = epsilon where all scores move the same way by at most linf each. So
    P(i wins) changes by a factor of at most e^epsilon, for every value of the other noises.
    """

    noise: ClassVar[Kind] = "exponential"

    @property
    def event(self) -> events.PermuteAndFlip:
        return events.PermuteAndFlip(epsilon=self.epsilon, relation=self.unit.change)

    @classmethod
    def sample(cls) -> PermuteAndFlip:
        return cls(query=bounds.votes("ward", ("east", "north", "west"), Unit(change="replace")), epsilon=1)
