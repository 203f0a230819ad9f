"""A subquery over private rows that speaks of columns around it: its equalities become groups of a release.

    qty > (SELECT 0.5 * SUM(l.quantity) FROM lineitem l WHERE l.part = ps.part AND l.shipped >= '1994-01-01')

is the release of `0.5 * SUM(quantity)` by `part`, of which the row of `ps.part` is looked up. A group that is not
released has no row there, as one without rows has none: the value is NULL, and a COUNT is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from ...units import Unit
from ..relation import Relation
from ..relations.joins import conjuncts
from ..relations.rows_of import relation
from .above_rules import AboveError

Link = tuple[exp.Expression, exp.Expression]


def apart(select: exp.Select, relations: Mapping[str, Relation], unit: Unit) -> tuple[exp.Select, tuple[Link, ...]]:
    """The subquery without the conditions that speak of columns around it, and those as (inner side, outer side)."""
    where = select.args.get("where")
    if where is None:
        return select, ()
    inside = _columns(select, relations, unit)
    own: list[exp.Expression] = []
    links: list[Link] = []
    for test in conjuncts(where.this):
        if all(_is_inside(column, inside) for column in _outside_queries(test)):
            own.append(test)
        else:
            links.append(_link(test, inside))
    if not links:
        return select, ()
    if select.args.get("group") is not None:
        raise AboveError(
            "A subquery with GROUP BY cannot speak of columns around it.", "leave its GROUP BY out", select
        )
    plain = select.copy()
    plain.set("where", exp.Where(this=exp.and_(*own)) if own else None)
    return plain, tuple(links)


def _link(test: exp.Expression, inside: Mapping[str, frozenset[str]]) -> Link:
    if isinstance(test, exp.EQ):
        for one, other in ((test.this, test.expression), (test.expression, test.this)):
            sides = [{_is_inside(column, inside) for column in _outside_queries(side)} for side in (one, other)]
            if sides == [{True}, {False}]:
                return one, other
    raise AboveError(
        "A subquery over private rows may speak of columns around it only in equalities, such as t.a = o.a.",
        "move the other conditions out of the subquery",
        test,
    )


def _outside_queries(node: exp.Expression) -> Iterator[exp.Column]:
    if isinstance(node, exp.Column):
        yield node
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query):
            yield from _outside_queries(child)


def _is_inside(column: exp.Column, inside: Mapping[str, frozenset[str]]) -> bool:
    name, table = column.name.lower(), column.table.lower()
    if table:
        return table in inside
    return any(name in columns for columns in inside.values())


def _columns(select: exp.Select, relations: Mapping[str, Relation], unit: Unit) -> dict[str, frozenset[str]]:
    """By alias: the columns that FROM reads."""
    first = select.args.get("from_")
    sources = ([] if first is None else [first.this]) + [join.this for join in select.args.get("joins") or []]
    columns: dict[str, frozenset[str]] = {}
    for place, source in enumerate(sources):
        alias = source.alias_or_name.lower() or f"subquery {place + 1}"
        if isinstance(source, exp.Table) and source.name.lower() in relations:
            columns[alias] = frozenset(relations[source.name.lower()].columns)
        elif isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
            columns[alias] = frozenset(relation(source.this, relations, unit).columns)
    return columns
