"""Does the steps of one page, in order: a program of its own, so that a page finds the world as a reader does.

Blocks of Python share one module that can be found by name (dataclasses look theirs up). Shell commands keep folder and
exported variables between them, and the Python of the page is in the same folder.

    python page_reader.py STATE      does the steps on its input
    python page_reader.py --pages    imports the library, and does the steps of each line of its input in a fork
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import Any


def main() -> None:
    if sys.argv[1] == "--pages":
        _do_pages()
    else:
        _do(json.load(sys.stdin), Path(sys.argv[1]))


def _do_pages() -> None:
    """To import anew for each page what nearly all of them need would take longer than most pages do."""
    import pyarrow  # noqa: F401
    import scipy.special  # noqa: F401
    import sqlglot.dialects.duckdb  # noqa: F401

    import sfumato.curator
    import sfumato.ledger.opening
    import sfumato.private
    import sfumato.query.ask  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            _do_page(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _do_page(order: dict[str, Any]) -> None:
    """In a fork: with the surroundings and the folder that a process of its own would have. Never comes back."""
    place, code = Path(order["place"]), 1
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(place / "here")
    for number, name in enumerate((os.devnull, f"{place}/told", f"{place}/errors")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    try:
        _do(order["steps"], place)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _do(steps: list[dict[str, Any]], state: Path) -> None:
    (state / "exports").write_text("", encoding="utf-8")
    module = types.ModuleType("page")
    sys.modules["page"] = module
    sys.path[0] = ""  # as in a session at a prompt, not the folder of this file
    for step in steps:
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
