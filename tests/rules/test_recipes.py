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


# In a process of its own: the copies are modules of the library there.
_ENGINE = """
import sqlite3, sys
from pathlib import Path

import sfumato.sources

sfumato.sources.__path__.append(sys.argv[1])  # the new files, as if they stood in the folder

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, sql
from sfumato.schema import Schema, Table, category, key, whole
from sfumato.sources.mine import SQLITE, SQLITE_WRONG, asked_of_sqlite
from sfumato.sources.mine_session import SqliteSession, SqliteTable
from sfumato.sources.vocabulary import WORDS
from tests.sources.engines import kit, test_words

assert SqliteSession.__module__ == "sfumato.sources.mine_session"
kit.MEMBERS["mine"] = kit.Member(SQLITE, asked_of_sqlite, SQLITE_WRONG, flags=True)  # the line in MEMBERS
for word in WORDS.values():
    test_words.test_edge_cases_are_what_the_word_says("mine", word)
path = Path(sys.argv[1]) / "clinic.db"
with sqlite3.connect(path) as opened:
    opened.execute("CREATE TABLE visits (who INTEGER, ward TEXT, cost INTEGER)")
    rows = [(place, "ab"[place % 2], 9) for place in range(4000)]
    opened.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
opened.close()
columns = {"who": key(), "ward": category(["a", "b"]), "cost": whole(0, 10)}
schema = Schema({"visits": Table(columns, unit="who")})
clinic = Private("clinic", SqliteTable(path), unit=Unit("user:who"), schema=schema)
curator = Curator(clinic, MemoryLedger({"clinic": Budget(epsilon=10)}))
text = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
plan = sql(text, clinic, epsilon=5, limits={"rows": 1})
assert curator.quote(plan) and curator.rehearse(plan)
answer = curator.release(plan).value
assert all(abs(n - 2000) < 50 for n in answer["n"]) and all(abs(s - 18_000) < 500 for s in answer["s"])
print("followed")
"""


def test_an_engine_is_a_lowering_and_a_session(tmp_path: Path) -> None:
    """Copies of the files that the recipe names, in an empty folder: no other file of the library knows of them."""
    named = re.findall(r"`(tests/sources/engines/sqlite\w*\.py)`", _section("Add an engine"))
    assert len(named) == 3, "the lowering, its functions, the session"
    for name in named:
        text = (ROOT / name).read_text(encoding="utf-8").replace("tests.sources.engines.sqlite", "sfumato.sources.mine")
        (tmp_path / Path(name).name.replace("sqlite", "mine")).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", _ENGINE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT)
    assert (done.returncode, done.stdout.strip()) == (0, "followed"), done.stderr
