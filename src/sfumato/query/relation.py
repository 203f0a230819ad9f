"""Rows on their way to the aggregate: an engine query, its columns, and the unit that each row belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from .kinds import Kind, Typed
from .public_images import Image
from .refusal import QueryError, no_such

UNIT = "_unit"
"""The column that carries the unit through every step. Names that begin with an underscore are ours."""


@dataclass(frozen=True)
class Base:
    """A private table as it is stored.

    rows  where its units are looked up through a key: its rows in the same columns, without units, and rows of nobody
    key   the column that is that key
    """

    rows: exp.Query | None = None
    key: str = ""


@dataclass(frozen=True)
class Relation:
    """Rows of a table, a CTE or a subquery.

    tree     an engine SELECT that gives the visible columns, and UNIT where units are users; it never raises
    columns  the visible columns in order, by lower-case name
    private  does each row belong to one unit? Rows of a public relation belong to nobody
    single   has each unit at most one row?
    base     of a private table of the schema as it stands; None for rows that anything was done to
    facts    conditions on public values that hold for every row
    """

    tree: exp.Query
    columns: Mapping[str, Kind]
    private: bool
    single: bool = False
    base: Base | None = None
    facts: tuple[Image, ...] = ()


def visible(relation: Relation) -> list[str]:
    """The columns that a user sees; flags of unreadable cells are for one function alone."""
    return [name for name in relation.columns if not name.startswith("_")]


@dataclass(frozen=True)
class Scope:
    """What a name means at one place of the query: the columns of each relation in FROM, by alias."""

    sources: Mapping[str, Relation] = field(default_factory=dict)
    aliases: Mapping[str, Typed] = field(default_factory=dict)  # of the SELECT list, where SQL allows them
    special: Callable[[exp.Expression], Typed] | None = None  # aggregates and windows, where they are allowed

    def images(self) -> dict[tuple[str, str], Image | None]:
        """By table and column, as engine trees name them: what is public of it."""
        return {
            (alias, name): kind.image
            for alias, relation in self.sources.items()
            for name, kind in relation.columns.items()
        }

    def column(self, node: exp.Column) -> Typed:
        """The column that a name means. Names are compared without case."""
        name, table = node.name.lower(), node.table.lower()
        if table and table not in self.sources:
            raise no_such("table", table, self.sources, node)
        found = [
            (alias, relation.columns[name])
            for alias, relation in self.sources.items()
            if name in relation.columns and table in ("", alias)
        ]
        if not found and not table and name in self.aliases:
            return self.aliases[name]
        if not found:
            names = dict.fromkeys(each for relation in self.sources.values() for each in visible(relation))
            raise no_such("column", name, names, node)
        if len(found) > 1:
            first = found[0][0]
            raise QueryError(f"Column {name!r} is in several tables.", f"say which, such as {first}.{name}", node)
        alias, kind = found[0]
        return Typed(exp.column(name, table=alias, quoted=True), kind)
