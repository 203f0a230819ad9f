"""The JSON Schemas of files that people write, for editors. That of sfumato.yaml is published beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .checking import Form
from .form import ProjectForm

PUBLISHED = Path(__file__).with_name("sfumato.schema.json")


def project_schema() -> dict[str, Any]:
    """What a sfumato.yaml may hold."""
    return schema_of(ProjectForm, "sfumato.yaml")


def schema_of(form: type[Form], title: str) -> dict[str, Any]:
    """What a file that fills in this form may hold."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(form.model_json_schema())}
    return {**schema, "title": title}


def _plain(schema: Any) -> Any:
    """Without the names of our classes; and what is left out has no value, rather than null, which no field takes."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    plain = {}
    for name, part in schema.items():
        nothing = name == "default" and part is None
        if not nothing and not (name == "title" and isinstance(part, str)):
            plain[name] = _plain(part)
    if len(plain.get("anyOf", ())) == 1:  # the other choice was null
        plain |= plain.pop("anyOf")[0]
    return plain
