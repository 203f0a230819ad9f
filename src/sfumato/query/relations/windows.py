"""Window functions within one unit's rows. Nothing may depend on the order that rows happen to have.

A window's PARTITION BY holds the unit, so it never looks at another's rows. Where a function tells rows apart that
ORDER BY leaves equal, the unit's rows are numbered first, in the order of all their columns, and the number is the last
key. Rows that differ in nothing but the number may swap theirs, which swaps their results: as a set of rows, nothing
changes. (All columns as tie-breakers would not do: two windows may break the ties of equal rows differently.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one

from ...sources.vocabulary import call
from ..expressions import trees
from ..kinds import Kind, Typed
from ..refusal import QueryError
from ..relation import UNIT, Scope
from . import merging, totals
from .bases import derived, of
from .group_aggregates import COUNTED, extreme, number
from .joins import Names, keys_in, units_in
from .naming import found
from .window_frames import WHOLE_FRAME, by_range, count_of, frame_of, framed

if TYPE_CHECKING:
    from .reading import Reading

_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_VALUES = (exp.FirstValue, exp.LastValue, exp.NthValue)
_SUMMED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_KNOWN = "ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, SUM, AVG, MIN, MAX"
_PLACE = "_place"


def over(rows: Reading, select: exp.Select) -> Callable[[exp.Expression], Typed]:
    """What a window function in this SELECT means."""
    named = {each.name.lower(): each for each in select.args.get("windows") or []}

    def meaning(node: exp.Expression) -> Typed:
        if isinstance(node, exp.Window):
            return window(_spelt_out(node, named), rows)
        assert rows.scope.special is not None
        return rows.scope.special(node)

    return meaning


def _spelt_out(node: exp.Window, named: dict[str, exp.Expression]) -> exp.Window:
    """OVER w, with what WINDOW w AS (...) says."""
    name = node.args.get("alias")
    if name is None:
        return node
    said = named.get(name.name.lower())
    if said is None or said.args.get("alias") is not None:
        raise QueryError(f"There is no window {name.name!r} here.", "write it out: OVER (PARTITION BY ...)", node)
    full = node.copy()
    full.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        full.set(part, node.args.get(part) or said.args.get(part))
    return full


def window(node: exp.Window, rows: Reading) -> Typed:
    """A window function as the engine computes it, the same whatever the order of rows."""
    function = node.this
    if isinstance(function, exp.Filter):
        raise QueryError("FILTER cannot stand in a window.", "use CASE inside: SUM(CASE WHEN c THEN x END)", node)
    if isinstance(function, (exp.IgnoreNulls, exp.RespectNulls)):
        raise QueryError("IGNORE NULLS is not possible in a window.", "filter the NULLs out in a subquery", node)
    if isinstance(function, exp.AggFunc) and isinstance(function.this, exp.Distinct):
        raise QueryError("DISTINCT is not possible in a window.", "make the rows distinct in a subquery first", node)
    partition = _partition(node, rows)
    order = [_ordered(each, rows) for each in (node.args["order"].expressions if node.args.get("order") else [])]
    frame = frame_of(node)
    ranged = by_range(frame)
    if frame is not None:
        frame, order = framed(frame, node, rows, order)

    def made(inner: exp.Expression, *, told_apart: bool, framed: bool) -> exp.Expression:
        keys = list(order)
        if told_apart:
            assert isinstance(rows.scope, Names) and rows.scope.place is not None
            keys.append(exp.Ordered(this=rows.scope.place, desc=False, nulls_first=False))
        return exp.Window(
            this=inner,
            partition_by=[each.copy() for each in partition],
            order=exp.Order(expressions=[each.copy() for each in keys]) if keys else None,
            spec=frame.copy() if framed and frame is not None else None,
            over="OVER",
        )

    if isinstance(function, _SUMMED):
        # A frame of rows tells equal rows apart; in others, all that ORDER BY leaves equal stay together.
        apart = frame is not None and not ranged
        return _summed(function, node, rows, lambda inner: made(inner, told_apart=apart, framed=True))
    if ranged:
        rule = f"{function.key.upper()} picks one of several rows that a frame by RANGE leaves equal."
        raise QueryError(rule, f"use ROWS, such as {WHOLE_FRAME}", node)
    if isinstance(function, _VALUES):
        return _valued(function, node, rows, frame, lambda inner: made(inner, told_apart=True, framed=True))
    if frame is not None:
        raise QueryError("This window function takes no frame.", "leave ROWS out", node)
    if isinstance(function, _RANKS):
        inner = made(type(function)(), told_apart=isinstance(function, exp.RowNumber), framed=False)
        return Typed(trees.cast(inner, "BIGINT"), Kind("whole", Fraction(1), nullable=False, likely=COUNTED.likely))
    if isinstance(function, exp.Ntile):
        parts = count_of(function.this, 1, node)
        inner = made(exp.Ntile(this=trees.whole(parts)), told_apart=True, framed=False)
        values = tuple(range(1, parts + 1)) if parts <= 1000 else None
        return Typed(trees.cast(inner, "BIGINT"), Kind("whole", Fraction(1), Fraction(parts), values, nullable=False))
    if isinstance(function, (exp.Lag, exp.Lead)):
        return _moved(function, node, rows, lambda inner: made(inner, told_apart=True, framed=False))
    raise QueryError(f"{function.key.upper()} is not among the window functions.", f"use one of: {_KNOWN}", node)


def _partition(node: exp.Window, rows: Reading) -> list[exp.Expression]:
    asked = [rows.translate(each) for each in node.args.get("partition_by") or []]
    if not rows.private:
        return [each.tree for each in asked]
    if rows.protects.column is None:
        raise QueryError(
            "A window looks at several rows, and each row is its own unit.",
            "protect users, Unit('user:<column>'), and partition by that column",
            node,
        )
    if not any(each.kind.within_unit for each in asked):
        rule = "A window may only look at rows of one unit: its PARTITION BY must hold the unit's column."
        column = next(iter([*units_in(rows.scope), *keys_in(rows.scope).values()]), "")
        if not column:
            raise QueryError(rule, "select the unit's column in the subquery, and add it to PARTITION BY", node)
        within = node.copy()
        within.set("partition_by", [parse_one(column, dialect="duckdb"), *within.args.get("partition_by", [])])
        raise QueryError(rule, f"add {column} to PARTITION BY: {within.sql('duckdb')}", node)
    assert rows.unit is not None
    return [rows.unit, *(each.tree for each in asked if not each.kind.unit)]


def _ordered(node: exp.Expression, rows: Reading) -> exp.Ordered:
    assert isinstance(node, exp.Ordered)
    key = rows.translate(node.this)
    first = bool(node.args.get("nulls_first"))
    return exp.Ordered(this=key.tree, desc=bool(node.args.get("desc")), nulls_first=first)


def windows_in(node: exp.Expression | None) -> Iterator[exp.Window]:
    """The windows in an expression."""
    for each in [] if node is None else found(node, exp.Window):
        assert isinstance(each, exp.Window)
        yield each


def tells_apart(node: exp.Window) -> bool:
    """Might it give different results to rows that its ORDER BY leaves equal?"""
    spec = node.args.get("spec")
    if node.args.get("alias") is not None or (spec is not None and not by_range(spec)):
        return True
    return not isinstance(node.this, (exp.Rank, exp.DenseRank, *_SUMMED))


def numbered(rows: Reading) -> Reading:
    """The same rows, each with its number among its unit's in the order of all columns."""
    scope = rows.scope
    assert isinstance(scope, Names)
    keys: list[exp.Expression] = []
    for each in _columns(scope).values():
        keys.append(each.tree)
        if each.kind.is_real:
            keys.append(call("sign_bit", each.tree.copy()))  # -0.0 and 0.0 sort as equals
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[] if rows.unit is None else [rows.unit.copy()],
        order=exp.Order(expressions=[exp.Ordered(this=key.copy(), desc=False, nulls_first=False) for key in keys]),
        over="OVER",
    )
    after, alias = beside(rows, {_PLACE: Typed(number, COUNTED)}, "_numbered")
    assert isinstance(after.scope, Names)
    return after.named(replace(after.scope, place=of(alias, _PLACE)))


