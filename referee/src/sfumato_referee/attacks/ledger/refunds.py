"""L4: what was spent stays spent, whatever happens after the data was read.

Claim. Nothing subtracts: the ledger has no entry that lowers what an account has spent, and a failed release is settled
beside its charge, which stays. (Whether it failed depends on the data, and the data was read: giving the charge back
would make each failure an answer for free.)

The attack makes releases fail on the data's side, cancels holds, closes work that was drawn from, interrupts releases
at any time, and looks at what is spent after each step. The planted bug refunds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.combine import reserve, sequence
from sfumato.errors import BudgetError, DataError
from sfumato.events import Pure
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.ledgers import Refunded
from ..verdict import Verdict
from .ground import PATIENT, count, curator, entries_of, folder, pay, spent
from .releasing import prepare
from .striking import WORKER, said


def attack(*, kind: Callable[[Any], Ledger] = Ledger, interrupts: int = 300, seed: int = 5) -> Verdict:
    falls = falling(kind(MemoryStore()))
    hits = 0
    if interrupts:
        with folder() as home:
            hits, more = interrupted(home, interrupts, seed)
        falls += more
    words = f"Failures, cancelled work and {hits} interrupts: "
    words += f"what is spent fell, {falls[0]}." if falls else "what is spent never fell, and is what was paid."
    return Verdict("L4", bool(falls), words, {"falls": len(falls), "interrupts that hit": hits})


def control() -> Verdict:
    return attack(kind=Refunded, interrupts=0)


def falling(ledger: Ledger) -> list[str]:
    """After which steps less was spent than before, or less than was paid."""
    ledger.open_account("patients", Budget(epsilon=10))
    falls: list[str] = []
    state = {"spent": Fraction(0), "paid": Fraction(0)}

    def after(step: str, price: Fraction = Fraction(0)) -> None:
        state["paid"] += price
        now = spent(ledger, "patients")
        if now < max(state["spent"], state["paid"]):
            falls.append(f"from {state['spent']} to {now} after {step}")
        state["spent"] = now

    for number in range(1, 7):
        price = Fraction(number, 10)
        with suppress(DataError):
            curator(ledger, lambda: 1 / 0).release(count(price, PATIENT))
        after("a release that failed on the data's side", price)
        ledger.unlock("patients", "made to fail")
    for outcome in ("failed", "answered"):
        receipt = pay(ledger, count(1, PATIENT), data="patients@1")
        after("a spend", Fraction(1))
        ledger.open(receipt)
        ledger.settle(receipt, outcome, b"1" if outcome == "answered" else None)
        after(f"a release that {outcome}")
    never = pay(ledger, count(1, PATIENT), data="patients@2")
    ledger.settle(never, "failed")
    after("a receipt that was never opened", Fraction(1))
    receipt = ledger.hold(
        (), reserve(unit=PATIENT, budget=Budget(epsilon=2)), data="patients@1", grade="exact", note=""
    )
    ledger.open(receipt)
    ledger.draw(receipt, Pure(epsilon=Fraction(1, 2)), Fraction(0))
    after("a draw", Fraction(1, 2))
    ledger.close(receipt)
    after("the end of held work")
    ledger.settle(receipt, "failed")
    after("held work that failed")
    ledger.unlock("patients", "made to fail")
    both = sequence(one=count(Fraction(1, 8), PATIENT), two=count(Fraction(1, 4), PATIENT))
    ledger.prepay((), both, data="patients@3", grade="exact", note="")
    after("a list that was prepaid", Fraction(3, 8))
    for part in both.parts.values():
        taken = ledger.spend((), part, data="patients@3", grade="exact", note="")
        ledger.open(taken)
        ledger.settle(taken, "failed")
        after("a prepaid part that failed")
    ledger.unlock("patients", "made to fail")
    for budget in (Budget(epsilon=9), Budget(epsilon=10)):
        with suppress(BudgetError):
            ledger.change_limit("patients", budget, reason="another limit")
        after("another limit")
    ledger.close_account("patients", reason="the end")
    after("the end of the account")
    return falls


def interrupted(home: Path, times: int, seed: int) -> tuple[int, list[str]]:
    """Ctrl-C at any time, in a process of its own."""
    prepare(home)
    found = json.loads(said([*WORKER, "interrupting", str(home), str(times), str(seed)])[-1])
    amounts = [Fraction(each) for each in found["spent"]]
    falls = [f"from {one} to {two} after an interrupt" for one, two in pairwise(amounts) if two < one]
    falls += [f"or a release was refused after one: {text}" for text in found["refused"][:1]]
    with closing(SQLiteStore(home / "ledger")) as store:
        paid = sum(entry["receipt"].event.epsilon for entry in entries_of(store) if entry["kind"] == "spend")
        if paid != spent(Ledger(store), "patients") or first_broken(store.entries()) is not None:
            falls.append("and is not what the entries say")
    return int(found["hits"]), falls
