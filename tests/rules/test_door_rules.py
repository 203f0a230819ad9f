"""The one door and the one source of noise, held by reading the code: what nobody writes, nobody can get wrong."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
FILES = sorted(SOURCE.rglob("*.py"))
REFEREE = Path(__file__).parents[2] / "referee" / "src" / "sfumato_referee"

OPENERS = {"curator.py", "private.py", "openings.py"}  # a Private hands its tables to an opening, behind the receipt
# mechanisms/additive.py runs its own, many times; a plan in stages runs each with what the last one released
RUNNERS = {
    "plan.py", "combine.py", "tidy.py", "curator.py", "mechanisms/additive.py", "query/above/stages_plan.py",
    "query/dated/series_plan.py",
}  # fmt: skip
GENERATORS = {"random", "numpy.random", "torch.random"}
CHANCE = "learn/chance.py"  # torch's own generators, for what is public or named float grade; nowhere else
SEEDERS = {"manual_seed", "seed_all", "default_rng", "RandomState", "set_rng_state", "SystemRandom"}


def _name(path: Path) -> str:
    return path.relative_to(SOURCE if path.is_relative_to(SOURCE) else REFEREE).as_posix()


def _calls(path: Path, method: str) -> Iterator[int]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text if method in text else "")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield node.lineno


def test_only_the_door_opens_data() -> None:
    assert {_name(path) for path in FILES if any(_calls(path, "_open"))} == OPENERS
    # Attacks with receipts that must not open, and on made-up data; a curator that opens before it pays, in a process
    # of its own.
    assert {_name(path) for path in REFEREE.rglob("*.py") if any(_calls(path, "_open"))} == {"forced.py"}


def test_only_the_waist_and_the_audit_run_plans() -> None:
    runners = {_name(path) for path in FILES if any(_calls(path, "_run"))}
    assert {name for name in runners if not name.startswith("audit/")} == RUNNERS


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _generators(path: Path) -> Iterator[str]:
    """Every mention of a generator that is not ours: imports, attributes, calls."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text if any(word in text for word in ("random", *SEEDERS)) else "")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in GENERATORS)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named = {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
            yield from named & GENERATORS
        elif isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            if dotted.startswith(("np.random", "numpy.random", "random.", "torch.random")) or node.attr in SEEDERS:
                yield dotted


def test_no_other_source_of_randomness() -> None:
    files = [*FILES, *sorted(REFEREE.rglob("*.py"))]
    found = {_name(path): sorted(set(_generators(path))) for path in files if _name(path) != CHANCE}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_search_for_generators_finds_them(tmp_path: Path) -> None:
    """The rule has power: each way to write it is seen."""
    for number, text in enumerate(
        (
            "import random",
            "from random import gauss",
            "from numpy import random",
            "import numpy.random as r",
            "import numpy as np\nnp.random.normal()",
            "import numpy\nnumpy.random.default_rng(1)",
            "import torch\ntorch.manual_seed(1)",
        )
    ):
        path = tmp_path / f"bad_{number}.py"
        path.write_text(text, encoding="utf-8")
        assert list(_generators(path)), text
