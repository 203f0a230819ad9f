"""Does it keep its word? Attacks that must not come through, and benchmarks with bars."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell


def attack(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The attacks, such as F1 Q3; see --list.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All of them; that takes some minutes.")] = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="With less effort, and without the planted bugs: a small fault may stay unseen."),
    ] = False,
    controls: Annotated[
        bool | None,
        typer.Option(
            "--controls/--no-controls", help="Attack the planted bugs too, which must break.", show_default=False
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is, and run nothing.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run known attacks on this installation: on made-up data, each beside a planted bug that it must find.

    Ends with 9 if an attack comes through, or does not find its planted bug.
    """

    def work() -> Outcome:
        from ..work.attacking import attacked, listed

        planted = not quick if controls is None else controls
        return listed() if list_ else attacked(ids or [], every=all_, quick=quick, controls=planted)

    tell(work, json=json, debug=debug)


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="noise, accounting, mechanisms, holdout, ledger, query, startup."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds, about a minute each.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Hold the figures against their bars; 9 on a miss.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run benchmarks of a checkout: how fast, how accurate, beside other libraries. Without a name, lists them."""

    def work() -> Outcome:
        from ..work.benching import benched, listed

        return benched(names, quick=quick, check=check, quiet=json) if names else listed()

    tell(work, json=json, debug=debug)
