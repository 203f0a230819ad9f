"""Are the recorded charges the prices of their events? Asked of today's accountant, entry by entry.

An entry written by this version of sfumato and edition of its prices must say what it would charge today, to nine
digits. One of another may differ: where it charged more, that is a better accountant; where it charged less, a mistake
was corrected since, and the account has spent more than its gauges say. Such entries are listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from ... import kinds, record
from ...accounting.filters import Charge, Filter, Member, Priced
from ...accounting.members import Price, plan_epsilon
from ...errors import BudgetError, SfumatoError, UnsupportedEventError
from ...events import Event
from ...plan import Plan
from ..desk import LIBRARY
from ..policy.policy import Policy, kinds_within
from ..stores.base import Account
from .state import Entry, EntryError

Past = tuple[Priced, Fraction]

_QUERY = '"plan-sql/'


@dataclass
class Reprice:
    """Compares as the replay goes along; `cheap` are the entries that charged less than today's price, `unread` counts
    the queries that could not be read back, because SQL is not installed here."""

    cheap: list[int] = field(default_factory=list)
    unread: int = 0
    past: dict[str, list[Past]] = field(default_factory=dict)

    def birth(self, entry: Entry, filter_: Filter) -> None:
        self._same(entry, filter_, [Filter.of(filter_.budget)], "the account's members are not those of its budget")

    def shape(self, entry: Entry, account: Account, shape: Filter) -> None:
        assert account.filter is not None
        self._same(entry, shape, account.filter.shapes(), "the members that it chooses are not those of the budget")

    def plan(self, entry: Entry, policy: Policy | None) -> None:
        self.part(entry)
        receipt, delta = entry["receipt"], entry["delta"]
        if policy is None or entry["library"] != LIBRARY:
            return
        try:
            price: Fraction | None = plan_epsilon(receipt.event, delta)
        except UnsupportedEventError:
            price = None
        try:
            asked = policy.asked(
                accounts=receipt.accounts, plan=kinds_within(entry["plan"]), grade=receipt.grade, epsilon=price,
                delta=delta, purpose=receipt.note,
            )  # fmt: skip
        except BudgetError:
            raise EntryError("the policy forbids what it pays for") from None
        if len(set(entry["approvals"])) < asked.approvals:
            raise EntryError("it lacks approvals")

    def part(self, entry: Entry) -> None:
        """Is its event that of its plan? What it costs is asked where it is paid."""
        told = entry["receipt"].event, entry["delta"]
        known = _event(entry["plan"])
        self.unread += known is None and _QUERY in entry["plan"]
        if known is None:
            return
        if known[:2] != told:
            raise EntryError("its event is not that of its plan")
        if known[2] != "exact" and entry["receipt"].grade == "exact":
            raise EntryError("its plan's noise is not exact, and its receipt says that it is")
        if (known[3] is None) == entry["receipt"].by_steps and entry["kind"] == "hold":
            raise EntryError("it holds room for steps, and its plan has none, or the other way round")

    def charge(self, entry: Entry, account: Account, event: Priced, delta: Fraction) -> None:
        assert account.filter is not None
        told: Charge = entry["charged"][account.name]
        if told.shape is not None:
            self.shape(entry, account, told.shape)
        members = (told.shape or account.filter).open
        now = [member.charge(event, delta) for member in members]
        if len(now) != len(told.prices):
            raise EntryError("what it charges is not the price of its event")
        if entry["kind"] == "draw":  # which may close members that price plans, and what is closed bounds nothing
            pairs = zip(members, now, told.prices, strict=True)
            now = [None if member.by_plan and paid is None else price for member, price, paid in pairs]
        if not all(map(_near, told.prices, now)):
            if entry["library"] == LIBRARY:
                raise EntryError("what it charges is not the price of its event")
            if any(map(_less, told.prices, now)):
                self.cheap.append(entry["number"])
        self.past.setdefault(account.name, []).append((event, delta))

    def limit(self, entry: Entry, account: Account, after: Filter) -> None:
        assert account.filter is not None
        budget = after.budget
        if account.filter.fresh and not account.held:
            expected = Filter.of(budget)
        elif budget.within(account.filter.budget):
            expected = account.filter.lowered(budget)
        else:
            expected = account.filter.raised(budget, self.past.get(account.name, ()))
        self._same(entry, after, [expected], "the changed limit is not what the past and the budget give")

    def _same(self, entry: Entry, told: Filter, now: Iterable[Filter], words: str) -> None:
        """Another version's members may have other limits; where today's are tighter, the entry is listed."""
        known = list(now)
        if any(_as_near(told, each) for each in known):
            return
        if entry["library"] == LIBRARY or not any(_alike(told, each) for each in known):
            raise EntryError(words)
        if not any(_alike(told, each) and _tighter(told, each) for each in known):
            self.cheap.append(entry["number"])


_ROUNDING = Fraction(1, 2**30)  # another machine's float64 may end in other digits


def _close(one: Fraction, other: Fraction) -> bool:
    return abs(one - other) <= _ROUNDING * max(abs(one), abs(other))


def _near(told: Price, now: Price) -> bool:
    if told is None or now is None:
        return told is now
    return _close(told[0], now[0]) and told[1] == now[1]


def _less(told: Price, now: Price) -> bool:
    return told is not None and not _near(told, now) and (now is None or told[0] < now[0] or told[1] < now[1])


def _as_near(told: Filter, now: Filter) -> bool:
    """The same but for the last digits of limits."""
    pairs = zip(told.open, now.open, strict=False)
    return (
        _alike(told, now)
        and [_kind(m) for m in told.open] == [_kind(m) for m in now.open]
        and all(_as_near_member(a, b) for a, b in pairs)
    )


def _as_near_member(told: Member, now: Member) -> bool:
    close = _close(told.limit, now.limit) and _close(told.spent, now.spent)
    return close and (told.delta_limit, told.delta_spent) == (now.delta_limit, now.delta_spent)


def _alike(told: Filter, now: Filter) -> bool:
    """The same but for the limits of its members, and which of them still have room."""
    return replace(told, open=()) == replace(now, open=())


def _tighter(told: Filter, now: Filter) -> bool:
    limits = {_kind(member): member for member in now.open}
    return all(
        _kind(m) in limits and m.limit <= limits[_kind(m)].limit and m.spent >= limits[_kind(m)].spent
        and (m.delta_limit, m.delta_spent) == (limits[_kind(m)].delta_limit, limits[_kind(m)].delta_spent)
        for m in told.open
    )  # fmt: skip


def _kind(member: Member) -> tuple[object, object]:
    return type(member), getattr(member, "order", None)


@lru_cache(maxsize=4096)
def _event(text: str) -> tuple[Event, Fraction, str, int | None] | None:
    """Event, delta, grade and steps of a plan; None for one whose text cannot be made a plan again (a function in a
    field)."""
    kinds.load(queries=_QUERY in text)
    try:
        plan = record.parse(text.encode())
    except SfumatoError:
        return None
    return (plan.event, plan.delta, plan.grade, plan.steps) if isinstance(plan, Plan) else None
