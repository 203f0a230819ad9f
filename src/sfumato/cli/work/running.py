"""`sfumato run`: a list of releases, priced as one, paid once, released one by one."""

from __future__ import annotations

from pathlib import Path

from ...errors import SfumatoError
from ...office.documents import Agreement
from ...office.lists import RunDocument, agreed, quoted_list
from ...office.lists import ran as run_list
from ...project import open_project
from ..problems import BUDGET, DATA, problem_of
from ..telling import Outcome
from ..watching import Terminal
from .agreeing import agree
from .ordering import order_of
from .run_words import show_price, show_run

_CODES = {"failed": DATA, "stopped": DATA, "waiting": BUDGET}


def ran(folder: Path, file: Path, *, dry_run: bool, yes: bool, pay_again: bool, wait: float) -> Outcome:
    """Run a list. All that can be refused is refused before it is paid; what is answered is written at once."""
    project = open_project(folder)
    order = order_of(project, file, pay_again=pay_again, wait=wait)

    def agreement(offer: RunDocument) -> Agreement:
        agree(lambda console: show_price(console, offer.price), "pay for it?", yes=yes or not offer.fits)
        return agreed(offer)

    if dry_run:
        body = quoted_list(project, order)
    else:
        body = run_list(project, order, agreement, watch=Terminal(wait), wording=_why)
    return Outcome(body, lambda console: show_run(console, body), _code(body))


def _why(error: SfumatoError) -> str:
    return problem_of(error).why


def _code(body: RunDocument) -> int:
    if body.dry_run:
        return 0 if body.fits else BUDGET
    return next((_CODES[each.status] for each in body.releases if each.status in _CODES), 0)
