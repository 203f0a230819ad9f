"""Nobody decides by the text of an error: it has fields for that. Texts of others, who have none, are listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
READS = {"partition", "rpartition", "split", "rsplit", "startswith", "endswith", "removeprefix", "find", "index"}
FOREIGN = {
    "audit/conformance.py",  # whether a stranger's error holds data
    "learn/checking.py",  # PyTorch's
    "ledger/stores/sqlite.py",  # SQLite's
    "sources/duckdb_session.py",  # DuckDB's
}


def _is_text_of(node: ast.AST, name: str) -> bool:
    """`str(problem)` or `problem.args[0]`, trimmed or not."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "rstrip"):
        return _is_text_of(node.func.value, name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(isinstance(argument, ast.Name) and argument.id == name for argument in node.args)
    return isinstance(node, ast.Subscript) and ast.unparse(node) == f"{name}.args[0]"


def parsed(tree: ast.AST) -> Iterator[int]:
    """Lines in which the text of a caught error is taken apart, searched or compared."""
    for handler in ast.walk(tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for node in ast.walk(handler):
            if (isinstance(node, ast.Attribute) and node.attr in READS and _is_text_of(node.value, handler.name)) or (
                isinstance(node, ast.Compare)
                and any(_is_text_of(side, handler.name) for side in (node.left, *node.comparators))
            ):
                yield node.lineno


def test_no_text_of_an_error_is_parsed() -> None:
    files = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    assert set(files) > FOREIGN
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items() if name not in FOREIGN}
    catching = {name: text for name, text in texts.items() if re.search(r"\bexcept\b.*\bas\b", text, re.S)}
    assert len(catching) > 50
    lines = {name: list(parsed(ast.parse(text))) for name, text in catching.items()}
    reading = {name: numbers for name, numbers in lines.items() if numbers}
    assert not reading, "these lines read an error's text: give it a code, and read its cause, fix or code"


@pytest.mark.parametrize(
    "line", ["str(e).partition(': ')", "'x' in str(e)", "str(e).rstrip('.').split()", "e.args[0] == 'x'"]
)
def test_what_is_parsed_is_seen(line: str) -> None:
    assert list(parsed(ast.parse(f"try:\n    f()\nexcept ValueError as e:\n    {line}"))) == [4]
    assert not list(parsed(ast.parse("try:\n    f()\nexcept ValueError as e:\n    print(str(e).rstrip('.'))")))
