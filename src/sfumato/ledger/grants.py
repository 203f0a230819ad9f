"""Accounts: opened, given more or less, moved, closed. Each is an entry with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import checks, record
from ..accounting.filters import Block, Budget, Filter, Priced, backed
from ..errors import BudgetError, PolicyError
from ..events import Event, Repeat
from ..plan import Receipt
from ..units import Unit
from .desk import LIBRARY, Desk, short
from .policy.approvals import Act
from .policy.parts import LEVELS
from .policy.policy import Policy
from .pricing import outside, priced_as, priced_before
from .stores.base import Account, Book
from .tree import beside, changed, check_place, check_unit, found, limited_below, limited_by

_DOING = {"raise": "raising the limit of", "reset": "a fresh budget, beside those that the ledger has:"}
SHARING = ("team", "project", "person")  # accounts that share out what the data's own accounts hold


class Grants:
    """Gives budgets. With a policy, who gives may not spend."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def open_account(
        self,
        name: str,
        budget: Budget | None,
        *,
        parent: str | None = None,
        level: str = "",
        unit: Unit | None = None,
        reason: str = "",
    ) -> None:
        checks.label(name, "the name of an account")
        if isinstance(level, str) and level == "block":
            raise checks.refuse("level", level, "another level: a block is opened with ledger.open_block")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "grant")
            self.begin(book, policy, name, budget, parent, level, unit, reason)

    def begin(
        self,
        book: Book,
        policy: Policy | None,
        name: str,
        budget: Budget | None,
        parent: str | None,
        level: str,
        unit: Unit | None,
        reason: str,
    ) -> None:
        if budget is not None:
            _sound(budget, f"budget of {name!r}")
        if not isinstance(level, str) or level:
            checks.one_of(level, "level", LEVELS)
        if unit is not None:
            checks.instance(unit, Unit, "unit", "a Unit")
        short(reason, "reason")
        if book.account(name) is not None:
            raise BudgetError(f"there is an account {name!r} already: its budget is fixed")
        check_place(book, name, budget, parent, level, reason)
        unit = _protected(policy, name, level, budget, unit)
        check_unit(book, name, level, unit)
        approvals = self._limit_approved(book, policy, name, budget, _reset(book, policy, name, budget, parent))
        self._not_too_much(book, policy, parent, budget)
        filter_ = None if budget is None else Filter.of(budget)
        account = Account(
            name=name,
            filter=filter_,
            parent=parent,
            level=level,
            unit=unit,
            promised=budget,
            granted=(self._desk.principal,),
        )
        self._desk.write(
            book,
            "open account",
            {
                "account": name,
                "budget": budget,
                "parent": parent,
                "level": level,
                "unit": unit,
                "filter": filter_,
                "reason": reason,
                "approvals": approvals,
                "library": LIBRARY,
            },
        )
        book.put_account(account)

    def _limit_approved(
        self,
        book: Book,
        policy: Policy | None,
        name: str,
        budget: Budget | None,
        doing: str = "",
    ) -> tuple[int, ...]:
        """The approvals that a limit takes: for a "raise" or "reset", and for a delta above 1/n; the larger number."""
        if policy is None or budget is None:
            return ()
        asked = policy.limit_asked(name, budget)
        needed = max(asked.approvals, policy.approvals(doing) if doing else 0)
        act = Act.reset(name, budget) if doing == "reset" else Act.limit(name, budget)
        why = "; ".join((*((f"{_DOING[doing]} {name!r}",) if doing else ()), *asked.reasons))
        return self._desk.approved(book, policy, act, needed, why)

    def _not_too_much(
        self, book: Book, policy: Policy | None, parent: str | None, budget: Budget | None, but: str = ""
    ) -> None:
        """Where the policy says so, the limits of an account's parts add up to no more than its own."""
        if policy is None or policy.overcommit or parent is None or budget is None:
            return
        over: Account | None = found(book, parent)
        if over is not None and over.filter is None:
            over = limited_by(book, over)
        if over is None or over.filter is None:
            return
        limits = [each.filter.budget for each in limited_below(book, over.name) if each.filter and each.name != but]
        for part in ("epsilon", "rho", "delta"):
            sizes = [getattr(each, part) or Fraction(0) for each in (*limits, budget)]
            if sum(sizes) > (getattr(over.filter.budget, part) or Fraction(0)):
                raise PolicyError(f"the limits below {over.name!r} would add up to more than its own {part}")

    @priced_before
    def change_limit(self, account: str, budget: Budget, *, reason: str) -> None:
        """Raise an account's limit, which takes a fresh share of delta, or lower it. Never above its parent's."""
        with self._desk.writing() as book:
            self.limit(book, self._desk.policy(book, "grant"), account, budget, reason)

    def limit(self, book: Book, policy: Policy | None, name: str, budget: Budget, reason: str) -> None:
        _sound(budget, "budget")
        account = found(book, name)
        after = self._changed(book, policy, account, budget)
        raised = account.filter is not None and not budget.within(account.filter.budget)
        approvals = self._limit_approved(book, policy, name, after.budget, "raise" if raised else "")
        self._desk.write(
            book,
            "limit",
            {
                "account": name,
                "budget": after.budget,
                "filter": after,
                "reason": given(reason),
                "approvals": approvals,
                "library": LIBRARY,
            },
        )
        book.put_account(changed(account, after, self._desk.principal))

    @priced_before
    def move(self, source: str, target: str, *, epsilon: Any = None, rho: Any = None, reason: str) -> None:
        """Take a part of one account's limit and give it to another one under the same parent."""
        if (epsilon is None) == (rho is None):
            raise checks.refuse("epsilon", epsilon, "a part of the limit: epsilon= or rho=, whichever it is in")
        part = "epsilon" if rho is None else "rho"
        size = checks.epsilon(epsilon, warn=False) if rho is None else checks.positive(rho, "rho")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "grant")
            giving, taking = found(book, source), found(book, target)
            if giving.parent is None or giving.parent != taking.parent or source == target:
                raise BudgetError("a part of a limit moves between two accounts under the same parent")
            filters, approvals = {}, tuple[int, ...]()
            for account, sign in ((giving, -1), (taking, 1)):
                old = None if account.filter is None else getattr(account.filter.budget, part)
                if account.filter is None or old is None:
                    raise BudgetError(f"account {account.name!r} has no limit in {part}: give a part of what it has")
                if old + sign * size <= 0:
                    raise BudgetError(f"account {source!r} has no more than that: close it instead")
                budget = replace(account.filter.budget, **{part: old + sign * size})
                filters[account.name] = self._changed(book, None if sign > 0 else policy, account, budget)
                if sign > 0:  # what data may give in all is raised by two persons, also with what another gave up
                    doing = "" if account.level in SHARING else "raise"
                    approvals = self._limit_approved(book, policy, target, budget, doing)
            self._desk.write(
                book,
                "move",
                {
                    "source": source,
                    "target": target,
                    "part": part,
                    "size": size,
                    "filters": filters,
                    "reason": given(reason),
                    "approvals": approvals,
                    "library": LIBRARY,
                },
            )
            for account in (giving, taking):
                book.put_account(changed(account, filters[account.name], self._desk.principal))

    def _changed(self, book: Book, policy: Policy | None, account: Account, budget: Budget) -> Filter:
        """The account's filter under another budget, refused where that may not be."""
        if account.filter is None or account.closed:
            raise BudgetError(f"account {account.name!r} has no limit to change: it is closed, or a folder")
        if policy is not None:
            policy.limit_asked(account.name, budget)
        for child in limited_below(book, account.name):
            if child.filter is not None and not child.filter.budget.within(budget):
                raise BudgetError(f"account {child.name!r} below it has more than that: lower or close it first")
        if budget.within(account.filter.budget):
            return _lowered(account, budget)
        over = limited_by(book, account)
        if over is not None and over.filter is not None and not budget.within(over.filter.budget):
            raise BudgetError(f"{budget} is above what {over.name!r} has, {over.filter.budget}: raise that first")
        self._not_too_much(book, policy, account.parent, budget, account.name)
        if account.filter.fresh and not account.held:
            return Filter.of(budget)
        filter_, releases = account.filter, tuple(past(book, account.name))
        terms = ("raised", budget, frozenset(releases), priced_as({account.name: account}))
        outside(terms, lambda: filter_.raised(budget, releases))
        after = filter_.raised(budget, releases)
        holds = list(account.held.values())
        if holds and not backed(after.open, holds):
            raise BudgetError(f"what is held on account {account.name!r} would have no room: wait, or close the hold")
        return after

    def close_account(self, account: str, *, reason: str) -> None:
        """Nothing more is paid from it, nor from what stands below it. What was spent stays spent."""
        with self._desk.writing() as book:
            self._desk.policy(book, "grant")
            open_ = found(book, account)
            if open_.closed:
                raise BudgetError(f"account {account!r} is closed already")
            self._desk.write(book, "close account", {"account": account, "reason": given(reason)})
            book.put_account(replace(open_, closed=True))


