"""What fails whatever the rows are costs nothing in the shell either: queries, lists of releases, trainings."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest

from sfumato.project import open_project
from tests.cli.clinic import YAML as CLINIC
from tests.cli.clinic import make_clinic, rows
from tests.cli.front import BY_WARD, SLOW, YAML, make_project, sfumato, started
from tests.cli.test_cli_run import entries
from tests.cli.test_cli_run_stopped import until_opened

LIST = f"sfumato-plan: 1\nreleases:\n  - {{name: wards, sql: '{BY_WARD}', epsilon: 0.1, delta: 1e-8}}\n"
PAID = ("spend", "hold", "draw", "open", "settle", "part")


def unpaid(folder: Path, *words: str, told: str) -> None:
    for _ in range(4):  # three that were charged had locked the account
        ran = sfumato(*words, at=folder)
        assert ran.code in (3, 4) and told in ran.err and "curator" not in ran.err, ran
    assert entries(folder, *PAID) == []


@pytest.mark.parametrize("words", [("query", BY_WARD), ("run", "plan.yaml", "--yes")], ids=["query", "run"])
def test_a_column_that_the_file_does_not_have_costs_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    (folder / "plan.yaml").write_text(LIST, encoding="utf-8")
    visits = folder / "data" / "visits.csv"
    header, _, cells = visits.read_text(encoding="utf-8").partition("\n")
    visits.write_text(f"{header.replace('cost', 'price')}\n{cells}", encoding="utf-8")
    unpaid(folder, *words, told="no column 'cost'")
    visits.write_text(f"{header}\n{cells}", encoding="utf-8")
    assert sfumato(*words, at=folder).code == 0


@pytest.mark.parametrize("suffix", ["parquet", "duckdb"])
@pytest.mark.parametrize("words", [("query", BY_WARD), ("run", "plan.yaml", "--yes")], ids=["query", "run"])
def test_nor_does_one_of_another_format(words: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    folder = make_project(tmp_path, text=YAML.replace("data/visits.csv", f"data/visits.{suffix}"))
    (folder / "plan.yaml").write_text(LIST, encoding="utf-8")
    file = folder / "data" / f"visits.{suffix}"
    file.write_text("patient,ward", encoding="utf-8")
    unpaid(folder, *words, told="visits")
    file.unlink()
    text = "SELECT patient, ward, day FROM read_csv('{}')".format(folder / "data" / "visits.csv")
    into = f"COPY ({text}) TO '{file}'" if suffix == "parquet" else f"CREATE TABLE visits AS {text}"
    with duckdb.connect(str(file) if suffix == "duckdb" else ":memory:") as engine:
        engine.execute(into)
    unpaid(folder, *words, told="no column 'cost'")


def test_a_training_whose_file_lost_a_column_costs_nothing(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path, CLINIC)
    (folder / "data" / "visits.csv").write_text(rows(800).replace("cost", "price", 1), encoding="utf-8")
    unpaid(folder, "train", "sfumato.yaml", told="no column 'cost'")


def test_a_key_that_the_category_does_not_have_costs_nothing(tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    ran = sfumato("query", BY_WARD, "--keys", "ward=nowhere", at=folder)
    assert ran.code == 2 and "values that ward can have: 'east', 'north', 'west'" in ran.err
    (folder / "plan.yaml").write_text(LIST.replace("epsilon", "keys: {ward: [nowhere]}, epsilon"), encoding="utf-8")
    assert "values that ward can have" in sfumato("run", "plan.yaml", "--yes", at=folder).err
    assert entries(folder, *PAID) == []


def test_ctrl_c_in_the_engine_is_paid_for_and_counts_towards_no_lock(tmp_path: Path) -> None:
    folder = make_project(tmp_path, wards=900)
    with started("query", SLOW, "--epsilon", "0.1", at=folder) as process:
        until_opened(folder, 1, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "the charge stays" in err
    with open_project(folder).ledger() as ledger:
        assert [entry.outcome for entry in ledger.history(kind="settle")] == ["interrupted"]
        assert ledger.statement("hospital").failures == 0
