"""L7: whatever several do at once equals one serial order of it, the chain's.

Every step that was written has its place in the chain. Replayed there, one after the other, on a ledger in memory, each
must be accepted again and lead to the same state. A refusal or a reading has no place of its own: it must be right
somewhere between the entries that were there when it was asked and those that were there when it was answered. (As the
checkers Knossos and Elle do it, with the order given by the chain, so that nothing has to be searched.)

The attack plays random histories of spends, holds, draws, lists, grants, limits, moves and closings, several at
once. The planted bug is a lost update: accounts are read before the lock is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato import events
from sfumato.accounting.filters import Budget
from sfumato.audit import surface
from sfumato.combine import reserve, sequence
from sfumato.errors import BudgetError, ReceiptError
from sfumato.ledger.charges import Charges
from sfumato.ledger.desk import Desk
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.request import Request
from sfumato.ledger.stores.base import Book, Store
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato.plan import Receipt

from ...mutants.stores import Stale
from ..verdict import Verdict
from .ground import ROW, Choices, count, folder

ACCOUNTS = {"a": Budget(epsilon=3), "b": Budget(epsilon=2, delta=1e-6)}
PARTS = ("c", "d")  # of a: they come and go
PATHS = (("a",), ("b",), ("a", "b"), ("b", "a"), ("c",), ("d",), ("d", "b"))
SIZES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 20), Fraction(3, 5))


@dataclass
class Step:
    """One call, and what came of it."""

    do: Callable[[Ledger, Receipt | None], Any]
    about: Receipt | None
    asked: int = 0  # entries when it was asked
    told: int = 0  # and when it was answered
    result: Any = None
    refused: str | None = None
    number: int | None = None  # its place in the chain


class _FollowedDesk(Desk):
    def __init__(self, store: Store, *, principal: str | None = None) -> None:
        super().__init__(store, principal=principal)
        self.mine = threading.local()

    def write(self, book: Book, kind: str, fields: Mapping[str, Any]) -> int:
        self.mine.number = super().write(book, kind, fields)
        return book.head.number


class _NamedCharges(Charges):
    next: Receipt | None = None

    def receipt(self, accounts: tuple[str, ...], request: Request, loop: str) -> Receipt:
        return self.next or super().receipt(accounts, request, loop)


class Followed(Ledger):
    """Tells each thread where its last entry went, and can be given the name of the next receipt."""

    _desk_type = _FollowedDesk
    _charges_type = _NamedCharges

    @property
    def mine(self) -> threading.local:
        desk = surface.desk_of(self)
        assert isinstance(desk, _FollowedDesk)
        return desk.mine

    def name_next(self, receipt: Receipt | None) -> None:
        charges = surface.charges_of(self)
        assert isinstance(charges, _NamedCharges)
        charges.next = receipt

    def length(self) -> int:
        with surface.store_of(self).reading() as book:
            return book.head.number


def attack(*, seeds: int = 334, steps: int = 60, threads: int = 5, kind: type[Any] = SQLiteStore) -> Verdict:
    """`seeds` histories of `threads` connections, each with so many steps: 10^5 of them in all."""
    written, asked, found = 0, 0, None
    with folder() as home:
        for seed in range(1, seeds + 1):
            with _stores(home, seed, threads, kind) as stores:
                born = opened(stores[0]).length()
                played = play([Followed(store) for store in stores], steps, seed)
                written += sum(step.number is not None for step in played)
                asked += len(played)
                if (found := anomaly(stores[0], born, played)) is not None:
                    break
    words = f"{asked} operations, {written} of them written: "
    words += "all in one serial order." if found is None else f"no serial order explains them: {found}."
    return Verdict("L7", found is not None, words, {"operations": asked, "written": written})


def control() -> Verdict:
    """It takes two threads that meet: within some histories they do."""
    return attack(seeds=64, steps=40, kind=Stale)


@contextmanager
def _stores(home: Path, seed: int, threads: int, kind: type[Any]) -> Iterator[list[Store]]:
    if issubclass(kind, MemoryStore):
        yield [kind()] * threads
        return
    place = home / f"{seed}.ledger"
    stores: list[Store] = [kind(place, create=True)]
    stores += [kind(place) for _ in range(threads - 1)]
    try:
        yield stores
    finally:
        for store in stores:
            store.close()
        place.unlink()


def choose(chance: Choices, known: list[Receipt]) -> Step:
    """The next thing that somebody does, at random."""
    path, part, size = chance.one(PATHS), chance.one(PARTS), chance.one(SIZES)
    about = chance.one(known) if known else None
    plan, lists = count(size), sequence(x=count(size), y=count(size / 3))
    held = reserve(unit=ROW, budget=Budget(epsilon=size))
    kinds: dict[str, Callable[[Ledger, Any], Any]] = {
        "spend": lambda ledger, _: ledger.spend(path, plan, data="a@1", grade="exact", note=""),
        "hold": lambda ledger, _: ledger.hold(path, held, data="a@1", grade="exact", note=""),
        "prepay": lambda ledger, _: ledger.prepay(path, lists, data="a@1", grade="exact", note=""),
        "prepaid": lambda ledger, _: ledger.prepaid(path, plan, data="a@1"),
        "quote part": lambda ledger, _: ledger.quote(path, plan, data="a@1"),
        "quote": lambda ledger, _: ledger.quote(path, plan),
        "spent": lambda ledger, _: ledger.spent(path[0]),
        "unlock": lambda ledger, _: ledger.unlock(path[0], "looked"),
        "grant": lambda ledger, _: ledger.open_account(part, Budget(epsilon=size), parent="a"),
        "limit": lambda ledger, _: ledger.change_limit(part, Budget(epsilon=size), reason="as asked"),
        "move": lambda ledger, _: ledger.move(*PARTS, epsilon=size / 4, reason="as asked"),
        "end": lambda ledger, _: ledger.close_account(part, reason="as asked"),
    }
    later: dict[str, Callable[[Ledger, Any], Any]] = {
        "open": lambda ledger, receipt: ledger.open(receipt),
        "settle": lambda ledger, receipt: ledger.settle(receipt, "answered", b"1"),
        "fail": lambda ledger, receipt: ledger.settle(receipt, "failed"),
        "draw": lambda ledger, receipt: ledger.draw(receipt, events.Laplace(epsilon=size / 5), Fraction(0)),
        "close": lambda ledger, receipt: ledger.close(receipt),
        "answer": lambda ledger, receipt: ledger.answer(path, receipt.plan_hash, "a@1"),
    }
    names = list(kinds) + ["spend", "hold", "spend", "hold", "prepay"] + (list(later) * 2 if about else [])
    if chance.share() < 0.9:
        names.remove("end")
    return Step((kinds | later)[chance.one(names)], about)


def act(ledger: Followed, step: Step) -> None:
    ledger.mine.number = None
    try:
        step.result = step.do(ledger, step.about)
        step.number = ledger.mine.number
    except (BudgetError, ReceiptError) as problem:
        step.refused = type(problem).__name__


def play(ledgers: list[Followed], steps: int, seed: int) -> list[Step]:
    """Each thread chooses its steps at random, about receipts that any of them got."""
    known: list[Receipt] = []
    start = threading.Barrier(len(ledgers))

    def work(who: int) -> list[Step]:
        chance = Choices(seed * 100 + who)
        done = []
        start.wait()
        for _ in range(steps):
            step = choose(chance, known[-12:])
            step.asked = ledgers[who].length()
            act(ledgers[who], step)
            step.told = ledgers[who].length()
            if isinstance(step.result, Receipt):
                known.append(step.result)
            done.append(step)
        return done

    with ThreadPoolExecutor(len(ledgers)) as pool:
        return [step for part in pool.map(work, range(len(ledgers))) for step in part]


def anomaly(store: Store, born: int, steps: list[Step]) -> str | None:
    """What no serial order explains; None where the chain's order explains all of it."""
    if (broken := first_broken(store.entries())) is not None:
        return broken.reason
    placed = {step.number: step for step in steps if step.number is not None}
    loose = [step for step in steps if step.number is None]
    length = len(list(store.entries()))
    if sorted(placed) != list(range(born + 1, length + 1)):
        return "an entry was lost, or is nobody's"
    model = opened(MemoryStore(), store.principal)
    loose.sort(key=lambda step: step.asked, reverse=True)
    waiting: list[Step] = []
    for number in range(born, length + 1):
        if number > born:
            step = placed[number]
            model.name_next(step.result if isinstance(step.result, Receipt) else None)
            again = Step(step.do, step.about)
            act(model, again)
            if again.refused or again.result != step.result:
                return f"entry {number} would have been refused here"
        while loose and loose[-1].asked <= number:
            waiting.append(loose.pop())
        waiting = [step for step in waiting if not explained(model, step)]
        late = next((step for step in waiting if step.told <= number), None)
        if late is not None:
            return f"no moment explains {late}"
    if loose or waiting:
        return "something was answered after the last entry that there is"
    with store.reading() as book, surface.store_of(model).reading() as other:
        same = sorted(book.accounts()) == sorted(other.accounts())
        same = same and all(book.account(name) == other.account(name) for name in book.accounts())
    return None if same else "the state is not what the entries amount to"


class Trial(MemoryStore):
    """What would come of it: nothing is kept."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        yield surface.trial(self)


def explained(model: Followed, step: Step) -> bool:
    """Would it have gone the same way here?"""
    store, kept = Trial(), surface.store_of(model)
    assert isinstance(kept, MemoryStore)
    surface.share(store, kept)
    again = Step(step.do, step.about)
    act(Followed(store), again)
    return (again.refused, again.result, again.number) == (step.refused, step.result, None)


def opened(store: Store, principal: str | None = None) -> Followed:
    ledger = Followed(store, principal=principal)
    for name, budget in ACCOUNTS.items():
        ledger.open_account(name, budget, reason="other people")
    return ledger
