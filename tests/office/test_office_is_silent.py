"""The office prints nothing, asks nothing, ends no process and reads no command line: its skins do."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cli.front import environment

SOURCE = Path(__file__).parents[2] / "src" / "sfumato" / "office"
CALLS = {"print", "input", "exit", "quit", "breakpoint"}
OF_SYS = {"argv", "stdin", "stdout", "stderr", "exit", "_exit"}
SKINS = ("rich", "typer", "click", "fastapi", "sfumato.cli")


def _loud(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node.func.id
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("sys", "os"):
            yield from {node.attr} & OF_SYS


def test_it_is_silent() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    loud = {path.name: list(_loud(ast.parse(path.read_text(encoding="utf-8")))) for path in files}
    assert len(files) > 10 and {name: words for name, words in loud.items() if words} == {}
    assert list(_loud(ast.parse("import sys\nprint(sys.argv)")))


def test_it_loads_no_skin() -> None:
    names = ", ".join(f"sfumato.office.{path.stem}" for path in sorted(SOURCE.glob("*.py")) if path.stem != "__init__")
    code = f"import sys, {names}\nprint([name for name in {SKINS!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    assert ran.stdout.strip() == "[]"
