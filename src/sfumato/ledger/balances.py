"""Where accounts stand in one number, and how many more releases of a kind they have room for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from fractions import Fraction

from .. import record
from ..accounting.balance import Balance, amount, amount_with, balance
from ..errors import BudgetError, SfumatoError
from ..events import Event
from ..plan import Receipt
from .counting import times
from .stores.base import Account, Book, Store

Release = tuple[Event, Fraction]
_LOOKED_AT = 300  # entries, from the last one back: who was last charged earlier is not asked after


def balance_of(account: Account, asked: Release | None = None) -> Balance | None:
    """Where an account stands by itself; with a release, what that would make of it and how many more like it fit then.
    None for an account without a limit of its own."""
    if account.filter is None:
        return None
    now = balance(account.filter)
    if asked is None:
        return now
    room = times(account, *asked)
    if not room:
        return replace(now, after=amount_with(account.filter, *asked), fits=False)
    after = account.filter.spend(*asked, list(account.held.values()))
    return replace(now, after=amount(after), fits=True, room=room - 1)


def balances(store: Store, names: Collection[str] | None = None) -> dict[str, Balance | None]:
    """Where accounts stand, and how many more fit of the kind that each was last charged for."""
    with store.reading() as book:
        chosen = book.accounts() if names is None else names
        accounts = {name: account for name in chosen if (account := book.account(name)) is not None}
        last = _last(book, set(accounts))
    return {name: _like_the_last(account, last) for name, account in accounts.items()}


def like_the_last(store: Store, account: Account) -> Balance | None:
    """The same for one account, as it was read."""
    with store.reading() as book:
        last = _last(book, {account.name})
    return _like_the_last(account, last)


def _like_the_last(account: Account, last: Mapping[str, Release]) -> Balance | None:
    now = balance_of(account)
    if now is None or account.closed or account.name not in last:
        return now
    try:
        return replace(now, room=times(account, *last[account.name]))
    except (BudgetError, ValueError):
        return now


def _last(book: Book, names: set[str]) -> dict[str, Release]:
    """What each account was last charged for, or holds room for, if that is not long ago."""
    found: dict[str, Release] = {}
    head = book.head.number
    for number in range(head, max(0, head - _LOOKED_AT), -1):
        stored = book.entry(number)
        if stored is None or (b'"spend"' not in stored[1] and b'"hold"' not in stored[1]):
            continue
        try:
            entry = record.parse(stored[1], dict)
        except SfumatoError:  # of a kind that is not installed here
            continue
        receipt, delta = entry.get("receipt"), entry.get("delta")
        if entry.get("kind") in ("spend", "hold") and isinstance(receipt, Receipt) and isinstance(delta, Fraction):
            for name in names.intersection(receipt.accounts) - set(found):
                found[name] = receipt.event, delta
        if len(found) == len(names):
            break
    return found
