"""Subqueries inside expressions: x IN (SELECT ...), EXISTS (SELECT ...), and a lone value.

They read public tables, and private ones as far as their rows are of the unit that the row around them belongs to
(`around.py`). Beyond that each of them would make one unit's row depend on the rows of others.

`user IN (SELECT user FROM t ...)` needs no condition: whether a unit is among the units of t is told by its own rows of
t. It is asked of the columns that carry the units, which are never NULL. Nor does `key IN (SELECT key FROM t ...)`
along a declared key: the engine is asked for equal units besides, as in a join along it, and that changes nothing that
SQL would say of keys that are there (`joins.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from ...units import Unit
from ..expressions import trees
from ..expressions.scalars import translate
from ..kinds import Kind, Typed
from ..refusal import QueryError
from ..relation import UNIT, Relation
from . import per_unit
from .around import MEMBERS, OuterRow, names_unit, not_tied, tie_along
from .bases import as_text, derived, namers, of

_TRUTH = (False, True)
Special = Callable[[exp.Expression], Typed]


@dataclass(frozen=True)
class Subqueries:
    """What subqueries mean in the expressions of one SELECT.

    row  what is around them
    """

    row: OuterRow
    tables: Mapping[str, Relation]
    unit: Unit

    def __call__(self, node: exp.Expression) -> Typed:
        if isinstance(node, exp.Exists):
            tree = self._own(_unlimited(node.this), "EXISTS", node).tree.copy()
            return Typed(exp.Exists(this=tree), Kind("flag", values=_TRUTH, nullable=False))
        if isinstance(node, exp.In):
            return self._member(node)
        if isinstance(node, exp.Query):
            return self._lone(node)
        if isinstance(node, (exp.Any, exp.All)):
            raise QueryError("ANY and ALL compare with a whole subquery.", "use IN (SELECT ...), or MIN or MAX", node)
        what = "A window function" if isinstance(node, exp.Window) else "An aggregate"
        instead = "compute it per unit in a subquery first, or move the condition to HAVING"
        raise QueryError(f"{what} cannot stand here.", instead, node)

    def _member(self, node: exp.In) -> Typed:
        if isinstance(node.this, exp.Tuple):
            raise QueryError("IN compares one column.", "use EXISTS (SELECT 1 ... WHERE a = b AND c = d)", node)
        x = translate(node.this, replace(self.row.scope, special=self))
        relation = self._relation(node.args["query"])
        (name, kind), *more = relation.columns.items()
        if more:
            raise QueryError("The subquery of IN has one column.", "select the column to compare with", node)
        own: list[exp.Expression] = []
        if relation.private:
            if kind.unit and names_unit(node.this, self.row):
                return self._unit_among(relation)
            if (tied := tie_along(relation, name, node.this, self.row)) is None:
                raise self._not_tied(node.args["query"], "IN", node)
            own = [tied]
        one, other = x.tree, of(MEMBERS, name)
        types = {x.kind.type, kind.type}
        if "key" in types and types <= {"key", "text", "whole"}:
            one, values = as_text(one), as_text(other)
        elif len(types) == 1 or types == {"real", "whole"}:
            values = other
        else:
            raise QueryError(
                f"IN compares {x.kind.type} with {kind.type} values.", "cast one side, such as CAST(x AS VARCHAR)", node
            )
        inner = exp.Select().from_(derived(relation.tree, MEMBERS)).select(values).where(*own)
        within: exp.Expression = exp.In(this=trees.wrapped(one.copy()), query=exp.Subquery(this=inner))
        if own and x.kind.nullable:  # SQL says NULL of NULL among all keys, also where the unit itself has none
            there = exp.Not(this=exp.Is(this=trees.wrapped(one.copy()), expression=exp.Null()))
            within = trees.when(there, within)
        return Typed(within, Kind("flag", values=_TRUTH))

    def _unit_among(self, relation: Relation) -> Typed:
        """Is the unit of the row around among the units of these rows?"""
        assert self.row.unit is not None
        one, other, sources = self.row.unit.copy(), of(MEMBERS, UNIT), namers(relation.tree)
        if self.row.namers != sources or len(sources) != 1:
            one, values = as_text(one), as_text(other)
        else:
            values = other
        inner = exp.Select().from_(derived(relation.tree, MEMBERS)).select(values)
        within = exp.In(this=trees.wrapped(one), query=exp.Subquery(this=inner))
        return Typed(within, Kind("flag", values=_TRUTH, nullable=False))

    def _lone(self, node: exp.Query) -> Typed:
        query = node.unnest()
        if not isinstance(query, exp.Select) or query.args.get("group") or not per_unit.aggregates(query):
            raise QueryError(
                "A subquery that stands for one value must be an aggregate without GROUP BY.",
                "write (SELECT MAX(x) FROM ...), or join the table",
                node,
            )
        relation = self._own(query, "A subquery that stands for one value", node)
        (kind,) = relation.columns.values() if len(relation.columns) == 1 else (None,)
        if kind is None:
            raise QueryError("A subquery that stands for one value has one column.", "select one aggregate", node)
        return Typed(exp.Subquery(this=relation.tree.copy()), replace(kind, origin=None, nullable=True, row=None))

    def _own(self, query: exp.Expr, what: str, node: exp.Expr) -> Relation:
        """Rows that are public, or all of the unit around them."""
        relation = self._relation(query)
        if relation.private:
            raise self._not_tied(query, what, node)
        return relation

    def _relation(self, query: exp.Expr) -> Relation:
        from . import rows_of  # a subquery is read as a query is: the two call each other

        if not isinstance(query, exp.Query):
            raise QueryError("A subquery is asked for here.", "write EXISTS (SELECT 1 FROM ...)", query)
        return rows_of.relation(query, self.tables, self.unit, self.row)

    def _not_tied(self, query: exp.Expr, what: str, node: exp.Expr) -> QueryError:
        from .reading import reading  # the same

        query, scope = query.unnest(), None
        if isinstance(query, exp.Select) and query.args.get("with_") is None:
            scope = reading(query, self.tables, self.unit, self.row).scope
        return not_tied(scope, self.row, what, node)


def _unlimited(query: exp.Expr) -> exp.Expr:
    """EXISTS asks for one row: a LIMIT of one or more changes nothing."""
    limit = query.args.get("limit") if isinstance(query, exp.Select) else None
    number = None if limit is None else limit.args.get("expression")
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit() or int(number.name) < 1:
        return query
    bare = query.copy()
    bare.set("limit", None)
    return bare
