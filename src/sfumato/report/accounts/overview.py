"""All accounts of a ledger at once, each below the one that it belongs to. Reads their state, not the chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...ledger.charges import LOCK_AFTER
from ...ledger.policy.policy import Policy
from ...ledger.stores.base import Account, Store
from ...units import Unit


class Placed(NamedTuple):
    """An account, and how many stand above it."""

    depth: int
    account: Account
    locked: bool


class Overview(NamedTuple):
    """The accounts as of entry `number`."""

    number: int
    hash: str
    accounts: tuple[Placed, ...]


def overview(store: Store) -> Overview:
    """Where every account stands."""
    with store.reading() as book:
        accounts = {name: account for name in book.accounts() if (account := book.account(name)) is not None}
        head = book.head
        policy: Policy | None = book.fact("policy", "")
    most = LOCK_AFTER if policy is None else policy.lock_after
    placed = tuple(Placed(depth, account, account.failures >= most) for depth, account in in_order(accounts))
    return Overview(head.number, head.hash.hex(), placed)


def in_order(accounts: Mapping[str, Account]) -> Iterator[tuple[int, Account]]:
    """Each account right after the one above it, with its depth."""
    under: dict[str | None, list[Account]] = {}
    for account in accounts.values():
        under.setdefault(account.parent if account.parent in accounts else None, []).append(account)
    waiting = [(0, account) for account in reversed(under.get(None, []))]
    while waiting:
        depth, account = waiting.pop()
        yield depth, account
        waiting += [(depth + 1, each) for each in reversed(under.get(account.name, []))]


def unit_of(accounts: Mapping[str, Account], name: str | None) -> Unit | None:
    """What an account protects: its own unit, or that of the nearest above it."""
    seen = accounts.get(name or "")
    while seen is not None and seen.unit is None:
        seen = accounts.get(seen.parent or "")
    return None if seen is None else seen.unit
