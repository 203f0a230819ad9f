"""A join along a key is the join that looks an owner up: where a query makes it, it is not made twice.

A table that is owned through a key gets its units from the pairs (key, unit) of the table that the key leads to. Beside
a row of that table, or of another that leads there, the unit is known already: the stored rows are joined as they are,
and the joined row has the other side's unit.

Proof sketch: let a side's row, of unit u, hold the key k in a column of a table of the schema as it stands (nothing was
done to it on the way), by which that table is owned or that others lead to. Then (k, u) is one of the pairs: so every
stored row that holds k is a row of u, and those of u that hold k are the stored ones. So the join along the key gives
the same rows, whether the stored rows were first joined with the pairs, and asked for equal units, or not. A stored row
without a partner must not be kept: it would be somebody's or nobody's, and only the pairs know. And what was joined to
stored rows before their owner came was public, or itself lent to them: no other unit had a say in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from ..relation import UNIT, Relation
from .bases import derived
from .joins import Names, Side, conjuncts


def shortened(tree: exp.Select, left: Side, right: Side, after: Side, join: exp.Join) -> Side:
    """What is read after this join, which looks no owner up that the other side knows; it changes `tree` and `join`."""
    if not left.private or not right.private or join.side not in ("", "LEFT"):
        return after
    for (one, its), (other, key) in _equal(join, left.scope, right.scope):
        if _owned_by(right.scope.sources[other], key, left.scope.sources[one], its):
            join.set("this", _stored(right.scope.sources[other], other))
            _without_units(join)
            return replace(after, namers=left.namers)
        lends = _owned_by(left.scope.sources[one], its, right.scope.sources[other], key)
        if lends and not join.side and not join.kind and _is_unit_of(left, one) and _swap(tree, left, one):
            _without_units(join)
            return replace(after, unit=right.unit, namers=right.namers)
    return after


def _equal(join: exp.Join, left: Names, right: Names) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """The columns that the join asks to be equal, as (alias, name): of the left side first."""
    for condition in conjuncts(join.args["on"]):
        one, other = condition.this, condition.args.get("expression")
        if not isinstance(condition, exp.EQ) or not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
            continue
        for a, b in ((one, other), (other, one)):
            if a.table in left.sources and b.table in right.sources:
                yield (a.table, a.name), (b.table, b.name)


def _owned_by(relation: Relation, key: str, other: Relation, column: str) -> bool:
    """Are stored rows owned through this key, and does the other column hold such keys, as its table stores them?"""
    if relation.base is None or relation.base.rows is None or relation.base.key != key or other.base is None:
        return False
    mine, theirs = relation.columns[key].reference, other.columns[column].reference
    return mine is not None and mine == theirs


def _stored(relation: Relation, alias: str) -> exp.Subquery:
    assert relation.base is not None and relation.base.rows is not None
    return derived(relation.base.rows, alias)


def _is_unit_of(side: Side, alias: str) -> bool:
    return isinstance(side.unit, exp.Column) and side.unit.table == alias


def _swap(tree: exp.Select, left: Side, alias: str) -> bool:
    """Put the stored rows in the place of those that have units; not where a condition asks for these units."""
    joins: list[exp.Join] = tree.args.get("joins") or []
    conditions: list[exp.Expression] = [each.args["on"] for each in joins if each.args.get("on") is not None]
    if any(each.table == alias and each.name == UNIT for on in conditions for each in on.find_all(exp.Column)):
        return False
    source = next(each for each in (tree.args["from_"], *joins) if each.this.alias == alias)
    source.set("this", _stored(left.scope.sources[alias], alias))
    return True


def _without_units(join: exp.Join) -> None:
    """The condition that both units are equal goes: one of the sides has none any more."""
    rest = [
        each
        for each in conjuncts(join.args["on"])
        if not any(column.name == UNIT for column in each.find_all(exp.Column))
    ]
    join.set("on", exp.and_(*(each.copy() for each in rest), copy=False))
