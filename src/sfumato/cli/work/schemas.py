"""`sfumato schema`: what editors and programs check files and documents against."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any, Literal, get_args, get_type_hints

from pydantic import RootModel
from rich.console import Console

from ... import project as projects
from ...office.documents import Document as OfficeDocument
from .. import work as works
from ..documents import Document, json_schema
from ..problems import CommandError, meant
from ..screen import facts
from ..telling import Outcome

_FILES = {
    "project": "sfumato.yaml",
    "plan": "plan.yaml, a list of releases",
    "training": "a training file",
    "series": "a series file",
    "workload": "a workload file",
}


class SchemasDocument(Document):
    """The names that `sfumato schema NAME` takes, and what each describes."""

    document: Literal["schemas/1"] = "schemas/1"
    names: dict[str, str]


class _Schema(RootModel[dict[str, Any]]):
    """A JSON Schema, as it is."""


def published(name: str | None, program: Any) -> Outcome:
    """One schema, or the list of them; `program` is the command line, which says what each is printed by."""
    kinds = documents()
    if name is None:
        names = _FILES | {each: _meaning(each, kind, program) for each, kind in sorted(kinds.items())}
        body = SchemasDocument(names=names)
        return Outcome(body, lambda console: _list(console, names))
    if name in _FILES:
        schema = file_schema(name)
    elif name in kinds:
        schema = json_schema(kinds[name])
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    else:
        guess = meant(name, [*_FILES, *kinds])
        fix = "`sfumato schema` lists them"
        raise CommandError(
            "there is no such schema",
            f"{name[:40]!r} is none of them",
            f"did you mean {guess}? {fix}" if guess else fix,
        )
    return Outcome(_Schema(schema), lambda console: console.print(json.dumps(schema, indent=2), soft_wrap=True))


def documents() -> dict[str, type[Any]]:
    """Every document that a command prints with --json, by its name."""
    for module in pkgutil.walk_packages(works.__path__, f"{works.__name__}."):
        importlib.import_module(module.name)
    kinds: dict[str, type[Any]] = {}
    for kind in (*_below(Document), *_below(OfficeDocument)):
        for text in get_args(get_type_hints(kind)["document"]):
            kinds[str(text).partition("/")[0]] = kind
    return kinds


def file_schema(name: str) -> dict[str, Any]:
    """What a file that people write is checked against."""
    if name == "project":
        return dict(projects.json_schema())
    if name == "training":
        from ...project.training import json_schema as of_training

        return dict(of_training())
    if name == "series":
        from ...project.series_file import json_schema as of_series

        return dict(of_series())
    if name == "workload":
        from ...project.workload_file import json_schema as of_workload

        return dict(of_workload())
    from ...project.plans import json_schema as of_plans

    return dict(of_plans())


def _below(kind: type[Any]) -> list[type[Any]]:
    return [each for child in kind.__subclasses__() for each in (child, *_below(child))]


def _meaning(name: str, kind: type[Any], program: Any) -> str:
    """Most documents bear the name of their command; the others say themselves what they are."""
    command = program
    for word in name.split("-"):
        command = getattr(command, "commands", {}).get(word)
    if command is not None:
        return f"what `sfumato {name.replace('-', ' ')}` prints with --json"
    return (kind.__doc__ or "what --json prints").partition("\n")[0].rstrip(".")


def _list(console: Console, names: dict[str, str]) -> None:
    facts(console, list(names.items()))
