"""Projects of made-up rows, and plans as a plan.yaml writes them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.plan import Plan
from sfumato.project import Project, open_project
from sfumato.project.kinds import KIND, known_kinds, own_fields, word_of
from sfumato.units import Unit

YAML = """\
sfumato: 1
name: wards
unit: {unit}
tables:
  visits:
    source: visits.csv
    {rows}columns:
      id: key
      ward: {{type: category, values: [east, north, west], constant: true}}
      age: {{type: real, lower: 0, upper: 120}}
      day: {{type: whole, lower: 0, upper: 6}}
      query: key
ledger: {{place: budget.ledger, principal: bea}}
privacy: {{target_epsilon: 0.5, target_delta: 1e-7}}
budget:
  total: {{epsilon: 200, delta: 0.5}}
"""
BODY = """\
from sfumato import Unit, bounds
from sfumato.mechanisms import Laplace


def body(run):
    return float(run.release(Laplace(query=bounds.count(Unit()), epsilon=0.5)))
"""


def project_of(folder: Path, unit: Unit, *, ledger: bool = True) -> Project:
    """80 made-up visits of 40 people, each in one ward."""
    folder.mkdir(parents=True, exist_ok=True)
    user = unit.of != "row"
    of = f"{{of: '{unit.of}', change: {unit.change}}}"
    text = YAML.format(
        unit=of, rows="unit: id\n    " if user else "rows: 80\n    " if unit.change != "add-remove" else ""
    )
    (folder / "sfumato.yaml").write_text(text, encoding="utf-8")
    wards = ("east", "north", "west")
    rows = [f"P{n % 40},{wards[n % 40 % 3]},{n * 37 % 120},{n % 7},q{n % 4}" for n in range(80)]
    (folder / "visits.csv").write_text("\n".join(["id,ward,age,day,query", *rows, ""]), encoding="utf-8")
    (folder / "rules.py").write_text(BODY, encoding="utf-8")
    project = open_project(folder)
    if ledger:
        with project.ledger(create=True) as opened:
            project.open_accounts(opened)
    return project


def written(value: Any) -> Any:
    """A record as a file says it: its kind, and its fields by name."""
    if type(value) in known_kinds().values():
        fields = own_fields(type(value))
        body = {
            name: "rules:body" if field.metadata.get("live") else written(getattr(value, name))
            for name, field in fields.items()
            if getattr(value, name) is not None
        }
        return {KIND: word_of(type(value)), **body}
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else _Exact(str(value))
    if isinstance(value, tuple | list):
        return [written(item) for item in value]
    if isinstance(value, Mapping):
        return {key: written(item) for key, item in value.items()}
    return value


def text_of(value: Any) -> str:
    """The same as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text_of, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not isinstance(value, _Exact):
        return value if value.replace("-", "").replace("_", "").isalpha() else f'"{value}"'
    return str(value)


def list_of(**plans: Plan[Any, Any]) -> str:
    """A plan.yaml of these releases, each with a file for its answer."""
    lines = ["sfumato-plan: 1", "note: made up", "releases:"]
    for name, plan in plans.items():
        body = {"name": name, "out": f"out/{name}.json", **written(plan)}
        lines.append(f"  - {text_of(body)}")
    return "\n".join([*lines, ""])


class _Exact(str):
    """A number that is written as a fraction."""
