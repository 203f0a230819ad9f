"""`sfumato audit` of a training: canaries in one training on made-up records; one step is sampled where time allows."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato import Unit, audit, bounds
from sfumato.audit import models
from sfumato.cli.work import audit_training
from sfumato.errors import ArgumentError
from sfumato.mechanisms import Laplace
from tests.cli.clinic import YAML, make_clinic
from tests.cli.counting_house import refused, told
from tests.cli.front import sfumato
from tests.cli.test_cli_audit import Checks, files

pytest.importorskip("torch")


class Canaries:
    """Stands for models.one_run."""

    def __init__(self) -> None:
        self.broken, self.asked = False, list[tuple[Any, Any, dict[str, Any]]]()
        self.problem: Exception | None = None

    def __call__(self, plan: Any, records: Any, **how: Any) -> Any:
        self.asked.append((plan, records, how))
        if self.problem is not None:
            raise self.problem
        return SimpleNamespace(
            canaries=how["canaries"], broken=self.broken, epsilon=4.0 if self.broken else 0.5, claim=3.0, delta=1e-6,
            facts=lambda: [("guesses", "42 of 50 right")], points=((0.01, 0.05), (1.0, 1.0)),
        )  # fmt: skip


@pytest.fixture
def canaries(monkeypatch: pytest.MonkeyPatch) -> Canaries:
    made = Canaries()
    monkeypatch.setattr(models, "one_run", made, raising=False)
    monkeypatch.setattr(audit_training, "_affordable", lambda step, seconds: 50)
    return made


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    made = Checks()
    monkeypatch.setattr(audit, "check", made, raising=False)
    return made


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """A training whose data is gone."""
    folder = make_clinic(tmp_path / "clinic")
    (folder / "data" / "visits.csv").unlink()
    return folder


def test_a_training_is_audited_on_made_up_records_and_the_ledger_stays(
    clinic: Path, canaries: Canaries, checks: Checks
) -> None:
    before = files(clinic)
    found = told("audit", "sfumato.yaml", "--seed", "3", "--out", "r.html", at=clinic)
    (one,) = found["plans"]
    assert one["verdict"] == "within" and one["shown"] is None and one["kind"] == "SGD"
    assert one["models"][0]["epsilon"] == 0.5 and "minutes would be needed" in one["notes"][0]
    ((plan, records, how),) = canaries.asked
    assert plan.times == 20 and set(records) == {"age", "ward", "cost", "back"} and len(records["age"]) == 800
    assert how["confidence"] == 1 - 5e-7 and how["noise"].grade == "seeded"
    assert not checks.asked and "canaries" in (clinic / "r.html").read_text(encoding="utf-8")
    (clinic / "r.html").unlink()
    assert files(clinic) == before


def test_one_step_is_sampled_where_runs_are_asked_for(clinic: Path, canaries: Canaries, checks: Checks) -> None:
    (one,) = told("audit", str(clinic), "--runs", "300", at=clinic)["plans"]
    ((step, asked),) = checks.asked
    assert step.times == 1 and asked["runs"] == 300 and len(asked["pairs"]) == 3  # type: ignore[attr-defined]
    assert one["shown"]["runs"] == 100 and "one step of 20" in one["notes"][0]
    assert "42 of 50 right" in sfumato("audit", "sfumato.yaml", "--runs", "300", at=clinic).out


def test_canaries_that_give_away_too_much_end_with_9(clinic: Path, canaries: Canaries, checks: Checks) -> None:
    canaries.broken = True
    (one,) = told("audit", "sfumato.yaml", at=clinic, code=9)["plans"]
    assert one["verdict"] == "broken"
    canaries.problem = RuntimeError("no memory")
    (one,) = told("audit", "sfumato.yaml", at=clinic, code=9)["plans"]
    assert one["verdict"] == "could not run" and "no memory" in one["problem"]


def test_where_canaries_do_not_fit_a_step_is_sampled(clinic: Path, canaries: Canaries, checks: Checks) -> None:
    canaries.problem = ArgumentError("plan is not allowed: a canary is one record")
    (one,) = told("audit", "sfumato.yaml", at=clinic)["plans"]
    assert one["verdict"] == "within" and "one record" in one["notes"][0] and len(checks.asked) == 1


def test_a_training_that_hides_people_says_why_it_has_no_canaries(
    monkeypatch: pytest.MonkeyPatch, checks: Checks
) -> None:
    """The note was an error about a plan that nobody gave."""

    def fails(*_: Any) -> None:
        raise ArgumentError("plan = 'everything one patient ever contributed' is not allowed")

    monkeypatch.setattr(audit_training, "_canaries", fails)
    monkeypatch.setattr(audit_training, "_pairs", lambda step: [])
    step = Laplace(query=bounds.count(Unit("user:patient"), per_unit=2), epsilon=1)
    plan = SimpleNamespace(unit=step.unit, times=20)
    how = {"false_alarm": 1e-6, "progress": lambda share, text: None}
    (note, _) = audit_training.audited_training(plan, step, {"runs": 300}, how)["notes"]
    assert note.startswith("No canaries: a canary is one record") and "not allowed" not in note


def test_a_wrong_training_is_told_by_its_line(clinic: Path) -> None:
    (clinic / "sfumato.yaml").write_text(YAML.replace("model: logistic", "model: logstic"), encoding="utf-8")
    assert "sfumato.yaml" in refused("audit", "sfumato.yaml", at=clinic, code=3).err


@pytest.mark.slow
def test_a_training_is_audited_in_earnest(clinic: Path) -> None:
    before = files(clinic)
    (one,) = told("audit", "sfumato.yaml", "--seed", "3", "--minutes", "0.01", at=clinic)["plans"]
    assert one["verdict"] == "within" and len(one["models"][0]["roc"]) > 10
    bound = one["models"][0]["bound"]
    assert bound[0][1] < 0.1 and bound[-1] == [1.0, 1.0]
    assert files(clinic) == before
