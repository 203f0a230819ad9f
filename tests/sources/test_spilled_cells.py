"""What an engine wrote to disk goes with its session; after a kill -9 it goes when the next one starts."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sfumato.schema import Table, key, whole
from sfumato.sources import Frame, connect, spill
from sfumato_referee import attacks
from tests.cli.front import environment

TABLE = Table({"who": key(), "n": whole(0, 100)}, unit="who")
SPILLS = """
import hashlib, sys, pyarrow as pa
from sfumato.schema import Table, key, whole
from sfumato.sources import Frame, connect
from sfumato.sources.vocabulary import read
table = Table({"who": key(), "n": whole(0, 100)}, unit="who")
who = ["Violetta-" + hashlib.sha256(str(n).encode()).hexdigest() for n in range(300_000)]
rows = pa.table({"who": who, "n": [n % 100 for n in range(300_000)]})
opened = connect({"people": (table, Frame(rows))}, threads=1, memory=32 * 2**20, temp=sys.argv[1])
text = "SELECT max(s) AS s, max(who) AS w FROM (SELECT who, sum(n) OVER (ORDER BY who DESC) AS s FROM people)"
print("open", flush=True)
while True:
    opened.run(read(text))
"""


def opened(place: Path) -> Any:
    return connect({"people": (TABLE, Frame({"who": ["a"], "n": [1]}))}, temp=place)


def killed(place: Path) -> list[bytes]:
    """What a process left behind that was killed while it had cells on disk."""
    child = subprocess.Popen([sys.executable, "-c", SPILLS, str(place)], env=environment(), stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline() == b"open\n"
        for _ in range(3000):
            if any(b"Violetta" in _bytes(file) for file in place.glob("*/duckdb*")):
                break
            time.sleep(0.01)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdout is not None:
            child.stdout.close()
    return [_bytes(file) for file in place.glob("*/*")]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_cells_of_a_killed_process_are_removed_by_the_next_one(tmp_path: Path) -> None:
    left = killed(tmp_path)
    assert any(b"Violetta" in held for held in left), "there was something to remove"
    command = "import sys; from tests.sources.test_spilled_cells import *; opened(Path(sys.argv[1])).close()"
    subprocess.run([sys.executable, "-c", command, str(tmp_path)], env=environment(), check=True, cwd=Path.cwd())
    assert not list(tmp_path.iterdir())


def test_the_folder_of_a_living_session_stays(tmp_path: Path) -> None:
    session = opened(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spill.sweep(tmp_path) == 0 and folder.is_dir()
    command = f"from sfumato.sources import spill; assert spill.sweep({str(tmp_path)!r}) == 0"
    subprocess.run([sys.executable, "-c", command], env=environment(), check=True)
    assert folder.is_dir()
    session.close()
    assert not folder.exists()


def test_a_fork_that_ends_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    session = opened(tmp_path)
    (folder,) = tmp_path.iterdir()
    child = os.fork()
    if child == 0:
        session._spill()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.is_dir() and spill.sweep(tmp_path) == 0
    session.close()
    assert not folder.exists()


def test_only_what_is_surely_ours_and_dead_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, precious = tmp_path / "temp", tmp_path / "precious"
    place.mkdir()
    precious.mkdir(mode=0o700)
    (precious / "lock").write_text("")
    (precious / "book").write_text("all of it")
    (place / "sfumato-spill-link").symlink_to(precious)
    (place / "sfumato-spill-file").write_text("")
    (place / "sfumato-other").mkdir(mode=0o700)
    _dead(place / "sfumato-spill-wide").chmod(0o755)
    (place / "sfumato-spill-none").mkdir(mode=0o700)
    (place / "sfumato-spill-none" / "book").write_text("without a lock")
    linked = _dead(place / "sfumato-spill-linked")
    (linked / "lock").unlink()
    (linked / "lock").symlink_to(precious / "lock")
    before = sorted(place.iterdir())
    assert spill.sweep(place) == 0 and sorted(place.iterdir()) == before
    theirs = _dead(place / "sfumato-spill-theirs")
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert spill.sweep(place) == 0 and theirs.is_dir()
    inside = _dead(place / "sfumato-spill-inside")
    (inside / "way out").symlink_to(precious)
    assert spill.sweep(place) == 2 and sorted(place.iterdir()) == before
    assert (precious / "book").read_text() == "all of it"


def test_a_sweeper_that_comes_between_has_another_folder_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment after the folder is made, and before its lock is taken."""
    take, swept = fcntl.flock, []

    def late(file: int, how: int) -> None:
        if not swept:
            swept.append(1)
            monkeypatch.setattr(fcntl, "flock", take)
            assert spill.sweep(tmp_path) == 1
        take(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    folder = spill.Spill(tmp_path)
    assert swept and folder.path.is_dir() and spill.sweep(tmp_path) == 0
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_many_processes_that_start_at_once_leave_each_other_alone(tmp_path: Path) -> None:
    command = (
        "import sys, os; from sfumato.sources import spill\n"
        "for _ in range(100):\n"
        "    made = spill.Spill(sys.argv[1]); spill.sweep(sys.argv[1])\n"
        "    assert os.path.isfile(os.path.join(made.path, 'lock')); made.remove()\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", command, str(tmp_path)], env=environment()) for _ in range(4)]
    assert [run.wait() for run in runs] == [0] * 4
    assert not list(tmp_path.iterdir())


def _dead(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    (folder / "lock").write_text("")
    (folder / "cells").write_text("Violetta")
    return folder


def test_p2_is_withstood_and_its_planted_bug_is_found() -> None:
    assert not attacks.attack("P2").broken
    control = attacks.attack("P2", control=True)
    assert control.broken and control.figures["still there"] >= 1
