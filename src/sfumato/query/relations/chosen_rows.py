"""Aggregates of some rows of a group: of different values, once each, and of the value that is there most often.

SUM(DISTINCT x) is the SUM of x over one row of each value: which of them is all the same, since they have one x. MODE
is the x of the rows that come first by how often their x is there, and of equally frequent ones the least. So both are
windows over the rows of a group, which are all of one unit, and then an aggregate like any other. Neither depends on
the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ..expressions import trees
from ..kinds import Kind, Typed
from ..refusal import QueryError
from .bases import as_text, of, steady
from .group_aggregates import COUNTED, ORDERED, SPREADS
from .joins import Names
from .naming import changed

if TYPE_CHECKING:
    from .reading import Reading

_AGGREGATES: tuple[type[exp.Expression], ...] = (exp.Sum, exp.Avg, *SPREADS)
_OF_DIFFERENT = {kind.key: kind for kind in _AGGREGATES}
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class _Chosen:
    """One such aggregate: what it is taken of, NULL where a FILTER leaves the row out, and whether it is a MODE."""

    value: exp.Expression
    mode: bool


class _FoldSearch:
    """Finds them, and puts plain aggregates of new columns in their places."""

    def __init__(self) -> None:
        self.folds: list[_Chosen] = []

    def swapped(self, node: exp.Expression) -> exp.Expression:
        of_windows: set[int] = set()

        def change(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Window):
                inner: exp.Expression = part.this
                while isinstance(inner, _WRAPPERS):
                    of_windows.add(id(inner))
                    inner = inner.this
                of_windows.add(id(inner))
            return part if id(part) in of_windows else self._plain(part)

        return changed(node, change)

    def _plain(self, node: exp.Expression) -> exp.Expression:
        condition: exp.Expression | None = None
        fold: exp.Expr = node
        if isinstance(fold, exp.Filter):
            condition, fold = fold.expression.this, fold.this
        if isinstance(fold, exp.WithinGroup) and isinstance(fold.this, exp.Mode):
            fold = exp.Mode(this=fold.expression.expressions[0].this)
        if isinstance(fold, exp.Mode) and fold.this is not None:
            return exp.Min(this=self._column(fold.this, condition, node, mode=True))
        if not isinstance(fold, exp.AggFunc) or not isinstance(fold.this, exp.Distinct):
            return node
        values = fold.this.expressions
        if len(values) != 1 or isinstance(values[0], exp.Tuple):
            return node  # COUNT alone takes several
        if isinstance(fold, exp.Min | exp.Max):  # the same of different values as of all
            plain = type(fold)(this=values[0].copy())
            return plain if condition is None else exp.Filter(this=plain, expression=node.expression.copy())
        kind = _OF_DIFFERENT.get(fold.key)
        return node if kind is None else kind(this=self._column(values[0], condition, node, mode=False))

    def _column(
        self, value: exp.Expression, condition: exp.Expression | None, node: exp.Expression, *, mode: bool
    ) -> exp.Column:
        if condition is not None:
            value = exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
        chosen = _Chosen(value, mode)
        if chosen not in self.folds:
            self.folds.append(chosen)
        column = exp.column(_name(self.folds.index(chosen)), quoted=True)
        spot = next((each for each in node.walk() if "start" in each.meta), None)
        column.this.meta.update({} if spot is None else spot.meta)
        return column


def chosen_rows(
    rows: Reading, keys: Sequence[exp.Expression], wanted: Sequence[exp.Expression]
) -> tuple[Reading, list[exp.Expression]]:
    """The rows with what such aggregates need, and the expressions without them."""
    from .windows import beside  # windows are over the same rows

    search = _FoldSearch()
    swapped = [search.swapped(node) for node in wanted]
    if not search.folds:
        return rows, list(wanted)
    sizes: dict[str, exp.Expression] = {}
    often = {
        f"_often{place}": Typed(unit_window(rows, keys, [each], exp.Count(this=each.copy(), big_int=True)), COUNTED)
        for place, chosen in enumerate(search.folds)
        if chosen.mode
        for each in [_value(chosen, rows).tree]
    }
    if often:
        rows, alias = beside(rows, often, "_frequent")
        sizes = {name: of(alias, name) for name in often}
    places: dict[str, Typed] = {}
    for place, chosen in enumerate(search.folds):
        tree, size = _value(chosen, rows).tree, sizes.get(f"_often{place}")
        order = [] if size is None else [(size, True), (tree, False)]
        window = unit_window(rows, keys, [tree] if size is None else [], exp.RowNumber(), order)
        places[f"_place{place}"] = Typed(window, COUNTED)
    rows, alias = beside(rows, places, "_chosen")
    columns: dict[str, Typed] = {}
    for place, chosen in enumerate(search.folds):
        value = _value(chosen, rows)
        first = trees.binary(exp.EQ, of(alias, f"_place{place}"), trees.whole(1))
        kind = replace(value.kind, nullable=True, unit=False, reference=None, image=None)
        columns[_name(place)] = Typed(trees.when(first, value.tree), kind)
    assert isinstance(rows.scope, Names)
    return rows.named(replace(rows.scope, aliases={**rows.scope.aliases, **columns})), swapped


def _name(place: int) -> str:
    """No name of a query begins with an underscore."""
    return f"_chosen{place}"


def _value(chosen: _Chosen, rows: Reading) -> Typed:
    value = rows.translate(chosen.value)
    if chosen.mode and value.kind.type == "key":
        return Typed(as_text(value.tree), Kind("text"))
    if chosen.mode and value.kind.type not in ORDERED:
        raise QueryError(f"MODE needs values, and this is a {value.kind.type}.", "cast it to text", chosen.value)
    return Typed(steady(value.tree, value.kind), value.kind)


def unit_window(
    rows: Reading,
    keys: Sequence[exp.Expression],
    more: Sequence[exp.Expression],
    function: exp.Expression,
    order: Sequence[tuple[exp.Expression, bool]] = (),
) -> exp.Expression:
    """A window over the rows of a group, which are of one unit, or over those of them with one value."""
    typed = [rows.translate(key) for key in keys]
    parts = [*([] if rows.unit is None else [rows.unit]), *(steady(each.tree, each.kind) for each in typed), *more]
    ordered = [exp.Ordered(this=tree.copy(), desc=down, nulls_first=False) for tree, down in order]
    return exp.Window(
        this=function,
        partition_by=[part.copy() for part in parts],
        order=exp.Order(expressions=ordered) if ordered else None,
        over="OVER",
    )
