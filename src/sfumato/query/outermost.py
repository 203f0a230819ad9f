"""The outermost SELECT: groups, aggregates, and what is done with them after they are released."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sqlglot import exp

from .. import times
from . import aggregates
from .aggregates import Aggregate, Argument, Interval
from .canonical import text_of
from .expressions import distinct_pairs
from .kinds import Kind, Typed
from .measures import stored_text
from .other_ways import counting, once_per_unit, per_unit_first, with_where
from .refusal import QueryError, typed_name
from .relation import Scope
from .relations.bases import steady
from .relations.joins import units_in
from .relations.reading import Reading

_HISTOGRAM = "HISTOGRAM"
_PAIRED: dict[type[exp.Expression], str] = {exp.CovarSamp: "sample", exp.CovarPop: "population", exp.Corr: "corr"}
_KNOWN = (
    "COUNT, COUNT(DISTINCT), COUNT_IF, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE, HISTOGRAM, COVAR_POP, "
    "COVAR_SAMP, CORR"
)


@dataclass(frozen=True)
class Outermost:
    """A query taken apart.

    keys        what it groups by, by name
    aggregates  by their text
    outputs     (name, expression over keys and aggregates)
    """

    reading: Reading
    keys: Mapping[str, Typed]
    aggregates: Mapping[str, Aggregate]
    outputs: tuple[tuple[str, exp.Expression], ...]
    select: exp.Select
    named: Mapping[str, str]
    """By the text of a key's expression: its name."""
    aliases: Mapping[str, tuple[str, ...]]
    """By name of an output, in lower case: the texts of its aggregates."""

    def name_of(self, node: exp.Expression) -> str | None:
        """The aggregate or the key that a part of the query is."""
        if (name := self._names.get(id(node), "")) != "":
            return name
        text = text_of(node)
        name = text if text in self.aggregates else self.named.get(text)
        if id(node) in self._nodes:
            self._names[id(node)] = name
        return name

    @cached_property
    def _names(self) -> dict[int, str | None]:
        return {}

    @cached_property
    def _nodes(self) -> frozenset[int]:
        """The parts of the query: they live as long as it does, so that no other node is taken for one of them."""
        roots = [*(node for _, node in self.outputs), *_later(self.select)]
        return frozenset(id(node) for root in roots for node in root.walk())


