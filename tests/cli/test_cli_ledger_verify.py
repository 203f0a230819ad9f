"""`sfumato ledger verify` on ledgers that somebody changed, cut, restored or mixed up; and what else works on those."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.ledger import Key, open_ledger
from sfumato.ledger.__main__ import main as auditors_tool
from tests.cli.counting_house import refused, released, signed, told
from tests.cli.front import make_project, sfumato


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = signed(tmp_path / "hospital")
    released(folder)
    return folder


def change(project: Path, *statements: str) -> None:
    """By somebody who may write the file, and takes its locks off."""
    with sqlite3.connect(project / "budget.ledger") as file:
        file.execute("DROP TRIGGER entries_stay")
        file.execute("DROP TRIGGER entries_last")
        for statement in statements:
            file.execute(statement)
    file.close()


def test_a_good_ledger_holds(project: Path) -> None:
    found = told("ledger", "verify", at=project)
    assert found["holds"] and found["problems"] == [] and found["first_bad"] is None and found["receipts"] == 1
    assert found["checkpoints"] > 0 and found["notes"] == []
    assert "the ledger holds" in sfumato("ledger", "verify", at=project).out
    assert told("ledger", "verify", "--chain-only", at=project)["accounts"] == 0


@pytest.mark.parametrize("number", [1, 4, 8])
def test_a_changed_entry_is_named(project: Path, number: int) -> None:
    change(project, f"UPDATE entries SET body = CAST(replace(body, 'bea', 'eve') AS BLOB) WHERE number = {number}")
    found = told("ledger", "verify", at=project, code=7)
    assert found["holds"] is False and found["first_bad"] == number
    ran = sfumato("ledger", "verify", at=project)
    assert ran.code == 7 and f"THE LEDGER DOES NOT HOLD, from entry {number} on" in ran.out and "Restore" in ran.out


def test_an_end_that_was_cut_off_shows_by_the_anchor_only(project: Path) -> None:
    last = told("ledger", "verify", at=project)["entries"]
    change(project, f"DELETE FROM entries WHERE number = {last}")
    assert told("ledger", "verify", at=project, code=7)["first_bad"] == last


def test_state_that_is_not_what_the_entries_amount_to(project: Path) -> None:
    with sqlite3.connect(project / "budget.ledger") as file:
        file.execute(
            "UPDATE accounts SET totals = CAST(replace(totals, '1/10', '1/100') AS BLOB) WHERE name = 'hospital'"
        )
        assert file.execute("SELECT changes()").fetchone() == (1,)
    file.close()
    found = told("ledger", "verify", at=project, code=7)
    assert any("hospital" in each["text"] for each in found["problems"])
    assert told("ledger", "verify", "--chain-only", at=project)["holds"]  # the chain alone is whole


def test_an_old_copy_is_read_and_never_written(project: Path) -> None:
    old = project / "old"
    shutil.copy(project / "budget.ledger", old)
    released(project, 0.2, "later")
    for path in project.glob("budget.ledger*"):
        path.unlink()
    shutil.copy(old, project / "budget.ledger")
    found = told("ledger", "verify", at=project, code=7)
    assert found["first_bad"] is not None and "cut off" in found["problems"][0]["text"]
    assert sfumato("ledger", "status", at=project).code == 0  # an auditor may still look
    ran = refused("ledger", "allocate", "ana", "--epsilon", "0.1", at=project, code=7)
    assert "anchor" in ran.err
    assert sfumato("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.05", at=project).code == 7


def test_the_anchor_of_another_ledger_and_another_key(project: Path, tmp_path: Path) -> None:
    other = signed(tmp_path / "other")
    shutil.copy(other / "proof" / "anchor", project / "proof" / "strange")
    place = ["--ledger", "budget.ledger"]
    mixed = told("ledger", "verify", *place, "--anchor", "proof/strange", at=project, code=7)
    assert any("another ledger" in each["text"] for each in mixed["problems"])
    Key.make(project / "keys" / "strange")
    wrong = told(
        "ledger", "verify", *place, "--anchor", "proof/anchor", "--key-file", "keys/strange", at=project, code=7
    )
    assert any("another key" in each["text"] for each in wrong["problems"])
    right = Key.load(project / "keys" / "signing.key").public
    assert told("ledger", "verify", *place, "--anchor", "proof/anchor", "--trust", right, at=project)["notes"] == []
    refused("ledger", "verify", *place, "--anchor", "proof/anchor", "--trust", "0x12", at=project, code=2)


def test_a_missing_anchor_proves_nothing(project: Path) -> None:
    (project / "proof" / "anchor").unlink()
    found = told("ledger", "verify", at=project, code=7)
    assert "missing or empty" in found["problems"][0]["text"]
    refused("ledger", "allocate", "ana", "--epsilon", "0.1", at=project, code=7)
    bare = sfumato("ledger", "verify", "--ledger", "budget.ledger", at=project)
    assert bare.code == 0 and "an end that was cut off is not seen" in bare.out


def test_without_the_key_everything_is_read_and_nothing_written(project: Path) -> None:
    (project / "keys" / "signing.key").unlink()
    found = told("ledger", "verify", at=project)
    assert found["holds"] and "compare it with the key you trust" in found["notes"][0]
    assert sfumato("ledger", "history", at=project).code == 0 == sfumato("ledger", "report", at=project).code
    refused("ledger", "allocate", "ana", "--epsilon", "0.1", at=project, code=7)
    refused("ledger", "open", at=project, code=7)  # a lost key is not replaced: it proves the past
    assert not (project / "keys" / "signing.key").exists()


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_ledger_is_said_to_be_none(project: Path, content: bytes) -> None:
    for path in project.glob("budget.ledger*"):
        path.unlink()
    (project / "budget.ledger").write_bytes(content)
    for command in ("status", "verify", "history", "report"):
        refused("ledger", command, at=project, code=7)
    refused("ledger", "close", "training", "--reason", "x", at=project, code=7)
    assert (project / "budget.ledger").read_bytes() == content


def test_half_a_ledger_is_damaged(project: Path) -> None:
    whole = (project / "budget.ledger").read_bytes()
    for path in project.glob("budget.ledger*"):
        path.unlink()
    (project / "budget.ledger").write_bytes(whole[: len(whole) // 2])
    ran = sfumato("ledger", "verify", at=project)
    assert ran.code == 7 and "Traceback" not in ran.err
    assert sfumato("ledger", "status", at=project).code in (0, 7)


def test_the_auditors_tool_says_the_same(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It needs none of the command line's packages, so it stays; both ask the same function."""
    ledger = [str(project / "budget.ledger"), "--anchor", str(project / "proof" / "anchor")]
    assert auditors_tool(["verify", *ledger]) == 0
    change(project, "UPDATE entries SET body = CAST(replace(body, 'bea', 'eve') AS BLOB) WHERE number = 4")
    assert auditors_tool(["verify", *ledger]) == 1 and "entry 4" in capsys.readouterr().out
    assert told("ledger", "verify", at=project, code=7)["first_bad"] == 4


@pytest.mark.slow
def test_the_auditors_tool_loads_none_of_the_command_line(project: Path) -> None:
    text = (
        "import sys; from sfumato.ledger.__main__ import main; code = main(sys.argv[1:]);"
        "print(sorted({'typer', 'rich', 'pydantic', 'yaml'} & set(sys.modules)), code)"
    )
    source = Path(__file__).parents[2] / "src"
    ran = subprocess.run(
        [sys.executable, "-c", text, "verify", str(project / "budget.ledger")],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    assert ran.stdout.splitlines()[-1] == "[] 0"


def test_a_ledger_without_an_anchor(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    shown = sfumato("ledger", "verify", at=folder)
    assert shown.code == 0 and "none: an end that was cut off is not seen" in shown.out
    with open_ledger(folder / "budget.ledger", read_only=True) as ledger:
        assert ledger.verify().ok


def test_progress_is_told_while_it_verifies(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.ledger.proof.verify._OFTEN", 1)
    seen: list[int] = []
    with open_ledger(project / "budget.ledger", read_only=True) as ledger:
        ledger.verify(progress=seen.append)
        assert seen == list(range(1, ledger.overview().number + 1))
