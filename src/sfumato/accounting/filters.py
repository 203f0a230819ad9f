"""Privacy filters: when may one more release, chosen after seeing the earlier ones, still be paid for.

A budget fixes at birth a short list of members. Each member is a composition that is proven for adaptively chosen
parameters, with its own share of delta:

    pure          exact sum of epsilons                       (basic composition; Rogers et al. 2016)
    sum           sums of each plan's own (epsilon, delta)    (the same, with the deltas summed within the share)
    concentrated  sum of rho, rho_max from the share          (Feldman and Zrnic 2021; Whitehouse et al. 2023)

A spend passes if some member still has room; a member that runs out, or cannot price an event, is closed for good.
Claim: the whole interaction is (epsilon, delta)-DP with delta the sum of the shares. Sketch: the last open member is a
function of the transcript, so the transcripts split by it; on each piece that member's own filter theorem bounds the
privacy loss but for its share of delta, and the shares add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from .. import checks, exact
from ..checks import Exact
from ..errors import ArgumentError, BudgetError, UnsupportedEventError
from ..events import Approximate, Event, Pure, ZeroConcentrated
from ..record import record
from ..units import Relation
from . import approximate, pure, zcdp


@record("budget/1")
@dataclass(frozen=True)
class Budget:
    """What may be spent in all: epsilon, or (epsilon, delta), or rho. Give epsilon (with or without delta), or rho."""

    epsilon: Exact = None
    delta: Exact = Fraction(0)
    rho: Exact = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ArgumentError("a budget is either epsilon (with delta, or without) or rho: give one of the two.")
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=True))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        else:
            object.__setattr__(self, "rho", checks.positive(self.rho, "rho"))
            if self.delta:
                raise checks.refuse("delta", self.delta, "no delta with rho: rho holds for every delta")

    def event(self, relation: Relation) -> Event:
        """The whole budget, as one event."""
        if self.rho is not None:
            return ZeroConcentrated(rho=self.rho, relation=relation)
        if self.delta:
            return Approximate(epsilon=self.epsilon, delta=self.delta, relation=relation)
        return Pure(epsilon=self.epsilon, relation=relation)

    def members(self) -> tuple[Member, ...]:
        if self.rho is not None:
            return (Concentrated(limit=self.rho),)
        if not self.delta:
            return (PureSum(limit=self.epsilon),)
        share = self.delta / 2
        rho = zcdp.largest_rho(self.epsilon, share)
        sums = (PlanSum(limit=self.epsilon, delta_limit=share),)
        return (*sums, Concentrated(limit=rho)) if rho > 0 else sums

    def __str__(self) -> str:
        if self.rho is not None:
            return f"rho = {float(self.rho):g}"
        return f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")


@dataclass(frozen=True)
class Hold:
    """Room set aside for long work, and what was drawn from it so far."""

    event: Event
    delta: Fraction
    drawn: tuple[tuple[Event, Fraction], ...] = ()


Holds = Sequence[Hold]


@dataclass(frozen=True, kw_only=True)
class Member(ABC):
    """One composition with a limit. `add` gives the state after one more event, or None if it closes the member."""

    limit: Fraction
    spent: Fraction = Fraction(0)

    currency = ""

    @abstractmethod
    def price(self, event: Event, delta: Fraction) -> Fraction:
        """What the event costs this member."""

    def add(self, event: Event, delta: Fraction) -> Member | None:
        try:
            price = self.price(event, delta)
        except UnsupportedEventError:
            return None
        if not isinstance(delta, int | Fraction) or price < 0 or delta < 0:
            raise BudgetError("a release cannot cost less than nothing: its event is broken")
        total = exact.short_above(self.spent + price)
        return replace(self, spent=total) if total <= self.limit else None

    def backs(self, holds: Holds) -> bool:
        """Is there room for all that is held and not drawn yet?"""
        taken = Fraction(0)
        try:
            for hold in holds:
                drawn = sum((self.price(*part) for part in hold.drawn), Fraction(0))
                taken += max(self.price(hold.event, hold.delta) - drawn, Fraction(0))
        except UnsupportedEventError:
            return False
        return self.spent + taken <= self.limit

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent


@dataclass(frozen=True, kw_only=True)
class PureSum(Member):
    currency = "epsilon"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return pure.epsilon(event)


@dataclass(frozen=True, kw_only=True)
class PlanSum(Member):
    delta_limit: Fraction
    delta_spent: Fraction = Fraction(0)

    currency = "epsilon"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return approximate.epsilon(event, delta)

    def add(self, event: Event, delta: Fraction) -> Member | None:
        after = super().add(event, delta)
        total = self.delta_spent + delta
        return replace(after, delta_spent=total) if isinstance(after, PlanSum) and total <= self.delta_limit else None

    def backs(self, holds: Holds) -> bool:
        taken = sum((max(h.delta - sum(d for _, d in h.drawn), Fraction(0)) for h in holds), Fraction(0))
        return super().backs(holds) and self.delta_spent + taken <= self.delta_limit


@dataclass(frozen=True, kw_only=True)
class Concentrated(Member):
    currency = "rho"

    def price(self, event: Event, delta: Fraction) -> Fraction:
        return zcdp.rho(event)


@dataclass(frozen=True)
class Filter:
    """A budget and the members that are still open. A value: spending gives the next one."""

    budget: Budget
    open: tuple[Member, ...]

    @classmethod
    def of(cls, budget: Budget) -> Filter:
        return cls(budget, budget.members())

    def spend(self, event: Event, delta: Fraction, holds: Holds = ()) -> Filter:
        """The filter after the event; refused with what was asked, what was spent and what is left.

        Some member that stays open must have room for everything that others hold: what is held can be drawn.
        """
        after = tuple(m for m in (member.add(event, delta) for member in self.open) if m is not None)
        if not after or (holds and not any(member.backs(holds) for member in after)):
            raise BudgetError(self._refusal(event, delta) + ("\nRoom is held for long work." if holds else ""))
        return Filter(self.budget, after)

    def fits(self, event: Event, delta: Fraction) -> bool:
        return any(member.add(event, delta) is not None for member in self.open)

    def _refusal(self, event: Event, delta: Fraction) -> str:
        lines = []
        for member in self.open:
            try:
                price: Any = member.price(event, delta)
            except UnsupportedEventError as problem:
                lines.append(str(problem))
                continue
            line = (
                f"{member.currency}: asked {_digits(price)}, spent {_digits(member.spent)}, left {_digits(member.left)}"
            )
            if isinstance(member, PlanSum):
                left = member.delta_limit - member.delta_spent
                line += f"; delta: asked {_digits(delta)}, left {_digits(left)}"
                if delta > left:
                    line += f" (of the account's {_digits(self.budget.delta)}, half is set aside for the rho gauge)"
            lines.append(line)
        return (
            f"The budget of {self.budget} does not cover this release; nothing was charged.\n  "
            + "\n  ".join(lines)
            + "\nFix: ask for less (a smaller epsilon or delta), or have the budget raised."
        )


def _digits(value: Fraction) -> str:
    return f"{float(value):.6g}"
