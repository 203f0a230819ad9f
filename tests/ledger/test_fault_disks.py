"""Ledgers that cannot be read or written (L6): no release, one of a few messages, and all is well after the repair."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato import Curator, Private
from sfumato.errors import LedgerError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof.chain import first_broken
from sfumato.ledger.stores.digest import EDITED
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato_referee.attacks.ledger import disks
from sfumato_referee.attacks.ledger.refused import attempts
from sfumato_referee.attacks.ledger.releasing import prepare
from tests.helpers import AGES, BY_PATIENT, PATIENTS, Columns, Hooked, hooked, laplace, spent
from tests.ledger.striking import traced
from tests.ledger.workers.releasing import check_after

MISSING = "there is no ledger at that path: give the right one, or create=True for a new ledger"
EMPTY = "the file is empty: restore the ledger, or give create=True for a new one"
STRANGE = "the file is a database, but not a ledger: give the path of a ledger"
NEWER = "the ledger was written by a newer version of sfumato: use that version, or a later one"
DAMAGED = "the ledger is damaged: restore it, and check it with `verify` before anything is released"
LOCKED = "the ledger is locked by another process: try again when it is done"
NO_FILE = "that path is a folder or a device, not a ledger's file: give the path of a file"
FORBIDDEN = "the ledger cannot be written: give this user the right to write the file and its folder"
FULL = "the ledger cannot be written: the disk is full or failing; make room or repair it, then open it anew"
UNWRITTEN = "the ledger could not be written: repair the disk, then open the ledger anew"
MOVED = "the ledger was moved, removed or replaced: put it back, then open the ledger anew"
OTHER = "the ledger cannot be used: check the file, and run `verify` before anything is released"


@pytest.fixture
def folder(quick: Path) -> Path:
    return prepare(quick / "here")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [*zip(disks.SPOILT, (MISSING, NO_FILE, EMPTY, DAMAGED, DAMAGED, STRANGE, NEWER, STRANGE, OTHER), strict=True)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_l6_what_is_no_ledger_is_refused(folder: Path, spoil: Callable[[Path], None], message: str) -> None:
    told, faults = disks.spoilt(folder, spoil)
    assert not faults and told == [message] * 2


def test_l6_a_database_of_others_never_becomes_a_ledger(folder: Path) -> None:
    disks.of_others(folder / "ledger")
    with pytest.raises(LedgerError, match="not a ledger"):
        SQLiteStore(folder / "ledger", create=True)


def test_l6_a_new_ledger_can_be_opened_by_many_at_once(quick: Path) -> None:
    problems: list[BaseException] = []
    start = threading.Barrier(8)

    def open_it() -> None:
        start.wait()
        try:
            SQLiteStore(quick / "new", create=True).close()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


@contextmanager
def opened(folder: Path, wait: float = 0.05) -> Iterator[tuple[Ledger, Curator, Columns]]:
    """A ledger in use, with data that counts how often it is read."""
    store, columns = SQLiteStore(folder / "ledger", wait=wait), Columns(AGES)
    ledger = Ledger(store)
    curator = Curator(Private("patients", columns, unit=BY_PATIENT, schema=PATIENTS), ledger)
    columns.reads = 0
    try:
        yield ledger, curator, columns
    finally:
        store.close()


def test_l6_a_lock_that_another_holds(folder: Path) -> None:
    told, faults = disks.locked(folder)
    assert not faults and told == [LOCKED] * 4


@pytest.mark.parametrize("way", disks.TAKEN_AWAY)
def test_l6_a_ledger_that_is_taken_away_while_it_is_open(folder: Path, way: str) -> None:
    told, faults = disks.taken_away(folder, way)
    assert not faults and told == [MOVED] * 2


def test_l6_a_store_is_not_carried_into_another_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(folder) as (ledger, curator, _):
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerError, match="opened by another process: open it anew"):
            curator.release(laplace(1, BY_PATIENT))
        monkeypatch.undo()
        assert spent(ledger, "patients") == [0]
    with pytest.raises(LedgerError, match="the ledger was closed"):
        curator.release(laplace(1, BY_PATIENT))


def test_l6_a_file_or_folder_that_may_not_be_written(quick: Path) -> None:
    told, faults = disks.forbidden(quick / "forbidden")
    assert not faults and told == [FORBIDDEN] * 4


def answers_before_it_was_full(told: list[str]) -> int:
    """Some were answered, then the disk was full, and from then on the store refused whatever was asked."""
    answers = told.index(FULL)
    assert answers >= 1 and told == ["answered"] * answers + [FULL, UNWRITTEN, UNWRITTEN]
    return answers


@pytest.mark.parametrize("limit", disks.LIMITS)
def test_l6_a_disk_that_fills_up(folder: Path, limit: int) -> None:
    told, faults = disks.full(folder, limit)
    assert not faults and answers_before_it_was_full(told)


def test_l6_a_small_disk_that_fills_up(quick: Path) -> None:
    disk = quick / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only an administrator may mount a small disk")
    try:
        place = prepare(disk / "here")
        told = attempts(place, 200)
        shutil.copytree(place, quick / "larger")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    check_after(quick / "larger", releases=answers_before_it_was_full(told) + 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "fault", "numbers"),
    [("fdatasync", "error=EIO", [3, 4, 6]), ("pwrite64", "error=ENOSPC", [1, 20, 47])],
)
def test_l6_after_one_failed_sync_or_write_the_store_refuses(
    quick: Path, call: str, fault: str, numbers: list[int]
) -> None:
    failing(quick, call, fault, numbers)


@pytest.mark.slow
@pytest.mark.parametrize(("call", "fault"), disks.CALLS)
def test_l6_after_any_failed_sync_or_write_the_store_refuses(tmp_path: Path, call: str, fault: str) -> None:
    failing(tmp_path, call, fault, [*range(1, 90)])


def failing(folder: Path, call: str, fault: str, numbers: list[int]) -> None:
    """The N-th call fails once, and never again: a store that tried again would seem to work."""
    traced()
    struck = disks.failed(folder, call, fault, numbers)
    assert len(struck) == len(numbers)
    broken = 0
    for told, faults in struck:
        assert not faults
        answers = told.count("answered")
        assert told[:answers] == ["answered"] * answers, "nothing is answered after a failure"
        assert set(told[answers:]) <= {f"refused: {FULL}", f"refused: {UNWRITTEN}"}
        broken += answers < len(told)
    assert broken >= 2


def repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ids at the same hour: a ledger is the same file, byte for byte, whenever it is made."""

    class Still(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, 2, 3, 4, 5, 6, tz)

    ids = random.Random(7)
    monkeypatch.setattr("secrets.token_hex", lambda size: ids.randbytes(size).hex())
    modules = [module for name, module in sys.modules.items() if name.startswith("sfumato.ledger")]
    for module in [module for module in modules if getattr(module, "datetime", None) is datetime]:
        monkeypatch.setattr(module, "datetime", Still)


