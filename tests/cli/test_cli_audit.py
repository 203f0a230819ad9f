"""`sfumato audit`: plans held to their price on made-up rows. Data and ledger stay closed, and a bug ends with 9."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.progress import Progress

from sfumato import audit, bounds
from sfumato.audit import shipped
from sfumato.audit.claims import claims_of
from sfumato.audit.results import Found, Point, Result
from sfumato.audit.scripted import TooManyError
from sfumato.cli import progress
from sfumato.cli.screen import Screen
from sfumato.noise import SeededBits
from sfumato.plan import Plan
from sfumato.private import Private
from sfumato.query import running
from sfumato.report import Report
from sfumato.units import Unit
from sfumato_referee.mutants.noisy import HalfNoise
from sfumato_referee.mutants.queries import by_rows
from tests.cli.counting_house import refused, told
from tests.cli.front import BY_WARD, YAML, make_project, sfumato
from tests.report.reading import document, page

LIST = f"""\
sfumato-plan: 1
releases:
  - name: by_ward
    sql: {BY_WARD}
  - name: "all [bold]of[/bold] them"
    sql: SELECT COUNT(*) AS n FROM visits
    epsilon: 0.2
"""


def result(plan: Plan[Any, Any], share: float = 0.5, **more: Any) -> Result:
    """What an audit might find: so much of the claim at every delta."""
    points = tuple(Point(delta, claim, share * claim) for delta, claim in sorted(claims_of(plan).items()))
    way = Found("histogram", points[0].shown, points[0].claim, points[0].delta, "output[0] >= 3 ->", share > 1)
    said: dict[str, Any] = {
        "kind": type(plan).__name__, "hash": None, "epsilon": way.epsilon, "claim": way.claim, "delta": way.delta,
        "pair": "[ward='east'] added; beside it no unit", "event": way.words, "curve": points, "found": (way,),
        "runs": 100, "pairs": 7, "false_alarm": 1e-6, "seconds": 0.1, "evidence": {"kind": type(plan).__name__},
    }  # fmt: skip
    return Result(**{**said, **more})


class Checks:
    """Stands for audit.check: keeps what it was asked, and finds what it is told to."""

    def __init__(self, find: Callable[[Plan[Any, Any]], Result] = result) -> None:
        self.find, self.asked = find, list[tuple[Plan[Any, Any], dict[str, Any]]]()

    def __call__(self, plan: Plan[Any, Any], **asked: Any) -> Result:
        self.asked.append((plan, asked))
        asked["progress"](0.5, "counting")
        return self.find(plan)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    made = Checks()
    monkeypatch.setattr(audit, "check", made, raising=False)
    return made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a list, whose data is gone: an audit does without."""
    folder = make_project(tmp_path / "p")
    (folder / "plan.yaml").write_text(LIST, encoding="utf-8")
    for each in (folder / "data").iterdir():
        each.unlink()

    def opened(*_: Any) -> None:
        raise AssertionError("the data was opened")

    monkeypatch.setattr(Private, "_open", opened)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_every_release_is_audited_without_data_and_the_ledger_stays_as_it_is(project: Path, checks: Checks) -> None:
    before = files(project)
    found = told("audit", "plan.yaml", "--seed", "7", "--false-alarm", "1e-4", at=project)
    assert [each["name"] for each in found["plans"]] == ["by_ward", "all [bold]of[/bold] them"]
    assert found["holds"] and {each["verdict"] for each in found["plans"]} == {"within"}
    assert files(project) == before
    for _, asked in checks.asked:
        assert asked["false_alarm"] == 5e-5, "the chance is divided over the plans"
        assert isinstance(asked["bits"], SeededBits) and 0 < asked["minutes"] <= 1
    assert [plan.hash for plan, _ in checks.asked] == [each["hash"] for each in found["plans"]]
    (project / "budget.ledger").unlink()
    assert told("audit", "plan.yaml", "--runs", "500", at=project)["holds"], "nor is a ledger needed"
    assert checks.asked[-1][1]["runs"] == 500 and checks.asked[-1][1]["bits"] is None


def test_the_screen_says_what_was_proven_and_what_that_proves(project: Path, checks: Checks) -> None:
    ran = sfumato("audit", "plan.yaml", at=project)
    assert (ran.code, ran.err) == (0, "")
    for text in ("by_ward", "50 %", "within", "[ward='east'] added", "output[0] >= 3", "everything one patient",
                 "100 on each side; 7 pairs", "no proof that the claim holds", "all [bold]of[/bold] them"):  # fmt: skip
        assert text in ran.out, text
    assert "NOT ALL HELD" not in ran.out