def beside(rows: Reading, more: Mapping[str, Typed], name: str) -> tuple[Reading, str]:
    """The same rows with more columns, which are windows, and the name of the subquery that has them."""
    scope = rows.scope
    assert isinstance(scope, Names)
    spots = [(alias, each) for alias, relation in scope.sources.items() for each in relation.columns]
    inner = rows.project({**_columns(scope), **more})
    alias = name + "_" * _depth(scope)  # a subquery that speaks of its outer rows must not hide them
    moved = {spot: of(alias, f"c{place}") for place, spot in enumerate(spots)}
    merged = {name: Typed(of(alias, f"m{place}"), each.kind) for place, (name, each) in enumerate(scope.merged.items())}
    named = replace(scope, merged=merged, moved=moved)
    unit = None if rows.unit is None else of(alias, UNIT)
    return replace(rows, select=exp.Select().from_(derived(inner.tree, alias)), unit=unit).named(named), alias


def _columns(scope: Names) -> dict[str, Typed]:
    """All columns of these rows, named by their places."""
    spots = [(alias, name, kind) for alias, each in scope.sources.items() for name, kind in each.columns.items()]
    shown = {
        f"c{place}": Typed(scope.moved.get((alias, name), of(alias, name)), kind)
        for place, (alias, name, kind) in enumerate(spots)
    }
    return shown | {f"m{place}": each for place, each in enumerate(scope.merged.values())}


