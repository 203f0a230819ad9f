"""A PostgreSQL server that dies, fills up, turns read-only, or waits for a writer who went silent (L1, L3, L6)."""

from __future__ import annotations

import os
import pwd
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Budget, record
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores import postgres
from sfumato.ledger.stores.postgres import PostgresStore
from sfumato.plan import Receipt
from tests.helpers import laplace, spent
from tests.ledger.servers import TestServer
from tests.ledger.stores import run

PRICE = Fraction(1, 10_000)
LOST = "the connection to the ledger was lost"
UNREACHED = "the ledger's server cannot be reached"
FULL = "the ledger cannot be written: the server's disk is full or failing; make room or repair it"
READ_ONLY = "the ledger's server is read-only: connect to the one that takes writes"


class Machine(TestServer):
    """A server of this file's own, which may be killed."""

    _databases = 0

    def place(self) -> str:
        self._databases += 1
        run(self.get_uri(), f"CREATE DATABASE l{self._databases}")
        place = self.get_uri(database=f"l{self._databases}")
        PostgresStore(place, create=True).close()
        return place

    def kill(self) -> None:
        """All of its processes at once, as when the power goes: no one of them can tidy up."""
        process = self.handle.get_postmaster_info().process
        for each in [process, *process.children(recursive=True)]:
            os.kill(each.pid, signal.SIGKILL)
        process.wait(120)

    def hold_back(self) -> None:
        """Nothing is written behind any more: what a commit did not wait for stays in memory until the end."""
        for each in self.handle.get_postmaster_info().process.children():
            if "walwriter" in " ".join(each.cmdline()):
                each.suspend()
                return
        raise AssertionError("the server has no process that writes behind")

    def start(self) -> None:
        self.handle.ensure_postgres_running()

    def stop(self) -> None:
        self.handle.stop()


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.close()


def pay(ledger: Ledger, key: str) -> Receipt:
    return ledger.spend(("a",), laplace(PRICE), data="a@1", grade="exact", note="", key=key)


def entries_of(store: Any) -> list[Any]:
    return [record.parse(body) for _, body in store.entries()]


@contextmanager
def opened(place: str, kind: type[PostgresStore] = PostgresStore) -> Iterator[Ledger]:
    store = kind(place)
    try:
        yield Ledger(store)
    finally:
        store.close()


class Unsynced(PostgresStore):
    """Wrong: a commit returns before it is on the disk."""

    def _connect(self) -> None:
        super()._connect()
        self._connection.execute("SET synchronous_commit = off")


def killed(machine: Machine, place: str, after: float, kind: type[PostgresStore] = PostgresStore) -> None:
    """Spend until the server is gone; then it comes back, and everything that was told is there."""
    with opened(place, kind) as ledger:
        before = spent(ledger, "a")[0]
        told: dict[str, str] = {}
        asked: list[str] = []
        problems: list[str] = []

        def spend() -> None:
            for number in range(100_000):
                asked.append(f"{after} {number}")
                try:
                    told[asked[-1]] = pay(ledger, asked[-1]).id
                except LedgerError as problem:
                    problems.append(str(problem))
                    return

        thread = threading.Thread(target=spend)
        thread.start()
        time.sleep(after)
        while len(told) < 3 and thread.is_alive():
            time.sleep(0.01)  # in the middle of spends, on a slow machine too
        machine.kill()
        thread.join(300)
        assert problems and (problems[0].startswith((LOST, UNREACHED))), problems
        with pytest.raises(LedgerError, match=f"{LOST}|{UNREACHED}"):
            pay(ledger, "while it is down")
        machine.start()
        stored = {entry["key"]: entry["receipt"].id for entry in entries_of(ledger._store) if entry["kind"] == "spend"}
        assert told.items() <= stored.items(), "L1: told, and not recorded"
        mine = {key for key in stored if key in asked}
        assert len(mine - told.keys()) <= 1, "L1: more recorded than told and in flight"
        assert spent(ledger, "a")[0] - before == len(mine) * PRICE, "L4: spent is not what was recorded"
        again = pay(ledger, asked[-1]).id  # the same store, connected anew; a retry is paid once
        assert stored.get(asked[-1], again) == again
        keys = [entry["key"] for entry in entries_of(ledger._store) if entry["kind"] == "spend"]
        assert len(keys) == len(set(keys)) and first_broken(ledger._store.entries()) is None
        assert ledger._store.damage() is None  # type: ignore[attr-defined]


@pytest.mark.slow
def test_l1_a_server_that_is_killed_in_the_middle_of_spends(machine: Machine) -> None:
    place = machine.place()
    with opened(place) as ledger:
        ledger.open_account("a", Budget(epsilon=10))
    killed(machine, place, 0.31)


@pytest.mark.slow
def test_l1_catches_commits_that_are_not_synced(machine: Machine) -> None:
    place = machine.place()
    with opened(place) as ledger:
        ledger.open_account("a", Budget(epsilon=10))
    with pytest.raises(AssertionError, match="L1: told, and not recorded"):
        for after in (0.33, 0.47, 0.39):
            machine.hold_back()
            killed(machine, place, after, Unsynced)


