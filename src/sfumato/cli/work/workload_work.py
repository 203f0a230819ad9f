"""`sfumato workload`: quote and run a workload of a project."""

from __future__ import annotations

import sys
from pathlib import Path

from ...office.asking import Order
from ...project import open_project
from ...project.workload_file import WorkloadFile, load_workload
from ..problems import CommandError
from ..telling import Outcome
from .agreeing import agree
from .answers import format_of
from .asking import answer_of
from .quoting import quote_of, show_price


def quoted(folder: Path, file: Path, *, alpha: float, explain: bool, gauges: bool) -> Outcome:
    """What it costs, and how exact it will be."""
    _check(alpha)
    project = open_project(folder)
    return quote_of(project, _order(load_workload(file, project), alpha), explain=explain, gauges=gauges)


def ran(
    folder: Path, file: Path, *, yes: bool, out: Path | None, format: str | None, alpha: float, json: bool
) -> Outcome:
    """Pay for it, unless it was paid, and show or write what came out."""
    _check(alpha)
    how = format_of(out, format, json=json)
    if how == "parquet" and out is None and sys.stdout.isatty():
        raise CommandError("Parquet is nothing to look at", "this is a terminal", "give --out FILE, or pipe it on")
    project = open_project(folder)
    workload = load_workload(file, project)
    agree(lambda console: show_price(console, workload.plan), "pay for all of it?", yes=yes)
    return answer_of(project, _order(workload, alpha, out, how))


def _order(workload: WorkloadFile, alpha: float, out: Path | None = None, how: str = "csv") -> Order:
    return Order(workload.plan, workload.account, workload.note or workload.name, None, alpha, out, how)


def _check(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise CommandError(
            "--alpha is not allowed",
            "it is the probability that an error bar does not hold",
            "give a number above 0 and below 1, such as 0.05",
        )
