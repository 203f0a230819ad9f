"""Which parts of a query are releases, and what is done with these: one walk over the query's blocks.

A block is one SELECT. By what it reads it is

    rows     it reads private tables and keeps every row with its unit: what `relations/` compiles, untouched here
    release  it reads private tables and lets units meet: aggregates, or DISTINCT, without the unit among the groups.
             Its groups and aggregates are measured with noise, by a plan of their own (`Sql`); the rest of the block
             (SELECT list, HAVING, QUALIFY, ORDER BY, LIMIT) becomes SQL over the released table
    public   it reads public tables only
    above    it reads released tables, and public ones beside them

Why this is private. Every release is a plan of its own, differentially private given its text; texts are fixed before
anything runs. What is above reads released tables and public ones and nothing else: a name of a private table cannot
stand there, since every block that reads one is rows or a release, rows are refused above, and a release leaves
nothing but the name of its own table. So the whole is post-processing of the composition of the releases. A block that
reads private rows together with something released is no post-processing: `StageNeededError` says so, and `staging.py`
makes a stage of what was released, which the block then reads as a public table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sqlglot import exp

from ...schema import Schema, Table
from ...sources.mentions import mentions
from ...units import Unit
from ..expressions.functions.cells import asked as flagged_columns
from ..keys import keys_of
from ..outermost import is_aggregate
from ..refusal import QueryError, no_such
from ..relation import Relation
from ..relations.bases import base_tables, lone_name
from ..relations.naming import refuse_our_names
from ..relations.rows_of import relation, renamed
from . import grouping_sets, lookups, pulling, release_blocks, tying
from .above_rules import AboveError
from .release_blocks import ReleasePart
from .stage_needed import StageNeededError

Status = Literal["rows", "public", "above"]


@dataclass(frozen=True)
class BlockNames:
    """What names in FROM mean.

    relations  tables and CTEs below releases, and public ones, as the compiler knows them
    below      the CTEs among them, by name, in order: a release that names one brings it along
    above      CTEs that read released tables, with what they became
    """

    relations: Mapping[str, Relation]
    below: Mapping[str, exp.CTE] = field(default_factory=dict)
    above: Mapping[str, exp.CTE] = field(default_factory=dict)


@dataclass(frozen=True)
class SurroundingBlock:
    """The block around a subquery that stands in an expression.

    rows  are its rows private?
    """

    select: exp.Select
    rows: bool = False


@dataclass
class QuerySplit:
    """A query taken apart: its releases by name, and what is above them, once the walk is over. `released` are the
    tables of earlier stages, which are public to it."""

    schema: Schema
    unit: Unit
    keys: Mapping[str, Any]
    releases: dict[str, ReleasePart] = field(default_factory=dict)
    released: Mapping[str, Table] = field(default_factory=dict)
    nested: bool = False
    """Is there a release in another place than the outermost SELECT?"""
    tree: exp.Query | None = None
    _depth: int = 0

    def walk(self, tree: exp.Query) -> Status:
        """Take the whole query apart."""
        refuse_our_names(tree)
        self.nested = not isinstance(tree, exp.Select)
        before = dict(self.releases)
        try:
            return self._walked(tree, mentions(tree).names)
        except StageNeededError:
            raise
        except QueryError:  # which may name tables and columns that the query does not
            self.releases = before
            return self._walked(tree, None)

    def _walked(self, tree: exp.Query, names: Collection[str] | None) -> Status:
        tables = base_tables(self.schema, self.unit, flagged_columns(tree), self.released, names=names)
        status, self.tree = self.query(tree.copy(), BlockNames(tables))
        return status

    def query(
        self, tree: exp.Query, names: BlockNames, around: SurroundingBlock | None = None
    ) -> tuple[Status, exp.Query]:
        """A query and what became of it. One that stands in an expression may speak of columns `around` it."""
        self._depth += 1
        try:
            return self._changed(tree, names, around)
        finally:
            self._depth -= 1

    def _changed(self, tree: exp.Query, names: BlockNames, around: SurroundingBlock | None) -> tuple[Status, exp.Query]:
        names, ctes = self._ctes(tree, names)
        status, changed = self._body(tree, names, around)
        if status == "rows":
            return status, tree
        changed.set("with_", exp.With(expressions=ctes) if ctes else None)
        return status, changed

    def _body(self, tree: exp.Query, names: BlockNames, around: SurroundingBlock | None) -> tuple[Status, exp.Query]:
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
            status, body = self.query(tree.this, names, around)
            changed = tree.copy()
            changed.set("this", body)
            return status, changed
        if isinstance(tree, exp.SetOperation):
            return self._stacked(tree, names)
        if isinstance(tree, exp.Select):
            return self._select(tree, names, around)
        raise QueryError(f"{tree.key.upper()} is not a SELECT.", "write a SELECT over the schema's tables", tree)

    def _ctes(self, tree: exp.Query, names: BlockNames) -> tuple[BlockNames, list[exp.CTE]]:
        """What the query may name after its WITH, and the CTEs that stay above releases."""
        clause = tree.args.get("with_")
        if clause is None:
            return names, []
        if clause.args.get("recursive"):
            raise AboveError(
                "A recursive WITH repeats a step until the data stops it.", "write the steps out as plain CTEs", clause
            )
        stay: list[exp.CTE] = []
        for cte in clause.expressions:
            if not isinstance(cte.this, exp.Query):
                raise QueryError("A CTE is a SELECT.", "write WITH name AS (SELECT ...)", cte)
            status, body = self.query(cte.this, names)
            name = lone_name(cte.alias, cte)
            if status == "above":
                hidden = {other: rows for other, rows in names.relations.items() if other != name}
                below = {other: old for other, old in names.below.items() if other != name}
                changed_cte = cte.copy()
                changed_cte.set("this", body)
                names = BlockNames(hidden, below, {**names.above, name: changed_cte})
            else:
                rows = relation(cte.this, names.relations, self.unit)
                if columns := cte.args["alias"].args.get("columns"):
                    rows = renamed(rows, [lone_name(column.name, cte) for column in columns], cte)
                relations = {**names.relations, name: rows}
                rest = {other: made for other, made in names.above.items() if other != name}
                names = BlockNames(relations, {**names.below, name: cte}, rest)
            if status != "rows":
                changed = cte.copy()
                changed.set("this", body)
                stay.append(changed)
        return names, stay

    def _stacked(self, tree: exp.SetOperation, names: BlockNames) -> tuple[Status, exp.Query]:
        first, one = self.query(tree.this, names)
        second, two = self.query(tree.expression, names)
        if "rows" in (first, second):
            if "public" in (first, second):
                raise AboveError(
                    f"{tree.key.upper()} of private and public rows: the public ones would belong to nobody.",
                    "unite tables of one sort; join a public table instead",
                    tree.expression,
                )
            if first != second:
                self._refuse_mixing(tree)
            return "rows", tree
        changed = tree.copy()
        changed.set("this", one)
        changed.set("expression", two)
        return ("public" if first == second == "public" else "above"), changed

    def _select(
        self, select: exp.Select, names: BlockNames, around: SurroundingBlock | None
    ) -> tuple[Status, exp.Query]:
        sources = sources_of(select)
        read = [self.source(source, names) for source in sources]
        statuses = {status for status, _ in read}
        if "rows" in statuses:
            if "above" in statuses:
                at = [status for status, _ in read].index("above")
                raise self._stage(sources[at], read[at][1], names)
            return self._private(select, names, around)
        changed = select.copy()
        for place, (_, source) in zip(sources_of(changed), read, strict=True):
            place.replace(source)
        beside = self._expressions(changed, names, SurroundingBlock(select))
        return ("above" if "above" in statuses | beside else "public"), changed

    def source(self, node: exp.Expression, names: BlockNames) -> tuple[Status, exp.Expression]:
        """What FROM reads, and what stands there above releases."""
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name.lower()
            if name in names.above:
                return "above", node.copy()
            if node.args.get("db") or name not in names.relations:
                shown = ".".join(part.name for part in node.parts)
                raise no_such("table", shown, [*names.relations, *names.above], node)
            return ("rows" if names.relations[name].private else "public"), node.copy()
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            status, body = self.query(node.this, names)
            changed = node.copy()
            changed.set("this", body)
            return status, changed
        return "public", node.copy()  # the list of what may stand above (permitted.py) has the last word

    def _expressions(self, select: exp.Select, names: BlockNames, around: SurroundingBlock) -> set[Status]:
        """Subqueries in the expressions of a block above, changed in their places; what they read."""
        statuses: set[Status] = set()
        for node in queries_in(select):
            status, body = self.query(node, names, around)
            if status == "rows":
                raise AboveError(
                    "A subquery over private rows that aggregates nothing would show rows.",
                    "aggregate in it: (SELECT COUNT(*) FROM ...), or SELECT DISTINCT a column for a list of groups",
                    node,
                )
            statuses.add(status)
            node.replace(body)
        return statuses

    def _private(
        self, select: exp.Select, names: BlockNames, around: SurroundingBlock | None
    ) -> tuple[Status, exp.Query]:
        """A block over private rows: per unit, or a release."""
        links: tuple[lookups.Link, ...] = ()
        plain = select
        if around is not None:
            plain, links = lookups.apart(select, names.relations, self.unit)
        if plain.args.get("with_") is not None:  # its CTEs are among the names by now
            plain = plain.copy()
            plain.set("with_", None)
        distinct = plain.args.get("distinct")
        if not _aggregates(plain) and (distinct is None or distinct.args.get("on") is not None):
            return self._rows(select, names, around)
        try:
            block = release_blocks.block(plain, names.relations, self.unit, links)
        except QueryError:
            self._refuse_releases_in(plain, names)
            raise
        grouped = [key.typed.kind for key in block.keys if key.link is None]
        if any(key.typed.kind.unit for key in block.keys) or any(kind.within_unit for kind in grouped):
            return self._rows(select, names, around)
        if around is not None and around.rows and any(key.link and key.typed.kind.within_unit for key in block.keys):
            return "rows", select  # of the unit around it
        if (parts := self._tied(plain, block, around, names)) is not None:
            plain, links = parts
            block = release_blocks.block(plain, names.relations, self.unit, links)
        self._refuse_releases_in(plain, names, within_aggregates=True)
        self.nested = self.nested or self._depth > 1
        block = replace(block, ctes=tuple(self._needed(plain, names)))
        block.subqueries.update(self._over_groups(block, names))
        sets = grouping_sets.sets_of(plain)
        if sets is not None:
            tree = grouping_sets.pulled(block, sets, self.keys, self._release)
        else:
            tree = pulling.above(block, self._release(block.part(block.keys)))
        return "above", tree

    def _rows(self, select: exp.Select, names: BlockNames, around: SurroundingBlock | None) -> tuple[Status, exp.Query]:
        """A block that keeps rows with their units. Where it is not read as it stands, is that for what it compares its
        rows with?"""
        try:
            relation(select, names.relations, self.unit)
        except QueryError:
            self._refuse_releases_in(select, names, per_unit=True)
        return "rows", select

    def _tied(
        self, select: exp.Select, block: release_blocks.ReleaseBlock, around: SurroundingBlock | None, names: BlockNames
    ) -> tuple[exp.Select, tuple[lookups.Link, ...]] | None:
        """The block with the keys that can be looked up in it, where nothing else says which groups it has."""
        links = [(key.node, key.link) for key in block.keys if key.link is not None]
        if around is None or not links:
            return None
        looked_up = [key for key in block.keys if key.link is not None]
        if any(key.alias in self.keys for key in looked_up):
            return None
        if all(key.known for key in keys_of({key.alias: key.typed for key in looked_up}, {})):
            return None
        return tying.tied(select, links, around.select, names.relations, self.unit)

    def _refuse_releases_in(
        self, select: exp.Select, names: BlockNames, *, per_unit: bool = False, within_aggregates: bool = False
    ) -> None:
        """Is a row compared with what all rows come to? Asked of a block that the compiler refused; and of what stands
        in the aggregates of one that it took, since it does not look there. Of a block per unit all is asked."""
        above = [] if per_unit else [id(node) for node in release_blocks.queries_over_groups(select)]
        where = None if not within_aggregates else {id(node) for node in release_blocks.queries_in_aggregates(select)}
        releases = dict(self.releases)
        for node in queries_in(select):
            if id(node) in above or (where is not None and id(node) not in where):
                continue
            try:
                status, body = self.query(node, names, SurroundingBlock(select, rows=True))
                if status == "above":
                    raise self._stage(node, body, names)
            except StageNeededError:
                raise
            except QueryError:
                continue
            finally:
                self.releases = dict(releases)

    def _over_groups(self, block: release_blocks.ReleaseBlock, names: BlockNames) -> dict[int, exp.Query]:
        """Subqueries that a release's SELECT list, HAVING, QUALIFY and ORDER BY compare released numbers with."""
        changed: dict[int, exp.Query] = {}
        for node in release_blocks.queries_over_groups(block.select, block.keys):
            status, body = self.query(node, names, SurroundingBlock(block.select))
            if status == "rows":
                raise AboveError(
                    "HAVING compares released numbers, and this subquery would show rows.",
                    "aggregate in it: (SELECT AVG(x) FROM ...)",
                    node,
                )
            changed[id(node)] = body
        return changed

    def _needed(self, select: exp.Select, names: BlockNames) -> Iterator[exp.CTE]:
        """The CTEs that a block names, with those that they name, in order."""
        wanted: set[str] = set()
        queue = [select]
        while queue:
            for table in queue.pop().find_all(exp.Table):
                name = table.name.lower()
                if name in names.below and name not in wanted:
                    wanted.add(name)
                    queue.append(names.below[name].this)
        yield from (cte for name, cte in names.below.items() if name in wanted)

    def _release(self, release: ReleasePart) -> str:
        """The name of the table that a release leaves. The same release is made once."""
        for name, other in self.releases.items():
            if other.text == release.text:
                return name
        name = f"release_{len(self.releases) + 1}"
        self.releases[name] = release
        return name

    def _stage(self, node: exp.Expr, tree: exp.Expr, names: BlockNames) -> StageNeededError:
        """What is to be released first; the caller raises it."""
        tree = inlined(tree, names.above)
        body = tree if isinstance(tree, exp.Query) else exp.Select(expressions=[exp.Star()]).from_(tree)
        read = {table.name for table in body.find_all(exp.Table)}
        return StageNeededError(
            "Rows are compared with what the rows of all units come to: a row would depend on other units."
            if isinstance(node, exp.Query) and not isinstance(node.parent, exp.From | exp.Join)
            else "This reads private rows together with a released table: what a row counts for would depend on other "
            "units through it.",
            node,
            body,
            {name: release for name, release in self.releases.items() if f"_{name}" in read},
        )

    def _refuse_mixing(self, node: exp.Expression) -> None:
        raise AboveError(
            "This reads private rows together with a released table: what a row counts for would depend on other units "
            "through it.",
            "release first, and write the released numbers into a second query; or aggregate the private rows, too, "
            "and join the two released tables",
            node,
        )


