"""`sfumato train` when it is killed or interrupted: run again it goes on, and no step is paid twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
import torch

from sfumato.project import open_project
from tests.cli.clinic import YAML, make_clinic
from tests.cli.front import environment, sfumato, started
from tests.cli.test_cli_run import entries

# So many small steps that it does not end before it is stopped; each is paid for by itself, and quickly.
LONG = YAML.replace("epochs: 5", "epochs: 100").replace("batch_size: 200", "batch_size: 100")
STEPS = 800


def drawn(folder: Path) -> int:
    """How many steps were paid for."""
    return sum(entry.fields["event"].times for entry in entries(folder, "draw"))


def until_drawn(folder: Path, process: subprocess.Popen[str], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with open_project(folder).ledger(read_only=True) as ledger:
            if sum(entry.kind == "draw" for entry in ledger.history()) >= 3:
                return
        time.sleep(0.05)
    raise AssertionError(f"the training never began: {process.communicate()}")


def stopped(folder: Path, how: signal.Signals) -> subprocess.Popen[str]:
    with started("train", "sfumato.yaml", at=folder) as process:
        until_drawn(folder, process)
        process.send_signal(how)
        out, err = process.communicate(timeout=120)
    process.told = out + err  # type: ignore[attr-defined]
    return process


@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.slow), signal.SIGINT])
def test_it_goes_on_where_it_was_stopped(tmp_path: Path, how: signal.Signals) -> None:
    folder = make_clinic(tmp_path, LONG)
    process = stopped(folder, how)
    if how == signal.SIGINT:
        told = process.told  # type: ignore[attr-defined]
        assert process.returncode == 130 and "Traceback" not in told, told
        assert f"of {STEPS} steps; these are paid, and the rest is held" in told and "pays nothing twice" in told
    else:
        assert process.returncode == -signal.SIGKILL
    paid = drawn(folder)
    assert 0 < paid < STEPS and not (folder / "model.pt").exists()
    (checkpoint,) = folder.glob("*.checkpoint")
    quoted = json.loads(sfumato("train", "sfumato.yaml", "--quote", "--json", at=folder).out)
    assert quoted["goes_on"] == paid and quoted["fits"]

    ran = sfumato("train", "sfumato.yaml", "--json", at=folder)
    assert ran.code == 0, ran.err
    body = json.loads(ran.out)
    # Steps that were drawn and not yet in the checkpoint are lost, and never paid again.
    assert STEPS - 2 * 16 <= body["steps"]["done"] <= STEPS and drawn(folder) == STEPS
    assert len(entries(folder, "hold")) == 1 and not checkpoint.exists()
    assert body["receipt"]["id"] and torch.load(folder / "model.pt", weights_only=True)


@pytest.mark.slow
def test_without_its_checkpoint_it_begins_anew_with_the_rest(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path, LONG)
    stopped(folder, signal.SIGKILL)
    paid = drawn(folder)
    (checkpoint,) = folder.glob("*.checkpoint")
    kept = checkpoint.read_bytes()
    checkpoint.write_bytes(b"something else")
    odd = sfumato("train", "sfumato.yaml", at=folder)
    assert odd.code == 3 and "cannot be read" in odd.err and drawn(folder) == paid
    checkpoint.unlink()
    (folder / "other.checkpoint").write_bytes(kept)
    ran = sfumato("train", "sfumato.yaml", "--json", at=folder)
    assert ran.code == 0 and f"{paid} paid steps are lost" in ran.err, ran.err
    assert json.loads(ran.out)["steps"]["done"] == STEPS - paid and drawn(folder) == STEPS


@pytest.mark.slow
def test_a_person_sees_the_price_and_the_bar(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path, YAML.replace("epochs: 5", "epochs: 25"))
    words = ["-m", "sfumato.cli", "train", "sfumato.yaml"]
    place = environment(TERM="xterm", COLUMNS="140")
    with pexpect.spawn(sys.executable, words, cwd=str(folder), env=place, encoding="utf-8", timeout=240) as child:
        child.setwinsize(40, 140)
        child.expect("forecast")
        child.expect(r"train it\? \[y/N\]")
        child.sendline("n")
        child.expect("nothing was charged")
        child.expect(pexpect.EOF)
    assert entries(folder, "hold") == []
    with pexpect.spawn(sys.executable, words, cwd=str(folder), env=place, encoding="utf-8", timeout=240) as child:
        child.setwinsize(40, 140)
        child.expect(r"train it\? \[y/N\]")
        child.sendline("y")
        child.expect(r"step \d+/100")
        child.expect(r"epsilon [\d.]+")
        child.expect(r"loss [\d.]+")
        child.expect("accuracy .* on 200 public records")
        child.expect(pexpect.EOF)
    assert drawn(folder) == 100