def told(number: int) -> Hooked:
    """A count without noise."""
    return hooked(f"told {number}", lambda rows, run: 3.25 * number, epsilon=Fraction(number, 100))


def test_l6_damaged_bytes_are_a_refusal_or_are_not_read(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every page in turn, and bytes here and there. (What a flipped byte changed unseen, `verify` finds: L5.)"""
    repeatable(monkeypatch)
    folder = prepare(quick / "here")
    with opened(folder) as (_, curator, _):
        for number in range(1, 20):
            curator.release(told(number))
    good = (folder / "ledger").read_bytes()
    rng, outcomes = random.Random(3), {}
    pages = [(start, bytes([255]) * 4096) for start in range(0, len(good), 4096)]
    flips = [(rng.randrange(len(good)), bytes([rng.randrange(256)])) for _ in range(80)]
    for number, (start, spoilt) in enumerate(pages + flips):
        (folder / "ledger").write_bytes(good[:start] + spoilt + good[start + len(spoilt) :])
        try:
            with opened(folder) as (_, curator, columns):
                try:
                    curator.release(told(50))
                    outcomes[number] = "answered"
                except LedgerError:
                    assert not columns.reads
                    raise
        except LedgerError as problem:
            assert str(problem) in (DAMAGED, EDITED, STRANGE, NEWER, EMPTY, OTHER, FULL, FORBIDDEN), problem
            outcomes[number] = "refused"
        for rest in ("ledger-wal", "ledger-shm"):
            (folder / rest).unlink(missing_ok=True)
    assert "refused" in {outcomes[number] for number in range(len(pages))}


def test_l6_the_chain_holds_after_a_ledger_is_put_back(folder: Path) -> None:
    shutil.copy(folder / "ledger", folder / "kept")
    (folder / "ledger").write_bytes(b"nonsense")
    assert attempts(folder, 1) == [DAMAGED]
    (folder / "kept").replace(folder / "ledger")
    check_after(folder)
    store = SQLiteStore(folder / "ledger")
    assert first_broken(store.entries()) is None
    store.close()
