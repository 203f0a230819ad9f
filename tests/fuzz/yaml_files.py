"""The files that people write: sfumato.yaml, a list of releases, a policy. Read, or refused with the wrong line."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from sfumato import plain_yaml
from sfumato.errors import ArgumentError
from sfumato.ledger.policy.file import compare, dump_policy, parse_policy
from sfumato.project import open_project
from sfumato.project.plans import load_plan
from sfumato.project.problems import ProjectError
from tests.fuzz.watching import Finding, as_text, attempt

EXAMPLE = Path(__file__).parents[2] / "src" / "sfumato" / "example" / "project"


@cache
def folder() -> Path:
    """The example's project, in a folder that goes away with the process."""
    place = Path(tempfile.mkdtemp(prefix="fuzz-project-"))
    for each in EXAMPLE.iterdir():
        if each.is_file():
            shutil.copy(each, place / each.name)
    return place


def fuzz_yaml(data: bytes) -> None:
    """Plain YAML: mappings, lists and texts come out, each place with its line."""
    text = as_text(data)
    found = attempt("yaml", lambda: plain_yaml.read(text))
    if isinstance(found, plain_yaml.Lined):
        last = text.count("\n") + text.count("\r") + sum(text.count(sign) for sign in "\x85\u2028\u2029") + 1
        if any(not 1 <= line <= last for line in found.lines.values()):
            raise Finding("a place has a line that the text does not have")
        for path in found.lines:
            found.at(path)
            plain_yaml.number(found.at(path))


def fuzz_project(data: bytes) -> None:
    """sfumato.yaml: a Project, or a ProjectError that can be shown."""
    place = folder() / "given.yaml"
    place.write_bytes(data)
    found = attempt("project", lambda: open_project(place), allowed=(ProjectError,))
    if isinstance(found, BaseException):
        return
    attempt("repr", lambda: repr(found))
    attempt("the data that is missing", found.missing)
    attempt("a plan", lambda: found.plan("SELECT COUNT(*) AS n FROM visits"))


def fuzz_plan_file(data: bytes) -> None:
    """plan.yaml, of the example's project: its releases are built or refused."""
    project = _example()
    place = folder() / "given-plan.yaml"
    place.write_bytes(data)
    found = attempt("plan file", lambda: load_plan(place, project), allowed=(ProjectError,))
    if isinstance(found, BaseException):
        return
    for each in found.releases[:5]:
        attempt("a release of it", lambda each=each: each.plan(project))  # type: ignore[misc]


@cache
def _example() -> object:
    return open_project(folder())


def fuzz_policy(data: bytes) -> None:
    """policy.yaml: a Policy that is written and read again as itself, or a refusal."""
    text = as_text(data)
    found = attempt("policy", lambda: parse_policy(text), allowed=(ArgumentError,))
    if isinstance(found, BaseException):
        return
    again = attempt("policy written", lambda: parse_policy(dump_policy(found)))
    if again != found:
        raise Finding(f"a policy that is written is read as another: {text[:300]!r}")
    attempt("compare", lambda: compare(None, found))
