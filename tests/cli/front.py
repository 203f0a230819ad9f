"""The command line in tests: a small project of made-up visits, and ways to run `sfumato` on it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from sfumato.cli.start import main
from sfumato.private import Private
from sfumato.project import open_project

ROOT = Path(__file__).parents[2]
SOURCE = os.pathsep.join((str(ROOT / "src"), str(ROOT / "referee" / "src")))
STEADY = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
UNWANTED = (
    "FORCE_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "GITHUB_ACTIONS",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "LINES",
)

YAML = """\
sfumato: 1
name: hospital
unit: user:patient
version: "2026-11"
tables:
  visits:
    source: data/visits.csv
    unit: patient
    columns:
      patient: key
      ward: {type: category, values: [east, north, west]}
      cost: {type: real, lower: 0, upper: 1000}
      day: {type: date, lower: 2026-01-01, upper: 2026-12-31}
  wards:
    source: data/wards.csv
    public: true
    columns:
      ward: {type: category, values: [east, north, west]}
      floor: {type: whole, lower: 0, upper: 10000}
limits: {rows: 8, keys: 3}
ledger: {place: budget.ledger, principal: bea}
privacy: {target_epsilon: 0.5, target_delta: 1e-7}
budget:
  total: {epsilon: 2, delta: 1e-6}
  allocations: {training: 0.5, evaluation: 0.3}
  alert_threshold: 0.5
"""
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward"
SLOW = (  # hours, whatever the machine: it must not end before it is interrupted
    "SELECT COUNT(*) AS n FROM visits JOIN wards a ON a.floor <> 0 JOIN wards b ON b.floor <> a.floor "
    "JOIN wards c ON c.floor <> b.floor JOIN wards d ON d.floor <> c.floor"
)


class Ran(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def make_project(folder: Path, *, text: str = YAML, ledger: bool = True, wards: int = 3) -> Path:
    """A project of 400 patients with three visits each."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "sfumato.yaml").write_text(text, encoding="utf-8")
    rows = [f"P{n % 400},{'east' if n % 3 else 'north'},{n % 200}.5,2026-{n % 12 + 1:02}-10" for n in range(1200)]
    (folder / "data" / "visits.csv").write_text("\n".join(["patient,ward,cost,day", *rows, ""]), encoding="utf-8")
    names = [f"{('east', 'north', 'west')[n % 3]},{n}" for n in range(wards)]
    (folder / "data" / "wards.csv").write_text("\n".join(["ward,floor", *names, ""]), encoding="utf-8")
    if ledger:
        project = open_project(folder)
        with project.ledger(create=True) as made:
            project.open_accounts(made)
    return folder


@contextlib.contextmanager
def broken_data() -> Iterator[None]:
    """Private data that cannot be read: a release in this process fails on the data's side, with a cell in the words of
    whatever failed."""

    def fails(*_: Any) -> None:
        raise RuntimeError("SECRET-4711")

    with mock.patch.object(Private, "_open", fails):
        yield


@contextlib.contextmanager
def _surroundings(folder: Path, variables: Mapping[str, str]) -> Iterator[None]:
    before, place = dict(os.environ), Path.cwd()
    os.environ.update(variables)
    for name in UNWANTED:
        os.environ.pop(name, None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)


def sfumato(*arguments: str, at: Path, stdin: str = "", encoding: str = "utf-8", **variables: str) -> Ran:
    """Run a command in this process: what `sfumato ...` does, but for the start of Python."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
    kept, heard = sys.stdin, signal.getsignal(signal.SIGINT)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    code: Any = None
    try:
        with _surroundings(at, STEADY | variables), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(list(arguments))
            except SystemExit as end:
                code = end.code
    finally:
        sys.stdin = kept
        signal.signal(signal.SIGINT, heard)  # a command that was interrupted hears no second Ctrl-C, tests do
    texts = [each.buffer.getvalue().decode(encoding) for each in (out, err)]  # type: ignore[attr-defined]
    return Ran(code, *texts)


def environment(**variables: str) -> dict[str, str]:
    """For a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    return {**kept, **STEADY, "PYTHONPATH": SOURCE, **variables}


def started(*arguments: str, at: Path, **more: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    variables = more.pop("variables", {})
    return subprocess.Popen(
        [sys.executable, "-m", "sfumato.cli", *arguments],
        cwd=at,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **more,
    )
