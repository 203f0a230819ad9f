"""`sfumato demo`: the main job on a made-up hospital, each step a command that anybody can type, run for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console
from rich.text import Text

from ... import __file__ as package
from ...example import FILES, hospital
from ...project import open_project
from ...project.alone import LOCK
from ..documents import Document, Part
from ..problems import BUDGET, CHECK, FILE, CommandError
from ..screen import columns, say, screen
from ..telling import Outcome

FOLDER = Path("hospital-demo")
REPORT = "report-hospital.html"
_OWN = {*FILES, LOCK, ".gitignore", "budget.key", "budget.ledger", REPORT}
_BEGIN = ("budget.ledger-", "anchor/budget.anchor", "out/", "report-")
QUERY = """\
SELECT ward, COUNT(*) AS n, AVG(cost) AS mean
                 FROM visits GROUP BY ward"""
DEAR = """\
SELECT diagnosis, COUNT(DISTINCT patient) AS patients
                 FROM visits GROUP BY diagnosis"""


@dataclass(frozen=True)
class DemoStep:
    """One command: what it is for, and the code that it must end with."""

    about: str
    words: tuple[str, ...]
    code: int = 0

    @property
    def typed(self) -> str:
        """As one would type it, at most 80 wide."""
        parts = [f'"{word}"' if " " in word else word for word in self.words]
        return "$ sfumato " + " ".join(parts)


STEPS = (
    DemoStep("A made-up hospital as a project: tables, sfumato.yaml, a ledger.", ("init", ".", "--example")),
    DemoStep("What is there, whom it hides, what may be spent. No data is read.", ("describe",)),
    DemoStep("What would this cost, and how exact would it be? Free.", ("quote", QUERY, "--unclip")),
    DemoStep("Ask it: it is paid for, then the data is read, and noise is added.", ("query", QUERY, "--unclip")),
    DemoStep("The same again is free, and the same: nobody can average the noise away.", ("query", QUERY, "--unclip")),
    DemoStep(
        "A dearer one. The budget is short, so it is refused before it runs.",
        ("query", DEAR, "--epsilon", "2"),
        BUDGET,
    ),
    DemoStep("The ledger: is every entry there, unchanged, and signed?", ("ledger", "verify")),
    DemoStep("A report that a compliance officer can sign.", ("ledger", "report")),
)


class StepPart(Part):
    command: list[str]
    code: int
    expected: int


class TruthPart(Part):
    """A ward: the noisy number of visits with its error bar, and the true one. The hospital is made up."""

    ward: str
    answer: float
    error: float
    truth: float


class DemoDocument(Document):
    """What `sfumato demo --json` prints."""

    document: Literal["demo/1"] = "demo/1"
    folder: str
    steps: list[StepPart]
    truth: list[TruthPart]
    report: str


def demo(folder: Path, *, quiet: bool) -> Outcome:
    """Run all steps in a fresh folder. Each must end as it says; the ledger is asked whether all of it happened."""
    console = screen()
    console.quiet = quiet
    _clear(folder)
    folder.mkdir(parents=True, exist_ok=True)
    steps: list[StepPart] = []
    truth: list[TruthPart] = []
    for number, step in enumerate(STEPS, 1):
        console.print()
        console.rule(Text(f"{number}  {step.about}", style="bold"), align="left", style="dim")
        console.print(Text(step.typed, style="bold cyan"))
        code = _run(folder, step.words, quiet)
        if code != step.code:
            raise CommandError(
                f"the demo stopped at step {number}",
                f"sfumato {step.words[0]} ended with {code}, not with {step.code}",
                f"run it again in {folder} with --debug, and please report it",
                CHECK,
            )
        if code:
            console.print(Text(f"(exit code {code}; nothing was charged)", style="dim"))
        elif step.words[0] == "query" and not truth:
            truth = _truth(folder)
            _show_truth(console, truth)
        steps.append(StepPart(command=list(step.words), code=code, expected=step.code))
    _check(folder)
    body = DemoDocument(folder=str(folder), steps=steps, truth=truth, report=str(folder / REPORT))
    return Outcome(body, lambda console: _show_end(console, folder))


def _clear(folder: Path) -> None:
    """Remove what an earlier demo made; refuse to touch anything else."""
    if not folder.exists():
        return
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    ours = {name for name in files if name in _OWN or name.startswith(_BEGIN)}
    if not folder.is_dir() or files - ours or (files and "plan.yaml" not in files):
        raise CommandError(
            f"{folder} is not empty",
            "it holds files that no demo made, and nothing is overwritten",
            "give another folder: sfumato demo FOLDER",
            FILE,
        )
    shutil.rmtree(folder)


def _run(folder: Path, words: tuple[str, ...], quiet: bool) -> int:
    """A process of its own for each command, as a shell would start it: what is kept is kept in files."""
    sys.stdout.flush()
    silent = subprocess.DEVNULL if quiet else None
    here = str(Path(package).resolve().parents[1])  # the commands find this very package, also if it is not installed
    place = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))}
    command = [sys.executable, "-m", "sfumato.cli", *words]
    return subprocess.run(command, cwd=folder, env=place, stdout=silent, stderr=silent).returncode


def _truth(folder: Path) -> list[TruthPart]:
    """The true numbers beside the noisy ones: only because nobody lives in this data."""
    wards, counts = np.unique(hospital().visits["ward"], return_counts=True)
    true = dict(zip(wards.tolist(), counts.tolist(), strict=True))
    project = open_project(folder)
    with project.ledger() as ledger:
        answer = project.curator(ledger).release(project.plan(QUERY, unclip=True)).value  # asked before, so free
    rows = zip(answer["ward"], answer["n"], answer.half_width("n"), strict=True)
    return [TruthPart(ward=ward, answer=n, error=error, truth=true[ward]) for ward, n, error in rows]


def _show_truth(console: Console, truth: list[TruthPart]) -> None:
    console.print()
    say(console, "These people are made up, so for once the truth may stand beside the answer:", style="italic")
    rows = [(each.ward, f"{each.answer:,.0f} ± {each.error:,.0f}", f"{each.truth:,.0f}") for each in truth]
    columns(console, ("ward", "n", "truth"), rows, (1, 2))
    about = "± covers the noise, and what is not known of the visits that limits cut (--unclip measures those)."
    say(console, about, style="dim")


def _check(folder: Path) -> None:
    """What the steps said, out of the ledger: one release was paid for, the dear one was not, and a report is there."""
    project = open_project(folder)
    with project.ledger(read_only=True) as ledger:
        states = [each.state for each in ledger.releases(account=project.account)]
        sound = ledger.verify().ok
    report = folder / REPORT
    if states != ["answered"] or not sound or not report.is_file() or not report.stat().st_size:
        raise CommandError("the demo did not do what it says", "the ledger tells otherwise", "please report it", CHECK)


def next_commands(folder: Path) -> list[tuple[str, str]]:
    """What to type after the demo, and what it is for."""
    activate = Path(sys.prefix) / "bin" / "activate"
    lines = [] if shutil.which("sfumato") or not activate.exists() else [(f". {os.path.relpath(activate)}", "")]
    return [
        *lines,
        (f"cd {folder}", ""),
        ("sfumato run plan.yaml", "three releases, priced as one"),
        ('sfumato query "SELECT AVG(2026 - born) AS age FROM patients" --epsilon 0.2', ""),
        ("sfumato explain 1", "what an epsilon means"),
        ("sfumato ledger status", "what is left"),
        (f"open {REPORT}", "in a browser"),
        ("sfumato init ../mine", "the same with data of your own"),
    ]


def _show_end(console: Console, folder: Path) -> None:
    console.print()
    console.rule(Text("All of it happened as said. What to try next", style="bold green"), align="left", style="dim")
    for command, about in next_commands(folder):
        line = Text(f"  {command}", style="cyan")
        console.print(line.append(f"{'':{max(36 - len(command), 2)}}{about}" if about else "", style="dim"))
