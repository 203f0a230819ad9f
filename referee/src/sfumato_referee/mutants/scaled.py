"""Half the noise, everywhere: the mutant that every mechanism has.

`Scaled` is a Noise whose every scale is multiplied by 1/2 on its way to the sampler; the plan, its price and its code
stay as they are. Samples that are no noise (which rows are drawn, in what order) are left alone, so a coin that samples
is not touched, and neither is one that flips an answer. Three mechanisms therefore need a subclass, as their noise is
no scale that a Noise sees:

    RandomizedResponse  a coin keeps the answer: kept as if epsilon were twice what was paid
    SmoothMedian        decides from one uniform number, with the plan's own scale: half of it
    OptimalKeys         compares a uniform number with pi(n): pi as if epsilon were twice what was paid
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato import events
from sfumato.exact import Enclosure
from sfumato.laws import Integers, Law
from sfumato.mechanisms import OptimalKeys, RandomizedResponse, SmoothMedian
from sfumato.noise import Noise
from sfumato.noise.race import Kind
from sfumato.plan import Plan

FACTOR = 0.5


class Scaled(Noise):
    """Noise of half the scale that is asked for."""

    def draw(self, law: Law, count: int) -> Integers:
        return super().draw(narrowed(law), count)

    def add(self, law: Law, sums: Integers) -> None:
        super().add(narrowed(law), sums)

    def select(self, scores: Any, *, scale: Fraction = Fraction(1), noise: Kind = "gumbel", weights: Any = None) -> int:
        return super().select(scores, scale=scale / Fraction(FACTOR), noise=noise, weights=weights)

    def top(self, scores: Any, count: int, *, scale: Fraction = Fraction(1)) -> list[int]:
        return super().top(scores, count, scale=scale / Fraction(FACTOR))

    def sup_norm(self, scale: float, count: int) -> Integers:
        return super().sup_norm(FACTOR * scale, count)

    def euclidean(self, scale: float, count: int) -> Integers:
        return super().euclidean(FACTOR * scale, count)


def narrowed(law: Law) -> Law:
    """The same law at half its scale."""
    changed: Any = law
    (name,) = (each.name for each in fields(changed))
    narrow: Law = replace(changed, **{name: max(FACTOR * law.spread, 2.0**-12)})
    return narrow


@dataclass(frozen=True, kw_only=True)
class HalfTruth(RandomizedResponse):
    """Keeps an answer as if epsilon were twice what was paid."""

    def keep_chance(self, bits: int) -> Enclosure:
        return RandomizedResponse(
            column=self.column, categories=self.categories, epsilon=2 * self.epsilon, protects=self.protects
        ).keep_chance(bits)


@dataclass(frozen=True, kw_only=True)
class HalfSmooth(SmoothMedian):
    """Noise of half the scale that its smooth sensitivity asks for."""

    @cached_property
    def scale(self) -> Fraction:
        return super().scale / 2


@dataclass(frozen=True, kw_only=True)
class EagerKeys(OptimalKeys):
    """Keeps keys with the chances of twice the epsilon."""

    @property
    def share(self) -> tuple[Fraction, Fraction]:
        epsilon, delta = super().share
        return 2 * epsilon, delta

    @property
    def event(self) -> events.Event:
        return OptimalKeys(**{each.name: getattr(self, each.name) for each in fields(self)}).event


_OWN: dict[type[Any], type[Any]] = {
    RandomizedResponse: HalfTruth,
    SmoothMedian: HalfSmooth,
    OptimalKeys: EagerKeys,
}


def halved(plan: Plan[Any, Any]) -> Plan[Any, Any]:
    """The plan itself, or its subclass with half the noise where `Scaled` does not reach."""
    kind = _OWN.get(type(plan))
    return plan if kind is None else kind(**{each.name: getattr(plan, each.name) for each in fields(plan)})
