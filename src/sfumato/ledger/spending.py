"""The spend protocol: quote, spend, open, settle; hold, draw, close. Each is one durable step."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import checks, record
from ..accounting.filters import Charge, Hold
from ..errors import BudgetError, PolicyError, ReceiptError, UnsupportedEventError
from ..events import Event
from ..plan import Plan, Receipt
from ..units import Unit
from .desk import LIBRARY, Desk, short
from .policy import paying as paying_from
from .policy import watching
from .policy.alerts import Alert
from .policy.approvals import Act
from .policy.policy import Policy, kinds_within
from .stores.base import Account, Book, Filed
from .tree import above, found, of_data, payers

LOCK_AFTER = 3  # failures on the data's side before an account locks: answered or failed is one unprotected bit
_PATH = tuple[str, ...]


class Spending(Desk):
    """Pays for plans, and keeps their answers."""

    def path(self, accounts: _PATH, plan: Plan[Any], *, data: str) -> _PATH:
        """Every account that the plan would be charged to: those named, all above them, and the data's own."""
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        with self._store.reading() as book:
            return tuple(payers(book, accounts, short(data, "data"), plan.unit))

    def answer(self, accounts: _PATH, plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        with self._store.reading() as book:
            for filed in book.answered(short(plan_hash, "plan_hash"), short(data, "data")):
                self._policy(book, "spend")
                paying = set(payers(book, accounts, data, filed.receipt.unit))
                if paying <= set(filed.receipt.accounts) and filed.answer is not None:
                    return filed.receipt, filed.answer
        return None

    def quote(self, accounts: _PATH, plan: Plan[Any], *, data: str = "") -> bool:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        checks.texts(accounts, "accounts")
        with self._store.reading() as book:
            try:
                paying = payers(book, accounts, short(data, "data"), plan.unit)
                self._charges(book, paying, plan.unit, plan.event, plan.delta)
            except BudgetError:
                return False
            return True

    def spend(
        self, accounts: _PATH, plan: Plan[Any], *, data: str, grade: str, note: str, key: str | None = None
    ) -> Receipt:
        with self._store.writing() as book:
            if key is not None and (paid := self._under(book, key, accounts, plan, data)) is not None:
                return paid.receipt
            paying, policy, approvals = self._asked(book, accounts, plan, data, grade, note)
            charged, after = self._charges(book, paying, plan.unit, plan.event, plan.delta)
            receipt, text = self._receipt(tuple(paying), plan, data, grade, note, "plan"), text_of(plan)
            self._write(
                book, "spend", receipt=receipt, delta=plan.delta, plan=text, key=key, charged=charged,
                library=LIBRARY, approvals=approvals,
            )  # fmt: skip
            for account in after.values():
                book.put_account(account)
            book.file(Filed(receipt, "spent", key))
            alerts = watching.spent(book, policy, paying, after, text)
        self._tell(policy, alerts)
        return receipt

    def paid(self, key: str, accounts: _PATH, plan: Plan[Any], *, data: str) -> tuple[Receipt, bytes | None] | None:
        with self._store.reading() as book:
            filed = self._under(book, key, accounts, plan, data)
        if filed is None:
            return None
        if filed.state in ("spent", "held") or (filed.state == "answered" and filed.answer is not None):
            return filed.receipt, filed.answer
        raise ReceiptError(
            "no answer is stored under this key: its release still runs, or ended after the data was opened; "
            "a new key pays again"
        )

    def _under(self, book: Book, key: str, accounts: _PATH, plan: Plan[Any], data: str) -> Filed | None:
        """What was paid under this key before. A key stands for one plan, on one version of the data, paid once."""
        self._policy(book, "spend")
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        checks.texts(accounts, "accounts")
        filed = book.filed_under(checks.label(key, "key"))
        if filed is None:
            return None
        receipt = filed.receipt
        if (receipt.plan_hash, receipt.data) != (plan.hash, data) or not set(accounts) <= set(receipt.accounts):
            raise ReceiptError(
                "this key was used for another plan, other data or other accounts: a key pays for one release, once"
            )
        return filed

    def open(self, receipt: Receipt) -> None:
        with self._store.writing() as book:
            self._policy(book, "spend")
            filed = _filed(book, receipt)
            if filed.state not in ("spent", "held"):
                raise ReceiptError("this receipt was opened before: every release pays for itself")
            self._write(book, "open", receipt=receipt.id)
            book.file(filed._replace(state="opened"))

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        checks.one_of(outcome, "outcome", ("answered", "failed"))
        policy: Policy | None = None
        alerts: tuple[Alert, ...] = ()
        with self._store.writing() as book:
            filed = _filed(book, receipt)
            if filed.state in ("answered", "failed") or (filed.state != "opened" and outcome == "answered"):
                raise ReceiptError("a receipt is settled once, and only an opened receipt can be answered")
            kept = answer if outcome == "answered" else None
            digest = None if kept is None else hashlib.sha256(kept).hexdigest()
            self._write(book, "settle", receipt=receipt.id, outcome=outcome, answer=digest)
            book.file(filed._replace(state=outcome, answer=kept))
            if outcome == "failed":
                failed = [found(book, name) for name in receipt.accounts]
                after = [replace(account, failures=account.failures + 1) for account in failed]
                for account in after:
                    book.put_account(account)
                policy = book.fact("policy", "")
                alerts = watching.failed(book, policy, after)
        self._tell(policy, alerts)

    def hold(
        self, accounts: _PATH, plan: Plan[Any], *, data: str, grade: str, note: str, key: str | None = None
    ) -> Receipt:
        with self._store.writing() as book:
            if key is not None and (paid := self._under(book, key, accounts, plan, data)) is not None:
                return paid.receipt
            paying, _, approvals = self._asked(book, accounts, plan, data, grade, note)
            self._charges(book, paying, plan.unit, plan.event, plan.delta)
            receipt = self._receipt(tuple(paying), plan, data, grade, note, "trusted loop")
            shapes = {}
            for name, account in paying.items():
                assert account.filter is not None
                shaped = account.filter.shaped(plan.event, plan.delta, list(account.held.values()))
                held = {**account.held, receipt.id: Hold(plan.event, plan.delta)}
                book.put_account(replace(account, filter=shaped, held=held))
                if shaped is not account.filter:
                    shapes[name] = shaped
            self._write(
                book, "hold", receipt=receipt, delta=plan.delta, plan=text_of(plan), key=key, shapes=shapes,
                library=LIBRARY, approvals=approvals,
            )  # fmt: skip
            book.file(Filed(receipt, "held", key))
            return receipt

    def draw(self, receipt: Receipt, event: Event, delta: Fraction) -> None:
        with self._store.writing() as book:
            self._policy(book, "spend")
            filed = _filed(book, receipt)
            paying = {name: found(book, name) for name in receipt.accounts}
            if filed.state != "opened" or any(receipt.id not in account.held for account in paying.values()):
                raise ReceiptError("nothing is held under this receipt")
            for account in paying.values():
                if (shut := next((each for each in above(book, account) if each.closed), None)) is not None:
                    raise BudgetError(f"account {shut.name!r} is closed: nothing more is paid from what is below it")
            charged, after = self._charges(book, paying, receipt.unit, event, delta, drawing=receipt.id)
            self._write(book, "draw", receipt=receipt.id, event=event, delta=delta, charged=charged, library=LIBRARY)
            for account in after.values():
                drawn = account.held[receipt.id].after(event, delta)
                book.put_account(replace(account, held={**account.held, receipt.id: drawn}))
            policy: Policy | None = book.fact("policy", "")
            alerts = watching.spent(book, policy, paying, after)
        self._tell(policy, alerts)

    def close(self, receipt: Receipt) -> None:
        with self._store.writing() as book:
            _filed(book, receipt)
            self._write(book, "close", receipt=receipt.id)
            for name in receipt.accounts:
                account = found(book, name)
                held = {id: hold for id, hold in account.held.items() if id != receipt.id}
                book.put_account(replace(account, held=held))

    def _asked(
        self, book: Book, accounts: _PATH, plan: Plan[Any], data: str, grade: str, note: str
    ) -> tuple[dict[str, Account], Policy | None, tuple[int, ...]]:
        """Who pays, and whether the policy lets this person ask for it."""
        policy = self._policy(book, "spend")
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        if not short(data, "data"):
            raise BudgetError("no data is named: a release is charged to the accounts of what it reads; give data=")
        paying = payers(book, accounts, data, plan.unit)
        if policy is None:
            return paying, None, ()
        for account in paying.values():
            if self._principal in account.granted:
                raise PolicyError(f"who grants may not spend: account {account.name!r} was granted by you")
        roots = of_data(book, data, plan.unit)
        refusal = paying_from.refusal(policy, self._principal, paying, roots, lambda name: _parent(book, name))
        if refusal is not None:
            raise PolicyError(refusal)
        asked = policy.asked(
            accounts=tuple(paying),
            plan=kinds_within(text_of(plan)),
            grade=grade,
            epsilon=price_of(plan),
            delta=plan.delta,
            purpose=note,
        )
        act = Act.spend(plan.hash, data, paying)
        return paying, policy, self._approved(book, policy, act, asked.approvals, "; ".join(asked.reasons))

    def _charges(
        self,
        book: Book,
        paying: dict[str, Account],
        unit: Unit,
        event: Event,
        delta: Fraction,
        drawing: str | None = None,
    ) -> tuple[dict[str, Charge], dict[str, Account]]:
        """What every account on the path is charged, and comes to; raises, changing nothing, if one refuses."""
        policy: Policy | None = book.fact("policy", "")
        lock = LOCK_AFTER if policy is None else policy.lock_after
        charged, after = {}, {}
        for name, account in paying.items():
            if account.closed or account.filter is None:
                raise BudgetError(f"account {name!r} is closed: nothing more is paid from it")
            if account.failures >= lock and drawing is None:
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
            charged[name], filter_ = account.filter.charged(event, delta, others)
            after[name] = record.moved(account, filter=filter_, unit=account.unit or unit)
        return charged, after

    def _receipt(self, accounts: _PATH, plan: Plan[Any], data: str, grade: str, note: str, loop: str) -> Receipt:
        return Receipt(
            id=secrets.token_hex(16),
            accounts=accounts,
            plan_hash=plan.hash,
            event=plan.event,
            data=data,
            unit=plan.unit,
            grade=short(grade, "grade"),
            note=short(note, "note"),
            loop=loop,
        )


def _parent(book: Book, name: str) -> str | None:
    account = book.account(name)
    return None if account is None else account.parent


def _filed(book: Book, receipt: Receipt) -> Filed:
    known = isinstance(receipt, Receipt) and isinstance(receipt.id, str) and receipt.id.isascii()
    filed = book.filed(receipt.id) if known else None
    if filed is None or filed.receipt != receipt:
        raise ReceiptError("this ledger did not write that receipt")
    return filed


def price_of(plan: Plan[Any]) -> Fraction | None:
    """Its epsilon; None where it has none at its delta, which is above every band."""
    try:
        return plan.price()
    except UnsupportedEventError:
        return None


def text_of(plan: Plan[Any]) -> str:
    """The whole plan as JSON: an auditor reads what ran."""
    return record.canonical(plan).decode("ascii")
