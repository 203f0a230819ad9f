"""What the adviser will ask an engine, before it does: so that a word which the engine lacks is refused unpaid.

The numbers in these statements come with the answers, the words do not: they follow from the query and its limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import running
from .kinds import Kind, Typed
from .limits import Limits
from .profiles import sizes_statement
from .size_statements import cut_pairs, cut_values, pair_profile, value_profile
from .unit_sums import unit_sums

if TYPE_CHECKING:
    from sqlglot import exp

    from .plan import Sql


def statements(plan: Sql) -> Iterator[exp.Query]:
    """One of each kind that the adviser runs, beside those of the release itself."""
    front, layout, design = plan.front, plan.layout, plan.design(plan.limits or Limits())
    keys, groups, pairs = len(front.keys), running.Groups((), True), unit_sums(plan)
    if layout.votes and design.votes is not None:
        yield pair_profile(pairs.rows)
        yield cut_pairs(pairs.rows, pairs.rows, votes=design.votes, blur=plan.blur, most=1)
    if layout.sized:
        yield sizes_statement(front, plan.blur, pairs, layout.sized, groups, masses=layout.masses)
    if design.sums:
        yield running.cut_statement(front, design, groups, [1] * len(design.sums), pairs)
    for name in (*design.questions.ranked, *design.questions.binned)[: int(layout.rows)]:
        yield running.counted_cut(front, design, groups, design.counted(name), 1, pairs)
    for name in layout.distinct:
        rows = front.rows({"x": Typed(design.questions.distinct[name].value, Kind("whole"))})
        yield value_profile(rows, keys=keys)
        yield cut_values(rows, keys=keys, most_values=design.limits.values, most=1)
