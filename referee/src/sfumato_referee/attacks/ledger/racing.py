"""L2: however many spend at once, the budget is spent exactly, and never overspent.

Claim. Every spend is one transaction that begins with the right to write (`BEGIN IMMEDIATE`), so what it reads is what
the last writer left: the spends have one order, in which each was checked against all before it.

Two attacks. Two spenders for one budget, each held up after whatever it reads until the other has read too: a design
that lets go between reading and writing lets both pass, every time. And sixteen processes with a hundred spends of
1/500 each: exactly 500 are paid and 1100 refused, none fails, and the chain holds them. The planted bug reads, lets go,
and writes what it made of it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.accounting.filters import Budget
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.base import Store
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore

from ...mutants.stores import Deferred, ReadThenInsert, UnlockedServer
from ..verdict import Verdict
from .ground import count, folder, pay, spent
from .striking import WORKER, said

STORES: dict[str, Callable[..., Store]] = {
    "sqlite": SQLiteStore,
    "postgres": PostgresStore,
    "deferred": Deferred,
    "read-then-insert": ReadThenInsert,
    "unlocked": UnlockedServer,
}


def attack(*, kind: str = "sqlite", processes: int = 16, times: int = 100, room: int = 500) -> Verdict:
    """`processes` of them spend `times` times a `room`-th of the budget."""
    with folder() as home:
        passed = both_spend(home / "two", STORES[kind])
        place = home / "many"
        _opened(place, 1)
        found = raced(kind, str(place), processes, times, room)
        with contextlib.closing(SQLiteStore(place)) as store:
            kept = spent(Ledger(store), "a")
            entries = list(store.entries())
            whole = first_broken(entries) is None
    right = min(room, processes * times)
    paid, refused, failed = (int(found[name]) for name in ("paid", "refused", "errors"))
    exact = (paid, refused, failed, found["died"]) == (right, processes * times - right, 0, 0)
    recorded = kept == Fraction(right, room) and whole and sum(b'"spend"' in body for _, body in entries) == paid
    words = (
        f"Of two spenders for one budget {passed} passed. {processes} processes x {times} spends of 1/{room}: {paid} "
        f"paid, {refused} refused, {failed} failed; {float(kept):.6g} of 1 is spent."
    )
    figures = {"passed of two": passed, "paid": paid, "refused": refused, "failed": failed, "spent": float(kept)}
    return Verdict("L2", passed != 1 or not exact or not recorded, words, figures)


def control() -> Verdict:
    return attack(kind="read-then-insert", processes=4, times=20, room=40)


def _opened(place: Path, budget: Any) -> None:
    with contextlib.closing(SQLiteStore(place, create=True)) as store:
        Ledger(store).open_account("a", Budget(epsilon=budget))


def both_spend(place: Path, kind: Callable[..., Any]) -> int:
    """Two spenders for one budget. Where a design lets go between reading and writing, both read before one writes."""
    together = threading.Barrier(2)

    class Meeting(kind):  # type: ignore[valid-type, misc]
        @contextmanager
        def reading(self) -> Iterator[Any]:
            with super().reading() as book:
                yield book
            with contextlib.suppress(threading.BrokenBarrierError):
                together.wait(timeout=10)

    _opened(place, 1)

    def spend(_: int) -> int:
        with contextlib.closing(Meeting(place)) as store:
            try:
                pay(Ledger(store), count(1))
                return 1
            except BudgetError:
                return 0

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(spend, range(2)))


def raced(kind: str, place: str, processes: int = 16, times: int = 100, room: int = 500) -> dict[str, float]:
    """In a fresh process, so that one import serves them all. How many were paid, refused, failed; how many died."""
    words = ("racing", kind, place, processes, times, room)
    found: dict[str, float] = json.loads(said([*WORKER, *map(str, words)])[-1])
    return found


def main(kind: str, place: str, processes: str, times: str, room: str) -> None:
    print(json.dumps(_race(kind, place, int(processes), int(times), int(room))))


def _spend(kind: str, place: str, times: int, room: int) -> Counter[str]:
    ledger, plan = Ledger(STORES[kind](place, wait=600)), count(Fraction(1, room))  # on a slow disk others take long
    seen: Counter[str] = Counter()
    for _ in range(times):
        try:
            pay(ledger, plan)
            seen["paid"] += 1
        except BudgetError:
            seen["refused"] += 1
        except (LedgerError, sqlite3.Error):
            seen["errors"] += 1
    ledger.shut()
    return seen


def _race(kind: str, place: str, processes: int, times: int, room: int) -> dict[str, float]:
    """All start together: each waits until the pipe that they share is closed."""
    if STORES[kind] in (PostgresStore, UnlockedServer):
        importlib.import_module("psycopg")  # once, not in each of them
    ready, go = os.pipe()
    told, tell = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)
            os.write(tell, json.dumps(_spend(kind, place, times, room)).encode() + b"\n")
            os._exit(0)
        children.append(child)
    os.close(tell)
    started = time.perf_counter()
    os.close(go)
    with os.fdopen(told) as lines:
        total = sum((Counter(json.loads(line)) for line in lines), Counter())
    took = time.perf_counter() - started
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return {
        **{name: total[name] for name in ("paid", "refused", "errors")},
        "died": sum(map(bool, ended)),
        "took": took,
    }
