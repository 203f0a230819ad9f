"""`sfumato init --no-header`, its questions, and projects made so: what is left out keeps its place in sfumato.yaml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.cli.problems import CommandError
from sfumato.cli.work.table_looks import look_by_place
from sfumato.project import open_project
from sfumato.sources import Csv
from tests.cli.front import sfumato
from tests.cli.test_cli_init_wizard import answer, wizard

COUNT = "SELECT COUNT(*) AS n FROM visits"
NAMED = ("--column", "id=out", "--column", "patient=key", "--column", "cost=real:0:9")


def visits(folder: Path, sign: str = ",", name: str = "visits.csv") -> None:
    """100 patients with 100 visits each."""
    rows = (sign.join((f"v{n}", f"P{n % 100}", "3")) for n in range(10_000))
    (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


def made(folder: Path, *words: str) -> None:
    ran = sfumato(
        "init", "--source", "visits.csv", "--no-header", "--no-trim", "--unit", "patient", "--yes", *words, at=folder
    )
    assert ran.code == 0, ran.err


def counted(folder: Path) -> float:
    ran = sfumato("query", COUNT, "--epsilon", "1", "--limit", "rows=1", "--json", at=folder)
    assert ran.code == 0, ran.out
    return float(json.loads(ran.out)["rows"][0]["n"]["value"])


def test_a_column_that_is_left_out_keeps_its_place(tmp_path: Path) -> None:
    visits(tmp_path)
    made(tmp_path, *NAMED)
    assert "columns: [id, patient, cost]" in (tmp_path / "sfumato.yaml").read_text(encoding="utf-8")
    assert open_project(tmp_path).sources["visits"] == Csv(
        str(tmp_path / "visits.csv"), header=False, columns=("id", "patient", "cost")
    )
    assert counted(tmp_path) == pytest.approx(100, abs=40)  # not 10,000


def test_a_project_of_before_whose_file_has_more_columns_is_refused_unpaid(tmp_path: Path) -> None:
    visits(tmp_path)
    made(tmp_path, *NAMED)
    file = tmp_path / "sfumato.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace(", columns: [id, patient, cost]", ""), encoding="utf-8")
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "source:" in each)
    for words in (("query", COUNT), ("quote", COUNT)):
        ran = sfumato(*words, "--epsilon", "1", "--limit", "rows=1", at=tmp_path)
        assert ran.code in (3, 4) and "3 cells, and 2 columns are named" in ran.err and "P0" not in ran.err
    assert f"sfumato.yaml:{line}" in sfumato("query", COUNT, at=tmp_path).err
    (tmp_path / "plan.yaml").write_text(
        f"sfumato-plan: 1\nreleases:\n  - {{name: n, sql: {COUNT}}}\n", encoding="utf-8"
    )
    ran = sfumato("run", "plan.yaml", at=tmp_path)
    assert ran.code == 3 and "3 cells" in ran.err
    with open_project(tmp_path).ledger(read_only=True) as ledger:
        assert not list(ledger.releases())
    assert sfumato("describe", at=tmp_path).code == 0  # the project can still be looked at
    (tmp_path / "visits.csv").write_text("P1,3\nP2,4\n", encoding="utf-8")  # exactly as many as the schema has
    counted(tmp_path)


def test_too_few_names_are_refused_when_the_project_is_made(tmp_path: Path) -> None:
    visits(tmp_path)
    words = ("init", "--source", "visits.csv", "--no-header", "--unit", "patient", "--yes")
    ran = sfumato(*words, "--column", "patient=key", "--column", "cost=real:0:9", at=tmp_path)
    assert ran.code == 3 and "its first line has 3 cells, and 2 columns are named" in ran.err
    assert "P0" not in ran.err and "v0" not in ran.err and not (tmp_path / "sfumato.yaml").exists()


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_another_sign_between_cells_is_written_down(tmp_path: Path, sign: str) -> None:
    visits(tmp_path, sign)
    made(tmp_path, *NAMED)
    source = open_project(tmp_path).sources["visits"]
    assert isinstance(source, Csv) and source.delimiter == sign and source.columns == ("id", "patient", "cost")


def test_names_that_say_no_place_are_refused(tmp_path: Path) -> None:
    visits(tmp_path)
    for names in (["a", "a", "b"], ["a", "", "b"], ["a", "A", "b"]):
        with pytest.raises(CommandError, match="a name of its own"):
            look_by_place(tmp_path / "visits.csv", names)
    (tmp_path / "visits.csv").write_bytes("ä,ö,ü\n".encode("latin-1"))
    assert look_by_place(tmp_path / "visits.csv", ["a", "b", "c"]).encoding == "utf-8"  # its row decides nothing
    (tmp_path / "visits.csv").write_bytes("ä,ö,ü\n".encode("utf-16"))
    assert look_by_place(tmp_path / "visits.csv", ["a", "b", "c"]).encoding == "utf-16"


def test_many_columns_are_written_over_several_lines(tmp_path: Path) -> None:
    names = [f"no{n}" for n in range(60)]
    (tmp_path / "visits.csv").write_text(",".join(["P1", *("x" for _ in names)]) + "\n", encoding="utf-8")
    made(tmp_path, "--column", "patient=key", *(word for name in names for word in ("--column", f"{name}=out")))
    source = open_project(tmp_path).sources["visits"]
    assert isinstance(source, Csv) and source.columns == ("patient", *names)
    assert max(map(len, (tmp_path / "sfumato.yaml").read_text(encoding="utf-8").splitlines())) <= 85


def test_the_questions_count_the_cells_too(tmp_path: Path) -> None:
    visits(tmp_path)
    terminal = wizard(tmp_path, "--source", "visits.csv", "--no-header", "--epsilon", "3", "--rows", "1")
    answer(terminal, "What are the columns of visits.csv called", ("patient, cost", "3 cells"), "id, patient, cost")
    answer(terminal, "blanks around the cells", "")
    answer(terminal, "Is that right", "id=out")
    answer(terminal, "Is that right", "")
    answer(terminal, "Whose presence is to be hidden", "")
    answer(terminal, "cost: the smallest and largest", "0 9")
    for _ in range(5):
        terminal.sendline("")
    answer(terminal, "Write it", "")
    terminal.expect("Made here")
    terminal.close()
    assert counted(tmp_path) == pytest.approx(100, abs=40)
