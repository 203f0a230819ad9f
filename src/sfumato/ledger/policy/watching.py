"""What alerts remember between spends. It is told to nobody's cost: no rule depends on it, and no entry."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ... import questions
from ...plan import Plan
from ..stores.base import Account, Book
from .alerts import Alert, Watch
from .approvals import ledger_time
from .policy import Policy


def spent(
    book: Book,
    policy: Policy | None,
    before: dict[str, Account],
    after: dict[str, Account],
    plan: Plan[Any, Any] | None = None,
) -> tuple[Alert, ...]:
    """After a spend, before its commit: which accounts crossed a mark, burn fast, or see one question over and over."""
    if policy is None:
        return ()
    now, digest = ledger_time(book), None if plan is None else questions.digest(plan.asks())
    alerts: list[Alert] = []
    for name, account in after.items():
        watch: Watch = book.fact("watch", name) or Watch(account=name)
        was, share = (_share(each) for each in (before[name], account))
        watch, told = watch.after(policy, now, was, share, digest, account.failures)
        book.put_fact("watch", name, watch)
        alerts += told
    return tuple(alerts)


def failed(book: Book, policy: Policy | None, after: Iterable[Account]) -> tuple[Alert, ...]:
    return spent(book, policy, *({each.name: each for each in after},) * 2) if policy is not None else ()


def _share(account: Account) -> Fraction:
    return Fraction(0) if account.filter is None else account.filter.used
