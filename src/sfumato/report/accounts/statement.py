"""The statement of an account: what it guarantees, what is spent, what is left, and figures that stand beside it.

The guarantee is the limit. "Spent" is a gauge in the account's own currencies, and the sums beside it answer other
questions; each carries the words that say which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, NamedTuple

from ... import checks
from ...accounting.balance import Balance, failures_of
from ...accounting.budget import Budget
from ...accounting.filters import Filter
from ...exhibits import Exhibit
from ...ledger.balances import like_the_last
from ...ledger.charges import LOCK_AFTER
from ...ledger.policy.policy import Policy
from ...ledger.stores.base import Account, Store
from ...ledger.tree import found, limited_below
from .statement_text import gauge_lines, lines
from .tally import Beside, Tally, basic, in_advance, tally

_REPORT_DELTA = Fraction(1, 10**6)  # for budgets in rho, which name no delta


class Standing(NamedTuple):
    """One open member of an account, in its own currency; `used` is what is gone of it, delta for failures counted."""

    currency: str
    spent: Fraction
    limit: Fraction
    used: Fraction

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent

    @property
    def share(self) -> float:
        return float(self.spent / self.limit)


class Under(NamedTuple):
    """An account below: its limit now, and how much of it is gone."""

    name: str
    level: str
    limit: str | None
    share: float | None
    closed: bool


@dataclass(frozen=True, kw_only=True)
class Statement(Exhibit):
    """An account as of entry `number`.

    change     the neighbouring relation of its unit
    balance    what everything so far amounts to, and how many more like the last release fit
    largest    the largest limit that it ever had: the guarantee
    standing   the members that are open; `closed` names the others
    failures_delta   the delta that releases' own failures have taken, and may take; None where there is no delta
    beside     figures that are not the guarantee, each with its label
    allocated  the limits of the accounts below (of a folder: those in it), added up; they may be more than this one's:
               this one's holds
    inexact    releases whose noise is of float grade: for them the guarantee assumes what floats only come near to
    lifetime   for a data set in blocks: what all blocks together have come to, for one unit
    """

    _card = "sfumato.report.accounts.page:statement"

    account: str
    level: str
    parent: str | None
    unit: str | None
    change: str | None
    number: int
    hash: str
    limit: Budget | None
    largest: Budget | None
    releases: int
    balance: Balance | None
    standing: tuple[Standing, ...]
    closed: tuple[str, ...]
    failures_delta: tuple[Fraction, Fraction] | None
    beside: tuple[Beside, ...]
    holds: int
    failures: int
    locked: bool
    is_closed: bool
    children: tuple[Under, ...]
    allocated: str | None
    overcommitted: bool | None
    blocks: tuple[Under, ...]
    lifetime: tuple[Standing, ...]
    inexact: int = 0

    @property
    def protects(self) -> str | None:
        """The unit in words; of a block's account, what the unit has in that block."""
        if self.level == "block":
            return f"(unit, block): {self.unit or 'a unit that the first release will fix'}, within this block"
        return self.unit

    @property
    def guarantee(self) -> str:
        """The sentence that is promised."""
        if self.largest is None:
            return "no budget of its own: the accounts above and below it hold the limits"
        what = "all releases on this account together, however they are chosen after seeing earlier ones, are "
        kind = _named(self.largest)
        protects = self.protects or "a unit that the first release will fix"
        lowered = self.limit is not None and self.limit != self.largest
        later = f" The limit was lowered to {self.limit} later." if lowered else ""
        return f"{what}{kind} for {protects}.{later}{self._grades}"

    @property
    def _grades(self) -> str:
        if not self.inexact:
            return ""
        return (
            f" Of its releases {self.inexact} had noise of float grade (secure_noise = false): for them this holds as "
            "far as a fast generator and floating-point numbers stand for true noise."
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON: exact numbers as text, with floats beside them."""
        return {
            "account": self.account,
            "level": self.level,
            "parent": self.parent,
            "unit": self.unit,
            "entry": {"number": self.number, "hash": self.hash},
            "guarantee": self.guarantee,
            "limit": _budget(self.limit),
            "largest_limit": _budget(self.largest),
            "releases": self.releases,
            "amount": None if self.balance is None else float(self.balance.spent),
            "room_like_the_last": None if self.balance is None else self.balance.room,
            "members": [_standing(each) for each in self.standing],
            "closed_members": list(self.closed),
            "failures_delta": None if self.failures_delta is None else [str(each) for each in self.failures_delta],
            "beside": [each._asdict() for each in self.beside],
            "holds_open": self.holds,
            "failures": self.failures,
            "locked": self.locked,
            "closed": self.is_closed,
            "children": [each._asdict() for each in self.children],
            "allocated": self.allocated,
            "overcommitted": self.overcommitted,
            "blocks": [each._asdict() for each in self.blocks],
            "lifetime": [_standing(each) for each in self.lifetime],
            "inexact_releases": self.inexact,
        }

    def __str__(self) -> str:
        return "\n".join(lines(self))

    @property
    def gauges(self) -> str:
        """The ways of adding up that are open, each with what is spent and left."""
        return "\n".join(gauge_lines(self))


def statement(store: Store, account: str, *, delta: Any = None) -> Statement:
    """Where an account stands. Reads the whole chain once.

    delta  at which the list of releases is priced beside; the account's own by default (1e-6 for budgets in rho)
    """
    return stated(store, account, lambda last: tally(store, account, last=last), delta)


def stated(store: Store, account: str, tallied: Callable[[int], Tally], delta: Any = None) -> Statement:
    """The same, for whoever reads the chain for more than that: `tallied` counts the releases up to an entry."""
    with store.reading() as book:
        state = found(book, account)
        head = book.head
        below = [one for name in book.accounts() if (one := book.account(name)) is not None and one.parent == account]
        parts = list(limited_below(book, account))
        policy: Policy | None = book.fact("policy", "")
    past = tallied(head.number)
    filter_ = state.filter
    limit = None if filter_ is None else filter_.budget
    children = [one for one in below if one.level != "block"]
    blocks = [one for one in below if one.level == "block"]
    allocated, over = _allocated(limit, [one for one in parts if one.level != "block"])
    members = () if filter_ is None else tuple(member for member in filter_.open if not member.required)
    standing = tuple(Standing(m.currency, m.spent, m.limit, m.used) for m in members)
    return Statement(
        account=account,
        level=state.level,
        parent=state.parent,
        unit=None if state.unit is None else str(state.unit),
        change=None if state.unit is None else state.unit.change,
        number=head.number,
        hash=head.hash.hex(),
        limit=limit,
        largest=state.promised if state.promised is not None else limit,
        releases=past.releases,
        balance=like_the_last(store, state),
        standing=standing,
        closed=() if filter_ is None else _closed(filter_),
        failures_delta=None if filter_ is None else failures_of(filter_),
        beside=() if filter_ is None else _beside(past, limit, delta),
        holds=len(state.held),
        failures=state.failures,
        locked=state.failures >= (LOCK_AFTER if policy is None else policy.lock_after),
        is_closed=state.closed,
        children=tuple(map(_under, children)),
        allocated=allocated,
        overcommitted=over,
        blocks=tuple(map(_under, blocks)),
        lifetime=standing if blocks else (),
        inexact=past.inexact,
    )


def _named(budget: Budget) -> str:
    if budget.rho is not None:
        return f"{digits_above(budget.rho)}-zCDP (rho)"
    epsilon = digits_above(budget.epsilon)
    return f"({epsilon}, {digits_above(budget.delta)})-DP" if budget.delta else f"{epsilon}-DP"


def digits_above(value: Fraction) -> str:
    """Six digits, rounded up: a promise is never told smaller than it is."""
    near = f"{float(value):g}"
    if Fraction(near) >= value:
        return near
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).divide(value.numerator, value.denominator)):g}"


def _beside(past: Tally, limit: Budget | None, delta: Any) -> tuple[Beside, ...]:
    if delta is not None:
        at = checks.delta(delta, zero=True)
    elif limit is None or limit.rho is not None:
        at = _REPORT_DELTA
    else:
        at = limit.delta
    return basic(past), in_advance(past, at)


def _closed(filter_: Filter) -> tuple[str, ...]:
    """The members that the account was born with and has no more."""
    open_ = {(type(member), member.currency) for member in filter_.open}
    born = filter_.budget.members(filter_.version)
    return tuple(member.currency for member in born if (type(member), member.currency) not in open_)


def _allocated(limit: Budget | None, children: list[Account]) -> tuple[str | None, bool | None]:
    """The children's limits in sum, and whether that is more than the account itself may spend. None where budgets of
    different kinds cannot be added."""
    budgets = [one.filter.budget for one in children if one.filter is not None and not one.closed]
    if not budgets:
        return None, None
    if all(each.rho is not None for each in budgets):
        total = sum((each.rho for each in budgets), Fraction(0))
        over = None if limit is None or limit.rho is None else bool(total > limit.rho)
        return f"rho = {float(total):g}", over
    if any(each.rho is not None for each in budgets):
        return None, None
    epsilon = sum((each.epsilon for each in budgets), Fraction(0))
    delta = sum((each.delta for each in budgets), Fraction(0))
    over = None if limit is None or limit.rho is not None else bool(epsilon > limit.epsilon or delta > limit.delta)
    return f"epsilon = {float(epsilon):g}" + (f", delta = {float(delta):g}" if delta else ""), over


def _under(account: Account) -> Under:
    filter_ = account.filter
    if filter_ is None:
        return Under(account.name, account.level, None, None, account.closed)
    share = float(filter_.used) if filter_.open else 1.0
    return Under(account.name, account.level, str(filter_.budget), share, account.closed)


def _budget(budget: Budget | None) -> Mapping[str, Any] | None:
    if budget is None:
        return None
    parts = {"epsilon": budget.epsilon, "delta": budget.delta if budget.rho is None else None, "rho": budget.rho}
    return {name: str(value) for name, value in parts.items() if value is not None}


def _standing(each: Standing) -> dict[str, Any]:
    return {
        "currency": each.currency,
        "spent": str(each.spent),
        "limit": str(each.limit),
        "left": str(each.left),
        "share": each.share,
    }
