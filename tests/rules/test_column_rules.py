"""A column is asked for its kind; its word is not compared. How often it still is has a ceiling, which only falls.

Kinds of columns own what is special about them (docs/decisions/0042-column-kinds.md): `column.of_kind.is_number`, not
`column.type in ("real", "whole")`. In `query/` and `frames/` the words are types of SQL expressions, of which there are
eight for good, so these have a ceiling of their own. Where a count has fallen, lower the ceiling here, in the same
commit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.column_kinds import KINDS

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "src", ROOT / "referee")
EXPRESSIONS = {"query", "frames"}

CEILINGS = {"columns": 0, "expressions": 52}


def compared_words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each comparison of somebody's `.type` with a word of a column."""
    for node in ast.walk(tree):
        parts = list(ast.walk(node)) if isinstance(node, ast.Compare) else []
        typed = any(isinstance(part, ast.Attribute) and part.attr == "type" for part in parts)
        words = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if typed and words & set(KINDS):
            yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", CEILINGS)
def test_words_of_columns_are_compared_ever_less(kind: str) -> None:
    places = []
    for path in (path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))):
        of_expressions = path.is_relative_to(ROOT / "src") and path.relative_to(ROOT).parts[2] in EXPRESSIONS
        if of_expressions == (kind == "expressions"):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text if re.search(r"\.\s*type\b", text) else "")  # where nobody has one, none is compared
            places += [f"{path.relative_to(ROOT)}:{line} {text}" for line, text in compared_words(tree)]
    count, ceiling, listing = len(places), CEILINGS[kind], "\n".join(places)
    assert count <= ceiling, f"{kind}: {count}, and at most {ceiling} are allowed. Ask the kind:\n{listing}"
    assert count == ceiling, f"{kind}: {count} are left. Lower the ceiling in {Path(__file__).name} to {count}"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('column.type == "real"', 1),
        ('table.columns[name].type not in ("key", "category")', 1),
        ('"real" in {kind.type for kind in kinds}', 1),
        ('left.kind.type == right.kind.type == "whole"', 1),
        ('column.type == "BIGINT"', 0),
        ("given.type == needed.type", 0),
        ("column.of_kind.is_number", 0),
        ('form.kind == "real"', 0),
    ],
)
def test_what_is_counted(source: str, count: int) -> None:
    assert len(list(compared_words(ast.parse(source)))) == count
