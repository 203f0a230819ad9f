"""The spend protocol: quote, spend or prepay, open, settle. Each is one durable step. For long work see holds.py."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from .. import checks
from ..errors import BudgetError, ReceiptError
from ..plan import Plan, Receipt
from . import parts
from .charges import Charges, stated
from .desk import LIBRARY, Desk, short
from .holds import Holds, filed_as
from .owners import new_owners, remember
from .policy import watching
from .policy.alerts import Alert
from .policy.policy import Policy
from .pricing import priced_before
from .proof.rules_receipts import UNOPENED
from .request import Names, Request
from .stores.base import Book, Filed
from .tree import found, payers


class Payments:
    """Pays for plans, and keeps their answers."""

    def __init__(self, desk: Desk, charges: Charges, holds: Holds) -> None:
        self._desk, self._charges, self._holds = desk, charges, holds

    def answer(self, accounts: Names, plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        with self._desk.reading() as book:
            for filed in book.answered(short(plan_hash, "plan_hash"), short(data, "data")):
                paying, _ = self._charges.paying(book, accounts, filed.receipt.unit, data)
                if set(paying) <= set(filed.receipt.accounts) and filed.answer is not None:
                    return filed.receipt, filed.answer
        return None

    @priced_before
    def quote(self, accounts: Names, plan: Plan[Any, Any], *, data: str = "") -> bool:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        checks.texts(accounts, "accounts")
        with self._desk.reading() as book:
            try:
                paying = payers(book, accounts, short(data, "data"), plan.unit)
                if (paid := self._charges.waiting(book, paying, plan, data)) is not None:
                    self._charges.usable(book, {name: found(book, name) for name in paid.accounts}, plan.unit)
                else:
                    self._charges.charged(book, paying, plan.unit, plan.event, plan.delta)
            except BudgetError:
                return False
            return True

    def prepaid(self, accounts: Names, plan: Plan[Any, Any], *, data: str) -> Receipt | None:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        with self._desk.reading() as book:
            if not parts.any_wait(book):
                return None
            return self._charges.waiting(book, payers(book, accounts, short(data, "data"), plan.unit), plan, data)

    @priced_before
    def pay(self, request: Request, loop: str = "plan") -> Receipt:
        """For a plan, or, with `loop`, for a list of them."""
        accounts, plan, data, key = request.accounts, request.plan, request.data, request.key
        with self._desk.writing() as book:
            named = new_owners(book, data, plan, request.owners)
            if key is not None and (paid := self._holds.under(book, key, accounts, plan, data)) is not None:
                if (paid.receipt.loop == parts.LIST) != (loop == parts.LIST) or paid.receipt.by_steps:
                    raise ReceiptError("this key paid for the same plan in another way: whole, or part by part")
                return paid.receipt
            if loop == parts.LIST:
                self._worth_paying(book, accounts, plan, data)
            elif (part := self.part(book, request)) is not None:
                return part
            paying, policy, approvals = self._charges.asked(book, request)
            charged, after = self._charges.charged(book, paying, plan.unit, plan.event, plan.delta)
            receipt = self._charges.receipt(tuple(paying), request, loop)
            self._desk.write(
                book,
                "spend",
                {
                    "receipt": receipt,
                    "delta": plan.delta,
                    "key": key,
                    "charged": charged,
                    "library": LIBRARY,
                    "approvals": approvals,
                    **stated(plan),
                    **({"owners": named} if named else {}),
                },
            )
            remember(book, named)
            for account in after.values():
                book.put_account(account)
            book.file(Filed(receipt, "spent", key))
            if loop == parts.LIST:
                parts.remember(book, receipt, plan)
            alerts = watching.spent(book, policy, paying, after, plan)
            book.lazy = True  # nothing leaves before it is opened
        self._desk.tell(policy, alerts)
        return receipt

    def part(self, book: Book, request: Request) -> Receipt | None:
        """The receipt of a part whose list is paid: it charges nothing, and the part is gone from the list."""
        if not parts.any_wait(book):
            return None
        plan, data = request.plan, request.data
        paying, _ = self._charges.payers(book, request.accounts, plan, data)
        if (paid := self._charges.waiting(book, paying, plan, data, short(request.grade, "grade"))) is None:
            return None
        self._charges.usable(book, {name: found(book, name) for name in paid.accounts}, plan.unit)
        receipt = self._charges.receipt(paid.accounts, replace(request, note=request.note or paid.note), parts.PART)
        self._desk.write(
            book,
            "part",
            {
                "receipt": receipt,
                "of": paid.id,
                "delta": plan.delta,
                "key": request.key,
                "library": LIBRARY,
                **stated(plan),
            },
        )
        book.file(Filed(receipt, "spent", request.key))
        parts.take(book, paid, receipt)
        book.lazy = True  # nothing leaves before it is opened
        return receipt

    def _worth_paying(self, book: Book, accounts: Names, plan: Plan[Any, Any], data: str) -> None:
        """Nobody pays for what they have: a part that is answered, or waits in another list."""
        checks.instance(plan, Plan, "plan", "a plan, such as sf.sequence(...)")
        parts.check(plan)
        paying, _ = self._charges.payers(book, accounts, plan, data)
        for name, part in plan.parts.items():
            stored = any(set(paying) <= set(each.receipt.accounts) for each in book.answered(part.hash, data))
            if stored or self._charges.waiting(book, paying, part, data) is not None:
                raise ReceiptError(f"part {name!r} is {'answered' if stored else 'paid for'} already: leave it out")

    def paid(
        self, key: str, accounts: Names, plan: Plan[Any, Any], *, data: str
    ) -> tuple[Receipt, bytes | None] | None:
        with self._desk.reading() as book:
            filed = self._holds.under(book, key, accounts, plan, data)
        if filed is None:
            return None
        answered = filed.state == "answered" and filed.answer is not None
        if answered or filed.state in ("spent", "held") or (filed.state == "opened" and filed.receipt.by_steps):
            return filed.receipt, filed.answer
        raise ReceiptError(
            "no answer is stored under this key: its release still runs, or ended after the data was opened; "
            "a new key pays again",
            code="key-unanswered",
        )

    def open(self, receipt: Receipt) -> None:
        with self._desk.writing() as book:
            self._desk.policy(book, "spend")
            filed = filed_as(book, receipt)
            _not_a_list(receipt)
            again = filed.state == "opened" and receipt.by_steps  # what reads the data then is drawn, step by step
            if filed.state not in ("spent", "held") and not again:
                raise ReceiptError("this receipt was opened before: every release pays for itself")
            self._desk.write(book, "open", {"receipt": receipt.id})
            book.file(filed._replace(state="opened"))
            book.lazy = False  # also where it was paid in the same transaction: the data is read next

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        checks.one_of(outcome, "outcome", ("answered", "failed", "interrupted"))
        policy: Policy | None = None
        alerts: tuple[Alert, ...] = ()
        with self._desk.writing() as book:
            filed = filed_as(book, receipt)
            _not_a_list(receipt)
            if filed.state in ("answered", "failed") or (filed.state != "opened" and outcome == "answered"):
                raise ReceiptError("a receipt is settled once, and only an opened receipt can be answered")
            if receipt.by_steps:  # in the same transaction, so that no crash leaves room held for work that is over
                self._holds.free(book, receipt)
            if filed.state != "opened":
                outcome = UNOPENED
            kept = answer if outcome == "answered" else None
            digest = None if kept is None else hashlib.sha256(kept).hexdigest()
            self._desk.write(book, "settle", {"receipt": receipt.id, "outcome": outcome, "answer": digest})
            book.file(filed._replace(state="answered" if outcome == "answered" else "failed", answer=kept))
            book.lazy = outcome == "answered"  # what leaves now was paid, and the head says so since it was opened
            if outcome == "failed":  # the one bit that the data may have decided
                failed = [found(book, name) for name in receipt.accounts]
                after = [replace(account, failures=account.failures + 1) for account in failed]
                for account in after:
                    book.put_account(account)
                policy = book.fact("policy", "")
                alerts = watching.failed(book, policy, after)
        self._desk.tell(policy, alerts)


def _not_a_list(receipt: Receipt) -> None:
    if receipt.loop == parts.LIST:
        raise ReceiptError("this receipt pays for a list, whose parts run one by one: release those")
