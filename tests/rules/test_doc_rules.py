"""Docs are tested: every code block runs, every public thing says what it is."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
PAGES = [path for name in ("README.md", "CONTRIBUTING.md") if (path := ROOT / name).is_file()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
_SHORT_FUNCTION, _SHORT_CLASS, _ENTRIES = 15, 4, ("main", "attack")

# Blocks of one page share one module that can be found by name (dataclasses look theirs up), and are files, so that the
# source of a function can be read: plans hash it.
_RUNNER = """
import sys, types
module = types.ModuleType("page")
sys.modules["page"] = module
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as block:
        exec(compile(block.read(), path, "exec"), module.__dict__)
"""


class Block(NamedTuple):
    line: int
    runs: bool
    code: str


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        words = fence["info"].split()
        if words[:1] != ["python"]:
            continue
        assert words[1:] in ([], ["no-run"]), f"{page.name}: a fence says {fence['info']!r}"
        indent = fence["indent"]
        body = "\n".join(line.removeprefix(indent) for line in fence["body"].splitlines())
        yield Block(text.count("\n", 0, fence.start("body")), words[1:] == [], body + "\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page: Path, tmp_path: Path) -> None:
    files = []
    for block in _blocks(page):
        padded = "\n" * block.line + block.code  # so that a traceback names the line of the page
        compile(padded, page.name, "exec")
        if block.runs:
            file = tmp_path / f"{page.stem}_line_{block.line}.py"
            file.write_text(padded, encoding="utf-8")
            files.append(str(file))
    if not files:
        return
    place = tmp_path / "here"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _RUNNER, *files],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_fences_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 1\n```\n\n- x\n\n  ```python no-run\n  b = 2\n  ```\n\n```text\nno\n```\n", encoding="utf-8"
    )
    assert list(_blocks(page)) == [Block(1, True, "a = 1\n"), Block(7, False, "b = 2\n")]


def _silent(tree: ast.Module) -> Iterator[str]:
    """Public things that should say what they are, and do not.

    Functions up to 15 lines and classes up to 4 say it by themselves, a class derived from one of the same file is said
    by that one, and the entry of a file (`main`, `attack`) by the file's own docstring.
    """
    named = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node):
            continue
        lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
        if isinstance(node, ast.ClassDef):
            said = lines <= _SHORT_CLASS or any(ast.unparse(base) in named for base in node.bases)
        else:
            said = lines <= _SHORT_FUNCTION or node.name in _ENTRIES
        if not said:
            yield node.name


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_public_things_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} has no docstring"
    assert list(_silent(tree)) == []


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
