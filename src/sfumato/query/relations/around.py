"""The row around a subquery that stands in an expression, and the rows of the subquery that may be read with it.

`EXISTS (SELECT ... FROM t WHERE t.user = o.user AND ...)` is asked anew for each row o. Its rows are tied to the unit
of o: the text must equate the unit's columns, or those of a declared key, and the engine gets the condition
`t._unit = o._unit` of its own besides, so that nothing hangs on the text.

Why that is private: by induction each row of t depends on the rows of its own unit and on public tables alone, and,
where the subquery speaks of o, on the row o. Those that are left are of the unit of o. So whatever is computed of them
(aggregates, DISTINCT, windows) is a function of o and of what that unit holds, and the row o with it still depends on
no other unit. From there on tied rows are to the subquery what public ones are: rows that anything may be done with. A
subquery within it that is tied to them is tied to the same unit, since they are of that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp, parse_one

from ..kinds import Kind
from ..refusal import QueryError
from ..relation import Relation, Scope
from .joins import Names, Side, keys_in, keys_meet, same_unit, side_of, units_in, units_meet

MEMBERS = "_members"
"""What the rows of IN's subquery are called."""


@dataclass(frozen=True)
class OuterRow:
    """The row around a subquery.

    scope   what names mean there
    unit    whose that row is; None where it is nobody's, or a unit by itself
    namers  the private tables that name the unit
    same    scopes, the nearest first, whose columns of the unit name that very unit
    depth   how many rows are around this one
    """

    scope: Scope
    unit: exp.Expression | None = None
    namers: frozenset[str] = frozenset()
    same: tuple[Names, ...] = ()
    depth: int = 0

    def hidden(self, names: Scope) -> str | None:
        """A name in FROM that would hide the unit of the row around."""
        used = set() if self.unit is None else {each.table for each in self.unit.find_all(exp.Column)}
        return next((each for each in names.sources if each in used), None)

    def within(self, scope: Scope) -> OuterRow:
        """Around a subquery of the subquery, whose rows are public or tied."""
        if self.unit is None or self.hidden(scope) or not isinstance(scope, Names):
            return OuterRow(scope, depth=self.depth + 1)
        return OuterRow(scope, self.unit, self.namers, (scope, *self.same), self.depth + 1)


def tie(rows: Side, around: OuterRow, where: list[exp.Expression]) -> exp.Expression | None:
    """The engine's condition that rows of a subquery are of the unit around it, where its WHERE says so."""
    if around.unit is None or rows.unit is None:
        return None
    if not any(meets(each, rows.scope, around) or _along_key(each, rows.scope, around) for each in where):
        return None
    if name := around.hidden(rows.scope):
        raise QueryError(
            f"The subquery calls a table {name!r}, which is the name of one around it.",
            "give the table of the subquery another name with AS",
        )
    row = Side(around.same[-1], around.unit, private=True, single=False, namers=around.namers)
    return same_unit(rows, row)


def meets(node: exp.Expression, scope: Names, around: OuterRow) -> bool:
    """Does this condition equate the unit of the subquery's rows with that of the row around it?"""
    full = _in_full(node, scope, around)
    return any(units_meet(full, outer, scope) for outer in around.same)


def _along_key(node: exp.Expression, scope: Names, around: OuterRow) -> bool:
    """Does it equate two columns of a declared key? Unlike the unit's, they are still to be compared."""
    full = _in_full(node, scope, around)
    return any(keys_meet(full, outer, scope) for outer in around.same)


def tie_along(rows: Relation, key: str, node: exp.Expression, around: OuterRow) -> exp.Expression | None:
    """The engine's condition that `rows`, called MEMBERS, are of the unit around, where `node` is a column of the row
    around that holds keys of the same declared key as this column of theirs."""
    column, mine = node.copy().unnest(), rows.columns[key].reference
    if not isinstance(column, exp.Column) or around.unit is None or mine is None:
        return None
    kind = _around(column, around)
    if kind is None or kind.reference != mine:
        return None
    members = side_of(MEMBERS, rows, None)
    return same_unit(members, Side(around.same[-1], around.unit, private=True, single=False, namers=around.namers))


def _in_full(node: exp.Expression, scope: Names, around: OuterRow) -> exp.Expression:
    full = node.copy()
    for column in list(full.find_all(exp.Column)):
        _name_in_full(column, [scope, *around.same])
    return full


def names_unit(node: exp.Expression, around: OuterRow) -> bool:
    """Is this the column that names the unit of the row around?"""
    column = node.copy().unnest()
    if not isinstance(column, exp.Column) or around.unit is None:
        return False
    kind = _around(column, around)
    return kind is not None and kind.unit


def _around(column: exp.Column, around: OuterRow) -> Kind | None:
    """What is known of a column of the row around, or of one of the same unit around that."""
    for scope in around.same:
        if any(
            column.name.lower() in source.columns and column.table.lower() in ("", alias)
            for alias, source in scope.sources.items()
        ):
            return scope.column(column).kind
    return None


def _name_in_full(column: exp.Column, scopes: list[Names]) -> None:
    """A bare name means a column of the nearest scope that has one."""
    name = column.name.lower()
    for scope in [] if column.table else scopes:
        merged = scope.merged.get(name)
        if merged is not None and isinstance(merged.tree, exp.Column):
            column.set("table", exp.to_identifier(merged.tree.table, quoted=True))
            return
        holders = [alias for alias, source in scope.sources.items() if name in source.columns]
        if holders:
            column.set("table", exp.to_identifier(holders[0], quoted=True) if len(holders) == 1 else None)
            return


def _alike(scope: Scope, around: OuterRow) -> Iterator[tuple[str, str]]:
    """Columns of the subquery and of the row around it that hold the same: the unit, or a declared key."""
    for outer in around.same:
        yield from itertools.product(units_in(scope), units_in(outer))
        yield from (
            (name, theirs[key]) for theirs in [keys_in(outer)] for key, name in keys_in(scope).items() if key in theirs
        )


def not_tied(scope: Scope | None, around: OuterRow, what: str, node: exp.Expr) -> QueryError:
    """The refusal of a subquery that reads other units' rows; the caller raises it."""
    rule = (
        f"{what} may read a private table only within the unit of the row around it: its WHERE must equate the units."
    )
    pairs = [] if scope is None or around.unit is None else list(_alike(scope, around))
    if not pairs:
        return QueryError(rule, "join the tables in FROM, or release the subquery first and write its number", node)
    own, its = pairs[0]
    column = parse_one(own, dialect="duckdb")
    alias, name = column.args.get("table"), column.this.sql()
    if alias is not None and any(alias.name in each.sources for each in around.same):
        other = exp.to_identifier(f"{alias.name}2").sql("duckdb")
        return QueryError(rule, f"call the subquery's table {other} and add {other}.{name} = {its} to its WHERE", node)
    return QueryError(rule, f"add {own} = {its} to the subquery's WHERE", node)
