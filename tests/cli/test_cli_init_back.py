"""The wizard's way back, and that Enter never hides less than the data suggests."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import pexpect
import pytest
from rich.console import Console

from sfumato.cli.problems import CommandError
from sfumato.cli.work.beginning import _asked
from sfumato.cli.work.draft import Draft
from sfumato.cli.work.flags import Flags
from sfumato.cli.work.prompts import Prompts
from sfumato.cli.work.writing_yaml import written
from sfumato.project import open_project
from tests.cli.test_cli_init_wizard import answer, to_the_end, wizard


class Typed(Prompts):
    """Somebody who types these lines, and leaves after them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.screen = io.StringIO()
        super().__init__(Console(file=self.screen, width=100))
        self.lines = iter(lines)
        self.defaults: list[str] = []

    def _line(self, default: str) -> str:
        self.defaults.append(default)
        typed = next(self.lines, None)
        if typed is None:
            raise CommandError("stopped", "the lines are over", "type more")
        self.screen.write(f"[{default}] > {typed}\n")
        return typed


def talked(folder: Path, *lines: str) -> tuple[Draft, str]:
    prompts = Typed(lines)
    draft = prompts.talk(lambda: _asked(prompts, folder, Flags()))
    assert next(prompts.lines, None) is None, "a line was not asked for"
    return draft, prompts.screen.getvalue()


def left_at(folder: Path, *lines: str) -> tuple[str, str]:
    """The default of the question that is open after these lines, and the screen."""
    prompts = Typed(lines)
    with pytest.raises(CommandError, match="stopped"):
        prompts.talk(lambda: _asked(prompts, folder, Flags()))
    return prompts.defaults[-1], prompts.screen.getvalue()


HEADER = "patient,ward,cost\n"
# files, names, kinds, unit, ward, cost, epsilon, delta, release, rows, name, write
ANSWERS = ("", "", "", "", "east, north", "0 9", "2", "", "", "8", "bea", "")


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text(HEADER, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("place", range(1, len(ANSWERS)))
def test_from_every_question_there_is_a_way_back(visits: Path, place: int) -> None:
    """Back, and the same answer again: as if nothing had been."""
    straight, _ = talked(visits, *ANSWERS)
    around, _ = talked(visits, *ANSWERS[:place], "<", *ANSWERS[place - 1 :])
    assert written(around) == written(straight)


def test_back_to_the_start_undoes_everything(visits: Path) -> None:
    draft, screen = talked(visits, *ANSWERS[:-1], *"<" * 11, "<", *ANSWERS)
    assert written(draft) == written(talked(visits, *ANSWERS)[0])
    assert "this is the first question" in screen


def test_another_answer_leads_another_way(visits: Path) -> None:
    """What was said after it is asked anew; what was said before it stays."""
    draft, screen = talked(
        visits, "", "", "cost=out", "", "<", "<", "ward=key, cost=whole", "", "", "1 5", *ANSWERS[6:]
    )  # fmt: skip
    column = {each.name: each for each in draft.tables[0].columns}
    assert (column["cost"].kind, column["cost"].lower, column["ward"].kind) == ("whole", "1", "key")
    assert screen.count("Which files hold the data?") == 1, "answers that stay are not asked for, nor shown"
    after = screen.rpartition("> <\n")[2]
    assert "2  The columns of visits" in after.splitlines()[1], "one sees where one is"


def test_back_over_a_warning_and_over_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER, encoding="utf-8")
    (tmp_path / "b.csv").write_text("patient;price;day\n", encoding="utf-8")
    lines = ("a.csv, b.csv", "", "", "1.234,5", "", "", "31/12/26", "", "", "east", "0 9", "0 9", "")
    draft, _ = talked(tmp_path, *lines, "50", "<", "2", *ANSWERS[7:])
    assert draft.tables[1].look.written == {"thousands": ".", "decimal": ",", "dates": "%d/%m/%y"}
    around, _ = talked(tmp_path, *lines, *"<" * 7, *lines[6:], "2", *ANSWERS[7:])
    assert written(around) == written(draft)


def test_back_in_a_terminal(visits: Path) -> None:
    (visits / "visits.csv").write_text("patient,ward,cost,day,age\n1,east,2,2026-05-01,30\n", encoding="utf-8")
    terminal = wizard(visits)
    terminal.expect("< goes")
    answer(terminal, "Which files hold the data", ("<", "first question"), "")
    answer(terminal, "first line of visits.csv", "<")
    to_the_end(terminal)
    answer(terminal, "Write it", "<")
    answer(terminal, "which name", "eva")
    answer(terminal, "Write it", "")
    terminal.expect("Made here")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert "principal: eva" in (visits / "sfumato.yaml").read_text(encoding="utf-8")
    assert open_project(visits).unit.column == "patient"


# whom to hide


@pytest.mark.parametrize(
    ("header", "default"),
    [
        ("patient,ward,cost", "patient"),
        ("visit_id,patient,cost", "patient"),
        ("ward,cost", "no default"),
        ("id,ward", "no default"),
        ("visit_id,ward", "no default"),
        ("employee,customer,cost", "no default"),
        ("row,cost", "no default"),
    ],
)
def test_enter_hides_a_person_or_nothing(tmp_path: Path, header: str, default: str) -> None:
    (tmp_path / "visits.csv").write_text(header + "\n", encoding="utf-8")
    shown, screen = left_at(tmp_path, "", "", "")
    assert shown == default and "Whose presence" in screen
    if default == "no default":
        again, screen = left_at(tmp_path, "", "", "", "")
        assert again == "no default" and "nobody can know that but you; type row, or one of" in screen


def test_rows_are_hidden_only_by_somebodys_word(visits: Path) -> None:
    shown, screen = left_at(visits, "", "", "", "row")
    assert shown == "y/N" and "patient seems to name a person" in screen
    assert left_at(visits, "", "", "", "row", "")[0] == "patient"
    draft, screen = talked(visits, "", "", "", "row", "y", *ANSWERS[4:9], *ANSWERS[10:])
    assert draft.unit is None and "One row is hidden, not one person" in screen


def test_a_table_is_not_owned_by_whatever_is_numbered(tmp_path: Path) -> None:
    """Enter does not take the numbers of visits for names of patients."""
    (tmp_path / "a.csv").write_text(HEADER, encoding="utf-8")
    (tmp_path / "b.csv").write_text("visit_id,price\n", encoding="utf-8")
    (tmp_path / "c.csv").write_text("member_no,price\n", encoding="utf-8")
    lines = ("a.csv, b.csv, c.csv", "", "", "", "", "", "", "")
    assert left_at(tmp_path, *lines)[0] == "member_no"
    assert left_at(tmp_path, *lines, "")[0] == "out"
