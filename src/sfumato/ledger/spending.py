"""The spend protocol: quote, spend or prepay, open, settle; hold, draw, close. Each is one durable step."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import checks
from ..accounting.filters import Hold
from ..errors import BudgetError, ReceiptError
from ..events import Event
from ..plan import Plan, Receipt
from . import parts
from .charging import Charging, Names, text_of
from .desk import LIBRARY, short
from .policy import watching
from .policy.alerts import Alert
from .policy.policy import Policy
from .stores.base import Book, Filed
from .tree import above, found, payers


class Spending(Charging):
    """Pays for plans, and keeps their answers."""

    def answer(self, accounts: Names, plan_hash: str, data: str) -> tuple[Receipt, bytes] | None:
        with self._store.reading() as book:
            for filed in book.answered(short(plan_hash, "plan_hash"), short(data, "data")):
                self._policy(book, "spend")
                paying = set(payers(book, accounts, data, filed.receipt.unit))
                if paying <= set(filed.receipt.accounts) and filed.answer is not None:
                    return filed.receipt, filed.answer
        return None

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
        self, accounts: Names, plan: Plan[Any], *, data: str, grade: str, note: str, key: str | None = None
    ) -> Receipt:
        return self._pay("plan", accounts, plan, data, grade, note, key)

    def prepay(
        self, accounts: Names, plan: Plan[Any], *, data: str, grade: str, note: str, key: str | None = None
    ) -> Receipt:
        return self._pay(parts.LIST, accounts, plan, data, grade, note, key)

    def _pay(
        self, loop: str, accounts: Names, plan: Plan[Any], data: str, grade: str, note: str, key: str | None
    ) -> Receipt:
        with self._store.writing() as book:
            if key is not None and (paid := self._under(book, key, accounts, plan, data)) is not None:
                if (paid.receipt.loop == parts.LIST) != (loop == parts.LIST):
                    raise ReceiptError("this key paid for the same list in another way: whole, or part by part")
                return paid.receipt
            if loop == parts.LIST:
                self._worth_paying(book, accounts, plan, data)
            elif (part := self._part(book, accounts, plan, data, grade, note, key)) is not None:
                return part
            paying, policy, approvals = self._asked(book, accounts, plan, data, grade, note)
            charged, after = self._charges(book, paying, plan.unit, plan.event, plan.delta)
            receipt, text = self._receipt(tuple(paying), plan, data, grade, note, loop), text_of(plan)
            self._write(
                book, "spend", receipt=receipt, delta=plan.delta, plan=text, key=key, charged=charged,
                library=LIBRARY, approvals=approvals,
            )  # fmt: skip
            for account in after.values():
                book.put_account(account)
            book.file(Filed(receipt, "spent", key))
            if loop == parts.LIST:
                parts.remember(book, receipt, plan)
            alerts = watching.spent(book, policy, paying, after, text)
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
            book, "part", receipt=receipt, of=paid.id, delta=plan.delta, plan=text_of(plan), key=key, library=LIBRARY
        )
        book.file(Filed(receipt, "spent", key))
        parts.take(book, paid, plan)
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
        if filed.state in ("spent", "held") or (filed.state == "answered" and filed.answer is not None):
            return filed.receipt, filed.answer
        raise ReceiptError(
            "no answer is stored under this key: its release still runs, or ended after the data was opened; "
            "a new key pays again"
        )

    def _under(self, book: Book, key: str, accounts: Names, plan: Plan[Any], data: str) -> Filed | None:
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
            _not_a_list(receipt)
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
            _not_a_list(receipt)
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
        self, accounts: Names, plan: Plan[Any], *, data: str, grade: str, note: str, key: str | None = None
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


def _not_a_list(receipt: Receipt) -> None:
    if receipt.loop == parts.LIST:
        raise ReceiptError("this receipt pays for a list, whose parts run one by one: release those")


def _filed(book: Book, receipt: Receipt) -> Filed:
    known = isinstance(receipt, Receipt) and isinstance(receipt.id, str) and receipt.id.isascii()
    filed = book.filed(receipt.id) if known else None
    if filed is None or filed.receipt != receipt:
        raise ReceiptError("this ledger did not write that receipt")
    return filed