def _sound(budget: Budget, name: str) -> None:
    """A budget as it was made. One that was changed since would be written, and never be read again."""
    checks.instance(budget, Budget, name, "a Budget, such as Budget(epsilon=1, delta=1e-6)")
    if (budget.epsilon is None) == (budget.rho is None):
        raise checks.refuse(name, budget.epsilon, "a Budget that nobody changed: make a new one")
    numbers = [checks.delta(budget.delta, zero=True)]
    if budget.rho is None:
        numbers.append(checks.epsilon(budget.epsilon, warn=False))
    else:
        numbers.append(checks.positive(budget.rho, "rho"))
    given = (budget.delta, budget.epsilon if budget.rho is None else budget.rho)
    if any(type(each) is not Fraction or each != number for each, number in zip(given, numbers, strict=True)):
        raise checks.refuse(name, given, "a Budget that nobody changed: make a new one")


def _protected(policy: Policy | None, name: str, level: str, budget: Budget | None, unit: Unit | None) -> Unit | None:
    """What a new account protects. Under a policy no spender chooses that for a data set."""
    rule = None if policy is None else policy.account(name)
    listed = None if rule is None else rule.protects
    if listed is not None and unit not in (None, listed):
        raise PolicyError(f"the policy says that account {name!r} protects [{listed}]: leave unit= out")
    if policy is not None and level == "data set" and budget is not None and unit is None and listed is None:
        raise PolicyError(f"say which unit data set {name!r} protects: give unit=, or list it in the policy")
    return listed if unit is None else unit


