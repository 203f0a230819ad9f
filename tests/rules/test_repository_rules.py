"""Rules about files: what a stranger's machine needs, and what no machine must need."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST = 600
ABSOLUTE = re.compile(r"(?<![\w./~-])/(?:home|work|root|tmp|Users)/")
TARGETS = ("demo", "test", "test-all", "lint", "docs", "docs-serve", "bench-setup", "bench")


def _tracked() -> list[Path]:
    """Files of the repository, also those not committed yet; without git, everything that is not hidden."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not _hidden(path)]
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts)


def test_no_path_of_one_machine() -> None:
    found = []
    for path in _tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in ABSOLUTE.finditer(text)]
    assert found == []


SOURCES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "referee").rglob("*.py"))]


def test_no_file_is_too_long() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    long = {str(path.relative_to(ROOT)): count for path, count in lines.items() if count > LONGEST}
    assert SOURCES and not long, "a file asks to be two: split it"


@pytest.mark.parametrize("target", TARGETS)
def test_make_has_its_targets(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert re.search(rf"^\.PHONY:.*\b{target}\b", makefile, re.MULTILINE)


def test_what_runs_on_every_push_is_make_lint_and_then_make_test() -> None:
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert commands[1] == "set -euo pipefail", "a failing lint ends the run"
    assert commands[-2:] == ["make lint", "exec make test"]


@cache
def _test_functions(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [function.name for function in functions if function.name.startswith("test_")]


def _test_files() -> list[Path]:
    return [path for path in sorted((ROOT / "tests").rglob("*.py")) if "__pycache__" not in path.parts]


def test_every_test_is_collected() -> None:
    strays = [p.name for p in _test_files() if _test_functions(p) and not p.name.startswith("test_")]
    assert strays == []
    names = [path.name for path in _test_files() if path.name.startswith("test_")]
    assert len(set(names)) == len(names), "two test files of one name hide each other"
    for path in _test_files():
        tests = _test_functions(path)
        assert len(set(tests)) == len(tests), f"two tests of one name in {path.name}"
        assert tests or not path.name.startswith("test_"), f"{path.name} holds no test"


def test_the_last_count_is_no_smaller_than_the_functions_that_are_tests() -> None:
    """A run of everything holds the number itself (tests/counting.py); here, that nobody wrote a smaller one."""
    counted = json.loads((ROOT / "tests" / "counted.json").read_text(encoding="utf-8"))
    assert set(counted) == {"not slow", "slow or not slow"}
    assert sum(len(_test_functions(path)) for path in _test_files()) <= counted["not slow"]
    assert counted["not slow"] < counted["slow or not slow"]
