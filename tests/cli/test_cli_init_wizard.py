"""The wizard in a pseudo-terminal, from the first question to a released answer; and every way to leave it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from sfumato.cli.problems import CommandError
from sfumato.cli.work.draft import Draft, TableDraft, led_nowhere, put_keys
from sfumato.cli.work.proposing import ColumnDraft
from sfumato.cli.work.table_looks import TableLook
from sfumato.cli.work.wizard import _owner
from sfumato.cli.work.writing_yaml import written
from sfumato.foreign_keys import ForeignKey
from sfumato.project import open_project
from tests.cli.front import environment, sfumato

ROWS = "".join(f"P{n % 300},{'east' if n % 3 else 'north'},{n % 200}.5,2026-05-01,{n % 90}\n" for n in range(2400))
VISITS = "patient,ward,cost,day,age\n" + ROWS


def wizard(place: Path, *words: str, columns: int = 80) -> pexpect.spawn:  # type: ignore[type-arg]
    variables = environment(COLUMNS=str(columns), TERM="xterm")
    command = ["-m", "sfumato.cli", "init", *words]
    return pexpect.spawn(
        sys.executable, command, cwd=str(place), env=variables, encoding="utf-8", timeout=60, dimensions=(50, columns)
    )


def answer(terminal: pexpect.spawn, question: str, *texts: str | tuple[str, str]) -> None:  # type: ignore[type-arg]
    """Wait for a question, then give answers to it; of a pair, the second is what is said about the first."""
    terminal.expect(_shown(question))
    for text in texts:
        terminal.expect(r"\] > ")
        terminal.sendline(text if isinstance(text, str) else text[0])
        if not isinstance(text, str):
            terminal.expect(_shown(text[1]))


def _shown(words: str) -> str:
    """Words as a terminal shows them: lines may break between them, and styles begin and end."""
    return re.escape(words).replace("\\ ", r"(?:\s|\x1b\[[0-9;]*m)+")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text(VISITS, encoding="utf-8")
    return tmp_path


def to_the_end(terminal: pexpect.spawn, *, header: str = "") -> None:  # type: ignore[type-arg]
    answer(terminal, "Which files hold the data", "")
    answer(terminal, "first line of visits.csv", header)
    answer(terminal, "Is that right", "")
    answer(terminal, "Whose presence is to be hidden", "")
    answer(terminal, "ward: which values", "east, north, west")
    answer(terminal, "cost: the smallest and largest", "0 500")
    answer(terminal, "day: the first and last day", "2026-01-01 2026-12-31")
    answer(terminal, "age: the smallest and largest", "")
    answer(terminal, "in epsilon", "2")
    answer(terminal, "And in delta", "")
    answer(terminal, "one release cost", "1")
    answer(terminal, "how many rows may one patient", "10")
    answer(terminal, "which name", "bea")


@pytest.mark.slow
def test_flags_answer_questions_beforehand(place: Path) -> None:
    """What is given is not asked again, or stands there as the default."""
    terminal = wizard(place, "--source", "visits.csv", "--header", "--unit", "patient", "--epsilon", "3", "--rows", "5")
    terminal.expect(_shown("Is that right"))
    assert "first line of" not in terminal.before and "Which files" not in terminal.before
    terminal.sendline("ward=key, cost=out, day=out, age=out")
    for _ in range(7):  # all the rest, down to the last question: Enter
        terminal.sendline("")
    answer(terminal, "Write it", "")
    terminal.expect("Made here")
    terminal.expect(pexpect.EOF)
    terminal.close()
    text = (place / "sfumato.yaml").read_text(encoding="utf-8")
    assert "limits: {rows: 5}" in text and "epsilon: 3" in text and "unit: user:patient" in text


@pytest.mark.parametrize("columns", [60, pytest.param(120, marks=pytest.mark.slow)])
def test_from_the_first_question_to_an_answer(place: Path, columns: int) -> None:
    terminal = wizard(place, columns=columns)
    seen: list[str] = []
    terminal.logfile_read = type("Log", (), {"write": lambda _, text: seen.append(text), "flush": lambda _: None})()
    to_the_end(terminal)
    answer(terminal, "Write it", "")
    terminal.expect("Made here")
    terminal.expect("sfumato query")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert not re.search(r"P\d|2026-05-01|\d\.5\b", "".join(seen)), "no cell of a row is on the screen"
    assert re.search(_shown("only that first line is read"), "".join(seen))
    project = open_project(place)
    column = project.schema.tables["visits"].columns
    assert column["ward"].categories == ("east", "north", "west")
    assert column["cost"].upper == 500 and column["age"].upper == 120
    assert project.limits is not None and project.limits.rows == 10 and float(project.budget.epsilon) == 2
    ran = sfumato("query", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", at=place)
    assert ran.code == 0 and "at least, at 95 %" in ran.out
    with project.ledger(read_only=True) as ledger:
        assert ledger.verify().ok
        (paid,) = ledger.releases()
        assert paid.actor == "bea"


@pytest.mark.slow
def test_questions_explain_themselves_and_ask_again(place: Path) -> None:
    terminal = wizard(place)
    answer(
        terminal, "Which files", ("?", "paid release runs"), ("nowhere.csv", "give the path"),
        ("a.xls", "ends in .csv"), "visits.csv",
    )  # fmt: skip
    answer(
        terminal, "first line of visits.csv", ("?", "already belongs to somebody"), ("maybe", "neither yes nor"), "y"
    )
    answer(
        terminal, "Is that right", ("?", "an opaque name"), ("cots=real", "changes no column"),
        ("cost=money", "is no kind of column"), "cost=whole, day=out, ward=category:a,b",
    )  # fmt: skip
    answer(terminal, "Is that right", "")
    answer(
        terminal,
        "Whose presence",
        ("?", "ever contributed"),
        ("nobody", "has no column"),
        "row",
    )
    answer(terminal, "patient seems to name a person", ("?", "in several rows"), "")
    answer(terminal, "Whose presence", "row")
    answer(terminal, "patient seems to name a person", ("y", "not one person"))
    answer(terminal, "ward: which values", ("?", "appears in answers"), "")
    answer(terminal, "cost: the smallest", ("?", "noise on a sum"), ("9 1", "below upper"), "0 to 100")
    answer(terminal, "age: the smallest", "out")
    answer(terminal, "in epsilon", ("?", "odds of any guess"), ("much", "a number such"), ("50", "That is weak"))
    answer(terminal, "And in delta", ("7", "below 1"), "0")
    answer(terminal, "one release cost", ("?", "next ones"), "0.5")
    answer(terminal, "which name", "")
    answer(terminal, "Write it", "n")
    terminal.expect("nothing was written")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 2
    assert sorted(path.name for path in place.iterdir()) == ["visits.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "late"), [("c", True), ("c", False), ("d", False)])
def test_leaving_leaves_nothing(place: Path, key: str, late: bool) -> None:
    terminal = wizard(place, "new")
    if late:
        to_the_end(terminal)
    terminal.expect("Write it" if late else "Which files")
    terminal.expect("> ")
    for _ in range(12):  # keys that come just before Python waits for a line are heard with the next ones
        terminal.sendcontrol(key)
        if terminal.expect(["nothing was written", pexpect.TIMEOUT], timeout=5) == 0:
            break
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    assert sorted(path.name for path in place.iterdir()) == ["visits.csv"]


@pytest.mark.slow
def test_a_project_is_replaced_only_if_you_say_so(place: Path) -> None:
    (place / "sfumato.yaml").write_text("mine", encoding="utf-8")
    terminal = wizard(place)
    answer(terminal, "Replace", "?", "")
    terminal.expect("is there already")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 3 and (place / "sfumato.yaml").read_text(encoding="utf-8") == "mine"
    terminal = wizard(place)
    answer(terminal, "Replace", "y")
    to_the_end(terminal)
    answer(terminal, "Write it", "")
    terminal.expect("Made here")
    terminal.expect(pexpect.EOF)
    assert open_project(place).name


@pytest.mark.slow
def test_a_file_without_names(place: Path) -> None:
    (place / "visits.csv").write_text(ROWS, encoding="utf-8")
    terminal = wizard(place)
    answer(terminal, "Which files", "")
    answer(terminal, "first line of visits.csv", "")
    answer(terminal, "names all the same", ("?", "row of data"), "")
    answer(terminal, "called, in their order", "", ("a, b, B", "a name of its own"), "patient, ward, cost, day, age")
    answer(terminal, "blanks around the cells", ("?", "State-gov is not State-gov"), "")
    answer(terminal, "Is that right", "cost=out, day=out")
    answer(terminal, "Is that right", "")
    answer(terminal, "Whose presence", "")
    answer(terminal, "ward: which", "")
    answer(terminal, "age: the smallest", "")
    for question in ("in epsilon", "And in delta", "one release", "how many rows", "which name", "Write it"):
        answer(terminal, question, "")
    terminal.expect("Made here")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    ran = sfumato("query", "SELECT COUNT(DISTINCT patient) AS n FROM visits", "--epsilon", "1", at=place)
    assert ran.code == 0, ran.err
    ((value, bar),) = re.findall(r"^ *([\d,.]+) ± ([\d,.]+)", ran.out, re.MULTILINE)
    assert abs(float(value.replace(",", "")) - 300) < 20 * float(bar), (
        "the first row counts too, and cells are in place"
    )


@pytest.mark.slow
def test_several_files_and_a_public_one(place: Path) -> None:
    (place / "people.csv").write_text("id,sex\n" + "".join(f"P{n},f\n" for n in range(300)), encoding="utf-8")
    (place / "wards.csv").write_text("ward,beds\neast,4\nnorth,5\n", encoding="utf-8")
    terminal = wizard(place)
    answer(terminal, "Which files", "visits.csv, people.csv, wards.csv")
    for name in ("visits", "people", "wards"):
        answer(terminal, f"first line of {name}.csv", "")
    for name in ("visits", "people", "wards"):
        answer(terminal, f"The columns of {name}", "")
    answer(terminal, "Whose presence", "")
    answer(terminal, "Which column of people names the patient", "sex?", "id")
    answer(terminal, "Which column of wards names the patient", "?", "public")
    answer(terminal, "visits.ward: which", "east, north")
    for question in ("cost: ", "day: ", "age: ", "people.sex: "):
        answer(terminal, question, "")
    answer(terminal, "wards.beds: the smallest", "0 100")
    for question in ("in epsilon", "And in delta", "one release", "how many rows", "which name", "Write it"):
        answer(terminal, question, "")
    terminal.expect("Made here")
    terminal.expect(pexpect.EOF)
    tables = open_project(place).schema.tables
    assert (tables["visits"].unit, tables["people"].unit, tables["wards"].private) == ("patient", "id", False)
    assert tables["people"].names == "patient" and tables["visits"].names is None
    assert tables["wards"].columns["ward"] == tables["visits"].columns["ward"], "said once"
    query = (
        "SELECT beds, COUNT(*) AS n FROM visits JOIN wards USING (ward) JOIN people p ON p.id = patient GROUP BY beds"
    )
    ran = sfumato("query", query, "--epsilon", "0.5", at=place)
    assert ran.code == 0, ran.err


def test_no_table_is_given_a_second_unit(place: Path) -> None:
    """A table that has the unit's own column is not asked out of it."""
    table = TableDraft(
        "lines", TableLook(place / "visits.csv", "csv"), [ColumnDraft("patient", "key"), ColumnDraft("visit", "key")]
    )
    draft = Draft(place, "clinic", [table], unit="patient")

    class Answering:
        def ask(self, question: str, *, read: Callable[[str], Any], **_: Any) -> Any:
            assert "names the patient" in question
            return read(self.text)

        def __init__(self, text: str) -> None:
            self.text = text

    asked: Any = Answering("visit")
    with pytest.raises(CommandError, match="two units"):
        _owner(asked, draft, table, "patient")
    asked = Answering("patient")
    assert _owner(asked, draft, table, "patient") == "patient"


