"""GROUP BY inside a subquery: what one unit's rows come to. Groups always hold the unit, so no two units meet in one.

A query may group by a declared key of what a unit owns, such as an order, and leave the unit out: the engine groups by
both. (A key that two units share is then a group of each of them, and so are rows without the key.)

The same serves public tables, whose groups hold what they like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ..kinds import Typed
from ..refusal import QueryError
from ..relation import UNIT, Scope
from .around import not_tied
from .bases import derived, of, steady
from .chosen_rows import chosen_rows
from .group_aggregates import aggregate
from .joins import Names, units_in
from .naming import changed, found, spelt_out

if TYPE_CHECKING:
    from .reading import Reading

_GROUPS = "groups"  # no user name meets it: columns of the tables are all replaced or refused
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_MANY = ("rollup", "cube", "grouping_sets", "totals")


def aggregates(select: exp.Select) -> bool:
    """Does this SELECT aggregate its rows?"""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(_holds_aggregate(each) for each in select.expressions)


def _holds_aggregate(node: exp.Expression) -> bool:
    """Is there an aggregate that is not the function of a window?"""
    inside_windows = {id(_function(each)) for each in found(node, exp.Window)}
    return any(id(each) not in inside_windows for each in found(node, exp.AggFunc))


def _function(window: exp.Expression) -> exp.Expression:
    function = window.this
    while isinstance(function, _WRAPPERS):
        function = function.this
    assert isinstance(function, exp.Expression)
    return function


def grouped(rows: Reading, select: exp.Select, asked: Sequence[exp.Expression]) -> tuple[Reading, list[exp.Expression]]:
    """The groups as rows, HAVING applied, and the expressions asked for in terms of them."""
    keys = _keys(rows, select)
    typed = [rows.translate(key) for key in keys]
    _check_unit(rows, select, typed)
    having = select.args.get("having")
    conditions = [] if having is None else [spelt_out(having.this, select, rows.scope)]
    rows, asked = chosen_rows(rows, keys, [*asked, *conditions])
    typed = [rows.translate(key) for key in keys]
    alias = _GROUPS if rows.around is None else f"_{_GROUPS}{'_' * rows.around.depth}"  # hides none around it
    work = _Groups(rows, [_plain(key, rows.scope) for key in keys], alias)
    swapped = [work.swapped(each) for each in asked]
    condition = None if having is None else swapped.pop()
    columns = {f"key{place}": Typed(steady(each.tree, each.kind), each.kind) for place, each in enumerate(typed)}
    single = rows.private and all(each.kind.unit for each in typed)
    inner = replace(rows, single=single).project({**columns, **work.found})
    assert isinstance(inner.tree, exp.Select)
    # Positions, so that the engine need not find the same expression twice.
    places = len(typed) + (rows.unit is not None)
    tree = inner.tree.group_by(*(exp.Literal.number(place + 1) for place in range(places))) if places else inner.tree
    inner = replace(inner, tree=tree)
    outer = replace(
        rows,
        select=exp.Select().from_(derived(tree, alias)),
        unit=None if rows.unit is None else of(alias, UNIT),
        single=single,
    ).named(Names(sources={alias: inner}))
    if condition is not None:
        outer = replace(outer, select=outer.select.where(outer.condition(condition))).passing(condition)
    return outer, swapped


def _keys(rows: Reading, select: exp.Select) -> list[exp.Expression]:
    """What is grouped by: columns, expressions, positions and aliases of the SELECT list, or ALL."""
    group = select.args.get("group")
    if group is None:
        return []
    if any(group.args.get(part) for part in _MANY) or list(found(group, exp.Rollup, exp.Cube, exp.GroupingSets)):
        raise QueryError("ROLLUP, CUBE and GROUPING SETS group several times at once.", "write a query each", group)
    keys = list(group.expressions)
    if group.args.get("all"):
        keys = [each.unalias() for each in select.expressions if not _holds_aggregate(each)]
    meant = []
    for key in keys:
        if isinstance(key, exp.Literal) and not key.is_string:
            if not key.name.isdigit() or not 1 <= int(key.name) <= len(select.expressions):
                raise QueryError(f"There is no column {key.name} in the SELECT list.", "name the column", key)
            key = select.expressions[int(key.name) - 1].unalias()
        key = spelt_out(key, select, rows.scope)
        if list(found(key, exp.AggFunc, exp.Window)):
            raise QueryError("A query cannot group by an aggregate or window.", "group by columns of the tables", key)
        while isinstance(key, exp.Paren):
            key = key.this
        meant.append(key)
    return meant


def _check_unit(rows: Reading, select: exp.Select, keys: list[Typed]) -> None:
    if not rows.private or any(each.kind.within_unit for each in keys):
        return
    node = select.args.get("group") or next((each for each in select.expressions if _holds_aggregate(each)), select)
    if rows.protects.column is None:
        raise QueryError(
            "A subquery cannot aggregate private rows where each row is its own unit.",
            "aggregate in the outermost SELECT only",
            node,
        )
    if rows.around is not None and select.args.get("group") is None:
        raise not_tied(rows.scope, rows.around, "A subquery that stands for one value", node)
    names = units_in(rows.scope)
    raise QueryError(
        "A subquery may aggregate private rows only per unit: its GROUP BY must hold the unit's column.",
        f"add {names[0] if names else 'the column of the unit'} to GROUP BY, or aggregate in the outermost SELECT",
        node,
    )


class _Groups:
    """Finds the keys and aggregates in expressions and puts columns of the groups in their places."""

    def __init__(self, rows: Reading, keys: list[exp.Expression], alias: str) -> None:
        self.rows, self.keys, self.alias = rows, keys, alias
        self.found: dict[str, Typed] = {}
        self.seen: list[exp.Expression] = []

    def swapped(self, node: exp.Expression) -> exp.Expression:
        windows: set[int] = set()

        def change(each: exp.Expression) -> exp.Expression:
            if isinstance(each, exp.Window):
                inner: exp.Expression = each.this
                while isinstance(inner, _WRAPPERS):
                    windows.add(id(inner))
                    inner = inner.this
                windows.add(id(inner))
            if isinstance(each, (exp.Column, exp.Func, exp.Binary, exp.Unary, exp.Case, exp.Cast, exp.Condition)):
                plain = _plain(each, self.rows.scope).unnest() if not isinstance(each, exp.Query) else each
                for place, key in enumerate(self.keys):
                    if plain == key:
                        return _shown(self.alias, f"key{place}", each)
            if id(each) not in windows and (isinstance(each, exp.AggFunc) or _wraps_aggregate(each)):
                return _shown(self.alias, self._aggregate(each), each)
            if isinstance(each, exp.Column):
                raise QueryError(
                    f"Column {each.name.lower()!r} is neither grouped by nor inside an aggregate.",
                    f"add it to GROUP BY, or take one value such as MAX({each.name.lower()})",
                    each,
                )
            return each

        return changed(node, change)

    def _aggregate(self, node: exp.Expression) -> str:
        plain = _plain(node, self.rows.scope)
        if plain not in self.seen:
            self.found[f"aggregate{len(self.seen)}"] = aggregate(node, self.rows)
            self.seen.append(plain)
        return f"aggregate{self.seen.index(plain)}"


def _wraps_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, _WRAPPERS) and isinstance(node.this, (exp.AggFunc, *_WRAPPERS))


def _plain(node: exp.Expression, scope: Scope) -> exp.Expression:
    """The expression with every column by its full name, so that x and t.x are seen to be the same."""

    def full(each: exp.Expression) -> exp.Expression:
        return scope.column(each).tree if isinstance(each, exp.Column) else each

    return changed(node, full)


def _shown(alias: str, name: str, node: exp.Expression) -> exp.Expression:
    """A column of the groups, underlined where the expression stood."""
    column = of(alias, name)
    spot = next((each for each in node.walk() if "start" in each.meta), None)
    if spot is not None:
        column.this.meta.update(spot.meta)
    return column
