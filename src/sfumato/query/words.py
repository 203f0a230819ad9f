"""Limits in words: what one unit counts for in this very query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .canonical import text_of
from .limits import Limits
from .raised import title

if TYPE_CHECKING:
    from .design import Design
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


def limits_in_words(plan: Sql, design: Design) -> str:
    """The same as a sentence of the answer: with what becomes of a unit that holds more."""
    if not plan.front.reading.single:
        return f"{counts_for(plan, design.limits)}; one that holds more is weighted down, not cut off"
    unit = plan.unit.column or "row"
    cut = [
        f"{float(design.reaches[each.name]):g} of the {title(plan, each.name)}"
        for each in plan.questions.measures
        if design.reaches[each.name] < each.largest
    ]
    return f"each {unit} counts once" + (
        f", for at most {'; '.join(cut)}; what is beyond that is cut off" if cut else ""
    )


def _many(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"
