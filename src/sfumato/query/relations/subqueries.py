"""Subqueries inside expressions: x IN (SELECT ...), EXISTS (SELECT ...), and a lone value, all over public tables.

Over a private table each of them would make one unit's row depend on the rows of others.
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
from ..relation import Relation, Scope
from . import per_unit
from .bases import as_text, derived, of

_TRUTH = (False, True)
Special = Callable[[exp.Expression], Typed]


@dataclass(frozen=True)
class Subqueries:
    """What subqueries mean in the expressions of one SELECT.

    scope  what names mean around them
    """

    scope: Scope
    tables: Mapping[str, Relation]
    unit: Unit

    def __call__(self, node: exp.Expression) -> Typed:
        if isinstance(node, exp.Exists):
            tree = self._public(node.this, node).tree.copy()
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
        x = translate(node.this, replace(self.scope, special=self))
        relation = self._public(node.args["query"], node)
        (name, kind), *more = relation.columns.items()
        if more:
            raise QueryError("The subquery of IN has one column.", "select the column to compare with", node)
        one, other = x.tree, of("_members", name)
        types = {x.kind.type, kind.type}
        if "key" in types and types <= {"key", "text", "whole"}:
            one, values = as_text(one), as_text(other)
        elif len(types) == 1 or types == {"real", "whole"}:
            values = other
        else:
            raise QueryError(
                f"IN compares {x.kind.type} with {kind.type} values.", "cast one side, such as CAST(x AS VARCHAR)", node
            )
        inner = exp.Select().from_(derived(relation.tree, "_members")).select(values)
        within = exp.In(this=trees.wrapped(one.copy()), query=exp.Subquery(this=inner))
        return Typed(within, Kind("flag", values=_TRUTH))

    def _lone(self, node: exp.Query) -> Typed:
        query = node.unnest()
        if not isinstance(query, exp.Select) or query.args.get("group") or not per_unit.aggregates(query):
            raise QueryError(
                "A subquery that stands for one value must be an aggregate without GROUP BY.",
                "write (SELECT MAX(x) FROM ...), or join the table",
                node,
            )
        relation = self._public(query, node)
        (kind,) = relation.columns.values() if len(relation.columns) == 1 else (None,)
        if kind is None:
            raise QueryError("A subquery that stands for one value has one column.", "select one aggregate", node)
        return Typed(exp.Subquery(this=relation.tree.copy()), replace(kind, origin=None, nullable=True, row=None))

    def _public(self, query: exp.Expr, node: exp.Expr) -> Relation:
        from . import rows_of  # a subquery is read as a query is: the two call each other

        assert isinstance(query, exp.Query)
        relation = rows_of.relation(query, self.tables, self.unit, self.scope)
        if relation.private:
            raise QueryError(
                "A condition on one row cannot read a private table: it would depend on the rows of other units.",
                "join on the unit: JOIN (SELECT user, MAX(x) AS x FROM t GROUP BY user) AS m ON m.user = t.user",
                node,
            )
        return relation
