"""Which rows of a released table are shown, and in what order: HAVING, ORDER BY, LIMIT and OFFSET.

Without ORDER BY, and among equals, rows stand in the order of their keys: the order in which an engine gives groups may
depend on rows that nobody should know of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from ..refusal import QueryError
from .figures import Bools, Figure
from .values import Keys, Objects, Truth, Value, keys_of

Integers = NDArray[np.int64]


def having(held: Value, node: exp.Expression) -> Bools:
    """The groups for which the condition is true; where it is unknown it is not."""
    if not isinstance(held, Truth):
        raise QueryError("HAVING needs a condition.", "compare a released value, as in HAVING COUNT(*) > 100", node)
    return held.true & held.known


def order_by(
    order: exp.Expression | None,
    outputs: Mapping[str, Value],
    value: Callable[[exp.Expression], Value],
    ties: Sequence[Keys],
    size: int,
) -> Integers:
    """The groups in order.

    outputs  the columns of the SELECT list, by lower-case name: ORDER BY may name them, or their places from 1
    value    what any other expression is
    ties     the keys of the groups, which settle what is equal
    """
    columns = [_ranks(each.values, descending=False, nulls_first=False) for each in reversed(ties)]
    for term in reversed(order.expressions if order is not None else []):
        ranked = _sortable(_term(term.this, outputs, value), term)
        columns.append(
            _ranks(ranked, descending=bool(term.args.get("desc")), nulls_first=bool(term.args.get("nulls_first")))
        )
    return np.lexsort(columns).astype(np.int64) if columns else np.arange(size, dtype=np.int64)


def shown(query: exp.Expression) -> slice:
    """The rows that LIMIT and OFFSET leave."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    first = 0 if offset is None else _whole(offset.expression, offset)
    if limit is None:
        return slice(first, None)
    options = limit.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise QueryError("LIMIT takes a number of rows here.", "write LIMIT 10", limit)
    count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
    return slice(first, first + _whole(count, limit))


def _term(node: exp.Expression, outputs: Mapping[str, Value], value: Callable[[exp.Expression], Value]) -> Value:
    if isinstance(node, exp.Literal):
        place = int(node.this) if not node.is_string and node.this.isdigit() else 0
        if not 1 <= place <= len(outputs):
            raise QueryError(
                "ORDER BY takes a column, an expression, or the place of a column in the SELECT list.",
                f"use a place from 1 to {len(outputs)}, or a name",
                node,
            )
        return list(outputs.values())[place - 1]
    if isinstance(node, exp.Column) and not node.table and node.name.lower() in outputs:
        return outputs[node.name.lower()]
    if isinstance(node, exp.Var):
        raise QueryError("ORDER BY ALL is not offered.", "name the columns, as in ORDER BY 1, 2", node)
    return value(node)


def _sortable(value: Value, node: exp.Expression) -> Objects | NDArray[np.float64]:
    if isinstance(value, Figure):
        return value.value
    if isinstance(value, Keys | Truth):
        return keys_of(value).values
    raise QueryError("Lists have no order.", "order by a number or a key", node)


def _ranks(values: Objects | NDArray[np.float64], *, descending: bool, nulls_first: bool) -> Integers:
    """The place of each value among the different ones; NULLs before or after all."""
    if values.dtype == np.float64:
        present = np.isfinite(values.astype(np.float64))
        found: Any = np.unique(values[present], return_inverse=True)[1]
    else:
        present = np.array([each is not None for each in values], dtype=np.bool_)
        kept = values[present].tolist()
        places = {each: place for place, each in enumerate(_sorted(set(kept)))}
        found = np.array([places[each] for each in kept], dtype=np.int64)
    ranks = np.full(values.shape, -1 if nulls_first else values.size, dtype=np.int64)
    ranks[present] = (values.size - 1 - found) if descending else found
    return ranks


def _sorted(values: set[Any]) -> list[Any]:
    """Keys of a column whose type is not known may be of several types, which Python does not compare."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda each: ("" if isinstance(each, int | float) else type(each).__name__, each))


def _whole(node: exp.Expression | None, clause: exp.Expression) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        return int(node.this)
    raise QueryError("LIMIT and OFFSET take a whole number.", "write it out, as in LIMIT 10 OFFSET 20", clause)
