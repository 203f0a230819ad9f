"""The accountant from the shell: what an event costs, how much noise a target needs, what an epsilon means. No data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell

_EVENT = "What happens"
_TARGET = "The target"

Gaussian = Annotated[
    str | None,
    typer.Option(metavar="M", help="Gaussian noise of M times the sensitivity.", rich_help_panel=_EVENT),
]
Laplace = Annotated[
    str | None, typer.Option(metavar="EPS", help="Laplace noise of epsilon EPS.", rich_help_panel=_EVENT)
]
Rate = Annotated[
    str | None,
    typer.Option(metavar="Q", help="Each unit joins a step with chance Q: 0.01, or 256/60000.", rich_help_panel=_EVENT),
]
Steps = Annotated[int | None, typer.Option(min=1, help="So many times on the same data.", rich_help_panel=_EVENT)]
Relation = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="Neighbours: add-remove, replace or zero-out.", rich_help_panel=_EVENT),
]
Training = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-C",
        help="Take what is not given from the training fields of a project's sfumato.yaml.",
        show_default=False,
    ),
]
Delta = Annotated[str | None, typer.Option(metavar="D", help="The delta of the price, such as 1e-6.")]


def epsilon(
    gaussian: Gaussian = None,
    laplace: Laplace = None,
    rho: Annotated[
        str | None, typer.Option(metavar="RHO", help="Anything rho-zero-concentrated DP.", rich_help_panel=_EVENT)
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="An event as JSON: a file, or - (standard input).", rich_help_panel=_EVENT),
    ] = None,
    rate: Rate = None,
    steps: Steps = None,
    relation: Relation = None,
    delta: Delta = None,
    compare: Annotated[bool, typer.Option("--compare", help="All accountants side by side.")] = False,
    project: Training = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What an event costs: epsilon at a delta, known from both sides.

    Example: sfumato epsilon --gaussian 1.1 --rate 256/60000 --steps 14063 --delta 1e-5
    """

    def work() -> Outcome:
        from ..work.accountant import priced
        from ..work.events_from import TypedEvent

        typed = TypedEvent(gaussian, laplace, rho, event, rate, steps, relation)
        return priced(typed, delta, compare, project)

    tell(work, json=json, debug=debug)


def calibrate(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="What to find: gaussian, laplace or steps.")] = "gaussian",
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPS", help="At most this epsilon.", rich_help_panel=_TARGET)
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(metavar="D", help="At this delta; with --account, the release's own.", rich_help_panel=_TARGET),
    ] = None,
    rho: Annotated[
        str | None, typer.Option(metavar="RHO", help="Or: at most this rho.", rich_help_panel=_TARGET)
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(help="Or: whatever this account of the project still accepts.", rich_help_panel=_TARGET),
    ] = None,
    gaussian: Gaussian = None,
    laplace: Laplace = None,
    rate: Rate = None,
    steps: Steps = None,
    relation: Relation = None,
    sensitivity: Annotated[
        str | None, typer.Option(metavar="S", help="Also say the noise in the answer's own numbers.")
    ] = None,
    project: Training = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The least noise for a target, or the most steps for it.

    Examples: sfumato calibrate gaussian --rate 256/60000 --steps 14063 --epsilon 3 --delta 1e-5;
    sfumato calibrate laplace --steps 20 --epsilon 1 --delta 1e-4;
    sfumato calibrate steps --gaussian 1.1 --rate 0.01 --epsilon 3 --delta 1e-5
    """

    def work() -> Outcome:
        from ..work.calibrating import Aim, calibrated
        from ..work.events_from import TypedEvent

        typed = TypedEvent(gaussian, laplace, None, None, rate, steps, relation)
        return calibrated(what, typed, Aim(epsilon, delta, rho, account), sensitivity, project)

    tell(work, json=json, debug=debug)


def explain(
    epsilon: Annotated[str, typer.Argument(metavar="EPSILON", help="The epsilon to explain.")],
    delta: Annotated[str, typer.Option(metavar="D", help="The delta beside it.")] = "0",
    prior: Annotated[
        str, typer.Option(metavar="P", help="What the attacker believed before, as a probability.")
    ] = "0.5",
    rates: Annotated[
        str, typer.Option(metavar="A,B,...", help="Shares of innocent people that the attacker accuses.")
    ] = "0.001,0.01,0.05,0.1",
    relation: Annotated[
        str, typer.Option(metavar="KIND", help="Neighbours: add-remove, replace or zero-out.")
    ] = "add-remove",
    compare_deployments: Annotated[
        bool, typer.Option("--compare-deployments", help="Beside what others have published.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What an epsilon means: in odds, and for the best attacker there can be.

    Example: sfumato explain 3 --delta 1e-6
    """

    def work() -> Outcome:
        from ..work.explaining import explained

        return explained(epsilon, delta, prior, rates, relation, compare_deployments)

    tell(work, json=json, debug=debug)
