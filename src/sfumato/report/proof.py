"""What ties a report to the ledger: entry, hashes, checkpoint, and whether the ledger holds."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .._version import VERSION
from ..ledger.ledger import Ledger
from .accounts.evidence import Evidence
from .redaction import Redaction

_MOST = 20  # problems that are told one by one
_LIBRARIES = ("numpy", "scipy", "cryptography", "duckdb", "sqlglot")


def verified(ledger: Ledger) -> dict[str, Any]:
    """The result of `ledger.verify()`: hashes, checkpoints, and every charge priced again."""
    verification = ledger.verify()
    return {
        "holds": verification.ok,
        "entries": verification.head.number,
        "head": verification.head.hash.hex(),
        "checkpoints": verification.checkpoints,
        "problems": [str(each) for each in verification.problems[:_MOST]],
        "more_problems": max(0, len(verification.problems) - _MOST),
        "notes": list(verification.notes),
    }


def checkpoint(evidence: Evidence | None, number: int) -> dict[str, Any]:
    """Is the entry behind a signed checkpoint outside the ledger?"""
    if evidence is None or not evidence.anchored:
        words = "no anchor is open with this ledger: whoever can write its file could rewrite all of it"
        return {"covered": False, "words": words, "serial": None, "entry": None, "hash": None, "key": None}
    line = evidence.checkpoint
    if line is None:
        words = "the anchor holds no good checkpoint"
        return {"covered": False, "words": words, "serial": None, "entry": None, "hash": None, "key": None}
    covered = line.number >= number
    words = (
        f"checkpoint {line.serial} signs the chain up to entry {line.number}"
        if covered
        else f"the last checkpoint signs the chain up to entry {line.number}: this entry waits for the next"
    )
    return {
        "covered": covered,
        "words": words,
        "serial": line.serial,
        "entry": line.number,
        "hash": line.hash,
        "key": line.key,
    }


def origin(hide: Redaction) -> dict[str, Any]:
    """When and with what this report was written."""
    libraries = {"python": platform.python_version(), "system": sys.platform}
    libraries |= {name: version for name in _LIBRARIES if (version := _version(name)) is not None}
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": hide("library", f"sfumato {VERSION}"),
        "libraries": {} if "library" in hide else libraries,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
