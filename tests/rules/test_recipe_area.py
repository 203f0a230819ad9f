"""The recipe "Add an area" of CONTRIBUTING.md, followed to the letter in a copy of the tree: from an empty folder to an
answer that was quoted, rehearsed, paid for, released and reported from plan.yaml."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.units import Unit
from tests.imports import ROOT
from tests.office.lists import project_of
from tests.pages import Block, blocks

# The places outside of the area's own folders that a new area touches before it is released: a word and a line.
PLACES = ("src/sfumato/kinds.py", "CONTRIBUTING.md")
_RULES = ("tests/imports.py", "tests/rules/test_import_rules.py")

_LOOK = """
from sfumato import Budget, MemoryLedger, kinds, record
from sfumato.audit import shipped
from sfumato.cli.work.schemas import file_schema
from sfumato.plan import Plan
from sfumato.report.accounts.releases import releases

cls = kinds.plans()["Lead"]()
assert cls.__module__ == "sfumato.surveys.lead"
plan = cls.sample()
assert type(shipped.PLANS["Lead"]()) is cls
assert record.parse(record.canonical(plan), Plan) == plan
assert "plan-lead" in file_schema("plan")["$defs"]
assert "Plan: Lead" in plan._repr_html_()

ledger = MemoryLedger({"visits": Budget(epsilon=1)})
ledger.spend(("visits",), plan, data="visits@1", grade="exact", note="")
(row,) = releases(ledger._store)
assert row.mechanism == "plan-lead/1" and row.bounds and ledger.verify().ok
print("followed")
"""


def _recipe() -> dict[str, Block]:
    """The files that the section shows, by name."""
    page = ROOT / "CONTRIBUTING.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    first = lines.index("## Add an area")
    last = next(place for place in range(first + 1, len(lines)) if lines[place].startswith("## "))
    return {block.title: block for block in blocks(page) if block.title and first <= block.line < last}


def _changed_once(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, (path, before)
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the area in it, as somebody who reads the page makes it. Bytecode comes along: to make
    it anew takes longer than the tests."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src" / "sfumato", tree / "src" / "sfumato")
    for name in ("CONTRIBUTING.md", *_RULES):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    recipe = _recipe()
    for name, block in recipe.items():
        if name.startswith(("src/", "tests/")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(block.text, encoding="utf-8")
    code, table = (tree / place for place in PLACES)
    _changed_once(code, '"strategies", "tidy")\n', '"strategies", "surveys", "tidy")\n')
    head = "| `learn/` | `plan`, "
    _changed_once(table, f"\n{head}", f"\n{recipe['line.md'].text}{head}")
    return tree


def _python(tree: Path, *words: str, at: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(tree))), "NO_COLOR": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=at, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_its_plans_are_found_checked_and_stored(tree: Path) -> None:
    done = _python(tree, "-c", _LOOK, at=tree)
    assert (done.returncode, done.stdout.strip()) == (0, "followed"), done.stderr


def test_its_own_test_passes(tree: Path) -> None:
    done = _python(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/surveys", at=tree)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_it_obeys_the_import_rules(tree: Path) -> None:
    """And is held to them: without its line in the table it fails."""
    chosen = "allows or order or circle or too_many or exists or itself"
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", _RULES[1], "-k", chosen)
    done = _python(tree, *words, at=tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) >= 6
    line = _recipe()["line.md"].text
    _changed_once(tree / "CONTRIBUTING.md", f"\n{line}|", "\n|")
    done = _python(tree, *words, at=tree)
    assert done.returncode == 1 and "surveys is new: give it a line in the table" in done.stdout


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")  # the project has a large budget
def test_it_is_released_from_a_project(tree: Path, tmp_path: Path) -> None:
    project = project_of(tmp_path / "wards", Unit())
    (project.folder / "plan.yaml").write_text(_recipe()["plan.yaml"].text, encoding="utf-8")
    shown = {}
    for words in ("quote plan.yaml", "rehearse plan.yaml", "run plan.yaml --yes", "ledger report --out report.html"):
        done = _python(tree, "-m", "sfumato.cli", *words.split(), at=project.folder)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        shown[words.split()[0]] = done.stdout
    assert "lead of the east" in shown["quote"] and "lead of the east" in shown["rehearse"]
    ((answer,), report) = (
        json.loads((project.folder / "out" / "lead.json").read_text(encoding="utf-8")),
        (project.folder / "report.html").read_text(encoding="utf-8"),
    )
    assert isinstance(answer["value"], int) and answer["error"] > 0
    assert "plan-lead/1" in report
