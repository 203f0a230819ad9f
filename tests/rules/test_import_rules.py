"""Who may import whom. A newcomer's module is not in the table, so this test asks for the line before the code lands.

The table stands in CONTRIBUTING.md and nowhere else; tests/imports.py reads it. docs/decisions/0004-file-layout.md
changes in the same commit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.imports import (
    ANYTHING,
    OPEN_TO_ALL,
    ROOT,
    SOURCE,
    circles,
    file_of,
    graph,
    imports,
    longest,
    members,
    module_of,
    part_of,
    table,
)

REFEREE = ROOT / "referee" / "src" / "sfumato_referee"
LOOKS_FOR_THE_REFEREE = SOURCE / "cli" / "work" / "referee.py"
PACKAGES = {
    "numpy", "scipy", "cryptography", "yaml", "pyarrow", "psycopg", "pydantic", "pydantic_core", "sqlglot", "duckdb",
    "torch", "matplotlib", "jinja2", "markupsafe", "typer", "rich", "pyspark",
}  # fmt: skip
# psycopg on first use, for races on a server; faults of queries are trees of sqlglot
REFEREE_PACKAGES = {"numpy", "scipy", "torch", "psycopg", "sqlglot"}
# Modules that come to themselves by imports inside of functions. Only ever fewer: `python -m tests.imports` lists them.
IN_CIRCLES_OF_FUNCTIONS = 11
# Modules in the longest chain of imports. Only ever fewer: import from the file that holds the name.
LONGEST_CHAIN = 34


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_every_file_imports_only_what_its_line_allows() -> None:
    assert _files() and [problem for path in _files() for problem in _not_allowed(path)] == []


def _not_allowed(path: Path) -> Iterator[str]:
    part = part_of(module_of(path))
    if part not in table():
        yield f"{part} is new: give it a line in the table of CONTRIBUTING.md"
        return
    for name, when in sorted(imports(path)):
        first = name.partition(".")[0]
        if first in sys.stdlib_module_names or (first == "sfumato_referee" and path == LOOKS_FOR_THE_REFEREE):
            continue
        home = part_of(file_of(name)) if first == "sfumato" else first
        if not (home in (part, OPEN_TO_ALL) or table()[part].allows(home, lazily=when != "now")):
            yield f"{part} may not import {name}{'' if when != 'now' else ' with the module'} ({path.name})"


def test_the_referee_imports_the_library_and_no_more_than_it_did() -> None:
    files = sorted(REFEREE.rglob("*.py"))
    firsts = {(path.name, name.partition(".")[0]) for path in files for name, _ in imports(path, REFEREE)}
    allowed = {"sfumato", "sfumato_referee", *sys.stdlib_module_names, *REFEREE_PACKAGES}
    assert firsts and sorted((file, first) for file, first in firsts if first not in allowed) == []


def test_one_place_of_the_library_knows_of_the_referee() -> None:
    """Nobody who releases data needs planted faults: by no import, and by no name in a text either."""
    knowing = [path for path in _files() if "sfumato_referee" in path.read_text(encoding="utf-8")]
    assert knowing == [LOOKS_FOR_THE_REFEREE]


def test_the_table_has_no_line_too_many() -> None:
    assert set(table()) == {part_of(module_of(path)) for path in _files()}
    for part in table():
        for member in members(part):
            assert (SOURCE / member).is_dir() or (SOURCE / member).with_suffix(".py").is_file(), member


def test_every_allowed_module_exists() -> None:
    for part, line in table().items():
        assert line.first | line.later | line.but <= {*table(), *PACKAGES, ANYTHING}, part


def test_the_table_is_an_order() -> None:
    """Where a line lists its imports, no part reaches itself through what it may import."""

    def reach(part: str, seen: frozenset[str]) -> None:
        assert part not in seen, f"{part} may import itself through {sorted(seen)}"
        if part not in passed:
            for following in (table()[part].first | table()[part].later) & set(table()):
                reach(following, seen | {part})
            passed.add(part)

    passed: set[str] = set()
    for part, line in table().items():
        if ANYTHING not in line.first | line.later:
            reach(part, frozenset())


def test_no_part_imports_itself_through_others() -> None:
    """As it is, with lines that may import anything, too."""
    links: dict[tuple[str, ...], set[tuple[str, ...]]] = {(part,): set() for part in table()}
    for module, targets in graph("now").items():
        part = part_of(module)
        links[(part,)] |= {(part_of(target),) for target in targets if part_of(target) != part}
    assert circles(links) == []


def test_no_module_is_imported_in_a_circle() -> None:
    assert circles(graph("now")) == []
    rings = circles(graph("now", "lazily"))
    count = sum(len(ring) for ring in rings)
    assert count <= IN_CIRCLES_OF_FUNCTIONS, f"imports in functions close new circles: {rings}"
    assert count == IN_CIRCLES_OF_FUNCTIONS, f"well done: write IN_CIRCLES_OF_FUNCTIONS = {count}"


def test_imports_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    source = tmp_path / "sfumato" / "noise" / "bits.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "from __future__ import annotations\n"
        "import importlib\nfrom importlib import import_module as load, import_module\n"
        "from typing import TYPE_CHECKING\nfrom . import pieces\nfrom ..laws import Law\n"
        "if TYPE_CHECKING:\n    from ..plan import Plan\n"
        "table = importlib.import_module('sfumato.ledger')\n"
        "def later():\n    from ..curator import Curator\n    return import_module('..cells', __package__)\n"
        "class Now:\n    import torch\n"
    )
    seen = {
        (name, when)
        for name, when in imports(source, tmp_path / "sfumato")
        if not name.startswith(("typ", "__", "imp"))
    }
    assert seen == {
        ("sfumato.noise.pieces", "now"),
        ("sfumato.laws.Law", "now"),
        ("sfumato.plan.Plan", "types"),
        ("sfumato.ledger", "now"),
        ("sfumato.curator.Curator", "lazily"),
        ("sfumato.cells", "lazily"),
        ("torch", "now"),
    }


def test_a_ledger_is_read_without_an_engine() -> None:
    code = (
        "import sys; from sfumato import Budget, MemoryLedger; from sfumato.ledger import open_ledger, verify\n"
        "ledger = MemoryLedger({'a': Budget(epsilon=1)}); assert ledger.verify().ok; ledger.history()\n"
        "print(sorted(name for name in sys.modules if name.startswith(('sfumato.sources', 'sqlglot', 'duckdb'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_the_table_is_read_as_it_is_written() -> None:
    assert table()["cells"].first == {"times", "tensors", "numpy"}
    assert table()["cells"].later == {"pyarrow"}
    assert "rows" in table()["mechanisms"].first, "what `plan` may import"
    assert not table()["mechanisms"].allows("ledger", lazily=True)
    assert not table()["audit"].allows("cli/work", lazily=True)
    assert not table()["audit"].allows("duckdb", lazily=True), "anything is of ours"
    assert part_of(("ledger", "proof", "chain")) != part_of(("ledger", "proof", "verify"))


def test_the_longest_chain_only_gets_shorter() -> None:
    modules = [tuple(name.split("/")) for name in longest(graph("now"))]
    assert len(modules) <= LONGEST_CHAIN, f"a longer chain of imports: {modules}"
    assert len(modules) == LONGEST_CHAIN, f"well done: write LONGEST_CHAIN = {len(modules)}"
    assert all(below in graph("now")[above] for above, below in pairwise(modules))
