"""The report of one release: what was released, whom it protects, how exact it is, and what ties it to the ledger."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Any

from .. import checks, kinds, record
from ..errors import ArgumentError, SfumatoError
from ..ledger.ledger import Ledger
from ..ledger.reading import About, Released, Statement
from ..ledger.reading.evidence import Evidence
from ..ledger.reading.history import plan_of
from ..ledger.reading.plans import bound_words
from ..plan import Plan
from ..release import Release
from . import answers, disclosure, gauges, guarantee, proof, words
from .redaction import Redaction
from .reports import Report
from .unprotected import gaps

_COVERS = "Error bars cover the noise; they do not cover values clamped to bounds, rows left out, or wrong data."
_STEPS = ("query", "contribution bounds", "algorithm")  # topics that the steps of a plan tell of
_STATEMENT = re.compile(r"(.*: )?run, for .*:\n")  # what an engine was asked, word for word
_QUERY = "plan-sql/1"
_SHORTEST = 6  # letters of a receipt's id that may stand for it


def release_report(
    ledger: Ledger,
    which: int | str,
    *,
    about: About | None = None,
    redact: Collection[str] = (),
    release: Release | None = None,
) -> Report:
    """What a compliance officer signs of one release.

    which    the number of its entry (any entry about it), or the id of its receipt, or how that begins
    about    what only the organisation knows: the `about:` of sfumato.yaml
    redact   topics that are withheld, and named as such; see `redaction.TOPICS`
    release  the release itself, where its plan holds code and so cannot be read back from the ledger
    """
    hide, told = Redaction(redact), disclosure.checked(ledger, about)
    _know_queries()
    row = _row(ledger, which)
    kept = ledger.evidence(row.id)
    plan, raw, reason = _answered(row, kept, release)
    shown = _answer(row, plan, raw, reason, hide)
    now = ledger.statement(_account(ledger, row))
    promise = guarantee.of_release(row, plan)
    bounds = [bound_words(each, row.unit.column or "row") for each in row.bounds or ()]
    declared = disclosure.declared(ledger, [place.name for place in row.places], hide)
    short, sentence = words.state_words(row)
    document = {
        "report": "report-release/1",
        "title": f"Release {row.number}",
        "made": proof.made(hide),
        "redacted": list(hide.topics),
        "release": _release(row, short, sentence, hide),
        "answer": shown,
        "guarantee": promise,
        "bounds": hide("contribution bounds", list(dict.fromkeys(filter(None, bounds)))),
        "charged": gauges.charged(row),
        "account": _account_of(now),
        "not_protected": [
            each._asdict() for each in gaps([row.unit], [row.loop], row.variant != "pure", declared, grades=[row.grade])
        ],
        "noise": {
            "grade": row.grade,
            "secure": row.grade == "exact",
            "randomness": row.randomness or words.UNKNOWN,
            "library": hide("library", row.library or words.UNKNOWN),
        },
        "evidence": {
            "entry": row.number,
            "hash": row.hash,
            "previous": row.previous,
            "receipt": row.id,
            "plan_hash": row.plan_hash,
            "answer_hash": row.answer,
            "checkpoint": proof.checkpoint(kept, row.number),
            "verify": proof.verified(ledger),
        },
        "checklist": disclosure.checklist(
            ledger, now.account, about, hide, _own(row, promise, bounds, short, shown, hide)
        ),
        "registry": disclosure.registry(ledger, now.account, about, hide),
        "still_open": disclosure.still_open(told),
    }
    return Report(document)


def _know_queries() -> None:
    """So that a stored query can be read back where none was made in this process, and sqlglot is installed."""
    if _QUERY not in record.kinds(object):
        kinds.load(queries=True)
        plan_of.cache_clear()  # of what was looked at before queries were known


def _row(ledger: Ledger, which: Any) -> Released:
    """The release that a number or an id names."""
    allowed = "the number of an entry about a release, or the id of a receipt"
    if isinstance(which, str) and which.isascii() and which.isdecimal() and len(which) < 16:
        which = int(which)
    if isinstance(which, int) and not isinstance(which, bool):
        checks.whole(which, "which")
        entry = next(iter(ledger.history(first=which, last=which)), None)
        id = None if entry is None else entry.receipt
    else:
        id = which if isinstance(which, str) and len(which) >= _SHORTEST else None
    if id is None:
        raise checks.refuse("which", which, allowed)
    found: dict[str, Released] = {}
    for row in ledger.releases(price=False):
        if row.id == id:
            return row
        if row.id.startswith(id):
            found[row.id] = row
    if len(found) != 1:
        raise checks.refuse("which", which, allowed if not found else f"a longer id: {len(found)} begin with this")
    return found.popitem()[1]


def _account(ledger: Ledger, row: Released) -> str:
    """The account whose guarantee is told: that of the data set itself, where there is one."""
    named = {place.name for place in row.places}
    for account in row.accounts:
        if account in named:
            return account
    for account in row.accounts:
        if ledger.statement(account).level == "data set":
            return account
    if not row.accounts:
        raise ArgumentError(
            "which names a release that no account paid for: its entry is damaged; run ledger.verify()."
        )
    return row.accounts[-1]


def _account_of(now: Statement) -> dict[str, Any]:
    """The account in short: its guarantee is the one that counts in the end."""
    return {
        "name": now.account,
        "level": now.level,
        "guarantee": words.exponent(now.guarantee),
        "headline": guarantee.of_account(now)["headline"],
        "releases": now.releases,
        "used": gauges.used(now),
        "balance": gauges.told(now),
        "standing": gauges.standing(now),
        "as_of": {"number": now.number, "hash": now.hash},
    }


def _answered(
    row: Released, kept: Evidence | None, release: Release | None
) -> tuple[Plan[Any] | None, Any, str | None]:
    """The plan and what it released, or why there is nothing to show."""
    if release is not None:
        return _given(row, release)
    stored = None if kept is None else kept.answer
    if stored is None:
        return None, None, words.state_words(row)[1]
    if hashlib.sha256(stored).hexdigest() != row.answer:
        return None, None, "The stored answer is not the one that was given: its hash differs. Run ledger.verify()."
    plan = None if row.plan is None else plan_of(row.plan)
    if plan is None:
        return (
            None,
            None,
            "The plan holds code, is of a kind that is not installed here, or is one that is refused today: give "
            "release=... to show it.",
        )
    return plan, record.parse(stored), None


def _given(row: Released, release: Any) -> tuple[Plan[Any], Any, None]:
    """A release that the caller holds: it must be this one."""
    checks.instance(release, Release, "release", "what curator.release(plan) returned")
    receipt = release.receipt
    if receipt is None or receipt.id != row.id or release.plan.hash != row.plan_hash:
        raise ArgumentError("release is not the one that which names: its receipt or its plan differs.")
    digest = hashlib.sha256(record.canonical(release.raw)).hexdigest()
    if row.answer is not None and digest != row.answer:
        raise ArgumentError("release holds other numbers than the ledger stored: give it as the curator returned it.")
    return release.plan, release.raw, None


def _answer(row: Released, plan: Plan[Any] | None, raw: Any, reason: str | None, hide: Redaction) -> dict[str, Any]:
    nothing: dict[str, Any] = {"shown": False, "confidence": 0.95, "reason": reason, "tables": [], "notes": []}
    if "answer" in hide:
        return nothing | {"reason": hide("answer", "")}
    if plan is None:
        return nothing
    try:
        tables = answers.tables(plan.finish(raw), plan.error(raw, answers.ALPHA))
    except SfumatoError as problem:
        return nothing | {"reason": f"The stored answer cannot be shown by this version: {problem}"}
    notes = [note for table in tables for note in table["notes"]]
    cut = [
        f"{table['title'] or 'the answer'}: the first {len(table['rows'])} of {table['rows_in_all']} rows are shown"
        for table in tables
        if len(table["rows"]) < table["rows_in_all"]
    ]
    if "contribution bounds" in hide:
        notes = [words.WITHHELD] if notes else []
        tables = [table | {"notes": []} for table in tables]
    stored = [] if row.answer is not None else ["as the caller gave it: the ledger stores no answer of this release"]
    return nothing | {"shown": True, "reason": None, "tables": tables, "notes": [*notes, *cut, *stored, _COVERS]}


def _release(row: Released, short: str, sentence: str, hide: Redaction) -> dict[str, Any]:
    """Who asked what, when and why."""
    text = str((row.parameters or {}).get("text"))
    statements = [step for step in row.words or () if _STATEMENT.match(step)]
    steps = [step for step in row.words or () if step not in statements]
    is_query = row.mechanism == _QUERY
    return {
        "state": row.state,
        "state_short": short,
        "state_words": sentence,
        "purpose": hide("purposes", row.purpose or words.UNKNOWN),
        "actor": hide("actors", row.actor or words.UNKNOWN),
        "role": hide("actors", row.role),
        "data": hide("data", [place._asdict() | {"blocks": list(place.blocks)} for place in row.places]),
        "accounts": list(row.accounts),
        "paid_at": row.at,
        "opened_at": row.opened,
        "settled_at": row.settled,
        "loop": row.loop,
        "draws": row.draws,
        "steps_drawn": row.steps,
        "part_of": row.part_of,
        "key": hide("key", row.key),
        "approvals": hide("approvals", [str(each) for each in row.approvals or ()]),
        "mechanism": hide("algorithm", row.mechanism or words.UNKNOWN),
        "query": hide("query", words.cut(text, words.MOST) if is_query else None),
        "steps": words.WITHHELD if hide.any(*_STEPS) else [words.cut(step, words.MOST) for step in steps],
        "statements": words.WITHHELD if hide.any(*_STEPS) else [words.cut(each, words.MOST) for each in statements],
    }


def _own(
    row: Released, promise: dict[str, Any], bounds: list[str], short: str, shown: dict[str, Any], hide: Redaction
) -> dict[str, str]:
    """What this release says of the fields of the checklist by itself."""
    original = ", ".join(f"{each['name']} = {each['value']}" for each in promise["original"])
    bars = any(cell.get("error") for table in shown["tables"] for line in table["rows"] for cell in line)
    notes = [note for table in shown["tables"] for note in table["notes"]]
    return {
        "epsilon and delta": promise["headline"],
        "original parameters": original,
        "variant": promise["variant"],
        "unit": promise["hides"],
        "neighbours": promise["neighbours"],
        "contribution bounds": "; ".join(dict.fromkeys(filter(None, bounds))),
        "composition": f"charged to {', '.join(row.accounts)}; {row.adaptivity}",
        "releases": f"entry {row.number}: {short}",
        "algorithm": row.mechanism or "",
        "library": row.library or "",
        "utility": "95 % error bars stand beside every number" if bars else "",
        "bias": "; ".join(notes),
        "side channels": f"noise: {row.grade}; bits: {row.randomness or words.UNKNOWN}",
        "actors": row.actor or "",
        "purposes": row.purpose,
    }
