"""From the text of a query to its parts: what the engine must give, and what is done with it afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from sqlglot import exp

from ..record import canonical as canonical_text
from ..schema import Schema, Table
from ..sources.mentions import mentions
from ..units import Unit
from .aggregates import VOTES, Aggregate, Interval, Ranked, Statistic
from .canonical import UnsureError, canonical
from .expressions.functions.cells import asked
from .keys import Key, keys_of, within
from .kinds import Kind, Typed
from .outermost import Outermost, outputs_of, shown_as, take_apart
from .parsing import parsed, too_deep
from .refusal import QueryError
from .relations.bases import owners, steady
from .relations.reading import Reading, base_tables, reading
from .relations.rows_of import with_ctes

_NOTHING: Mapping[str, Table] = {}


@dataclass(frozen=True)
class Front:
    """A query, read and understood. No data was touched."""

    outermost: Outermost
    keys: tuple[Key, ...]

    @property
    def aggregates(self) -> Mapping[str, Aggregate]:
        return self.outermost.aggregates

    @property
    def reading(self) -> Reading:
        return self.outermost.reading

    @property
    def selects(self) -> bool:
        """Are groups chosen privately?"""
        return any(not key.known for key in self.keys)

    @property
    def groups(self) -> int | None:
        """How many groups there are at most, where the query and the schema alone tell it."""
        sizes = [None if key.values is None else len(key.values) for key in self.keys]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    @property
    def units(self) -> bool:
        """May a unit have several rows, so that its contribution must be bounded?"""
        return self.reading.unit is not None

    @cached_property
    def private_tables(self) -> frozenset[str]:
        """The private tables that its rows come from."""
        return owners(self.rows({}))

    def rows(self, columns: Mapping[str, Typed]) -> exp.Query:
        """The rows with their unit, keys k0, k1, ... and these columns; only rows of groups that are given."""
        keys = {}
        for i, key in enumerate(self.keys):
            keys[f"k{i}"] = Typed(steady(key.typed.tree, key.typed.kind), key.typed.kind)
        shown = {**keys, **columns}
        if not shown and not self.units:  # a SELECT has a column, also where rows are only counted
            shown = {"_row": Typed(exp.Literal.number(1), Kind("whole"))}
        tree = self.reading.project(shown).tree
        tests = [
            within(f"k{i}", key, key.values)
            for i, key in enumerate(self.keys)
            if key.values is not None and key.values != key.typed.kind.values
        ]
        if not tests:
            return tree
        return exp.select("*").from_(tree.subquery("_all")).where(*tests)

    def reaches(self, asked: Mapping[str, Any]) -> dict[str, Fraction]:
        """Reaches by measure, from those by name of an output."""
        found: dict[str, Fraction] = {}
        for name, reach in asked.items():
            texts = self.outermost.aliases.get(name.lower(), ())
            made = [self.aggregates[text] for text in texts]
            sums = [
                each
                for one in made
                if isinstance(one, Statistic)
                for each in one.measures
                if not each.whole or each.largest != 1
            ]
            if not sums:
                raise QueryError(
                    f"reach names {name!r}, which is no sum of this query.", "name a column with SUM or AVG"
                )
            found |= {each.name: Fraction(reach) for each in sums}
        return found

    def by_question(self, weights: Mapping[str, Any]) -> dict[str, Fraction]:
        """Weights by question, from those by name of an output; a question may also be named itself."""
        found: dict[str, Fraction] = {}
        for name, weight in weights.items():
            for each in self.questions_of(name) or (name,):
                found[each] = max(found.get(each, Fraction(0)), Fraction(weight))
        return found

    def questions_of(self, name: str) -> tuple[str, ...]:
        """The questions that an output is made of."""
        found: list[str] = []
        for text in self.outermost.aliases.get(name.lower(), ()):
            each = self.aggregates[text]
            if isinstance(each, Statistic):
                found += [measure.name for measure in each.measures] + [VOTES] * each.counts_units
            else:
                found.append(each.tree if isinstance(each, Ranked) else text)
        return tuple(found)

    @cached_property
    def titles(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outermost.outputs)


def front(
    text: str,
    schema: Schema,
    unit: Unit,
    *,
    bounds: Mapping[str, Interval],
    keys: Mapping[str, Any],
    noise: str,
    written: str | None = None,
    released: Mapping[str, Table] = _NOTHING,
) -> Front:
    """Read a query, and show its answer as `written` asks for it. What was read lately is not read again: a plan has
    several forms, and dashboards ask the same all day."""
    stored = tuple(map(canonical_text, (schema, unit, dict(released))))
    options = tuple(repr(sorted(option.items())) for option in (bounds, keys))  # 1, 1.0 and True are other groups
    return _front(QueryWords((text, noise, written, *stored, *options), schema, unit, bounds, keys, released))


def forget() -> None:
    """Read every query anew from now on: for tests that change how queries are read."""
    _front.cache_clear()


@dataclass(frozen=True, eq=False)
class QueryWords:
    """What a query is read from; the same where it is the same in the plan's JSON."""

    words: tuple[Any, ...]
    schema: Schema
    unit: Unit
    bounds: Mapping[str, Interval]
    keys: Mapping[str, Any]
    released: Mapping[str, Table]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueryWords) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)


