"""Which law of noise an answer gets, where its budget buys both: Gaussian noise for (epsilon, delta), or Laplace noise
for epsilon alone.

Without groups a unit's numbers are as long in one norm as in the other: |x| where there is one, and where there are
several, with shares that add up to 1, sum s_j |x_j| / R_j <= 1 wherever sum s_j (x_j / R_j)^2 <= 1 (Jensen). So limits
mean the same, but that Laplace noise may weigh less down, and what is left is which noise is smaller. That is told by
public fields: it is a choice between two plans, each with its price, before anything is read. With groups lengths
differ, and nothing is chosen for anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from .. import checks
from ..errors import ArgumentError
from . import budget_split
from .blur import blur
from .design import Design
from .finish import expected
from .limits import Limits
from .plan import Sql
from .tails import CAP

LAWS = ("gaussian", "laplace")
_ALPHA = 0.05
_FINE = 2**20


def options_for(law: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a query whose law somebody chose: for Laplace noise delta is left out, whoever gave it."""
    if law is None:
        return dict(options)
    if law not in LAWS:
        raise checks.refuse(
            "noise", law, "'gaussian' or 'laplace'; left out, the smaller one where there are no groups"
        )
    if law == "laplace":
        if options.get("rho") is not None:
            raise ArgumentError("noise='laplace' has no rho: say how much to spend as epsilon.")
        return {name: value for name, value in options.items() if name != "delta"}
    if options.get("rho") is None and not options.get("delta"):
        raise ArgumentError("noise='gaussian' takes a delta beside epsilon, or rho: give one of them.")
    return dict(options)


def least(plan: Sql) -> Sql:
    """The same question with the least noise: Laplace noise for epsilon alone, where delta buys nothing, and the budget
    split by what aggregates are made of. What was paid for as earlier versions asked it is an answer, too."""
    fields: dict[str, Any] = {"delta": Fraction(0)} if _spares(plan) else {}
    kind = "laplace" if fields else plan.blur.kind
    return instead_of(plan, fields | _shares(plan, kind))


def split(plan: Sql) -> Sql:
    """The same question under the same law, with the budget split by what aggregates are made of."""
    return instead_of(plan, _shares(plan, plan.blur.kind))


def _shares(plan: Sql, kind: str) -> dict[str, Any]:
    weights = budget_split.weights(plan, kind)
    return {"shares": weights} if weights else {}


def instead_of(plan: Sql, fields: Mapping[str, Any]) -> Sql:
    """The plan with other fields, in place of what earlier versions made of the same words."""
    if not fields:
        return plan
    return in_place_of(replace(plan, **fields), plan)


def in_place_of(chosen: Sql, plan: Sql) -> Sql:
    """A plan that knows what earlier versions made of the same words."""
    if chosen.as_written is None:
        object.__setattr__(chosen, "as_written", plan.as_written)
        object.__setattr__(chosen, "earlier", (plan, *plan.earlier))
    else:
        object.__setattr__(chosen, "earlier", plan.forms)
    object.__setattr__(chosen, "spares_delta", plan.spares_delta or bool(plan.delta and not chosen.delta))
    return chosen


def _spares(plan: Sql) -> bool:
    """Is Laplace noise for epsilon alone no larger for any number?"""
    if plan.epsilon is None or not plan.delta or plan.front.keys:  # with groups limits do not mean the same
        return False
    limits, law = (
        plan.limits or Limits(),
        blur(plan.unit, epsilon=plan.epsilon, delta=Fraction(0), rho=None, selects=False),
    )
    if plan.questions.ranked:  # whose trees differ
        other = replace(plan, delta=Fraction(0))
        ranks, others = expected(plan, _ALPHA, limits), expected(other, _ALPHA, limits)
        if any(others[name] > width for name, width in ranks.items() if name in others):
            return False
    one = plan.design(limits)
    two = replace(one, blur=law)
    return all(_half_width(plan, two, name) <= _half_width(plan, one, name) for name in one.spreads)


def _half_width(plan: Sql, design: Design, name: str) -> float:
    """Of one number at 95 %; where the adviser measures what is cut from it, with the noise of that measurement."""
    law, step = design.spreads[name]
    width = law.half_width(_ALPHA) * step
    if not plan.measures_cuts:
        return width
    _, share = plan.layout.shares(plan.advice)
    cut = design.blur.scale(design.reaches.get(name, design.rows_reach) / CAP, share)
    fine = design.blur.law(Fraction(_FINE)).half_width(_ALPHA) / _FINE
    return math.hypot(width, fine * float(cut))