def test_a_look_that_shows_nothing_says_so_and_what_is_known_exactly_is_told(project: Path, checks: Checks) -> None:
    ran = sfumato("audit", "plan.yaml", at=project)
    assert "nothing by samples yet" not in ran.out
    exactly = Found("exact loss", 0.4, 0.4, 1e-6, "the exact delta at epsilon = 0.4 is 1e-06", False)
    checks.find = lambda plan: result(plan, 0.0, found=(exactly,))
    ran = sfumato("audit", "plan.yaml", at=project)
    assert ran.code == 0 and "nothing by samples yet" in ran.out and "exactly  the exact delta" in ran.out


def test_the_bar_names_the_plan_and_the_phase(project: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.StringIO()
    console = Screen(file=held, force_terminal=True, color_system=None, width=120)
    monkeypatch.setattr(progress, "_terminal", lambda: console)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    shown: list[tuple[float, str]] = []
    drawn = Progress.update

    def update(self: Progress, task: Any, **how: Any) -> None:
        shown.append((how["completed"], how["description"]))
        drawn(self, task, **how)

    monkeypatch.setattr(Progress, "update", update)
    assert sfumato("audit", "plan.yaml", at=project).code == 0
    assert shown == [
        (0, "by_ward: begins"),
        (500, "by_ward: counting"),
        (1000, "all [bold]of[/bold] them: begins"),
        (1500, "all [bold]of[/bold] them: counting"),
    ]


def test_a_claim_that_is_broken_ends_with_9_and_the_report_names_it(project: Path, checks: Checks) -> None:
    checks.find = lambda plan: result(plan, 2.0 if float(plan.price()) < 0.3 else 0.5)
    found = told("audit", "plan.yaml", "--out", "report.json", "--evidence", "kept", at=project, code=9)
    assert not found["holds"] and [each["verdict"] for each in found["plans"]] == ["within", "broken"]
    written = json.loads((project / "report.json").read_text(encoding="utf-8"))
    same = ("title", "made", "command", "seed", "holds", "proves", "plans")
    assert {name: written[name] for name in same} == {name: found[name] for name in same}
    document(Report(written))
    assert len(found["evidence"]) == 2 and all((project / each).is_file() for each in found["evidence"])
    ran = sfumato("audit", "plan.yaml", "--out", "report.html", at=project)
    assert ran.code == 9 and "NOT ALL HELD" in ran.out and "broken" in ran.out
    html = (project / "report.html").read_text(encoding="utf-8")
    assert "Not all held" in html and "all [bold]of[/bold] them" in html and "sfumato audit plan.yaml" in html


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (ModuleNotFoundError("no", name="duckdb"), ".[sql]"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero"),
        (TooManyError("every run failed"), "every run failed"),
    ],
    ids=["package", "fault", "ours"],
)
def test_what_could_not_run_is_not_passed(project: Path, checks: Checks, problem: Exception, says: str) -> None:
    def fails(plan: Plan[Any, Any]) -> Result:
        raise problem

    checks.find = fails
    found = told("audit", "plan.yaml", "--out", "report.html", at=project, code=9)
    assert {each["verdict"] for each in found["plans"]} == {"could not run"}
    assert says in found["plans"][0]["problem"] and says in sfumato("audit", "plan.yaml", at=project).out


def test_files_that_are_there_are_not_lost(project: Path, checks: Checks) -> None:
    (project / "report.html").write_text("mine", encoding="utf-8")
    assert "would be lost" in refused("audit", "plan.yaml", "--out", "report.html", at=project, code=3).err
    assert (project / "report.html").read_text(encoding="utf-8") == "mine" and not checks.asked
    assert sfumato("audit", "plan.yaml", "--out", "report.html", "--overwrite", at=project).code == 0
    assert "no ending" in refused("audit", "plan.yaml", "--out", "report.pdf", at=project, code=2).err
    assert "folder" in refused("audit", "plan.yaml", "--out", "no/report.html", at=project, code=3).err
    assert "sfumato.yaml" in refused("audit", "plan.yaml", "--evidence", "sfumato.yaml", at=project, code=3).err


def test_evidence_that_is_there_is_not_lost_and_no_audit_is_lost_for_it(project: Path, checks: Checks) -> None:
    """It used to be seen only after the audit had run, which then ended without a report."""
    found = told("audit", "plan.yaml", "--evidence", "kept", at=project)
    before = files(project)
    checks.asked.clear()
    told_of = refused("audit", "plan.yaml", "--evidence", "kept", "--out", "report.json", at=project, code=3)
    assert "would be lost" in told_of.err and not checks.asked and files(project) == before
    assert told("audit", "plan.yaml", "--evidence", "kept", "--overwrite", at=project)["evidence"] == found["evidence"]


