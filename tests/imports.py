"""Who imports whom, and who may: the table of CONTRIBUTING.md, read as the rule that it is.

    python -m tests.imports      prints the longest chain of imports, and the circles that functions close

A line of the table names its parts, and what they may import:

    | `cells` | `tensors`, `times`, numpy; pyarrow on first use; never a ledger |

A part is a file, a folder (`noise/`), or some files of a folder (`cli/{app,start}`); a file belongs to the longest name
that holds it. "`ledger/` and all in it" are all lines that begin so, "what `plan` may import" is that line's own list,
"but" leaves some out, and "anything" is all of sfumato. What stands before "on first use" is imported inside of
functions only; what begins with "never" is for people. `errors` is open to all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sfumato"
ANYTHING = "anything"
OPEN_TO_ALL = "errors"
SHARED = r"what `([^`]+)` may import((?: (?:but|and) `[^`]+`)*)"


@dataclass(frozen=True)
class Line:
    """What one part may import: parts of sfumato and packages of others."""

    first: frozenset[str] = frozenset()  # with the module
    later: frozenset[str] = frozenset()  # in functions only
    but: frozenset[str] = field(default=frozenset())  # what "anything" leaves out

    def allows(self, name: str, lazily: bool) -> bool:
        names = self.first | self.later if lazily else self.first
        return name in names or (ANYTHING in names and name in table() and name not in self.but)


def _rows() -> list[tuple[str, str]]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    body = text.partition("| file or folder | may import |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [tuple(cell.strip() for cell in row.strip("|").split(" | ")) for row in body.splitlines()]
    return [(left, right) for left, right in rows if "another distribution" not in left]


def members(part: str) -> tuple[str, ...]:
    """The files or folders that a part is: `cli/{app,start}` is two of them."""
    head, brace, tail = part.partition("{")
    return tuple(f"{head}{name}" for name in tail.rstrip("}").split(",")) if brace else (part,)


def _named(text: str) -> list[str]:
    return [name.rstrip("/") for name in re.findall(r"`([^`]+)`", text)]


@cache
def table() -> dict[str, Line]:
    """The lines by part, as CONTRIBUTING.md has them."""
    cells = {part: right for left, right in _rows() for part in _named(left)}
    lines: dict[str, Line] = {}

    def names(clause: str) -> Iterator[str]:
        for shared, but in re.findall(SHARED, clause):
            yield from read(shared.rstrip("/")).first - set(_named(but))
        for folder in re.findall(r"`([^`]+)/` and all in it", clause):
            yield from (part for part in cells if part == folder or part.startswith(f"{folder}/"))
        rest = re.sub(rf"{SHARED}|`[^`]+` and all in it", "", clause)
        yield from _named(rest)
        yield from (word for word in re.findall(r"[a-z_0-9]+", re.sub(r"`[^`]*`", "", rest)) if word != "and")

    def read(part: str) -> Line:
        if part not in lines:
            first, later, but = set[str](), set[str](), set[str]()
            for clause in cells[part].split("; "):
                if clause.startswith("never ") or clause == "the standard library":
                    continue
                lazily, listed = clause.endswith(" on first use"), clause.removesuffix(" on first use")
                if listed.startswith("anything but "):
                    but |= set(names(listed.removeprefix("anything but ")))
                    listed = ANYTHING
                (later if lazily else first).update(names(listed))
            lines[part] = Line(frozenset(first), frozenset(later), frozenset(but))
        return lines[part]

    for part in cells:
        read(part)
    return lines


@cache
def _homes() -> dict[str, str]:
    return {member: part for part in table() for member in members(part)}


def part_of(module: tuple[str, ...]) -> str:
    """The line that a module stands under; where there is none, the one that it needs."""
    heads = ["/".join(module[:length]) for length in range(len(module), 0, -1)]
    return next((_homes()[head] for head in heads if head in _homes()), module[0])


def module_of(path: Path, root: Path = SOURCE) -> tuple[str, ...]:
    return path.relative_to(root).with_suffix("").parts


def file_of(name: str) -> tuple[str, ...]:
    """The module that holds an imported name: `sfumato.ledger.Ledger` stands in ledger/__init__."""
    parts = tuple(name.split(".")[1:])
    while parts and not (SOURCE.joinpath(*parts).is_dir() or SOURCE.joinpath(*parts).with_suffix(".py").is_file()):
        parts = parts[:-1]
    return (*parts, "__init__") if SOURCE.joinpath(*parts).is_dir() else parts


def _for_types(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.dump(node.test)


@cache
def imports(path: Path, root: Path = SOURCE) -> set[tuple[str, str]]:
    """Full dotted names of all that a file imports, and when: `now`, `lazily` in a function, or for `types` alone.

    `import_module("...")` with a name that is written out is an import like any other.
    """
    package = (root.name, *path.relative_to(root).parent.parts)

    def absolute(level: int, name: str | None) -> str:
        above = package[: len(package) - level + 1] if level else ()
        return ".".join((*above, *((name,) if name else ())))

    def names(node: ast.AST) -> list[str]:
        match node:
            case ast.Import():
                return [alias.name for alias in node.names]
            case ast.ImportFrom():
                return [f"{absolute(node.level, node.module)}.{alias.name}" for alias in node.names]
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module")):
                match node.args:
                    case [ast.Constant(value=str(name)), *_]:
                        bare = name.lstrip(".")
                        return [absolute(len(name) - len(bare), bare)]
        return []

    text = path.read_text(encoding="utf-8")
    calls = "import_module" in text  # elsewhere no import stands in an expression
    seen = set[tuple[str, str]]()
    ahead: list[tuple[ast.AST, str]] = [(ast.parse(text), "now")]
    while ahead:
        node, when = ahead.pop()
        seen |= {(name, when) for name in names(node)}
        if isinstance(node, ast.If) and _for_types(node):
            ahead += [*((child, "types") for child in node.body), *((child, when) for child in node.orelse)]
            continue
        if when == "now" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            when = "lazily"
        children = ast.iter_child_nodes(node)
        ahead += [(child, when) for child in children if calls or not isinstance(child, ast.expr)]
    return seen


Graph = dict[tuple[str, ...], set[tuple[str, ...]]]


@cache
def _edges() -> dict[tuple[str, ...], frozenset[tuple[tuple[str, ...], str]]]:
    return {
        module_of(path): frozenset(
            (file_of(name), when) for name, when in imports(path) if name.partition(".")[0] == "sfumato"
        )
        for path in sorted(SOURCE.rglob("*.py"))
    }


def graph(*whens: str) -> Graph:
    """Which module imports which of ours, at these moments."""
    return {
        module: {target for target, when in edges if when in whens and target != module}
        for module, edges in _edges().items()
    }


def reach(links: Graph) -> Graph:
    """All that a module comes to by its imports, and by theirs."""
    reached: Graph = {}
    for start in links:
        seen, ahead = set[tuple[str, ...]](), list(links[start])
        while ahead:
            module = ahead.pop()
            if module not in seen:
                seen.add(module)
                ahead += links[module]
        reached[start] = seen
    return reached


def circles(links: Graph) -> list[list[str]]:
    """Modules that come to each other, and so to themselves."""
    reached = reach(links)
    rings = {
        frozenset({module, *(other for other in reached[module] if module in reached[other])})
        for module in links
        if module in reached[module]
    }
    return sorted(sorted("/".join(module) for module in ring) for ring in rings)


def longest(links: Graph) -> list[str]:
    """The longest chain of modules that import one another, in a graph without circles."""

    @cache
    def below(module: tuple[str, ...]) -> tuple[str, ...]:
        return ("/".join(module), *max((below(target) for target in sorted(links[module])), key=len, default=()))

    return list(max((below(module) for module in links), key=len))


def main() -> None:
    print(f"longest chain of imports: {len(longest(graph('now')))}")
    print(" > ".join(longest(graph("now"))))
    print("circles that imports in functions close:")
    for ring in circles(graph("now", "lazily")):
        print("  " + ", ".join(ring))


if __name__ == "__main__":
    main()
