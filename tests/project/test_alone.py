"""One training or list of releases at a time works on a project; the lock goes with its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sfumato.errors import ArgumentError, BusyError
from sfumato.project import ProjectError, open_project
from sfumato.project.alone import LOCK
from tests.cli.front import environment, make_project
from tests.stepping import Stepping

HOLDS = """
import sys, time
from sfumato.project import open_project
with open_project(sys.argv[1]).alone("training of tests"):
    print("holds", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_project(tmp_path / "hospital", ledger=False)


def holder(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], env=environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"holds\n"
    return process


def assert_busy(folder: Path, words: str) -> None:
    """To another thread, somebody is at work."""

    def tries() -> None:
        with open_project(folder).alone("two", wait=0):
            raise AssertionError("not alone")

    with ThreadPoolExecutor(1) as pool, pytest.raises(BusyError, match=words):
        pool.submit(tries).result()


def ended(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def test_the_second_is_told_who_is_at_work_and_leaves(folder: Path) -> None:
    process = holder(folder)
    try:
        with (
            pytest.raises(BusyError, match=f"training of tests, process {process.pid} on .* since 20.* UTC is at work"),
            open_project(folder).alone("run", wait=0),
        ):
            raise AssertionError("not alone")
    finally:
        ended(process)


def test_it_waits_and_goes_on_when_the_first_is_killed(folder: Path) -> None:
    process, told = holder(folder), list[str]()
    try:
        with pytest.raises(BusyError), open_project(folder).alone("run", wait=0.3, waits=told.append):
            raise AssertionError("not alone")
        assert len(told) == 1 and str(process.pid) in told[0]
    finally:
        ended(process)
    with open_project(folder).alone("run", wait=0):
        assert (folder / LOCK).read_text(encoding="utf-8").startswith(f"run, process {os.getpid()} on ")
    assert (folder / LOCK).read_text(encoding="utf-8") == ""


def test_in_one_process_too_and_again_afterwards(folder: Path) -> None:
    """Other threads and forks wait; what is done inside holds it already."""
    project = open_project(folder)
    for _ in range(2):
        with project.alone("one"):
            assert_busy(folder, "one, process")
            with project.alone("inside", wait=0):
                pass
            assert_busy(folder, "one, process")
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    with project.alone("a fork", wait=0):
                        code = 2
                except BusyError:
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(ZeroDivisionError), project.alone("one"):
        1 / 0  # noqa: B018
    with project.alone("three", wait=0):
        pass


def test_projects_do_not_wait_for_each_other(folder: Path, tmp_path: Path) -> None:
    other = make_project(tmp_path / "other", ledger=False)
    with open_project(folder).alone("one"), open_project(other).alone("one", wait=0):
        pass


def test_a_lock_that_leads_elsewhere_is_not_written(folder: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("all of it", encoding="utf-8")
    (folder / LOCK).symlink_to(precious)
    with open_project(folder).alone("one"):
        assert_busy(folder, "another process")
    assert precious.read_text(encoding="utf-8") == "all of it"
    (folder / LOCK).unlink()
    (folder / LOCK).write_text("\x1b[31m", encoding="utf-8")
    with open_project(folder).alone("one"):
        (folder / LOCK).write_text("\x1b[31mx", encoding="utf-8")
        assert_busy(folder, "another process")


def test_where_nothing_may_be_written_the_projects_own_file_is_locked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, before = os.open, (folder / "sfumato.yaml").read_bytes()

    def read_only(path: Path, how: int, *more: int) -> int:
        if how & (os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "read-only")
        return whole(path, how, *more)

    monkeypatch.setattr("sfumato.project.alone.os.open", read_only)
    with open_project(folder).alone("one"):
        assert_busy(folder, "another process")
    assert (folder / "sfumato.yaml").read_bytes() == before and not (folder / LOCK).exists()


def test_a_disk_without_locks_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(37, "no locks available")

    monkeypatch.setattr("sfumato.project.alone.fcntl.flock", none)
    with pytest.raises(ProjectError, match="cannot be locked"), open_project(folder).alone("one"):
        raise AssertionError("alone")


def test_odd_arguments_are_refused(folder: Path) -> None:
    for work, wait in (("", 1), ("a\nb", 1), ("run", -1), ("run", float("nan")), ("run", "long")):
        with pytest.raises(ArgumentError), open_project(folder).alone(work, wait=wait):  # type: ignore[arg-type]
            raise AssertionError("alone")


def test_nothing_is_written_over_the_lock(folder: Path) -> None:
    assert open_project(folder).lives_by(folder / LOCK)


def test_a_training_from_python_takes_its_turn_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is held; inside of `alone` it is its turn already. What is answered waits for nobody."""
    monkeypatch.setattr("sfumato.project.turns.WAIT", 0.0)
    folder = make_project(tmp_path / "hospital")
    project = open_project(folder)
    plan = Stepping(protects=project.unit, multiplier=40)
    with project.ledger() as ledger:
        curator = project.curator(ledger)
        process = holder(folder)
        try:
            with pytest.raises(BusyError, match="training of tests, process"):
                curator.release(plan, key="mine")
            with pytest.raises(BusyError), curator.supervise(plan, key="mine"):
                raise AssertionError("not alone")
            assert not [entry for entry in ledger.history() if entry.kind == "hold"]
        finally:
            ended(process)
        with project.alone("all of it"):
            first = curator.release(plan, key="mine")
        process = holder(folder)
        try:
            assert curator.release(plan, key="mine").raw == first.raw
        finally:
            ended(process)
