"""`sfumato ledger`: budgets, what happened to them, and whether that is true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import Debug, Gauges, Json
from ..telling import Outcome, tell

if TYPE_CHECKING:
    from ..work.ledgers.where import Where

_WHICH = "Which ledger"

ledger = typer.Typer(
    help="The ledger: budgets, what was spent of them, and the proof of it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Project = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-C",
        help="The project folder, or its sfumato.yaml; this folder by default.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
Place = Annotated[
    str | None,
    typer.Option("--ledger", metavar="PLACE", help="Or a ledger: a file, or postgresql://...", rich_help_panel=_WHICH),
]
Anchor = Annotated[
    Path | None, typer.Option("--anchor", help="Its file of checkpoints, outside it.", rich_help_panel=_WHICH)
]
KeyFile = Annotated[Path | None, typer.Option("--key-file", help="The key that signs these.", rich_help_panel=_WHICH)]
Principal = Annotated[
    str | None, typer.Option("--principal", metavar="NAME", help="Who acts, in a ledger that is a file.")
]
Account = Annotated[
    str | None,
    typer.Argument(metavar="ACCOUNT", help="The account; the project's own by default.", show_default=False),
]
Named = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account.")]
Epsilon = Annotated[str | None, typer.Option(metavar="EPS", help="The limit's epsilon.")]
Delta = Annotated[str | None, typer.Option(metavar="D", help="Its delta; without one, pure.")]
Rho = Annotated[str | None, typer.Option(metavar="RHO", help="Or: a limit in rho.")]
Raisable = Annotated[
    bool, typer.Option("--raisable", help="Keep a part of delta back, so that it can be raised later.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; it is stored.")]
Redact = Annotated[
    list[str] | None, typer.Option("--redact", metavar="FIELD", help="Leave this field out; repeatable.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write over a file that is there.")]


def where(
    project: Path | None, place: str | None, anchor: Path | None, key: Path | None, principal: str | None = None
) -> Where:
    from ..work.ledgers.where import Where

    return Where(project, place, anchor, key, principal)


@ledger.command("open")
def open_(project: Project = None, principal: Principal = None, json: Json = False, debug: Debug = False) -> None:
    """Make what sfumato.yaml says and is not there yet: key, anchor, ledger, accounts. Changes no limit."""

    def work() -> Outcome:
        from ..work.ledgers.changing import opened

        return opened(where(project, None, None, None, principal))

    tell(work, json=json, debug=debug)


@ledger.command()
def status(
    account: Annotated[
        str | None,
        typer.Argument(metavar="ACCOUNT", help="One account, with more about it.", show_default=False),
    ] = None,
    gauges: Gauges = False,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Every account: its limit, which is the guarantee, and what is spent of it."""

    def work() -> Outcome:
        from ..work.ledgers.status import status

        return status(where(project, place, anchor, key_file), account, gauges=gauges)

    tell(work, json=json, debug=debug)


@ledger.command()
def history(
    account: Annotated[str | None, typer.Option(help="Entries about this account.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Entries of this person.")] = None,
    kind: Annotated[str | None, typer.Option(help="Entries of this kind: spend, settle, open account, ...")] = None,
    last: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most so many, the newest ones.")] = 20,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="From this day on, as the clocks said.")] = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What happened, entry by entry."""

    def work() -> Outcome:
        from ..work.ledgers.happened import history

        return history(where(project, place, anchor, key_file), account, by, kind, last, since)

    tell(work, json=json, debug=debug)


@ledger.command()
def allocate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new account.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    under: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="The account that it is a part of; the project's by default.")
    ] = None,
    level: Annotated[
        str | None, typer.Option(help="data set, team, project or person; by default one below the account above.")
    ] = None,
    raisable: Raisable = False,
    reason: Reason = "",
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """A new account with a part of another's budget. Whatever it spends is spent there too."""

    def work() -> Outcome:
        from ..work.ledgers.changing import allocate

        place_of = where(project, place, anchor, key_file, principal)
        return allocate(place_of, name, (epsilon, delta, rho, raisable), under, level, reason)

    tell(work, json=json, debug=debug)


@ledger.command()
def limit(
    account: Named,
    reason: Reason,
    epsilon: Epsilon = None,
    delta: Annotated[str | None, typer.Option(metavar="D", help="Its delta; without one it stays as it is.")] = None,
    rho: Rho = None,
    raisable: Raisable = False,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Raise or lower an account's limit. The guarantee stays the largest that it ever had."""

    def work() -> Outcome:
        from ..work.ledgers.changing import limit

        place_of = where(project, place, anchor, key_file, principal)
        return limit(place_of, account, (epsilon, delta, rho, raisable), reason)

    tell(work, json=json, debug=debug)


@ledger.command()
def move(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The account that gives.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The account that takes, under the same parent.")],
    reason: Reason,
    epsilon: Annotated[str | None, typer.Option(metavar="EPS", help="How much of the limit.")] = None,
    rho: Annotated[str | None, typer.Option(metavar="RHO", help="Or in rho.")] = None,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Give a part of one account's limit to another."""

    def work() -> Outcome:
        from ..work.ledgers.changing import move

        return move(where(project, place, anchor, key_file, principal), source, target, epsilon, rho, reason)

    tell(work, json=json, debug=debug)


@ledger.command()
def close(
    account: Named,
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Close an account for good: what was spent stays spent."""

    def work() -> Outcome:
        from ..work.ledgers.changing import close

        return close(where(project, place, anchor, key_file, principal), account, reason)

    tell(work, json=json, debug=debug)


@ledger.command()
def unlock(
    account: Named,
    reason: Reason,
    principal: Principal = None,
    project: Project = None,
    place: Place = None,
    anchor: Anchor = None,
    key_file: KeyFile = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Let an account pay again after failures on the data's side, once somebody has looked at them."""

    def work() -> Outcome:
        from ..work.ledgers.changing import unlock

        return unlock(where(project, place, anchor, key_file, principal), account, reason)

    tell(work, json=json, debug=debug)
