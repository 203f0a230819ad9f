"""Sixteen processes that spend from one account: run as a program, so that one import serves them all.

    python -m tests.ledger.spenders sqlite PATH    (or postgres ADDRESS, or a mutant of either)

Prints, as JSON, how many spends were paid, refused, and failed by an error, and the seconds it took.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from sfumato import Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.base import Book, Store
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore

PLAN = m.Laplace(query=bounds.count(Unit()), epsilon=Fraction(1, 500))


class Deferred(SQLiteStore):
    """Wrong: reads first, and asks for the right to write when it writes."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self.reading() as book:
            yield book


class ReadThenInsert(SQLiteStore):
    """Wrong: reads, lets go, and writes what it made of it, wherever the chain now ends."""

    @contextmanager
    def writing(self) -> Iterator[Book]:
        with self.reading() as book:
            seen = dict.fromkeys(book.accounts())
            accounts = {name: book.account(name) for name in seen}
        time.sleep(0)
        with super().writing() as book:
            book._accounts.update({name: old for name, old in accounts.items() if old})  # type: ignore[attr-defined]
            yield book


class Unlocked(PostgresStore):
    """Wrong: reads the head without its lock."""

    _take_head = "SELECT number, hash FROM sfumato.head"


STORES: dict[str, Callable[..., Store]] = {
    "sqlite": SQLiteStore,
    "postgres": PostgresStore,
    "deferred": Deferred,
    "read-then-insert": ReadThenInsert,
    "unlocked": Unlocked,
}


def spend(kind: str, place: str, times: int) -> Counter[str]:
    ledger = Ledger(STORES[kind](place, wait=600))  # on a slow disk fifteen others take their time
    seen: Counter[str] = Counter()
    for _ in range(times):
        try:
            ledger.spend(("a",), PLAN, data="a@1", grade="exact", note="")
            seen["paid"] += 1
        except BudgetError:
            seen["refused"] += 1
        except (LedgerError, sqlite3.Error):
            seen["errors"] += 1
    ledger._store.close()
    return seen


def race(kind: str, place: str, processes: int, times: int) -> dict[str, float]:
    """All start together: each waits until the pipe that they share is closed."""
    if STORES[kind] in (PostgresStore, Unlocked):
        importlib.import_module("psycopg")  # once, not in each of them
    ready, go = os.pipe()
    told, tell = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            os.read(ready, 1)
            os.write(tell, json.dumps(spend(kind, place, times)).encode() + b"\n")
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


if __name__ == "__main__":
    kind, place, processes, times = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5] or (16, 100))
    print(json.dumps(race(kind, place, processes, times)))
