"""A question needs neither PyTorch nor plots: none of the commands of an ordinary day loads them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.front import BY_WARD, environment, make_project

_WITHOUT = """
import sys

class Unwanted:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in UNWANTED, f"{name} is loaded"  # also where a missing one would be excused

sys.meta_path.insert(0, Unwanted())
sys.modules.update(dict.fromkeys(MISSING))
"""
_COMMANDS = """
from sfumato.cli.start import main
for words in WORDS:
    try:
        main(words)
    except SystemExit as end:
        print("ended", end.code)
"""
_PYTHON = f"""
import sfumato as sf
project = sf.open_project()
with project.ledger() as ledger:
    curator = project.curator(ledger)
    plan = sf.sql({BY_WARD!r}, project.private, epsilon=0.1, delta=1e-8)
    curator.quote(plan), curator.rehearse(plan)
    release = curator.release(plan)
    release.explain(), release._repr_html_(), release.to_csv()
    print("answered", len(release.value), ledger.verify().ok)
"""


def _run(
    code: str,
    at: Path,
    *,
    unwanted: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
    words: list[list[str]] | None = None,
) -> subprocess.CompletedProcess[str]:
    head = f"UNWANTED, MISSING, WORDS = {unwanted!r}, {missing!r}, {words!r}\n" + _WITHOUT
    return subprocess.run(
        [sys.executable, "-c", head + code], cwd=at, env=environment(), capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("light"))


def test_commands_of_an_ordinary_day_load_neither_torch_nor_matplotlib(project: Path) -> None:
    words = [["quote", BY_WARD], ["query", BY_WARD], ["explain", "1"], ["ledger", "status"], ["ledger", "report"]]
    done = _run(_COMMANDS, project, unwanted=("torch", "matplotlib", "pandas", "polars"), words=words)
    assert [line for line in done.stdout.splitlines() if line.startswith("ended")] == ["ended 0"] * len(words), (
        done.stderr
    )
    assert (project / "report-hospital.html").is_file()


def test_a_query_in_python_loads_neither_torch_nor_matplotlib(project: Path) -> None:
    done = _run(_PYTHON, project, unwanted=("torch", "matplotlib"))
    assert done.stdout == "answered 3 True\n", done.stderr


def test_a_page_that_cannot_be_drawn_is_refused_before_the_ledger_is_read(project: Path) -> None:
    """Where it says what to install; a large ledger takes minutes to read."""
    code = "from sfumato.report import proof\ndef read(ledger): print('was read')\nproof.verified = read\n" + _COMMANDS
    done = _run(code, project, missing=("jinja2",), words=[["ledger", "report", "--out", "new.html"]])
    assert done.stdout == "ended 3\n", done.stderr
    assert "pip install '.[report]' in a checkout of sfumato" in done.stderr and not (project / "new.html").exists()
