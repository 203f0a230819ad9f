"""FROM, JOIN and WHERE of one SELECT: which rows there are, what names mean in them, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from ...units import Unit
from ..expressions.scalars import translate
from ..kinds import Kind, Typed
from ..refusal import QueryError, no_such
from ..relation import UNIT, Relation, Scope
from .bases import base_tables, derived, lone_name, named, owners, with_ids
from .joins import Side, conjuncts, joined, side_of
from .naming import known_parts, refuse_our_names, spelt_out
from .subqueries import Subqueries

__all__ = ["Reading", "base_tables", "reading"]

_CLAUSES = ("expressions", "from_", "joins", "where", "group", "having", "qualify", "windows")
_LATER = ("order", "limit", "offset", "distinct")


@dataclass(frozen=True)
class Reading:
    """Rows before they are projected.

    scope    what names mean
    select   FROM, JOINs and WHERE; no projections yet
    unit     the unit of each row, where units are users, or rows with ids
    private  does each row belong to one unit?
    single   has each unit at most one row?
    """

    scope: Scope
    select: exp.Select
    unit: exp.Expression | None
    private: bool
    single: bool
    tables: Mapping[str, Relation] = field(default_factory=dict, repr=False)
    protects: Unit = field(default_factory=Unit)

    def translate(self, node: exp.Expression, scope: Scope | None = None) -> Typed:
        """An expression over these rows."""
        return translate(node, scope or self.scope)

    def condition(self, node: exp.Expression, scope: Scope | None = None) -> exp.Expression:
        """The same, of something that is true or false."""
        typed = self.translate(node, scope)
        if typed.kind.type != "flag":
            raise QueryError("A condition is true or false.", "compare it with something, such as x > 0", node)
        return typed.tree

    def named(self, scope: Scope) -> Reading:
        """The same rows where names mean this; subqueries over public tables may stand in expressions."""
        return replace(self, scope=replace(scope, special=Subqueries(scope, self.tables, self.protects)))

    def project(self, columns: Mapping[str, Typed]) -> Relation:
        """The rows with these columns, and their unit."""
        shown = [named(each.tree, name) for name, each in columns.items()]
        if self.unit is not None:
            shown.insert(0, named(self.unit, UNIT))
        kinds: dict[str, Kind] = {name: each.kind for name, each in columns.items()}
        return Relation(self.select.copy().select(*shown), kinds, self.private, self.single)


def reading(select: exp.Select, tables: Mapping[str, Relation], unit: Unit, outer: Scope | None = None) -> Reading:
    """The rows that a SELECT reads. `outer` is the scope around a subquery that may speak of its columns."""
    refuse_our_names(select)
    known_parts(select, _CLAUSES + _LATER)
    if select.args.get("from_") is None:
        raise QueryError("A query without FROM reads no table.", "add FROM and a table", select)
    where = select.args.get("where")
    asked = [] if where is None else list(conjuncts(where.this))
    joins: list[exp.Join] = select.args.get("joins") or []
    repeats = any(each.kind.upper() not in ("SEMI", "ANTI") for each in joins)
    taken: set[str] = set()
    left, first = _side(select.args["from_"].this, tables, unit, repeats, taken, outer)
    tree = exp.Select().from_(first)
    for join in joins:
        taken |= set(left.scope.sources)
        right, source = _side(join.this, tables, unit, repeats, taken, outer)
        if unit.column is None and left.private and right.private:
            raise QueryError(
                "Two private tables cannot be joined where each row is its own unit: a joined row would have two.",
                "protect users, Unit('user:<column>'), and join on that column",
                join,
            )
        left, made = joined(left, right, source, join, asked)
        tree.append("joins", made)
    rows = Reading(left.scope, tree, left.unit, left.private, left.single, tables, unit).named(left.scope)
    if where is None:
        return rows
    kept = rows.condition(spelt_out(where.this, select, left.scope))
    return replace(rows, select=tree.where(kept, copy=False))


def _side(
    node: exp.Expression,
    tables: Mapping[str, Relation],
    unit: Unit,
    repeats: bool,
    taken: set[str],
    outer: Scope | None,
) -> tuple[Side, exp.Subquery]:
    """One table or subquery of FROM."""
    alias, relation = _source(node, tables, unit, len(taken))
    relation = replace(relation, columns=_of_one_row(relation.columns))
    if alias in taken:
        raise QueryError(f"Two tables are called {alias!r} here.", f"give one another name, such as AS {alias}2", node)
    if repeats and unit.column is None:
        # A join may repeat a row; it must still be known as one.
        relation = replace(with_ids(relation), single=False)
    side = side_of(alias, relation, owners(relation.tree), outer)
    return side, derived(relation.tree, alias)


def _of_one_row(columns: Mapping[str, Kind]) -> dict[str, Kind]:
    """Each use of a table in FROM has a row of its own, for whoever asks which values of public tables belong
    together."""
    use = object()
    return {name: kind if kind.origin is None else replace(kind, row=(use, kind.row)) for name, kind in columns.items()}


def _source(node: exp.Expression, tables: Mapping[str, Relation], unit: Unit, place: int) -> tuple[str, Relation]:
    from . import rows_of  # a subquery is read as a query is: the two call each other

    given = node.args.get("alias")
    alias = lone_name(given.name, node) if given is not None and given.name else None
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        known_parts(node, ("this", "alias", "db", "catalog"))
        name = node.name.lower()
        if node.args.get("db") or node.args.get("catalog") or name not in tables:
            shown = ".".join(part.name for part in node.parts)
            raise no_such("table", shown, tables, node)
        return alias or name, _renamed(tables[name], given, node)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not isinstance(node.this, exp.Table):
        known_parts(node, ("this", "alias"))
        return alias or f"subquery {place + 1}", _renamed(rows_of.relation(node.this, tables, unit), given, node)
    words = {"lateral": "LATERAL", "values": "VALUES", "unnest": "UNNEST", "subquery": "A join in brackets"}
    raise QueryError(
        f"{words.get(node.key, 'A function')} cannot stand in FROM: rows come from the tables of the schema.",
        "name a table, a CTE or a subquery (SELECT ...); tables are: " + ", ".join(tables),
        node,
    )


def _renamed(relation: Relation, alias: exp.Expression | None, node: exp.Expression) -> Relation:
    """A relation whose columns are named in its alias, `t(a, b)`."""
    from . import rows_of  # a subquery is read as a query is: the two call each other

    names = alias.args.get("columns") if alias is not None else None
    return rows_of.renamed(relation, [lone_name(each.name, node) for each in names], node) if names else relation
