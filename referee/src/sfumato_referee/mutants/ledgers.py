"""Ledgers gone wrong in the usual ways. Each passes every test that runs one request at a time and never dies.

They are never exported from the ledger's own package: attacks and tests of the invariants run on them, and must find
them broken. Stores gone wrong are in `stores`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sfumato import record
from sfumato.accounting.filters import Charge, Filter, HeldSteps
from sfumato.audit import surface
from sfumato.errors import BudgetError, ReceiptError
from sfumato.events import Repeat
from sfumato.ledger.charges import Charges
from sfumato.ledger.desk import Desk
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.memory import MemoryLedger
from sfumato.ledger.payments import Payments
from sfumato.ledger.policy.policy import Policy
from sfumato.ledger.proof.anchor import Anchor
from sfumato.ledger.proof.chain import GENESIS, first_broken
from sfumato.ledger.proof.report import Problem, Report
from sfumato.ledger.request import Request
from sfumato.ledger.stores.base import Account, Book, Store
from sfumato.ledger.tree import payers
from sfumato.plan import Plan, Receipt, Steps

from .stores import ReadThenInsert as ReadThenInsert


class _NamedBefore(Charges):
    """The next receipt may have been given away already."""

    due: Receipt | None = None

    def receipt(self, accounts: tuple[str, ...], request: Request, loop: str) -> Receipt:
        due, self.due = self.due, None
        return due or super().receipt(accounts, request, loop)


class AnswerFirst(Ledger):
    """Answers at once, and writes the release down when the next one comes, or at the end. What was shown just before
    the process died was never recorded (L1)."""

    _charges_type = _NamedBefore

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._late: list[Any] = []

    def spend(self, accounts: tuple[str, ...], plan: Plan[Any, Any], **named: Any) -> Receipt:
        self.catch_up()
        named.pop("key", None)
        request = Request(accounts, plan, named["data"], named["grade"], named["note"])
        receipt = surface.charges_of(self).receipt(accounts, request, "plan")
        self._late = [(accounts, plan, named), receipt]
        return receipt

    def open(self, receipt: Receipt) -> None:
        """Later."""

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        self._late.append((outcome, answer))

    def catch_up(self) -> None:
        if not self._late:
            return
        (accounts, plan, named), due, settled = self._late
        self._late = []
        charges = surface.charges_of(self)
        assert isinstance(charges, _NamedBefore)
        charges.due = due
        paid = super().spend(accounts, plan, **named)
        super().open(paid)
        super().settle(paid, *settled)


class _NamedOnlyCharges(Charges):
    def asked(self, book: Book, request: Request) -> tuple[dict[str, Account], Policy | None, tuple[int, ...]]:
        return payers(book, request.accounts, "", request.plan.unit), None, ()


class NamedOnly(Ledger):
    """Charges whom the caller names, and all above them, and leaves the data's own accounts to the caller's honesty:
    a team that stands elsewhere asks on and on, and the data's cap never hears of it."""

    _charges_type = _NamedOnlyCharges


class Refunded(Ledger):
    """Gives the charge of a failed release back. Whether it failed depends on the data, and the data was read: each
    failure is an answer for free (L4)."""

    def spend(self, accounts: tuple[str, ...], plan: Plan[Any, Any], **named: Any) -> Receipt:
        with surface.desk_of(self).reading() as book:
            self._before = {name: book.account(name) for name in book.accounts()}
        return super().spend(accounts, plan, **named)

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        super().settle(receipt, outcome, answer)
        if outcome == "failed":
            with surface.store_of(self).writing() as book:
                for name in receipt.accounts:
                    if (account := self._before[name]) is not None:
                        book.put_account(account)


class _PaidForGoodPayments(Payments):
    def part(self, book: Book, request: Request) -> Receipt | None:
        name = record.digest((request.data, request.plan.hash))
        before = {each: book.fact("part", each) for each in (name, "")}
        receipt = super().part(book, request)
        if receipt is not None:
            for part, fact in before.items():
                book.put_fact("part", part, fact)
        return receipt