def test_a_table_without_the_units_column_says_where_a_key_leads(place: Path) -> None:
    def table(name: str, *columns: str) -> TableDraft:
        return TableDraft(name, TableLook(place / "visits.csv", "csv"), [ColumnDraft(each, "key") for each in columns])

    orders, items, notes = table("orders", "id", "patient"), table("items", "order", "cost"), table("notes", "item")
    draft = Draft(place, "shop", [orders, items, notes], unit="patient")

    class Answering:
        def __init__(self, text: str) -> None:
            self.text = text

        def ask(self, question: str, *, read: Callable[[str], Any], **_: Any) -> Any:
            return read(self.text)

    def answered(text: str) -> Any:
        asked: Any = Answering(text)
        return _owner(asked, draft, items, None)

    for text, words in (
        ("order -> baskets.id", "no other private table"),
        ("order -> items.order", "no other private table"),
        ("basket -> orders.id", "items has no column 'basket'"),
        ("order -> orders.number", "orders has no column 'number'"),
        ("order ->", "does not say where"),
    ):
        with pytest.raises(CommandError, match=words):
            answered(text)
    orders.unit = "patient"
    assert answered("order->orders.id") is None and str(items.owner) == "order -> orders.id"
    notes.owner = ForeignKey("item", "gone", "id")
    assert led_nowhere(draft.tables) == [notes]
    draft.tables.remove(notes)
    put_keys(items, draft.tables)
    page, _ = written(draft)
    assert re.search('    owner: "?order -> orders.id', page) and "unit: patient" in page


def test_the_flag_unit_takes_a_key(place: Path) -> None:
    (place / "orders.csv").write_text("id,patient\n" + "".join(f"{n},P{n}\n" for n in range(300)), encoding="utf-8")
    (place / "items.csv").write_text("order,cost\n" + "".join(f"{n},1.5\n" for n in range(300)), encoding="utf-8")
    ran = sfumato(
        "init", "--source", "orders.csv", "--source", "items.csv", "--unit", "patient", "--unit",
        "items=order -> orders.id", "--column", "cost=real:0:10", "--yes", at=place,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    tables = open_project(place).schema.tables
    assert tables["items"].owner == "order -> orders.id" and tables["orders"].unit == "patient"
    assert "leads to orders.id" in sfumato("describe", at=place).out
