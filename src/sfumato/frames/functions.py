"""Functions that begin or combine expressions and frames, by polars' names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from ..checks import refuse
from ..query.ask import schema_and_unit
from ..query.kinds import Kind
from ..query.parsing import parsed
from ..query.relation import visible
from ..query.relations.bases import base_tables
from ..query.relations.rows_of import relation
from ..query.unfolding import unfolded
from ..schema import Schema
from ..units import Unit
from . import joining, operators, over_rows, summaries
from .block import SelectBlock
from .expr import Expr, _columns, _operand, column, expressions
from .lazy_frame import LazyFrame
from .terms import Term, TermNames, column_of, identifier, known_name, literal, unlike


def frame(data: Any, table: str | None = None, *, unit: Unit | None = None) -> LazyFrame:
    """A lazy frame over a private table, in the manner of polars: its end is a plan, as SQL's.

    >>> from sfumato import Schema, Unit, col, frame, frames, schema
    >>> table = Schema.of(ward=schema.category(["east", "west"]), cost=schema.real(0, 1000))
    >>> wards = frame(table, unit=Unit()).filter(col("cost") > 10).group_by("ward").agg(n=frames.len())
    >>> print(wards.sql())
    SELECT
      ward,
      COUNT(*) AS n
    FROM data
    WHERE
      cost > 10
    GROUP BY
      ward
    >>> float(wards.plan(epsilon=1, limits={"rows": 1}).event.epsilon)
    1.0

    data   the Private that it will run on, or a schema (then `unit` says whose presence is hidden)
    table  the table or view; without it, the only private table
    """
    schema, protects = schema_and_unit(data, unit)
    name = schema.table().name if table is None else known_name(table, {**schema.tables, **schema.views})
    avoided = frozenset(other.lower() for other in (*schema.tables, *schema.views))
    kinds, private = _kinds(schema, protects, name)
    stored = schema.tables[name].columns if name in schema.tables else kinds
    columns = {own: Term(column_of(own, name), kinds[own.lower()]) for own in stored if own.lower() in kinds}
    source = exp.Table(this=identifier(name))
    return LazyFrame(data, unit, SelectBlock(source, columns, tuple(columns), public=not private, avoided=avoided))


def _kinds(schema: Schema, unit: Unit, name: str) -> tuple[dict[str, Kind], bool]:
    """What a table's or a view's columns hold, by lower-case name."""
    tables = base_tables(schema.stored, unit)
    if name in schema.tables:
        rows = tables[name.lower()]
    else:
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=identifier(name))))
        rows = relation(parsed(unfolded(select.sql("duckdb"), schema).text), tables, unit)
    return {own: rows.columns[own] for own in visible(rows)}, rows.private


def col(name: str) -> Expr:
    """A column of a frame, by its name: the beginning of an expression.

    >>> from sfumato import col
    >>> (col("born") // 10 * 10).alias("decade")
    <FLOOR(born / 10) * 10>
    >>> col("cost").filter(col("ward") == "east").mean()
    <AVG(cost) FILTER(WHERE ward = 'east')>
    """
    return column(name)


def lit(value: Any) -> Expr:
    """A value that stands in the query: a number, a text, a date, None."""
    term = literal(value)
    return Expr(lambda names: term, "literal")


def length() -> Expr:
    """How many rows there are."""
    return Expr(lambda names: summaries.length(), "len")


def coalesce(*exprs: Any) -> Expr:
    """The first of them that is there."""
    parts = expressions(exprs, {})
    if not parts:
        raise refuse("exprs", "nothing", "columns or expressions")
    return Expr(lambda names: operators.first_of([part._term(names) for part in parts]), parts[0]._name)


def max_horizontal(*exprs: Any) -> Expr:
    """The largest of several columns in a row, of those that are there."""
    return _horizontal(exprs, exp.Greatest)


def min_horizontal(*exprs: Any) -> Expr:
    """The least of several columns in a row, of those that are there."""
    return _horizontal(exprs, exp.Least)


def _horizontal(exprs: tuple[Any, ...], node: type[exp.Expr]) -> Expr:
    parts = expressions(exprs, {})
    if not parts:
        raise refuse("exprs", "nothing", "columns or expressions")
    return Expr(lambda names: operators.extreme([part._term(names) for part in parts], node), parts[0]._name)


def corr(a: Any, b: Any) -> Expr:
    """The correlation of two columns, over the rows where neither is missing."""
    first, second = expressions((a, b), {})
    nodes: dict[int, type[exp.Expr]] = {1: exp.Corr}
    return Expr(lambda names: summaries.together(nodes, first._term(names), second._term(names), 1), first._name)


def cov(a: Any, b: Any, ddof: int = 1) -> Expr:
    """The covariance of two columns."""
    first, second = expressions((a, b), {})
    nodes: dict[int, type[exp.Expr]] = {1: exp.CovarSamp, 0: exp.CovarPop}
    return Expr(lambda names: summaries.together(nodes, first._term(names), second._term(names), ddof), first._name)


def int_range(start: Any, end: Any = None) -> Expr:
    """The number of a row in the order of `over`: `int_range(len())` from 0 on, `int_range(1, len() + 1)` from 1."""
    begin, stop = (0, start) if end is None else (start, end)
    whole = isinstance(begin, int) and not isinstance(begin, bool)
    meant = length() if begin == 0 else length() + begin if begin > 0 else length() - -begin
    if not whole or not isinstance(stop, Expr) or repr(stop) != repr(meant):
        raise unlike("int_range() numbers rows here", "write int_range(len()), or int_range(1, len() + 1)")
    return Expr(lambda names: over_rows.numbered(begin), "literal")


@dataclass(frozen=True, eq=False)
class When:
    """Conditions, each with its value so far. Made by `when(...)`."""

    _cases: tuple[tuple[Expr, Expr], ...]
    _test: Expr

    def then(self, value: Any) -> Then:
        """What it is where the condition holds; a text is a column's name, as in polars."""
        return Then((*self._cases, (self._test, _columns(value)[0] if value is not None else lit(None))))


class Then(Expr):
    """Values by condition; missing where none holds, unless `otherwise` says what it is then."""

    __slots__ = ("_cases",)

    def __init__(self, cases: tuple[tuple[Expr, Expr], ...], rest: Expr | None = None) -> None:
        object.__setattr__(self, "_cases", cases)
        super().__init__(lambda names: _case(cases, rest, names), cases[0][1]._name)

    def when(self, *predicates: Any) -> When:
        return When(self._cases, _all_of(predicates))

    def otherwise(self, value: Any) -> Expr:
        return Then(self._cases, _columns(value)[0] if value is not None else lit(None))


def when(*predicates: Any) -> When:
    """The beginning of `when(...).then(...).otherwise(...)`."""
    return When((), _all_of(predicates))


def _all_of(predicates: tuple[Any, ...]) -> Expr:
    if not predicates:
        raise refuse("predicates", "nothing", "conditions")
    first, *others = map(_operand, predicates)
    for other in others:
        first = first & other
    return first


def _case(cases: tuple[tuple[Expr, Expr], ...], rest: Expr | None, names: TermNames) -> Term:
    terms = [operators.alone(value._term(names), "when()") for _, value in cases]
    tests = [operators.alone(test._term(names), "when()") for test, _ in cases]
    ifs = [exp.If(this=test.tree.copy(), true=term.tree.copy()) for test, term in zip(tests, terms, strict=True)]
    tree = exp.Case(ifs=ifs)
    if rest is not None:
        terms.append(operators.alone(rest._term(names), "otherwise()"))
        tree.set("default", terms[-1].tree.copy())
    kinds = [term.kind for term in terms if not isinstance(term.tree, exp.Null)] or [terms[0].kind]
    types = {kind.type for kind in kinds}
    type = "real" if types == {"real", "whole"} else kinds[0].type
    lowest = [kind.lower for kind in kinds if kind.lower is not None]
    lower = min(lowest) if len(lowest) == len(kinds) else None
    nullable = rest is None or any(term.kind.nullable for term in terms)
    return Term(tree, Kind(type, lower, nullable=nullable))


def concat(items: Iterable[LazyFrame], *, how: str = "vertical") -> LazyFrame:
    """The rows of several frames below each other: UNION ALL."""
    frames = [*items]
    if how != "vertical":
        raise unlike(f"concat(how={how!r}) is not possible", "select() the same columns of all, or join()")
    if not frames or not all(isinstance(each, LazyFrame) for each in frames):
        raise refuse("items", "something else", "frames")
    if any(each._data is not frames[0]._data and each._data != frames[0]._data for each in frames):
        raise refuse("items", "frames of several data sets", "frames of the same data")
    if len(frames) == 1:
        return frames[0]
    return frames[0]._of(joining.stack([each._block for each in frames]))
