"""Privacy filters: when may one more release, chosen after seeing the earlier ones, still be paid for.

A budget fixes the members of its account and their shares of delta (budget.py, members.py). A spend passes if some
member still has room, and the count of failures too; a member that runs out, or cannot price an event, is closed for
good.

Claim: the whole interaction is (epsilon, delta)-DP with delta = the limit of failures + the sum of the shares. Sketch:
the first member open at the end is a function of the transcript, so the transcripts split by it; on each piece that
member's own filter theorem bounds the privacy loss but for its share; events fail by themselves with probability at
most their limit, whichever member is open. The proof, with the two rules below, is in filters.proof.md.

The first release. Before anything was released there is no transcript to split, and whatever is decided depends on no
data. So a fresh account that would refuse its first release takes it if *one* member with the whole of delta has room,
and has only this member from then on: a plan calibrated to (1, 1e-6) fits a budget of (1, 1e-6).

Raising a limit, or changing members, opens the next version of the account; see `Filter.raised`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from ..errors import BudgetError, UnsupportedEventError
from ..record import moved, record
from . import balance, gdp
from .budget import Budget, HalvesBudget, fresh_part
from .holds import Block, HeldSteps, Hold, Holds, Priced
from .members import (
    AdaptiveSum,
    Concentrated,
    Failures,
    GaussianSum,
    Member,
    PlanSum,
    Price,
    PureSum,
    RenyiOrder,
    SmoothedSum,
    backed,
    counts_plans,
    fully_adaptive,
    open_after,
    plan_epsilon,
    rho,
    still_open,
)

__all__ = [
    "AdaptiveSum",
    "Block",
    "Budget",
    "Charge",
    "Concentrated",
    "Failures",
    "Filter",
    "GaussianSum",
    "HalvesBudget",
    "HeldSteps",
    "Hold",
    "Holds",
    "Member",
    "PlanSum",
    "Priced",
    "PureSum",
    "RenyiOrder",
    "SmoothedSum",
    "backed",
    "counts_plans",
    "fresh_part",
    "fully_adaptive",
]

Past = tuple[Priced, Fraction]
_NOTHING = Fraction(0)
SHORT_OF_DELTA = "short-of-delta"  # the code of a refusal to raise a limit


@record("charge/1", kept=True)
@dataclass(frozen=True)
class Charge:
    """What one release cost an account, as it was priced then.

    prices  for each member that was open: its price and the failures it counted, or None if it knew no price
    shape   the members that the account's first release asked for, where it was not those it was born with
    """

    prices: tuple[Price, ...]
    shape: Filter | None = None

    def __post_init__(self) -> None:
        for price in self.prices:
            if price is not None and not (len(price) == 2 and all(isinstance(p, Fraction) and p >= 0 for p in price)):
                raise BudgetError("a release cannot cost less than nothing: its charge is broken")


@record("filter/1", kept=True)
@dataclass(frozen=True)
class Filter:
    """A budget and the members that are still open. A value: spending gives the next one.

    Its size does not depend on how much was spent: `count` releases are remembered as one total per member.
    """

    budget: Budget
    open: tuple[Member, ...]
    count: int = 0
    version: int = 1
    shared: Fraction = _NOTHING  # the delta that members besides the plans have taken, in all versions

    @classmethod
    def of(cls, budget: Budget) -> Filter:
        return cls(budget, budget.members(), shared=budget.others())

    def spend(self, event: Priced, delta: Fraction, holds: Holds = ()) -> Filter:
        """The filter after the event; refused with what was asked, what was spent and what is left.

        Some member that stays open must have room for everything that others hold: what is held can be drawn.
        """
        return self.charged(event, delta, holds)[1]

    def charge(self, event: Priced, delta: Fraction, holds: Holds = ()) -> Charge:
        """What the event would cost today. A ledger writes it down, so that no later accountant changes the past."""
        return self.charged(event, delta, holds)[0]

    def charged(
        self, event: Priced, delta: Fraction, holds: Holds = (), *, drawing: bool = False
    ) -> tuple[Charge, Filter]:
        """What the event costs today, and the filter after it.

        drawing  room was held for it, and must be found: if the failures that members count which price plans would
                 take the room of other holds, these members are closed. (Closing one is always sound.)
        """
        shape, charge, members = self._fitting(event, delta, holds, drawing)
        after = moved(shape, open=members, count=self.count + 1)
        return charge if shape is self else replace(charge, shape=shape), after

    def after(self, charge: Charge) -> Filter:
        """The filter after what was charged; refused where it does not fit."""
        shape = self if charge.shape is None else charge.shape
        fresh = charge.shape is None or (self.fresh and shape.fresh and shape.budget == self.budget)
        members = still_open(shape.open, charge.prices) if fresh and len(shape.open) == len(charge.prices) else ()
        if not members:
            raise BudgetError(f"the budget of {self.budget} does not cover what was charged")
        return replace(shape, open=members, count=self.count + 1)

    @property
    def used(self) -> Fraction:
        """The part of the limit that is gone: what everything so far amounts to, over the limit. Where all that is open
        prices plans at their own delta, their part of delta counts as well: without it nothing goes on."""
        gone = balance.amount(self) / balance.limit_of(self.budget)
        open_ = [member for member in self.open if not member.required]
        if not open_ or not all(member.by_plan and member.delta_limit for member in open_):
            return gone
        return max(gone, min(member.delta_spent / member.delta_limit for member in open_))

    @property
    def fresh(self) -> bool:
        """Was nothing released, and nothing changed, since it was opened?"""
        return not self.count and self.version == 1

    def fits(self, event: Priced, delta: Fraction) -> bool:
        return any(open_after(shape.open, event, delta) for shape in self.shapes())

    def shaped(self, event: Priced, delta: Fraction, holds: Holds = ()) -> Filter:
        """The filter as it is before the event is spent: itself, or, on a fresh account, with the members that the
        first release asks for. A ledger keeps this one when it sets room aside."""
        return self._fitting(event, delta, holds)[0]

    def _fitting(
        self, event: Priced, delta: Fraction, holds: Holds, drawing: bool = False
    ) -> tuple[Filter, Charge, tuple[Member, ...]]:
        for shape in self.shapes():
            charge = _charge(shape.open, event, delta)
            yielding = drawing and holds and counts_plans(shape.open)
            for charged in (charge, _without_plans(shape.open, charge)) if yielding else (charge,):
                members = still_open(shape.open, charged.prices)
                if members and (not holds or backed(members, holds)):
                    return shape, charged, members
        raise self._refusal(event, delta, "\nRoom is held for long work." if holds else "")

    def shapes(self) -> Iterator[Filter]:
        """Itself, and, while nothing was released, what the first release may choose instead."""
        yield self
        whole = self.budget.whole if self.fresh else _NOTHING
        if not whole:
            return
        yield Filter.of(self.budget)
        epsilon = self.budget.epsilon
        yield replace(self, open=(PlanSum(limit=epsilon, delta_limit=whole),), shared=_NOTHING)
        yield replace(self, open=(GaussianSum(limit=1 / gdp.least_multiplier(epsilon, whole) ** 2),), shared=whole)

    def lowered(self, budget: Budget) -> Filter:
        """The same members under a smaller epsilon (or rho), at the same delta: what is accepted from now on.

        Every limit shrinks, so all that was promised before still holds; the promise remains the largest budget that
        there was, since lowering may be decided after seeing answers.
        """
        if self.fresh:
            return Filter.of(budget)
        same = (budget.rho is None) == (self.budget.rho is None)
        least = replace(self.budget, epsilon=budget.epsilon, rho=budget.rho) if same else self.budget
        if not same or least.delta != budget.delta or not _larger(self.budget, budget):
            raise BudgetError(f"a budget of {self.budget} can be lowered at the same delta, not changed to {budget}")
        whole = self.budget.whole
        new = {m.name: m.limit + _kept(m) for m in least.members(self.version)}
        if len(self.open) == 1 and not self.open[0].delta_limit and self.shared == whole and whole:
            new["gaussian"] = 1 / gdp.least_multiplier(least.epsilon, whole) ** 2  # what the first release asked for
        shrunk = [replace(m, limit=min(m.limit, new.get(m.name, _NOTHING) - _kept(m))) for m in self.open]
        members = tuple(m for m in shrunk if m.spent <= m.limit and m.limit > 0)
        if all(m.required for m in members):
            raise BudgetError(f"what was spent already does not fit a budget of {budget}: lower it less")
        return replace(self, budget=least, open=members)

    def raised(self, budget: Budget, past: Iterable[Past]) -> Filter:
        """The next version of the account, k, under another budget. `past` is every release so far, from the ledger.

        The promise from now on is the new budget, over everything before and after. Its members start from the whole
        past and get fresh shares of delta, the k-th: 6/(pi k)^2 of what the new budget gives them, since the raise was
        decided after seeing answers. The failures of events are the same ones as before and need no fresh share; the
        plans' sum goes on if it is still open.
        """
        version, releases = self.version + 1, tuple(past)
        if len(releases) != self.count:
            raise BudgetError(f"the past has {len(releases)} releases and this account has spent {self.count}")
        if (budget.rho is None) != (self.budget.rho is None) or not _larger(budget, self.budget):
            raise BudgetError(f"a budget of {self.budget} can be raised, not lowered or exchanged, to {budget}")
        budget = budget.counted_as(self.budget)
        counted, plans = self._counted(budget)
        fresh, taken = budget.others(version), counted.limit + plans + self.shared
        if fresh + taken > budget.delta:
            raise BudgetError(
                f"raising takes a fresh share of delta, {_digits(fresh)} here, and {_digits(taken)} is taken already: "
                f"give the new budget a larger delta than {_digits(budget.delta)}. (An account opened with "
                "raisable=True keeps enough back.)",
                code=SHORT_OF_DELTA,
            )
        members = tuple(self._next(budget.members(version), counted, plans, releases))
        if all(member.required for member in members):
            raise BudgetError(f"what was spent already does not fit a budget of {budget}: raise it further")
        return Filter(budget, members, self.count, version, self.shared + fresh)

    def _counted(self, budget: Budget) -> tuple[Failures, Fraction]:
        """The count of failures as it goes on under a new budget, and the delta for what plans leave out."""
        apart = next((member for member in self.open if isinstance(member, Failures)), None)
        limit, spent = _NOTHING, _NOTHING
        if apart is not None:
            limit, spent = apart.limit, apart.spent
        elif self.open and not self.open[0].apart:
            limit, spent = (max(getattr(m, name) for m in self.open) for name in ("delta_limit", "delta_spent"))
        counted = Failures(limit=max(budget.failures, limit), spent=spent, apart=True)
        return counted, max(budget.plans, self.budget.plans) if budget.apart else _NOTHING

    def _next(
        self, members: tuple[Member, ...], counted: Failures, plans: Fraction, past: tuple[Past, ...]
    ) -> Iterator[Member]:
        sums = next((member for member in self.open if isinstance(member, PlanSum | PureSum)), None)
        for member in members:
            at = member
            if isinstance(member, Failures):
                yield counted
                continue
            if not member.apart and counted.limit:
                at = replace(member, delta_limit=counted.limit, delta_spent=counted.spent)
            elif isinstance(member, PlanSum) and member.apart:
                left_out = sums.delta_spent if sums is not None and sums.apart else _NOTHING
                at = replace(member, delta_limit=plans, delta_spent=left_out)
            if sums is not None and isinstance(member, PlanSum | PureSum):
                started: Member | None = replace(at, spent=sums.spent) if sums.spent <= at.limit else None
            elif member.by_plan and not any(old.by_plan for old in self.open):
                started = None  # plans failed uncounted since the last such member closed
            else:
                started = _replayed(at, past)
            if started is not None:
                yield started

    def gauges(self, event: Priced, delta: Fraction) -> list[str]:
        """Member by member: what is asked, spent and left, or why it has no price for it."""
        lines = []
        for member in self.open:
            try:
                price, failure = member.cost(event, delta)
            except UnsupportedEventError as problem:
                lines.append(str(problem))
                continue
            line = (
                f"{member.currency}: asked {_digits(price)}, spent {_digits(member.spent)}, left {_digits(member.left)}"
            )
            left = member.delta_limit - member.delta_spent
            if isinstance(member, PlanSum) or failure > left:
                line += f"; delta: asked {_digits(failure)}, left {_digits(left)}"
                if failure > left:
                    line += f" (of the account's {_digits(self.budget.delta)}, the rest is set aside for other gauges)"
            lines.append(line)
        return lines

    def _refusal(self, event: Priced, delta: Fraction, also: str) -> BudgetError:
        lines = [f"The budget of {self.budget} does not cover this release; nothing was charged."]
        lines += self.short(event, delta)
        fix = "ask for less (a smaller epsilon or delta), or have the budget raised with ledger.change_limit." + also
        return BudgetError("\n  ".join(lines) + f"\nFix: {fix}", cause="\n".join(lines), fix=fix)

    def short(self, event: Priced, delta: Fraction) -> list[str]:
        """What is asked, spent and left, in the one number and in delta."""
        now = balance.balance(self)
        with_it = balance.amount_with(self, event, delta)
        if with_it is None:  # then the members say why
            return self.gauges(event, delta)
        spent = balance.digits(now.spent)  # the number that is told everywhere, and what is left beside it
        left = max(now.limit - Fraction(spent), _NOTHING)
        line = f"{now.currency}: asked {_asked(self.budget, event, delta)}, spent {spent}, "
        line += f"left {_digits(left)} of {_digits(now.limit)}; "
        line += f"with this one it would be {balance.digits(with_it)}"
        fails = max((self._fails(member, event, delta) for member in self.open), default=_NOTHING)
        if not now.failures:
            return [line]
        left = now.failures - now.failed
        return [
            line,
            f"delta: asked {_digits(fails)} for unknown keys and the like, left {_digits(left)} of "
            f"{_digits(now.failures)}" + (": too little" if fails > left else ""),
        ]

    def _fails(self, member: Member, event: Priced, delta: Fraction) -> Fraction:
        """What the release takes of the delta for failures, as this member counts them."""
        if member.apart and not member.required:
            return _NOTHING
        try:
            price, failure = member.cost(event, delta)
        except UnsupportedEventError:
            return _NOTHING
        return price if member.required else failure


def _asked(budget: Budget, event: Priced, delta: Fraction) -> str:
    """The release's own epsilon at its own delta, or its rho."""
    whole = event.of if isinstance(event, Block) else event
    try:
        return _digits(plan_epsilon(whole, delta) if budget.rho is None else rho(whole))
    except UnsupportedEventError:
        return "what has no price of its own"


