"""Train a model on the project's private table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import WAIT, Account, Debug, Json, Wait
from ..telling import Outcome, tell


def train(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="sfumato.yaml with a training section, or a training file.")
    ],
    quote: Annotated[
        bool, typer.Option("--quote", help="Price, time and memory, and end: nothing is charged.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before it is paid.")] = False,
    account: Account = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What it is for; the receipt bears it.")] = "",
    key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Names this training: run again under it, it goes on."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the weights go; model.pt by default.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps what is done while it runs; removed at the end.", show_default=False),
    ] = None,
    wait: Wait = WAIT,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", "-C", metavar="FOLDER", help="Of a training file that lies elsewhere.", show_default=False
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a model with differential privacy, and write its weights. Stopped and run again, it goes on.

    All steps are held in the ledger first, and each is paid before it runs. The same training asked for again is free.
    """

    def work() -> Outcome:
        from ..work.train import trained

        return trained(
            config,
            project,
            quote=quote,
            yes=yes or json,
            account=account,
            note=note,
            key=key,
            out=out,
            checkpoint=checkpoint,
            wait=wait,
        )

    tell(work, json=json, debug=debug)
