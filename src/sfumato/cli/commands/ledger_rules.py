"""`sfumato ledger`, the part of those who answer for it: the policy, approvals, a copy that was restored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell
from .ledgers import Anchor, KeyFile, Place, Principal, Project, Reason, ledger, where

__all__ = ["ledger"]

_RULES = "The policy, and a copy that was restored"


@ledger.command(rich_help_panel=_RULES)
def adopt(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy, a YAML file.")],
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Obey this policy from now on. Another one than the first takes approvals under the one before it."""

    def work() -> Outcome:
        from ..work.ledgers.governing import adopt

        return adopt(where(project, place, anchor, key_file, principal), file, reason)

    tell(work, json=json, debug=debug)


@ledger.command(rich_help_panel=_RULES)
def provision(
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Open the accounts that the policy lists, and change limits that differ: all of it, or nothing."""

    def work() -> Outcome:
        from ..work.ledgers.governing import provision

        return provision(where(project, place, anchor, key_file, principal))

    tell(work, json=json, debug=debug)


@ledger.command(rich_help_panel=_RULES)
def ask(
    do: Annotated[str, typer.Argument(metavar="DO", help="What shall be done: spend, raise, reset, adopt, ...")],
    on: Annotated[str, typer.Argument(metavar="ON", help="On which account or data.")],
    what: Annotated[str, typer.Argument(metavar="WHAT", help="What exactly, as the refusal names it.")],
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Ask others to approve what the policy refused without them. The refusal prints this command whole."""

    def work() -> Outcome:
        from ..work.ledgers.governing import ask

        return ask(where(project, place, anchor, key_file, principal), do, on, what, reason)

    tell(work, json=json, debug=debug)


@ledger.command(rich_help_panel=_RULES)
def pending(
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What was asked for, and who has approved it so far."""

    def work() -> Outcome:
        from ..work.ledgers.governing import pending

        return pending(where(project, place, anchor, key_file))

    tell(work, json=json, debug=debug)


@ledger.command(rich_help_panel=_RULES)
def approve(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of what was asked for, or its first signs.")],
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Approve what was asked for. An approval serves once, and runs out."""

    def work() -> Outcome:
        from ..work.ledgers.governing import approve

        return approve(where(project, place, anchor, key_file, principal), name, reason)

    tell(work, json=json, debug=debug)


@ledger.command("accept-restore", rich_help_panel=_RULES)
def accept_restore(
    person: Annotated[
        list[str], typer.Option("--person", metavar="NAME", help="Who answers for it; give two.", show_default=False)
    ],
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Go on from this copy of the ledger, though its anchor or its head saw another. What is missing here is lost."""

    def work() -> Outcome:
        from ..work.ledgers.governing import accept_restore

        return accept_restore(where(project, place, anchor, key_file, principal), tuple(person), reason)

    tell(work, json=json, debug=debug)
