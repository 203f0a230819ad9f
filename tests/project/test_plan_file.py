"""plan.yaml: read with line numbers, all faults at once, paths that stay in the project's folder."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sfumato.project import Project, ProjectError, open_project
from sfumato.project.plans import PUBLISHED, ReleaseList, json_schema, load_plan
from tests.cli.front import make_project
from tests.helpers import few

GOOD = """\
sfumato-plan: 1
note: monthly
account: evaluation
releases:
  - name: by_ward
    sql: SELECT ward, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY ward
    epsilon: 0.1
    delta: 1e-8
    limits: {rows: 8}
    keys: {ward: [east, "north", west]}
    bounds: {total: [0, 500]}
    shares: {n: 2}
    out: out/by_ward.csv
  - name: from a file
    file: queries/total.sql
    rho: 1/300
    advise: true
    floor: true
    alpha: 0.01
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = make_project(tmp_path_factory.mktemp("plans"), ledger=False)
    (folder / "queries").mkdir()
    (folder / "queries" / "total.sql").write_text("\ufeffSELECT SUM(cost) AS total FROM visits\n", encoding="utf-8")
    (folder / "queries" / "empty.sql").write_text("\n", encoding="utf-8")
    (folder / "queries" / "bytes.sql").write_bytes(b"\xff\xfe\x00")
    (folder / "out.csv").mkdir()
    (folder / "away").symlink_to(folder.parent)
    return open_project(folder)


def read(project: Project, text: str) -> ReleaseList:
    file = project.folder / "plan.yaml"
    file.write_text(text, encoding="utf-8")
    return load_plan(file, project)


def told(project: Project, text: str) -> str:
    with pytest.raises(ProjectError) as problem:
        read(project, text)
    assert problem.value.file == "plan.yaml"
    return str(problem.value)


def test_a_list_says_all_that_a_query_can_be_asked_with(project: Project) -> None:
    found = read(project, GOOD)
    one, two = found.releases
    assert (found.note, found.account, found.file) == ("monthly", "evaluation", project.folder / "plan.yaml")
    assert (one.name, one.out, one.alpha, one.line) == ("by_ward", project.folder / "out/by_ward.csv", 0.05, 6)
    assert one.options == {
        "epsilon": Fraction(1, 10), "delta": Fraction(1, 10**8), "limits": {"rows": Fraction(8)},
        "keys": {"ward": ["east", "north", "west"]}, "bounds": {"total": (Fraction(0), Fraction(500))},
        "shares": {"n": Fraction(2)},
    }  # fmt: skip
    assert (two.text, two.out, two.alpha, two.line) == ("SELECT SUM(cost) AS total FROM visits\n", None, 0.01, 15)
    assert two.options["rho"] == Fraction(1, 300) and two.options["limits"] == "advise" and two.options["floor"]
    plan = one.plan(project)
    assert plan.epsilon == Fraction(1, 10) and plan.limits is not None
    assert (plan.limits.rows, plan.limits.keys) == (8, 3), "what the list does not say, the project does"
    assert two.plan(project).limits is None


def one(**fields: Any) -> str:
    return "sfumato-plan: 1\nreleases:\n  - " + json.dumps({"name": "n", "sql": "SELECT 1", **fields}) + "\n"