def _reset(book: Book, policy: Policy | None, name: str, budget: Budget | None, parent: str | None) -> str:
    """ "reset" where it is a fresh budget that the policy does not list: who adopted a list approved what is on it."""
    if policy is None or budget is None or policy.lists_fresh(name, budget, parent):
        return ""
    return "reset" if beside(book, parent) else ""


def given(reason: str) -> str:
    """Why: a text that somebody can read later."""
    return checks.label(reason, "reason")


def _lowered(account: Account, budget: Budget) -> Filter:
    assert account.filter is not None
    if account.held:
        raise BudgetError(f"room is held on account {account.name!r}: wait for that work, or close the hold")
    return account.filter.lowered(budget)


def past(book: Book, account: str) -> Iterator[tuple[Priced, Fraction]]:
    """Every release that the account has paid for, from the entries."""
    paying: dict[str, Receipt | None] = {}
    for number in range(1, book.head.number + 1):
        stored = book.entry(number)
        entry = {} if stored is None else record.parse(stored[1], dict)
        if entry.get("kind") in ("spend", "hold"):
            receipt = entry["receipt"]
            paying[receipt.id] = receipt if account in receipt.accounts else None
            if entry["kind"] == "spend" and account in receipt.accounts:
                yield receipt.event, entry["delta"]
        elif entry.get("kind") == "draw" and (held := paying[entry["receipt"]]) is not None:
            yield _drawn(held, entry), entry["delta"]


def _drawn(held: Receipt, entry: dict[str, Any]) -> Priced:
    event: Event = entry["event"]
    if not held.by_steps:
        return event
    assert isinstance(held.event, Repeat) and isinstance(event, Repeat)
    return Block(held.event, event.times, not entry["before"])
