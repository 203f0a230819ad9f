"""Every registered kind of plan is quoted, rehearsed, released and written from a plan.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from sfumato.audit.shipped import PLANS
from sfumato.office.documents import Agreement
from sfumato.office.list_looks import quotes, rehearsals
from sfumato.office.lists import ListOrder, RunDocument, agreed, quoted_list, ran
from sfumato.office.problems import OfficeError
from sfumato.plan import Plan
from sfumato.project import Project
from sfumato.project.kinds import known_kinds, word_of
from sfumato.project.plans import json_schema, load_plan
from sfumato.units import Unit
from tests.cli.front import sfumato
from tests.office.lists import list_of, project_of

# samples have large deltas, and need a large budget
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
SHORT_FORMS = {
    "Sql",
    "SqlReport",
    "SqlSeries",
    "SqlStages",
    "SqlWorkload",
    "SGD",
}  # `sql:` in a list, and files of their own
KINDS = sorted(set(PLANS) - SHORT_FORMS)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[Unit, Project]:
    folder = tmp_path_factory.mktemp("wards")
    units = {PLANS[name]().unit for name in KINDS}
    return {unit: project_of(folder / str(number), unit) for number, unit in enumerate(sorted(units, key=str))}


def order_of(project: Project, name: str, plan: Plan[Any, Any]) -> ListOrder:
    file = project.folder / f"{name}.yaml"
    file.write_text(list_of(**{name: plan}), encoding="utf-8")
    return ListOrder.of(load_plan(file, project), project, file)


def test_every_registered_kind_is_tried_or_has_a_form_of_its_own() -> None:
    own = {word for word, kind in known_kinds(Plan).items() if kind.__module__.partition(".")[0] == "sfumato"}
    assert own - {"sql", "sql-report", "sql-series", "sql-stages", "sql-workload", "sgd"} == {
        word_of(type(PLANS[name]())) for name in KINDS
    }


@pytest.mark.parametrize("name", KINDS)
def test_a_plan_of_any_kind_is_quoted_rehearsed_and_released(name: str, projects: dict[Unit, Project]) -> None:
    plan = PLANS[name]()
    project = projects[plan.unit]
    order = order_of(project, name, plan)
    if name != "Reserve":  # its body is a function of another file
        assert order.plans[0][1].hash == plan.hash, "the file says what Python says"
    quote = quotes(project, order)
    assert quote.fits and quote.price is not None and quote.releases[0].hides == plan.hides
    rehearsal, _ = rehearsals(project, order)
    assert rehearsal.made_up and rehearsal.releases[0].answer.rows is not None
    document = ran(project, order, agreed)
    (release,) = document.releases
    assert (release.status, release.problem, release.written) == ("released", None, True)
    rows = json.loads((project.folder / "out" / f"{name}.json").read_text(encoding="utf-8"))
    assert len(rows) == release.rows and all(set(row) == {"name", "value", "error"} for row in rows)
    again = ran(project, order, agreed)
    assert again.price is None and again.releases[0].status == "answered" and again.releases[0].written is False


def test_the_schema_for_editors_knows_them_all() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.check_schema(validator.schema)
    for name in KINDS:
        said = yaml.safe_load(list_of(**{name: PLANS[name]()}))
        validator.validate(said)
        said["releases"][0]["epsilom"] = 1
        assert not validator.is_valid(said), name


def test_nothing_is_paid_that_was_not_agreed_to(projects: dict[Unit, Project]) -> None:
    plan = PLANS["Repeat"]()
    project = projects[plan.unit]
    order = order_of(project, "unagreed", type(plan)(plan=plan.plan, times=5))  # type: ignore[call-arg, attr-defined]
    offers: list[RunDocument] = []

    def other(offer: RunDocument) -> Agreement:
        offers.append(offer)
        return Agreement.to(plan)

    with pytest.raises(OfficeError, match="not what was agreed to"):
        ran(project, order, other)
    assert offers[0].price is not None and quoted_list(project, order).releases[0].status == "new"


def test_queries_and_other_plans_stand_in_one_list(tmp_path: Path) -> None:
    project = project_of(tmp_path, Unit("user:id"))
    (tmp_path / "plan.yaml").write_text(
        """\
sfumato-plan: 1
note: monthly
releases:
  - {name: people, sql: SELECT COUNT(DISTINCT id) AS n FROM visits, epsilon: 0.5, limits: {rows: 2}, out: people.csv}
  - name: age
    kind: laplace
    query: {kind: mean, column: age, lower: 0, upper: 120, per_unit: 2}
    epsilon: 1
    alpha: 0.1
    out: age.csv
  - {name: visits, kind: gaussian, query: count, rho: 0.125, out: visits.parquet}
""",
        encoding="utf-8",
    )
    quote = sfumato("quote", "plan.yaml", at=tmp_path)
    assert quote.code == 0 and "value: not known yet" in quote.out and "at 95 %" in quote.out, quote.err
    rehearsal = sfumato("rehearse", "plan.yaml", "--json", at=tmp_path)
    body = json.loads(rehearsal.out)
    jsonschema.validate(body, json.loads(sfumato("schema", "rehearsals", at=tmp_path).out))
    assert [each["name"] for each in body["releases"]] == ["people", "age", "visits"]
    priced = json.loads(sfumato("quote", "plan.yaml", "--json", at=tmp_path).out)
    jsonschema.validate(priced, json.loads(sfumato("schema", "quotes", at=tmp_path).out))
    assert priced["price"]["releases"] == 3 and priced["fits"]
    run = sfumato("run", "plan.yaml", at=tmp_path)
    assert run.code == 0 and run.out.count("released") == 3, run.err
    assert (tmp_path / "age.csv").read_text(encoding="utf-8").startswith("name,value,error\n")
    assert sfumato("ledger", "report", "--out", "report.json", at=tmp_path).code == 0
    report = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert all(f'"monthly: {name}"' in report for name in ("people", "age", "visits"))
    with project.ledger(read_only=True) as ledger:
        assert ledger.verify().ok


def test_options_of_queries_do_not_go_with_a_list(tmp_path: Path) -> None:
    project_of(tmp_path, Unit())
    (tmp_path / "plan.yaml").write_text(list_of(n=PLANS["Repeat"]()), encoding="utf-8")
    for words in (("quote", "plan.yaml", "--epsilon", "1"), ("rehearse", "plan.yaml", "--floor")):
        refused = sfumato(*words, at=tmp_path)
        assert refused.code == 2 and "write it in plan.yaml" in refused.err
    assert sfumato("quote", "plan.yaml", "--explain", at=tmp_path).code == 2


def test_code_of_the_users_own_is_announced(tmp_path: Path) -> None:
    project_of(tmp_path, Unit())
    (tmp_path / "plan.yaml").write_text(list_of(n=PLANS["Reserve"]()), encoding="utf-8")
    run = sfumato("run", "plan.yaml", at=tmp_path)
    assert run.code == 0 and "rules.py in " in run.err and "no part of the guarantee" in run.err
