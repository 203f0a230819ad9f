"""A project whose ledger is signed, for tests of `sfumato ledger`; and documents held against their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from sfumato.cli.work.schemas import documents
from sfumato.ledger import Ledger
from sfumato.project import Project, open_project
from tests.cli.front import YAML, Ran, make_project, sfumato

SIGNED = YAML.replace(
    "ledger: {place: budget.ledger, principal: bea}",
    "ledger: {place: budget.ledger, anchor: proof/anchor, key: keys/signing.key, principal: bea}",
)
COUNT = "SELECT COUNT(*) AS n FROM visits"


def signed(folder: Path, **how: Any) -> Path:
    return make_project(folder, text=SIGNED, **how)


def told(*arguments: str, at: Path, code: int = 0, **how: Any) -> dict[str, Any]:
    """What a command prints with --json, which is as its schema says."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ran = sfumato(*arguments[:end], "--json", *arguments[end:], at=at, **how)
    assert ran.code == code, ran
    found: dict[str, Any] = json.loads(ran.out)
    kind, _, version = found["document"].partition("/")
    assert version == "1"
    jsonschema.validate(found, documents()[kind].model_json_schema())
    return found


def refused(*arguments: str, at: Path, code: int, **how: Any) -> Ran:
    """Three lines on stderr, nothing on stdout; the same problem as a document with --json."""
    ran = sfumato(*arguments, at=at, **how)
    assert (ran.code, ran.out) == (code, ""), ran
    assert "Traceback" not in ran.err and "\n  why  " in ran.err and "\n  fix  " in ran.err, ran.err
    problem = told(*arguments, at=at, code=code, **how)
    assert problem["document"] == "problem/1" and problem["code"] == code
    assert problem["what"] in ran.err.replace("\n", " ")
    return ran


def released(folder: Path, epsilon: float = 0.1, note: str = "beds") -> None:
    """One true release on the project's data."""
    project = open_project(folder)
    with project.ledger() as ledger:
        project.curator(ledger).release(project.plan(COUNT, epsilon=epsilon), note=note)


def failed(folder: Path, times: int) -> None:
    """Releases that failed on the data's side, as the ledger sees them."""
    project = open_project(folder)
    with project.ledger() as ledger:
        for number in range(times):
            _fail(project, ledger, number)


def _fail(project: Project, ledger: Ledger, number: int) -> None:
    plan = project.plan(COUNT, epsilon=0.01 + number / 1000)
    receipt = ledger.spend((project.account,), plan, data=str(project.private.address), grade="exact", note="")
    ledger.open(receipt)
    ledger.settle(receipt, "failed")
