"""A project with a training, for tests: 800 made-up visits, and 200 public ones."""

from __future__ import annotations

from pathlib import Path

from sfumato.project import open_project

YAML = """\
sfumato: 1
name: clinic
unit: row
tables:
  visits:
    source: data/visits.csv
    rows: 800
    columns:
      age: {type: real, lower: 0, upper: 110}
      ward: {type: category, values: [east, north, west]}
      cost: {type: real, lower: 0, upper: 1000}
      back: flag
ledger: {place: budget.ledger, principal: bea}
privacy: {target_epsilon: 3, target_delta: 1e-6, max_grad_norm: 1}
budget:
  total: {epsilon: 8, delta: 1e-5}
  allocations: {training: 0.9}
training:
  model: logistic
  features: [age, ward, cost]
  target: back
  optimizer: {name: SGD, lr: 2, momentum: 0.5}
  batch_size: 200
  epochs: 5
  public_test: data/public.csv
  subgroup: ward
"""


def rows(count: int, shift: int = 0) -> str:
    """Visits whose outcome is plain to see from age and cost."""
    lines = ["age,ward,cost,back"]
    for n in range(shift, shift + count):
        age, cost = n * 37 % 111, n * 61 % 1001
        ward = ("east", "east", "east", "north", "north", "west")[n % 6]
        lines.append(f"{age},{ward},{cost},{'true' if age / 110 + cost / 1000 > 1 else 'false'}")
    return "\n".join([*lines, ""])


def make_clinic(folder: Path, text: str = YAML, *, ledger: bool = True) -> Path:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "sfumato.yaml").write_text(text, encoding="utf-8")
    (folder / "data" / "visits.csv").write_text(rows(800), encoding="utf-8")
    (folder / "data" / "public.csv").write_text(rows(200, 5000), encoding="utf-8")
    if ledger:
        project = open_project(folder)
        with project.ledger(create=True) as made:
            project.open_accounts(made)
    return folder
