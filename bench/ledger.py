"""The ledger beside bare inserts, on the same disk in the same run. No peer has a durable ledger: odometers and filters
of OpenDP, Tumult and others live in memory and are gone with the process, so there is nobody else to measure.

    python -m bench.ledger [--quick] [--check] [--json FILE] [--folder FOLDER]

A spend is one commit: a Gaussian plan, charged to the data set's account, or to three accounts (organisation, data set,
team) of four members each, priced, chained, and on the disk before the call returns. A whole release is two commits
(spent and opened, then settled), and the bar is on it. Beside each stand as many bare commits, each synced, of rows of
the entries' own size. Ours and theirs take turns in blocks; the figures are medians over the rounds, and ratios are
taken within a round. Time is on the wall: it is the disk's, and the faster the disk syncs, the more the ledger's own
work (some 0.6 milliseconds a commit for one account) weighs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from sfumato import Budget
from sfumato.ledger.opening import with_head
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.proof.verify import verify
from sfumato.ledger.stores.base import Book, Store
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.ledger.stores.sqlite import SQLiteStore

from . import peers, table
from .bars import Bar, bars_block, progress, times
from .ledger_places import (
    BarePostgres,
    BareSQLite,
    Server,
    ServerMissingError,
    bodies,
    fill_postgres,
    fill_sqlite,
    opened,
    release,
    spend,
)

WRITERS = 16
HALF, OPEN_WITHIN, HASHED = 0.5, 1.0, 50_000
HEADED, HEAD_COSTS = "SQLite, release, with a head / without", 1.5
DIGEST, DIGEST_COSTS = "SQLite, spend, held to the digest / not", 1.1
STEADY = 1.5  # what the n-th spend may cost, in units of the tenth: told, and no bar


class Unheld(SQLiteStore):
    """Believes the rows that are stored beside the entries, and binds none of them: as stores were before."""

    def writing(self) -> AbstractContextManager[Book]:
        return self._transaction("BEGIN IMMEDIATE TRANSACTION")  # not the words by which a writer's book is told


@dataclass(frozen=True)
class Effort:
    rounds: int
    block: int  # spends, or releases, at a turn
    entries: int  # of the long ledger
    on_server: int  # of the long ledger on PostgreSQL
    each: int  # spends of each of the writers


FULL = Effort(rounds=15, block=60, entries=1_000_000, on_server=100_000, each=100)
QUICK = Effort(rounds=7, block=25, entries=100_000, on_server=10_000, each=25)


@dataclass
class Figures:
    """Seconds, ratios and counts, under what they are of."""

    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    absent: str | None = None

    def turns(self, effort: Effort, pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]]) -> None:
        """Ours and theirs in blocks that take turns."""
        found: dict[str, list[tuple[float, float]]] = {what: [] for what in pairs}
        for ours, theirs in pairs.values():
            for _ in range(20):  # code loaded, statements prepared, pages touched
                ours()
                theirs()
        for number in range(effort.rounds):
            for what, (ours, theirs) in pairs.items():
                first, second = (ours, theirs) if number % 2 else (theirs, ours)
                took = {first: _block(first, effort.block), second: _block(second, effort.block)}
                found[what].append((took[ours], took[theirs]))
        for what, both in found.items():
            self.seconds[what] = statistics.median(ours for ours, _ in both)
            self.seconds[f"{what}, bare"] = statistics.median(theirs for _, theirs in both)
            self.ratios[what] = statistics.median(theirs / ours for ours, theirs in both)

    def rates(self, what: str, check: Callable[[], bool]) -> None:
        """Entries per second, of CPU time (the work is ours alone, and neighbours do not count) and on the wall."""
        wall, cpu = time.perf_counter(), time.process_time()
        assert check()
        self.counts[f"{what} per second"] = self.counts["entries"] / (time.process_time() - cpu)
        self.counts[f"{what} per second on the wall"] = self.counts["entries"] / (time.perf_counter() - wall)


def _block(work: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def measure(effort: Effort, folder: Path, say: Callable[[str], object]) -> Figures:
    figures = Figures()
    say("SQLite, spends and releases")
    _durable_sqlite(figures, effort, folder)
    say("SQLite, a long ledger")
    _long_sqlite(figures, effort, folder)
    try:
        server = Server(folder)
    except ServerMissingError as problem:
        figures.absent = str(problem)
        return figures
    try:
        say("PostgreSQL, spends and releases")
        _durable_postgres(figures, effort, server)
        say(f"PostgreSQL, {WRITERS} writers")
        _writers(figures, effort, server)
        say("PostgreSQL, a long ledger")
        _long_postgres(figures, effort, server)
    finally:
        server.close()
    return figures


def _durable(
    figures: Figures, effort: Effort, place: str, store: Callable[[], Store], bare: Callable[[list[bytes]], Any]
) -> None:
    for path, alone in (("one account", True), ("three accounts", False)):
        ledger = opened(store(), alone=alone)
        rows = bare(bodies(ledger, alone=alone)[1])
        figures.turns(
            effort,
            {
                f"{place}, spend, {path}": (partial(spend, ledger, alone=alone), partial(rows.commit, 1)),
                f"{place}, release, {path}": (partial(release, ledger, alone=alone), partial(rows.commit, 2, 1)),
            },
        )
        ledger.shut()


def _durable_sqlite(figures: Figures, effort: Effort, folder: Path) -> None:
    names = itertools.count()

    def new() -> Store:
        return SQLiteStore(folder / f"spends{next(names)}", create=True)

    def headed() -> Store:
        path = folder / f"spends{next(names)}"
        return with_head(SQLiteStore(path, create=True), path, None)

    _durable(figures, effort, "SQLite", headed, lambda rows: BareSQLite(folder / f"bare{next(names)}", rows))
    outside, inside = opened(headed(), alone=True), opened(new(), alone=True)
    figures.turns(effort, {HEADED: (partial(release, outside, alone=True), partial(release, inside, alone=True))})
    outside.shut()
    inside.shut()
    for path, alone in (("one account", True), ("three accounts", False)):
        held, unheld = (
            opened(kind(folder / f"spends{next(names)}", create=True), alone=alone) for kind in (SQLiteStore, Unheld)
        )
        pair = partial(spend, held, alone=alone), partial(spend, unheld, alone=alone)
        figures.turns(effort, {f"{DIGEST}, {path}": pair})
        held.shut()
        unheld.shut()


def _durable_postgres(figures: Figures, effort: Effort, server: Server) -> None:
    def new() -> Store:
        return PostgresStore(server.database(), create=True)

    _durable(figures, effort, "PostgreSQL", new, lambda rows: BarePostgres(server.database(), rows))


def _long_sqlite(figures: Figures, effort: Effort, folder: Path) -> None:
    path = folder / "long"
    fill_sqlite(path, effort.entries // 3)
    figures.seconds["SQLite, open"] = _opened(lambda: SQLiteStore(path))
    store = SQLiteStore(path)
    with store.reading() as book:
        figures.counts["entries"] = book.head.number
    figures.rates("hashed", lambda: first_broken(store.entries()) is None)
    figures.rates("verified", lambda: verify(store, state=False).head.number == figures.counts["entries"])
    short = opened(SQLiteStore(folder / "short", create=True))
    long = type(short)(store)
    for _ in range(10):
        spend(short), spend(long)
    rounds = [(_block(lambda: spend(short), 5), _block(lambda: spend(long), 5)) for _ in range(4 * effort.rounds)]
    figures.ratios["SQLite, n-th spend"] = statistics.median(late / early for early, late in rounds)
    store.close()
    short._store.close()


def _long_postgres(figures: Figures, effort: Effort, server: Server) -> None:
    address = server.database()
    fill_postgres(address, effort.on_server // 3)
    figures.seconds["PostgreSQL, open"] = _opened(lambda: PostgresStore(address))
    store = PostgresStore(address)
    with store.reading() as book:
        figures.counts["entries on the server"] = book.head.number
    start = time.perf_counter()
    assert first_broken(store.entries()) is None
    figures.counts["hashed per second from the server"] = book.head.number / (time.perf_counter() - start)
    store.close()


def _opened(make: Callable[[], Any]) -> float:
    """Opening, to the first account read; the slowest of five."""
    took = []
    for _ in range(5):
        start = time.perf_counter()
        store = make()
        with store.reading() as book:
            assert book.account("team") is not None
        took.append(time.perf_counter() - start)
        store.close()
    return max(took)


def _writers(figures: Figures, effort: Effort, server: Server) -> None:
    """The budget is for three quarters of what they ask: exactly so many may be paid."""
    address = server.database()
    asked = WRITERS * effort.each
    right = asked * 3 // 4
    store = PostgresStore(address, create=True)
    ledger = opened(store, Budget(epsilon=1))
    server.run(
        address,
        "CREATE TABLE bare (number bigserial PRIMARY KEY, body bytea)",
        "CREATE TABLE bare_head (number bigint)",
        "INSERT INTO bare_head VALUES (0)",
    )
    bare = [_race("bare", address, effort, Fraction(1)) for _ in range(1)]
    with store.reading() as book:
        before = book.head.number
    ours = _race("ledger", address, effort, Fraction(1, right))
    bare.append(_race("bare", address, effort, Fraction(1)))
    with store.reading() as book:
        written = book.head.number - before
    spent = ledger.spent("team")[0].spent
    store.close()
    figures.counts |= {f"writers {name}": value for name, value in ours.items()}
    figures.counts |= {"writers asked": asked, "writers right": right, "writers written": written}
    figures.counts["writers spent all"] = float(spent == 1)
    figures.seconds["writers, each write"] = ours["seconds"] / asked
    figures.seconds["writers, each write, bare"] = statistics.mean(each["seconds"] for each in bare) / asked
    figures.ratios["writers"] = figures.seconds["writers, each write, bare"] / figures.seconds["writers, each write"]


def _race(kind: str, address: str, effort: Effort, epsilon: Fraction) -> dict[str, float]:
    words = (kind, address, str(WRITERS), str(effort.each), str(epsilon))
    done = subprocess.run(
        [sys.executable, "-m", "bench.workers.ledger_writers", *words],
        cwd=peers.ROOT,
        env={**os.environ, **peers.ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


# Bars and report


def bars(figures: Figures) -> Iterator[Bar]:
    for place in ("SQLite", "PostgreSQL"):
        if f"{place}, release, one account" in figures.ratios:
            ratio = figures.ratios[f"{place}, release, one account"]
            promise = f"{place}: spent and opened, then settled / two bare synced commits ≥ {HALF}"
            yield Bar(promise, times(ratio), kept=ratio >= HALF)
        if place == "SQLite":
            yield from _costs(figures)
        if f"{place}, open" in figures.seconds:
            entries = figures.counts["entries" if place == "SQLite" else "entries on the server"]
            seconds = figures.seconds[f"{place}, open"]
            promise = f"{place}: opening {table.count(entries)} entries < {OPEN_WITHIN:g} s"
            yield Bar(promise, table.duration(seconds), kept=seconds < OPEN_WITHIN)
    for what in ("hashed", "verified"):
        rate = figures.counts[f"{what} per second"]
        yield Bar(f"entries {what} / s of CPU ≥ {table.count(HASHED)}", table.count(rate), kept=rate >= HASHED)
    if figures.absent is not None:
        yield Bar("PostgreSQL measured", figures.absent, kept=False)
        return
    found = {name: round(figures.counts[f"writers {name}"]) for name in ("paid", "written", "errors", "died", "right")}
    yield Bar(
        f"{WRITERS} writers: exactly {found['right']} of {round(figures.counts['writers asked'])} paid",
        f"{found['paid']} paid, {found['written']} written",
        kept=found["paid"] == found["written"] == found["right"] and figures.counts["writers spent all"] == 1,
    )
    lost = found["errors"] + found["died"]
    yield Bar(f"{WRITERS} writers: none lost, none refused by error", f"{lost} errors", kept=lost == 0)


def _costs(figures: Figures) -> Iterator[Bar]:
    """What head and digest cost, each beside a store that has none of it."""
    cost = 1 / figures.ratios[HEADED]
    yield Bar(f"a release with its head synced outside / without ≤ {HEAD_COSTS}", times(cost), cost <= HEAD_COSTS)
    for path in ("one account", "three accounts"):
        cost = 1 / figures.ratios[f"{DIGEST}, {path}"]
        yield Bar(f"a spend held to the digest / not, {path} < {DIGEST_COSTS}", times(cost), cost < DIGEST_COSTS)


def report(figures: Figures, effort: Effort) -> str:
    head = ("what", "sfumato", "bare", "per second", "ratio")
    rows = []
    for what, ratio in figures.ratios.items():
        name = "writers, each write" if what == "writers" else what
        if f"{name}, bare" in figures.seconds:
            ours, theirs = figures.seconds[name], figures.seconds[f"{name}, bare"]
            label = f"PostgreSQL, {WRITERS} writers at once, each write" if what == "writers" else f"{what}"
            rows.append((label, table.duration(ours), table.duration(theirs), table.count(1 / ours), times(ratio)))
    spends = table.count(figures.counts["entries"] // 3)
    lines = [
        f"opening {table.count(figures.counts['entries'])} entries on SQLite: "
        f"{table.duration(figures.seconds['SQLite, open'])}",
        *(
            f"{words}: {table.count(figures.counts[f'{what} per second'])} entries / s of CPU, "
            f"{table.count(figures.counts[f'{what} per second on the wall'])} on the wall"
            for what, words in (("hashed", "hashes of stored bytes"), ("verified", "verify(state=False)"))
        ),
        f"a spend after {spends} releases / a spend after 10: {times(figures.ratios['SQLite, n-th spend'])} "
        f"(no bar; below {STEADY} is steady)",
    ]
    if figures.absent is None:
        lines += [
            f"opening {table.count(figures.counts['entries on the server'])} entries on PostgreSQL: "
            f"{table.duration(figures.seconds['PostgreSQL, open'])}; hashes of its stored bytes: "
            f"{table.count(figures.counts['hashed per second from the server'])} entries / s",
        ]
    else:
        lines.append(f"PostgreSQL: {figures.absent}")
    if effort is QUICK:
        lines.append("quick: a tenth of the long ledger, and fewer rounds")
    return "\n".join(
        (
            f"The ledger beside bare inserts · Python {platform.python_version()} · SQLite {sqlite3.sqlite_version}",
            f"time on the wall, medians of {effort.rounds} rounds of {effort.block}, in turns; ratio = bare / sfumato",
            table.aligned([head, *rows]),
            *(f"  {line}" for line in lines),
        )
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ledger", description="The ledger beside bare inserts.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a shorter ledger, under a minute")
    parser.add_argument("--check", action="store_true", help="hold the figures against the bars; exit 1 on a miss")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE, in seconds")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure; a temporary one otherwise")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="ledger-") as folder:
        figures = measure(effort, Path(folder), say=progress)
    print(report(figures, effort))
    found = list(bars(figures))
    if options.json:
        content = {"effort": asdict(effort), "figures": asdict(figures), "bars": list(map(asdict, found))}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
    if not options.check:
        return 0
    print("\n" + bars_block(found))
    return 0 if all(bar.kept for bar in found) else 1


if __name__ == "__main__":
    sys.exit(main())
