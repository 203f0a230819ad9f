"""A list of releases as somebody at a terminal orders it: refusals name its file and its lines."""

from __future__ import annotations

from pathlib import Path

from ...office.code import code_runs
from ...office.list_state import ListError
from ...office.lists import ListOrder
from ...project.plans import load_plan
from ...project.project import Project
from ..problems import REFUSED, CommandError, problem_of
from ..watching import Terminal


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