MESSAGES = {
    "": "plan.yaml:1: the file is empty: begin it with the line sfumato-plan: 1",
    "sfumato-plan: 1\n": "plan.yaml:1: releases is missing: add releases: one query or more, each with a name",
    "sfumato-plan: 2\nreleases: []\n": (
        "plan.yaml:1: sfumato-plan: '2' is no version of this form: write sfumato-plan: 1"
    ),
    "sfumato-plan: 1\nreleases: []\n": (
        "plan.yaml:2: releases: there is no release in the list: add one, with a name and sql"
    ),
    "sfumato-plan: 1\nrelease:\n  - {name: a, sql: x}\n": (
        "plan.yaml:2: release: there is no such field: did you mean releases?"
    ),
    "sfumato-plan: 1\nreleases: [{sql: x}]\n": (
        "plan.yaml:2: releases[0]: name is missing: add name: its own in this list; reports and receipts bear it"
    ),
    one(epsilom=1): "plan.yaml:3: releases[0].epsilom: there is no such field: did you mean epsilon?",
    one(file="queries/total.sql"): (
        "plan.yaml:3: releases[0]: there are two queries: give sql, or the file that holds it"
    ),
    "sfumato-plan: 1\nreleases:\n  - name: a\n": (
        "plan.yaml:3: releases[0]: there is no query: give sql, or the file that holds it"
    ),
    one(sql=" "): "plan.yaml:3: releases[0].sql: there is no query: write one",
    "sfumato-plan: 1\nreleases:\n  - {name: a, file: queries/none.sql}\n": (
        "plan.yaml:3: releases[0].file: 'queries/none.sql' cannot be read as text: correct the path"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, file: queries/bytes.sql}\n": (
        "plan.yaml:3: releases[0].file: 'queries/bytes.sql' cannot be read as text: correct the path"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, file: queries/empty.sql}\n": (
        "plan.yaml:3: releases[0].file: this file holds no query: name one that does"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x}\n  # more\n  - {name: a, sql: y}\n": (
        "plan.yaml:5: releases[1].name: 'a' is the name of two releases: give each its own"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x, out: o.csv}\n  - {name: b, sql: y, out: ./q/../o.csv}\n": (
        "plan.yaml:4: releases[1].out: 'a' is written to the same file: give each its own"
    ),
    one(name="\t"): "plan.yaml:3: releases[0].name: this is no name: write one of 1 to 200 letters",
    one(out="o.txt"): (
        "plan.yaml:3: releases[0].out: 'o.txt' has no ending that is known: end it in .csv, .parquet, .json"
    ),
    one(out="out.csv"): (
        "plan.yaml:3: releases[0].out: 'out.csv' is no path of a file: write one such as out/by_ward.csv"
    ),
    one(out="data/visits.csv"): (
        "plan.yaml:3: releases[0].out: 'data/visits.csv' is a file of the project itself: write another name"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x, alpha: 1}\n": (
        "plan.yaml:3: releases[0].alpha: this is no probability: write one above 0 and below 1, such as 0.05"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x, advise: true, limits: {rows: 2}}\n": (
        "plan.yaml:3: releases[0].advise: limits are given, so there is nothing to measure: give one of the two"
    ),
    "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x, bounds: {cost: [1]}}\n": (
        "plan.yaml:3: releases[0].bounds.cost: a list stands where two bounds are needed: write [lowest, highest]"
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", MESSAGES)
def test_what_is_wrong_is_told_with_its_line(project: Project, text: str) -> None:
    assert told(project, text) == MESSAGES[text]


@pytest.mark.parametrize("out", ["../o.csv", "/o.csv", "away/o.csv", "a/../../o.csv", "../plans-elsewhere/o.csv"])
def test_no_answer_leaves_the_project_s_folder(project: Project, out: str) -> None:
    assert "leads out of the project's folder" in told(project, one(out=out))


def test_all_faults_are_told_together(project: Project) -> None:
    text = "sfumato-plan: 1\nreleases:\n  - {name: a, sql: x, out: ../o.csv}\n  - {name: a}\n"
    assert [line.split(": ")[0] for line in told(project, text).splitlines()] == [
        "plan.yaml:3", "plan.yaml:4", "plan.yaml:4"
    ]  # fmt: skip


def test_an_accuracy_is_a_number_or_a_rank(project: Project) -> None:
    asked = "sfumato-plan: 1\nreleases:\n  - {name: a, sql: SELECT MEDIAN(cost) AS m FROM visits, accuracy: {m: %s}}\n"
    (listed,) = read(project, asked % "{rank: 1/2}").releases
    assert listed.options["accuracy"] == {"m": {"rank": Fraction(1, 2)}}
    jsonschema.validate(yaml.safe_load(asked % "{rank: 20}"), json_schema())
    assert "a half-width is a number" in told(project, asked % "{rows: 20}")


def test_a_list_that_is_not_there(project: Project) -> None:
    with pytest.raises(ProjectError, match=r"there is no other\.yaml"):
        load_plan(project.folder / "other.yaml", project)


words = st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.booleans(), st.none())
nests = st.recursive(
    words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
names = st.sampled_from(["name", "sql", "file", "out", "epsilon", "limits", "keys", "bounds", "alpha", "accuracy", "x"])


@few
@given(releases=st.lists(st.dictionaries(names, nests, max_size=5), max_size=3) | nests, note=nests)
def test_nonsense_is_refused_and_nothing_else(project: Project, releases: Any, note: Any) -> None:
    text = yaml.safe_dump({"sfumato-plan": 1, "note": note, "releases": releases})
    try:
        read(project, text)
    except ProjectError as problem:
        assert problem.file == "plan.yaml" and str(problem)


def test_the_published_schema_is_up_to_date() -> None:
    """In a process of its own: kinds that other tests register are none of ours."""
    code = "import json; from sfumato.project.plans import json_schema; print(json.dumps(json_schema()))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json.loads(ran.stdout), (
        "write it anew: json.dumps(json_schema(), indent=2) into sfumato-plan.schema.json"
    )


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(GOOD.replace("1e-8", "0.00000001")), schema)
    for wrong in ({"sfumato-plan": 1}, {"sfumato-plan": 1, "releases": [{"sql": "x"}]}, {"releases": []}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
