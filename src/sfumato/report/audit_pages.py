"""The report of an audit: what each plan claims, what was proven against it at least, and how to see it again.

An audit runs on made-up rows, so everything here may be told, rows and events included.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .. import checks
from ..accounting.tradeoff import tradeoff
from ..errors import SfumatoError
from ..plan import Plan, price_text
from . import proof, words
from .redaction import Redaction
from .reports import Report

WHAT_IT_PROVES = (
    "A lower bound above the claim proves that the claim is false, up to the chance of a false alarm that is named. "
    "A lower bound within the claim is no proof that the claim holds: it says that these neighbours and these events "
    "did not show otherwise. What holds is proven beside the code of each mechanism."
)
_MOST_ROWS = 12  # of a made-up table that are shown
_MOST_CELL = 60
_LEAST_RATE = 1e-4  # of false positives, where an attacker's successes are drawn

Verdict = Literal["within", "broken", "could not run"]


@dataclass(frozen=True, kw_only=True)
class Audited:
    """One plan that was audited.

    result    what `audit.check` found; None where it could not run, and `problem` says why
    verified  what `audit.verify` found, or None; `unverified` then says why
    promises  checks of `audit.check_plan` by name, each with its figure; one that broke is named in `broken_promise`
    models    what audits of trained models found: each a ModelAudit, or what `model_part` made of one
    """

    name: str
    plan: Plan[Any, Any]
    result: Any = None
    problem: str | None = None
    verified: Any = None
    unverified: str | None = None
    promises: Sequence[tuple[str, str]] = ()
    broken_promise: str | None = None
    models: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        checks.instance(self.name, str, "name", "a text")
        checks.instance(self.plan, Plan, "plan", "the plan that was audited")
        _check_found("result", self.result, "curve", "what audit.check(plan) gave")
        _check_found("verified", self.verified, "outputs", "what audit.verify(plan) gave")
        if isinstance(self.models, str | Mapping) or not isinstance(self.models, Sequence):
            raise checks.refuse("models", type(self.models).__name__, "a list of audits of trainings")
        object.__setattr__(self, "models", tuple(self._drawn(each) for each in self.models))

    def _drawn(self, model: Any) -> Mapping[str, Any]:
        if isinstance(model, Mapping):
            return model
        if not hasattr(model, "facts") or not hasattr(model, "points"):
            raise checks.refuse("models", type(model).__name__, "audits such as audit.models.one_run(plan, data) gives")
        return model_part(model, tradeoff(self.plan.event), title=f"Audit of a training: {model.way}")

    @property
    def hash(self) -> str | None:
        """The plan's hash; None where the plan has no JSON."""
        try:
            return self.plan.hash
        except SfumatoError:
            return None

    @property
    def verdict(self) -> Verdict:
        """Broken if any way of looking says so; what did not run proves nothing."""
        judged = [each for each in (self.result, self.verified) if each is not None]
        if any(each.broken for each in judged) or self.broken_promise or any(each["broken"] for each in self.models):
            return "broken"
        return "could not run" if self.problem is not None or not (judged or self.models) else "within"


def audit_report(
    audited: Sequence[Audited], *, title: str = "Audit", command: str | None = None, seed: int | None = None
) -> Report:
    """A report of an audit, as a page and as JSON.

    command  the line that does it again
    seed     of the bits, where they were seeded
    """
    listed = isinstance(audited, Sequence) and not isinstance(audited, str)
    if not listed or not audited or not all(isinstance(each, Audited) for each in audited):
        raise checks.refuse("audited", audited, "at least one Audited(name=..., plan=..., result=audit.check(plan))")
    parts = [audited_part(each) for each in audited]
    return Report(
        {
            "report": "report-audit/1",
            "title": title,
            "made": proof.origin(Redaction(())),
            "redacted": [],
            "command": command,
            "seed": seed,
            "holds": all(each["verdict"] == "within" for each in parts),
            "proves": WHAT_IT_PROVES,
            "plans": parts,
        }
    )


def audited_part(audited: Audited) -> dict[str, Any]:
    """What a report says of one plan, as a JSON value."""
    result = audited.result
    return {
        "name": audited.name,
        "kind": type(audited.plan).__name__,
        "hash": audited.hash,
        "price": words.exponent(price_text(audited.plan)),
        "hides": audited.plan.hides,
        "neighbours": audited.plan.unit.change,
        "verdict": audited.verdict,
        "problem": audited.problem,
        "shown": None if result is None else _shown(result),
        "verified": None if audited.verified is None else _verified(audited.verified),
        "unverified": audited.unverified,
        "promises": [{"promise": name, "figure": figure} for name, figure in audited.promises],
        "broken_promise": audited.broken_promise,
        "models": [dict(model) for model in audited.models],
        "notes": list(audited.notes),
    }


