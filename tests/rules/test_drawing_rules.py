"""Nobody who pays or releases loads what draws: HTML and plots are named as texts and found when somebody looks."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.imports import SOURCE, graph

_NAMED = re.compile(r"(?:_card = |draw\()\"(sfumato\.[\w.]+:\w+)\"")
# These stand above `display`, and draw themselves.
DRAW = ("report", "audit")
LOADED_BY_NAME = (("cards",), ("query", "released", "answer_card"), ("report", "plot_loss"))

_RELEASE = """
import sys
import sfumato as sf
from sfumato import bounds, mechanisms, schema

people = sf.Private("people", {"age": [25, 37]}, unit=sf.Unit(), schema=sf.Schema.of(age=schema.whole(0, 110)))
curator = sf.Curator(people, sf.MemoryLedger({"people": sf.Budget(epsilon=5)}))
count = mechanisms.Laplace(query=bounds.count(sf.Unit()), epsilon=1)
query = sf.sql("SELECT COUNT(*) AS n FROM data", people, epsilon=1) if "sql" in sys.argv else None
for plan in filter(None, (count, query)):
    str(curator.quote(plan)), str(curator.rehearse(plan))
    release = curator.release(plan)
    str(release), release.explain(), release.to_csv()
compared = sf.compare(count.event, delta=1e-6)
drawing = {"html", "matplotlib", "sfumato.display", "sfumato.report"}
drawing -= {"html"} if query else set()  # DuckDB loads it
print(sorted(drawing & set(sys.modules)))
assert "<table" in release._repr_html_() and "html" in sys.modules and "matplotlib" not in sys.modules
"""


def _sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def test_whoever_is_named_as_drawing_is_there() -> None:
    names = {name for text in _sources().values() for name in _NAMED.findall(text)}
    assert len(names) >= 10
    for name in names:
        module, _, function = name.partition(":")
        assert callable(getattr(import_module(module), function)), name


@pytest.mark.parametrize("drawing", LOADED_BY_NAME, ids="/".join)
def test_nobody_imports_what_is_loaded_by_name(drawing: tuple[str, ...]) -> None:
    assert drawing in graph("now")
    assert [module for module, targets in graph("now", "lazily", "types").items() if drawing in targets] == []


def test_below_the_reports_nothing_draws_itself() -> None:
    showing = [path for path, text in _sources().items() if "def _repr_html_" in text]
    assert [path for path in showing if path.relative_to(SOURCE).parts[0] not in DRAW] == [SOURCE / "exhibits.py"]


@pytest.mark.parametrize("words", [[], ["sql"]], ids=["plain", "sql"])
def test_a_release_loads_nothing_that_draws(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", _RELEASE, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
