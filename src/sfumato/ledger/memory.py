"""A ledger in memory: for tests, notebooks and rehearsals. It is gone when the process is."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from .. import checks
from ..accounting.filters import Budget, Filter, Hold
from ..errors import BudgetError, ReceiptError
from ..events import Event
from ..plan import Gauge, Plan, Receipt
from ..units import Unit

_LOCK_AFTER = 3  # failures on the data's side before an account locks: answered or failed is one unprotected bit


@dataclass
class _Account:
    filter: Filter
    unit: Unit | None = None  # fixed by the first spend
    held: dict[str, Hold] = field(default_factory=dict)
    failures: int = 0


@dataclass
class _Entry:
    receipt: Receipt
    state: str  # "spent" or "held", then "opened", then "answered" or "failed"
    answer: bytes | None = None


class MemoryLedger:
    """Accounts by name, each with a budget that no adaptive choice can exceed.

    >>> ledger = MemoryLedger({"patients": Budget(epsilon=2, delta=1e-6)})
    """

    def __init__(self, accounts: Mapping[str, Budget]) -> None:
        if not isinstance(accounts, Mapping) or not accounts:
            raise checks.refuse("accounts", accounts, "a Budget per account name")
        for name, budget in accounts.items():
            checks.label(name, "the name of an account")
            if not isinstance(budget, Budget):
                raise checks.refuse(name, budget, "a Budget")
        self._accounts = {name: _Account(Filter.of(budget)) for name, budget in accounts.items()}
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.RLock()

    def answer(self, accounts: tuple[str, ...], plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        with self._lock:
            for entry in self._entries.values() if accounts else ():
                paid = entry.receipt
                same = (paid.plan_hash, paid.data) == (plan_hash, data) and set(accounts) <= set(paid.accounts)
                if same and entry.answer is not None:
                    return paid, entry.answer
            return None

    def quote(self, accounts: tuple[str, ...], plan: Plan[Any]) -> bool:
        with self._lock:
            try:
                self._after(accounts, plan.unit, plan.event, plan.delta)
            except BudgetError:
                return False
            return True

    def spend(self, accounts: tuple[str, ...], plan: Plan[Any], *, data: str, grade: str, note: str) -> Receipt:
        with self._lock:
            self._commit(self._after(accounts, plan.unit, plan.event, plan.delta), plan.unit)
            return self._enter(accounts, plan, data, grade, note, "spent", "plan")

    def open(self, receipt: Receipt) -> None:
        with self._lock:
            entry = self._entry(receipt)
            if entry.state not in ("spent", "held"):
                raise ReceiptError("this receipt was opened before: every release pays for itself")
            entry.state = "opened"

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        with self._lock:
            checks.one_of(outcome, "outcome", ("answered", "failed"))
            entry = self._entry(receipt)
            if entry.state in ("answered", "failed") or (entry.state != "opened" and outcome == "answered"):
                raise ReceiptError("a receipt is settled once, and only an opened receipt can be answered")
            entry.state, entry.answer = outcome, answer if outcome == "answered" else None
            if outcome == "failed":
                for name in receipt.accounts:
                    self._accounts[name].failures += 1

    def hold(self, accounts: tuple[str, ...], plan: Plan[Any], *, data: str, grade: str, note: str) -> Receipt:
        with self._lock:
            self._after(accounts, plan.unit, plan.event, plan.delta)
            receipt = self._enter(accounts, plan, data, grade, note, "held", "trusted loop")
            for name in accounts:
                account = self._account(name)
                account.filter = account.filter.shaped(plan.event, plan.delta, list(account.held.values()))
                account.held[receipt.id] = Hold(plan.event, plan.delta)
            return receipt

    def draw(self, receipt: Receipt, event: Event, delta: Fraction) -> None:
        with self._lock:
            if self._entry(receipt).state != "opened" or not self._holds(receipt):
                raise ReceiptError("nothing is held under this receipt")
            after = self._after(receipt.accounts, receipt.unit, event, delta, drawing=receipt.id)
            self._commit(after, receipt.unit)
            for name in receipt.accounts:
                hold = self._accounts[name].held[receipt.id]
                self._accounts[name].held[receipt.id] = replace(hold, drawn=(*hold.drawn, (event, delta)))

    def close(self, receipt: Receipt) -> None:
        with self._lock:
            for name in receipt.accounts:
                self._account(name).held.pop(receipt.id, None)

    def spent(self, account: str) -> tuple[Gauge, ...]:
        with self._lock:
            return tuple(Gauge(m.currency, m.spent, m.limit) for m in self._account(account).filter.open)

    def left(self, account: str) -> str:
        with self._lock:
            first, *others = self.spent(account)
            text = f"{float(first.limit - first.spent):.6g} of {float(first.limit):.6g} {first.currency} left"
            if others:
                text += f" (or {len(others)} other gauge{'s' if len(others) > 1 else ''}: see ledger.spent)"
            holds = len(self._account(account).held)
            return text + (f", {holds} hold(s) open" if holds else "")

    def room(self, account: str) -> Room:
        """What the account would still accept: `calibrate(..., account=ledger.room("patients"))`."""
        self._account(account)
        return Room(self, account)

    def unlock(self, account: str, reason: str) -> None:
        """An officer has looked at the failures and found them harmless."""
        checks.label(reason, "reason")
        with self._lock:
            self._account(account).failures = 0

    def _after(
        self, accounts: tuple[str, ...], unit: Unit, event: Event, delta: Fraction, drawing: str | None = None
    ) -> dict[str, Filter]:
        """The state of every account on the path after the spend; raises, changing nothing, if one refuses."""
        after: dict[str, Filter] = {}
        if not accounts:
            raise BudgetError("no account is named: somebody has to pay")
        for name in accounts:
            account = self._account(name)
            if account.failures >= _LOCK_AFTER and drawing is None:
                raise BudgetError(
                    f"account {name!r} is locked after {account.failures} failures on the data's side: a privacy "
                    "officer must look at them and unlock it"
                )
            if account.unit not in (None, unit) or event.relation != unit.change:
                raise BudgetError(
                    f"account {name!r} protects [{account.unit}], and this release protects [{unit}]: guarantees for "
                    "different units do not add up; open another account"
                )
            others = [hold for id, hold in account.held.items() if id != drawing]
            after[name] = account.filter.spend(event, delta, others)
        return after

    def _commit(self, after: dict[str, Filter], unit: Unit) -> None:
        for name, state in after.items():
            self._accounts[name].filter = state
            self._accounts[name].unit = unit

    def _enter(
        self, accounts: tuple[str, ...], plan: Plan[Any], data: str, grade: str, note: str, state: str, loop: str
    ) -> Receipt:
        receipt = Receipt(
            id=secrets.token_hex(16),
            accounts=accounts,
            plan_hash=plan.hash,
            event=plan.event,
            data=data,
            unit=plan.unit,
            grade=grade,
            note=note,
            loop=loop,
        )
        self._entries[receipt.id] = _Entry(receipt, state)
        return receipt

    def _holds(self, receipt: Receipt) -> bool:
        return all(receipt.id in self._account(name).held for name in receipt.accounts)

    def _account(self, name: str) -> _Account:
        if name not in self._accounts:
            raise BudgetError(f"there is no account {name!r}: open one with a budget first")
        return self._accounts[name]

    def _entry(self, receipt: Receipt) -> _Entry:
        entry = self._entries.get(receipt.id)
        if entry is None or entry.receipt != receipt:
            raise ReceiptError("this ledger did not write that receipt")
        return entry


@dataclass(frozen=True)
class Room:
    """An account, to be asked whether an event would fit. Asking costs nothing."""

    _ledger: MemoryLedger
    _account: str

    def fits(self, event: Event, delta: Fraction) -> bool:
        with self._ledger._lock:
            account = self._ledger._account(self._account)
            try:
                account.filter.spend(event, delta, list(account.held.values()))
            except BudgetError:
                return False
            return True
