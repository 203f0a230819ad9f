"""A block that releases, pulled in two: its groups and aggregates below, and all that is done with them above.

    SELECT ward, SUM(cost) / COUNT(*) AS mean FROM visits GROUP BY ward HAVING COUNT(*) > 9

becomes the release `SELECT ward, SUM(cost), COUNT(*) FROM visits GROUP BY ward`, and over its table

    SELECT r.ward AS ward, r.a1 / r.a2 AS mean FROM r WHERE r.a2 > 9

A window function over groups (`RANK() OVER (ORDER BY COUNT(*))`, `SUM(SUM(cost)) OVER ()`) stays above, with the
aggregates in it pulled out. A block without an aggregate is a list of groups: its release counts the units of each,
which is what chooses groups anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ..canonical import text_of
from ..refusal import QueryError
from ..relations.bases import named
from ..relations.naming import changed as with_changes
from .above_rules import AboveError
from .release_blocks import GROUPINGS, WRAPPERS, GroupKey, MeasuredAggregate, ReleaseBlock


def above(block: ReleaseBlock, name: str, swap: Swap | None = None) -> exp.Select:
    """What is done with the released table, as SQL over it. HAVING is a condition on its rows."""
    swap = swap or Swap(block, f"_{name}")
    links = [exp.EQ(this=swap.key(key), expression=key.link.copy()) for key in block.keys if key.link is not None]
    shown = {title: _looked_up(block, swap, node) if links else swap(node) for title, node in block.outputs.items()}
    tree = exp.Select(expressions=[named(node, title) for title, node in shown.items()])
    tree.set("from_", exp.From(this=exp.to_table(f"_{name}", quoted=True)))
    for part in ("distinct", "limit", "offset"):
        if block.select.args.get(part) is not None:
            tree.set(part, block.select.args[part].copy())
    having = block.select.args.get("having")
    tests = links + ([] if having is None else [swap(having.this, aliases=True)])
    for test in tests:
        tree = tree.where(test, copy=False)
    _later(block, tree, swap)
    return tree


def _looked_up(block: ReleaseBlock, swap: Swap, node: exp.Expression) -> exp.Expression:
    """The value of the one row that is looked up; where there is none, what SQL makes of no rows: COUNT is 0."""
    counts = (exp.Count, exp.CountIf)
    if not any(isinstance(measured.node.unnest(), counts) for measured in block.aggregates.values()):
        return swap(node)

    def change(part: exp.Expression) -> exp.Expression:
        if text_of(part) not in block.aggregates:
            return part
        return exp.Literal.number(0) if isinstance(part, counts) else exp.Null()

    return exp.Coalesce(this=exp.AnyValue(this=swap(node)), expressions=[with_changes(node, change)])


def _later(block: ReleaseBlock, tree: exp.Select, swap: Swap) -> None:
    """QUALIFY, WINDOW and ORDER BY, of the block's own words."""
    qualify, order = block.select.args.get("qualify"), block.select.args.get("order")
    if qualify is not None:
        tree.set("qualify", exp.Qualify(this=swap(qualify.this, aliases=True)))
    if block.select.args.get("windows"):
        tree.set("windows", [swap(window) for window in block.select.args["windows"]])
    if order is not None:
        tree.set("order", swap(order, titles=True))


@dataclass(frozen=True)
class Swap:
    """Expressions of a block in terms of the table that it released."""

    block: ReleaseBlock
    table: str
    nulls: frozenset[str] = frozenset()

    def __call__(self, node: exp.Expression, *, aliases: bool = False, titles: bool = False) -> Any:
        """`aliases`: a name of the SELECT list means what stands there. `titles`: it stays, as in ORDER BY."""

        def change(part: exp.Expression) -> exp.Expression:
            if isinstance(part, exp.Query):
                return self._subquery(part)
            text = text_of(part)
            for key in self.block.keys:
                if text == text_of(key.node):
                    return self.key(key)
            if isinstance(part, exp.Window):
                return self._window(part, lambda inner: self(inner, aliases=aliases, titles=titles))
            if text in self.block.aggregates:
                return self.aggregate(self.block.aggregates[text])
            if isinstance(part, GROUPINGS):
                return self.grouping(part)
            if isinstance(part, exp.Column):
                return self._column(part, aliases=aliases, titles=titles)
            return part

        return with_changes(node, change)

    def key(self, key: GroupKey) -> exp.Expression:
        return exp.column(key.alias, table=self.table, quoted=True)

    def aggregate(self, measured: MeasuredAggregate) -> exp.Expression:
        return exp.column(measured.alias, table=self.table, quoted=True)

    def grouping(self, node: exp.Expression) -> exp.Expression:
        raise QueryError("GROUPING tells the sets of ROLLUP, CUBE and GROUPING SETS apart.", "leave it out", node)

    def _window(self, window: exp.Window, swap: Any) -> exp.Expression:
        """A window over groups: its function stays, what stands in it is of the released table."""
        copy = window.copy()
        for part, value in window.args.items():
            if part == "this":
                copy.set(part, self._function(value, swap))
            elif isinstance(value, exp.Expression):
                copy.set(part, swap(value))
            elif isinstance(value, list):
                copy.set(part, [swap(item) if isinstance(item, exp.Expression) else item for item in value])
        return copy

    def _function(self, function: exp.Expression, swap: Any) -> exp.Expression:
        copy = function.copy()
        for part, value in function.args.items():
            if isinstance(function, WRAPPERS) and part == "this":
                copy.set(part, self._function(value, swap))
            elif isinstance(value, exp.Expression):
                copy.set(part, swap(value))
            elif isinstance(value, list):
                copy.set(part, [swap(item) if isinstance(item, exp.Expression) else item for item in value])
        return copy

    def _column(self, node: exp.Column, *, aliases: bool, titles: bool) -> exp.Expression:
        block, name = self.block, node.name.lower()
        columns = {column for rows in block.reading.scope.sources.values() for column in rows.columns}
        if not node.table and name not in columns and name in block.outputs:
            if titles:
                return exp.column(name, quoted=True)
            if aliases:
                return exp.paren(self(block.outputs[name]))
        tree = block.reading.translate(node).tree
        for key in block.keys:
            if key.typed.tree == tree:
                return self.key(key)
        if titles and not node.table and name in block.outputs:
            return exp.column(name, quoted=True)
        raise QueryError(
            f"{node.name} is neither one of the groups nor inside an aggregate.",
            f"add it to GROUP BY, or aggregate it, as in COUNT({node.name})",
            node,
        )

    def _subquery(self, node: exp.Query) -> exp.Expression:
        """What a subquery over the groups became; columns of this block in it are those of the released table."""
        tree = self.block.subqueries.get(id(node))
        if tree is None:
            raise AboveError("A subquery cannot stand here.", "move it into WHERE, or into HAVING", node)
        inner = {source.alias_or_name.lower() for source in tree.find_all(exp.Table, exp.Subquery)}

        def change(part: exp.Expression) -> exp.Expression:
            if not isinstance(part, exp.Column) or part.table.lower() in inner:
                return part
            outer = part.table.lower() in self.block.reading.scope.sources
            return self._column(part, aliases=False, titles=False) if outer else part

        return tree.copy().transform(change)
