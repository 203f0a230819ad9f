"""Pages of the documentation, read and run: what a reader would do with them, in order, in one folder of their own.

```python                    runs; blocks of a page share one namespace
```python no-run             is only compiled
```console                   lines that begin with `$ ` run in a shell (`> ` goes on with the line above); a page's
                             folder and exported variables stay. A command must succeed, unless it ends in `# exit 5`
                             or its output is followed by a line `# exit 5`: then it must end with that code
```console exact             and what it prints must be what is shown
```console no-run            is for readers only
```yaml title="a.yaml"       is written into the folder under that name, in any language
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [path for name in ("README.md", "CONTRIBUTING.md") if (path := ROOT / name).is_file()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'\btitle="(?P<title>[^"]*)"')
_EXIT = re.compile(r"(?:^|\s)# exits? (?P<code>\d+)\s*$")
_MARKS = {"python": ("no-run",), "console": ("no-run", "exact")}


@dataclass(frozen=True)
class Block:
    """A fence that does something. `line` is the page's line before its first one."""

    kind: str  # python, console or file
    line: int
    text: str
    mark: str = ""
    title: str = ""


@dataclass(frozen=True)
class Command:
    """One command of a console block, the code that it must end with, and the output shown below it."""

    text: str
    code: int
    shown: str


def blocks(page: Path) -> Iterator[Block]:
    """What a page asks to be done, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        language, *marks = _TITLE.sub("", fence["info"]).split() or [""]
        body = "\n".join(line.removeprefix(fence["indent"]) for line in fence["body"].splitlines()) + "\n"
        line = text.count("\n", 0, fence.start("body"))
        if title := _TITLE.search(fence["info"]):
            place = Path(title["title"])
            assert title["title"] and not place.is_absolute() and ".." not in place.parts, f"{page.name}: {place}"
            yield Block("file", line, body, title=title["title"])
        elif language in _MARKS:
            assert not marks or (len(marks) == 1 and marks[0] in _MARKS[language]), (
                f"{page.name}: a fence says {fence['info']!r}"
            )
            yield Block(language, line, body, mark="".join(marks))


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    typing = False
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], 0, ""))
            typing = True
            continue
        assert found, f"line {block.line}: a console block starts with a command, `$ ...`"
        last = found[-1]
        if typing and (line == ">" or line.startswith("> ")):
            found[-1] = Command(f"{last.text}\n{line[2:]}", last.code, last.shown)
            continue
        typing = False
        if line.startswith("#") and (ends := _EXIT.search(line)):
            found[-1] = Command(last.text, int(ends["code"]), last.shown)
        else:
            found[-1] = Command(last.text, last.code, f"{last.shown}{line.rstrip()}\n")
    return [
        Command(each.text, int(ends["code"]), each.shown) if (ends := _EXIT.search(each.text)) else each
        for each in found
    ]


_READER = [sys.executable, "-W", "error", str(Path(__file__).with_name("page_reader.py"))]


@contextmanager
def reader() -> Iterator[subprocess.Popen[str]]:
    """A program that has imported the library, and does page after page, each in a fork."""
    with subprocess.Popen(
        [*_READER, "--pages"], env=_environment(ROOT), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        yield started


def run(page: Path, place: Path, by: subprocess.Popen[str] | None = None) -> str:
    """Do what a page says, in a new folder below `place`; what went wrong, or nothing. In a process of its own, or `by`
    a reader that is there."""
    steps, here = [], place / "here"
    here.mkdir()
    for block in blocks(page):
        step = asdict(block)
        if block.kind == "python":
            padded = "\n" * block.line + block.text  # so that a traceback names the line of the page
            compile(padded, page.name, "exec")
            step["path"] = str(place / f"{page.stem}_line_{block.line}.py")  # plans hash functions by their source
            Path(step["path"]).write_text(padded, encoding="utf-8")
        elif block.kind == "console":
            step["commands"] = [asdict(each) for each in commands(block)]
        if block.mark != "no-run":
            steps.append(step)
    if not steps:
        return ""
    _programs(place / "programs")
    if by is not None:
        return _done_by(by, steps, place)
    done = subprocess.run(
        [*_READER, str(place)],
        input=json.dumps(steps),
        cwd=here,
        env=_environment(place),
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else done.stderr or f"it ended with {done.returncode}"


def _done_by(reader: subprocess.Popen[str], steps: list[dict[str, Any]], place: Path) -> str:
    assert reader.stdin is not None and reader.stdout is not None
    order = {"place": str(place), "environment": _environment(place), "steps": steps}
    reader.stdin.write(json.dumps(order) + "\n")
    reader.stdin.flush()
    code = reader.stdout.readline().strip()
    return "" if code == "0" else (place / "errors").read_text(encoding="utf-8") or f"it ended with {code}"


def _programs(folder: Path) -> None:
    """`sfumato` and `python` as a reader has them, whether or not the package is installed here."""
    folder.mkdir()
    for name, program in (("sfumato", "-m sfumato.cli"), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {program} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


def _environment(place: Path) -> dict[str, str]:
    path = os.pathsep.join([str(place / "programs"), os.environ.get("PATH", os.defpath)])
    searched = os.pathsep.join((str(ROOT / "src"), str(ROOT / "referee" / "src")))
    return {
        **os.environ, "PATH": path, "PYTHONPATH": searched, "MPLBACKEND": "agg",
        "COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1",
    }  # fmt: skip
