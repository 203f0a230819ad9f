"""Numbers: literals and arithmetic.

Whole arithmetic is done in BIGINT where the operands' intervals prove that it cannot overflow, else in DOUBLE. What
has no finite result (a division by 0, an overflow) is NULL. Inside a run of + - * / an overflow is carried as an
infinity and becomes NULL at the end of the run. Numbers that stand in the query are computed with exactly, and rounded
once; columns with decimals are added and multiplied as such (see decimals.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ....sources.vocabulary import call
from ...kinds import Kind, Typed
from .. import trees
from ..decimals import Constant, Exact, computed, places_of
from ..intervals import INT64, LARGEST, Interval
from .dates import shifted
from .mathematics import cut
from .operands import (
    MANY,
    Loose,
    Reader,
    Rule,
    as_number,
    as_real,
    certain,
    interval,
    literal_number,
    reals,
    wholes,
    written_text,
)

ZERO = Fraction(0)
LEAST_INT = INT64[0]
ARITHMETIC: dict[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}


def literal(node: exp.Literal, _: Reader) -> Typed:
    if node.is_string:
        text = written_text(node)
        return Typed(trees.text(text), Kind("text", values=(text,), nullable=False))
    return number(literal_number(node), whole=node.name.isdigit())


def number(value: Fraction, *, whole: bool) -> Typed:
    """A constant. Digits alone are whole; a point or an exponent makes a real, as do too many digits."""
    if whole and INT64[0] <= value <= INT64[1]:
        kind = Kind("whole", value, value, values=(int(value),), nullable=False)
        return Constant(trees.whole(int(value)), kind, value)
    kind = Kind("real", value, value, values=(float(value),), nullable=False, places=places_of(value))
    return Constant(trees.real(value), kind, value)


def _folded(compute: Callable[[Any, Any], Any], left: Typed, right: Typed, *, whole: bool) -> Typed | None:
    """The result for two constants, exactly; None where it is beyond all doubles."""
    if not isinstance(left, Constant) or not isinstance(right, Constant):
        return None
    value = compute(left.value, right.value)
    whole = whole and left.kind.is_whole and right.kind.is_whole
    return number(value, whole=whole) if abs(value) <= LARGEST else None


def negative(node: exp.Neg, read: Reader) -> Typed:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(-literal_number(node.this), whole=node.this.name.isdigit())
    found = read.number(node.this, loose=True)
    if isinstance(found, Constant):
        return number(-found.value, whole=found.kind.is_whole)
    tree = exp.Neg(this=trees.wrapped(_no_least(found)))
    bounds = -interval(found.kind)
    if found.kind.is_whole:
        return Typed(tree, wholes(bounds, _mapped(operator.neg, found)))
    if found.kind.places is not None:
        ends = -Interval(found.kind.lower, found.kind.upper)
        kind = replace(reals(ends), nullable=found.kind.nullable, places=found.kind.places)
        return Exact(tree, kind, found.width) if isinstance(found, Exact) else Typed(tree, kind)
    return (Loose if isinstance(found, Loose) else Typed)(tree, reals(bounds))


def arithmetic(node: exp.Expression, read: Reader) -> Typed:
    """+, - and *."""
    left, right = read.loose(node.this), read.loose(node.expression)
    if {left.kind.type, right.kind.type} & {"date", "moment", "span"}:
        return shifted(node, left, right)
    left, right = as_number(left, node.this), as_number(right, node.expression)
    compute = ARITHMETIC[type(node)]
    exactly = _folded(compute, left, right, whole=True) or computed(type(node), compute, left, right)
    if exactly is not None:
        return exactly
    bounds = compute(interval(left.kind), interval(right.kind))
    sure: Interval = compute(certain(left.kind), certain(right.kind))
    if left.kind.is_whole and right.kind.is_whole and sure.int64:
        tree = trees.binary(type(node), left.tree, right.tree)
        kind = wholes(bounds, _combined(compute, left, right))
        return Typed(tree, replace(kind, nullable=left.kind.nullable or right.kind.nullable))
    return _real(trees.binary(type(node), as_real(left), as_real(right)), bounds, sure, left, right)


def division(node: exp.Div, read: Reader) -> Typed:
    """/ divides reals. By 0 it gives NULL."""
    left, right = read.number(node.this, loose=True), read.number(node.expression, loose=True)
    if isinstance(right, Constant) and right.value == 0:
        return _quotient(left, right)
    return _folded(operator.truediv, left, right, whole=False) or _quotient(left, right)


def _quotient(left: Typed, right: Typed) -> Typed:
    whole = right.kind.is_whole
    bounds = interval(left.kind).over(interval(right.kind), whole=whole)
    sure = certain(left.kind).over(certain(right.kind), whole=whole)
    return _real(trees.divided(as_real(left), _divisor(right, real=True)), bounds, sure, left, right)


def whole_division(node: exp.IntDiv, read: Reader) -> Typed:
    """// divides and cuts off towards 0. By 0 it gives NULL."""
    left, right = read.number(node.this), read.number(node.expression)
    if left.kind.is_whole and right.kind.is_whole:
        bounds = interval(left.kind).over(interval(right.kind), whole=True).monotone(math.trunc)
        tree = trees.binary(exp.IntDiv, _no_least(left, right), _divisor(right))
        return Typed(tree, wholes(bounds, _combined(_trunc_div, left, right)))
    return cut(_quotient(left, right), lambda tree: call("cut", tree), math.trunc)


