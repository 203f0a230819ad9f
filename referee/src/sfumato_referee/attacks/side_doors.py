"""B4, budgets by the side doors: what a ledger promises besides the plain spend.

The account above pays with the one below. Room that is held is nobody else's, and is drawn once. A part of a list that
was paid in advance is taken once. A closed account pays nothing, and one whose data failed again and again is locked.
The stored answer is of the very data that was asked, and the data opens with its own receipts alone. What runs in steps
pays for each of them. A copy of the data has no budget of its own, a block shows its own rows alone, and guarantees
for different units do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.audit import shipped
from sfumato.combine import reserve, sequence
from sfumato.curator import Curator
from sfumato.errors import ReceiptError, SfumatoError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.openings import ENGINE, ROWS
from sfumato.plan import Plan, Receipt
from sfumato.private import Private
from sfumato.schema import Schema, category, real
from sfumato.sources.base import needed

from ..forced import opened, opened_with
from ..mutants import ledgers
from .ledger.ground import PATIENT, ROW, count
from .verdict import Verdict

Kind = Callable[[Any], Ledger]
_HALF, _MOST = Fraction(1, 2), Fraction(3, 5)
_ROUNDING = Fraction(1, 10**9)


def _opened(kind: Kind, **accounts: str | None) -> Ledger:
    """Accounts of epsilon 1 each, with what stands above them; the data is called a."""
    ledger = kind(MemoryStore())
    for name, parent in accounts.items():
        ledger.open_account(name, Budget(epsilon=1), parent=parent, unit=ROW, reason="for an attack")
    return ledger


def _paid(ledger: Ledger, plan: Plan[Any, Any], *names: str, data: str = "a@1") -> Receipt | None:
    try:
        return ledger.spend(names, plan, data=data, grade="exact", note="")
    except SfumatoError:
        return None


def above(kind: Kind) -> Iterator[str]:
    """Two data sets under one house, and a house's budget for both."""
    ledger = _opened(kind, house=None, a="house", b="house")
    if _paid(ledger, count(1)) is None:
        yield "a plan that fits the budget is refused"
    if _paid(ledger, count(_HALF), data="b@1") is not None:
        yield "the account above does not pay"


def data_pays(kind: Kind) -> Iterator[str]:
    """Whoever asks, the data's own account pays."""
    ledger = _opened(kind, a=None, guest=None)
    _paid(ledger, count(1), "guest")
    ledger.open_account("other", Budget(epsilon=1), unit=ROW, reason="for an attack")
    if _paid(ledger, count(_HALF), "other") is not None:
        yield "the account of the data does not pay"


def holds(kind: Kind) -> Iterator[str]:
    """Room is held: nobody else spends it, and it is drawn once."""
    ledger, plan = _opened(kind, a=None), reserve(None, unit=ROW, budget=Budget(epsilon=_MOST))
    receipt = ledger.hold((), plan, data="a@1", grade="exact", note="")
    ledger.open(receipt)
    if _paid(ledger, count(_HALF)) is not None:
        yield "what is held is spent by others"
    drawn = 0
    for _ in range(4):
        try:
            ledger.draw(receipt, count(Fraction(2, 5)).event, Fraction(0))
            drawn += 1
        except SfumatoError:
            break
    if drawn > 2 or ledger.spent("a")[0].spent > 1:
        yield "more is drawn than there is"
    ledger.close(receipt)
    before = ledger.spent("a")[0].spent
    try:
        ledger.draw(receipt, count(Fraction(1, 10)).event, Fraction(0))
        yield "a closed hold is drawn from"
    except SfumatoError:
        pass
    if ledger.spent("a")[0].spent < before:
        yield "closing a hold gives back what was drawn"


def listed(kind: Kind) -> Iterator[str]:
    """A list is paid in advance: each part is taken once, on the data that it was paid on."""
    ledger = _opened(kind, a=None)
    one, two = count(Fraction(1, 4)), count(Fraction(1, 5))
    ledger.prepay((), sequence(one=one, two=two), data="a@1", grade="exact", note="")
    paid = ledger.spent("a")[0].spent
    _paid(ledger, one, data="a@2")
    if ledger.spent("a")[0].spent == paid:
        yield "a part is taken on other data than it was paid on"
    paid = ledger.spent("a")[0].spent
    _paid(ledger, one)
    if ledger.spent("a")[0].spent != paid:
        yield "a part that was paid is charged again"
    if _paid(ledger, one) is not None and ledger.spent("a")[0].spent == paid:
        yield "a part is taken twice for one charge"


def closed(kind: Kind) -> Iterator[str]:
    ledger = _opened(kind, a=None)
    ledger.close_account("a", reason="for an attack")
    if _paid(ledger, count(_HALF)) is not None:
        yield "a closed account pays on"


def locked(kind: Kind) -> Iterator[str]:
    """Failures on the data's side are a bit each: after a few, somebody has to look."""
    ledger = _opened(kind, a=None)
    for number in range(5):
        receipt = _paid(ledger, count(Fraction(1, 100 + number)))
        if receipt is None:
            return
        ledger.open(receipt)
        ledger.settle(receipt, "failed")
    yield "five failures lock nothing"


def answered(kind: Kind) -> Iterator[str]:
    """A stored answer is of the data that was asked."""
    ledger, plan = _opened(kind, a=None), count(_HALF)
    receipt = _paid(ledger, plan)
    if receipt is None:
        yield "a plan that fits the budget is refused"
        return
    ledger.open(receipt)
    ledger.settle(receipt, "answered", b"1")
    if ledger.answer((), plan.hash, "a@1") is None:
        yield "a stored answer is not given again"
    if ledger.answer((), plan.hash, "a@2") is not None:
        yield "a stored answer is given for other data"