def test_plans_of_the_same_name_have_files_of_their_own(project: Path, checks: Checks) -> None:
    found = told("audit", "plan.yaml", "./plan.yaml", "--evidence", "kept", at=project)
    assert len(set(found["evidence"])) == len(found["plans"]) == 4
    assert all((project / each).is_file() for each in found["evidence"])


def test_no_report_goes_over_what_the_project_lives_by(tmp_path: Path, checks: Checks) -> None:
    folder = make_project(tmp_path / "p", text=YAML.replace("budget.ledger", "budget.json"))
    (folder / "plan.yaml").write_text(LIST, encoding="utf-8")
    before = files(folder)
    told = refused("audit", "plan.yaml", "--out", "budget.json", "--overwrite", at=folder, code=3)
    assert "of the project itself" in told.err and not checks.asked and files(folder) == before


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "--shipped"),
        (("nope.yaml",), 3, "nope.yaml"),
        (("sfumato.yaml",), 2, "sfumato audit plan.yaml"),
        (("plan.yaml", "--minutes", "0"), 2, "--minutes"),
        (("plan.yaml", "--minutes", "nan"), 2, "--minutes"),
        (("plan.yaml", "--minutes", "1", "--runs", "500"), 2, "one of the two"),
        (("plan.yaml", "--runs", "3"), 2, "--runs"),
        (("plan.yaml", "--false-alarm", "1"), 2, "--false-alarm"),
        (("plan.yaml", "--seed", "-1"), 2, "--seed"),
        (("--shipped", "laplac"), 2, "did you mean Laplace"),
        (("--reproduce", "plan.yaml"), 3, "no evidence"),
        (("--reproduce", "nope.json"), 3, "nope.json"),
        (("--reproduce", "kept.json", "--out", "report.html"), 2, "--out is for an audit"),
        (("--reproduce", "kept.json", "--minutes", "1"), 2, "--minutes is for an audit"),
        (("--reproduce", "kept.json", "--verify"), 2, "--verify is for an audit"),
        (("kept/by_ward-1a2b3c4d.json",), 2, "--reproduce kept/by_ward-1a2b3c4d.json"),
        (("data/visits.csv",), 2, "plans stand in YAML"),
        (("queries/by_ward.sql",), 2, "plans stand in YAML"),
        (("nowhere/plan.yaml",), 3, "docs/project-file.md"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_asked_wrongly_is_refused(
    project: Path, checks: Checks, words: tuple[str, ...], code: int, says: str
) -> None:
    assert says in refused("audit", *words, at=project, code=code).err
    assert not checks.asked


def test_a_wrong_list_is_told_by_its_lines(project: Path, checks: Checks) -> None:
    (project / "plan.yaml").write_text(LIST.replace("AVG(cost)", "AVG(cots)"), encoding="utf-8")
    assert "plan.yaml:4" in refused("audit", "plan.yaml", at=project, code=4).err


def test_verification_and_promises_are_asked_for(
    tmp_path: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = told("audit", "--shipped", "exponential", "--verify", "--promises", at=tmp_path)["plans"]
    assert one["verified"]["verdict"] == "holds" and one["verified"]["share"] > 0.9
    assert "sensitivity" in [promise["promise"] for promise in one["promises"]]

    def too_many(*_: Any, **__: Any) -> None:
        raise TooManyError("a million outcomes")

    monkeypatch.setattr(audit, "verify", too_many, raising=False)
    (one,) = told("audit", "--shipped", "laplace", "--verify", at=tmp_path)["plans"]
    assert (one["verdict"], one["verified"]) == ("within", None) and "a million" in one["unverified"]
    assert "a million outcomes" in sfumato("audit", "--shipped", "laplace", "--verify", at=tmp_path).out


def test_promises_of_a_query_are_those_of_the_table_that_it_reads(
    project: Path, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks of check_plan make up one table, and projects have several."""
    seen: list[Plan[Any, Any]] = []

    def checked(plan: Plan[Any, Any]) -> Any:
        seen.append(plan)
        return SimpleNamespace(passed=(("noise", "6 words a run"),))

    monkeypatch.setattr(audit, "check_plan", checked, raising=False)
    found = told("audit", "plan.yaml", "--promises", at=project)
    assert [list(plan.schema.tables) for plan in seen] == [["visits"]] * 2  # type: ignore[attr-defined]
    assert all(each["promises"] for each in found["plans"])
    joined = LIST.replace("FROM visits\n", "FROM visits JOIN wards USING (ward)\n")
    (project / "plan.yaml").write_text(joined, encoding="utf-8")
    found = told("audit", "plan.yaml", "--promises", at=project, code=9)
    assert [each["verdict"] for each in found["plans"]] == ["within", "could not run"]
    assert "several tables" in found["plans"][1]["problem"]


# with audits that are none but true


def test_a_shipped_plan_with_a_planted_bug_ends_with_9(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = HalfNoise(query=bounds.count(Unit()), epsilon=1)
    monkeypatch.setitem(shipped.PLANS, "Laplace", lambda: half)
    effort = ("--runs", "3000", "--seed", "1")
    found = told(
        "audit", "--shipped", "Laplace", *effort, "--verify", "--promises", "--out", "r.html", at=tmp_path, code=9
    )
    (one,) = found["plans"]
    assert one["verdict"] == "broken" and one["verified"]["verdict"] == "broken" and one["hash"] is None
    assert "exact" in {way["way"].partition(" ")[0] for way in one["shown"]["ways"] if way["broken"]}
    assert one["broken_promise"] is not None and "HalfNoise fails" in one["broken_promise"]
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Not all held" in html and "HalfNoise" in html


def test_the_same_seed_and_runs_find_the_same(tmp_path: Path) -> None:
    def once(seed: str) -> Any:
        (one,) = told("audit", "--shipped", "Geometric", "--runs", "800", "--seed", seed, at=tmp_path)["plans"]
        return {name: value for name, value in one["shown"].items() if name != "seconds"}

    assert once("3") == once("3") != once("4")


def test_evidence_is_counted_again(tmp_path: Path) -> None:
    found = told("audit", "--shipped", "Laplace", "--runs", "2000", "--seed", "1", "--evidence", "kept", at=tmp_path)
    (shown,) = [each["shown"] for each in found["plans"]]
    again = told("audit", "--reproduce", found["evidence"][0], "--seed", "5", at=tmp_path)
    assert not again["broken"] and again["event"] == shown["event"] and again["claim"] == shown["claim"]
    assert again["epsilon"] > 0.3 and math.isclose(again["claim"], 1.0)
    assert shown["tables"][0]["columns"] == ["age", "id"] and shown["counts"][0]["runs"] == 2000
    ran = sfumato("audit", "--reproduce", found["evidence"][0], "--runs", "200", at=tmp_path)
    assert ran.code == 0 and "within the claim" in ran.out
    damaged = json.loads(Path(tmp_path, found["evidence"][0]).read_text()) | {"view": 3}
    (tmp_path / "damaged.json").write_text(json.dumps(damaged), encoding="utf-8")
    assert "damaged" in refused("audit", "--reproduce", "damaged.json", at=tmp_path, code=3).err


ONE = "sfumato-plan: 1\nreleases:\n  - {name: all, sql: SELECT COUNT(*) AS n FROM visits, epsilon: 1}\n"


@pytest.mark.slow
def test_a_planted_bug_in_queries_is_found_by_way_of_a_list(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "plan.yaml").write_text(ONE, encoding="utf-8")
    before = files(project)
    answer = running.answer  # which one run and thousands at once share
    monkeypatch.setattr(running, "answer", lambda front, *rest: answer(by_rows(front), *rest))
    (wrong,) = told("audit", "plan.yaml", "--runs", "400", "--seed", "2", at=project, code=9)["plans"]
    assert wrong["verdict"] == "broken" and wrong["shown"]["epsilon"] > wrong["shown"]["claim"]
    assert files(project) == before


@pytest.mark.slow
def test_an_honest_list_is_audited_in_earnest(project: Path) -> None:
    before = files(project)
    found = told("audit", "plan.yaml", "--runs", "150", "--seed", "2", at=project)
    assert found["holds"] and all(each["shown"]["pairs"] >= 6 for each in found["plans"])
    assert files(project) == before


def test_the_page_of_a_true_audit_is_whole(tmp_path: Path) -> None:
    told("audit", "--shipped", "Gaussian", "--runs", "400", "--seed", "1", "--out", "r.json", at=tmp_path)
    report = Report(json.loads((tmp_path / "r.json").read_text(encoding="utf-8")))
    document(report)
    shown = page(report)
    assert "svg" in shown.tags and "sfumato audit --shipped Gaussian --runs 400 --seed 1" in shown.text
