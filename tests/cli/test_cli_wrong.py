"""A day on which everything goes wrong: clear words, the right codes, and a ledger that verifies at the end."""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.cli import problems, telling
from sfumato.project import open_project
from tests.cli.front import BY_WARD, SLOW, YAML, Ran, broken_data, make_project, sfumato, started

COUNT = "SELECT COUNT(*) AS n FROM visits"


def ends(ran: Ran, code: int, *words: str) -> None:
    """Three parts on stderr, nothing on stdout, no trace."""
    assert ran.code == code, ran
    assert ran.out == "" and "Traceback" not in ran.err
    assert "\n  why  " in ran.err and "\n  fix  " in ran.err
    for each in words:
        assert each in ran.err, (each, ran.err)


def verifies(folder: Path) -> list[str]:
    """The ledger holds; the kinds of its entries."""
    with open_project(folder).ledger(read_only=True) as ledger:
        assert ledger.verify().ok
        return [entry.kind for entry in ledger.history()]


def test_the_whole_day(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "clinic")
    assert sfumato("query", COUNT, "--epsilon", "0.25", at=folder).code == 0
    before = verifies(folder)

    data = folder / "data" / "visits.csv"
    data.rename(folder / "away.csv")
    ends(sfumato("query", BY_WARD, at=folder), 3, "sfumato.yaml:7", "visits.csv")
    (folder / "away.csv").rename(data)

    ends(sfumato("query", "SELECT AVG(cots) AS c FROM visits", at=folder), 4, "^^^^", "did you mean cost?")

    (folder / "sfumato.yaml").write_text(YAML.replace("unit: patient", "unit: pateint"), encoding="utf-8")
    ends(sfumato("query", BY_WARD, at=folder), 3, "sfumato.yaml:8")
    (folder / "sfumato.yaml").write_text(YAML.replace("sfumato: 1", "sfumato: ["), encoding="utf-8")
    ends(sfumato("query", BY_WARD, at=folder), 3, "sfumato.yaml")
    (folder / "sfumato.yaml").write_text(YAML, encoding="utf-8")

    ends(sfumato("query", BY_WARD, "--epsilon", "3", at=folder), 5, "asked 3", "spent 0.25", "left 1.75", "hospital")

    ledger = folder / "budget.ledger"
    good = ledger.read_bytes()
    ledger.write_bytes(good[:3000] + b"\x00" * 500 + good[3500:])
    assert sfumato("query", BY_WARD, at=folder).code == 7
    ledger.write_bytes(b"not a ledger at all")
    ends(sfumato("query", BY_WARD, at=folder), 7, "restore")
    for beside in ("budget.ledger-wal", "budget.ledger-shm"):
        (folder / beside).unlink(missing_ok=True)
    ledger.write_bytes(good)

    assert verifies(folder) == before  # nothing of all that was charged
    ran = sfumato("query", BY_WARD, at=folder)
    assert ran.code == 0, ran.err
    assert "settle" in verifies(folder)[len(before) :]