@lru_cache(maxsize=64)
def _front(query: QueryWords) -> Front:
    text, noise, written, *_ = query.words
    plain = _read(
        text, query.schema, query.unit, bounds=query.bounds, keys=query.keys, noise=noise, released=query.released
    )
    with suppress(UnsureError):  # another text was put in its place
        return plain if written is None else _presented(plain, written)
    return plain


def _read(
    text: str,
    schema: Schema,
    unit: Unit,
    *,
    bounds: Mapping[str, Interval],
    keys: Mapping[str, Any],
    noise: str,
    released: Mapping[str, Table],
) -> Front:
    """Read a query. What cannot be answered privately is refused, with the clause underlined."""

    def read(tree: exp.Query, names: frozenset[str] | None) -> Front:
        query, tables = with_ctes(tree, base_tables(schema, unit, asked(tree), released, names=names), unit)
        if not isinstance(query, exp.Select):
            raise QueryError(
                "Only a SELECT with aggregates is answered.",
                "aggregate over the union: SELECT ... FROM (SELECT ... UNION ALL SELECT ...)",
                query,
            )
        rows = reading(query, tables, unit)
        if not rows.private:
            raise _nothing_private(tree, query, schema)
        outermost = take_apart(query, rows, bounds=bounds, noise=noise)
        return Front(outermost, keys_of(outermost.keys, keys))

    try:
        with suppress(QueryError):  # which may name tables and columns that the query does not
            return read(tree := parsed(text), mentions(tree).names)
        return read(parsed(text), None)
    except QueryError as problem:
        raise problem.within(text) from None
    except RecursionError:
        raise too_deep() from None


def _presented(front: Front, text: str) -> Front:
    """The same questions, shown as this text asks for them."""
    tree = parsed(text)
    select = canonical(tree)
    if not isinstance(tree, exp.Select) or not isinstance(select, exp.Select):
        raise UnsureError
    try:
        return replace(front, outermost=shown_as(front.outermost, select, outputs_of(tree)))
    except (QueryError, StopIteration):
        raise UnsureError from None


def _nothing_private(tree: exp.Query, query: exp.Select, schema: Schema) -> QueryError:
    """The outermost rows belong to nobody. Where a private table is read elsewhere, nobody is sent past us."""
    read = [table.name.lower() for table in tree.find_all(exp.Table)]
    private = sorted(name for name, table in schema.tables.items() if table.private and name.lower() in read)
    if private:
        rule = f"The rows that are aggregated are of public tables; {private[0]} is read without being counted."
        return QueryError(rule, f"aggregate rows of {private[0]}, or leave it out", query)
    names = ", ".join(dict.fromkeys(name for name in read if name in {each.lower() for each in schema.tables}))
    rule = "The query reads public tables only: it needs no privacy."
    return QueryError(rule, f"run it on {names or 'the tables'} without us", query)
