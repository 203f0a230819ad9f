"""FROM, JOIN and WHERE of one SELECT: which rows there are, what names mean in them, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from ...units import Unit
from ..expressions import likely
from ..expressions.functions.operands import Reader
from ..expressions.scalars import rule, translate
from ..kinds import Kind, Typed
from ..public_images import Image, facts_of, image_of, of_public
from ..refusal import QueryError, no_such
from ..relation import UNIT, Relation, Scope
from .around import OuterRow, meets, tie
from .bases import base_tables, derived, lone_name, named, with_ids
from .from_clause import implied, natural, without_brackets
from .joins import Names, Side, conjuncts, joined, side_of
from .lending import shortened
from .listed_rows import listed
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
    private  does each row belong to one unit? Rows of a subquery that are tied to the unit around it need not
    single   has each unit at most one row?
    namers   the private tables that name the units
    around   the row around a subquery that stands in an expression
    facts    conditions on public values that hold for every row
    """

    scope: Scope
    select: exp.Select
    unit: exp.Expression | None
    private: bool
    single: bool
    tables: Mapping[str, Relation] = field(default_factory=dict, repr=False)
    protects: Unit = field(default_factory=Unit)
    namers: frozenset[str] = frozenset()
    around: OuterRow | None = field(default=None, repr=False)
    facts: tuple[Image, ...] = field(default=(), repr=False)

    def translate(self, node: exp.Expression, scope: Scope | None = None) -> Typed:
        """An expression over these rows."""
        typed, scope = translate(node, scope or self.scope), scope or self.scope
        return replace(typed, kind=replace(typed.kind, image=image_of(typed.tree, scope)))

    def condition(self, node: exp.Expression, scope: Scope | None = None) -> exp.Expression:
        """The same, of something that is true or false."""
        typed = self.translate(node, scope)
        if typed.kind.type != "flag":
            name = node.sql("duckdb")
            test = f"{name} > 0" if typed.kind.numeric else f"{name} IS NOT NULL"
            rule = "A condition is true or false."
            raise QueryError(rule, f"compare it with something, such as {test}", node, write=test)
        return typed.tree

    def passing(self, test: exp.Expression) -> Reading:
        """The same rows, all of which passed this test: where its columns lie by that is likely (see likely.py)."""
        sources = dict(self.scope.sources)
        for column, comparison, constant in likely.conditions(test):
            if constant.find(exp.Column, exp.Query, exp.AggFunc, exp.Window):
                continue
            spot = self.scope.column(column).tree
            if not isinstance(spot, exp.Column) or spot.table not in sources:
                continue
            columns = sources[spot.table].columns
            if (kind := columns.get(spot.name)) is not None:
                ends = likely.narrowed(kind, comparison, _constant(constant, kind))
                sources[spot.table] = replace(sources[spot.table], columns={**columns, spot.name: ends})
        assert isinstance(self.scope, Names)
        return self.named(replace(self.scope, sources=sources))

    def named(self, scope: Scope) -> Reading:
        """The same rows where names mean this; subqueries may stand in expressions."""
        return replace(self, scope=replace(scope, special=Subqueries(self._row(scope), self.tables, self.protects)))

    def _row(self, scope: Scope) -> OuterRow:
        """One of these rows, around a subquery."""
        depth = 0 if self.around is None else self.around.depth + 1
        if self.private and isinstance(scope, Names):
            return OuterRow(scope, self.unit, self.namers, (scope,), depth)
        return OuterRow(scope, depth=depth) if self.around is None else self.around.within(scope)

    def project(self, columns: Mapping[str, Typed]) -> Relation:
        """The rows with these columns, and their unit."""
        shown = [named(each.tree, name) for name, each in columns.items()]
        if self.unit is not None:
            shown.insert(0, named(self.unit, UNIT))
        kinds: dict[str, Kind] = {name: each.kind for name, each in columns.items()}
        return Relation(self.select.copy().select(*shown), kinds, self.private, self.single, facts=self.facts)


