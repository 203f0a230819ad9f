"""What `--json` prints: a document names its kind and version, and a field's meaning never changes within one."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """The parent of them all. A field more is a new version's business."""

    model_config = ConfigDict(extra="forbid")

    document: str


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(extra="forbid")
