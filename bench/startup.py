"""How soon `sfumato --help` is there, side by side with a bare Typer app of two commands.

    python -m bench.startup [--quick] [--check]

Each round starts both once, one after the other; the figures are medians over the rounds, in CPU time (user and
system) of the process and all that it starts.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import table
from bench.bars import Bar, bars_block, progress, times

MOST = 1.5
BARE = '''\
from typing import Annotated

import typer

app = typer.Typer(help="A bare app.", no_args_is_help=True)


@app.command()
def hello(name: Annotated[str, typer.Argument(help="Whom to greet.")], loud: bool = False) -> None:
    """Say hello."""


@app.command()
def goodbye(name: Annotated[str, typer.Argument(help="Whom to greet.")], loud: bool = False) -> None:
    """Say goodbye."""


app()
'''


def cpu(words: list[str], folder: Path) -> float:
    """Seconds of CPU that a command takes from its start to its end."""
    source = str(Path(__file__).parents[1] / "src")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(rounds: int) -> tuple[float, float]:
    """Medians: ours, and the bare app's."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "bare.py").write_text(BARE, encoding="utf-8")
        ours = [sys.executable, "-m", "sfumato.cli", "--help"][1:]
        bare = ["bare.py", "--help"]
        for words in (ours, bare):
            cpu(words, folder)  # so that both find their bytecode compiled
        found: dict[str, list[float]] = {"ours": [], "bare": []}
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            for name, words in (("ours", ours), ("bare", bare)):
                found[name].append(cpu(words, folder))
    return statistics.median(found["ours"]), statistics.median(found["bare"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--check", action="store_true", help="fail where the bar is missed")
    asked = parser.parse_args()
    ours, bare = measured(7 if asked.quick else 31)
    print("Start-up: the help of a command line, CPU time")
    rows = [("", "CPU"), ("sfumato --help", table.duration(ours)), ("a bare Typer app's --help", table.duration(bare))]
    print(table.aligned(rows))
    bars = [Bar(f"sfumato / bare ≤ {MOST}", times(ours / bare), kept=ours <= MOST * bare)]
    print("\n" + bars_block(bars))
    if asked.check and not all(bar.kept for bar in bars):
        sys.exit(1)


if __name__ == "__main__":
    main()
