"""`sfumato bench`: the benchmarks of a checkout, run as `python -m bench.NAME` in its folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

import sfumato

from ..documents import Document, Part
from ..problems import CHECK, FILE, CommandError
from ..screen import columns, say
from ..telling import Outcome

NAMES = {
    "noise": "exact noise beside other libraries' samplers",
    "accounting": "prices beside other accountants: how tight, how fast",
    "mechanisms": "mechanisms beside other libraries'",
    "holdout": "a holdout that is asked again and again",
    "ledger": "a durable release beside bare inserts of the same size",
    "query": "private SQL beside DuckDB and other libraries",
    "startup": "the command line beside a bare one",
}


class BenchPart(Part):
    """One benchmark: how its process ended, and the lines that it printed."""

    name: str
    exit: int
    output: list[str]


class BenchDocument(Document):
    document: Literal["bench/1"] = "bench/1"
    kept: bool
    benchmarks: list[BenchPart]


class BenchmarksDocument(Document):
    """The benchmarks that there are, by name."""

    document: Literal["benchmarks/1"] = "benchmarks/1"
    benchmarks: dict[str, str]


def listed() -> Outcome:
    """What there is."""

    def show(console: Console) -> None:
        columns(console, ("name", "measures"), list(NAMES.items()))
        say(console, "`sfumato bench ledger --quick --check` runs one, from a checkout.", style="dim")

    return Outcome(BenchmarksDocument(benchmarks=NAMES), show)


def benched(names: list[str], *, quick: bool, check: bool, quiet: bool) -> Outcome:
    """Run them one after the other, on the terminal as they print, or kept for a document."""
    if strange := [name for name in names if name not in NAMES]:
        raise CommandError(
            f"there is no benchmark {strange[0][:30]!r}", "it is not on the list", f"give one of {', '.join(NAMES)}"
        )
    root = checkout()
    options = [*(["--quick"] if quick else []), *(["--check"] if check else [])]
    done = [_one(root, name, options, quiet) for name in dict.fromkeys(names)]
    all_kept = not any(each.exit for each in done)
    body = BenchDocument(kept=all_kept, benchmarks=done)

    def show(console: Console) -> None:
        for bench in done:
            if bench.exit:
                say(console, Text(f"bench.{bench.name} ended with {bench.exit}: a bar was missed, or it could not run"),
                    style="bold red")  # fmt: skip

    return Outcome(body, show, 0 if all_kept else CHECK)


def checkout() -> Path:
    """The folder of a checkout: this one or one above it, or the one that this installation runs from."""
    here = Path.cwd()
    beside = Path(sfumato.__file__).resolve().parents[2]
    for folder in (here, *here.parents, beside):
        if (folder / "bench" / "bars.py").is_file() and (folder / "src" / "sfumato").is_dir():
            return folder
    raise CommandError(
        "there are no benchmarks here",
        "they are part of the source, not of the installed package",
        "go to a checkout of sfumato's repository, and run it there",
        FILE,
    )


def _one(root: Path, name: str, options: list[str], quiet: bool) -> BenchPart:
    if not (root / "bench" / f"{name}.py").is_file():
        raise CommandError(
            f"this checkout has no benchmark {name!r}",
            "it is of another version",
            "bring the checkout up to date",
            FILE,
        )
    command = [sys.executable, "-m", f"bench.{name}", *options]
    paths = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    around = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    lines = []
    with subprocess.Popen(command, cwd=root, env=around, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if not quiet:
                sys.stdout.write(line)
                sys.stdout.flush()
    return BenchPart(name=name, exit=process.returncode, output=lines)
