"""The page that explains sfumato.yaml, plan.yaml and training files has every field that there is, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.project import json_schema
from sfumato.project.plans import json_schema as plan_schema
from sfumato.project.series_file import json_schema as series_schema
from sfumato.project.training import json_schema as training_schema
from sfumato.project.workload_file import json_schema as workload_schema

PAGE = Path(__file__).parents[2] / "docs" / "project-file.md"


def _fields(schema: Any) -> Iterator[str]:
    """The names of all fields, at any depth; names that a user chooses are none, and fields of a kind stand on its own
    page."""
    if isinstance(schema, dict):
        fields = schema.get("properties")
        if isinstance(fields, dict) and ("additionalProperties" in schema or "enum" in fields.get("kind", {})):
            yield from fields
        for each in schema.values():
            yield from _fields(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _fields(each)


def _explained() -> set[str]:
    """What stands in the first cells of tables below a head of `field`, and what `total` says of its parts."""
    found: set[str] = set()
    told = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        told = line == "| field | |" or (told and line.startswith("|"))
        if told and not line.startswith("|-"):
            found |= set(re.findall(r"`([\w-]+)`", line.split("|")[1]))
    return found


def test_every_field_is_explained_and_no_other() -> None:
    fields = {
        name
        for schema in (json_schema(), plan_schema(), series_schema(), training_schema(), workload_schema())
        for name in _fields(schema)
    }
    text = PAGE.read_text(encoding="utf-8")
    assert len(fields) > 80
    inside = {"raisable", "rank"}  # told within the lines of total and accuracy
    assert fields - _explained() == inside and all(re.search(rf"`{name}[`:]", text) for name in inside)
    assert _explained() - fields == set()
