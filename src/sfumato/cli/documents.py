"""What `--json` prints: a document names its kind and version, and a field's meaning never changes within one.

Documents of releases are the office's, plain dataclasses; those that only the command line has are these.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter


class Document(BaseModel):
    """The parent of them all. A field more is a new version's business."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    document: str


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


def json_text(document: Any) -> str:
    """A document as JSON, in two spaces."""
    return TypeAdapter(type(document)).dump_json(document, indent=2, by_alias=True).decode("utf-8")


def json_schema(kind: type[Any]) -> dict[str, Any]:
    """What a document of this kind holds."""
    return TypeAdapter(kind).json_schema()