@dataclass
class _Taking:
    """One pass over the outermost SELECT."""

    reading: Reading
    bounds: Mapping[str, Interval]
    noise: str
    keys: dict[str, Typed] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    found: dict[str, Aggregate] = field(default_factory=dict)
    summed: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)  # bounds that were asked for

    @property
    def scope(self) -> Scope:
        return self.reading.scope

    def groups(self, select: exp.Select, outputs: Mapping[str, exp.Expression]) -> None:
        group = select.args.get("group")
        if group is None:
            return
        several = any(isinstance(each, exp.Rollup | exp.Cube | exp.GroupingSets) for each in group.expressions)
        if several or any(group.args.get(each) for each in ("rollup", "cube", "grouping_sets", "totals")):
            raise QueryError(
                "ROLLUP, CUBE and GROUPING SETS ask several questions at once.", "ask one query each", group
            )
        asked = list(group.expressions)
        if group.args.get("all"):
            asked = [each for each in outputs.values() if not list(_aggregates(each))]
        for node in asked:
            meant = self._meant(node, select, outputs)
            if list(_aggregates(meant)):
                raise QueryError("A query cannot group by an aggregate.", "group by columns of the tables", node)
            typed = self.reading.translate(meant)
            if typed.kind.within_unit:
                raise QueryError(
                    "Each group would be one unit, so the answer would be about single units."
                    if typed.kind.unit
                    else "Each group would hold rows of one unit, so the answer would be about single units.",
                    f"aggregate over many units: {per_unit_first(select)}",
                    node,
                    query=per_unit_first(select),
                )
            name = next((name for name, each in outputs.items() if text_of(each) == text_of(meant)), None)
            name = name or (meant.name.lower() if isinstance(meant, exp.Column) else f"group {len(self.keys) + 1}")
            self.keys[name] = typed
            self.named[text_of(meant)] = name

    def _meant(self, node: exp.Expression, select: exp.Select, outputs: Mapping[str, exp.Expression]) -> exp.Expression:
        """GROUP BY may name a position or an alias of the SELECT list."""
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(select.expressions):
                raise QueryError(f"There is no column {node.name} in the SELECT list.", "name the column", node)
            return select.expressions[place - 1].unalias()
        if isinstance(node, exp.Column) and not node.table:
            name = node.name.lower()
            columns = {each for relation in self.scope.sources.values() for each in relation.columns}
            if name not in columns and name in outputs:
                return outputs[name]
        return node

    def settle(self, node: exp.Expression, aliases: Container[str] = ()) -> None:
        """Outside aggregates, a column must be one of the groups, however it is written."""
        if text_of(node) in self.named or is_aggregate(node) or isinstance(node, exp.Query):
            return
        if not isinstance(node, exp.Column):
            for child in node.iter_expressions():
                self.settle(child, aliases)
        elif node.table or node.name.lower() not in aliases:
            tree = self.reading.translate(node).tree
            name = next((name for name, key in self.keys.items() if key.tree == tree), None)
            if name is None:
                raise QueryError(
                    f"{node.name} is neither one of the groups nor inside an aggregate.",
                    f"add it to GROUP BY, or aggregate it, as in COUNT({node.name})",
                    node,
                    write=f"COUNT({text_of(node)})",
                )
            self.named[text_of(node)] = name

    def aggregate(self, node: exp.Expression, alias: str) -> None:
        text = text_of(node)
        if text not in self.found:
            self.found[text] = self._made(node, alias)

    def _made(self, node: exp.Expression, alias: str) -> Aggregate:
        condition: exp.Expression | None = None
        whole = node
        if isinstance(node, exp.Filter):
            condition = self.reading.condition(node.expression.this)
            node = node.this
        if isinstance(node, exp.WithinGroup):
            ordered = node.expression.expressions[0]
            return self._quantiles(
                whole, ordered.this, node.this.this, condition, alias, desc=bool(ordered.args.get("desc"))
            )
        if isinstance(node, exp.Anonymous):
            return self._named_function(node, whole, condition, alias)
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, exp.CountIf):
            truth = self.reading.translate(node.this)
            if truth.kind.type != "flag":
                raise QueryError("COUNT_IF counts the rows that a condition holds for.", "write a condition", node)
            return aggregates.count(aggregates.counted(aggregates.kept(truth.tree, condition), text_of(whole)))
        if isinstance(node.this, exp.Distinct):
            if isinstance(node, exp.Min | exp.Max) and len(node.this.expressions) == 1:  # the same as of all values
                node = type(node)(this=node.this.expressions[0].copy())
            else:
                raise self._of_different(node, whole)
        if type(node) in aggregates.OF_SUMS:
            x = self._argument(node.this, condition, alias)
            return aggregates.OF_SUMS[type(node)](x, self._centre(x))
        if type(node) in _PAIRED:
            return self._paired(node, condition, alias)
        if isinstance(node, exp.Min | exp.Max):
            end = -1 if isinstance(node, exp.Min) else 1
            return self._ranked(whole, node.this, (float(end > 0),), condition, alias, listed=False, end=end)
        if isinstance(node, exp.Median):
            return self._ranked(whole, node.this, (0.5,), condition, alias, listed=False, end=0)
        if isinstance(node, exp.Quantile | exp.ApproxQuantile):
            return self._quantiles(whole, node.this, node.args["quantile"], condition, alias)
        if isinstance(node, exp.PercentileCont | exp.PercentileDisc) and node.expression is not None:
            return self._quantiles(whole, node.this, node.expression, condition, alias)
        inner = node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) else node
        name = typed_name(inner) if isinstance(inner, exp.Func) else "This"
        raise QueryError(f"{name} is not an aggregate that can be blurred.", f"use one of {_KNOWN}", whole)

    def _of_different(self, node: exp.Expression, whole: exp.Expression) -> QueryError:
        """Many units may have the same value, so one of them may move the sum by all of it, or by nothing."""
        names = units_in(self.scope) if self.reading.protects.column is not None else []
        query = once_per_unit(node, names[0]) if names and node is whole else ""
        rule = f"{node.key.upper()}(DISTINCT ...) over all units would compare rows of different units."
        instead = (
            f"take it of the rows of each unit first: {query}" if query else "take it per unit in a subquery first"
        )
        return QueryError(rule, f"{instead}; or use COUNT(DISTINCT ...)", whole, query=query)

    def _named_function(
        self, node: exp.Anonymous, whole: exp.Expression, condition: exp.Expression | None, alias: str
    ) -> Aggregate:
        if node.name.upper() in aggregates.NAMED and len(node.expressions) == 1:
            x = self._argument(node.expressions[0], condition, alias)
            return aggregates.NAMED[node.name.upper()](x, self._centre(x))
        if len(node.expressions) != 2 or not isinstance(node.expressions[1], exp.Array):
            first = text_of(node.expressions[0]) if node.expressions else "x"
            histogram = f"HISTOGRAM({first}, [0, 10, 20])"
            rule = "A histogram needs edges that do not come from the data."
            raise QueryError(rule, f"write {histogram}", whole, write=histogram if node.expressions else "")
        values = self.reading.translate(node.expressions[0])
        edges = tuple(_edge(each, values.kind) for each in node.expressions[1].expressions)
        return aggregates.binned(Typed(aggregates.kept(values.tree, condition), values.kind), edges, whole)

    def _count(self, node: exp.Count, condition: exp.Expression | None) -> Aggregate:
        if isinstance(node.this, exp.Distinct):
            x = distinct_pairs.counted(node.this, self.reading.translate, steady)
            if x.kind.unit and condition is None:
                return aggregates.units()
            if x.kind.unit:
                raise QueryError(
                    "Units are counted over the rows of a group, which a FILTER would split.",
                    f"use WHERE, or GROUP BY the condition: {with_where(node)}",
                    node,
                    query=with_where(node),
                )
            return aggregates.DistinctValues(aggregates.kept(x.tree, condition), text_of(node))
        if node.this is None or isinstance(node.this, exp.Star):
            if condition is None:
                return aggregates.rows()
            # COUNT(x) counts what is not NULL, and its name is the text of x: the name here must be another.
            return aggregates.count(aggregates.counted(condition, f"{stored_text(condition)} true"))
        x = self.reading.translate(node.this)
        if not x.kind.nullable and condition is None:
            return aggregates.rows()
        tree = aggregates.kept(x.tree, condition)
        there = exp.Not(this=exp.Is(this=exp.paren(tree), expression=exp.Null()))
        return aggregates.count(aggregates.counted(there, stored_text(tree)))

    def _argument(self, node: exp.Expression, condition: exp.Expression | None, alias: str) -> Argument:
        x = self.reading.translate(node)
        if x.kind.type == "flag":
            whole = exp.cast(x.tree, "BIGINT")
            x = Typed(whole, Kind("whole", Fraction(0), Fraction(1), nullable=x.kind.nullable))
        if not x.kind.numeric:
            rule, number = f"Numbers are added up, and this is of type {x.kind.type}.", ""
            if x.kind.textual:
                number = f"CAST({text_of(node)} AS DECIMAL(9, 2))"
            raise QueryError(rule, f"use {number}, or COUNT" if number else "use COUNT", node, write=number)
        given = self._bounds(node, alias)
        low, high = aggregates.interval_of(x.kind, given, node, alias)
        tree = aggregates.kept(x.tree, condition)
        nullable = x.kind.nullable or condition is not None
        # Rounding may lead a step out of the interval: weights see to that, and rows without weights are clamped.
        inside = given is None and x.kind.bounded and self.reading.unit is not None
        generous = given is None and not x.kind.bounded and x.kind.likely is not None and x.kind.likely.generous
        return Argument(tree, low, high, nullable, x.kind.is_whole, stored_text(tree), inside, generous)

    def _bounds(self, node: exp.Expression, alias: str) -> Interval | None:
        for name in (alias, node.name.lower() if isinstance(node, exp.Column) else "", text_of(node)):
            if name in self.bounds:
                self.used.add(name)
                return self.bounds[name]
        return None

    def _centre(self, x: Argument) -> Fraction:
        """Sums that leave as they are count from 0; where only averages do, from the middle, which needs less noise."""
        return Fraction(0) if x.text in self.summed else x.middle()

    def _paired(self, node: exp.Expression, condition: exp.Expression | None, alias: str) -> Aggregate:
        x, y = self._argument(node.this, condition, alias), self._argument(node.expression, condition, alias)
        one, two = x.beside(y), y.beside(x)
        return aggregates.together(one, two, one.middle(), two.middle(), how=_PAIRED[type(node)])

    def _quantiles(
        self,
        whole: exp.Expression,
        x: exp.Expression,
        chances: exp.Expression,
        condition: exp.Expression | None,
        alias: str,
        *,
        desc: bool = False,
    ) -> Aggregate:
        listed = isinstance(chances, exp.Array)
        asked = [_constant(each) for each in (chances.expressions if listed else [chances])]
        if not asked or not all(isinstance(p, Fraction) and 0 <= p <= 1 for p in asked):
            percents = [p for p in asked if isinstance(p, Fraction) and 1 < p <= 100]
            chance = f"{float(percents[0]) / 100:g}" if len(percents) == len(asked) == 1 else "0.9"
            write = f"QUANTILE({text_of(x)}, {chance})"
            raise QueryError("A quantile is taken at numbers from 0 to 1.", f"write {write}", whole, write=write)
        ps = tuple(float(1 - p if desc else p) for p in asked)
        return self._ranked(whole, x, ps, condition, alias, listed=listed, end=0)

    def _ranked(
        self,
        whole: exp.Expression,
        x: exp.Expression,
        chances: tuple[float, ...],
        condition: exp.Expression | None,
        alias: str,
        *,
        listed: bool,
        end: int,
    ) -> Aggregate:
        typed = self.reading.translate(x)
        typed = Typed(aggregates.kept(typed.tree, condition), typed.kind)
        return aggregates.ranked(
            typed, self._bounds(x, alias), chances, listed=listed, end=end, noise=self.noise, node=whole
        )


