"""Who pays, what each account is charged, and whether accounts and policy let them: asked within a transaction."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from .. import checks, questions, record
from ..accounting.filters import Block, Charge, Filter, Priced
from ..accounting.members import plan_epsilon
from ..errors import BudgetError, PlanError, PolicyError, UnsupportedEventError
from ..plan import Plan, Receipt
from ..units import Unit
from . import parts
from .desk import Desk, short
from .policy import paying as paying_from
from .policy.approvals import Act
from .policy.policy import Policy, kinds_within
from .pricing import outside, priced_as
from .request import Names, Request
from .stores.base import Account, Book
from .tree import of_data, payers

LOCK_AFTER = 3  # failures on the data's side before an account locks: answered or failed is one unprotected bit


class Charges:
    """Asks the accounts on a path, and charges none of them yet."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def path(self, accounts: Names, plan: Plan[Any, Any], *, data: str) -> Names:
        """Every account that the plan would be charged to: those named, all above them, and the data's own."""
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        with self._desk.reading() as book:
            return tuple(payers(book, accounts, short(data, "data"), plan.unit))

    def asked(self, book: Book, request: Request) -> tuple[dict[str, Account], Policy | None, tuple[int, ...]]:
        """Who pays, and whether the policy lets this person ask for it."""
        plan = request.plan
        paying, policy = self.payers(book, request.accounts, plan, request.data)
        if policy is None:
            return paying, None, ()
        outside(("price", plan.event, plan.delta), lambda: price_of(plan))
        asked = policy.asked(
            accounts=tuple(paying),
            plan=kinds_within(text_of(plan)),
            grade=request.grade,
            epsilon=price_of(plan),
            delta=plan.delta,
            purpose=request.note,
        )
        act = Act.spend(plan.hash, request.data, paying)
        return paying, policy, self._desk.approved(book, policy, act, asked.approvals, "; ".join(asked.reasons))

    def payers(
        self, book: Book, accounts: Names, plan: Plan[Any, Any], data: str
    ) -> tuple[dict[str, Account], Policy | None]:
        """Who pays, and whether the policy lets this person pay from there."""
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        return self.paying(book, accounts, plan.unit, data)

    def paying(self, book: Book, accounts: Names, unit: Unit, data: str) -> tuple[dict[str, Account], Policy | None]:
        """The same for any release that protects this unit. What was paid by others is for those who might pay it."""
        policy = self._desk.policy(book, "spend")
        if not short(data, "data"):
            raise BudgetError("no data is named: a release is charged to the accounts of what it reads; give data=")
        paying = payers(book, accounts, data, unit)
        if policy is None:
            return paying, None
        for account in paying.values():
            if self._desk.principal in account.granted:
                raise PolicyError(f"who grants may not spend: account {account.name!r} was granted by you")
        roots = of_data(book, data, unit)
        refusal = paying_from.refusal(policy, self._desk.principal, paying, roots, lambda name: _parent(book, name))
        if refusal is not None:
            raise PolicyError(refusal)
        return paying, policy

    def waiting(
        self, book: Book, paying: Collection[str], plan: Plan[Any, Any], data: str, grade: str | None = None
    ) -> Receipt | None:
        """The receipt of the oldest list that this plan waits in, of those that whoever asks might pay for now: a part
        runs on all accounts of its list, also on those that they did not name."""
        for receipt in parts.waiting(book, paying, plan, data, grade):
            with suppress(PolicyError):
                needed, _ = self.payers(book, receipt.accounts, plan, data)
                if set(needed) <= set(receipt.accounts):
                    return receipt
        return None

    def charged(
        self,
        book: Book,
        paying: dict[str, Account],
        unit: Unit,
        event: Priced | Mapping[str, Block],
        delta: Fraction,
        drawing: str | None = None,
    ) -> tuple[dict[str, Charge], dict[str, Account]]:
        """What every account on the path is charged, and comes to; raises, changing nothing, if one refuses.

        event  for all of them, or, of steps that are drawn, for each its own: accounts count failures apart
        """
        charged, after = {}, {}
        each = event if isinstance(event, Mapping) else dict.fromkeys(paying, event)
        self.usable(book, paying, unit, next(iter(each.values()), None), drawing=drawing is not None)

        def charges() -> Iterator[tuple[str, Charge, Filter]]:
            for name, account in paying.items():
                assert account.filter is not None
                others = [hold for id, hold in account.held.items() if id != drawing]
                yield name, *account.filter.charged(each[name], delta, others, drawing=drawing is not None)

        terms = tuple(each.values()), delta, drawing is not None, priced_as(paying)
        outside(terms, lambda: list(charges()))
        for name, charge, filter_ in charges():
            account = paying[name]
            charged[name], after[name] = charge, record.moved(account, filter=filter_, unit=account.unit or unit)
        return charged, after

    def usable(
        self, book: Book, paying: dict[str, Account], unit: Unit, event: Priced | None = None, *, drawing: bool = False
    ) -> None:
        """Refuse accounts that are closed, locked, or of another unit: nothing is paid from them, nor run on what
        they have paid."""
        policy: Policy | None = book.fact("policy", "")
        lock = LOCK_AFTER if policy is None else policy.lock_after
        for name, account in paying.items():
            if account.closed or account.filter is None:
                raise BudgetError(f"account {name!r} is closed: nothing more is paid from it")
            if account.failures >= lock and not drawing:
                raise BudgetError(
                    f"account {name!r} is locked after {account.failures} failures on the data's side: a privacy "
                    "officer must look at them and unlock it",
                    code="locked",
                )
            if account.unit not in (None, unit) or (event is not None and event.relation != unit.change):
                raise BudgetError(
                    f"account {name!r} protects [{account.unit}], and this release protects [{unit}]: guarantees for "
                    "different units do not add up; open another account"
                )

    def receipt(self, accounts: Names, request: Request, loop: str) -> Receipt:
        """For what these accounts pay."""
        plan, grade = request.plan, request.grade
        if plan.grade != "exact" and short(grade, "grade") == "exact":
            raise PlanError(f"the plan's noise is of grade {plan.grade!r}: its receipt cannot say 'exact'")
        return Receipt(
            id=secrets.token_hex(16),
            accounts=accounts,
            plan_hash=plan.hash,
            event=plan.event,
            data=request.data,
            unit=plan.unit,
            grade=short(grade, "grade"),
            note=short(request.note, "note"),
            loop=loop,
        )


def _parent(book: Book, name: str) -> str | None:
    account = book.account(name)
    return None if account is None else account.parent


def price_of(plan: Plan[Any, Any]) -> Fraction | None:
    """Its epsilon; None where it has none at its delta, which is above every band."""
    try:
        return plan_epsilon(plan.event, plan.delta)  # plan.price(), remembered
    except UnsupportedEventError:
        return None


def text_of(plan: Plan[Any, Any]) -> str:
    """The whole plan as JSON: an auditor reads what ran."""
    return record.canonical(plan).decode("ascii")


def stated(plan: Plan[Any, Any]) -> dict[str, str]:
    """What an entry says of a plan, as JSON: all of it, what it asks, what bounds one unit, and what is done with noisy
    numbers."""
    stated = {"question": plan.asks(), "limits": plan.contribution_bounds(), "afterwards": plan.afterwards()}
    return {"plan": text_of(plan)} | {name: questions.written(words) for name, words in stated.items()}
