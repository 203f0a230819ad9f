"""How a rule reads the operands of its node, and says what it knows of the result."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ...kinds import Kind, Likely, Type, Typed
from ...refusal import QueryError
from ...relation import Scope
from .. import trees
from ..decimals import Exact, as_double
from ..intervals import INT64, Interval
from ..likely import trusted

MANY = 1000
"""Up to so many values are listed as public keys."""
DEEPEST = 100
LARGEST_TREE = 20_000

NAMES: dict[str, str] = {
    "real": "a number",
    "whole": "a whole number",
    "flag": "a condition",
    "text": "text",
    "key": "a key",
    "date": "a date",
    "moment": "a timestamp",
    "span": "an interval",
}


@dataclass(frozen=True)
class Loose(Typed):
    """Arithmetic on reals that may have overflowed. Whatever reads it for more than + - * / makes it NULL there."""


@dataclass
class Reader:
    """Reads operands within one scope. Rules get it as their second argument.

    trusting  are likely bounds taken for sure ones? Then what is read tells where values likely lie, and its tree is
              thrown away (likely.py)
    likely    what was likely of any operand
    specials  what aggregates, windows and subqueries came to, by node: these are compiled once
    """

    scope: Scope
    rule: Callable[[exp.Expression], Rule]
    depth: int = field(default=0)
    trusting: bool = False
    likely: list[Likely] = field(default_factory=list)
    specials: dict[int, Typed] = field(default_factory=dict)

    def loose(self, node: exp.Expression) -> Typed:
        """The operand, its overflow not yet caught: for + - * / alone."""
        if self.depth >= DEEPEST:
            raise QueryError("The expression is nested too deeply.", "compute a part of it in a subquery first", node)
        self.depth += 1
        operand = self.rule(node)(node, self)
        self.depth -= 1
        if operand.kind.likely is not None:
            self.likely.append(operand.kind.likely)
            operand = trusted(operand) if self.trusting else operand
        if sum(1 for _ in operand.tree.walk()) > LARGEST_TREE:
            raise QueryError("The expression is too long.", "compute a part of it in a subquery first", node)
        return operand

    def read(self, node: exp.Expression) -> Typed:
        """The operand, finite or NULL."""
        return settled(self.loose(node))

    def exact(self, node: exp.Expression) -> Typed:
        """The same; what was computed in decimals is still one."""
        found = self.loose(node)
        return found if isinstance(found, Exact) else settled(found)

    def number(self, node: exp.Expression, *, loose: bool = False) -> Typed:
        return as_number(self.loose(node) if loose else self.read(node), node)

    def flag(self, node: exp.Expression) -> Typed:
        found = self.read(node)
        if nothing(found.kind):
            return Typed(trees.null("BOOLEAN"), Kind("flag", values=()))
        if found.kind.type != "flag":
            rule = f"A condition is needed here, and this is {NAMES[found.kind.type]}."
            test = f"{shown(node)} {'<> 0' if found.kind.numeric else 'IS NOT NULL'}"
            raise QueryError(rule, f"compare it with something, such as {test}", node, write=test)
        return found

    def text(self, node: exp.Expression) -> Typed:
        return as_text(self.read(node), node)

    def time(self, node: exp.Expression) -> Typed:
        """A date or a moment; a text that stands in the query is read as one."""
        literal = node.unnest()
        if isinstance(literal, exp.Literal) and literal.is_string:
            return date_or_moment(literal, literal.name)
        found = self.read(node)
        if nothing(found.kind):
            return Typed(trees.null("DATE"), Kind("date", values=()))
        if not found.kind.temporal:
            rule = f"A date or timestamp is needed here, and this is {NAMES[found.kind.type]}."
            cast = f"CAST({shown(node)} AS DATE)"
            raise QueryError(rule, f"use {cast}", node, write=cast if found.kind.textual else "")
        return found


Rule = Callable[[Any, Reader], Typed]
Rules = Mapping[type[exp.Expression], Rule]


def settled(found: Typed) -> Typed:
    if isinstance(found, Exact):
        return as_double(found)
    return Typed(trees.finite(found.tree), found.kind) if isinstance(found, Loose) else found


def as_whole(operand: Typed) -> Typed:
    """A flag as 1 or 0; anything else as it is."""
    kind = operand.kind
    if kind.type != "flag" or nothing(kind):
        return operand
    values = None if kind.values is None else tuple(sorted({int(value) for value in kind.values}))
    ones = Kind("whole", Fraction(0), Fraction(1), values=values, nullable=kind.nullable)
    return Typed(trees.cast(operand.tree, "BIGINT"), ones)


def as_number(operand: Typed, node: exp.Expression) -> Typed:
    operand = as_whole(operand)
    if operand.kind.numeric:
        return operand
    cast = "BIGINT" if operand.kind.type == "key" else "DOUBLE"
    instead = f"CAST({shown(node)} AS {cast})"
    if operand.kind.type in ("date", "moment", "span"):
        instead = f"a number made of it, such as DATE_DIFF('day', DATE '2020-01-01', {shown(node)})"
    write = instead if operand.kind.textual else ""
    rule = f"A number is needed here, and this is {NAMES[operand.kind.type]}."
    raise QueryError(rule, f"use {instead}", node, write=write)


def as_text(found: Typed, node: exp.Expression) -> Typed:
    """Text; a key is read as text."""
    if nothing(found.kind):
        return Typed(trees.null("VARCHAR"), Kind("text", values=()))
    if found.kind.type == "key":
        return Typed(trees.cast(found.tree, "VARCHAR"), Kind("text"))
    if found.kind.type != "text":
        rule = f"Text is needed here, and this is {NAMES[found.kind.type]}."
        cast = f"CAST({shown(node)} AS VARCHAR)"
        raise QueryError(rule, f"use {cast}", node, write=cast)
    return found


def shown(node: exp.Expression) -> str:
    """The expression as text for a message, if short."""
    text = node.sql(dialect="duckdb")
    return text if len(text) <= 60 else "..."


def nothing(kind: Kind) -> bool:
    """Can it only be NULL?"""
    return kind.values == ()


def interval(kind: Kind) -> Interval:
    """Where its values lie in the engine: declared bounds of reals are rounded to floats there."""
    bounds = Interval(kind.lower, kind.upper)
    return bounds.and_floats() if kind.is_real else bounds


def certain(kind: Kind) -> Interval:
    """The same, with the limits of the engine's type where a whole has no others."""
    bounds = interval(kind)
    return bounds.within(Fraction(INT64[0]), Fraction(INT64[1])) if kind.is_whole else bounds