def take_apart(select: exp.Select, reading: Reading, *, bounds: Mapping[str, Interval], noise: str) -> Outermost:
    """Groups and aggregates of a SELECT over these rows."""
    _refuse_units_alone(select, reading)
    for name in ("distinct", "windows", "laterals", "qualify", "into"):
        if select.args.get(name):
            clause = select.args[name] if isinstance(select.args[name], exp.Expression) else select
            raise QueryError(f"{name.upper()} cannot stand in the outermost SELECT.", "move it into a subquery", clause)
    outputs, later = outputs_of(select), _later(select)
    taking = _Taking(reading, bounds, noise)
    nodes = aggregates_of(select)
    if not nodes:
        rule = "The query shows rows: nothing in it aggregates over units."
        counts = counting(select)
        rewrite = f"count them: {counts}; or use one of {_KNOWN}" if counts else f"use one of {_KNOWN}"
        raise QueryError(rule, rewrite, select, query=counts)
    for node, _ in nodes:
        plain = node.this if isinstance(node, exp.Filter) else node
        if isinstance(plain, exp.Sum) and not isinstance(plain.this, exp.Distinct):
            taking.summed.add(_summed_text(taking, node))
    taking.groups(select, outputs)
    for node, alias in nodes:
        taking.aggregate(node, alias)
    _settle(taking, outputs, later)
    unused = sorted(set(bounds) - taking.used)
    if unused:
        raise QueryError(
            f"bounds names {unused[0]!r}, which no aggregate of numbers uses.", "name a column of the answer"
        )
    shown = tuple(outputs.items())
    return Outermost(reading, taking.keys, taking.found, shown, select, taking.named, _aliases(outputs))