def number(value: float) -> float | Literal["infinite"]:
    """As JSON has it: an infinite loss is a word there."""
    return float(value) if math.isfinite(value) else "infinite"


def share(epsilon: float, claim: float) -> float | None:
    """How much of the claim was proven; None where that is no number."""
    if claim > 0 and math.isfinite(claim):
        return float(epsilon / claim) if math.isfinite(epsilon) else None
    return None if epsilon > 0 else 0.0


def _shown(result: Any) -> dict[str, Any]:
    return {
        "epsilon": number(result.epsilon),
        "claim": number(result.claim),
        "delta": float(result.delta),
        "share": share(result.epsilon, result.claim),
        "pair": words.cut(result.pair, words.MOST),
        "event": words.cut(result.event, words.MOST),
        "curve": [
            {"delta": float(each.delta), "claim": number(each.claim), "shown": number(each.shown)}
            for each in result.curve
        ],
        "ways": [
            {
                "way": each.way,
                "epsilon": number(each.epsilon),
                "claim": number(each.claim),
                "delta": float(each.delta),
                "share": share(each.epsilon, each.claim),
                "words": words.cut(each.words, words.MOST),
                "broken": bool(each.broken),
            }
            for each in result.found
        ],
        "runs": int(result.runs),
        "pairs": int(result.pairs),
        "false_alarm": float(result.false_alarm),
        "seconds": round(float(result.seconds), 3),
        "counts": counts(result.evidence),
        "tables": tables(result.evidence),
        "evidence": json.loads(json.dumps(dict(result.evidence), default=str, allow_nan=True), parse_constant=str),
    }


def _verified(verified: Any) -> dict[str, Any]:
    """What every outcome with its exact probability has shown."""
    return {
        "verdict": verified.verdict,
        "broken": bool(verified.broken),
        "pairs": int(verified.pairs),
        "outcomes": int(verified.outputs),
        "share": float(verified.share) if math.isfinite(verified.share) else None,
        "words": words.cut(str(verified), words.MOST),
    }


def _check_found(name: str, outcome: Any, has: str, allowed: str) -> None:
    if outcome is not None and not (hasattr(outcome, "broken") and hasattr(outcome, has)):
        raise checks.refuse(name, type(outcome).__name__, f"{allowed}, or leave it out")


def model_part(audit: Any, curve: Callable[[Any], Any] | None = None, *, title: str | None = None) -> dict[str, Any]:
    """What a report says of a `models.ModelAudit`, as a JSON value.

    curve  the claimed trade-off: the least rate of false negatives at a rate of false positives
    """
    rates = np.geomspace(_LEAST_RATE, 1, 60)
    bound = [] if curve is None else [[float(x), float(1 - y)] for x, y in zip(rates, curve(rates), strict=True)]
    return {
        "title": title or f"One training with {audit.canaries:,} canaries",
        "broken": bool(audit.broken),
        "epsilon": number(audit.epsilon),
        "claim": number(audit.claim),
        "delta": float(audit.delta),
        "share": share(audit.epsilon, audit.claim),
        "words": "; ".join(f"{name}: {text}" for name, text in audit.facts()),
        "roc": [[float(x), float(y)] for x, y in audit.points],
        "bound": bound,
    }


def tables(evidence: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The worst pair as two small tables, where the evidence holds rows."""
    sides = (evidence.get("pair") or {}).get("tables") or ()
    sheets = []
    for title, side in zip(("The table", "Its neighbour"), sides, strict=False):
        columns = side.get("columns") if isinstance(side, Mapping) else None
        if not isinstance(columns, Mapping) or not all(isinstance(each, list) for each in columns.values()):
            return []
        count = max((len(each) for each in columns.values()), default=0)
        sheets.append(
            {
                "title": title,
                "columns": [str(name) for name in columns],
                "rows": [
                    [words.cut(_cell(cells[row]) if row < len(cells) else "", _MOST_CELL) for cells in columns.values()]
                    for row in range(min(count, _MOST_ROWS))
                ],
                "count": count,
            }
        )
    return sheets


def counts(evidence: Mapping[str, Any]) -> list[dict[str, int]]:
    """How often the event happened on each side, and in how many runs."""
    hits, runs = evidence.get("counts") or (), evidence.get("runs") or ()
    return [{"hits": int(hit), "runs": int(run)} for hit, run in zip(hits, runs, strict=False)]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping) and len(value) == 1:  # a number that JSON has not, or an odd thing in words
        return str(next(iter(value.values())))
    return "NULL" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