_CHARGES: dict[tuple[tuple[Hashable, ...], Priced, type, Fraction], Charge] = {}
_MOST_CHARGES = 4096


def _charge(members: tuple[Member, ...], event: Priced, delta: Fraction) -> Charge:
    """What members of these terms charge for the event: the same on every account that has them. (A float delta is no
    key for an exact one: it is refused.)"""
    key = (tuple([member.terms for member in members]), event, type(delta), delta)
    charge = _CHARGES.get(key)
    if charge is None:
        if len(_CHARGES) >= _MOST_CHARGES:
            _CHARGES.clear()
        charge = _CHARGES[key] = Charge(tuple([member.charge(event, delta) for member in members]))
    return charge


def _without_plans(members: tuple[Member, ...], charge: Charge) -> Charge:
    """The same, closing the members that price plans."""
    pairs = zip(members, charge.prices, strict=True)
    return Charge(tuple([None if member.by_plan else price for member, price in pairs]))


def _replayed(member: Member, past: tuple[Past, ...]) -> Member | None:
    """The member after the whole past. Failures that all members count together were counted when they happened."""
    failed = member.delta_spent
    state: Member | None = replace(member, delta_spent=_NOTHING)
    for event, delta in past:
        charged = None if state is None else state.charge(event, delta)
        if isinstance(event, Block) and charged is not None and not member.apart:
            # which failures they counted depended on the members then
            charged = charged[0], _NOTHING
        state = None if state is None else state.add(charged)
    return state if state is None or member.apart else replace(state, delta_spent=failed)


def _kept(member: Member) -> Fraction:
    """What it never spends."""
    return 1 / member.kept**2 if isinstance(member, SmoothedSum) else _NOTHING


def _larger(new: Budget, old: Budget) -> bool:
    if old.rho is not None:
        return bool(new.rho >= old.rho)
    return bool(new.epsilon >= old.epsilon and new.delta >= old.delta)


def _digits(value: Fraction) -> str:
    return f"{float(value):.6g}"