class PaidForGood(Ledger):
    """Leaves a part in its list when it is taken: once paid for, it is released as often as anybody likes, each time
    with fresh noise."""

    _payments_type = _PaidForGoodPayments


class _AnyTurnPayments(Payments):
    def part(self, book: Book, request: Request) -> Receipt | None:
        before = {name: fact for name, fact in book.facts("part").items() if name}
        receipt = super().part(book, request)
        if receipt is not None:
            taken = record.digest((request.data, request.plan.hash))
            for name in before.keys() - {taken}:
                book.put_fact("part", name, before[name])
            book.put_fact("part", "", sum(len(fact) for name, fact in book.facts("part").items() if name))
        return receipt


class AnyTurn(Ledger):
    """Lets the blocks of a series be taken in any order, where its price rests on theirs: rows that come late make a
    person count in more blocks than were paid for."""

    _payments_type = _AnyTurnPayments


class ReusedParts(MemoryLedger):
    """The same, of a ledger that stores no answers: a day of a series is drawn whenever somebody looks (B5)."""

    _payments_type = _PaidForGoodPayments

    def answer(self, *args: Any, **named: Any) -> tuple[Receipt, bytes] | None:
        return None


class SecondDraw(Ledger):
    """Takes a retry for a request that was never begun: it opens the data again and draws fresh noise, for one charge.
    Enough retries average the noise away (L3)."""

    def paid(self, *args: Any, **named: Any) -> tuple[Receipt, bytes | None] | None:
        return None

    def answer(self, *args: Any, **named: Any) -> tuple[Receipt, bytes] | None:
        return None

    def open(self, receipt: Receipt) -> None:
        try:
            super().open(receipt)
        except ReceiptError:
            return

    def settle(self, receipt: Receipt, outcome: str, answer: bytes | None = None) -> None:
        try:
            super().settle(receipt, outcome, answer)
        except ReceiptError:
            return


class ForgetsSteps(Ledger):
    """Takes work that goes on for work that begins: every restart has all steps before it, and draws noise again for
    what was paid once."""

    def open(self, receipt: Receipt) -> None:
        super().open(receipt)
        with surface.desk_of(self).writing() as book:
            for account in (book.account(name) for name in receipt.accounts):
                if account is not None and isinstance(hold := account.held.get(receipt.id), HeldSteps):
                    fresh = {**account.held, receipt.id: replace(hold, taken=0, counted=False)}
                    book.put_account(replace(account, held=fresh))


class EndlessSteps(Ledger):
    """Draws steps for as long as anybody asks: what was held is only where it begins."""

    def draw_steps(self, receipt: Receipt, steps: int) -> Steps:
        with surface.store_of(self).writing() as book:
            for account in (book.account(name) for name in receipt.accounts):
                if account is not None and isinstance(hold := account.held.get(receipt.id), HeldSteps):
                    times = max(hold.event.times, hold.taken + steps)
                    longer = replace(hold, event=Repeat(hold.event.event, times))
                    book.put_account(replace(account, held={**account.held, receipt.id: longer}))
        return super().draw_steps(receipt, steps)


class _FirstStepFreeCharges(Charges):
    def charged(self, book: Book, paying: dict[str, Account], *args: Any, **named: Any) -> Any:
        charged, after = super().charged(book, paying, *args, **named)
        if named.get("drawing") is None:
            return charged, after
        for name, account in paying.items():
            assert account.filter is not None
            pairs = zip(account.filter.open, charged[name].prices, strict=True)
            free = Charge(tuple((Fraction(0), Fraction(0)) if m.by_plan else price for m, price in pairs))
            charged[name] = free
            after[name] = replace(after[name], filter=account.filter.after(free))
        return charged, after


class FirstStepFree(Ledger):
    """Charges members that price plans nothing for steps, the first ones neither: the tight price of the whole is
    never paid."""

    _charges_type = _FirstStepFreeCharges


