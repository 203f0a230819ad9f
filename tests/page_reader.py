"""Does the steps of one page, in order: a program of its own, so that a page finds the world as a reader does.

Blocks of Python share one module that can be found by name (dataclasses look theirs up). Shell commands keep folder and
exported variables between them, and the Python of the page is in the same folder.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any


def main() -> None:
    state = Path(sys.argv[1])
    (state / "exports").write_text("", encoding="utf-8")
    module = types.ModuleType("page")
    sys.modules["page"] = module
    sys.path[0] = ""  # as in a session at a prompt, not the folder of this file
    for step in json.load(sys.stdin):
        if step["kind"] == "python":
            code = Path(step["path"]).read_text(encoding="utf-8")
            exec(compile(code, step["path"], "exec"), module.__dict__)
        elif step["kind"] == "file":
            place = Path(step["title"])
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(step["text"], encoding="utf-8")
        else:
            for command in step["commands"]:
                _type(command, state, exact=step["mark"] == "exact", line=step["line"])


def _type(command: dict[str, Any], state: Path, *, exact: bool, line: int) -> None:
    exports, folder = shlex.quote(str(state / "exports")), shlex.quote(str(state / "folder"))
    script = f". {exports}\n{command['text']}\n_ended=$?\nexport -p > {exports}\npwd -P > {folder}\nexit $_ended\n"
    sys.stdout.flush()
    done = subprocess.run(
        ["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    told = f"in the block at line {line}:\n$ {command['text']}\n{done.stdout}"
    if done.returncode != command["code"]:
        sys.exit(f"{told}\nended with {done.returncode}, not {command['code']}")
    if exact and _lines(done.stdout) != _lines(command["shown"]):
        sys.exit(f"{told}\nis not what the page shows:\n{command['shown']}")
    os.chdir((state / "folder").read_text(encoding="utf-8").rstrip("\n"))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


if __name__ == "__main__":
    main()