def reading(select: exp.Select, tables: Mapping[str, Relation], unit: Unit, around: OuterRow | None = None) -> Reading:
    """The rows that a SELECT reads. `around` is the row around a subquery that may speak of its columns."""
    refuse_our_names(select)
    known_parts(select, _CLAUSES + _LATER)
    if select.args.get("from_") is None:
        raise QueryError("A query without FROM reads no table.", "add FROM and a table", select)
    where = select.args.get("where")
    asked = [] if where is None else list(conjuncts(where.this))
    start, joins, moved = without_brackets(select)
    hints = list(implied([*asked, *moved]))
    repeats = any(each.kind.upper() not in ("SEMI", "ANTI") for each in joins)
    taken: set[str] = set()
    outer = None if around is None else around.scope
    left, first, facts = _side(start, tables, unit, repeats, taken, outer)
    tree = exp.Select().from_(first)
    for join in joins:
        taken |= set(left.scope.sources)
        right, source, more = _side(join.this, tables, unit, repeats, taken, outer)
        if unit.column is None and left.private and right.private:
            raise QueryError(
                "Two private tables cannot be joined where each row is its own unit: a joined row would have two.",
                "protect users, Unit('user:<column>'), and join on that column",
                join,
            )
        after, joint = joined(left, right, source, natural(left, right, join), hints)
        left = shortened(tree, left, right, after, joint)
        tree.append("joins", joint)
        facts = _facts_after(joint, left.scope, facts, more)
    test = None if where is None else where.this
    if around is not None and left.private and (condition := tie(left, around, asked)) is not None:
        tree = tree.where(condition, copy=False)
        left = replace(left, unit=None, private=False, single=False)
        rest = [each.copy() for each in asked if not meets(each, left.scope, around)]
        test = exp.and_(*rest, copy=False) if rest else None
    rows = Reading(left.scope, tree, left.unit, left.private, left.single, tables, unit, left.namers, around, facts)
    rows = rows.named(left.scope)
    if test is None:
        return rows
    asked_of = spelt_out(test, select, left.scope)
    passed = rows.condition(asked_of)
    rows = replace(rows, select=tree.where(passed, copy=False), facts=(*facts, *facts_of(passed, left.scope)))
    return rows.passing(asked_of)


def _constant(node: exp.Expr, beside: Kind) -> Kind:
    """What is known of a constant beside such a column: a text beside a date is one."""
    assert isinstance(node, exp.Expression)
    read = Reader(Scope(), rule)
    return (read.time if beside.temporal else read.read)(node).kind


def _facts_after(joint: exp.Join, scope: Names, left: tuple[Image, ...], right: tuple[Image, ...]) -> tuple[Image, ...]:
    """What holds for all rows of a join: of a side that may be missing nothing is known."""
    if joint.kind in ("SEMI", "ANTI"):
        return left
    one = () if joint.side in ("RIGHT", "FULL") else left
    other = () if joint.side in ("LEFT", "FULL") else right
    on = joint.args.get("on")
    return (*one, *other, *(() if joint.side or on is None else facts_of(on, scope)))


def _side(
    node: exp.Expression,
    tables: Mapping[str, Relation],
    unit: Unit,
    repeats: bool,
    taken: set[str],
    outer: Scope | None,
) -> tuple[Side, exp.Subquery, tuple[Image, ...]]:
    """One table or subquery of FROM, and what holds for all its rows."""
    alias, relation = _source(node, tables, unit, len(taken))
    relation = replace(relation, columns=_pictured(alias, relation, _of_one_row(relation.columns)))
    if alias in taken:
        raise QueryError(f"Two tables are called {alias!r} here.", f"give one another name, such as AS {alias}2", node)
    if repeats and unit.column is None:
        # A join may repeat a row; it must still be known as one.
        relation = replace(with_ids(relation), single=False)
    side = side_of(alias, relation, outer)
    return side, derived(relation.tree, alias), tuple(fact.under(alias) for fact in relation.facts if relation.private)


def _pictured(alias: str, relation: Relation, columns: Mapping[str, Kind]) -> dict[str, Kind]:
    """The columns with their images, each use of a relation being one of its own."""
    if not relation.private:
        return {name: replace(kind, image=of_public(relation.tree, alias, name)) for name, kind in columns.items()}
    return {
        name: kind if kind.image is None else replace(kind, image=kind.image.under(alias))
        for name, kind in columns.items()
    }


def _of_one_row(columns: Mapping[str, Kind]) -> dict[str, Kind]:
    """Each use of a table in FROM has a row of its own, for whoever asks which values of public tables belong
    together."""
    use = object()
    return {name: kind if kind.origin is None else replace(kind, row=(use, kind.row)) for name, kind in columns.items()}


def _source(node: exp.Expression, tables: Mapping[str, Relation], unit: Unit, place: int) -> tuple[str, Relation]:
    from . import rows_of  # a subquery is read as a query is: the two call each other

    given = node.args.get("alias")
    alias = lone_name(given.name, node) if given is not None and given.name else None
    if (rows := listed(node)) is not None:
        return alias or f"list {place + 1}", _renamed(rows, given, node)
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
    words = {"lateral": "LATERAL", "subquery": "A join in brackets"}
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
