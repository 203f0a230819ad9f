"""L7: whatever several threads do at once equals one serial order of it, the chain's.

Every step that was written has its place in the chain. Replayed there, one after the other, on a ledger in memory, each
must be accepted again and lead to the same state. A refusal or a reading has no place of its own: it must be right
somewhere between the entries that were there when it was asked and those that were there when it was answered.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, events, reserve, sequence
from sfumato.errors import BudgetError, ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.base import Book, Store
from sfumato.ledger.stores.memory import MemoryStore, _Draft, _Pages
from sfumato.plan import Receipt
from tests.helpers import laplace
from tests.ledger.stores import ROW, Stores

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


class Watched(Ledger):
    """Tells each thread where its last entry went, and can be given the name of the next receipt."""

    def __init__(self, store: Store, *, principal: str | None = None) -> None:
        super().__init__(store, principal=principal)
        self.mine = threading.local()
        self.next: Receipt | None = None

    def _write(self, book: Book, *args: Any, **fields: Any) -> int:
        self.mine.number = super()._write(book, *args, **fields)
        return book.head.number

    def _receipt(self, *args: Any, **fields: Any) -> Receipt:
        return self.next or super()._receipt(*args, **fields)

    def length(self) -> int:
        with self._store.reading() as book:
            return book.head.number


def choose(rng: random.Random, known: list[Receipt]) -> Step:
    path, part, size = rng.choice(PATHS), rng.choice(PARTS), rng.choice(SIZES)
    about = rng.choice(known) if known else None
    plan, lists = laplace(size), sequence(x=laplace(size), y=laplace(size / 3))
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
    if rng.random() < 0.9:
        names.remove("end")
    name = rng.choice(names)
    return Step((kinds | later)[name], about)


def act(ledger: Watched, step: Step) -> None:
    ledger.mine.number = None
    try:
        step.result = step.do(ledger, step.about)
        step.number = ledger.mine.number
    except (BudgetError, ReceiptError) as problem:
        step.refused = type(problem).__name__


def play(ledgers: list[Watched], steps: int, seed: int) -> list[Step]:
    """Each thread chooses its steps at random, about receipts that any of them got."""
    known: list[Receipt] = []
    start = threading.Barrier(len(ledgers))

    def work(who: int) -> list[Step]:
        rng = random.Random(seed * 100 + who)
        done = []
        start.wait()
        for _ in range(steps):
            step = choose(rng, known[-12:])
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
            model.next = step.result if isinstance(step.result, Receipt) else None
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
    with store.reading() as book, model._store.reading() as other:
        same = sorted(book.accounts()) == sorted(other.accounts())
        same = same and all(book.account(name) == other.account(name) for name in book.accounts())
    return None if same else "the state is not what the entries amount to"


class Trial(MemoryStore):
    """What would come of it: nothing is kept."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        yield _Draft(self._kept)


def explained(model: Watched, step: Step) -> bool:
    """Would it have gone the same way here?"""
    store = Trial()
    store._kept = model._store._kept  # type: ignore[attr-defined]
    again = Step(step.do, step.about)
    act(Watched(store), again)
    return (again.refused, again.result, again.number) == (step.refused, step.result, None)


def opened(store: Store, principal: str | None = None) -> Watched:
    ledger = Watched(store, principal=principal)
    for name, budget in ACCOUNTS.items():
        ledger.open_account(name, budget, reason="other people")
    return ledger


def check(ledgers: Stores, steps: int, seed: int) -> list[Step]:
    if ledgers.kind == "memory":
        stores: list[Store] = [ledgers.new()] * 5
    else:
        place = ledgers.place()
        stores = [ledgers.again(place) for _ in range(5)]
    born = opened(stores[0]).length()
    found = play([Watched(store) for store in stores], steps, seed)
    assert anomaly(stores[0], born, found) is None, f"seed {seed}"
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_l7_histories_of_several_threads_are_serial(ledgers: Stores, seed: int) -> None:
    steps = check(ledgers, 80, seed)
    assert sum(step.refused is not None for step in steps) > 20 < sum(step.number is not None for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "times"), [("sqlite", 100), ("memory", 20)])
def test_l7_in_a_hundred_thousand_operations(quick: Path, kind: str, times: int) -> None:
    """Five threads, each with a connection of its own, a thousand operations at a time."""
    stores, written = Stores(kind, quick), 0
    for seed in range(times):
        written += sum(step.number is not None for step in check(stores, 200, seed))
        stores.done()
    assert written > 100 * times


class Unlocked(MemoryStore):
    """Wrong: two writers at once, and the later one wins."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        draft = _Draft(self._kept)
        yield draft
        time.sleep(0.0002)
        self._kept.take(draft.new)


class Stale(MemoryStore):
    """Wrong, with a chain that holds: the accounts are read before the lock is taken."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        seen = dict(self._kept.accounts)
        time.sleep(0.0002)
        with super().writing() as book:
            new = book.new.accounts  # type: ignore[attr-defined]
            book.account = lambda name: new.get(name) or seen.get(name)  # type: ignore[method-assign]
            yield book


class Late(MemoryStore):
    """Wrong: reads from a copy that lags behind what was told."""

    @contextmanager
    def reading(self) -> Iterator[Book]:
        with self._lock:
            now = _Draft(self._kept)
            yield _Lagging(getattr(self, "_old", now), now)

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with super().writing() as book:
            kept = {name: value.copy() for name, value in vars(self._kept).items()}
            yield book
        self._old = _Draft(_Pages(**kept))


class _Lagging:
    """The accounts of before, at the head of now."""

    def __init__(self, old: _Draft, now: _Draft) -> None:
        self._old, self.head = old, now.head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._old, name)


@pytest.mark.parametrize("wrong", [Unlocked, Stale, Late])
def test_l7_the_wrong_stores_are_caught(wrong: type[MemoryStore]) -> None:
    def caught(seed: int) -> bool:
        store = wrong()
        born = opened(store).length()
        return anomaly(store, born, play([Watched(store) for _ in range(5)], 40, seed)) is not None

    assert any(caught(seed) for seed in range(3, 35))  # it takes two threads that meet
