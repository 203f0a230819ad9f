"""Values that can occur, from what is public alone: an expression over rows, asked of public tables and schemas
instead.

A column of a public table has as values what the table holds; a private column may have public values too, those that
the schema lists. An expression over such columns has an image: the same expression over *uses* of these lists, one for
each time that a table stands in FROM. A condition that every row passes and that has an image is a fact: rows that fail
it do not occur. So the groups of an answer lie among the images of its keys, over all rows of the uses for which the
facts hold (`candidates.py`); no private row is read for it.

Why no group is lost: take a row that counts. Each of its public columns stands in a row of the table, or is NULL where
an outer join found none (`missing`); each listed column has a listed value, or NULL. The engine computes the expression
of these the same way in both statements. The row passed WHERE and the conditions of inner joins, so it passed each part
of an AND, and of an OR one branch. Were it otherwise, only groups would be missing: what is listed depends on nothing
private.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from .kinds import Kind
    from .relation import Scope

TABLE = "sfumato-table"  # where a table in an engine tree keeps the name that the schema has for it
RELEASED = (
    "sfumato-released"  # marks tables that an earlier stage released: these say nothing of which groups there are
)
_OTHER_ROWS = (exp.Query, exp.Exists, exp.Window, exp.AggFunc)  # these are no functions of one row


@dataclass(frozen=True)
class PublicRows:
    """Public rows, once.

    tree     of a public relation in FROM
    listed   else of a private column, whose values the schema lists: its kind
    missing  may an outer join have found no row?
    """

    tree: exp.Query | None = None
    listed: Kind | None = None
    missing: bool = False

    @property
    def tables(self) -> frozenset[str]:
        """The public tables that its rows come from, as the schema calls them."""
        return frozenset(each.meta[TABLE] for each in (self.tree.find_all(exp.Table) if self.tree is not None else ()))


@dataclass(frozen=True)
class Image:
    """An expression whose columns are named after the uses that they are of."""

    tree: exp.Expression
    uses: Mapping[str, PublicRows]

    def under(self, alias: str) -> Image:
        """The same within a relation that is called so in FROM."""
        tree = self.tree.copy()
        for column in [tree] if isinstance(tree, exp.Column) else tree.find_all(exp.Column):
            column.set("table", exp.to_identifier(f"{alias}/{column.table}", quoted=True))
        return Image(tree, {f"{alias}/{name}": use for name, use in self.uses.items()})

    def missing(self) -> Image:
        """The same where an outer join may have found no row."""
        return replace(self, uses={name: replace(use, missing=True) for name, use in self.uses.items()})

    @property
    def equates(self) -> bool:
        """Is it a condition that a = b?"""
        return isinstance(self.tree, exp.EQ)


def of_public(tree: exp.Query, alias: str, name: str) -> Image | None:
    """A column of a public relation in FROM; nothing of rows that hang on what an earlier stage released."""
    if any(table.meta.get(RELEASED) for table in tree.find_all(exp.Table)):
        return None
    return Image(exp.column(name, table=alias, quoted=True), {alias: PublicRows(tree)})


def of_listed(name: str, kind: Kind) -> Image:
    """A column of a private table whose values the schema lists."""
    return Image(exp.column(name, table=f"#{name}", quoted=True), {f"#{name}": PublicRows(listed=kind)})


def image_of(tree: exp.Expression, scope: Scope) -> Image | None:
    """The image of an expression over the rows of this scope, where it has one."""
    if any(isinstance(node, _OTHER_ROWS) for node in tree.walk()):
        return None
    images = scope.images()
    uses: dict[str, PublicRows] = {}
    around = exp.Paren(this=tree.copy())
    for column in list(around.find_all(exp.Column)):
        image = images.get((column.table, column.name))
        if image is None:
            return None
        uses |= image.uses
        column.replace(image.tree.copy())
    return Image(around.this.pop(), uses) if uses else None


def facts_of(condition: exp.Expression, scope: Scope) -> Iterator[Image]:
    """What the condition implies of public values."""
    for part in _parts(condition, exp.And):
        image = image_of(part, scope)
        if image is None and isinstance(part, exp.Or):
            image = _either(part, scope)
        if image is not None:
            yield image


def _either(condition: exp.Expression, scope: Scope) -> Image | None:
    """One of the branches holds, so one of what they imply does; nothing, where a branch implies nothing."""
    branches: list[exp.Expression] = []
    uses: dict[str, PublicRows] = {}
    for part in _parts(condition, exp.Or):
        implied = list(facts_of(part, scope))
        if not implied:
            return None
        branches.append(_chained(exp.And, [fact.tree for fact in implied]))
        for fact in implied:
            uses |= fact.uses
    return Image(_chained(exp.Or, branches), uses)


def _chained(kind: type[exp.And] | type[exp.Or], parts: list[exp.Expression]) -> exp.Expression:
    tree: exp.Expression = exp.Paren(this=parts[0].copy())
    for part in parts[1:]:
        tree = kind(this=tree, expression=exp.Paren(this=part.copy()))
    return tree


def _parts(node: exp.Expression, kind: type[exp.Connector]) -> Iterator[exp.Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, kind):
        yield from _parts(node.this, kind)
        yield from _parts(node.expression, kind)
    else:
        yield node
