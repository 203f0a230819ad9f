"""Sums whose values nothing bounds but us, where nobody looks for how far units move them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .aggregates import Statistic
from .canonical import text_of
from .outermost import is_aggregate
from .refusal import QueryError

if TYPE_CHECKING:
    from .front import Front


def check_generous(front: Front, reach: Mapping[str, Any], text: str) -> None:
    """Where limits are given, a generous bound (`likely.MOST`) would be paid for in full, unless its reach is given,
    too: only the adviser finds out how much units hold."""
    reached = front.reaches(reach)
    for name, node in _aggregates(front):
        aggregate = front.aggregates[text_of(node)]
        sums = aggregate.measures if isinstance(aggregate, Statistic) else ()
        if not any(each.generous and each.name not in reached for each in sums):
            continue
        value = (node.this if isinstance(node, exp.Filter) else node).this
        summed = value.sql("duckdb")
        clamped = f"LEAST(GREATEST({summed}, 0), 100)"
        raise QueryError(
            f"The values of {summed} have no public bounds, and with limits nobody looks for how much units hold.",
            f"give bounds={{{name!r}: (lowest, highest)}} or its reach in the limits, write {clamped}, or leave "
            "limits to the adviser",
            value,
            write=clamped,
        ).within(text)


def _aggregates(front: Front) -> Iterator[tuple[str, exp.Expression]]:
    """Those of the SELECT list, with the name of the output that each is in, and then those of HAVING and ORDER BY."""
    outermost = front.outermost
    later = [outermost.select.args[part] for part in ("having", "order") if outermost.select.args.get(part)]
    for name, output in [*outermost.outputs, *(("", each) for each in later)]:
        for node in output.walk():
            if is_aggregate(node) and text_of(node) in outermost.aggregates:
                yield name, node
