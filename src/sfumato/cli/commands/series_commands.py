"""`sfumato series`: one query of a table that grows, released day by day and read in any window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import HERE, WAIT, Alpha, Debug, Folder, Json, Wait
from ..telling import Outcome, tell

series = typer.Typer(
    help="One query of a table that grows: paid once, released day by day, read in any window for nothing.",
    no_args_is_help=True,
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The series: a file such as clicks.yaml.")]


@series.command()
def quote(file: File, project: Folder = HERE, json: Json = False, debug: Debug = False) -> None:
    """What all of it costs, what a unit of fewer days loses, and where each block stands. Charges nothing."""

    def work() -> Outcome:
        from ..work.series_work import quoted

        return quoted(project, file)

    tell(work, json=json, debug=debug)


@series.command()
def run(
    file: File,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is paid.")] = False,
    wait: Wait = WAIT,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Release every block that is over and was not released: for a job that runs every day.

    The first time, all of it is paid. Run again, it pays nothing and draws nothing twice.
    """

    def work() -> Outcome:
        from ..work.series_work import ran

        return ran(project, file, yes=yes or json, wait=wait)

    tell(work, json=json, debug=debug)


@series.command()
def read(
    file: File,
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="The first day of the window.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Its last day.")] = None,
    every: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Each block of a level instead: day, week.")
    ] = None,
    rolling: Annotated[int | None, typer.Option(metavar="DAYS", help="Each window of so many days instead.")] = None,
    running: Annotated[bool, typer.Option("--running", help="Totals since the beginning instead.")] = False,
    by: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Add groups up to those of this column.")
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Add all groups up.")] = False,
    top: Annotated[int | None, typer.Option(metavar="ROWS", help="The largest groups of each window.")] = None,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="By this number; the first one if left out.")
    ] = None,
    least: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Hide smaller numbers; by default what may be noise alone.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a file instead of a table: CSV, or a page such as clicks.html."),
    ] = None,
    alpha: Alpha = 0.05,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Windows, roll-ups and the largest groups of what was released. Free, as often as you like: nothing is drawn."""

    def work() -> Outcome:
        from ..work.series_work import Wanted, windows_read

        wanted = Wanted(first, last, every, rolling, running, () if total else by, top, column, least, alpha)
        return windows_read(project, file, wanted, out)

    tell(work, json=json, debug=debug)
