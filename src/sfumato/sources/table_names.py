"""Which tables a query reads that no WITH around them means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import needed


def tables_read(tree: Any) -> Iterator[Any]:
    """The nodes that name a table, and none of the query's own CTEs. A CTE is seen by those after it and by the query
    that its WITH belongs to; not by itself: there its name means what it means around the query."""
    yield from _read(tree, frozenset())


def _read(node: Any, hidden: frozenset[str]) -> Iterator[Any]:
    exp = needed("sqlglot").exp
    clause = node.args.get("with_")
    for cte in clause.expressions if clause is not None else ():
        yield from _read(cte.this, hidden)
        hidden |= {cte.alias.lower()}
    named = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
    if named and (node.args.get("db") is not None or node.name.lower() not in hidden):
        yield node
    for part, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if part != "with_" and isinstance(child, exp.Expr):
                yield from _read(child, hidden)
