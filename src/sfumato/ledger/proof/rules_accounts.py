"""The rules of entries that open, limit, move, close and unlock accounts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...accounting.filters import Budget, Filter
from ...errors import BudgetError
from ..policy.approvals import Act
from ..stores.base import Account
from ..tree import changed
from .rules_data import no_other_unit
from .rules_governing import used
from .state import Entry, EntryError, State


def open_account(state: State, entry: Entry) -> None:
    """Once, inside the limit above it; a fresh budget with its approvals."""
    name, budget, filter_, parent = entry["account"], entry["budget"], entry["filter"], entry["parent"]
    limited = isinstance(budget, Budget) and isinstance(filter_, Filter)
    if name in state.accounts or not isinstance(name, str) or not (limited or budget is filter_ is None):
        raise EntryError("an account is opened once, with a budget")
    if parent is not None and state.account(parent).closed:
        raise EntryError("the account above it is closed")
    no_other_unit(state, entry)
    _protected(state, entry)
    if limited:
        _inside(state, budget, parent)
        _limit_approved(state, entry, name, budget, entry["approvals"], _reset(state, name, budget, parent))
        if filter_.count or filter_.version != 1 or any(m.spent or m.delta_spent for m in filter_.open):
            raise EntryError("an account begins with nothing spent")
        if filter_.budget != budget:
            raise EntryError("the account's budget is not the one that was given")
        if state.prices is not None:
            state.prices.birth(entry, filter_)
    state.put(
        Account(
            name=name, filter=filter_, parent=parent, level=entry["level"], unit=entry["unit"], promised=budget,
            granted=(entry["by"],),
        )
    )  # fmt: skip


def _protected(state: State, entry: Entry) -> None:
    """Under a policy a data set says from the start which unit it protects: the one that is listed, if one is."""
    if state.policy is None:
        return
    rule, unit = state.policy.account(entry["account"]), entry["unit"]
    if rule is not None and rule.protects is not None and unit != rule.protects:
        raise EntryError("the policy says that the account protects another unit")
    if entry["level"] == "data set" and entry["budget"] is not None and unit is None:
        raise EntryError("it does not say which unit the data set protects")


def _reset(state: State, name: str, budget: Budget, parent: str | None) -> str:
    """Is it a fresh budget, beside others, that the policy does not list?"""
    if state.policy is None or state.policy.lists_fresh(name, budget, parent) or not _unlimited(state, parent):
        return ""
    others = (each for each in state.accounts.values() if each.filter is not None)
    return "reset" if any(_unlimited(state, each.parent) for each in others) else ""


def _unlimited(state: State, parent: str | None) -> bool:
    """Has no account from there upwards a limit?"""
    while parent is not None:
        over = state.account(parent)
        if over.filter is not None:
            return False
        parent = over.parent
    return True


def _inside(state: State, budget: Budget, parent: str | None) -> None:
    while parent is not None:
        over = state.account(parent)
        if over.filter is not None:
            if not budget.within(over.filter.budget):
                raise EntryError("the account would have more than the one above it")
            return
        parent = over.parent


def _limit_approved(state: State, entry: Entry, name: str, budget: Budget, approvals: Any, doing: str) -> None:
    if state.policy is None:
        return
    try:
        asked = state.policy.limit_asked(name, budget)
    except BudgetError:
        raise EntryError("the policy gives the account less than that") from None
    needed = max(asked.approvals, state.policy.approvals(doing) if doing else 0)
    act = Act.reset(name, budget) if doing == "reset" else Act.limit(name, budget)
    if used(state, {**entry, "approvals": approvals}, act) < needed:
        raise EntryError("it lacks approvals")


def limit(state: State, entry: Entry) -> None:
    account, budget = state.account(entry["account"]), entry["budget"]
    if account.filter is None or not isinstance(budget, Budget):
        raise EntryError("there is no limit to change")
    doing = "" if budget.within(account.filter.budget) else "raise"
    _limit_approved(state, entry, account.name, budget, entry["approvals"], doing)
    _changed(state, entry, account, entry["filter"], budget)


def _changed(state: State, entry: Entry, account: Account, after: Filter, budget: Budget) -> None:
    if account.closed or account.filter is None or not isinstance(after, Filter) or after.budget != budget:
        raise EntryError("there is no limit to change")
    _inside(state, budget, account.parent)
    forgot = any(m.spent > m.limit for m in after.open) or not after.open or after.count != account.filter.count
    if forgot or after.version < account.filter.version:
        raise EntryError("a changed limit forgets what was spent")
    for below in _limited_below(state, account.name):
        if below.filter is not None and not below.filter.budget.within(budget):
            raise EntryError("an account below it would have more than it has")
    if state.prices is not None:
        state.prices.limit(entry, account, after)
    state.put(changed(account, after, entry["by"]))


def _limited_below(state: State, name: str) -> Iterator[Account]:
    for account in list(state.accounts.values()):
        if account.parent == name and not account.closed:
            if account.filter is None:
                yield from _limited_below(state, account.name)
            else:
                yield account


def move(state: State, entry: Entry) -> None:
    giving, taking = state.account(entry["source"]), state.account(entry["target"])
    part, size, filters = entry["part"], entry["size"], entry["filters"]
    if giving.parent is None or giving.parent != taking.parent or part not in ("epsilon", "rho") or size <= 0:
        raise EntryError("a part of a limit moves between two accounts under the same parent")
    for account, sign in ((giving, -1), (taking, 1)):
        if account.filter is None:
            raise EntryError("there is no limit to change")
        old = account.filter.budget
        budget = replace(old, **{part: getattr(old, part) + sign * size})
        if sign > 0:
            doing = "" if account.level in ("team", "project", "person") else "raise"
            _limit_approved(state, entry, account.name, budget, entry["approvals"], doing)
        _changed(state, entry, account, filters[account.name], budget)


def close_account(state: State, entry: Entry) -> None:
    account = state.account(entry["account"])
    if account.closed:
        raise EntryError("the account was closed before")
    state.put(replace(account, closed=True))


def unlock(state: State, entry: Entry) -> None:
    state.put(replace(state.account(entry["account"]), failures=0))
