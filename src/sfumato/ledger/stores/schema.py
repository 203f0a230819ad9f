"""The steps that make a ledger's tables, and bring those of an older version up to today's."""

from __future__ import annotations

import functools
import re
from importlib import resources

FOLDER = resources.files("sfumato.ledger.stores") / "migrations"


@functools.cache
def migrations(kind: str) -> tuple[str, ...]:
    """Scripts for one kind of store; a ledger of version n has had the first n."""
    found = sorted(file.name for file in FOLDER.iterdir() if re.fullmatch(rf"{kind}_[0-9]+\.sql", file.name))
    return tuple((FOLDER / name).read_text(encoding="utf-8") for name in found)