def sources_of(select: exp.Select) -> list[exp.Expression]:
    """What stands in FROM and JOIN, also within brackets around joins."""
    first = select.args.get("from_")
    places = ([] if first is None else [first.this]) + [join.this for join in select.args.get("joins") or []]
    return [source for place in places for source in _within_brackets(place)]


def _within_brackets(node: exp.Expression) -> Iterator[exp.Expression]:
    bracketed = isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Select | exp.SetOperation)
    if bracketed and isinstance(node.this, exp.Table | exp.Subquery):
        yield from _within_brackets(node.this)
    else:
        yield node
    for join in node.args.get("joins") or []:
        yield from _within_brackets(join.this)


def queries_in(select: exp.Select) -> list[exp.Query]:
    """Subqueries in expressions, not looking into them; what FROM reads is none."""
    sources = {id(source) for source in sources_of(select)}
    queries: list[exp.Query] = []

    def look(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                look(item)
        elif id(node) in sources:
            return
        elif isinstance(node, exp.Query):
            queries.append(node)
        elif isinstance(node, exp.Expression):
            for value in node.args.values():
                look(value)

    for part, value in select.args.items():
        if part != "with_":
            look(value)
    return queries


def inlined(tree: exp.Expr, ctes: Mapping[str, exp.CTE]) -> exp.Expression:
    """Where a CTE is named that reads released tables, what it says."""

    def change(node: exp.Expression) -> exp.Expression:
        cte = ctes.get(node.name.lower()) if isinstance(node, exp.Table) and not node.args.get("db") else None
        if cte is None:
            return node
        alias = node.args.get("alias") or cte.args["alias"]
        if not alias.args.get("columns"):
            alias = exp.TableAlias(this=alias.this.copy(), columns=cte.args["alias"].args.get("columns"))
        return exp.Subquery(
            this=inlined(cte.this, {name: made for name, made in ctes.items() if made is not cte}), alias=alias.copy()
        )

    return tree.copy().transform(change)


def _aggregates(select: exp.Select) -> bool:
    """Do rows meet in this block?"""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(is_aggregate(node) for node in release_blocks.outside_windows(select.expressions))
