"""The spend protocol: quote, spend or prepay, open, settle. Each is one durable step. For long work see holding.py."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from .. import checks
from ..errors import BudgetError, ReceiptError
from ..plan import Plan, Receipt
from . import parts
from .charging import Names, stated
from .desk import LIBRARY, short
from .holding import Holding, filed_as
from .owners import Owners, new_owners, remember
from .policy import watching
from .policy.alerts import Alert
from .policy.policy import Policy
from .pricing import priced_before
from .proof.rules_receipts import UNOPENED
from .stores.base import Book, Filed
from .tree import found, payers


class Spending(Holding):
    """Pays for plans, and keeps their answers."""

    def answer(self, accounts: Names, plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        with self._store.reading() as book:
            for filed in book.answered(short(plan_hash, "plan_hash"), short(data, "data")):
                paying, _ = self._paying(book, accounts, filed.receipt.unit, data)
                if set(paying) <= set(filed.receipt.accounts) and filed.answer is not None:
                    return filed.receipt, filed.answer
        return None

    @priced_before
    def quote(self, accounts: Names, plan: Plan[Any], *, data: str = "") -> bool:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        checks.texts(accounts, "accounts")
        with self._store.reading() as book:
            try:
                paying = payers(book, accounts, short(data, "data"), plan.unit)
                if (paid := self._waiting(book, paying, plan, data)) is not None:
                    self._usable(book, {name: found(book, name) for name in paid.accounts}, plan.unit)
                else:
                    self._charges(book, paying, plan.unit, plan.event, plan.delta)
            except BudgetError:
                return False
            return True

    def prepaid(self, accounts: Names, plan: Plan[Any], *, data: str) -> Receipt | None:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        with self._store.reading() as book:
            if not parts.any_wait(book):
                return None
            return self._waiting(book, payers(book, accounts, short(data, "data"), plan.unit), plan, data)

    def spend(
        self,
        accounts: Names,
        plan: Plan[Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Owners | None = None,
    ) -> Receipt:
        return self._pay("plan", accounts, plan, data, grade, note, key, owners)

    def prepay(
        self,
        accounts: Names,
        plan: Plan[Any],
        *,
        data: str,
        grade: str,
        note: str,
        key: str | None = None,
        owners: Owners | None = None,
    ) -> Receipt:
        return self._pay(parts.LIST, accounts, plan, data, grade, note, key, owners)

    @priced_before
    def _pay(
        self,
        loop: str,
        accounts: Names,
        plan: Plan[Any],
        data: str,
        grade: str,
        note: str,
        key: str | None,
        owners: Owners | None,
    ) -> Receipt:
        with self._store.writing() as book:
            named = new_owners(book, data, plan, owners)
            if key is not None and (paid := self._under(book, key, accounts, plan, data)) is not None:
                if (paid.receipt.loop == parts.LIST) != (loop == parts.LIST) or paid.receipt.by_steps:
                    raise ReceiptError("this key paid for the same plan in another way: whole, or part by part")
                return paid.receipt
            if loop == parts.LIST:
                self._worth_paying(book, accounts, plan, data)
            elif (part := self._part(book, accounts, plan, data, grade, note, key)) is not None:
                return part
            paying, policy, approvals = self._asked(book, accounts, plan, data, grade, note)
            charged, after = self._charges(book, paying, plan.unit, plan.event, plan.delta)
            receipt = self._receipt(tuple(paying), plan, data, grade, note, loop)
            self._write(
                book, "spend", receipt=receipt, delta=plan.delta, key=key, charged=charged, library=LIBRARY,
                approvals=approvals, **stated(plan), **({"owners": named} if named else {}),
            )  # fmt: skip
            remember(book, named)
            for account in after.values():
                book.put_account(account)
            book.file(Filed(receipt, "spent", key))
            if loop == parts.LIST:
                parts.remember(book, receipt, plan)
            alerts = watching.spent(book, policy, paying, after, plan)
            book.lazy = True  # nothing leaves before it is opened
        self._tell(policy, alerts)
        return receipt

    def _part(
        self, book: Book, accounts: Names, plan: Plan[Any], data: str, grade: str, note: str, key: str | None
    ) -> Receipt | None:
        """The receipt of a part whose list is paid: it charges nothing, and the part is gone from the list."""
        if not parts.any_wait(book):
            return None
        paying, _ = self._payers(book, accounts, plan, data)
        if (paid := self._waiting(book, paying, plan, data, short(grade, "grade"))) is None:
            return None
        self._usable(book, {name: found(book, name) for name in paid.accounts}, plan.unit)
        receipt = self._receipt(paid.accounts, plan, data, grade, note or paid.note, parts.PART)
        self._write(
            book, "part", receipt=receipt, of=paid.id, delta=plan.delta, key=key, library=LIBRARY, **stated(plan)
        )
        book.file(Filed(receipt, "spent", key))
        parts.take(book, paid, plan)
        book.lazy = True  # nothing leaves before it is opened
        return receipt

    def _worth_paying(self, book: Book, accounts: Names, plan: Plan[Any], data: str) -> None:
        """Nobody pays for what they have: a part that is answered, or waits in another list."""
        checks.instance(plan, Plan, "plan", "a plan, such as sf.sequence(...)")
        parts.check(plan)
        paying, _ = self._payers(book, accounts, plan, data)
        for name, part in plan.parts.items():
            stored = any(set(paying) <= set(each.receipt.accounts) for each in book.answered(part.hash, data))
            if stored or self._waiting(book, paying, part, data) is not None:
                raise ReceiptError(f"part {name!r} is {'answered' if stored else 'paid for'} already: leave it out")

    def paid(self, key: str, accounts: Names, plan: Plan[Any], *, data: str) -> tuple[Receipt, bytes | None] | None:
        with self._store.reading() as book:
            filed = self._under(book, key, accounts, plan, data)
        if filed is None:
            return None
        answered = filed.state == "answered" and filed.answer is not None
        if answered or filed.state in ("spent", "held") or (filed.state == "opened" and filed.receipt.by_steps):
            return filed.receipt, filed.answer
        raise ReceiptError(
            "no answer is stored under this key: its release still runs, or ended after the data was opened; "
            "a new key pays again"
        )

    def open(self, receipt: Receipt) -> None:
        with self._store.writing() as book:
            self._policy(book, "spend")
            filed = filed_as(book, receipt)
            _not_a_list(receipt)
            again = filed.state == "opened" and receipt.by_steps  # what reads the data then is drawn, step by step
            if filed.state not in ("spent", "held") and not again:
                raise ReceiptError("this receipt was opened before: every release pays for itself")
            self._write(book, "open", receipt=receipt.id)
            book.file(filed._replace(state="opened"))

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        checks.one_of(outcome, "outcome", ("answered", "failed", "interrupted"))
        policy: Policy | None = None
        alerts: tuple[Alert, ...] = ()
        with self._store.writing() as book:
            filed = filed_as(book, receipt)
            _not_a_list(receipt)
            if filed.state in ("answered", "failed") or (filed.state != "opened" and outcome == "answered"):
                raise ReceiptError("a receipt is settled once, and only an opened receipt can be answered")
            if receipt.by_steps:  # in the same transaction, so that no crash leaves room held for work that is over
                self._free(book, receipt)
            if filed.state != "opened":
                outcome = UNOPENED
            kept = answer if outcome == "answered" else None
            digest = None if kept is None else hashlib.sha256(kept).hexdigest()
            self._write(book, "settle", receipt=receipt.id, outcome=outcome, answer=digest)
            book.file(filed._replace(state="answered" if outcome == "answered" else "failed", answer=kept))
            book.lazy = outcome == "answered"  # what leaves now was paid, and the head says so since it was opened
            if outcome == "failed":  # the one bit that the data may have decided
                failed = [found(book, name) for name in receipt.accounts]
                after = [replace(account, failures=account.failures + 1) for account in failed]
                for account in after:
                    book.put_account(account)
                policy = book.fact("policy", "")
                alerts = watching.failed(book, policy, after)
        self._tell(policy, alerts)


def _not_a_list(receipt: Receipt) -> None:
    if receipt.loop == parts.LIST:
        raise ReceiptError("this receipt pays for a list, whose parts run one by one: release those")
