"""`sfumato run`: a list of releases, priced as one, paid once, released one by one."""

from __future__ import annotations

from pathlib import Path

from ...errors import SfumatoError
from ...office.code import code_runs
from ...office.documents import Agreement
from ...office.list_state import ListError
from ...office.lists import ListOrder, RunDocument, agreed, quoted_list
from ...office.lists import ran as run_list
from ...project import Project, open_project
from ...project.plans import load_plan
from ..problems import BUDGET, DATA, REFUSED, CommandError, problem_of
from ..telling import Outcome
from ..watching import Terminal
from .agreeing import agree
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


def order_of(project: Project, file: Path, *, pay_again: bool = False, wait: float = 0.0) -> ListOrder:
    """The list of a file, with its plans. Queries that are refused are told together, each with its line."""
    listed = load_plan(file, project)
    if listed.code:
        Terminal().notes(code_runs(listed.code, file.absolute().parent))
    try:
        return ListOrder.of(listed, project, file, pay_again=pay_again, wait=wait)
    except ListError as error:
        raise refused(error) from None


def refused(error: ListError) -> CommandError:
    """In the words of the file."""
    problems = [(release, problem_of(cause, "file")) for release, cause in error.refused]
    name = error.listed.file.name
    if len(problems) == 1:
        release, problem = problems[0]
        what = f"{name}:{release.line}: {release.name}: {problem.what}"
        return CommandError(what, problem.why, problem.fix, problem.code)
    why = "\n".join(f"{name}:{release.line}: {release.name}: {each.why}\n  {each.fix}" for release, each in problems)
    return CommandError(f"{len(problems)} releases are refused; nothing was charged", why, f"correct {name}", REFUSED)


def _why(error: SfumatoError) -> str:
    return problem_of(error).why


def _code(body: RunDocument) -> int:
    if body.dry_run:
        return 0 if body.fits else BUDGET
    return next((_CODES[each.status] for each in body.releases if each.status in _CODES), 0)
