"""Attacks on the front door: files that are not what they seem, names that give orders, users without rights."""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sfumato.cli.problems import CommandError
from sfumato.cli.screen import Screen, columns, facts, say
from sfumato.cli.work import table_looks
from sfumato.office.files import write_out
from sfumato.office.problems import OfficeError
from sfumato.project import ProjectError, open_project
from tests.cli.front import BY_WARD, YAML, make_project, sfumato

PIECES = YAML.replace("source: data/visits.csv", "source: data/*.parquet")
LIST = """\
sfumato-plan: 1
releases:
  - name: all
    sql: SELECT COUNT(*) AS n FROM visits
    out: {out}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "p")


def _spends(folder: Path) -> int:
    with open_project(folder).ledger(read_only=True) as ledger:
        return sum(entry.kind in ("spend", "prepay") for entry in ledger.history())


def test_an_answer_goes_to_no_pipe_and_no_device(project: Path) -> None:
    pipe = project / "pipe.csv"
    os.mkfifo(pipe)
    for out in (pipe, Path(os.devnull)):
        told = sfumato("query", BY_WARD, "--out", str(out), "--format", "csv", at=project)
        assert (told.code, "nothing was charged" in told.err) == (3, True)
    assert stat.S_ISFIFO(pipe.stat().st_mode), "it was not replaced either"
    assert not _spends(project)


def test_a_folder_that_may_not_be_written_is_refused_before_it_is_paid(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = project / "out.csv"
    out.write_text("old", encoding="utf-8")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != project and allowed(path, mode))
    told = sfumato("query", BY_WARD, "--out", str(out), at=project)
    assert (told.code, out.read_text(encoding="utf-8")) == (3, "old")
    assert not _spends(project)


@pytest.mark.parametrize("name", ["budget.ledger", "budget.ledger-wal", "budget.ledger-shm", "data/visits.csv"])
def test_no_answer_goes_over_what_the_project_lives_by(project: Path, name: str) -> None:
    told = sfumato("query", BY_WARD, "--out", str(project / name), "--format", "csv", at=project)
    assert (told.code, "of the project itself" in told.err) == (3, True)
    assert not _spends(project)


def test_a_link_that_somebody_laid_leads_nowhere(project: Path) -> None:
    """The first name of the file was guessable once: a link under it had the ledger overwritten."""
    ledger = project / "budget.ledger"
    (project / ".out.csv.part").symlink_to(ledger)
    told = sfumato("query", BY_WARD, "--out", str(project / "out.csv"), at=project)
    assert told.code == 0
    assert not (project / "out.csv").is_symlink()
    assert sfumato("ledger", "verify", at=project).code == 0


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """/dev/stdout is one, and must not become a file."""
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_out(tmp_path / "link.csv", b"n\n")
    assert ((tmp_path / "link.csv").is_symlink(), (tmp_path / "real.csv").read_bytes()) == (True, b"n\n")


def test_many_may_write_the_same_file_at_once(tmp_path: Path) -> None:
    out, failed = tmp_path / "out.csv", []
    texts = [str(number).encode() * 200_000 for number in range(8)]

    def write(text: bytes) -> None:
        try:
            for _ in range(20):
                write_out(out, text)
        except CommandError as error:
            failed.append(error)

    workers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert (failed, out.read_bytes() in texts, list(tmp_path.iterdir())) == ([], True, [out])


def test_a_name_of_full_length_can_be_written(tmp_path: Path) -> None:
    out = tmp_path / ("x" * 251 + ".csv")
    write_out(out, b"n\n")
    assert out.read_bytes() == b"n\n"


def test_a_file_that_cannot_be_written_after_all_leaves_the_answer_in_the_ledger(project: Path) -> None:
    with pytest.raises(OfficeError, match="the answer itself is in the ledger"):
        write_out(project / "nowhere" / "out.csv", b"")


@pytest.mark.parametrize(
    "out", ["data/new.parquet", "data/visits.parquet", "data/../data/more.parquet", "real.parquet"]
)
def test_no_answer_becomes_a_part_of_the_data(tmp_path: Path, out: str) -> None:
    folder = make_project(tmp_path / "p", text=PIECES)
    parquet.write_table(pa.table({"patient": ["a"]}), folder / "data" / "visits.parquet")
    parquet.write_table(pa.table({"patient": ["a"]}), folder / "real.parquet")
    (folder / "data" / "linked.parquet").symlink_to(folder / "real.parquet")
    before = (folder / "data" / "visits.parquet").read_bytes()
    told = sfumato("query", BY_WARD, "--out", str(folder / out), at=folder)
    assert (told.code, "of the project itself" in told.err) == (3, True)
    (folder / "plan.yaml").write_text(LIST.format(out=out), encoding="utf-8")
    told = sfumato("run", str(folder / "plan.yaml"), at=folder)
    assert (told.code, "of the project itself" in told.err) == (3, True)
    assert (folder / "data" / "visits.parquet").read_bytes() == before
    assert not _spends(folder)


def test_pieces_leave_other_places_alone(tmp_path: Path) -> None:
    project = open_project(make_project(tmp_path / "p", text=PIECES))
    for out in ("out/a.parquet", "data/a.csv", "a.parquet", "data.parquet"):
        assert not project.lives_by(project.folder / out)


@pytest.mark.parametrize("source", ["data/visits.parquet", "data/visits.csv"])
def test_a_folder_whose_name_stands_for_others_is_refused(tmp_path: Path, source: str) -> None:
    """p[12] also fits p1: its data would have been read here, and charged to the wrong account."""
    make_project(tmp_path / "p1", ledger=False)
    folder = make_project(tmp_path / "p[12]", text=YAML.replace("data/visits.csv", source), ledger=False)
    with pytest.raises(ProjectError, match="folder has"):
        open_project(folder)


def test_a_table_that_this_user_may_not_read_is_refused_before_it_is_paid(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "visits.csv" and allowed(path, mode))
    told = sfumato("query", BY_WARD, "--json", at=project)
    assert (told.code, json.loads(told.out)["line"]) == (3, 7)
    assert "may not read" in told.out
    assert not _spends(project)


def test_a_look_at_parquet_reads_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "visits.parquet"
    parquet.write_table(pa.table({"name": ["CANARY"] * 50, "cost": [1.5] * 50}), file, compression="none")
    footer = 8 + int.from_bytes(file.read_bytes()[-8:-4], "little")
    assert b"CANARY" in file.read_bytes()[:-footer]
    blank = b"\0" * (file.stat().st_size - footer) + file.read_bytes()[-footer:]
    expected = table_looks.look(file)
    read: list[bytes] = []
    taken: Any = table_looks._footer
    monkeypatch.setattr(table_looks, "_footer", lambda path: read.append(taken(path)) or read[-1])
    file.write_bytes(blank)
    assert table_looks.look(file) == expected
    assert [len(each) for each in read] == [footer + 4]
    assert [(each.name, each.type) for each in expected.columns] == [("name", "string"), ("cost", "double")]


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"\xff\xff\xff\xffPAR1", b"PAR1" + b"\xff\xff\xff\x7fPAR1", b"x" * 99]
)
def test_what_is_no_parquet_is_told_without_its_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(CommandError, match="cannot be read as Parquet"):
        table_looks.look(tmp_path / "a.parquet")


@pytest.mark.parametrize("hostile", ["\x1b[31mred", "\x1b]0;title\x07", "\u202eright to left", "\x9b31m", "a\u2028b"])
def test_no_text_gives_orders_to_a_terminal(hostile: str) -> None:
    held = io.StringIO()
    for wide in (True, False):
        console = Screen(file=held, force_terminal=True, color_system=None, width=60, soft_wrap=wide)
        say(console, hostile, first=hostile)
        facts(console, [(hostile, hostile)])
        columns(console, [hostile, "n"], [[hostile, "1"]])
        console.print(hostile)
    shown = held.getvalue()
    assert not [sign for sign in shown if sign != "\n" and not sign.isprintable()]
    assert hostile.encode("unicode_escape").decode("ascii")[:4] in shown


def test_hostile_keys_reach_the_screen_written_out(tmp_path: Path) -> None:
    values = r'["\e[31mred", "\u202Eback", "[bold]not[/bold]"]'
    folder = make_project(tmp_path / "p", text=YAML.replace("[east, north, west]", values, 1))
    told = sfumato("query", BY_WARD, at=folder)
    assert told.code == 0
    assert "\x1b" not in told.out
    assert "\u202e" not in told.out
    assert r"\x1b[31mred" in told.out
    assert "[bold]not[/bold]" in told.out


ANCHORED = YAML.replace(
    "ledger: {place: budget.ledger,", "ledger: {place: budget.ledger, anchor: anchor/budget.anchor, key: budget.key,"
)


@pytest.fixture
def stale(tmp_path: Path) -> Path:
    """A project whose ledger was put back to an older copy."""
    folder = make_project(tmp_path / "p", text=ANCHORED)
    assert sfumato("query", BY_WARD, at=folder).code == 0
    old = (folder / "budget.ledger").read_bytes()
    assert sfumato("query", BY_WARD, "--epsilon", "0.25", at=folder).code == 0
    (folder / "budget.ledger").write_bytes(old)
    return folder


@pytest.mark.parametrize("paper", [["report"], ["checklist"], ["registry"], ["export", "all.csv"]])
def test_nobody_signs_for_an_older_copy(stale: Path, paper: list[str]) -> None:
    before = set(stale.iterdir())
    told = sfumato("ledger", *paper, at=stale)
    assert (told.code, "older copy" in told.err, set(stale.iterdir())) == (7, True, before)


def test_an_older_copy_is_shown_with_a_warning_and_nothing_is_paid_from_it(stale: Path) -> None:
    told = sfumato("ledger", "status", at=stale)
    assert (told.code, "older copy" in told.err) == (0, True)
    assert sfumato("query", BY_WARD, "--epsilon", "0.125", at=stale).code == 7
    assert sfumato("ledger", "open", at=stale).code == 7


def test_an_anchor_that_is_gone_is_not_said_to_be_made(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "p", text=ANCHORED)
    assert sfumato("query", BY_WARD, at=folder).code == 0
    (folder / "anchor" / "budget.anchor").unlink()
    told = sfumato("ledger", "open", at=folder)
    assert (told.code, "was made" in told.out) == (7, False)
