"""Limits in words: what one unit counts for in this very query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canonical import text_of
from .limits import Limits

if TYPE_CHECKING:
    from .plan import Sql


def counts_for(plan: Sql, limits: Limits) -> str:
    """How much one unit counts for, at most; of each limit only what the query uses."""
    questions, unit = plan.questions, plan.unit.column or "row"
    limits = limits.completed(plan.front.groups)
    found = []
    if questions.measures or questions.ranked or questions.binned:
        rows = float(limits.rows)
        if plan.front.keys and plan.blur.kind == "gaussian":  # a length: k groups alike are sqrt(k) of one
            found.append(f"{_many(rows, 'row')} in one group, or {2 * rows:g} spread over four")
        else:
            found.append(_many(rows, "row") + (" over all groups" if plan.front.keys else ""))
        titles = {text_of(node).lower(): name for name, node in plan.front.outermost.outputs}
        found += [f"{float(each):g} in {titles.get(name, name)}" for name, each in limits.reach.items()]
    if questions.votes and plan.front.keys:
        found.append(f"{_many(limits.keys, 'group')} where {unit}s are counted")
    if questions.distinct:
        found.append(_many(limits.values, "different value"))
    return f"each {unit} counts for at most {'; '.join(found)}" if found else f"each {unit} counts once"


def _many(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"
