"""What a statement mentions: found once of each, as whoever opens, views and writes it asks."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .base import needed
from .statements import StatementItself, in_scope

if TYPE_CHECKING:
    import sqlglot

ONCE = "sfumato-once"
"""Marks a SELECT DISTINCT whose rows are different wherever those of a column are, with the table and the column."""
Columns = frozenset[tuple[str, str]]


class Mentions(NamedTuple):
    """Of a statement.

    names   all names in it, in lower case, whatever they are names of; None where it may mean columns that it does not
            name: by a star over a table, a NATURAL join, or a table's name as one value
    tables  what it calls tables
    once    the tables and columns of its marks
    """

    names: frozenset[str] | None
    tables: frozenset[str]
    once: Columns


def mentions(tree: sqlglot.exp.Query, kept: Collection[str] = ()) -> Mentions:
    """Of a statement; a star over `kept` tables means no column of others."""
    return _mentions(StatementItself(tree), tuple(kept))


@lru_cache(maxsize=64)
def _mentions(statement: StatementItself, kept: tuple[str, ...]) -> Mentions:
    exp, spelt_out = needed("sqlglot").exp, True
    names, tables, aliases, bare, once = set(), set(), set(), set(), set()
    for node in statement.tree.walk():
        if isinstance(node, exp.Identifier | exp.Var):
            names.add(node.name.lower())
        elif isinstance(node, exp.Column) and not node.table:
            bare.add(node.name.lower())
        elif isinstance(node, exp.Table | exp.Subquery | exp.CTE):
            aliases.add(node.alias_or_name.lower())
            if isinstance(node, exp.Table):
                tables.add(node.name)
        elif isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            spelt_out = spelt_out and _is_spelt_out(node, kept, exp)
        elif isinstance(node, exp.Join) and node.method:
            spelt_out = False
        elif isinstance(node, exp.Select) and ONCE in node.meta:
            once.add(node.meta[ONCE])
    known = frozenset(names) if spelt_out and not bare & aliases else None
    return Mentions(known, frozenset(tables), frozenset(once))


def _is_spelt_out(star: Any, kept: tuple[str, ...], exp: Any) -> bool:
    """Does the star stand over subqueries and CTEs alone, whose columns are named there?"""
    select = star.find_ancestor(exp.Select)
    first = select and (select.args.get("from_") or select.args.get("from"))
    if not first:
        return False
    sources = [first.this, *(join.this for join in select.args.get("joins") or [])]
    return all(isinstance(source, exp.Subquery) or _is_read_once_more(source, kept, exp) for source in sources)


def _is_read_once_more(source: Any, kept: tuple[str, ...], exp: Any) -> bool:
    """A kept table or a CTE."""
    return isinstance(source, exp.Table) and (source.name in kept or source.name.lower() in in_scope(source, exp))
