"""Which columns of an answer noise has a part in. Those that it has none in tell rows apart from copy to copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

Columns = Mapping[str, bool]
"""By name of a column, in lower case and in order: is there noise in it?"""


def noisy(tree: exp.Query, tables: Mapping[str, Columns]) -> list[bool] | None:
    """For every column of the answer, by place; None where that cannot be read off the query."""
    try:
        return [flag for _, flag in _query(tree, tables)]
    except (KeyError, IndexError):
        return None


def _query(tree: exp.Query, tables: Mapping[str, Columns]) -> list[tuple[str, bool]]:
    clause = tree.args.get("with_")
    for cte in [] if clause is None else clause.expressions:
        columns = _query(cte.this, tables)
        tables = {**tables, cte.alias.lower(): _renamed(columns, cte.args["alias"].args.get("columns"))}
    if isinstance(tree, exp.Subquery):
        return _query(tree.this, tables)
    if isinstance(tree, exp.SetOperation):
        first, second = _query(tree.this, tables), _query(tree.expression, tables)
        whole = isinstance(tree, exp.Union)  # others keep rows of the first by what is in the second
        return [(name, one or two or not whole) for (name, one), (_, two) in zip(first, second, strict=True)]
    assert isinstance(tree, exp.Select)
    return _select(tree, tables)


def _select(select: exp.Select, tables: Mapping[str, Columns]) -> list[tuple[str, bool]]:
    sources: dict[str, Columns] = {}
    first = select.args.get("from_")
    nodes = ([] if first is None else [first.this]) + [join.this for join in select.args.get("joins") or []]
    for place, node in enumerate(nodes):
        alias = node.alias_or_name.lower() or f" {place}"
        if isinstance(node, exp.Values):  # constants, as in UNNEST
            own: Columns = {f"col{column}": False for column in range(len(node.expressions[0].expressions))}
        elif isinstance(node, exp.Unnest):
            own = {"unnest": False}
        else:
            own = tables[node.name.lower()] if isinstance(node, exp.Table) else dict(_query(node.this, tables))
        names = node.args["alias"].args.get("columns") if node.args.get("alias") is not None else None
        sources[alias] = _renamed(list(own.items()), names)
    anywhere = any(flag for columns in sources.values() for flag in columns.values())
    anywhere = anywhere or any(isinstance(node, exp.Query) for node in _expressions(select))
    listed: list[tuple[str, bool]] = []
    for node in select.expressions:
        star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
        if isinstance(star, exp.Star):
            listed += _star(node, star, sources, select)
        else:
            listed.append((node.alias_or_name.lower(), _expression(node.unalias(), sources, anywhere)))
    return listed


def _star(
    node: exp.Expression, star: exp.Star, sources: Mapping[str, Columns], select: exp.Select
) -> list[tuple[str, bool]]:
    if any(join.args.get("using") or join.args.get("method") for join in select.args.get("joins") or []):
        raise KeyError("*")  # which columns there are once is the engine's affair
    if star.args.get("replace") or star.args.get("rename"):
        raise KeyError("*")
    left_out = {name.name.lower() for name in star.args.get("except_") or []}
    wanted = [sources[node.table.lower()]] if isinstance(node, exp.Column) and node.table else sources.values()
    return [item for columns in wanted for item in columns.items() if item[0] not in left_out]


def _expression(node: exp.Expression, sources: Mapping[str, Columns], anywhere: bool) -> bool:
    """Aggregates, windows and subqueries depend on which rows there are, and how they are ordered."""
    if isinstance(node, exp.Grouping | exp.GroupingId):
        return False
    if isinstance(node, exp.AggFunc | exp.Window | exp.Query | exp.Exists):
        return anywhere
    if isinstance(node, exp.Column):
        name, table = node.name.lower(), node.table.lower()
        if table:
            return sources[table][name]
        flags = [columns[name] for columns in sources.values() if name in columns]
        return any(flags) if flags else True  # another output, by its name
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return anywhere
    return any(_expression(child, sources, anywhere) for child in node.iter_expressions())


def _expressions(select: exp.Select) -> Any:
    for part, value in select.args.items():
        if part not in ("from_", "with_", "joins"):
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, exp.Expression):
                    yield from item.walk()


def _renamed(columns: Sequence[tuple[str, bool]], names: Sequence[exp.Expression] | None) -> dict[str, bool]:
    if not names:
        return dict(columns)
    return {name.name.lower(): flag for name, (_, flag) in zip(names, columns, strict=False)}
