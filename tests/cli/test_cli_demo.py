"""The demo does all that it says, in a folder of its own, and says so only if it happened."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import duckdb
import jsonschema
import pytest

from sfumato.cli.work import showing
from sfumato.noise import Noise, SeededBits
from sfumato.project import open_project
from tests.cli.front import sfumato, started
from tests.query.still import answered


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run in this process, which is quicker than a process for each."""
    monkeypatch.setattr(showing, "_run", lambda folder, words, _: sfumato(*words, at=Path.cwd() / folder).code)


def test_the_demo_runs_to_the_end(tmp_path: Path) -> None:
    out, err = (process := started("demo", at=tmp_path)).communicate(timeout=300)
    assert process.returncode == 0, out + err
    for step in showing.STEPS:
        assert step.about in out and step.typed in out
    assert "fits the budget" in out and "answered before: free" in out and "the ledger holds" in out
    assert "the budget of hospital is short; nothing was charged" in err and "(exit code 5; nothing was charged)" in out
    assert "All of it happened as said" in out
    assert max(map(len, re.findall(r"^\$ .*|^ {17}FROM.*", out, re.MULTILINE))) <= 80
    folder = tmp_path / "hospital-demo"
    page = (folder / "report-hospital.html").read_text(encoding="utf-8")
    assert "everything one patient ever contributed" in page
    answers = re.findall(r"^(\w+) +([\d,]+) ± ([\d,]+) +([\d,]+)$", out, re.MULTILINE)
    assert len(answers) == 5
    # Truths are outside of their bars by chance alone: one in twenty, and two half-widths off one in ten thousand.
    off = [
        abs(value - true) / bar
        for value, bar, true in ([float(x.replace(",", "")) for x in each[1:]] for each in answers)
    ]
    assert max(off) < 3 and sum(each > 1 for each in off) < 4, off
    with open_project(folder).ledger(read_only=True) as ledger:
        assert [each.state for each in ledger.releases()] == ["answered"] and ledger.verify().ok


@pytest.mark.slow
def test_its_bars_hold_the_truth(tmp_path: Path) -> None:
    """Counts and averages of the demo's own query, released forty times."""
    assert sfumato("init", ".", "--example", at=tmp_path).code == 0
    project = open_project(tmp_path)
    plan, tables = project.plan(showing.QUERY, unclip=True), {"visits": project.sources["visits"]}
    text = f"SELECT ward, COUNT(*), AVG(cost) FROM '{tmp_path / 'data' / 'visits.csv'}' GROUP BY ward"
    with duckdb.connect() as engine:
        truth = {ward: numbers for ward, *numbers in engine.sql(text).fetchall()}
    for place, name in enumerate(("n", "mean")):
        hits = []
        for seed in range(40):
            answer = answered(plan, tables, Noise(SeededBits(seed)))
            ends = zip(answer["ward"], answer.interval(name), strict=True)
            hits += [low <= truth[ward][place] <= high for ward, (low, high) in ends]
        assert sum(hits) / len(hits) >= 0.88, name  # nominal 0.95, of 200 that are not independent


@pytest.mark.slow
@pytest.mark.usefixtures("near")
def test_it_is_made_anew_over_an_older_one_and_what_to_try_next_works(tmp_path: Path) -> None:
    for _ in range(2):
        ran = sfumato("demo", "new", "--json", at=tmp_path)
        assert ran.code == 0, ran.out
        told = json.loads(ran.out)
        assert [step["code"] for step in told["steps"]] == [step.code for step in showing.STEPS]
    jsonschema.validate(told, json.loads(sfumato("schema", "demo", at=tmp_path).out))
    next_ones = [words for words, _ in showing.next_commands(Path("new")) if words.startswith("sfumato ")]
    assert len(next_ones) == 5
    for line in next_ones[:-1]:  # the last one asks questions
        ran = sfumato(*shlex.split(line)[1:], at=tmp_path / "new")
        assert ran.code == 0, ran.err
    assert (tmp_path / "new" / "out" / "by_ward.csv").is_file()
    with open_project(tmp_path / "new").ledger(read_only=True) as ledger:
        assert ledger.verify().ok
    assert sfumato("demo", "new", "--json", at=tmp_path).code == 0, "also over what was tried in it"


@pytest.mark.parametrize("foreign", ["mine.txt", "data/other.csv", "sfumato.yaml"])
def test_foreign_files_are_not_overwritten(tmp_path: Path, foreign: str) -> None:
    (tmp_path / "hospital-demo" / "data").mkdir(parents=True)
    (tmp_path / "hospital-demo" / foreign).write_text("mine", encoding="utf-8")
    ran = sfumato("demo", at=tmp_path)
    assert ran.code == 3 and "nothing is overwritten" in ran.err
    assert (tmp_path / "hospital-demo" / foreign).read_text(encoding="utf-8") == "mine"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


@pytest.mark.usefixtures("near")
def test_a_step_that_goes_wrong_ends_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (showing.STEPS[0], showing.DemoStep("An answer that is not there.", ("query", "SELECT nothing")))
    monkeypatch.setattr(showing, "STEPS", steps)
    ran = sfumato("demo", "--json", at=tmp_path)
    told = json.loads(ran.out)
    assert ran.code == 9 and told["code"] == 9 and "ended with 4, not with 0" in told["why"]


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("left_out", [3, 7])
def test_what_did_not_happen_is_not_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_out: int) -> None:
    """Without the query, or without the report, the ledger and the folder tell otherwise."""
    kept = tuple(step for place, step in enumerate(showing.STEPS) if place == 0 or place in {3, 7} - {left_out})
    monkeypatch.setattr(showing, "STEPS", kept)
    ran = sfumato("demo", "--json", at=tmp_path)
    assert ran.code == 9 and "did not do what it says" in ran.out
