"""`sfumato ledger`, the part that others read: the proof, exports, reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell
from .ledgers import Account, Anchor, KeyFile, Overwrite, Place, Project, Redact, ledger, where

__all__ = ["ledger"]


@ledger.command()
def verify(
    trust: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="A public key (hex) that may have signed the anchor.")
    ] = None,
    state: Annotated[
        bool, typer.Option("--state/--chain-only", help="Replay and price every entry, or check the hashes only.")
    ] = True,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Is the ledger what was written? Ends with 7, and names the first bad entry, where it is not."""

    def work() -> Outcome:
        from ..work.ledgers.proving import verify

        return verify(where(project, place, anchor, key_file), trust or [], state)

    tell(work, json=json, debug=debug)


@ledger.command()
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="FILE.ndjson, FILE.csv or FILE.parquet.")],
    what: Annotated[str, typer.Option(help="releases or entries.")] = "releases",
    price: Annotated[bool, typer.Option("--price/--no-price", help="Price each release at its own delta.")] = True,
    overwrite: Overwrite = False,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """All releases, or all entries, as a table for other programs."""

    def work() -> Outcome:
        from ..work.ledgers.proving import export

        return export(where(project, place, anchor, key_file), file, what, overwrite, price)

    tell(work, json=json, debug=debug)


@ledger.command()
def report(
    account: Account = None,
    release: Annotated[
        str | None, typer.Option(metavar="ENTRY|ID", help="Of one release instead: its entry, or its receipt's id.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="FILE.html or FILE.json; report-ACCOUNT.html beside the project by default.")
    ] = None,
    redact: Redact = None,
    overwrite: Overwrite = False,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """A report that a compliance officer can sign: of an account, or of one release."""

    def work() -> Outcome:
        from ..work.ledgers.papers import report

        return report(where(project, place, anchor, key_file), account, release, out, redact or [], overwrite)

    tell(work, json=json, debug=debug)


@ledger.command()
def checklist(
    account: Account = None,
    redact: Redact = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The checklist of NIST SP 800-226: what a claim must state, and the hazards."""

    def work() -> Outcome:
        from ..work.ledgers.papers import checklist

        return checklist(where(project, place, anchor, key_file), account, redact or [])

    tell(work, json=json, debug=debug)


@ledger.command()
def registry(
    account: Account = None,
    redact: Redact = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """A draft for the public registry of DP deployments, as YAML: `sfumato ledger registry > FILE`."""

    def work() -> Outcome:
        from ..work.ledgers.papers import registry

        return registry(where(project, place, anchor, key_file), account, redact or [])

    tell(work, json=json, debug=debug)


@ledger.command()
def forecast(
    account: Account = None,
    error: Annotated[
        str | None, typer.Option(metavar="E", help="How many more counts fit whose error stays within +-E (95 %).")
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="N", help="With a public number of rows N, the error is a part of it.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=36500, help="The rate is that of the last so many days.")] = 30,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """When the budget is used up at this rate, and how much more fits."""

    def work() -> Outcome:
        from ..work.ledgers.papers import forecast

        return forecast(where(project, place, anchor, key_file), account, error, size, days)

    tell(work, json=json, debug=debug)