def outputs_of(select: exp.Select) -> dict[str, exp.Expression]:
    """What the SELECT list asks for, by name."""
    outputs: dict[str, exp.Expression] = {}
    for place, node in enumerate(select.expressions, 1):
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            raise QueryError("SELECT * would show rows.", "aggregate: SELECT COUNT(*) ...", node, write="COUNT(*)")
        name = _output_name(node, place)
        if name in outputs:
            rule, other = f"Two columns are called {name!r}.", f"{text_of(node.unalias())} AS {name}2"
            alias = isinstance(node, exp.Alias) and name.isidentifier()
            raise QueryError(rule, "give one of them another name with AS", node, write=other if alias else "")
        outputs[name] = node.unalias()
    return outputs


def aggregates_of(select: exp.Select) -> list[tuple[exp.Expression, str]]:
    """Every aggregate, with the name of the output that it is in, in lower case; empty in HAVING and ORDER BY."""
    nodes = [(node, name.lower()) for name, each in outputs_of(select).items() for node in _aggregates(each)]
    return nodes + [(node, "") for each in _later(select) for node in _aggregates(each)]


def shown_as(outermost: Outermost, select: exp.Select, titles: Iterable[str]) -> Outermost:
    """The same groups and aggregates, as another SELECT shows them: its columns under these names, HAVING, ORDER BY and
    LIMIT."""
    outputs = dict(zip(titles, outputs_of(select).values(), strict=True))
    taking = _Taking(outermost.reading, {}, "")
    taking.groups(select, outputs)
    _settle(taking, outputs, _later(select))
    trees = {name: key.tree for name, key in outermost.keys.items()}
    names = {
        name: next(other for other, tree in trees.items() if tree == key.tree) for name, key in taking.keys.items()
    }
    named = {text: names[name] for text, name in taking.named.items()}
    aliases = {**_aliases(outputs), **outermost.aliases}
    shown = tuple(outputs.items())
    return replace(outermost, keys=taking.keys, outputs=shown, select=select, named=named, aliases=aliases)