def test_what_fails_on_the_data_stays_paid_and_tells_nothing(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    with broken_data():
        ran = sfumato("query", COUNT, "--epsilon", "0.25", "--debug", at=folder)
    assert ran.code == 8 and ran.out == "" and "Traceback" not in ran.err
    assert "The charge stays" in ran.err and "sfumato rehearse" in ran.err and "no trace" in ran.err
    assert "SECRET" not in ran.err
    assert verifies(folder)[-3:] == ["spend", "open", "settle"]


def test_a_header_without_a_column_of_the_schema_is_told_unpaid(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "data" / "visits.csv").write_text("other,columns,secretword\n1,2,3\n", encoding="utf-8")
    ran = sfumato("query", COUNT, "--epsilon", "0.25", "--debug", at=folder)
    assert ran.code == 3 and "has no column 'patient'" in ran.err and "secretword" not in ran.err
    assert "spend" not in verifies(folder)


def _like_others() -> None:
    """Root may write everywhere; without these two capabilities, rights count for root as well."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        for right in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="takes rights away from root, as Linux does it")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "clinic")
    for place, mode in ((folder / "budget.ledger", 0o444), (folder, 0o555)):
        place.chmod(mode)
    found = []
    try:
        for words in (("query", BY_WARD), ("query", BY_WARD, "--out", "answer.csv"), ("describe",), ("quote", BY_WARD)):
            with started(*words, at=folder, preexec_fn=_like_others) as process:
                out, err = process.communicate(timeout=120)
            found.append(Ran(process.returncode, out, err))
    finally:
        folder.chmod(0o755)
        (folder / "budget.ledger").chmod(0o644)
    ends(found[0], 7, "cannot be written", "the right to write")
    ends(found[1], 3, "nothing was charged")
    assert [each.code for each in found[2:]] == [0, 0]  # who only looks needs no right to write
    assert "spend" not in verifies(folder)


def test_a_ledger_that_somebody_changed_does_not_verify(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    sfumato("query", COUNT, "--epsilon", "0.25", at=folder)
    with closing(sqlite3.connect(folder / "budget.ledger")) as base:
        tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for (text,) in base.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute("DROP TRIGGER " + text.split()[2])
        entries = next(name for name in tables if "entr" in name)
        body = next(name for _, name, *_ in base.execute(f"PRAGMA table_info({entries})") if name in ("body", "entry"))
        base.execute(f"UPDATE {entries} SET {body} = CAST(REPLACE(CAST({body} AS TEXT), 'bea', 'bob') AS BLOB)")
        base.commit()
    with open_project(folder).ledger(read_only=True) as ledger:
        assert not ledger.verify().ok


def _until_opened(folder: Path, seconds: float = 120) -> None:
    """Wait until a release has opened its data."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with open_project(folder).ledger(read_only=True) as ledger:
            if any(entry.kind == "open" for entry in ledger.history()):
                return
        time.sleep(0.05)
    raise AssertionError("the release never began")


@pytest.mark.slow
@pytest.mark.parametrize("often", [1, 5])
def test_ctrl_c_in_the_middle_of_a_release(tmp_path: Path, often: int) -> None:
    folder = make_project(tmp_path, wards=900)
    with started("query", SLOW, "--epsilon", "0.25", "--debug", at=folder) as process:
        _until_opened(folder)
        for _ in range(often):  # people press it more than once
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        out, err = process.communicate(timeout=120)
    ends(Ran(process.returncode, out, err), 130, "interrupted", "the charge stays", "pays again")
    assert verifies(folder)[-3:] == ["spend", "open", "settle"]
    with open_project(folder).ledger(read_only=True) as ledger:
        assert [each.state for each in ledger.releases()] == ["failed"]
        assert float(ledger.spent("hospital")[0].spent) == 0.25
    assert sfumato("query", COUNT, "--epsilon", "0.25", at=folder).code == 0  # and the account is not locked


@pytest.mark.slow
def test_ctrl_c_before_anything_is_paid(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    with started("query", "-", at=folder, stdin=-1) as process:  # it waits for the query
        assert process.stdin is not None
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130 or "KeyboardInterrupt" in err  # Python itself may have been starting still
    assert out == "" and "spend" not in verifies(folder)


def test_three_failures_lock_the_account_and_it_says_who_opens_it(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    with broken_data():
        for number in range(3):
            assert sfumato("query", f"{COUNT} WHERE cost > {number}", "--epsilon", "0.1", at=folder).code == 8
    ends(sfumato("query", COUNT, "--epsilon", "0.1", at=folder), 5, "locked after 3 failures", "ledger unlock")
    assert verifies(folder).count("spend") == 3


def test_a_policy_forbids_with_six(tmp_path: Path) -> None:
    from sfumato.ledger import load_policy

    folder = make_project(tmp_path)
    people = {"omar": "privacy officer", "pia": "privacy officer", "dora": "data owner", "bea": "auditor"}
    listed = "".join(f"  {name}: [{role}]\n" for name, role in people.items())
    (folder / "policy.yaml").write_text(f"policy: 1\npeople:\n{listed}", encoding="utf-8")
    project = open_project(folder)
    with project.ledger(principal="omar") as ledger:
        ledger.adopt(load_policy(folder / "policy.yaml"), reason="first policy")
    ends(sfumato("query", COUNT, at=folder), 6, "the policy forbids it")
    assert "spend" not in verifies(folder)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("cell 4711"), problems.FAULT),
        (KeyError("cell 4711"), problems.FAULT),
        (UnicodeDecodeError("utf-8", b"cell 4711", 0, 1, "cell 4711"), problems.FAULT),
        (AssertionError("cell 4711"), problems.FAULT),
        (SystemError("cell 4711"), problems.FAULT),
        (OSError("cell 4711"), problems.FAULT),
        (MemoryError("cell 4711"), problems.REFUSED),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else None,
)
def test_what_nobody_expected_is_never_quoted(
    error: Exception, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.curator import Curator

    folder = make_project(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Curator, "release", fails)
    for words in ((), ("--debug",), ("--json",), ("--json", "--debug")):
        ran = sfumato("query", COUNT, *words, at=folder)
        assert ran.code == code and "4711" not in ran.out + ran.err and "Traceback" not in ran.err


def test_debug_traces_what_fails_before_data_is_open(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    ran = sfumato("query", "SELECT cots FROM visits", "--debug", at=folder)
    assert ran.code == 4 and "Traceback" in ran.err and "QueryError" in ran.err
    short = sfumato("query", COUNT, "--epsilon", "9", "--debug", at=folder)
    assert short.code == 5 and "Traceback" in short.err  # refused: no data was open


def test_a_rehearsal_tells_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.curator import Curator

    folder = make_project(tmp_path)

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("made-up cell 0.0")

    monkeypatch.setattr(Curator, "rehearse", fails)
    ran = sfumato("rehearse", COUNT, "--debug", at=folder)
    assert ran.code == 4 and "ZeroDivisionError: made-up cell 0.0" in ran.err and "Traceback" in ran.err


def test_the_codes_are_those_of_the_table() -> None:
    """Programs rely on them: they are listed once, and never change."""
    listed = {
        "done": 0, "a fault of sfumato itself": problems.FAULT, "the command line is wrong": problems.USAGE,
        "a file of the project is wrong": problems.FILE, "the query or plan is refused": problems.REFUSED,
        "the budget is short": problems.BUDGET, "the policy forbids it": problems.POLICY,
        "the ledger cannot be read or written": problems.LEDGER,
        "the release failed on the data's side": problems.DATA, "a check did not hold": problems.CHECK,
        "interrupted": problems.INTERRUPTED, "whoever read the output went away": 141,
    }  # fmt: skip
    assert list(listed.values()) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130, 141]
    for words, code in listed.items():
        assert f"{code}  {words}" in (telling.__doc__ or ""), words
