"""A project from its file to a release: what it builds, its defaults, its ledger, its accounts, its alert."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")
pytest.importorskip("duckdb")

import sfumato as sf
from sfumato import events
from sfumato.errors import BudgetError, LedgerError
from sfumato.ledger import About
from sfumato.project import Project, ProjectError, open_project
from sfumato.query import Limits
from sfumato.sources import Csv, DuckDBTable, Parquet

TEXT = """\
sfumato: 1
name: hospital
unit: user:patient
version: "2026-11"
tables:
  visits:
    source: data/visits.csv
    unit: patient
    columns:
      patient: key
      ward: {type: category, values: [east, north]}
      cost: {type: real, lower: 0, upper: 1000, nulls: 10.5}
      day: {type: date, lower: 2026-01-01, upper: 2026-12-31}
  wards:
    source: data/wards.csv
    public: true
    columns: {ward: {type: category, values: [east, north]}, beds: {type: whole, lower: 0, upper: 500}}
limits: {rows: 8, keys: 2}
engine: {threads: 1, memory: 1.5GB, seconds: 600}
ledger: {place: budget.ledger, anchor: anchor/budget.anchor, key: budget.key, principal: bea}
privacy:
  target_epsilon: 0.5
  target_delta: 1e-7
  max_grad_norm: 1.0
  sample_rate: 0.01
  steps: 1000
budget:
  total: {epsilon: 3, delta: 1e-6}
  allocations: {training: 0.5, evaluation: {epsilon: 0.9, delta: 3e-7}, tuning: 0.2}
  alert_threshold: 0.8