def receipts(kind: Kind) -> Iterator[str]:
    """The data opens with a receipt that was paid for it, and with no other."""
    ledger = _opened(kind, a=None, patients=None)
    private = Private("patients", {"x": [1.0]}, unit=ROW, schema=Schema.of(x=real(0, 1)))
    for data in ("a@1", "patients@2"):
        receipt = _paid(ledger, count(Fraction(1, 10)), data=data)
        if receipt is None:
            continue
        try:
            opened_with(private, receipt, ROWS)
            yield f"the data opens with a receipt for {data}"
        except ReceiptError:
            pass


def loops(kind: Kind) -> Iterator[str]:
    """A loop of one's own pays for each release before it runs, and for none when it is over."""
    ledger, price = _opened(kind, patients=None), Fraction(2, 5)
    private = Private("patients", {"x": [1.0]}, unit=ROW, schema=Schema.of(x=real(0, 1)))
    with Curator(private, ledger).supervise(reserve(None, unit=ROW, budget=Budget(epsilon=_MOST))) as run:
        run.release(count(price))
        if ledger.spent("patients")[0].spent != price:
            yield "what a loop releases is not paid"
    try:
        run.release(count(Fraction(1, 10)))
        yield "a loop that is over releases on"
    except SfumatoError:
        pass


def trainings(kind: Kind) -> Iterator[str]:
    """A training pays for its steps one by one: as much as for all of them at once, but for the rounding of sums."""
    if find_spec("torch") is None:
        return
    some: Any = shipped.PLANS["SGD"]()
    plan = replace(some, times=3)
    private = Private("points", {"x": [0.5], "y": [1.0]}, unit=ROW, schema=Schema({plan.table.name: plan.table}))
    one, whole = (kind(MemoryStore()) for _ in range(2))
    for ledger in (one, whole):
        ledger.open_account("points", Budget(epsilon=10, delta=0.01), unit=ROW, reason="for an attack")
    Curator(private, one).release(plan)
    _paid(whole, plan, data=private.address)
    paid, due = ({each.currency: each.spent for each in ledger.spent("points")} for ledger in (one, whole))
    if any(paid[name] < due[name] * (1 - _ROUNDING) for name in due):
        yield "the steps of a training are not paid"


def copies(kind: Kind) -> Iterator[str]:
    """Who is in a copy is in the data: whatever its people's accounts are, now or later, they pay for both."""
    ledger = _opened(kind, a=None)
    ledger.register("copy", same_as="a", reason="for an attack")
    _paid(ledger, count(Fraction(1, 4)), data="copy@1")
    if not ledger.spent("a")[0].spent:
        yield "a copy has a budget of its own"
    ledger.open_account("people", Budget(epsilon=1), unit=ROW, reason="for an attack")
    ledger.register("a", accounts=("people",), reason="for an attack")
    _paid(ledger, count(Fraction(1, 5)), data="copy@1")
    if not ledger.spent("people")[0].spent:
        yield "an account that the data got later does not pay for its copy"


def units(kind: Kind) -> Iterator[str]:
    """An account counts for one unit; what protects another one is charged elsewhere."""
    ledger = _opened(kind, a=None)
    ledger.open_account("b", Budget(epsilon=1), unit=PATIENT, reason="for an attack")
    if _paid(ledger, count(_HALF, PATIENT), "a", data="b@1") is not None:
        yield "an account for rows pays for what protects patients"


def blocks(kind: Kind) -> Iterator[str]:
    """A release on one block reads its rows: none of another block, and none that is in no block."""
    columns = {"month": ["jan", "feb", None, "may", "feb"], "x": [1.0] * 5}
    table = Schema.of(month=category(["jan", "feb"]), x=real(0, 1))
    private = Private("visits", columns, unit=ROW, schema=table, block="month")
    for block, right in (("jan", 1), ("feb", 2)):
        part = private.of_blocks(block)
        if len(opened(part, ROWS)) != right:
            yield "rows of no block, or of another one, are read with a block"
        if find_spec("duckdb") is None or find_spec("sqlglot") is None:
            continue
        exp = needed("sqlglot").exp
        session = opened(part, ENGINE)
        try:
            counted = session.run(exp.select("count(*) AS n").from_(exp.to_table(part.table.name, quoted=True)))
        finally:
            session.close()
        if counted.column(0).to_pylist() != [right]:
            yield "SQL reads rows of no block, or of another one, with a block"


DOORS = (receipts, above, data_pays, holds, listed, closed, locked, answered, loops, trainings, copies, units, blocks)


def attack(kind: Kind = Ledger) -> Verdict:
    """Every door of one kind of ledger."""
    doors_open = [f"{door.__name__}: {problem}" for door in DOORS for problem in _tried(door, kind)]
    words = f"Open: {'; '.join(doors_open)}." if doors_open else f"All {len(DOORS)} side doors are shut."
    return Verdict("B4", bool(doors_open), words, {"doors": len(DOORS), "open": len(doors_open)})


def _tried(door: Callable[[Kind], Iterator[str]], kind: Kind) -> list[str]:
    try:
        return list(door(kind))
    except SfumatoError as problem:
        return [f"{type(problem).__name__}: {problem}"]


def control() -> Verdict:
    """Ledgers with one door open each: every one must be found."""
    verdicts = {kind.__name__: attack(kind) for kind in (ledgers.NamedOnly, ledgers.PaidForGood)}
    missed = [name for name, verdict in verdicts.items() if not verdict.broken]
    summary = " ".join(f"{name}: {verdict.text}" for name, verdict in verdicts.items())
    return Verdict("B4", not missed, f"Not found: {', '.join(missed)}." if missed else summary)
