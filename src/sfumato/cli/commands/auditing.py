"""Hold plans to their price: an audit on made-up rows, before anything is paid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell

_LOOKED, _WRITTEN = "How hard to look", "What is written"


def audit(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PLAN",
            help="Files: plan.yaml, a training file, or sfumato.yaml with a training. With --shipped: names of plans.",
            show_default=False,
        ),
    ] = None,
    shipped: Annotated[
        bool, typer.Option("--shipped", help="Audit the plans that sfumato itself ships; without names, all of them.")
    ] = False,
    reproduce: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Count the evidence of an earlier audit again, on fresh runs.", show_default=False
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="The time for all of them together; 1 by default.", rich_help_panel=_LOOKED
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Instead of minutes: runs on each side of a pair.", rich_help_panel=_LOOKED
        ),
    ] = None,
    false_alarm: Annotated[
        float,
        typer.Option(
            metavar="NUMBER",
            help="The chance that any honest plan is called broken, all plans together.",
            rich_help_panel=_LOOKED,
        ),
    ] = 1e-6,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Seed the bits; with --runs the numbers come out again.", rich_help_panel=_LOOKED
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="List every outcome with its exact probability, too, where they are few: up to some minutes more.",
            rich_help_panel=_LOOKED,
        ),
    ] = False,
    promises: Annotated[
        bool,
        typer.Option(
            "--promises",
            help="Hold each plan to the promises of every plan, too (refusals, JSON, odd data): up to a minute more "
            "for each.",
            rich_help_panel=_LOOKED,
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write a report: .html or .json.",
            rich_help_panel=_WRITTEN,
            show_default=False,
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the worst pair and event of each plan, for --reproduce.",
            rich_help_panel=_WRITTEN,
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there.", rich_help_panel=_WRITTEN)
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", "-C", metavar="FOLDER", help="The project of files that lie elsewhere.", show_default=False
        ),
    ] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Audit releases before they are paid: look for neighbours that prove more privacy lost than is claimed.

    Runs every plan of the files on made-up rows. Neither the data nor the ledger is opened, and nothing is charged.

    Ends with 9 if a plan is broken, or could not be run as asked.
    """

    def work() -> Outcome:
        from ..work.auditing import AuditOptions, audited, reproduced

        options = AuditOptions(
            what=tuple(what or ()),
            shipped=shipped,
            project=project,
            minutes=minutes,
            runs=runs,
            false_alarm=false_alarm,
            seed=seed,
            verify=verify,
            promises=promises,
            out=out,
            evidence=evidence,
            overwrite=overwrite,
        )
        return audited(options) if reproduce is None else reproduced(reproduce, options)

    tell(work, json=json, debug=debug)
