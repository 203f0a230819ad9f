"""`sfumato init` by flags: what is said is written, what is missing is a TODO with a line, and nothing is half-made."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import jsonschema
import pytest
import yaml

from sfumato.cli.work import making
from sfumato.errors import PrivacyWarning
from sfumato.ledger.proof.keys import Key
from sfumato.project import ProjectError, open_project
from tests.cli.front import Ran, sfumato

VISITS = "patient,ward,day,cost,note\n" + "".join(
    f"P{n % 90},{'east' if n % 3 else 'north'},2026-03-01,{n % 200}.5,x\n" for n in range(900)
)
COST = ("--column", "cost=real:0:500")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text(VISITS, encoding="utf-8")
    return tmp_path


def init(place: Path, *words: str) -> Ran:
    return sfumato("init", *words, at=place)


def test_flags_make_a_project_that_answers(place: Path) -> None:
    ran = init(place, "new", "--source", "visits.csv", "--unit", "patient", "--yes", *COST)
    assert (ran.code, ran.err) == (0, "")
    assert "Made in new: sfumato.yaml, .gitignore, budget.ledger, anchor/budget.anchor, budget.key" in ran.out
    project = open_project(place / "new")
    assert str(project.unit) == "everything one patient ever contributed, present or absent"
    assert "note" not in project.schema.tables["visits"].columns
    assert (place / "new" / ".gitignore").read_text(
        encoding="utf-8"
    ) == "/budget.key\n/budget.ledger*\n/.sfumato.lock\n"
    assert stat.S_IMODE((place / "new" / "budget.key").stat().st_mode) == 0o600
    commands = [line.strip() for line in ran.out.partition("Next:\n")[2].splitlines()]
    assert commands[:2] == ["cd new", "sfumato describe"]
    for line in commands[2:]:
        words = [line.split()[1], line.partition('"')[2].rstrip('"').replace('\\"', '"')]
        assert sfumato(*words, at=place / "new").code == 0
    with project.ledger(read_only=True) as ledger:
        assert ledger.verify().ok and ledger.verify().checkpoints


def test_what_is_missing_is_a_todo_with_its_line(place: Path) -> None:
    ran = init(place, "--source", "visits.csv", "--yes", "--json")
    assert ran.code == 0
    told = json.loads(ran.out)
    assert not told["ready"] and len(told["todo"]) == 1
    (todo,) = told["todo"]
    line = (place / "sfumato.yaml").read_text(encoding="utf-8").splitlines()[todo["line"] - 1]
    assert line.strip() == "cost: {type: real}  # TODO: cost needs lower and upper, two numbers"
    assert not (place / "budget.ledger").exists() and not (place / "budget.key").exists()
    assert "/visits.csv" in (place / ".gitignore").read_text(encoding="utf-8").splitlines()
    with pytest.raises(ProjectError, match="lower and upper are missing") as problem:
        open_project(place)
    assert problem.value.line == todo["line"]
    refused = sfumato("describe", at=place)
    assert refused.code == 3 and f"sfumato.yaml:{todo['line']}" in refused.err
    filled = (
        (place / "sfumato.yaml").read_text(encoding="utf-8").replace("{type: real}", "{type: real, lower: 0, upper: 9}")
    )
    (place / "sfumato.yaml").write_text(filled, encoding="utf-8")
    assert sfumato("ledger", "open", at=place).code == 0
    assert sfumato("query", "SELECT COUNT(*) AS n FROM visits", at=place).code == 0


def test_json_is_as_published(place: Path) -> None:
    ran = init(place, "--source", "visits.csv", "--json", *COST)
    assert ran.code == 0 and ran.err == ""
    told = json.loads(ran.out)
    jsonschema.validate(told, json.loads(sfumato("schema", "init", at=place).out))
    assert told["ready"] and told["todo"] == [] and told["document"] == "init/1"


def test_nothing_is_overwritten(place: Path) -> None:
    (place / "sfumato.yaml").write_text("mine", encoding="utf-8")
    before = sorted(place.iterdir())
    ran = init(place, "--source", "visits.csv", "--yes", *COST)
    assert ran.code == 3 and "nothing is overwritten" in ran.err
    assert (place / "sfumato.yaml").read_text(encoding="utf-8") == "mine" and sorted(place.iterdir()) == before
    ran = init(place, ".", "--example")
    assert ran.code == 3 and (place / "sfumato.yaml").read_text(encoding="utf-8") == "mine"
    assert not (place / "data").exists()


@pytest.mark.parametrize("at", ["budget.ledger", "sfumato.yaml"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_end_in_the_middle_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, at: str, error: type[BaseException]
) -> None:
    """Stopped after a part was made: new parts go, what was there stays."""
    (place / ".gitignore").write_text("*.pyc\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in place.iterdir()}
    whole = making.open_project

    def broken(folder: Path) -> object:
        if at == "budget.ledger":
            with whole(folder).ledger(create=True):
                assert (folder / "budget.ledger").exists()
        raise error

    monkeypatch.setattr(making, "open_project", broken)
    ran = init(place, "--source", "visits.csv", "--yes", *COST)
    assert ran.code == (130 if error is KeyboardInterrupt else 1)
    assert {path: path.read_bytes() for path in place.iterdir()} == before
    assert init(place, "a/b/c", "--source", "visits.csv", "--yes", *COST).code != 0
    assert not (place / "a").exists()


def test_foreign_files_survive_an_end_in_the_middle(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "anchor").mkdir()
    (place / "anchor" / "theirs").write_text("x", encoding="utf-8")
    Key.make(place / "budget.key")
    key = (place / "budget.key").read_bytes()

    def broken(folder: Path) -> object:
        raise OSError

    monkeypatch.setattr(making, "open_project", broken)
    assert init(place, "--source", "visits.csv", "--yes", *COST).code == 1
    assert (place / "anchor" / "theirs").read_text(encoding="utf-8") == "x"
    assert (place / "budget.key").read_bytes() == key and not (place / "sfumato.yaml").exists()


def test_an_old_ledger_keeps_what_was_spent(place: Path) -> None:
    assert init(place, "--source", "visits.csv", "--yes", "--name", "clinic", *COST).code == 0
    assert sfumato("query", "SELECT COUNT(*) AS n FROM visits", at=place).code == 0
    (place / "sfumato.yaml").unlink()
    ran = init(place, "--source", "visits.csv", "--yes", "--name", "clinic", "--epsilon", "5", *COST)
    assert ran.code == 0
    assert "account 'clinic' has epsilon = 1, delta = 1e-06 in the ledger, but epsilon = 5" in ran.out
    with open_project(place).ledger(read_only=True) as ledger:
        assert len(list(ledger.releases(account="clinic"))) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give --source FILE"),
        (("--source", "nowhere.csv"), "there is no file"),
        (("--source", "visits.xls"), "ends in .csv"),
        (("--source", "visits.csv", "--unit", "person"), "whom to hide is not clear"),
        (("--source", "visits.csv", "--unit", "patient", "--unit", "ward"), "whom to hide is not clear"),
        (("--source", "visits.csv", "--unit", "patient", "--unit", "visits=ward"), "names two units"),
        (("--source", "visits.csv", "--column", "price=real:0:1"), "fits no column"),
        (("--source", "visits.csv", "--column", "cost"), "fits no column"),
        (("--source", "visits.csv", "--column", "cost=number:0:1"), "is no kind of column"),
        (("--source", "visits.csv", "--column", "cost=real:5:1"), "is not allowed"),
        (("--source", "visits.csv", "--column", "cost=real:a:b"), "two numbers"),
        (("--source", "visits.csv", "--column", "cost=real:nan:inf"), "two numbers"),
        (("--source", "visits.csv", "--column", "cost=whole:0.5:2"), "is not allowed"),
        (("--source", "visits.csv", "--column", "day=date:2026-02-30:2026-12-31"), "is not allowed"),
        (("--source", "visits.csv", "--column", "patient=key:1"), "neither bounds nor values"),
        (("--source", "visits.csv", "--public", "wards"), "names no table"),
        (("--source", "visits.csv", "--epsilon", "-1"), "is not allowed"),
        (("--source", "visits.csv", "--epsilon", "0"), "is not allowed"),
        (("--source", "visits.csv", "--delta", "2"), "is not allowed"),
        (("--source", "visits.csv", "--rows", "none"), "is not allowed"),
        (("--source", "visits.csv", "--source", "visits.csv"), "two tables would be called visits"),
        (("visits.csv", "--source", "visits.csv"), "is no folder"),
        (("--source", "visits.csv", "--no-header"), "have no names"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_made(place: Path, words: tuple[str, ...], said: str) -> None:
    (place / "visits.txt").write_text("a", encoding="utf-8")
    before = sorted(place.rglob("*"))
    ran = init(place, *words, "--yes")
    assert ran.code in (2, 3) and said in ran.err, ran.err
    assert ran.err.count("\n  why  ") == 1 and ran.err.count("\n  fix  ") == 1
    assert sorted(place.rglob("*")) == before


def test_several_tables_and_a_public_one(place: Path) -> None:
    (place / "patients.csv").write_text("id,born,sex\nP1,1980,f\n", encoding="utf-8")
    (place / "wards.csv").write_text("ward,beds\neast,3\n", encoding="utf-8")
    sources = ("--source", "visits.csv", "--source", "patients.csv", "--source", "wards.csv")
    ran = init(place, *sources, "--yes", "--json", *COST, "--column", "wards.beds=whole:0:100")
    told = json.loads(ran.out)
    assert [todo["what"].partition(":")[0] for todo in told["todo"]] == ["unit", "unit"], "a likely column is not taken"
    (place / "sfumato.yaml").unlink()
    more = ("--unit", "patient", "--unit", "patients=id", "--public", "wards", "--column", "ward=category:east,north")
    ran = init(place, *sources, "--yes", "--json", *COST, "--column", "wards.beds=whole:0:100", *more)
    assert json.loads(ran.out)["ready"], ran.out
    tables = open_project(place).schema.tables
    assert [tables[name].unit for name in ("visits", "patients", "wards")] == ["patient", "id", None]
    assert tables["patients"].names == "patient" and tables["visits"].names is None
    assert not tables["wards"].private and tables["visits"].columns["ward"] == tables["wards"].columns["ward"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "duckdb"])
def test_declared_types_are_used_and_rows_are_not(place: Path, suffix: str) -> None:
    import duckdb

    path = place / f"stays.{suffix}"
    rows = "SELECT 'P1' AS patient, CAST(7 AS SMALLINT) AS lucky, CAST(1.5 AS DOUBLE) AS odd, true AS ok, " \
        "CAST(0.05 AS DECIMAL(15, 2)) AS rebate, " \
        "TIMESTAMP '2026-01-01 10:00:00' AS seen, [1, 2] AS many, DATE '2026-01-01' AS start"  # fmt: skip
    with duckdb.connect(str(path) if suffix == "duckdb" else ":memory:") as engine:
        if suffix == "duckdb":
            engine.execute(f"CREATE TABLE stays AS {rows}")
        else:
            engine.execute(f"COPY ({rows}) TO '{path}' (FORMAT {suffix})")
    told = json.loads(init(place, "--source", path.name, "--yes", "--json").out)
    text = yaml.safe_load((place / "sfumato.yaml").read_text(encoding="utf-8"))
    columns = text["tables"]["stays"]["columns"]
    if suffix == "csv":  # no types: names alone
        assert columns["lucky"] == "key" and told["ready"]
        return
    assert columns["lucky"] == {"type": "whole"} and columns["odd"] == {"type": "real"} and columns["ok"] == "flag"
    assert columns["seen"]["type"] == "moment" and columns["start"]["type"] == "date" and "many" not in columns
    assert {todo["what"].split()[0] for todo in told["todo"]} == {"lucky", "odd", "rebate"}
    given = ("--column", "lucky=whole:0:9", "--column", "odd=real:-1:1", "--column", "rebate=real:0:0.1")
    (place / "sfumato.yaml").unlink()
    assert json.loads(init(place, "--source", path.name, "--yes", "--json", *given).out)["ready"]
    assert open_project(place).schema.tables["stays"].columns["rebate"].decimals == 2
    assert sfumato("query", "SELECT COUNT(*) AS n, SUM(odd) AS s FROM stays", at=place).code == 0


def test_a_data_folder_elsewhere_is_written_relatively(place: Path) -> None:
    (place / "in").mkdir()
    (place / "visits.csv").rename(place / "in" / "my visits [1].csv")
    ran = init(place, "out", "--source", "in/my visits [1].csv", "--yes", *COST)
    assert ran.code == 3 and "wild" not in ran.err, "the engine would read a pattern: refused with its line"
    assert not (place / "out").exists()
    (place / "in" / "my visits [1].csv").rename(place / "in" / "1 my visits.csv")
    ran = init(place, "out", "--source", "in/1 my visits.csv", "--yes", *COST)
    assert ran.code == 0
    text = yaml.safe_load((place / "out" / "sfumato.yaml").read_text(encoding="utf-8"))
    assert text["tables"]["t_1_my_visits"]["source"] == "../in/1 my visits.csv"
    assert sfumato("query", "SELECT COUNT(*) AS n FROM t_1_my_visits", at=place / "out").code == 0


def test_a_folder_that_cannot_be_written(place: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    (place / "shut").mkdir(mode=0o500)
    ran = init(place, "shut", "--source", "visits.csv", "--yes", *COST)
    assert ran.code == 3


def test_pure_budgets_and_rows_and_weak_ones(place: Path) -> None:
    ran = init(place, "--source", "visits.csv", "--yes", "--epsilon", "20", "--delta", "0", "--rows", "4", *COST)
    assert ran.code == 0 and "epsilon = 20 is weak" in ran.err
    with pytest.warns(PrivacyWarning):
        project = open_project(place)
    assert float(project.budget.epsilon) == 20 and project.budget.delta == 0 and project.privacy.target_delta is None
    assert project.limits is not None and project.limits.rows == 4
