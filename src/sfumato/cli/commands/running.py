"""A list of releases under version control: priced as one, paid once, and taken up again where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import HERE, WAIT, Debug, Folder, Json, Wait
from ..telling import Outcome, tell


def run(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The list: a file such as plan.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Price it, and end: nothing is charged.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is paid.")] = False,
    pay_again: Annotated[
        bool, typer.Option("--pay-again", help="Pay anew for releases that were stopped while they ran.")
    ] = False,
    wait: Wait = WAIT,
    project: Folder = HERE,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Release a list of queries and other plans, priced as one. Run again, it pays only for what is new.

    What was answered before is free, and its file is written again where it is missing.

    What was stopped while it ran is named; --pay-again pays for it once more.
    """

    def work() -> Outcome:
        from ..work.running import ran

        return ran(project, plan, dry_run=dry_run, yes=yes or json, pay_again=pay_again, wait=wait)

    tell(work, json=json, debug=debug)
