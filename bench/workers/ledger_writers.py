"""Many processes that write to one PostgreSQL at once, as a program, so that one import serves them all.

    python -m bench.workers.ledger_writers ledger|bare ADDRESS PROCESSES TIMES EPSILON

Each connects, all start together. Prints, as JSON, how many writes were paid, refused by the budget, and failed by an
error, and the seconds from the start to the last commit. The bare writers lock one row, insert one, and commit.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import psycopg

from bench.ledger_places import DATA, PATH
from sfumato import Unit, bounds, mechanisms
from sfumato.errors import BudgetError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.postgres import PostgresStore

_ROW = bytes(1500)


def ledger(address: str, epsilon: Fraction) -> Callable[[], str]:
    book = Ledger(PostgresStore(address))
    plan = mechanisms.Laplace(query=bounds.count(Unit()), epsilon=epsilon)

    def write() -> str:
        try:
            book.spend(PATH[2:], plan, data=DATA, grade="exact", note="a benchmark")
        except BudgetError:
            return "refused"
        return "paid"

    return write


def bare(address: str, _: Fraction) -> Callable[[], str]:
    connection = psycopg.connect(address)

    def write() -> str:
        connection.execute("SELECT number FROM bare_head FOR UPDATE")
        connection.execute("INSERT INTO bare (body) VALUES (%s)", (_ROW,))
        connection.commit()
        return "paid"

    return write


def writer(kind: str, address: str, times: int, epsilon: Fraction, ready: int, tell: int) -> None:
    """One process: connect, wait until the pipe is closed, write."""
    counted: Counter[str] = Counter()
    write = {"ledger": ledger, "bare": bare}[kind](address, epsilon)
    os.write(tell, b"ready\n")
    os.read(ready, 1)
    for _ in range(times):
        try:
            counted[write()] += 1
        except Exception:
            counted["errors"] += 1
            traceback.print_exc()
    os.write(tell, json.dumps(counted).encode() + b"\n")


def race(kind: str, address: str, processes: int, times: int, epsilon: Fraction) -> dict[str, float]:
    ready, go = os.pipe()
    told, tell = os.pipe()
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            os.close(go)
            try:
                writer(kind, address, times, epsilon, ready, tell)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        children.append(child)
    os.close(tell)
    total: Counter[str] = Counter()
    started = 0.0
    with os.fdopen(told) as lines:
        for number, line in enumerate(lines, 1):
            if number <= processes:
                if number == processes:
                    started = time.perf_counter()
                    os.close(go)
            else:
                total.update(json.loads(line))
    took = time.perf_counter() - started
    died = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)
    return {**{name: total[name] for name in ("paid", "refused", "errors")}, "died": died, "seconds": took}


if __name__ == "__main__":
    print(json.dumps(race(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Fraction(sys.argv[5]))))
