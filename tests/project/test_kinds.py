"""Plans of any kind in plan.yaml: what is wrong is told with file, line, argument, cause and fix."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato import Unit, bounds, strategies
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.project import Project, ProjectError
from sfumato.project.plans import load_plan
from tests.office.lists import project_of

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
HEAD = "sfumato-plan: 1\nreleases:\n"
USER = Unit("user:id")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "broken.py").write_text("raise ValueError('a slip')\n", encoding="utf-8")
    return project_of(folder, USER, ledger=False)


def read(project: Project, text: str) -> object:
    file = project.folder / "plan.yaml"
    file.write_text(HEAD + text, encoding="utf-8")
    return load_plan(file, project).releases[0].plan(project)


def test_numbers_are_exact_and_queries_nest(project: Project) -> None:
    text = "  - {name: a, kind: laplace, query: {kind: mean, column: age, lower: 0, upper: 1/3}, epsilon: 0.1}\n"
    assert read(project, text) == Laplace(query=bounds.mean("age", 0, Fraction(1, 3), USER), epsilon=0.1)
    text = """\
  - name: a
    kind: gaussian
    query:
      kind: measured
      query: {kind: count-where, where: {ward: [east, west], age: [18, ~]}}
      strategy: {kind: identity, cells: 1}
      workload: {kind: cells, cells: 1}
    rho: 1e-2
"""
    inner = bounds.count_where(USER, {"ward": ["east", "west"], "age": (18, None)})
    measured = bounds.Measured(
        unit=USER, query=inner, strategy=strategies.Identity(cells=1), workload=strategies.Cells(cells=1)
    )
    assert read(project, text) == Gaussian(query=measured, rho=Fraction(1, 100))
    assert read(project, "  - {name: a, kind: gaussian, query: count, rho: 1e-2}\n") == Gaussian(
        query=bounds.count(USER), rho=Fraction(1, 100)
    )


MEAN = "query: {kind: mean, column: age, lower: 0, upper: 120}"
WRONG = {
    "  - name: a\n    kind: laplac\n    epsilon: 1\n": (
        "plan.yaml:4: releases[0].kind: there is no kind of plan 'laplac': did you mean laplace?"
    ),
    "  - name: a\n    kind: laplace\n    query: count\n    epsilom: 1\n": (
        "plan.yaml:6: releases[0].epsilom: laplace has no such field: did you mean epsilon?"
    ),
    "  - name: a\n    kind: laplace\n    query: count\n": (
        "plan.yaml:3: releases[0]: epsilon is missing, which laplace needs: add epsilon"
    ),
    "  - name: a\n    kind: laplace\n    epsilon: 1\n": (
        "plan.yaml:3: releases[0]: query is missing, which laplace needs: add query, such as {kind: count}"
    ),
    f"  - name: a\n    kind: laplace\n    {MEAN}\n    epsilon: -1\n": (
        "plan.yaml:6: releases[0].epsilon: -1 is not allowed: give a finite number from 1e-9 to 1e4 (0.1 is strong, 1 "
        "is usual, above 10 is weak)"
    ),
    "  - name: a\n    kind: laplace\n    query:\n      kind: mean\n      column: age\n      lower: 9\n      upper: 3\n"
    "    epsilon: 1\n": "plan.yaml:8: releases[0].query.lower: 9 is not allowed: give a number below upper = 3",
    "  - name: a\n    kind: laplace\n    query: {kind: means, column: age}\n    epsilon: 1\n": (
        "plan.yaml:5: releases[0].query.kind: there is no kind of query 'means': did you mean mean?"
    ),
    "  - name: a\n    kind: laplace\n    query: {kind: gaussian}\n    epsilon: 1\n": (
        "plan.yaml:5: releases[0].query.kind: there is no kind of query 'gaussian'"
    ),
    "  - name: a\n    kind: quantile\n    column: yes\n    lower: 0\n    upper: 1\n    epsilon: 1\n": (
        "plan.yaml:5: releases[0].column: 'yes' without quotes means true or false to YAML"
    ),
    "  - name: a\n    kind: quantile\n    column: weight\n    lower: 0\n    upper: 1\n    epsilon: 1\n": (
        "plan.yaml:3: releases[0]: "
    ),
    "  - name: a\n    kind: sql\n    text: SELECT 1\n": (
        "plan.yaml:4: releases[0].kind: sql has a form of its own: write sql, or file, instead of kind"
    ),
    "  - {name: a, kind: reserve, budget: {epsilon: 1}, reads: {}, body: none:body}\n": (
        "plan.yaml:3: releases[0].body: there is no file 'none.py' in the folder of plan.yaml"
    ),
    "  - {name: a, kind: reserve, budget: {epsilon: 1}, reads: {}, body: broken:body}\n": (
        "plan.yaml:3: releases[0].body: broken.py fails: ValueError: a slip: correct the file"
    ),
    "  - {name: a, kind: reserve, budget: {epsilon: 1, shares: 3}, reads: {}, body: [x]}\n": (
        "plan.yaml:3: releases[0].body: a function is needed here: write module:function, such as rules:body"
    ),
    "  - {kind: laplace, query: count, epsilon: 1}\n": "plan.yaml:3: releases[0]: name is missing: add name",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_at_its_line(text: str, project: Project) -> None:
    with pytest.raises(ProjectError) as problem:
        read(project, text)
    assert WRONG[text] in str(problem.value) and problem.value.file == "plan.yaml"
    assert problem.value.line is not None and problem.value.fix


def test_all_that_is_wrong_is_told_at_once(project: Project) -> None:
    with pytest.raises(ProjectError) as problem:
        read(
            project,
            "  - {name: a, kind: laplace, query: {kind: mean, column: age, lower: 1, upper: 0}, epsilon: 1}\n"
            "  - {name: b, kind: laplace, query: count, epsilon: 0}\n"
            "  - {name: c, kind: top-k, k: 2}\n",
        )
    text = str(problem.value)
    assert "plan.yaml:3:" in text and "plan.yaml:4:" in text and "plan.yaml:5:" in text


@pytest.mark.parametrize("value", ["{}", "[]", '""', "~", "[[[1]]]", "{a: {b: c}}", "1e300", "-0", "true", '"x"'])
@pytest.mark.parametrize("field", ["query", "epsilon", "kind", "alpha", "out"])
def test_no_value_breaks_the_reader(field: str, value: str, project: Project, tmp_path: Path) -> None:
    fields = {"kind": "laplace", "query": "count", "epsilon": "1", field: value}
    body = ", ".join(f"{name}: {said}" for name, said in fields.items())
    with pytest.raises(ProjectError) as problem:
        read(project, f"  - {{name: a, {body}}}\n")
    assert problem.value.line == 3
