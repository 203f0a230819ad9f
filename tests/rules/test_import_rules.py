"""Who may import whom. A newcomer's module is not in the table, so this test asks for the line before the code lands.

The table is the one of CONTRIBUTING.md; change both, and docs/decisions/0004-file-layout.md, in one commit.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
REFEREE = ROOT / "referee" / "src" / "sfumato_referee"

ANYTHING = {"*"}
# Where people come in: these files tell what reports tell, which stand on the rest of the ledger.
_LEDGER_DOOR = {"ledger/__init__", "ledger/__main__", "ledger/ledger", "ledger/memory", "ledger/opening"}
_BELOW_PLAN = {
    "errors", "checks", "record", "questions", "contributions", "exact", "grid", "units", "schema", "owners", "events",
    "laws", "rows", "noise", "accounting", "strategies", "bounds", "openings", "runs",
}  # fmt: skip

# A folder, a file, or something inside of a folder that has a line of its own: the longest name counts.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "_version": set(),
    "process": set(),
    "address": {"checks"},
    "exact": set(),
    "grid": set(),
    "times": set(),
    "plain_yaml": {"errors"},
    "checks": {"errors"},
    "record": {"errors"},
    "questions": {"record"},
    "contributions": {"questions"},
    "units": {"checks", "record", "errors"},
    "schema": {"units", "display", "checks", "record", "questions", "contributions", "times", "errors"},
    "owners": {"schema", "units", "errors"},
    "events": {"units", "checks", "record", "errors"},
    "runs": set(),
    "laws": {"exact", "checks", "errors"},
    "tensors": {"schema"},
    "cells": {"tensors", "times"},
    "rows": {"schema", "owners", "units", "cells", "tensors", "times", "errors"},
    "noise": {"laws", "exact", "checks", "errors"},
    "accounting": {"events", "units", "laws", "exact", "display", "checks", "record", "errors"},
    "strategies": {"exact", "checks", "record", "questions", "errors"},
    "bounds": {"strategies", "units", "schema", "rows", "grid", "exact", "checks", "record", "questions", "errors"},
    "plan": _BELOW_PLAN | {"display", "process"},
    "combine": _BELOW_PLAN | {"plan", "mechanisms"},
    "mechanisms": _BELOW_PLAN | {"plan", "release", "interactive", "display"},
    "tidy": _BELOW_PLAN | {"plan", "release", "interactive", "mechanisms"},
    "jointly": _BELOW_PLAN | {"plan", "combine", "release", "interactive", "mechanisms"},
    "interactive": _BELOW_PLAN | {"plan", "release", "process"},
    "ledger": {
        "plan", "events", "units", "accounting", "address", "exact", "checks", "record", "errors", "kinds",
        "plain_yaml", "process", "questions", "_version",
    },
    "report/accounts": {
        "ledger", "plan", "events", "units", "accounting", "address", "exact", "display", "checks", "record", "errors",
        "kinds", "times", "questions",
    },
    **{
        file: {"ledger", "report/accounts", "plan", "events", "units", "accounting", "display", "checks", "errors"}
        for file in _LEDGER_DOOR
    },
    "display": set(),
    "release": {"plan", "display", "checks", "errors"},
    "sources": {"schema", "units", "rows", "cells", "tensors", "times", "checks", "errors"},
    "openings": {"rows", "schema", "sources", "units", "errors"},
    "private": {"plan", "openings", "schema", "owners", "units", "sources", "address", "display", "checks", "errors"},
    "held": {"plan", "noise", "rows", "accounting", "errors"},
    "curator": {
        "held", "private", "plan", "release", "interactive", "noise", "rows", "accounting", "record", "checks", "errors"
    },
    "query": _BELOW_PLAN | {"plan", "mechanisms", "sources", "times", "display"},
    "learn": _BELOW_PLAN | {"plan", "mechanisms", "sources"},
    "report": _BELOW_PLAN | _LEDGER_DOOR | {
        "plan", "combine", "mechanisms", "tidy", "jointly", "interactive", "ledger", "report/accounts", "kinds",
        "release", "display", "_version",
    },
    "kinds": _BELOW_PLAN | {"plan", "combine", "mechanisms", "tidy", "jointly", "query"},
    "audit": ANYTHING,
    "example": {"noise", "checks", "errors"},
    "project": _LEDGER_DOOR | {
        "private", "curator", "ledger", "report/accounts", "query", "plan", "release", "accounting", "schema", "owners",
        "units", "events", "times", "sources", "bounds", "strategies", "kinds", "record", "plain_yaml", "checks",
        "errors",
    },
    "office": _LEDGER_DOOR | {
        "project", "curator", "ledger", "report/accounts", "query", "learn", "combine", "private", "plan", "release",
        "accounting", "sources", "schema", "units", "rows", "record", "display", "checks", "errors",
    },
    "cli": ANYTHING,
    "__init__": ANYTHING,
}  # fmt: skip

# What the core installs with, and which part of it needs what. Anything heavier belongs to an area of its own.
THIRD_PARTY: dict[str, set[str]] = {
    "record": {"numpy"},
    "questions": {"numpy"},
    "runs": {"numpy"},
    "grid": {"numpy"},
    "times": {"numpy"},
    "plain_yaml": {"yaml"},
    "schema": {"numpy"},
    "units": {"numpy"},
    "tensors": {"numpy"},
    "cells": {"numpy", "pyarrow"},
    "rows": {"numpy"},
    "laws": {"numpy", "scipy"},
    "noise": {"numpy", "scipy", "cryptography"},
    "accounting": {"numpy", "scipy"},
    "strategies": {"numpy", "scipy"},
    "bounds": {"numpy"},
    "combine": {"numpy"},
    "tidy": {"numpy"},
    "mechanisms": {"numpy"},
    "ledger": {"cryptography", "psycopg", "pydantic", "pydantic_core", "yaml"},
    "openings": {"numpy"},
    "sources": {"numpy", "pyarrow", "sqlglot", "duckdb"},
    "query": {"numpy", "scipy", "sqlglot", "pyarrow"},
    "learn": {"numpy", "torch"},
    "project": {"pydantic", "pydantic_core", "yaml"},
    "report": {"numpy", "matplotlib", "jinja2", "markupsafe"},
    "report/accounts": {"pyarrow"},
    "office": {"numpy", "pyarrow"},  # never typer, rich or fastapi: its skins have these
    "cli": {"typer", "rich", "numpy", "pydantic", "pydantic_core", "yaml", "pyarrow"},
    "audit": {"numpy", "scipy", "torch"},
    "example": {"numpy", "pyarrow"},
}


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _part(path: Path) -> str:
    """The line of the table that a file belongs to."""
    return _line(path.relative_to(SOURCE).with_suffix("").parts)


def _line(parts: tuple[str, ...]) -> str:
    """The longest line that a file or folder stands under; where there is none, the one that it needs."""
    heads = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((head for head in heads if head in MAY_IMPORT), parts[0])


def _home(name: str) -> str:
    """The line of the table that an imported name comes from: `sfumato.ledger.Ledger` stands in ledger/__init__."""
    parts = tuple(name.split(".")[1:]) or ("__init__",)
    while len(parts) > 1 and not (
        SOURCE.joinpath(*parts).is_dir() or SOURCE.joinpath(*parts).with_suffix(".py").is_file()
    ):
        parts = parts[:-1]
    return _line((*parts, "__init__") if SOURCE.joinpath(*parts).is_dir() else parts)


def _imports(path: Path) -> set[str]:
    """Full dotted names of everything a file imports, at any depth of its code."""
    root = REFEREE if path.is_relative_to(REFEREE) else SOURCE
    package = (root.name, *path.relative_to(root).parent.parts)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *((node.module,) if node.module else ())))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_only_what_its_line_allows(path: Path) -> None:
    part = _part(path)
    assert part in MAY_IMPORT, f"{part} is new: give it a line in MAY_IMPORT here and in CONTRIBUTING.md"
    allowed = MAY_IMPORT[part]
    for name in sorted(_imports(path)):
        first = name.partition(".")[0]
        if first == "sfumato":
            same = _LEDGER_DOOR if part in _LEDGER_DOOR else {part}
            assert allowed == ANYTHING or _home(name) in allowed | same, f"{part} may not import {name}"
        elif first not in sys.stdlib_module_names:
            beyond = {"sfumato_referee"} if path == LOOKS_FOR_THE_REFEREE else set[str]()
            assert first in THIRD_PARTY.get(part, set()) | beyond, f"{part} may not import {name}"


LOOKS_FOR_THE_REFEREE = SOURCE / "cli" / "work" / "referee.py"


@pytest.mark.parametrize("path", sorted(REFEREE.rglob("*.py")), ids=lambda path: str(path.relative_to(REFEREE)))
def test_the_referee_imports_the_library_and_no_more_than_it_did(path: Path) -> None:
    for name in sorted(_imports(path)):
        first = name.partition(".")[0]
        ours = first in ("sfumato", "sfumato_referee") or first in sys.stdlib_module_names
        assert ours or first in {"numpy", "scipy", "torch"}, f"the referee may not import {name}"


def test_one_place_of_the_library_knows_of_the_referee() -> None:
    """Nobody who releases data needs planted faults: by no import, and by no name in a text either."""
    knowing = [path for path in _files() if "sfumato_referee" in path.read_text(encoding="utf-8")]
    assert knowing == [LOOKS_FOR_THE_REFEREE]


def test_the_table_has_no_line_too_many() -> None:
    assert set(MAY_IMPORT) == {_part(path) for path in _files()}
    assert set(THIRD_PARTY) <= set(MAY_IMPORT)


def test_every_allowed_module_exists() -> None:
    known = set(MAY_IMPORT)
    for part, allowed in MAY_IMPORT.items():
        assert allowed == ANYTHING or allowed <= known, part


def test_nothing_is_imported_in_a_circle() -> None:
    """Below the audit, the table itself is an order: no part reaches itself through what it may import."""

    def reach(part: str, seen: frozenset[str]) -> set[str]:
        assert part not in seen, f"{part} may import itself through {sorted(seen)}"
        return {part}.union(*(reach(next_part, seen | {part}) for next_part in MAY_IMPORT[part]))

    for part, allowed in MAY_IMPORT.items():
        if allowed != ANYTHING:
            reach(part, frozenset())
