"""A release that is looked up by columns of public rows around it lists the keys that occur there, and no others.

    FROM lineitem, part WHERE l_partkey = p_partkey AND p_brand = 'B' AND
        l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)

asks for the average of the parts of that brand alone: a row around that is not of the brand is left out, whatever it
is compared with. So the release is grouped by `SELECT DISTINCT p_partkey FROM part WHERE p_brand = 'B'`, joined: its
groups are public, and few. The conditions that count are those that every row around must pass (the parts of an AND in
WHERE) and that speak of that one public table. Each key stands once among them, so the join repeats no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from ...units import Unit
from ..refusal import QueryError
from ..relation import Relation
from ..relations.bases import named
from ..relations.joins import conjuncts
from ..relations.rows_of import relation
from .lookups import Link


def tied(
    select: exp.Select,
    links: Sequence[Link],
    around: exp.Select,
    relations: Mapping[str, Relation],
    unit: Unit,
) -> tuple[exp.Select, tuple[Link, ...]] | None:
    """The subquery joined with the keys that can be looked up in it, and its links from these; None where what it is
    looked up by is no columns of one public table."""
    outer: list[Any] = [link.unnest() for _, link in links]
    sources = {source.alias_or_name.lower(): source for source in _sources(around)}
    owners = {_owner(node, sources, relations) for node in outer}
    [owner] = owners if len(owners) == 1 else [None]
    if owner is None:
        return None
    alias = f"keys of {owner}"
    names = [f"{node.name.lower()} of {owner}" for node in outer]  # that no column around is called by
    listed = exp.Select(expressions=[named(node, name) for node, name in zip(outer, names, strict=True)]).distinct()
    listed.set("from_", exp.From(this=sources[owner].copy()))
    where = around.args.get("where")
    for test in () if where is None else conjuncts(where.this):
        narrowed = listed.copy().where(test.copy())
        if _speaks_of(test, owner, sources, relations) and _is_public(narrowed, relations, unit):
            listed = narrowed
    if not _is_public(listed, relations, unit):
        return None
    columns = [exp.column(name, table=alias, quoted=True) for name in names]
    pairs = zip(links, columns, strict=True)
    same = [exp.EQ(this=exp.paren(inside.copy()), expression=column.copy()) for (inside, _), column in pairs]
    plain = select.copy()
    source = exp.Subquery(this=listed, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    plain.append("joins", exp.Join(this=source, kind="INNER", on=exp.and_(*same)))
    return plain, tuple(zip(columns, (link for _, link in links), strict=True))


def _sources(select: exp.Select) -> Iterator[exp.Expression]:
    first = select.args.get("from_")
    yield from [] if first is None else [first.this]
    yield from (join.this for join in select.args.get("joins") or [])


def _owner(
    node: exp.Expression, sources: Mapping[str, exp.Expression], relations: Mapping[str, Relation]
) -> str | None:
    """The public table of FROM that a column is of."""
    if not isinstance(node, exp.Column):
        return None
    owners = [alias for alias in sources if _has(alias, node, sources, relations)]
    return owners[0] if len(owners) == 1 else None


def _has(
    alias: str, column: exp.Column, sources: Mapping[str, exp.Expression], relations: Mapping[str, Relation]
) -> bool:
    source = sources[alias]
    if column.table and column.table.lower() != alias:
        return False
    if not isinstance(source, exp.Table) or source.name.lower() not in relations:
        return bool(column.table)  # whose columns are not known here: taken for its own only where that is said
    return column.name.lower() in relations[source.name.lower()].columns


def _speaks_of(
    test: exp.Expression, owner: str, sources: Mapping[str, exp.Expression], relations: Mapping[str, Relation]
) -> bool:
    """Are all columns outside of its subqueries those of this table? What is wrong within one shows when it is read."""
    columns = list(_columns(test))
    return bool(columns) and all(_owner(column, sources, relations) == owner for column in columns)


def _columns(node: exp.Expression) -> Iterator[exp.Column]:
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from _columns(child)


def _is_public(select: exp.Select, relations: Mapping[str, Relation], unit: Unit) -> bool:
    """Is it a query of public tables alone, that is read by itself? So no private row has a say in which keys there
    are."""
    try:
        return not relation(select, relations, unit).private
    except QueryError:
        return False
