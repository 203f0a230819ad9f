"""`sfumato workload`: what a file asks is quoted, paid for once, and told again for nothing."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.front import YAML, make_project, sfumato

FILE = """\
sfumato-workload: 1
name: by ward
sql: SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward
tables:
  total: []
  wards: [ward]
  up to: {ward: cumulative}
limits: {rows: 2}
epsilon: 0.1
"""


def test_a_file_is_quoted_paid_for_once_and_told_again(tmp_path: Path) -> None:
    assert "ward" in YAML
    here = make_project(tmp_path / "here")
    (here / "wards.yaml").write_text(FILE, encoding="utf-8")
    quote = sfumato("workload", "quote", "wards.yaml", "--json", "--explain", at=here)
    body = json.loads(quote.out)
    assert quote.code == 0 and body["fits"] and [error["column"] for error in body["errors"]] == [
        "total: n", "wards: n", "up to: n",
    ]  # fmt: skip
    assert "rows" in body["statements"]
    first = json.loads(sfumato("workload", "run", "wards.yaml", "--json", at=here).out)
    again = json.loads(sfumato("workload", "run", "wards.yaml", "--json", at=here).out)
    assert not first["free"] and again["free"] and first["rows"] == again["rows"]
    assert {row["table"] for row in first["rows"]} == {"total", "wards", "up to"}


def test_what_a_file_gets_wrong_is_named(tmp_path: Path) -> None:
    here = make_project(tmp_path / "here")
    for wrong, words in (
        ("tables: [[street]]", "street"),
        ("tables: {x: {ward: prefix}}", "form of ward"),
        ("ways: 1\nstrategy: best", "strategy"),
        ("ways: 1\ncolour: red", "colour"),
    ):
        head, tail = FILE.partition("tables:")[0], FILE.partition("limits:")[2]
        (here / "wards.yaml").write_text(f"{head}{wrong}\nlimits:{tail}", encoding="utf-8")
        ran = sfumato("workload", "quote", "wards.yaml", at=here)
        assert ran.code != 0 and words in ran.err, wrong
    assert sfumato("workload", "run", "wards.yaml", "--alpha", "2", at=here).code != 0