def _later(select: exp.Select) -> list[exp.Expression]:
    """What is asked of the released numbers besides."""
    having = select.args["having"].this if select.args.get("having") else None
    order = tuple(select.args["order"].expressions) if select.args.get("order") else ()
    return [each for each in (having, *order) if each is not None]


def _settle(taking: _Taking, outputs: Mapping[str, exp.Expression], later: list[exp.Expression]) -> None:
    for each in outputs.values():
        taking.settle(each)
    for each in later:
        taking.settle(each, outputs)


def _aliases(outputs: Mapping[str, exp.Expression]) -> dict[str, tuple[str, ...]]:
    return {name.lower(): tuple(text_of(node) for node in _aggregates(each)) for name, each in outputs.items()}


def _summed_text(taking: _Taking, node: exp.Expression) -> str:
    condition = taking.reading.condition(node.expression.this) if isinstance(node, exp.Filter) else None
    plain = node.this if isinstance(node, exp.Filter) else node
    x = taking.reading.translate(plain.this)
    tree = exp.cast(x.tree, "BIGINT") if x.kind.type == "flag" else x.tree
    return stored_text(aggregates.kept(tree, condition))


def _refuse_units_alone(select: exp.Select, reading: Reading) -> None:
    """SELECT DISTINCT of the unit lists units."""
    if select.args.get("distinct") is None:
        return
    columns = [node.unalias() for node in select.expressions]
    for column in columns:
        named = isinstance(column, exp.Column) and not isinstance(column.this, exp.Star)
        if named and reading.scope.column(column).kind.unit:
            text = f"count them: COUNT(DISTINCT {column.sql('duckdb')})"
            raise QueryError("DISTINCT would list single units.", text, column)


def is_aggregate(node: exp.Expression) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.upper() in (_HISTOGRAM, *aggregates.NAMED)
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.IgnoreNulls)


def _aggregates(node: exp.Expression) -> Iterator[exp.Expression]:
    """The outermost aggregates in an expression; one within another is refused when its argument is read."""
    if isinstance(node, exp.Window):
        raise QueryError(
            "A window function cannot stand in the outermost SELECT.",
            "move it into a subquery, partitioned by the unit's column, and aggregate that",
            node,
        )
    if isinstance(node, exp.Query):
        return
    if is_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from _aggregates(child)


def _output_name(node: exp.Expression, place: int) -> str:
    if isinstance(node, exp.Alias):
        return node.alias.lower()
    return node.name.lower() if isinstance(node, exp.Column) else text_of(node) or f"column {place}"


def _edge(node: exp.Expression, kind: Kind) -> Any:
    """An edge of a histogram: a number, or a date as its ISO text."""
    found = _constant(node)
    if not kind.temporal:
        if isinstance(found, str):
            raise QueryError("Edges of a histogram of numbers are numbers.", "write HISTOGRAM(x, [0, 10, 20])", node)
        return found
    try:
        number = times.days(found) if kind.is_date else times.microseconds(found)
    except ValueError:
        number = None
    if number is None:
        raise QueryError("This must be a date.", "write it as '2026-01-31'", node)
    return times.read(number, kind.type)


def _constant(node: exp.Expression) -> Any:
    """A number as a Fraction, or a text; anything else is refused."""
    negative = isinstance(node, exp.Neg)
    plain = node.this if negative else node
    if isinstance(plain, exp.Literal):
        return plain.name if plain.is_string else Fraction(plain.name) * (-1 if negative else 1)
    raise QueryError("This must be a constant.", "write a number", node)
