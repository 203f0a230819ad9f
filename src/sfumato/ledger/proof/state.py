"""What a replay knows of a ledger after each entry, and how a rule says that an entry cannot follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from ...accounting.filters import Filter, Priced
from ...events import Event
from ...plan import Receipt
from ..policy.policy import Policy
from ..stores.base import Account

Entry = dict[str, Any]


class EntryError(Exception):
    """Why an entry cannot follow."""


class Settled(NamedTuple):
    """A receipt as the entries tell it; of a stored answer they tell the SHA-256."""

    receipt: Receipt
    state: str
    key: str | None = None
    answer: str | None = None


class Wrong(NamedTuple):
    """The first entry that cannot follow the ones before it."""

    number: int
    reason: str


class Prices(Protocol):
    """Asks whether what was written down is what the accountant says. Raises EntryError where it is not."""

    def birth(self, entry: Entry, filter_: Filter) -> None: ...

    def charge(self, entry: Entry, account: Account, event: Priced, delta: Fraction) -> None: ...

    def limit(self, entry: Entry, account: Account, after: Filter) -> None: ...

    def shape(self, entry: Entry, account: Account, shape: Filter) -> None: ...

    def plan(self, entry: Entry, policy: Policy | None) -> None: ...

    def part(self, entry: Entry) -> None: ...


@dataclass
class State:
    """What a ledger has come to."""

    prices: Prices | None = None
    accounts: dict[str, Account] = field(default_factory=dict)
    receipts: dict[str, Settled] = field(default_factory=dict)
    facts: dict[tuple[str, str], Any] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    lists: dict[str, dict[str, Event]] = field(default_factory=dict)  # by receipt: a list's parts, with their events
    number: int = 0
    time: str = ""  # the latest that was told since a policy is in force: approvals run out by it
    wrong: Wrong | None = None

    @property
    def policy(self) -> Policy | None:
        return self.facts.get(("policy", ""))

    def account(self, name: Any) -> Account:
        if name not in self.accounts:
            raise EntryError("it names an account that was never opened")
        return self.accounts[name]

    def settled(self, id: Any) -> Settled:
        if id not in self.receipts:
            raise EntryError("it names a receipt that was never written")
        return self.receipts[id]

    def put(self, account: Account) -> None:
        self.accounts[account.name] = account


def limited_above(state: State, account: Account) -> set[str]:
    found: set[str] = set()
    while account.parent is not None and account.parent not in found:
        account = state.account(account.parent)
        if account.closed:
            raise EntryError("an account above is closed")
        if account.filter is not None:
            found.add(account.name)
    return found