def remainder(node: exp.Mod, read: Reader) -> Typed:
    """% has the sign of the dividend. By 0 it gives NULL."""
    left, right = read.number(node.this), read.number(node.expression)
    one, other = interval(left.kind).magnitude().upper, interval(right.kind).magnitude().upper
    whole = left.kind.is_whole and right.kind.is_whole
    other = max(other - 1, ZERO) if whole and other is not None else other
    most = min((each for each in (one, other) if each is not None), default=None)
    least = None if most is None else -most
    bounds = Interval(
        ZERO if interval(left.kind).holds_no_less(0) else least,
        ZERO if (-interval(left.kind)).holds_no_less(0) else most,
    )
    if whole:
        tree = trees.binary(exp.Mod, _no_least(left, right), _divisor(right))
        return Typed(tree, wholes(bounds, _combined(_trunc_mod, left, right)))
    return Typed(trees.binary(exp.Mod, as_real(left), _divisor(right, real=True)), reals(bounds.floats()))


def absolute(node: exp.Abs, read: Reader) -> Typed:
    found = read.number(node.this)
    bounds = interval(found.kind).magnitude()
    kind = wholes(bounds, _mapped(abs, found)) if found.kind.is_whole else reals(bounds)
    return Typed(exp.Abs(this=_no_least(found)), kind)


def _real(tree: exp.Expression, bounds: Interval, sure: Interval, left: Typed, right: Typed) -> Typed:
    """The result of a float operation: known to be finite, or loose."""
    kind = reals(bounds.floats())
    safe = sure.floats().bounded and not isinstance(left, Loose) and not isinstance(right, Loose)
    return Typed(tree, kind) if safe else Loose(tree, kind)


def _divisor(found: Typed, *, real: bool = False) -> exp.Expression:
    tree = as_real(found) if real else found.tree
    if not certain(found.kind).holds(0):
        return tree
    return trees.nonzero(tree, trees.real(0.0) if real or found.kind.is_real else trees.whole(0))


def _no_least(found: Typed, divisor: Typed | None = None) -> exp.Expression:
    """A whole whose negative, absolute value or quotient by -1 fits: NULL instead of -2^63, where that may come."""
    if not found.kind.is_whole or not certain(found.kind).holds(LEAST_INT):
        return found.tree
    if divisor is not None and not certain(divisor.kind).holds(-1):
        return found.tree
    return exp.Nullif(this=found.tree, expression=trees.whole(LEAST_INT))


def _mapped(compute: Callable[[int], int], found: Typed) -> list[int] | None:
    """Listed values through a function; None where they are not listed."""
    return None if found.kind.values is None else [compute(each) for each in found.kind.values if each != LEAST_INT]


def _combined(compute: Callable[[int, int], int | None], left: Typed, right: Typed) -> list[int] | None:
    ones, others = left.kind.values, right.kind.values
    if ones is None or others is None or len(ones) * len(others) > 10 * MANY:
        return None
    results = (compute(one, other) for one in ones for other in others)
    return [each for each in results if each is not None]


def _trunc_div(one: int, other: int) -> int | None:
    return None if other == 0 else math.trunc(Fraction(one, other))


def _trunc_mod(one: int, other: int) -> int | None:
    return None if other == 0 else (abs(one) % abs(other)) * (1 if one >= 0 else -1)


RULES: dict[type[exp.Expression], Rule] = {
    exp.Literal: literal,
    exp.Neg: negative,
    exp.Add: arithmetic,
    exp.Sub: arithmetic,
    exp.Mul: arithmetic,
    exp.Div: division,
    exp.IntDiv: whole_division,
    exp.Mod: remainder,
    exp.Abs: absolute,
}
