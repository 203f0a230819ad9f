"""The adversary reaches inside the library by names that the library gives it: `audit/surface.py`, `audit/seams.py`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sfumato.audit import seams, surface
from sfumato.audit.seams import SEAMS, Seam

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
REFEREE = ROOT / "referee" / "src" / "sfumato_referee"
FILES = sorted(REFEREE.rglob("*.py"))

# What a mechanism overrides, planted or not; and names of Python's own.
HOOKS = {"_run", "_runs", "_begin", "_law_in_steps", "_scale"}
PARTS = {"_desk_type", "_charges_type", "_payments_type"}  # of which a ledger is made, for whoever makes another
PYTHONS = {"_exit", "_repr_html_", "_replace"}
# The door itself, which the surface leaves shut. Shorten the list, never lengthen it.
INSIDE = {"forced.py": {"_open", "_tables"}}


@cache
def _names_of_the_library() -> frozenset[str]:
    names: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    names.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                    names.add(name)
    return frozenset(name for name in names if re.fullmatch(r"_[a-zA-Z]\w*", name))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _own(tree: ast.Module) -> set[str]:
    """Private names that a file gives to what is its own: functions, classes without a parent, attributes of `self`."""
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.bases:
            own |= {method.name for method in node.body if isinstance(method, ast.FunctionDef)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            own.add(node.attr)
    return own


def _reached(tree: ast.Module) -> Iterator[str]:
    """Names that a file reads of something, imports, overrides, or swaps by their text."""
    own = _own(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=name) if not (_is_self(value) and name in own):
                yield name
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("sfumato."):
                yield from (alias.name for alias in names)
            case ast.Call(func=ast.Name(id="swap" | "setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield name
            case ast.ClassDef(bases=[_, *_], body=body):
                yield from (method.name for method in body if isinstance(method, ast.FunctionDef))


def _inside(text: str) -> set[str]:
    return {name for name in _reached(ast.parse(text)) if name in _names_of_the_library()} - HOOKS - PARTS - PYTHONS


def test_the_referee_takes_private_names_from_the_surface() -> None:
    names = {path.relative_to(REFEREE).as_posix(): _inside(path.read_text(encoding="utf-8")) for path in FILES}
    assert {file: inside for file, inside in names.items() if inside} == INSIDE


@pytest.mark.parametrize(
    "text",
    [
        "ledger._store.entries()",
        "from sfumato.ledger.stores.base import _check_totals",
        "swap(pairs, '_pair', made)",
        "class Wrong(Ledger):\n    def _charges(self): ...",
        "class Wrong(Ledger):\n    def spend(self):\n        return self._store",
    ],
)
def test_the_rule_sees_every_way_inside(text: str) -> None:
    assert _inside(text)


def test_the_rule_leaves_a_files_own_names_alone() -> None:
    assert not _inside(
        "class Mine:\n    def __init__(self):\n        self._store = 1\n    def f(self):\n        self._store"
    )


@pytest.mark.parametrize("seam", SEAMS, ids=lambda seam: seam.place)
def test_every_seam_is_where_it_says(seam: Seam) -> None:
    assert seam.name in vars(seam.owner()), "the line was renamed or moved: say so in audit/seams.py"
    assert seam.does and seam.value() is not None


def _texts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in FILES)


def test_every_seam_is_used_and_none_is_there_twice() -> None:
    names = [name for name, value in vars(seams).items() if isinstance(value, Seam)]
    assert [name for name in names if not re.search(rf"\bseams\.{name}\b", _texts())] == []
    assert len({seam.place for seam in SEAMS}) == len(SEAMS) == len(names)


def test_every_name_of_the_surface_is_used_and_says_what_it_is() -> None:
    own = {name: value for name, value in vars(surface).items() if getattr(value, "__module__", "") == surface.__name__}
    used = _texts()
    assert [name for name, value in own.items() if inspect.isfunction(value) and f"surface.{name}(" not in used] == []
    assert all(value.__doc__ for value in own.values())


def test_the_surface_opens_no_private_data() -> None:
    tree = ast.parse(Path(surface.__file__).read_text(encoding="utf-8"))
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"_open", "_opened", "_sources", "_tables", "_connected"}