class _FloatSumsCharges(Charges):
    def charged(self, book: Book, paying: dict[str, Account], *args: Any, **named: Any) -> Any:
        charged, after = super().charged(book, paying, *args, **named)
        for name, account in after.items():
            assert account.filter is not None
            before = {m.name: m.spent for m in paying[name].filter.open}  # type: ignore[union-attr]
            rounded = [
                replace(m, spent=Fraction(float(before[m.name]) + float(m.spent - before[m.name])))
                for m in account.filter.open
            ]
            after[name] = replace(account, filter=replace(account.filter, open=tuple(rounded)))
        return charged, after


class FloatSums(Ledger):
    """Adds up what was spent as floats: ten tenths are not one, and the small change is lost (L11)."""

    _charges_type = _FloatSumsCharges


class Unpriced(Ledger):
    """Whatever it cannot price is free: a cost that is no number buys an answer for nothing (L12)."""

    def draw(self, receipt: Receipt, event: Any, delta: Any) -> None:
        try:
            super().draw(receipt, event, delta)
        except BudgetError:
            raise
        except Exception:
            return

    def spend(self, accounts: tuple[str, ...], plan: Any, **named: Any) -> Receipt:
        try:
            return super().spend(accounts, plan, **named)
        except BudgetError:
            raise
        except Exception:
            return Receipt.__new__(Receipt)


class _BelievesDisjointCharges(Charges):
    def charged(self, book: Book, paying: dict[str, Account], *args: Any, **named: Any) -> Any:
        charged, after = super().charged(book, paying, *args, **named)
        for name, account in paying.items():
            assert account.filter is not None
            pairs = zip(account.filter.open, charged[name].prices, strict=True)
            prices = [None if price is None else (max(price[0] - m.spent, Fraction(0)), price[1]) for m, price in pairs]
            charged[name] = Charge(tuple(prices))
            after[name] = replace(after[name], filter=account.filter.after(charged[name]))
        return charged, after


class BelievesDisjoint(Ledger):
    """Takes releases for ones on different people whenever they are asked for one by one: it charges the largest of
    them, and nobody looked whether they overlap (L13)."""

    _charges_type = _BelievesDisjointCharges


class YearlyBudget(Ledger):
    """A fresh budget each year, and it is this machine's clock that says which year it is (L8)."""

    def spend(self, accounts: tuple[str, ...], plan: Plan[Any, Any], **named: Any) -> Receipt:
        with surface.desk_of(self).writing() as book:
            stored = (book.entry(number) for number in range(book.head.number, 0, -1))
            entries = (record.parse(entry[1]) for entry in stored if entry is not None)
            last = next((str(entry["at"]) for entry in entries if entry["kind"] == "spend"), "")
            if last[:4] != datetime.now(UTC).isoformat()[:4]:
                for account in filter(None, map(book.account, book.accounts())):
                    assert account.promised is not None
                    book.put_account(replace(account, filter=Filter.of(account.promised)))
        return super().spend(accounts, plan, **named)


class _AnybodyMayDesk(Desk):
    def policy(self, book: Book, duty: str) -> Policy | None:
        policy: Policy | None = book.fact("policy", "")
        return policy


class AnybodyMay(Ledger):
    """Writes down who asks, and never looks whether they may (L15)."""

    _desk_type = _AnybodyMayDesk


class _OdometerSoldAsFilterCharges(Charges):
    def charged(self, book: Book, paying: dict[str, Account], *args: Any, **named: Any) -> Any:
        try:
            return super().charged(book, paying, *args, **named)
        except BudgetError:
            return {name: Charge(()) for name in paying}, dict(paying)


class OdometerSoldAsFilter(Ledger):
    """Reads off how much was lost so far, and refuses nothing. The reading is right at any time that was fixed before;
    who stops when the answers look best has read it at another one (B3)."""

    _charges_type = _OdometerSoldAsFilterCharges


def hashes_alone(store: Store, anchor: Anchor | None = None, **_: Any) -> Report:
    """A check that follows the hashes and stops there: whoever writes the whole chain anew, or what is stored beside
    it, is not seen (L5)."""
    broken = first_broken(store.entries())
    problems = () if broken is None else (Problem(*broken),)
    return Report(GENESIS, 0, 0, 0, problems, ())
