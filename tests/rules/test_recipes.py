"""The recipes of CONTRIBUTING.md, followed to the letter from an empty file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.pages import ROOT

# In a process of its own: what it registers is nobody else's.
_MECHANISM = """
import json, sys
import sfumato.mechanisms

sfumato.mechanisms.__path__.append(sys.argv[1])  # the one new file, as if it stood in the folder

from sfumato import Budget, MemoryLedger, audit, kinds, questions, record
from sfumato.audit import shipped
from sfumato.audit.conformance import check_plan
from sfumato.mechanisms import Laplace
from sfumato.noise import SeededBits
from sfumato.plan import Plan
from sfumato.report.accounts.releases import releases

cls = kinds.plans()["GeometricCount"]()
assert cls.__module__ == "sfumato.mechanisms.geometric_count"
plan = cls.sample()
check_plan(plan)
assert type(shipped.PLANS["GeometricCount"]()) is cls
assert not audit.check(plan, runs=2_000, bits=SeededBits(1)).broken
assert record.parse(record.canonical(plan), Plan) == plan

same = questions.digest(Laplace(query=plan.query, epsilon=3).asks())
assert questions.digest(plan.asks()) == same
bounds = ({"of": "query", "kind": "count/1", "per_unit": 1},)
assert plan.contribution_bounds() == bounds

ledger = MemoryLedger({"visits": Budget(epsilon=1)})
ledger.spend(("visits",), plan, data="visits@1", grade="exact", note="")
(row,) = releases(ledger._store)
assert (row.question, row.bounds, row.mechanism) == (same, bounds, "plan-geometric-count/1")
assert ledger.verify().ok
print("followed")
"""


def _section(title: str) -> str:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {title}\n(.*?)^## ", page, re.S | re.M)
    assert found is not None
    return found.group(1)


def test_a_mechanism_is_one_file_and_one_line_of_a_test(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", _section("Add a mechanism"), re.S | re.M)
    assert len(blocks) == 2, "the file, and its test"
    (tmp_path / "geometric_count.py").write_text(blocks[0], encoding="utf-8")
    assert blocks[1].strip().splitlines()[-1] == "check_plan(GeometricCount.sample())"
    command = [sys.executable, "-c", _MECHANISM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "followed"), done.stderr
