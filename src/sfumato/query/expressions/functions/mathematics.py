"""Rounding, roots, logarithms, powers and bins. What has no finite result is NULL.

Rounding a real whose interval is known gives a whole number, with its values listed where they are few: they can be
the public keys of a GROUP BY, as in FLOOR(age / 10) * 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from ....sources.vocabulary import call
from ...kinds import Kind, Typed
from ...refusal import QueryError
from .. import trees
from ..decimals import shared_places
from ..intervals import LARGEST, Interval, power
from .operands import MANY, Loose, Reader, Rule, as_real, certain, constant, constant_whole, interval, reals, wholes

ZERO, ONE = Fraction(0), Fraction(1)
SMALLEST = Fraction(math.ulp(0.0))


def sign(node: exp.Sign, read: Reader) -> Typed:
    operand = read.number(node.this)
    bounds = interval(operand.kind)
    low, high = (0 if bounds.holds_no_less(0) else -1), (0 if (-bounds).holds_no_less(0) else 1)
    return Typed(trees.cast(exp.Sign(this=operand.tree), "BIGINT"), wholes(Interval(Fraction(low), Fraction(high))))


def floor(node: exp.Floor, read: Reader) -> Typed:
    _no_more(node, "decimals", "to")
    return cut(read.number(node.this), lambda tree: exp.Floor(this=tree), math.floor)


def ceil(node: exp.Ceil, read: Reader) -> Typed:
    _no_more(node, "decimals", "to")
    return cut(read.number(node.this), lambda tree: exp.Ceil(this=tree), math.ceil)


def trunc(node: exp.Trunc, read: Reader) -> Typed:
    _no_more(node, "decimals")
    return cut(read.number(node.this), lambda tree: call("cut", tree), math.trunc)


def rounded(node: exp.Round, read: Reader) -> Typed:
    """Half away from 0. ROUND(x, -1) rounds to tens."""
    _no_more(node, "truncate", "casts_non_integer_decimals")
    operand = read.number(node.this)
    given = node.args.get("decimals")
    places = 0 if given is None else constant_whole(given, "The number of decimals", "ROUND(x, 2)", -15, 15)
    scale = 10 ** abs(places)
    if operand.kind.is_whole and places >= 0:
        return operand
    digits = exp.Literal.number(places)
    if places > 0:
        # The engine computes round(x * scale) / scale: three monotone steps, the outer two rounded to floats. An x so
        # large that x * scale overflows stays as it is.
        times = interval(operand.kind).monotone(lambda x: x * scale).floats()
        bounds = times.monotone(lambda x: _half_away(x) / scale).floats()
        tree: exp.Expression = exp.Round(this=operand.tree, decimals=digits)
        if not bounds.bounded:
            return Typed(trees.finite(tree), reals(bounds))
        # Of up to 15 digits the quotient is the double nearest to a decimal.
        return Typed(tree, replace(reals(bounds), places=shared_places([Kind("real", places=places)], bounds)))
    if operand.kind.is_whole:
        near = _to_multiple(scale)
        if certain(operand.kind).monotone(near).int64:
            tree = exp.Round(this=operand.tree, decimals=digits)
            return Typed(tree, wholes(interval(operand.kind).monotone(near), step=scale))
        operand = Typed(as_real(operand), reals(interval(operand.kind).floats()))
    return cut(operand, lambda tree: exp.Round(this=tree, decimals=digits), _to_multiple(scale, floats=True), scale)


def root(node: exp.Sqrt, read: Reader) -> Typed:
    """NULL for negative numbers."""
    operand = read.number(node.this)
    bounds = interval(operand.kind).within(ZERO, None)
    tree = exp.Sqrt(this=_only(operand, exp.GTE))
    high = None if bounds.upper is None else max(bounds.upper, ZERO)
    return Typed(tree, reals(Interval(ZERO, high).library(math.sqrt)))


def logarithm(node: exp.Expression, read: Reader) -> Typed:
    """LN, LOG (to base 10), LOG(base, x), LOG10 and LOG2; NULL for what is not positive."""
    if isinstance(node, exp.Ln):
        return _log(read.number(node.this), "natural_log", math.log)
    if node.args.get("expression") is None:
        return _log(read.number(node.this), "decimal_log", math.log10)
    base = constant(node.this, "The base of a logarithm", "LOG(2, x)")
    if float(base) <= 0 or float(base) == 1:
        raise QueryError("The base of a logarithm is positive and not 1.", "write LOG(2, x)", node)
    operand = read.number(node.expression)
    if base in (2, 10):
        return _log(operand, "binary_log", math.log2) if base == 2 else _log(operand, "decimal_log", math.log10)
    natural, divisor = _log(operand, "natural_log", math.log), Fraction(math.log(float(base)))
    bounds = interval(natural.kind).over(Interval(divisor, divisor)).floats()
    return Typed(trees.divided(natural.tree, trees.real(divisor)), reals(bounds))


def exponential(node: exp.Exp, read: Reader) -> Typed:
    operand = read.number(node.this)
    bounds = certain(operand.kind).library(math.exp)
    kind = reals(Interval(max(bounds.lower or ZERO, ZERO), bounds.upper))
    tree = exp.Exp(this=as_real(operand))
    return Typed(tree if bounds.upper is not None else trees.finite(tree), kind)


def to_power(node: exp.Pow, read: Reader) -> Typed:
    """Always a real; NULL where there is no finite real result."""
    base, exponent = read.number(node.this), read.number(node.expression)
    bounds = power(interval(base.kind), interval(exponent.kind))
    tree = exp.Pow(this=as_real(base), expression=as_real(exponent))
    return Typed(tree if bounds.bounded else trees.finite(tree), reals(bounds))


def bucket(node: exp.WidthBucket, read: Reader) -> Typed:
    """WIDTH_BUCKET(x, low, high, n): 1 to n for n equal bins of [low, high), 0 below, n + 1 from high on."""
    example = "WIDTH_BUCKET(x, 0, 100, 10)"
    ends = [node.args.get(each) for each in ("min_value", "max_value", "num_buckets")]
    if any(each is None for each in ends):
        raise QueryError("WIDTH_BUCKET needs a number, two ends and a number of bins.", f"write {example}", node)
    low, high = (constant(each, "An end of the bins", example) for each in ends[:2] if each is not None)
    bins = constant_whole(ends[2], "The number of bins", example, 1, MANY - 2)  # type: ignore[arg-type]
    if not float(low) < float(high):
        raise QueryError("The lower end of the bins is not below the upper.", f"write {example}", node)
    operand = read.number(node.this)
    low_tree, width = trees.real(low), trees.real(Fraction(float(high)) - Fraction(float(low)))
    share = trees.divided(trees.binary(exp.Sub, as_real(operand), low_tree.copy()), width)
    place = trees.nearest_or_null(exp.Floor(this=trees.binary(exp.Mul, share, trees.real(bins))), "BIGINT")
    # The share of an x just below high may round to 1, and still belongs to the last bin. x is not NULL in this branch.
    inside = call("least_present", trees.whole(bins), trees.binary(exp.Add, trees.whole(1), place))
    x, end = as_real(operand), trees.real(high)
    tree = trees.cases(
        [
            (trees.binary(exp.LT, x.copy(), low_tree), trees.whole(0)),
            (trees.binary(exp.LT, x.copy(), end), inside),
            (trees.binary(exp.GTE, x.copy(), end.copy()), trees.whole(bins + 1)),
        ]
    )
    return Typed(tree, wholes(Interval(ZERO, Fraction(bins + 1))))


def cut(
    operand: Typed,
    build: Callable[[exp.Expression], exp.Expression],
    image: Callable[[Fraction], int | Fraction],
    step: int = 1,
) -> Typed:
    """A real cut to whole numbers: BIGINT where they fit, else still a real. `image` never falls."""
    if operand.kind.is_whole:
        return operand
    loose = isinstance(operand, Loose)
    bounds = interval(operand.kind).monotone(image)
    if bounds.int64:
        return Typed(trees.nearest_or_null(build(operand.tree), "BIGINT"), wholes(bounds, step=step))
    tree = build(operand.tree)
    return Typed(trees.finite(tree) if loose or step > 1 else tree, reals(bounds.floats()))


def _log(operand: Typed, name: str, compute: Callable[[float], float]) -> Typed:
    """All positive floats have logarithms of modest size, so the result is finite and bounded."""
    tree = call(name, _only(operand, exp.GT))
    within = interval(operand.kind).within(SMALLEST, LARGEST)
    assert within.lower is not None and within.upper is not None
    if within.lower > within.upper:  # never positive: always NULL
        within = Interval(ONE, ONE)
    return Typed(tree, reals(within.library(compute)))


def _only(operand: Typed, comparison: type[exp.Expression]) -> exp.Expression:
    """The number as a real, NULL where it does not compare with 0 as it must."""
    bounds = certain(operand.kind)
    tree = as_real(operand)
    strict = comparison is exp.GT
    if bounds.lower is not None and (bounds.lower > 0 or (not strict and bounds.lower >= 0)):
        return tree
    return trees.when(trees.binary(comparison, tree.copy(), trees.real(0.0)), tree)


def _half_away(number: Fraction) -> Fraction:
    return Fraction(math.floor(abs(number) + Fraction(1, 2))) * (1 if number >= 0 else -1)


def _to_multiple(step: int, *, floats: bool = False) -> Callable[[Fraction], Fraction]:
    """To the nearest multiple; the engine divides reals by the step first, and rounds that to a float."""
    return lambda number: _half_away(Fraction(float(number / step)) if floats else number / step) * step


def _no_more(node: exp.Expression, *names: str) -> None:
    if any(node.args.get(each) is not None for each in names):
        raise QueryError(f"{node.sql_name()} takes one number here.", "use ROUND(x, decimals)", node)  # type: ignore[attr-defined]


RULES: dict[type[exp.Expression], Rule] = {
    exp.Sign: sign,
    exp.Floor: floor,
    exp.Ceil: ceil,
    exp.Trunc: trunc,
    exp.Round: rounded,
    exp.Sqrt: root,
    exp.Ln: logarithm,
    exp.Log: logarithm,
    exp.Exp: exponential,
    exp.Pow: to_power,
    exp.WidthBucket: bucket,
}
