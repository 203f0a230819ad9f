"""Terms: what an expression comes to in one frame, as a piece of SQL and what is known of its values.

A term that looks at several rows is *pending*: an aggregate, a running sum or a shift, whose rows are yet to be said.
`agg` leaves an aggregate as it is, `over` makes a window of it, and in `select` it is over all rows, as in polars.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol

from sqlglot import exp

from ..checks import refuse
from ..errors import ArgumentError
from ..query.canonical import needs_quotes
from ..query.kinds import Kind, Type

PENDING: Final = "pending"  # in the meta of a node that looks at several rows: which kind of window it would be
AGGREGATE: Final = "aggregate"
STORED: Final = "stored"  # in the meta of a value that is a column of each row
EMPTY: Final = "empty"  # and what polars says of no rows, where SQL says NULL
BY: Final = "by"  # what a rank goes by
RELEASED: Final = "released"  # why it is no aggregate per unit
PER_UNIT: Final = "per unit"  # what stands in its place there


def unlike(what: str, instead: str) -> ArgumentError:
    """The refusal of what polars would do and private SQL cannot; the caller raises it."""
    return ArgumentError(f"{what}: {instead}", cause=what, fix=instead, code="unlike-polars")


@dataclass(frozen=True)
class Term:
    """A piece of SQL over the tables of one frame.

    tree      columns are named with their table
    kind      type, bounds and NULLs, as far as they decide what polars' words mean in SQL
    where     the rows that an aggregate of it takes: `filter` stood before
    dropped   are missing values left out? `drop_nulls` stood before
    """

    tree: exp.Expr
    kind: Kind
    where: exp.Expr | None = None
    dropped: bool = False

    def of(self, tree: exp.Expr, type: Type, *, nullable: bool | None = None, lower: Any = None) -> Term:
        """Another value, made of this one."""
        missing = self.kind.nullable if nullable is None else nullable
        return Term(tree, Kind(type, None if lower is None else Fraction(lower), nullable=missing))

    @property
    def positive(self) -> bool:
        """Is it surely 0 or more?"""
        return self.kind.lower is not None and self.kind.lower >= 0

    @property
    def never_missing(self) -> Term:
        return replace(self, kind=replace(self.kind, nullable=False))


class TermNames(Protocol):
    """What a column's name means where an expression stands."""

    def column(self, name: str) -> Term: ...


class AnyName:
    """TermNames of a frame that is not known yet: an expression by itself is shown with them."""

    def column(self, name: str) -> Term:
        return Term(exp.Column(this=identifier(name)), Kind("real"))


def identifier(name: str) -> exp.Identifier:
    """A name as SQL has it: in quotes where it needs them."""
    return exp.to_identifier(name, quoted=needs_quotes(name))


def column_of(name: str, table: str) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table))


def number(value: int | Decimal | float) -> exp.Expr:
    """A number in the query, in all its digits."""
    text = format(Decimal(repr(value)) if isinstance(value, float) else Decimal(value), "f")
    literal = exp.Literal.number(text.removeprefix("-"))
    return exp.Neg(this=literal) if text.startswith("-") else literal


def literal(value: Any) -> Term:
    """A value of Python as one of the query."""
    value = value.item() if hasattr(value, "item") and not isinstance(value, type) else value
    if value is None:
        return Term(exp.Null(), Kind("text"))
    if isinstance(value, bool):
        return Term(exp.Boolean(this=value), Kind("flag", nullable=False))
    if isinstance(value, int):
        return Term(number(value), Kind("whole", Fraction(value), Fraction(value), nullable=False))
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise unlike(
                "There is no NaN and no infinity in private SQL", "compare with a finite number, or use is_null()"
            )
        return Term(number(value), Kind("real", Fraction(value), Fraction(value), nullable=False))
    if isinstance(value, str):
        return Term(exp.Literal.string(value), Kind("text", nullable=False))
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return Term(exp.cast(exp.Literal.string(value.isoformat(" ")), "TIMESTAMP"), Kind("moment", nullable=False))
    if isinstance(value, datetime.date):
        return Term(exp.cast(exp.Literal.string(value.isoformat()), "DATE"), Kind("date", nullable=False))
    if isinstance(value, datetime.timedelta):
        return _span(value)
    raise refuse("value", type(value).__name__, "a number, text, True, False, a date, a datetime, a timedelta or None")


def _span(value: datetime.timedelta) -> Term:
    """A length of time: whole days, or whole seconds."""
    seconds, rest = divmod(value, datetime.timedelta(seconds=1))
    if rest:
        raise unlike("A length of time has whole seconds here", "round it to seconds")
    many, unit = (seconds // 86400, "DAY") if seconds % 86400 == 0 else (seconds, "SECOND")
    tree = exp.Interval(this=exp.Literal.string(str(many)), unit=exp.var(unit))
    return Term(tree, Kind("span", Fraction(many), Fraction(many), nullable=False))


def pending(tree: exp.Expr, manner: str, meta: Mapping[str, Any] | None = None) -> exp.Expr:
    """A node that looks at several rows, which `over`, `agg` or `select` will say."""
    tree.meta[PENDING] = manner
    tree.meta.update(meta or {})
    return tree


def pending_in(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost of such nodes."""
    if PENDING in tree.meta:
        yield tree
        return
    for part in tree.iter_expressions():
        yield from pending_in(part)


def bare_columns(tree: exp.Expr) -> bool:
    """Does it read a column outside of aggregates?"""
    if PENDING in tree.meta:
        return False
    return isinstance(tree, exp.Column) or any(bare_columns(part) for part in tree.iter_expressions())


def resolved(tree: exp.Expr, window: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with something else in the place of each such node."""
    if PENDING in tree.meta:
        return window(tree)
    tree = tree.copy()
    for node in list(pending_in(tree)):
        node.replace(window(node))
    return tree


def settled(tree: exp.Expr) -> exp.Expr:
    """An aggregate per unit, with what polars says where SQL says NULL."""

    def settle(node: exp.Expr) -> exp.Expr:
        if why := node.meta.get(RELEASED):
            raise unlike(*why)
        bare = node.meta.get(PER_UNIT, node).copy()
        empty = bare.meta.pop(EMPTY, None)
        bare.meta.pop(PENDING, None)
        return bare if empty is None else exp.Coalesce(this=bare, expressions=[literal(empty).tree])

    return resolved(tree, settle)


def known_name(name: str, names: Mapping[str, Any]) -> str:
    """The column that a name means, without case, as SQL compares them."""
    if name in names:
        return name
    alike = [other for other in names if other.lower() == name.lower()]
    if not alike:
        raise refuse("column", name, f"one of: {', '.join(names) or 'none'}")
    return alike[0]
