"""`sfumato workload`: many tables of the same cells, measured together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import HERE, Alpha, Debug, Folder, Format, Gauges, Json, Out
from ..telling import Outcome, tell

workload = typer.Typer(
    help="Many tables, ranges and cumulative sums of the same cells, measured together for one price.",
    no_args_is_help=True,
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The workload: a file such as ages.yaml.")]


@workload.command()
def quote(
    file: File,
    alpha: Alpha = 0.05,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the steps, and the SQL that the engine runs.")
    ] = False,
    gauges: Gauges = False,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What all of it costs, what would be measured, and how exact each table will be. Charges nothing."""

    def work() -> Outcome:
        from ..work.workload_work import quoted

        return quoted(project, file, alpha=alpha, explain=explain, gauges=gauges)

    tell(work, json=json, debug=debug)


@workload.command()
def run(
    file: File,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is paid.")] = False,
    out: Out = None,
    format: Format = None,
    alpha: Alpha = 0.05,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Release all tables. Run again, it costs nothing and tells the same."""

    def work() -> Outcome:
        from ..work.workload_work import ran

        return ran(project, file, yes=yes or json, out=out, format=format, alpha=alpha, json=json)

    tell(work, json=json, debug=debug)
