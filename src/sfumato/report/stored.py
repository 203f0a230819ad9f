"""The answer that the ledger stored of a release, finished by its stored plan: nothing is read but the ledger."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from .. import checks, kinds, record
from ..errors import ArgumentError, SfumatoError
from ..plan import Plan
from ..release import Release
from . import answers, biases, words
from .accounts.history import plan_of
from .accounts.releases import Released
from .questions import QUERY
from .redaction import Redaction
from .trainings import MODEL, TRAINING

_NOISE = "Error bars cover the noise; they do not cover values clamped to bounds, rows left out, or wrong data."
_BIAS = "Error bars cover the noise and, where a bias is told, what limits took away; they do not cover wrong data."
_CODE = (
    "The plan holds code, is of a kind that is not installed here, or is one that is refused today: "
    "release_report(..., release=...) shows it."
)


class Stored(NamedTuple):
    """A plan and what it released, or the reason why there is nothing to show."""

    plan: Plan[Any, Any] | None = None
    raw: Any = None
    reason: str | None = None


def know_queries() -> None:
    """So that a stored query can be read back where none was made in this process, and sqlglot is installed."""
    if QUERY not in record.kinds(object):
        kinds.load(queries=True)
        plan_of.cache_clear()  # of what was looked at before queries were known


def answered(row: Released, answer: bytes | None, release: Release | None = None) -> Stored:
    """What the bytes of an answer are; `release` is the same from the caller's hands."""
    if release is not None:
        return _of_caller(row, release)
    if answer is None:
        return Stored(reason=words.state_words(row)[1])
    if hashlib.sha256(answer).hexdigest() != row.answer:
        return Stored(reason="The stored answer is not the one that was given: its hash differs. Run ledger.verify().")
    plan = None if row.plan is None else plan_of(row.plan)
    if plan is None:
        return Stored(reason=MODEL if row.mechanism == TRAINING else _CODE)
    return Stored(plan, record.parse(answer))


def _of_caller(row: Released, release: Any) -> Stored:
    """A release that the caller holds: it must be this one."""
    checks.instance(release, Release, "release", "what curator.release(plan) returned")
    receipt = release.receipt
    if receipt is None or receipt.id != row.id or release.plan.hash != row.plan_hash:
        raise ArgumentError("release is not the one that which names: its receipt or its plan differs.")
    digest = hashlib.sha256(record.canonical(release.raw)).hexdigest()
    if row.answer is not None and digest != row.answer:
        raise ArgumentError("release holds other numbers than the ledger stored: give it as the curator returned it.")
    return Stored(release.plan, release.raw)


def nothing(reason: str | None) -> dict[str, Any]:
    """An answer that is not shown, and why."""
    return {"shown": False, "confidence": 1 - answers.ALPHA, "reason": reason, "tables": [], "bias": [], "notes": []}


def shown(row: Released, stored: Stored, hide: Redaction, most: int = answers.MOST) -> dict[str, Any]:
    """The answer as tables with error bars, what limits took from them, and what else changed the numbers."""
    if "answer" in hide:
        return nothing(words.WITHHELD)
    if stored.plan is None:
        return nothing(stored.reason)
    try:
        value, error = stored.plan.finish(stored.raw), stored.plan.error(stored.raw, answers.ALPHA)
        tables = answers.tables(value, error, most=most)
    except SfumatoError as problem:
        return nothing(f"The stored answer cannot be shown by this version: {problem}")
    biases_of = [each for table in tables for each in table.pop("bias")]
    notes = [note for table in tables for note in table["notes"]]
    cut = [
        f"{table['title'] or 'the answer'}: the first {len(table['rows'])} of {table['rows_in_all']} rows are shown"
        for table in tables
        if len(table["rows"]) < table["rows_in_all"]
    ]
    if "contribution bounds" in hide:
        notes = [words.WITHHELD] if notes else []
        tables = [table | {"notes": []} for table in tables]
    if hide.any("bias", "contribution bounds"):
        biases_of = [each | {"words": words.WITHHELD} for each in biases_of]
        tables = [biases.without(table) for table in tables]
    origin = [] if row.answer is not None else ["as the caller gave it: the ledger stores no answer of this release"]
    covers = _BIAS if any(each["known"] for each in biases_of) else _NOISE
    return nothing(None) | {
        "shown": True,
        "tables": tables,
        "bias": biases_of,
        "notes": [*notes, *cut, *origin, covers],
    }
