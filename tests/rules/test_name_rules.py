"""Names say what a value is. How often they do not has a ceiling, by kind, which only falls.

Values are called by nouns of the domain, functions by verbs, modules and classes by a name that nobody else has
(docs/decisions/0041-names-of-the-domain.md). Where a count rises, find a better name. Where it has fallen, lower the
ceiling here, in the same commit.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "src", ROOT / "referee")

# Fine inside of a comprehension, where they live for a line. Anywhere else they say only that there is something.
VAGUE = frozenset({"each", "found", "made", "told", "given", "known", "asked", "kept", "held", "said"})

CEILINGS = {
    "vague values": 492,
    "vague parameters": 170,
    "vague functions": 25,
    "functions called made": 1,
    "modules beyond the first of their name": 102,
    "classes beyond the first of their name": 89,
}


def _of_comprehensions(tree: ast.AST) -> set[ast.AST]:
    """The names that live and end with a comprehension."""
    comprehensions = (node for node in ast.walk(tree) if isinstance(node, ast.comprehension))
    return {name for comprehension in comprehensions for name in ast.walk(comprehension.target)}


def vague_names(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Kind, name and line of whatever has a vague name and outlives a comprehension."""
    short_lived = _of_comprehensions(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in short_lived:
                kind = "vague values"
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.ExceptHandler(name=str(name)):
                kind = "vague values"
            case ast.arg(arg=name):
                kind = "vague parameters"
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                kind = "vague functions"
            case _:
                continue
        if name in VAGUE:
            yield kind, name, node.lineno  # type: ignore[attr-defined]


def beyond_the_first(names: Iterable[str]) -> dict[str, int]:
    """Names that are there several times, with how often."""
    return {name: times for name, times in Counter(names).items() if times > 1}


def _sources() -> dict[Path, ast.Module]:
    paths = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


@pytest.fixture(scope="module")
def places() -> dict[str, list[str]]:
    """What counts, kind by kind, with where it stands."""
    listed: dict[str, list[str]] = {kind: [] for kind in CEILINGS}
    modules, classes = [], []
    for path, tree in _sources().items():
        modules += [] if path.name in ("__init__.py", "__main__.py") else [path.name]
        classes += [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for kind, name, line in vague_names(tree):
            listed[kind].append(f"{path}:{line} {name}")
            if (kind, name) == ("vague functions", "made"):
                listed["functions called made"].append(f"{path}:{line}")
    for things, names in (("modules", modules), ("classes", classes)):
        for name, times in sorted(beyond_the_first(names).items()):
            listed[f"{things} beyond the first of their name"] += [f"{name} ({times} times)"] * (times - 1)
    return listed


@pytest.mark.parametrize("kind", CEILINGS)
def test_names_only_get_better(kind: str, places: dict[str, list[str]]) -> None:
    count, ceiling = len(places[kind]), CEILINGS[kind]
    listing = "\n".join(places[kind])
    assert count <= ceiling, f"{kind}: {count}, and at most {ceiling} are allowed. Find a better name:\n{listing}"
    assert count == ceiling, f"{kind}: {count} are left. Lower the ceiling in {Path(__file__).name} to {count}"


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("found = 1", ["vague values"]),
        ("found: int = 1", ["vague values"]),
        ("found += 1", ["vague values"]),
        ("(found := 1)", ["vague values"]),
        ("a, (known, *kept) = b", ["vague values", "vague values"]),
        ("for each in rows: pass", ["vague values"]),
        ("with a as held: pass", ["vague values"]),
        ("try: pass\nexcept E as told: pass", ["vague values"]),
        ("self.asked = 1", ["vague values"]),
        ("def made(): pass", ["vague functions"]),
        ("async def told(): pass", ["vague functions"]),
        ("def f(given, *, said=1): pass", ["vague parameters", "vague parameters"]),
        ("lambda each: each", ["vague parameters"]),
        ("[each for each in rows]", []),
        ("{a: each for a, each in rows if each}", []),
        ("sum(each for each in rows)", []),
        ("[a for a in rows if (found := a)]", ["vague values"]),
        ("print(found, self.told, f(given=1))", []),
        ("answer = founded", []),
    ],
)
def test_what_counts(source: str, kinds: list[str]) -> None:
    assert [kind for kind, _, _ in vague_names(ast.parse(source))] == kinds


def test_the_first_of_a_name_is_free() -> None:
    assert beyond_the_first(["rows", "plan", "rows", "rows", "units"]) == {"rows": 3}
