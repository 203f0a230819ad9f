"""The report of one release: what was released, whom it protects, how exact it is, and what ties it to the ledger."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .. import checks
from ..errors import ArgumentError
from ..ledger.ledger import Ledger
from ..release import Release
from . import disclosure, gauges, guarantee, proof, questions, stored, words
from .accounts.about import About
from .accounts.plans import bound_words, noises
from .accounts.releases import Released
from .accounts.statement import Statement
from .redaction import Redaction
from .reports import Report
from .unprotected import gaps

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
    hide, stated = Redaction(redact), disclosure.checked(ledger, about)
    stored.know_queries()
    row = _row(ledger, which)
    evidence = ledger.evidence(row.id)
    answered = stored.answered(row, None if evidence is None else evidence.answer, release)
    plan, shown = answered.plan, stored.shown(row, answered, hide)
    now = ledger.statement(_account(ledger, row))
    promise = guarantee.of_release(row, plan)
    bounds = [bound_words(each, row.unit.noun) for each in row.bounds or ()]
    declared = disclosure.declared(ledger, [place.name for place in row.places], hide)
    short, sentence = words.state_words(row)
    document = {
        "report": "report-release/2",
        "title": f"Release {row.number}",
        "made": proof.origin(hide),
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
            "checkpoint": proof.checkpoint(evidence, row.number),
            "verify": proof.verified(ledger),
        },
        "checklist": disclosure.checklist(
            ledger, now.account, about, hide, _own(row, promise, bounds, short, shown, hide)
        ),
        "registry": disclosure.registry(ledger, now.account, about, hide),
        "still_open": disclosure.still_open(stated),
    }
    return Report(document)


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
    matches: dict[str, Released] = {}
    for row in ledger.releases(price=False):
        if row.id == id:
            return row
        if row.id.startswith(id):
            matches[row.id] = row
    if len(matches) != 1:
        raise checks.refuse("which", which, allowed if not matches else f"a longer id: {len(matches)} begin with this")
    return matches.popitem()[1]


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
        "balance": gauges.balance_text(now),
        "standing": gauges.standing(now),
        "as_of": {"number": now.number, "hash": now.hash},
    }


def _release(row: Released, short: str, sentence: str, hide: Redaction) -> dict[str, Any]:
    """Who asked what, when and why."""
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
        **questions.question(row, hide),
    }


def _own(
    row: Released, promise: dict[str, Any], bounds: list[str], short: str, shown: dict[str, Any], hide: Redaction
) -> dict[str, str]:
    """What this release says of the fields of the checklist by itself."""
    original = ", ".join(f"{each['name']} = {each['value']}" for each in promise["original"])
    bars = any(cell.get("error") for table in shown["tables"] for line in table["rows"] for cell in line)
    notes = [f"{each['column']}: {each['words']}" for each in shown["bias"]]
    notes += [note for table in shown["tables"] for note in table["notes"]]
    noise = ", ".join(noises(row.event))
    return {
        "epsilon and delta": promise["headline"],
        "original parameters": original,
        "variant": promise["variant"],
        "unit": promise["hides"],
        "neighbours": promise["neighbours"],
        "contribution bounds": "; ".join(dict.fromkeys(filter(None, bounds))),
        "composition": f"charged to {', '.join(row.accounts)}; {row.adaptivity}",
        "releases": f"entry {row.number}: {short}",
        "post-processing": "; ".join(row.afterwards),
        "algorithm": "; ".join(filter(None, (row.mechanism, f"noise: {noise}" if noise else ""))),
        "library": row.library or "",
        "utility": "95 % error bars stand beside every number" if bars else "",
        "bias": "\n".join(notes),
        "side channels": f"noise: {row.grade}; bits: {row.randomness or words.UNKNOWN}",
        "actors": row.actor or "",
        "purposes": row.purpose,
    }
