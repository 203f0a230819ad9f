"""What takes the consent of others: an act, named so exactly that whoever approves it approves nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ... import record
from ...accounting.filters import Budget
from ..stores.base import Book
from .policy import Policy

_OF_THE_STORE = ("birth", "writer", "accept restore")


@record.record("act/1")
@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that one person wants to do.

    do    "spend", "raise", "reset", "weaken unit", "adopt", "without DP", "invariant"
    on    the account, or the address of the data
    what  SHA-256 of what exactly: the plan, the budget, the policy, the text
    """

    do: str
    on: str
    what: str

    @classmethod
    def spend(cls, plan_hash: str, data: str, accounts: Iterable[str]) -> Act:
        """A release of this plan on this data, paid by all these accounts."""
        return cls(do="spend", on=data, what=record.digest({"plan": plan_hash, "accounts": sorted(accounts)}))

    @classmethod
    def weaken(cls, data: str, accounts: Iterable[str]) -> Act:
        """These accounts, which protect another unit, hold a budget of this data too."""
        return cls(do="weaken unit", on=data, what=record.digest({"accounts": sorted(accounts)}))

    @classmethod
    def limit(cls, account: str, budget: Budget) -> Act:
        return cls(do="raise", on=account, what=record.digest(budget))

    @classmethod
    def reset(cls, account: str, budget: Budget) -> Act:
        """A new account with this budget, which no other one limits, beside those that the ledger has."""
        return cls(do="reset", on=account, what=record.digest(budget))


@record.record("approval/1")
@dataclass(frozen=True, kw_only=True)
class Approval:
    by: str
    number: int
    until: str


@record.record("approvals/1")
@dataclass(frozen=True, kw_only=True)
class Approvals:
    """What was asked for, and who has approved it since it was last done. An approval serves once."""

    act: Act
    given: tuple[Approval, ...] = ()

    def valid(self, policy: Policy, doer: str, now: str) -> tuple[Approval, ...]:
        """One of each person who may still approve, the doer apart, that has not run out."""
        latest = {each.by: each for each in self.given if each.by != doer and each.until >= now}
        return tuple(each for by, each in latest.items() if policy.refusal(by, "approve") is None)

    def plus(self, approval: Approval) -> Approvals:
        others = tuple(each for each in self.given if each.by != approval.by)
        return replace(self, given=(*others, approval))


def ledger_time(book: Book) -> str:
    """The clock, or the latest time that an entry tells: a clock that was put back makes nothing younger."""
    return max(datetime.now(UTC).isoformat(), latest(book))


def latest(book: Book) -> str:
    """The latest time that entries tell. An entry of a ledger repeats it where its own clock is behind (`latest`); the
    store's own entries do not, so they are passed over."""
    time = ""
    for number in range(book.head.number, 0, -1):
        entry = book.entry(number)
        try:
            said = {} if entry is None else dict(json.loads(entry[1])["items"])  # not its records: that takes longer
            time = max(time, told_time(said))
            if said["kind"] not in _OF_THE_STORE:
                break
        except (ValueError, KeyError, TypeError):
            break
    return time


def told_time(entry: Any) -> str:
    """The time of one entry, or the latest before it, if that is later."""
    return max(str(entry["at"]), str(entry.get("latest", "")))


def until(now: str, days: float) -> str:
    return (datetime.fromisoformat(now) + timedelta(days=days)).isoformat()
