"""Rows that are units are numbered, and a table of WITH that holds them is read twice: for how much a unit has, and for
what it adds. Engines that keep no such table compute it twice, and may number the rows otherwise the second time. A
row would then count with another's weight, for as much more than its limit as it repeats.

So there the numbers follow an order of all columns: rows that differ in nothing may swap theirs, which changes nothing,
and each time the same rows come out.
"""

from __future__ import annotations

from typing import Any

from .base import needed
from .inferred_types import kind_of
from .vocabulary import call


def as_each_time(around: Any) -> None:
    """Let tables of WITH be the same whenever they are computed: row numbers that have no order get that of what stands
    beside them. Types are inferred by then."""
    exp = needed("sqlglot").exp
    for table in around.find_all(exp.CTE):
        table.set("materialized", None)
    for number in list(around.find_all(exp.RowNumber)):
        window = number.parent
        if isinstance(window, exp.Window) and not (window.args.get("order") or window.args.get("partition_by")):
            _order(window, exp)


def _order(window: Any, exp: Any) -> None:
    keys = []
    for shown in window.find_ancestor(exp.Select).expressions:
        column = shown.unalias()
        if column.find(exp.Window):
            continue
        keys.append(column.copy())
        if kind_of(column) == "DOUBLE":
            keys.append(call("sign_bit", column.copy()))  # -0.0 and 0.0 are equal, and not the same
    if keys:
        ordered = [exp.Ordered(this=key, desc=False, nulls_first=True) for key in keys]
        window.set("order", exp.Order(expressions=ordered))