def wholes(bounds: Interval, values: Iterable[int] | None = None, step: int = 1) -> Kind:
    """A whole kind, its values listed where they are few: those given, or all multiples of the step."""
    listed = None if values is None else tuple(sorted(set(values)))
    if listed is None and bounds.lower is not None and bounds.upper is not None:
        first, last = -(-bounds.lower // step), bounds.upper // step
        if last - first < MANY:
            listed = tuple(step * each for each in range(int(first), int(last) + 1))
    if listed is not None and len(listed) > MANY:
        listed = None
    if listed:
        bounds = Interval(Fraction(listed[0]), Fraction(listed[-1]))
    return Kind("whole", bounds.lower, bounds.upper, values=listed)


def reals(bounds: Interval) -> Kind:
    return Kind("real", bounds.lower, bounds.upper)


def flags(*operands: Kind) -> Kind:
    """True or false; NULL only where an operand is, if the operands are given."""
    nullable = not operands or any(each.nullable for each in operands)
    return Kind("flag", values=(False, True), nullable=nullable)


def never_null() -> Kind:
    return Kind("flag", values=(False, True), nullable=False)


def as_real(found: Typed) -> exp.Expression:
    if isinstance(found, Exact):
        return as_double(found).tree
    if found.kind.is_whole and found.kind.values and len(found.kind.values) == 1 and not found.kind.nullable:
        return trees.real(found.kind.values[0])
    return trees.cast(found.tree, "DOUBLE") if found.kind.is_whole else found.tree


def typed_null(type_: Type, sql: str) -> Typed:
    return Typed(trees.null(sql), Kind(type_, values=()))


def constant(node: exp.Expression, what: str, example: str) -> Fraction:
    """A number that stands in the query itself."""
    inner = node
    sign = 1
    while isinstance(inner, (exp.Paren, exp.Neg)):
        sign = -sign if isinstance(inner, exp.Neg) else sign
        inner = inner.this
    if not isinstance(inner, exp.Literal) or inner.is_string:
        raise QueryError(f"{what} must be a number in the query, not one from the data.", f"write {example}", node)
    return sign * literal_number(inner)


def constant_whole(node: exp.Expression, what: str, example: str, least: int, most: int) -> int:
    found = constant(node, what, example)
    if found.denominator != 1 or not least <= found <= most:
        raise QueryError(f"{what} must be a whole number from {least} to {most}.", f"write {example}", node)
    return int(found)


def constant_text(node: exp.Expression, what: str, example: str, most: int = 1000) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise QueryError(f"{what} must be a text in the query, not one from the data.", f"write {example}", node)
    if len(node.name) > most:
        raise QueryError(f"{what} has more than {most} characters.", "use a shorter one", node)
    return written_text(node)


def written_text(node: exp.Literal) -> str:
    """A text that stands in the query."""
    if "\0" in node.name:  # some engines take it for the end of the statement
        raise QueryError("A text holds the character number 0.", "leave it out", node)
    return node.name


def literal_number(node: exp.Literal) -> Fraction:
    """Exactly the number that is written."""
    try:
        read = decimal.Decimal(node.name)
    except decimal.InvalidOperation:
        raise QueryError("This is not a number that can be read.", "write it in decimal digits", node) from None
    if not read.is_finite() or (read and abs(read.adjusted()) > 300) or len(node.name) > 400:
        raise QueryError("The number is too large or too small.", "use one between 1e-300 and 1e300", node)
    return Fraction(read)


def parsed_date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def parsed_moment(text: str) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is not None else moment


def instant(text: str) -> datetime.datetime | None:
    """A moment with its distance from UTC, in UTC; None where the text is none, or says no distance."""
    try:
        moment = datetime.datetime.fromisoformat(text)
        return None if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def date_or_moment(node: exp.Expression, text: str) -> Typed:
    """A date that is written in the query, with or without a time."""
    day = parsed_date(text)
    if day is not None:
        return Typed(trees.date(day), Kind("date", values=(day,), nullable=False))
    moment = parsed_moment(text)
    if moment is None:
        raise QueryError("This is no date or timestamp.", "write it as '2024-01-31' or '2024-01-31 12:00:00'", node)
    return Typed(trees.moment(moment), Kind("moment", values=(moment,), nullable=False))