@pytest.mark.slow
def test_l1_a_server_that_is_killed_many_times(machine: Machine) -> None:
    rng = random.Random(5)
    place = machine.place()
    with opened(place) as ledger:
        ledger.open_account("a", Budget(epsilon=10))
    for _ in range(12):
        killed(machine, place, 0.02 + rng.random() * 0.3)


def test_l6_a_standby_is_read_and_not_written(machine: Machine) -> None:
    place = machine.place()
    with opened(place) as ledger:
        ledger.open_account("a", Budget(epsilon=10))
        pay(ledger, "1")
    signal_file = machine.folder / "standby.signal"
    machine.stop()
    signal_file.touch()
    try:
        machine.start()
        with opened(place) as ledger:
            for _ in range(2):
                with pytest.raises(LedgerError) as refusal:
                    pay(ledger, "2")
                assert str(refusal.value) == READ_ONLY
            assert spent(ledger, "a") == [PRICE] and first_broken(ledger._store.entries()) is None
            assert ledger._store.damage() is None  # type: ignore[attr-defined]
    finally:
        machine.stop()
        signal_file.unlink()
        machine.start()
    with opened(place) as ledger:
        pay(ledger, "2")
        assert spent(ledger, "a") == [2 * PRICE]


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """A disk that the server's user may write."""
    disk = Path(tempfile.mkdtemp(prefix="disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        disk.rmdir()
        pytest.skip("only an administrator may mount a small disk")
    try:
        user = pwd.getpwnam("pgserver")
        os.chown(disk, user.pw_uid, user.pw_gid)
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


def until_refused(ledger: Ledger, first: int = 0) -> tuple[int, str]:
    """How many were paid, and what the next one was told."""
    for number in range(first, 20_000):
        try:
            pay(ledger, str(number))
        except LedgerError as problem:
            return number, str(problem)
    raise AssertionError("the disk did not fill up")


def test_l6_a_table_s_disk_that_fills_up(machine: Machine) -> None:
    place = machine.place()
    with small_disk("700k") as disk:
        try:
            with opened(place) as ledger:
                ledger.open_account("a", Budget(epsilon=10))
                run(place, f"CREATE TABLESPACE small LOCATION '{disk}'")
                run(place, "ALTER TABLE sfumato.entries SET TABLESPACE small")
                paid, problem = until_refused(ledger)
                assert problem == FULL and paid > 20
                with pytest.raises(LedgerError) as refusal:  # and it stays so
                    pay(ledger, "more")
                assert str(refusal.value) == FULL
                assert spent(ledger, "a") == [paid * PRICE]
                subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
                pay(ledger, "more")  # nothing has to be opened anew
                assert spent(ledger, "a") == [(paid + 1) * PRICE] and first_broken(ledger._store.entries()) is None
                assert ledger._store.damage() is None  # type: ignore[attr-defined]
        finally:
            run(place, "ALTER TABLE sfumato.entries SET TABLESPACE pg_default")
            run(place, "CHECKPOINT", "DROP TABLESPACE small")


@pytest.mark.slow
def test_l6_a_server_s_whole_disk_that_fills_up() -> None:
    """Its log has no room either: it stops altogether, and comes back when there is room."""
    with small_disk("120m") as disk:
        machine = Machine(str(disk / "data"))
        try:
            place = machine.place()
            with opened(place) as ledger:
                ledger.open_account("a", Budget(epsilon=10))
                pay(ledger, "first")
                (disk / "others").write_bytes(bytes(max(0, os.statvfs(disk).f_bavail * 4096 - 400_000)))
                paid, problem = until_refused(ledger)
                assert problem == FULL or problem.startswith((LOST, UNREACHED))
                (disk / "others").unlink()
                machine.start()
                stored = [entry["key"] for entry in entries_of(ledger._store) if entry["kind"] == "spend"]
                assert set(stored) >= {"first", *map(str, range(paid))} and len(stored) <= paid + 2
                pay(ledger, str(paid))  # paid once, whether or not it was written
                assert spent(ledger, "a") == [(paid + 2) * PRICE] and first_broken(ledger._store.entries()) is None
        finally:
            machine.close()


@pytest.mark.slow
def test_l6_a_silent_writer_loses_the_lock(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    place = machine.place()
    monkeypatch.setattr(postgres, "_IDLE", 3)
    silent = PostgresStore(place)
    monkeypatch.undo()
    with opened(place) as waiting:
        waiting.open_account("a", Budget(epsilon=10))
        with pytest.raises(LedgerError, match=LOST), silent.writing() as book:
            book.append(record.canonical({"kind": "spend", "by": "postgres"}))  # on its way, and nothing follows
            pay(waiting, "1")
        assert spent(waiting, "a") == [PRICE]
        pay(Ledger(silent), "2")  # connected anew
        assert spent(waiting, "a") == [2 * PRICE] and first_broken(silent.entries()) is None
    silent.close()