def _depth(scope: Scope) -> int:
    return 0 if not isinstance(scope, Names) or scope.outer is None else 1 + _depth(scope.outer)


def _summed(function: exp.Expression, node: exp.Expression, rows: Reading, made: totals.Over) -> Typed:
    if isinstance(function, exp.Count):
        star = function.this is None or isinstance(function.this, exp.Star)
        x = Typed(trees.whole(1), COUNTED) if star else rows.translate(function.this)
        return Typed(totals.count(x, made), COUNTED)
    x = rows.translate(function.this)
    return (
        extreme(function, x, node, made)
        if isinstance(function, (exp.Min, exp.Max))
        else number(function, x, node, made)
    )


def _valued(
    function: exp.Expression, node: exp.Expression, rows: Reading, frame: exp.WindowSpec | None, made: totals.Over
) -> Typed:
    if frame is None and not isinstance(function, exp.FirstValue):
        raise QueryError(
            f"{function.key.upper()} without a frame ends at rows that ORDER BY leaves equal, in no order.",
            f"add {WHOLE_FRAME}",
            node,
        )
    x = rows.translate(function.this)
    inner = type(function)(this=x.tree)
    if isinstance(function, exp.NthValue):
        inner.set("offset", trees.whole(count_of(function.args.get("offset"), 1, node)))
    return Typed(made(inner), x.kind.moved())


def _moved(function: exp.Expression, node: exp.Expression, rows: Reading, made: totals.Over) -> Typed:
    x = rows.translate(function.this)
    offset = function.args.get("offset")
    inner = type(function)(this=x.tree, offset=trees.whole(1 if offset is None else count_of(offset, 0, node)))
    if (given := function.args.get("default")) is None:
        return Typed(made(inner), x.kind.moved())
    (value, default), kind = merging.alike([x, rows.translate(given)], node)
    inner.set("this", value)
    inner.set("default", default)
    return Typed(made(inner), kind.moved())
