"""What happens without differential privacy, told and tried."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import Debug, Json
from ..telling import Outcome, tell


def lesson(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Such as census; without one, lists them.", show_default=False)
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=20, max=100_000, help="How often the attacker guesses at a release of ours.")
    ] = 400,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Try an attack that history knows on made-up people: on what was published then, and on a private release."""

    def work() -> Outcome:
        from ..work.teaching import listed, taught

        return listed() if name is None else taught(name, rounds)

    tell(work, json=json, debug=debug)
