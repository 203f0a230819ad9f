"""L3: a key is charged once and draws once, whoever repeats the request, and whenever.

Claim. A key is bound to one plan on one version of the data when it is paid, in the same transaction. Its receipt opens
once, durably, before the data is read; so noise is drawn at most once for a charge. A retry gets the stored bytes, or,
where the data was opened and no answer is stored, a refusal.

The attack kills a process between paying, opening and answering, and asks again twice, after a restart; asks for other
plans and other data under the same key; sends one request many times at once; and uses receipts that were captured,
used up or made up. The planted bug takes a retry for a request that was never begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import record
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.curator import Curator
from sfumato.errors import ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Receipt

from ..verdict import Verdict
from .ground import PATIENT, count, curator, folder, patients, spent
from .releasing import DESIGNS, STEPS, curator_of, draws, fault_after, plan_of
from .striking import prepared, worker


def attack(*, design: str = "right", askers: int = 8, rounds: int = 5) -> Verdict:
    """Deaths between the ledger's own steps, and `rounds` of `askers` requests at once."""
    faults: list[str] = []
    with folder() as home:
        prepared(home, STEPS)
        ended = worker("releasing", "steps", home)
        for step, (retry, times) in STEPS.items():
            faults += [f"{step}: {fault}" for fault in retried(home / step, design, retry, times)]
        for number in range(rounds):
            faults += at_once(home / f"round {number}", DESIGNS[design], askers)
        both = [DESIGNS[design](SQLiteStore(home / name, create=True)) for name in ("captured", "another")]
        faults += misused(*both)
        for ledger in both:
            ledger.shut()
    words = f"{len(ended)} processes died between two steps, and {rounds} requests were sent {askers} times at once: "
    words += faults[0] if faults else "each was charged once and drew once, and retries got the stored bytes."
    return Verdict("L3", bool(faults), words, {"faults": len(faults), "deaths": len(ended), "rounds": rounds})


def control() -> Verdict:
    return attack(design="second draw", rounds=1)


def retried(place: Path, design: str, retry: str, times: int) -> list[str]:
    """What is wrong with what a client gets that asks again with the key of the release that died."""
    with DESIGNS[design](SQLiteStore(place / "ledger")) as ledger:
        before = spent(ledger, "patients")
        told = [_told(lambda: curator_of(ledger, place, 0).release(plan_of(0), key="request 0")) for _ in range(2)]
        faults = [] if told[0] == told[1] else ["two retries got different answers"]
        if (told[0][0] == "answered") != (retry == "answered"):
            faults.append(f"a retry was {told[0][0]}, and should have been {retry}")
        if before:  # the key is taken
            others: list[tuple[Curator, Any]] = [
                (Curator(patients(name="others"), ledger, accounts=("patients",)), plan_of(0)),
                (curator(ledger), plan_of(1)),
            ]
            for asking, plan in others:
                if _told(partial(asking.release, plan, key="request 0"))[0] == "answered":
                    faults.append("a key was used for another plan or other data")
            if spent(ledger, "patients") != before:
                faults.append("a retry was charged")
    if draws(place).get(0, 0) != times:
        faults.append(f"noise was drawn {draws(place).get(0, 0)} times for one charge")
    if (fault := fault_after(place, design)) is not None:
        faults.append(fault)
    return faults


def _told(ask: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "answered", record.canonical(ask().raw).decode()
    except ReceiptError as problem:
        return "refused", str(problem)


def at_once(place: Path, kind: Callable[[Any], Ledger], askers: int) -> list[str]:
    """One request, sent many times at once: who opens it draws, and all others get that answer or a refusal."""
    with Ledger(SQLiteStore(place, create=True)) as ledger:
        ledger.open_account("patients", Budget(epsilon=10))
    start, opened, plan = threading.Barrier(askers), set[int](), count(1, PATIENT)

    def ask(number: int) -> tuple[str, str]:
        with kind(SQLiteStore(place)) as own:
            start.wait()
            return _told(lambda: curator(own, lambda: opened.add(number)).release(plan, key="the key"))

    with ThreadPoolExecutor(askers) as pool:
        told = list(pool.map(ask, range(askers)))
    answers = {text for outcome, text in told if outcome == "answered"}
    with Ledger(SQLiteStore(place)) as ledger:
        again, charged = _told(lambda: curator(ledger).release(plan, key="the key")), spent(ledger, "patients")
    faults = []
    if len(opened) != 1:
        faults.append(f"one key opened the data {len(opened)} times")
    if len(answers) != 1 or again != ("answered", *answers):
        faults.append(f"one key got {len(answers)} different answers")
    if charged != 1:
        faults.append(f"one key was charged {float(charged):g} times")
    return faults


def misused(ledger: Ledger, other: Ledger) -> list[str]:
    """Which receipts that were used, failed, kept or made up did something."""
    faults = []
    for what, act in misuses(ledger, other):
        try:
            act()
            faults.append(f"a receipt {what}")
        except ReceiptError:
            continue
    if answered_for(ledger) != b"x":
        faults.append("an answer that was given did not stay")
    return faults


def answered_for(ledger: Ledger) -> bytes | None:
    """What is stored for the one release of `misuses` that was answered."""
    stored = ledger.answer(("patients",), count(1, PATIENT).hash, "patients@1")
    return None if stored is None else stored[1]


def misuses(ledger: Ledger, other: Ledger) -> Iterator[tuple[str, Callable[[], object]]]:
    """What nobody may do with a receipt, one by one, each at its moment; `other` is a ledger of somebody else."""
    for book in (ledger, other):
        book.open_account("patients", Budget(epsilon=10))

    def pay(epsilon: int, book: Ledger = ledger) -> Receipt:
        return book.spend((), count(epsilon, PATIENT), data="patients@1", grade="exact", note="")

    def used(receipt: Receipt, when: str) -> Iterator[tuple[str, Callable[[], object]]]:
        yield f"was opened {when}", lambda: ledger.open(receipt)
        yield f"was answered {when}", lambda: ledger.settle(receipt, "answered", b"y")

    receipt = pay(1)
    yield "was answered and not opened", lambda: ledger.settle(receipt, "answered", b"y")
    ledger.open(receipt)
    yield "was opened twice", lambda: ledger.open(receipt)
    ledger.settle(receipt, "answered", b"x")
    yield from used(receipt, "after its answer")
    yield "failed after its answer", lambda: ledger.settle(receipt, "failed")
    failed, never = pay(2), pay(3)
    ledger.open(failed)
    ledger.settle(failed, "failed", b"half an answer")
    yield from used(failed, "after it had failed")
    ledger.settle(never, "failed")  # died between paying and opening
    yield from used(never, "after it was given up")
    mine = pay(1)
    unpaid = surface.unpaid_receipt(ledger, ("patients",), count(2, PATIENT), "patients@1")
    forged = replace(mine, plan_hash="0" * 64)
    for whose, bad in {
        "of another ledger": pay(1, other), "that nobody paid": unpaid, "for another plan": forged,
        "of another name": replace(mine, id="x"),
    }.items():  # fmt: skip
        yield f"{whose} was opened", partial(ledger.open, bad)
        yield f"{whose} was settled", partial(ledger.settle, bad, "failed")
        yield f"{whose} was drawn on", partial(ledger.draw, bad, bad.event, Fraction(0))
