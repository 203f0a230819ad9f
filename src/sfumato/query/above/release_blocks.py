"""A block that releases, read: its groups, its aggregates, and what it asks to be measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlglot import exp

from ...units import Unit
from ..canonical import text_of
from ..kinds import Typed
from ..outermost import is_aggregate, outputs_of
from ..refusal import QueryError
from ..relation import Relation
from ..relations.bases import named, of
from ..relations.reading import Reading, reading
from .above_rules import written

WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
GROUPINGS = (exp.Grouping, exp.GroupingId)
_LATER = ("having", "qualify", "order", "windows")
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True)
class GroupKey:
    """What a release is grouped by: the column of its table, and where it is for looking up, what it is compared with
    above."""

    alias: str
    node: exp.Expression
    typed: Typed
    link: exp.Expression | None = None


@dataclass(frozen=True)
class MeasuredAggregate:
    """An aggregate of a release: the column of its table, and the outputs of the query that it is in."""

    alias: str
    node: exp.Expression
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleasePart:
    """What is measured: a SELECT of groups and aggregates.

    lists  was nothing asked but which groups there are?
    """

    select: exp.Select
    keys: tuple[GroupKey, ...]
    aggregates: tuple[MeasuredAggregate, ...]
    lists: bool = False

    @cached_property
    def text(self) -> str:
        return written(self.select)


@dataclass(frozen=True)
class ReleaseBlock:
    """A block that releases, read.

    keys        what it is grouped by; those for looking up come first
    outputs     the SELECT list by name
    aggregates  by their text
    subqueries  by id: what subqueries over the groups became
    """

    select: exp.Select
    reading: Reading
    keys: tuple[GroupKey, ...]
    outputs: Mapping[str, exp.Expression]
    aggregates: Mapping[str, MeasuredAggregate]
    ctes: tuple[exp.CTE, ...] = ()
    subqueries: dict[int, exp.Query] = field(default_factory=dict)

    def part(self, keys: Sequence[GroupKey]) -> ReleasePart:
        """What is measured, by these groups."""
        measured = tuple(self.aggregates.values()) or (self._units(),)
        columns: list[GroupKey | MeasuredAggregate] = [*keys, *measured]
        shown = [named(column.node, column.alias) for column in columns]
        tree = exp.Select(expressions=shown)
        for name in ("from_", "joins", "where"):
            clause = self.select.args.get(name)
            if clause is not None:
                tree.set(name, [join.copy() for join in clause] if isinstance(clause, list) else clause.copy())
        if keys:
            tree.set("group", exp.Group(expressions=[key.node.copy() for key in keys]))
        if self.ctes:
            tree.set("with_", exp.With(expressions=[cte.copy() for cte in self.ctes]))
        return ReleasePart(tree, tuple(keys), measured, not self.aggregates)

    def _units(self) -> MeasuredAggregate:
        """The numbers of units choose groups, so measuring them takes nothing more; where each row is a unit, rows."""
        for alias, rows in self.reading.scope.sources.items():
            for name, kind in rows.columns.items():
                if kind.unit:
                    counted = exp.Count(this=exp.Distinct(expressions=[of(alias, name)]))
                    return MeasuredAggregate("number of units", counted)
        return MeasuredAggregate("number of rows", exp.Count(this=exp.Star()))


def block(
    select: exp.Select,
    relations: Mapping[str, Relation],
    unit: Unit,
    links: Sequence[tuple[exp.Expression, exp.Expression]] = (),
) -> ReleaseBlock:
    """A block over private rows that aggregates, or lists. `links` are (column, what it is compared with above)."""
    rows = reading(select, relations, unit)
    outputs = outputs_of(select)
    for name in ("laterals", "into"):
        if select.args.get(name):
            raise QueryError(f"{name.upper()} cannot stand here.", "leave it out", select)
    keys: list[GroupKey] = []
    taken: list[str] = []
    for node, link in links:
        own = node.name.lower() if isinstance(node, exp.Column) else "looked up"
        keys.append(GroupKey(_free(own, taken), node, rows.translate(node), link))
    for node in _grouped(select, rows, outputs):
        if any(text_of(key.node) == text_of(node) for key in keys if key.link is None):
            continue
        titles = [name for name, output in outputs.items() if text_of(output) == text_of(node)]
        own = node.name.lower() if isinstance(node, exp.Column) else f"group {len(keys) + 1}"
        name = titles[0] if titles else own
        keys.append(GroupKey(_free(name, taken), node, rows.translate(node)))
    return ReleaseBlock(select, rows, tuple(keys), outputs, _measured(select, outputs, taken))


def _grouped(select: exp.Select, rows: Reading, outputs: Mapping[str, exp.Expression]) -> Iterator[exp.Expression]:
    """What is grouped by, spelt out: of several sets, all that is in any of them."""
    group = select.args.get("group")
    if group is None:
        if not any(is_aggregate(node) for node in outside_windows(select.expressions)):
            yield from outputs.values()  # DISTINCT
        return
    nodes = list(group.expressions)
    if group.args.get("all"):
        nodes = [node for node in outputs.values() if not any(map(is_aggregate, outside_windows([node])))]
    columns = {name for relation in rows.scope.sources.values() for name in relation.columns}
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, (*_SETS, exp.Tuple)):
            nodes[:0] = node.expressions
            continue
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(select.expressions):
                raise QueryError(f"There is no column {node.name} in the SELECT list.", "name the column", node)
            node = select.expressions[place - 1].unalias()
        elif isinstance(node, exp.Column) and not node.table and node.name.lower() not in columns:
            node = outputs.get(node.name.lower(), node)
        if any(map(is_aggregate, outside_windows([node]))) or node.find(exp.Window):
            raise QueryError("A query cannot group by an aggregate.", "group by columns of the tables", node)
        yield node


def _measured(
    select: exp.Select, outputs: Mapping[str, exp.Expression], taken: list[str]
) -> dict[str, MeasuredAggregate]:
    """Every aggregate once, under the name of its output where it is alone there."""
    measured: dict[str, MeasuredAggregate] = {}
    later = [select.args.get(part) for part in _LATER]
    listed: list[tuple[str, Any]] = [*outputs.items(), *(("", clause) for clause in later if clause)]
    for name, clause in listed:
        nodes = clause if isinstance(clause, list) else [clause]
        for node in outside_windows(nodes):
            if not is_aggregate(node) or isinstance(node, GROUPINGS):
                continue
            text = text_of(node)
            alone = bool(name) and isinstance(clause, exp.Expression) and text_of(clause) == text
            before = measured.get(text)
            names = (*(() if before is None else before.names), *([name] if name else []))
            alias = before.alias if before is not None else _free(name if alone else f"a{len(measured) + 1}", taken)
            measured[text] = MeasuredAggregate(alias, node, tuple(dict.fromkeys(names)))
    return measured


def outside_windows(nodes: Iterable[exp.Expression]) -> Iterator[exp.Expression]:
    """The outermost aggregates, and what is none: functions of windows are none, what stands in them is looked at, and
    subqueries are left alone."""
    for node in nodes:
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            function = node.this
            while isinstance(function, WRAPPERS):
                function = function.this
            parts = [value for part, value in node.args.items() if part != "this"]
            yield from outside_windows(_expressions([*function.args.values(), *parts]))
            continue
        yield node
        if not is_aggregate(node):
            yield from outside_windows(_expressions(node.args.values()))


def _expressions(values: Iterable[Any]) -> Iterator[exp.Expression]:
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Expression):
                yield item


def queries_over_groups(select: exp.Select, keys: Sequence[GroupKey] = ()) -> list[exp.Query]:
    """Subqueries in what is done with the groups: SELECT list, HAVING, QUALIFY and ORDER BY, not in aggregates and not
    in what these keys are."""
    queries: list[exp.Query] = []
    grouped = {text_of(key.node) for key in keys}

    def look(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                look(item)
        elif isinstance(node, exp.Query):
            queries.append(node)
        elif grouped and isinstance(node, exp.Expression) and text_of(node) in grouped:
            return
        elif isinstance(node, exp.Expression) and not (is_aggregate(node) and not isinstance(node, GROUPINGS)):
            for value in node.args.values():
                look(value)

    for part in ("expressions", *_LATER):
        look(select.args.get(part))
    return queries


def queries_in_aggregates(select: exp.Select) -> list[exp.Query]:
    """Subqueries that an aggregate is taken of."""
    later = [select.args.get(part) for part in ("expressions", *_LATER)]
    nodes = [item for part in later for item in (part if isinstance(part, list) else [part]) if item is not None]
    aggregates = [node for node in outside_windows(nodes) if is_aggregate(node)]
    return [query for aggregate in aggregates for query in aggregate.find_all(exp.Query)]


def _free(name: str, taken: list[str]) -> str:
    """A name that no other column of the release has."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} {number}", number + 1
    taken.append(free)
    return free