about: {name: Visits, curators: [Hospital], changing: true}
"""
QUERY = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    rows = [f"p{i % 400},{('east', 'north')[i % 2]},{i % 200},2026-03-{1 + i % 28:02}" for i in range(1200)]
    (tmp_path / "data" / "visits.csv").write_text("patient,ward,cost,day\n" + "\n".join(rows) + "\n")
    (tmp_path / "data" / "wards.csv").write_text("ward,beds\neast,10\nnorth,20\n")
    (tmp_path / "sfumato.yaml").write_text(TEXT)
    return tmp_path


def changed(folder: Path, *changes: tuple[str, str]) -> Project:
    text = (folder / "sfumato.yaml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "sfumato.yaml").write_text(text)
    return open_project(folder)


def test_everything_that_the_file_says(folder: Path) -> None:
    project = open_project(folder / "sfumato.yaml")
    assert (project.name, project.account, project.folder) == ("hospital", "hospital", folder)
    assert project.unit == sf.Unit("user:patient")
    visits = sf.schema.Table(
        {
            "patient": sf.schema.key(),
            "ward": sf.schema.category(["east", "north"]),
            "cost": sf.schema.real(0, 1000, nulls=10.5),
            "day": sf.schema.date("2026-01-01", "2026-12-31"),
        },
        unit="patient",
    )
    wards = sf.schema.Table(
        {"ward": sf.schema.category(["east", "north"]), "beds": sf.schema.whole(0, 500)}, private=False
    )
    assert project.schema == sf.Schema({"visits": visits, "wards": wards})
    assert project.private.address == "hospital@2026-11"
    assert project.limits == Limits(rows=8, keys=2)
    assert project.budget == sf.Budget(epsilon=3, delta=1e-6)
    assert project.allocations == {
        "training": sf.Budget(epsilon=1.5, delta=5e-7),
        "evaluation": sf.Budget(epsilon=0.9, delta=3e-7),
        "tuning": sf.Budget(epsilon=0.6, delta=2e-7),
    }
    assert project.about == About(name="Visits", curators=("Hospital",), changing=True)
    assert project.alert_threshold == 0.8
    assert "hospital" in repr(project) and "patient" in repr(project)


def test_the_shortest_file(tmp_path: Path) -> None:
    (tmp_path / "sfumato.yaml").write_text(
        "{sfumato: 1, name: n, unit: row, tables: {t: {source: t.csv, columns: {a: flag}}},\n"
        " budget: {total: {rho: 1/9}}}"
    )
    project = open_project(tmp_path)
    assert project.unit == sf.Unit()
    assert project.budget == sf.Budget(rho=Fraction(1, 9))
    assert (project.limits, project.alert_threshold, project.allocations) == (None, None, {})
    assert project.about == About()
    with pytest.raises(ProjectError, match="how much to spend"):
        project.plan("SELECT COUNT(*) AS n FROM t")


def test_a_release_from_end_to_end(folder: Path) -> None:
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        project.open_accounts(ledger)
        curator = project.curator(ledger, "evaluation")
        plan = project.plan(QUERY)
        assert "fits the budget" in str(curator.quote(plan))
        release = curator.release(plan, note="test")
        answer = {row["ward"]: row["n"] for row in release.value.rows}
        assert set(answer) == {"east", "north"}
        # 600 each; half-widths at 95 % are two standard deviations, so these are twenty of them
        widths = release.value.half_width("n", 0.05)
        assert all(abs(n - 600) < 10 * width for n, width in zip(answer.values(), widths, strict=True))
        again = open_project(folder).curator(ledger, "evaluation").release(plan)
        assert again.value.rows == release.value.rows
        assert ledger.verify().ok
    assert (folder / "budget.key").stat().st_mode & 0o077 == 0
    assert (folder / "anchor" / "budget.anchor").exists()
    with project.ledger(read_only=True) as ledger:
        assert ledger.statement("hospital").releases == 1
        assert ledger.statement("evaluation").releases == 1
        assert ledger.statement("training").releases == 0


def test_defaults_only_where_nobody_says_more(folder: Path) -> None:
    project = open_project(folder)
    usual = project.plan(QUERY)
    assert (usual.epsilon, usual.delta, usual.limits) == (Fraction(1, 2), Fraction(1, 10**7), Limits(rows=8, keys=2))
    asked = project.plan(QUERY, epsilon=0.25, limits={"rows": 3}, rho=None)
    assert (asked.epsilon, asked.delta, asked.limits) == (Fraction(1, 4), Fraction(1, 10**7), Limits(rows=3, keys=2))
    pure = project.plan(QUERY, delta=0)
    assert (pure.epsilon, pure.delta) == (Fraction(1, 2), 0)
    rho = project.plan(QUERY, rho=0.01)
    assert (rho.rho, rho.epsilon, rho.delta) == (Fraction(1, 100), None, 0)
    written = project.plan(f"-- sfumato: epsilon=0.1, rows=5\n{QUERY}")
    assert (written.epsilon, written.limits) == (Fraction(1, 10), Limits(rows=5, keys=2))
    whole = project.plan(QUERY, limits=Limits(rows=2))
    assert whole.limits == Limits(rows=2)
    assert project.plan(QUERY, limits="advise").limits is None
    accurate = project.plan(QUERY, accuracy={"n": 30})
    assert accurate.epsilon is None and accurate.rho is not None


def test_accounts_are_made_once(folder: Path) -> None:
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        first = project.open_accounts(ledger)
        assert len(first.opened) == 4 and not first.differs
        entries = ledger.statement("hospital").number
        again = project.open_accounts(ledger)
        assert list(again) == []
        assert ledger.statement("hospital").number == entries
        assert ledger.statement("training").parent == "hospital"
        assert ledger.statement("hospital").unit == str(project.unit)
    with project.ledger(create=True) as ledger:  # create makes nothing anew
        assert ledger.statement("hospital").number >= entries


def test_differing_limits_are_told_and_never_changed(folder: Path) -> None:
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        project.open_accounts(ledger)
    more = changed(folder, ("{epsilon: 3, delta: 1e-6}", "{epsilon: 4, delta: 1e-6}"), ("tuning: 0.2", "extra: 0.1"))
    with more.ledger() as ledger:
        told = more.open_accounts(ledger)
        assert [each.split()[1] for each in told.opened] == ["'extra'"]
        assert told.differs == (
            "account 'hospital' has epsilon = 3, delta = 1e-06 in the ledger, but epsilon = 4, delta = 1e-06 in the "
            "file: the ledger's holds",
            "account 'training' has epsilon = 1.5, delta = 5e-07 in the ledger, but epsilon = 2, delta = 5e-07 in the "
            "file: the ledger's holds",
        )
        assert ledger.statement("hospital").limit == sf.Budget(epsilon=3, delta=1e-6)
    other = changed(folder, ("{epsilon: 4, delta: 1e-6}", "{epsilon: 3, delta: 1e-6}"))
    gdp = changed(folder, ("  max_grad_norm", "  accounting_mode: gdp\n  max_grad_norm"))
    unit = changed(
        folder, ("  accounting_mode: gdp\n", ""), ("unit: user:patient", "unit: {of: user:patient, group: 2}")
    )
    with project.ledger() as ledger:
        assert [each.split()[1] for each in other.open_accounts(ledger).differs] == ["'extra'"]
        assert "other gauges" in gdp.open_accounts(ledger).differs[0]
        assert "protects [" in unit.open_accounts(ledger).differs[0]
        ledger.close_account("training", reason="over")
        assert other.open_accounts(ledger).differs[0] == "account 'training' is closed in the ledger"


def test_an_account_of_another_parent_is_told(folder: Path) -> None:
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        ledger.open_account("training", sf.Budget(epsilon=1.5, delta=5e-7))
        told = project.open_accounts(ledger)
        assert len(told.opened) == 3
        assert told.differs == ("account 'training' stands below no other in the ledger, not below 'hospital'",)


def test_the_ledger_is_not_made_by_accident(folder: Path) -> None:
    project = open_project(folder)
    for read_only in (True, False):
        with pytest.raises(ProjectError, match="there is no ledger yet") as caught:
            project.ledger(read_only=read_only)
        assert caught.value.line == 20
    assert not (folder / "budget.ledger").exists() and not (folder / "budget.key").exists()


def test_a_lost_key_is_not_replaced(folder: Path) -> None:
    project = open_project(folder)
    project.ledger(create=True).shut()
    (folder / "budget.key").unlink()
    with pytest.raises(LedgerError, match="key"):
        project.ledger(create=True)
    assert not (folder / "budget.key").exists()
    with project.ledger(read_only=True) as ledger:  # whoever only reads needs none
        assert ledger.verify().ok


def test_who_pays(folder: Path) -> None:
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        project.open_accounts(ledger)
        assert {entry.by for entry in ledger.history(kind="open account")} == {"bea"}
    with project.ledger(principal="ana") as ledger:
        project.curator(ledger).release(project.plan(QUERY))
        assert {entry.by for entry in ledger.history(kind="spend")} == {"ana"}
        with pytest.raises(BudgetError, match="no account 'nobody'"):
            project.curator(ledger, "nobody").release(project.plan(QUERY, epsilon=0.1))


def test_the_alert(folder: Path) -> None:
    project = changed(folder, ("{epsilon: 3, delta: 1e-6}", "{epsilon: 3}"), ("3e-7", "0"))
    ledger = sf.MemoryLedger({"hospital": project.budget})
    curator = project.curator(ledger)
    assert project.alert(ledger) is None
    curator.release(project.plan(QUERY, epsilon=2.39, delta=0))
    assert project.alert(ledger) is None
    curator.release(project.plan(QUERY, epsilon=0.01, delta=0))  # exactly four fifths
    assert project.alert(ledger) == "80 % of the budget of 'hospital' is spent; the file asks to be told from 80 % on"


def test_missing_files_matter_only_when_asked(folder: Path) -> None:
    (folder / "data" / "wards.csv").unlink()
    project = open_project(folder)
    assert project.missing() == ("wards",)
    assert project.plan(QUERY).epsilon
    with pytest.raises(ProjectError, match=r"^sfumato\.yaml:15: tables\.wards\.source: there is no file 'wards\.csv'"):
        project.need_data()
    (folder / "data" / "visits.csv").unlink()
    with pytest.raises(ProjectError) as caught:
        project.need_data()
    assert (caught.value.what, caught.value.line) == ("sfumato.yaml has 2 faults", 7)


@pytest.mark.parametrize(
    ("mode", "members"),
    [("auto", 4), ("pure", 1), ("zcdp", 3), ("gdp", 3), ("rdp", 4)],
)
def test_modes_are_gauges(folder: Path, mode: str, members: int) -> None:
    project = changed(folder, ("  max_grad_norm", f"  accounting_mode: {mode}\n  max_grad_norm"))
    assert len(project.budget.members()) == members
    assert sum(share for _, share in project.budget.shares) == 1
    assert all(len(part.members()) == members for part in project.allocations.values())
    if mode == "auto":
        assert project.budget == sf.Budget(epsilon=3, delta=1e-6)


def test_training(folder: Path) -> None:
    project = open_project(folder)
    privacy = project.privacy
    assert privacy.target == (Fraction(1, 2), Fraction(1, 10**7))
    assert privacy.event(1.1) == events.Repeat(events.Poisson(events.Gaussian(multiplier=1.1), 0.01), 1000)
    with pytest.raises(ProjectError, match=r"sfumato\.yaml:21: privacy: noise_multiplier is auto"):
        privacy.event()
    fixed = changed(folder, ("  max_grad_norm", "  noise_multiplier: 0.9\n  max_grad_norm"), ("0.01", "1"))
    assert fixed.privacy.event() == events.Repeat(events.Gaussian(multiplier=0.9), 1000)
    short = changed(folder, ("  sample_rate: 1\n  steps: 1000\n", ""), ("  target_delta: 1e-7\n", ""))
    with pytest.raises(ProjectError, match="needs sample_rate and steps: add sample_rate and steps"):
        short.privacy.event(1)
    with pytest.raises(ProjectError, match="needs target_delta"):
        _ = short.privacy.target


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("data/visits.csv", Csv("data/visits.csv")),
        ("data/visits.TSV", Csv("data/visits.TSV", delimiter="\t")),
        ("data/*.parquet", Parquet("data/*.parquet")),
        ("data/all.duckdb", DuckDBTable("data/all.duckdb")),
        ("{path: data/all.duckdb, table: v}", DuckDBTable("data/all.duckdb", "v")),
        (
            '{path: v.csv, delimiter: ";", quote: "", header: false, encoding: latin-1, "null": NA}',
            Csv("v.csv", delimiter=";", quote="", header=False, encoding="latin-1", null="NA"),
        ),
        (
            '{path: v.data, trim: true, decimal: ",", thousands: ".", dates: "%d.%m.%Y"}',
            Csv("v.data", trim=True, decimal=",", thousands=".", dates=("%d.%m.%Y",)),
        ),
        ('{path: v.txt, dates: {day: ["%d.%m.%Y", "%Y"]}}', Csv("v.txt", dates={"day": ("%d.%m.%Y", "%Y")})),
    ],
)
def test_sources_are_relative_to_the_file(folder: Path, written: str, made: Any) -> None:
    quoted = f'"{written}"' if "*" in written else written
    project = changed(folder, ("source: data/visits.csv", f"source: {quoted}"))
    found = project.sources["visits"]
    assert type(found) is type(made)
    assert found.path == str(folder / made.path)
    assert {**vars(found), "path": ""} == {**vars(made), "path": ""}


@pytest.mark.parametrize("size", ["1e400", "-1e400", "1e-400", "0", "-0", "1/7"])
def test_every_number_of_any_size_is_taken_or_refused(folder: Path, size: str) -> None:
    text = TEXT.replace("sample_rate", "noise_multiplier: 1.1\n  sample_rate").replace(
        "tuning: 0.2", "tuning: {rho: 1}"
    )
    numbers = list(re.finditer(r"(?<=: )[0-9.]+(e-[0-9]+)?(?=[,}\n])", text))
    assert len(numbers) > 20
    for number in numbers:
        (folder / "sfumato.yaml").write_text(text[: number.start()] + size + text[number.end() :])
        with contextlib.suppress(ProjectError):
            open_project(folder)


def test_a_project_from_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    project = open_project()
    monkeypatch.chdir(folder.parent)
    assert project.missing() == ()
    project.ledger(create=True).shut()
    assert (folder / "budget.ledger").exists()


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://bea:s3cret@db.example.org/ledger",
        "postgresql://bea:s3cret@1@db.example.org:5432/ledger?sslmode=require",
        "postgresql://db.example.org/ledger?user=bea&password=a@s3cret",
    ],
)
def test_a_password_is_not_shown(folder: Path, place: str) -> None:
    project = changed(folder, ("place: budget.ledger", f'place: "{place}"'))
    assert project.place.place == place
    assert str(project.place) == "postgresql://db.example.org/ledger"
    assert "s3cret" not in repr(project) + repr(project.place)


@pytest.mark.slow
def test_reading_a_project_needs_no_command_line() -> None:
    code = (
        "import sys; sys.modules.update(typer=None, rich=None); import sfumato; sfumato.open_project; "
        "print(sorted({'typer', 'rich', 'duckdb', 'torch'} & {n for n, m in sys.modules.items() if m}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_its_packages_it_says_what_to_install(folder: Path) -> None:
    code = (
        "import sys; sys.modules.update(yaml=None); import sfumato\n"
        f"try: sfumato.open_project({json.dumps(str(folder))})\n"
        "except sfumato.errors.SfumatoError as error: print(type(error).__name__, error.fix)"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import sfumato.errors\n" + code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "ProjectError pip install '.[cli]' in a checkout of sfumato"


def test_a_lost_ledger_is_not_replaced_while_its_anchor_is_there(folder: Path) -> None:
    """A new one would forget what was spent; and nothing half made stays behind."""
    project = open_project(folder)
    with project.ledger(create=True) as ledger:
        project.open_accounts(ledger)
    place = Path(project.place.place)
    kept = place.read_bytes()
    place.unlink()
    with pytest.raises(ProjectError, match="anchor is there") as caught:
        project.ledger(create=True)
    assert "bring the ledger back" in caught.value.fix and not place.exists()
    place.write_bytes(kept)
    with project.ledger() as ledger:
        assert ledger.verify().ok
