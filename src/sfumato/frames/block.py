"""One SELECT of a frame, as somebody would write it: steps go into it while SQL would do them in the same order.

A step that SQL does earlier than what stands there already begins a new SELECT around it (`wrapped`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from .terms import (
    AGGREGATE,
    PENDING,
    STORED,
    Term,
    bare_columns,
    column_of,
    identifier,
    known_name,
    pending_in,
    settled,
)

PART = "part"


@dataclass(frozen=True)
class SelectBlock:
    """A SELECT over one table, one subquery, or several of them joined.

    source    a table or a subquery, with its name
    columns   what it gives, by name, in terms of its sources
    stored    the names of the source's own columns, where it is the only one: all of them are `*`
    public    does it read public tables alone?
    group     what it is grouped by: () where all rows are one group, None where rows stay rows
    of_units  is each group one unit's, so that it is no release but a step on the way to one?
    avoided   names that subqueries shall not have: those of the schema
    """

    source: exp.Expr
    columns: Mapping[str, Term]
    stored: tuple[str, ...]
    public: bool
    joins: tuple[exp.Join, ...] = ()
    where: tuple[exp.Expr, ...] = ()
    qualify: exp.Expr | None = None
    group: tuple[exp.Expr, ...] | None = None
    having: tuple[exp.Expr, ...] = ()
    order: tuple[exp.Ordered, ...] = ()
    limit: int | None = None
    distinct: bool = False
    of_units: bool = False
    avoided: frozenset[str] = field(default=frozenset(), repr=False)

    def column(self, name: str) -> Term:
        term = self.columns[known_name(name, self.columns)]
        if term.tree.find(exp.Column) is not None or self.grouped:
            return term
        stored = exp.Paren(this=term.tree.copy())  # a value that every row has, and no value that stands alone
        stored.meta[STORED] = True
        return replace(term, tree=stored)

    @property
    def grouped(self) -> bool:
        return self.group is not None

    @property
    def names(self) -> frozenset[str]:
        """Of its tables, in lower case."""
        joined = (join.this.alias_or_name for join in self.joins)
        return frozenset(name.lower() for name in (self.source.alias_or_name, *joined))

    @property
    def windowed(self) -> bool:
        """Does it look at other rows of the same SELECT, which WHERE would take away from it?"""
        return self.qualify is not None or any(has_window(term.tree) for term in self.columns.values())

    @property
    def open(self) -> bool:
        """May windows stand beside its columns?"""
        return not (self.grouped or self.distinct or self.qualify is not None or self.limit is not None)

    @property
    def plain(self) -> bool:
        """Are its rows still those of its sources, so that WHERE, joins and GROUP BY may follow in the same SELECT?"""
        return self.open and not self.windowed

    @property
    def bare(self) -> bool:
        """Is it a table as it stands?"""
        nothing = self.plain and not (self.joins or self.where or self.order)
        return nothing and isinstance(self.source, exp.Table) and self.whole and len(self.columns) == len(self.stored)

    @property
    def whole(self) -> bool:
        """Does it begin with all columns of its only source, as they are?"""
        names, table = list(self.columns)[: len(self.stored)], self.source.alias_or_name
        return not self.joins and names == list(self.stored) and all(self._stays(name, table) for name in names)

    def _stays(self, name: str, table: str) -> bool:
        tree = self.columns[name].tree
        return isinstance(tree, exp.Column) and tree.name == name and tree.table == table

    def plainly(self) -> SelectBlock:
        """The same rows, for a step that reads rows."""
        return replace(self, order=()) if self.plain else self.wrapped()

    def inner(self) -> exp.Select:
        """Its text as a subquery."""
        if not self.grouped or not (self.of_units or self.public):
            return self.select()
        columns = {name: replace(term, tree=settled(term.tree)) for name, term in self.columns.items()}
        return replace(self, columns=columns, having=tuple(map(settled, self.having))).select()

    def wrapped(self, avoid: Collection[str] = ()) -> SelectBlock:
        """A SELECT around it."""
        block = self if self.limit is not None else replace(self, order=())
        name = free_name(PART, {*self.avoided, *avoid})
        source = exp.Subquery(this=block.inner(), alias=exp.TableAlias(this=identifier(name)))
        columns = {own: replace(term, tree=column_of(own, name)) for own, term in self.columns.items()}
        return SelectBlock(source, columns, tuple(columns), self.public, avoided=self.avoided)

    def select(self) -> exp.Select:
        """Its tree. With one table, columns are named alone."""
        bare = not self.joins

        def own(tree: exp.Expr) -> exp.Expr:
            tree = tree.copy()
            for node in tree.find_all(exp.Column) if bare else ():
                node.set("table", None)
            return tree

        select = exp.Select(expressions=self._listed(own), from_=exp.From(this=self.source.copy()))
        if self.joins:
            select.set("joins", [join.copy() for join in self.joins])
        for part, node, tests in (("where", exp.Where, self.where), ("having", exp.Having, self.having)):
            if tests:
                select.set(part, node(this=conjunction([own(test) for test in tests])))
        if self.qualify is not None:
            select.set("qualify", exp.Qualify(this=own(self.qualify)))
        if self.group:
            select.set("group", exp.Group(expressions=[own(key) for key in self.group]))
        if self.order:
            select.set("order", exp.Order(expressions=[own(key) for key in self.order]))
        if self.limit is not None:
            select.set("limit", exp.Limit(expression=exp.Literal.number(self.limit)))
        if self.distinct:
            select.set("distinct", exp.Distinct())
        return select

    def _listed(self, own: Callable[[exp.Expr], exp.Expr]) -> list[exp.Expr]:
        star = not self.grouped and not self.distinct and self.whole and bool(self.stored)
        listed: list[exp.Expr] = [exp.Star()] if star else []
        for name, term in list(self.columns.items())[len(self.stored) if star else 0 :]:
            tree = own(term.tree)
            alone = isinstance(tree, exp.Column) and tree.name == name
            listed.append(tree if alone else exp.Alias(this=tree, alias=identifier(name)))
        return listed


def conjunction(tests: list[exp.Expr]) -> exp.Expr:
    """All of them, by AND."""
    first, *others = [exp.Paren(this=test) if isinstance(test, exp.Or) else test for test in tests]
    for other in others:
        first = exp.And(this=first, expression=other)
    return first


def has_window(tree: exp.Expr) -> bool:
    return tree.find(exp.Window) is not None


def stacked_windows(tree: exp.Expr) -> bool:
    """Is there a window, or an aggregate, of a window?"""
    outer = [*tree.find_all(exp.Window), *pending_in(tree)]
    return any(part is not node and isinstance(part, exp.Window) for node in outer for part in node.walk())


def aggregates_alone(tree: exp.Expr) -> bool:
    """Is it made of aggregates and of values that stand in the query?"""
    manners = {node.meta[PENDING] for node in pending_in(tree)}
    return manners == {AGGREGATE} and not bare_columns(tree) and not has_window(tree)


def free_name(name: str, taken: Collection[str]) -> str:
    number, free = 2, name
    while free.lower() in taken:
        free, number = f"{name}_{number}", number + 1
    return free
