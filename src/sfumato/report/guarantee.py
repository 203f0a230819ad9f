"""The guarantee in plain language: of one release by itself, and of an account with everything on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..accounting.budget import Budget
from ..errors import SfumatoError
from ..events import Event
from ..plan import Plan
from ..units import RELATIONS, Unit
from . import words
from .accounts.releases import Released
from .accounts.statement import Statement
from .accounts.variants import at_own_delta
from .explanations import Explanation, explain

AT = Fraction(1, 10**6)
"""The delta at which a guarantee that names none is told as an epsilon."""

_VARIANTS = {
    "pure": "pure: epsilon-DP, without any exception",
    "approximate": "approximate: (epsilon, delta)-DP",
    "GDP": "Gaussian DP (mu)",
    "zCDP": "zero-concentrated DP (rho)",
    "Renyi": "Renyi DP",
    "mixed": "parts of different variants",
}


def of_release(row: Released, plan: Plan[Any, Any] | None = None) -> dict[str, Any]:
    """What this release by itself lets anybody learn. The account's limit is the guarantee for all of them."""
    delta = row.delta or Fraction(0)
    epsilon = at_own_delta(row.event, delta)
    at = delta if epsilon is not None else AT
    explanation = _told(row.event, epsilon, at, row.unit.change)
    return {
        "headline": words.price(epsilon, delta, row.native),
        "epsilon": None if epsilon is None else words.above(epsilon),
        "delta": words.above(delta),
        "variant": _VARIANTS.get(row.variant, row.variant),
        "original": [_parameter(name, value) for name, value in _original(row)],
        "unit": row.unit.of,
        "hides": str(row.unit) if plan is None else plan.hides,
        "neighbours": row.unit.change,
        "secure_noise": row.grade == "exact",
        **_explained(explanation, None if epsilon is not None else at, str(row.unit)),
    }


def of_account(now: Statement) -> dict[str, Any]:
    """What everything that is ever released on the account lets anybody learn."""
    limit, unit = now.largest, now.protects or "a unit that the first release will fix"
    relation = relation_of(now.unit)
    explanation = None if limit is None else _of_limit(limit, relation)
    return {
        "headline": "no limit of its own" if limit is None else headline(limit),
        "epsilon": None if limit is None or limit.epsilon is None else words.above(limit.epsilon),
        "delta": None if limit is None or limit.rho is not None else words.above(limit.delta),
        "variant": "none: it has no limit of its own" if limit is None else _VARIANTS[_kind(limit)],
        "original": [_parameter(each.currency, each.limit) for each in now.standing],
        "unit": now.unit or words.UNKNOWN,
        "hides": unit,
        "neighbours": relation,
        "secure_noise": not now.inexact,
        "sentence": words.exponent(now.guarantee),
        **_explained(explanation, AT if limit is not None and limit.rho is not None else None, unit),
    }


def _kind(limit: Budget) -> str:
    return "zCDP" if limit.rho is not None else "approximate" if limit.delta else "pure"


def has_rare_outcomes(now: Statement) -> bool:
    """May an outcome tell more than epsilon says? Only a limit in epsilon alone excludes that."""
    return now.largest is not None and _kind(now.largest) != "pure"


def headline(limit: Budget) -> str:
    if limit.rho is not None:
        return f"rho = {words.above(limit.rho)}"
    return f"epsilon = {words.above(limit.epsilon)}" + (
        f" at delta = {words.above(limit.delta)}" if limit.delta else ""
    )


def relation_of(unit: str | None) -> str:
    """The neighbours that a unit's own words speak of; add-remove where no unit is fixed yet."""
    for relation in RELATIONS:
        if unit is not None and unit.endswith(str(Unit(change=relation)).partition(",")[2]):
            return relation
    return "add-remove"


def _of_limit(limit: Budget, relation: Any) -> Explanation | None:
    if limit.rho is not None:
        return _told(limit.event(relation), None, AT, relation)
    return explain(limit.epsilon, delta=limit.delta, relation=relation)


def _told(event: Event, epsilon: Fraction | None, delta: Fraction, relation: str) -> Explanation | None:
    """From the event's own trade-off where there is one, else from the pair."""
    try:
        return explain(event, delta=delta)
    except SfumatoError:
        return None if epsilon is None else explain(epsilon, delta=delta, relation=relation)


def whom(unit: str) -> str:
    """Whose presence the odds are about, by the unit's own words: one of several rows is less than a person."""
    one = re.search(r"everything one (.+) ever contributed", unit)
    name = one[1] if one else "row" if "one row" in unit else "unit"
    several = re.match(r"any (\d+) of: ", unit)
    return f"a group of {several[1]} {name}s" if several else f"a certain {name}"


def _explained(explanation: Explanation | None, at: Fraction | None, unit: str) -> dict[str, Any]:
    if explanation is None:
        return {"told_at": None, "factor": None, "odds": [], "attacks": []}
    sentences = [words.exponent(each) for each in replace(explanation, whom=whom(unit)).sentences()]
    return {
        "told_at": None if at is None else f"epsilon = {words.near(explanation.epsilon)} at delta = {words.above(at)}",
        "factor": words.near(explanation.factor) if explanation.epsilon < 700 else None,
        "odds": sentences,
        "attacks": [
            {"false_alarms": words.percent(each.false_positive), "found": words.percent(each.true_positive)}
            for each in explanation.attacks
        ],
    }


def _original(row: Released) -> Iterator[tuple[str, Fraction]]:
    """What was proven, and what follows from it exactly: mu-GDP is (mu^2 / 2)-zCDP."""
    yield from row.native.items()
    if "mu^2" in row.native:
        yield "rho", row.native["mu^2"] / 2


def _parameter(name: str, value: Fraction) -> dict[str, str]:
    return {"name": name, "value": words.above(value), "exact": str(value)}
