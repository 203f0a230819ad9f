"""Room that is set aside for long work: what is held, what was drawn of it, and what is still to come.

    Hold       work whose parts are chosen as it goes: each draw is priced like a release of its own
    HeldSteps  work of equal steps that was fixed in advance: members whose prices add up pay step by step, members that
               price plans at their own delta pay for the whole work with the first draw and for nothing after that

Why the second may be: filters.proof.md, "Work in steps".
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from .. import checks
from ..errors import BudgetError
from ..events import Approximate, Event, Repeat
from ..record import record
from ..units import Relation
from .composition import total

NOTHING = Fraction(0)
Cost = tuple[Fraction, Fraction]  # a price, and the failures that it counts


@lru_cache(maxsize=4096)
def own_delta(event: Event) -> Fraction:
    """The probability with which the event itself may fail, at most."""
    return total(event, lambda one: one.delta if isinstance(one, Approximate) else NOTHING)


@dataclass(frozen=True)
class Block:
    """So many of the equal steps of held work, drawn at once.

    of       the whole work
    first    was nothing drawn before? Then members that price plans pay for the whole of it now
    counted  were the failures of the whole counted with the first draw? Then those of later steps are among them
    """

    of: Repeat
    steps: int
    first: bool
    counted: bool = False

    def __post_init__(self) -> None:
        checks.whole(self.steps, "steps", most=self.of.times)
        if self.first and self.counted:
            raise checks.refuse("counted", self.counted, "False for the first steps")

    @property
    def relation(self) -> Relation:
        return self.of.relation


Priced = Event | Block


class Pricing(Protocol):
    """What a hold asks of a member."""

    by_plan: bool
    at_once: bool
    required: bool

    @property
    def apart(self) -> bool: ...

    def price(self, event: Event, delta: Fraction) -> Fraction: ...

    def failure(self, event: Event, delta: Fraction) -> Fraction: ...

    def cost(self, event: Priced, delta: Fraction) -> Cost: ...


@record("hold/1", kept=True)
@dataclass(frozen=True)
class Hold:
    """Room set aside for long work, and what was drawn from it so far: each event, its delta, and how often."""

    event: Event
    delta: Fraction
    drawn: tuple[tuple[Event, Fraction, int], ...] = ()

    def after(self, event: Event, delta: Fraction) -> Hold:
        """One more draw. Equal ones are counted, so a hold stays as short as its work is regular."""
        times = next((times for *known, times in self.drawn if known == [event, delta]), 0)
        others = tuple(each for each in self.drawn if each[:2] != (event, delta))
        return replace(self, drawn=(*others, (event, delta, times + 1)))

    def room(self, member: Pricing) -> Cost | None:
        """What the member has to keep for what is not drawn yet; None where it cannot promise that.

        A hold known only as (epsilon, delta) is backed by members that add up plans: its children may be of any kind,
        and would cost other members more than the hold itself. So is one in front of a member whose prices leave
        something out, for children would leave out more.
        """
        if (own_delta(self.event) and not member.by_plan and not member.required) or (
            member.at_once and not member.by_plan
        ):
            return None
        drawn = sum((times * member.price(event, delta) for event, delta, times in self.drawn), NOTHING)
        gone = sum((times * member.failure(event, delta) for event, delta, times in self.drawn), NOTHING)
        price, failure = member.price(self.event, self.delta), member.failure(self.event, self.delta)
        if member.by_plan and member.apart:
            failure = self.delta  # what fails by itself in the hold may be the rest of a price in a child
        return max(price - drawn, NOTHING), max(failure - gone, NOTHING)


@record("hold-steps/1", kept=True)
@dataclass(frozen=True)
class HeldSteps:
    """Room for work of equal steps, and how many of them were drawn.

    event    the whole work
    taken    steps that were drawn so far
    counted  were the failures of the whole counted, on this account, with the first draw?
    """

    event: Repeat
    delta: Fraction
    taken: int = 0
    counted: bool = False

    def __post_init__(self) -> None:
        if type(self.event) is not Repeat:
            raise checks.refuse("event", type(self.event).__name__, "events.Repeat(step, times): work of equal steps")
        checks.instance(self.delta, Fraction, "delta", "an exact number")
        checks.whole(self.taken, "taken", least=0, most=self.event.times)

    @property
    def left(self) -> int:
        return self.event.times - self.taken

    @property
    def whole(self) -> Block:
        """All of the work at once."""
        return Block(self.event, self.event.times, True)

    def block(self, steps: int) -> Block:
        """The next steps; refused where fewer are left."""
        if checks.whole(steps, "steps") > self.left:
            raise BudgetError(
                f"{steps} more step(s) are asked for, and {self.left} of {self.event.times} are left: what is held is "
                "for these, and steps that are run again are paid again"
            )
        return Block(self.event, steps, not self.taken, self.counted)

    def after(self, block: Block, by_plan: bool) -> HeldSteps:
        """With these steps drawn. `by_plan`: is a member open after the draw that prices plans? If it was charged the
        first steps, it counted the failures of all."""
        return replace(self, taken=self.taken + block.steps, counted=by_plan if block.first else self.counted)

    def room(self, member: Pricing) -> Cost:
        """What the member has to keep for the steps that are left."""
        if not self.taken:
            return member.cost(self.whole, self.delta)
        return member.cost(self.block(self.left), self.delta) if self.left else (NOTHING, NOTHING)


Holds = Several[Hold | HeldSteps]
