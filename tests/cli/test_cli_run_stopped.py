"""`sfumato run` when it is stopped, killed, run twice at once, or when a release fails: nothing is paid twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect
import pytest

from sfumato.project import open_project
from tests.cli.front import SLOW, Ran, broken_data, environment, make_project, sfumato, started
from tests.cli.test_cli_run import COUNTS, entries, run, spent, states

FAST = "SELECT COUNT(*) AS n FROM visits"
WITH_SLOW = f"""\
sfumato-plan: 1
releases:
  - {{name: first, sql: {FAST}, epsilon: 0.1, delta: 1e-8, out: out/first.csv}}
  - {{name: slow, sql: "{SLOW}", epsilon: 0.1, delta: 1e-8, out: out/slow.csv}}
  - {{name: last, sql: SELECT SUM(cost) AS s FROM visits, epsilon: 0.1, delta: 1e-8, out: out/last.csv}}
"""


def slow_project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path, wards=900)
    (folder / "plan.yaml").write_text(WITH_SLOW, encoding="utf-8")
    return folder


def until_opened(folder: Path, number: int, process: subprocess.Popen[str], seconds: float = 180) -> None:
    """Wait until so many releases have opened their data."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with open_project(folder).ledger(read_only=True) as ledger:
            if sum(entry.kind == "open" for entry in ledger.history()) >= number:
                return
        time.sleep(0.05)
    raise AssertionError(f"the release never began: {process.communicate()}")


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_it_goes_on_where_it_was_stopped(tmp_path: Path, how: signal.Signals) -> None:
    folder = slow_project(tmp_path)
    with started("run", "plan.yaml", "--yes", at=folder) as process:
        until_opened(folder, 2, process)
        process.send_signal(how)
        out, err = process.communicate(timeout=120)
    if how == signal.SIGINT:
        ran = Ran(process.returncode, out, err)
        assert ran.code == 130 and ran.out == "" and "Traceback" not in ran.err
        assert "after 1 of 3 releases; 'slow' was running" in ran.err and "pays nothing twice" in ran.err
    else:
        assert process.returncode == -signal.SIGKILL
    before = spent(folder)
    assert (folder / "out/first.csv").exists() and not (folder / "out/last.csv").exists()

    body = run(folder)
    assert states(body) == {"first": "answered", "slow": "stopped", "last": "released"} and body["code"] == 8
    assert spent(folder) == before and body["price"] is None, "all of it was paid"
    assert (folder / "out/last.csv").exists() and not (folder / "out/slow.csv").exists()

    told = sfumato("run", "plan.yaml", at=folder)
    assert told.code == 8 and "stopped while it ran: needs --pay-again" in told.out
    dry = run(folder, "--dry-run", "--pay-again")
    assert states(dry) == {"first": "answered", "slow": "new", "last": "answered"} and dry["price"]["releases"] == 1
    assert spent(folder) == before
    kinds = [entry.kind for entry in entries(folder, "spend", "part", "open", "settle")]
    assert kinds.count("spend") == 1 and kinds.count("part") == kinds.count("open") == 3


@pytest.mark.slow
def test_what_was_stopped_is_paid_again_when_asked(tmp_path: Path) -> None:
    """The second payment is stopped too: its key is another, so a third one is told apart."""
    folder = slow_project(tmp_path)
    for times in (1, 2):
        flags = ("--pay-again",) if times == 2 else ()
        with started("run", "plan.yaml", "--yes", *flags, at=folder) as process:
            until_opened(folder, 2 if times == 1 else 3, process)
            process.kill()
            process.communicate(timeout=120)
    assert len(entries(folder, "spend")) == 2, "the list, and the slow one alone"
    body = run(folder)
    assert states(body) == {"first": "answered", "slow": "stopped", "last": "released"}
    assert len(entries(folder, "spend")) == 2


@pytest.mark.slow
def test_two_at_once_pay_once(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    processes = [started("run", "plan.yaml", "--yes", "--json", at=folder) for _ in range(3)]
    told = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert len(entries(folder, "spend")) == 1 and len(entries(folder, "part")) == 3
    assert {"released", "answered", "stopped"} >= {each for body in told for each in states(body).values()}
    body = run(folder)
    assert body["code"] == 0 and set(states(body).values()) == {"answered"} and body["price"] is None


def test_a_release_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    with broken_data():
        ran = sfumato("run", "plan.yaml", "--yes", at=folder)
    assert ran.code == 8 and "SECRET" not in ran.out + ran.err
    assert ran.out.count("failed: needs --pay-again") == 3, ran.out
    before = spent(folder)
    body = run(folder)
    assert set(states(body).values()) == {"stopped"} and spent(folder) == before and body["code"] == 8
    locked = sfumato("run", "plan.yaml", "--yes", "--pay-again", at=folder)
    assert locked.code == 5 and "locked" in locked.err and spent(folder) == before


def test_a_lock_in_the_middle_leaves_the_rest_paid(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    query = "{{name: n{0}, sql: SELECT SUM(cost) AS s FROM visits WHERE cost > {0}, epsilon: 0.01, delta: 1e-9}}"
    more = [f"  - {query.format(k)}" for k in range(5)]
    (folder / "plan.yaml").write_text("\n".join(["sfumato-plan: 1", "releases:", *more, ""]), encoding="utf-8")
    with broken_data():
        body = run(folder)
    assert list(states(body).values()) == ["failed"] * 3 + ["waiting"] * 2
    assert "locked" in body["releases"][3]["problem"]
    before = spent(folder)
    with open_project(folder).ledger() as ledger:
        ledger.unlock("hospital", "a broken row was removed")
    body = run(folder)
    assert list(states(body).values()) == ["stopped"] * 3 + ["released"] * 2 and spent(folder) == before
    body = run(folder, "--pay-again")
    assert list(states(body).values()) == ["released"] * 3 + ["answered"] * 2 and body["price"]["releases"] == 3
    assert run(folder)["code"] == 0


def at_a_terminal(folder: Path, *arguments: str) -> pexpect.spawn[str]:
    variables: Any = {**os.environ, **environment(), "TERM": "xterm"}
    words = ["-m", "sfumato.cli", "run", "plan.yaml", *arguments]
    return pexpect.spawn(sys.executable, words, cwd=str(folder), env=variables, encoding="utf-8", timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["n", "", "maybe"])
def test_on_a_terminal_somebody_has_to_agree(tmp_path: Path, answer: str) -> None:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    terminal = at_a_terminal(folder)
    terminal.expect(r"pay for it\? \[y/N\]")
    assert "one by one" in re.sub(r"\x1b\[[0-9;]*m", "", str(terminal.before))
    terminal.sendline(answer)
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130 and "nothing was charged" in str(terminal.before)
    assert entries(folder, "spend") == []


@pytest.mark.slow
def test_on_a_terminal_yes_pays(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(COUNTS, encoding="utf-8")
    terminal = at_a_terminal(folder)
    terminal.expect(r"pay for it\? \[y/N\]")
    terminal.sendline("y")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0 and len(entries(folder, "part")) == 3
    again = at_a_terminal(folder)  # nothing is to be paid: nothing is asked
    again.expect(pexpect.EOF)
    again.close()
    assert again.exitstatus == 0 and "pay for it" not in str(again.before)
