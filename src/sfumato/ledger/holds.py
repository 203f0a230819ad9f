"""Room for long work: hold, draw, close. Each is one durable step.

Two kinds of work hold room. A trusted loop draws whatever children it comes to. A plan with steps draws them, so many
at a time; after a crash the same key goes on where the draws ended, and no more are ever drawn than were held
(docs/decisions/0023).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import checks, record
from ..accounting.filters import Filter, HeldSteps, Hold, Priced, backed, counts_plans
from ..errors import BudgetError, PlanError, ReceiptError
from ..events import Event, Repeat
from ..plan import Plan, Receipt, Steps
from .charges import Charges, stated
from .desk import LIBRARY, Desk
from .owners import new_owners, remember
from .policy import watching
from .policy.policy import Policy
from .pricing import outside, priced_as, priced_before
from .request import Names, Request
from .stores.base import Account, Book, Filed
from .tree import above, found


class Holds:
    """Sets room aside, and pays from it."""

    def __init__(self, desk: Desk, charges: Charges) -> None:
        self._desk, self._charges = desk, charges

    @priced_before
    def hold(self, request: Request, *, trusted: bool) -> Receipt:
        plan, data, key = request.plan, request.data, request.key
        with self._desk.writing() as book:
            named = new_owners(book, data, plan, request.owners)
            held, loop = room_of(plan), _loop(plan, trusted)
            if key is not None and (paid := self.under(book, key, request.accounts, plan, data)) is not None:
                if paid.receipt.loop != loop:
                    raise ReceiptError("this key paid for the same plan in another way: whole, or in another loop")
                return paid.receipt
            paying, _, approvals = self._charges.asked(book, request)
            asked: Priced = held.whole if isinstance(held, HeldSteps) else held.event
            self._charges.charged(book, paying, plan.unit, asked, plan.delta)
            receipt = self._charges.receipt(tuple(paying), request, loop)

            def rooms() -> dict[str, Filter]:
                return {name: _backed(account, asked, held) for name, account in paying.items()}

            outside((held, priced_as(paying)), rooms)
            shapes = {}
            for name, shaped in rooms().items():
                account = paying[name]
                book.put_account(replace(account, filter=shaped, held={**account.held, receipt.id: held}))
                if shaped is not account.filter:
                    shapes[name] = shaped
            self._desk.write(
                book,
                "hold",
                {
                    "receipt": receipt,
                    "delta": plan.delta,
                    "key": key,
                    "shapes": shapes,
                    "library": LIBRARY,
                    "approvals": approvals,
                    **stated(plan),
                    **({"owners": named} if named else {}),
                },
            )
            remember(book, named)
            book.file(Filed(receipt, "held", key))
            book.lazy = True  # nothing leaves before it is opened
            return receipt

    @priced_before
    def draw(self, receipt: Receipt, event: Event, delta: Fraction) -> None:
        with self._desk.writing() as book:
            paying = self._drawing(book, receipt)
            if receipt.by_steps:
                raise ReceiptError("what is held under this receipt is drawn in steps: use draw_steps")
            charged, after = self._charges.charged(book, paying, receipt.unit, event, delta, drawing=receipt.id)
            self._desk.write(
                book,
                "draw",
                {"receipt": receipt.id, "event": event, "delta": delta, "charged": charged, "library": LIBRARY},
            )
            for account in after.values():
                hold = account.held[receipt.id]
                assert isinstance(hold, Hold)
                book.put_account(replace(account, held={**account.held, receipt.id: hold.after(event, delta)}))
            policy: Policy | None = book.fact("policy", "")
            alerts = watching.spent(book, policy, paying, after)
        self._desk.tell(policy, alerts)

    @priced_before
    def draw_steps(self, receipt: Receipt, steps: int) -> Steps:
        checks.whole(steps, "steps")
        with self._desk.writing() as book:
            paying = self._drawing(book, receipt)
            held = _steps_held(paying, receipt)
            blocks = {name: _of(account, receipt).block(steps) for name, account in paying.items()}
            charged, after = self._charges.charged(book, paying, receipt.unit, blocks, held.delta, drawing=receipt.id)
            self._desk.write(
                book,
                "draw",
                {
                    "receipt": receipt.id,
                    "event": Repeat(held.event.event, steps),
                    "delta": held.delta,
                    "before": held.taken,
                    "charged": charged,
                    "library": LIBRARY,
                },
            )
            for name, account in after.items():
                drawn = steps_after(account, receipt, blocks[name])
                book.put_account(replace(account, held={**account.held, receipt.id: drawn}))
            policy: Policy | None = book.fact("policy", "")
            alerts = watching.spent(book, policy, paying, after)
        self._desk.tell(policy, alerts)
        return Steps(held.taken + steps, held.left - steps)

    def steps(self, receipt: Receipt) -> Steps:
        with self._desk.reading() as book:
            filed_as(book, receipt)
            if not receipt.by_steps:
                raise ReceiptError("this receipt pays for no steps: it is for a plan that is paid whole")
            accounts = {name: found(book, name) for name in receipt.accounts}
            if all(receipt.id in account.held for account in accounts.values()):
                held = _steps_held(accounts, receipt)
                return Steps(held.taken, held.left)
            drawn = _steps_drawn(book, receipt)  # the rest was freed: what was drawn is told by the entries
        if not drawn:
            raise ReceiptError("nothing is held under this receipt, and nothing was drawn")
        return Steps(drawn, 0)

    def close(self, receipt: Receipt) -> None:
        with self._desk.writing() as book:
            filed_as(book, receipt)
            self.free(book, receipt)

    def free(self, book: Book, receipt: Receipt) -> None:
        """What is held under a receipt is held no more."""
        self._desk.write(book, "close", {"receipt": receipt.id})
        for name in receipt.accounts:
            account = found(book, name)
            held = {id: hold for id, hold in account.held.items() if id != receipt.id}
            book.put_account(replace(account, held=held))

    def _drawing(self, book: Book, receipt: Receipt) -> dict[str, Account]:
        """The accounts that a draw is paid from, if something is held there and nobody closed them."""
        self._desk.policy(book, "spend")
        filed = filed_as(book, receipt)
        paying = {name: found(book, name) for name in receipt.accounts}
        if filed.state != "opened" or any(receipt.id not in account.held for account in paying.values()):
            raise ReceiptError("nothing is held under this receipt")
        for account in paying.values():
            if (shut := next((each for each in above(book, account) if each.closed), None)) is not None:
                raise BudgetError(f"account {shut.name!r} is closed: nothing more is paid from what is below it")
        return paying

    def under(self, book: Book, key: str, accounts: Names, plan: Plan[Any, Any], data: str) -> Filed | None:
        """What was paid under this key before. A key stands for one plan, on one version of the data, paid once."""
        policy = self._desk.policy(book, "spend")
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
        checks.texts(accounts, "accounts")
        filed = book.filed_under(checks.label(key, "key"))
        if filed is None:
            return None
        receipt = filed.receipt
        if (receipt.plan_hash, receipt.data) != (plan.hash, data) or not set(accounts) <= set(receipt.accounts):
            raise ReceiptError(
                "this key was used for another plan, other data or other accounts: a key pays for one release, once",
                code="key-used",
            )
        if policy is not None:  # whoever knows the key gets what was paid only if they might have paid it
            self._charges.paying(book, accounts, receipt.unit, data)
        return filed


def room_of(plan: Plan[Any, Any]) -> Hold | HeldSteps:
    """What is held for a plan."""
    checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
    if plan.steps is None:
        return Hold(plan.event, plan.delta)
    event = plan.event
    held = HeldSteps(event, plan.delta) if type(event) is Repeat else None
    if held is None or held.event.times != plan.steps:
        raise PlanError("a plan with steps has an event of as many equal ones: events.Repeat(step, steps)")
    return held


def _backed(account: Account, event: Priced, held: Hold | HeldSteps) -> Filter:
    """The account's filter with room set aside; refused where no member keeps room for all that is held: either work
    would be refused midway. (A member with room for it as a release need not have room for its draws, which may be of
    any kind.)"""
    assert account.filter is not None
    shaped = account.filter.shaped(event, held.delta, list(account.held.values()))
    if not backed(shaped.open, [*account.held.values(), held]):
        raise BudgetError(
            f"account {account.name!r} has no room that can be held for this, whatever it draws; nothing was charged. "
            "Ask for less, or wait for other work that holds room"
        )
    return shaped


def _loop(plan: Plan[Any, Any], trusted: bool) -> str:
    if plan.steps is None and not trusted:
        raise PlanError("this plan has no steps to draw: it is paid whole, by spend")
    return ("trusted " if trusted else "") + ("loop" if plan.steps is None else "steps")


def _of(account: Account, receipt: Receipt) -> HeldSteps:
    hold = account.held[receipt.id]
    if not isinstance(hold, HeldSteps):
        raise ReceiptError("what is held under this receipt is not drawn in steps")
    return hold


def _steps_held(accounts: dict[str, Account], receipt: Receipt) -> HeldSteps:
    """How far the work has come: the same on every account that pays for it."""
    held = [_of(account, receipt) for account in accounts.values()]
    if len({(each.event, each.delta, each.taken) for each in held}) != 1:
        raise ReceiptError("the accounts that pay for these steps tell different numbers of them: run `verify`")
    return held[0]


def steps_after(account: Account, receipt: Receipt, block: Any) -> HeldSteps:
    """What is held after these steps were charged to the account."""
    members = () if account.filter is None else account.filter.open
    return _of(account, receipt).after(block, counts_plans(members))


def _steps_drawn(book: Book, receipt: Receipt) -> int:
    drawn = 0
    for number in range(book.head.number, 0, -1):
        stored = book.entry(number)
        entry = {} if stored is None else record.parse(stored[1], dict)
        if entry.get("kind") == "draw" and entry["receipt"] == receipt.id:
            return int(entry["before"]) + int(entry["event"].times)
        if entry.get("kind") == "hold" and entry["receipt"].id == receipt.id:
            break
    return drawn


def filed_as(book: Book, receipt: Receipt) -> Filed:
    """A receipt that this ledger wrote, as it stands."""
    known = isinstance(receipt, Receipt) and isinstance(receipt.id, str) and receipt.id.isascii()
    filed = book.filed(receipt.id) if known else None
    if filed is None or filed.receipt != receipt:
        raise ReceiptError("this ledger did not write that receipt")
    return filed
