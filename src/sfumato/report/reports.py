"""A report: one document, as a page for people and as JSON for programs.

The page is drawn from the document and from nothing else, so both say the same, and what is withheld is withheld in
both. The page prints the fingerprint of the JSON: a signed page stands for exactly that file.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import checks
from ..errors import ArgumentError

SCHEMA = Path(__file__).with_name("report.schema.json")


@dataclass(frozen=True)
class Report:
    """What was released and guaranteed, or what an audit found. `document["report"]` says which kind it is, with
    its version."""

    document: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """JSON, as `json_schema()` describes it."""
        return copy.deepcopy(dict(self.document))

    def json(self) -> str:
        return json.dumps(self.document, indent=2, allow_nan=False) + "\n"

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the JSON text that `write` puts into a file."""
        return hashlib.sha256(self.json().encode("ascii")).hexdigest()

    def html(self) -> str:
        """One self-contained page: no scripts, and nothing that is fetched from elsewhere."""
        from .pages import page

        return page(self.document, self.fingerprint)

    def write(self, path: str | Path) -> Path:
        """Into a .html or .json file, whole or not at all. A file that is there is replaced."""
        checks.path(path, "path")
        target = Path(path)
        forms = {".html": self.html, ".json": self.json}
        if target.suffix.lower() not in forms:
            raise checks.refuse("path", str(path), "a file that ends with .html or .json")
        _put(target, forms[target.suffix.lower()]().encode("utf-8"))
        return target

    def __repr__(self) -> str:
        return f"Report({self.document['report']}: {self.document['title']!r}); .html(), .as_dict(), .write(path)"

    def _repr_html_(self) -> str:
        """In a frame of its own, so that neither the notebook's styles nor the report's reach the other."""
        import html

        return f'<iframe srcdoc="{html.escape(self.html())}" sandbox style="width:100%;height:40em;border:0"></iframe>'


def json_schema() -> dict[str, Any]:
    """The JSON Schema of all kinds of report."""
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return schema


def _put(target: Path, body: bytes) -> None:
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as problem:
        raise ArgumentError(
            f"path cannot be written ({problem.strerror or 'no reason given'}): give a file in a folder that exists "
            "and has room. Nothing was left in its place."
        ) from None
    finally:
        beside.unlink(missing_ok=True)
