"""Sums, averages and variances that do not depend on the order of rows: exact integers inside, rounded at the end.

A sum of doubles depends on the order in which the engine's threads meet the rows, so another unit's rows could move it.
Here a real x becomes whole steps of a power of two, chosen from its public interval alone, and integers are summed.

Nothing overflows: every term is a BIGINT of at most 2^63 in size, there are fewer than 2^63 rows, and the exact sum of
BIGINTs is an INT128, which holds 2^127 - 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from ...sources.vocabulary import call
from ..expressions import trees
from ..expressions.decimals import as_exact
from ..expressions.intervals import INT64
from ..expressions.likely import of_sum
from ..kinds import Kind, Typed
from ..refusal import QueryError

Over = Callable[[exp.Expression], exp.Expression]
"""Makes an aggregate one over the group (as it is) or over a window."""

REACH = 62
"""Reals without known bounds are clamped to [-2^62, 2^62] before they are summed, and kept to steps of 2^-62."""

_FINE = 16  # intervals within 2^16 have steps of at most 2^-46; wider ones keep what is left over too
_LARGEST = 900  # reals beyond 2^900 are clamped to it, so that the sum of 2^63 of them is still a finite double
_SPAN = Fraction(2) ** 400  # the widest interval whose squares have a finite sum


def as_is(aggregate: exp.Expression) -> exp.Expression:
    return aggregate


def count(x: Typed, over: Over = as_is) -> exp.Expression:
    return over(exp.Count(this=x.tree.copy(), big_int=True))


def total(x: Typed, over: Over = as_is) -> Typed:
    """SUM: of wholes a BIGINT (held at the ends of its range), of reals a DOUBLE; NULL where there is no value."""
    lower = Fraction(0) if x.kind.lower is not None and x.kind.lower >= 0 else None
    upper = Fraction(0) if x.kind.upper is not None and x.kind.upper <= 0 else None
    if x.kind.is_whole:
        added = over(call("exact_sum", x.tree.copy()))
        low, high = (_wide(trees.whole(end)) for end in INT64)
        return Typed(trees.cast(_held(added, low, high), "BIGINT"), Kind("whole", lower, upper, likely=of_sum(x.kind)))
    return Typed(_real_total(x, over), Kind("real", lower, upper, likely=of_sum(x.kind)))


def mean(x: Typed, over: Over = as_is) -> Typed:
    """AVG, within the interval of x; NULL where there is no value."""
    whole = x.kind.is_whole
    added = trees.cast(over(call("exact_sum", x.tree.copy())), "DOUBLE") if whole else _real_total(x, over)
    ratio = trees.divided(added, trees.cast(_nonzero(count(x, over)), "DOUBLE"))
    return Typed(_within(ratio, x.kind), Kind("real", x.kind.lower, x.kind.upper, likely=x.kind.likely))


def variance(x: Typed, node: exp.Expression, *, sample: bool, root: bool) -> Typed:
    """VARIANCE or STDDEV over a group. Values are kept to 2^-31 of the half-width of their interval.

    With q whole, n of them, b = sum q = mn + r: sum (q - b/n)^2 = sum q^2 - m(b + r) - r^2/n. |q| <= 2^31 and |r| < n,
    so the integers stay under 2^126; only r^2/n, which is under n, is rounded.
    """
    q, step, span = _coarse(x, node)
    n = _wide(exp.Count(this=q.copy(), big_int=True))
    b, squares = call("exact_sum", q.copy()), call("exact_sum", trees.binary(exp.Mul, q.copy(), q.copy()))
    m, r = trees.binary(exp.IntDiv, b.copy(), _nonzero(n)), trees.binary(exp.Mod, b.copy(), _nonzero(n))
    near = trees.binary(exp.Sub, squares, trees.binary(exp.Mul, m, trees.binary(exp.Add, b.copy(), r)))
    square = exp.Pow(this=trees.cast(r.copy(), "DOUBLE"), expression=trees.real(2.0))
    rest = trees.divided(square, trees.cast(_nonzero(n), "DOUBLE"))
    others = trees.binary(exp.Sub, n.copy(), exp.Literal.number(1)) if sample else n.copy()
    spread = trees.binary(exp.Sub, trees.cast(near, "DOUBLE"), rest)
    share = trees.divided(spread, trees.cast(_nonzero(others), "DOUBLE"))
    inner = trees.binary(exp.Mul, share, trees.real(step * step))
    # A sample variance is at most half the squared width of the interval. NULLs are passed over there, so the CASE.
    least = call("least_present", inner, trees.real(span * span))
    held = call("greatest_present", least, trees.real(0.0))
    enough = trees.binary(exp.GT, n.copy(), exp.Literal.number(1 if sample else 0))
    tree = trees.when(enough, exp.Sqrt(this=held) if root else held)
    return Typed(tree, Kind("real", Fraction(0), span if root else span * span))


def _real_total(x: Typed, over: Over) -> exp.Expression:
    if (decimal := as_exact(x)) is not None:  # of up to 15 digits: a sum of 2^63 of them has 34, and the type 38
        return trees.cast(over(call("exact_sum", decimal.tree)), "DOUBLE")
    parts = [
        trees.binary(exp.Mul, trees.cast(over(call("exact_sum", steps)), "DOUBLE"), trees.real(size))
        for steps, size in _steps(x)
    ]
    return parts[0] if len(parts) == 1 else trees.binary(exp.Add, parts[0], parts[1])


def _steps(x: Typed) -> list[tuple[exp.Expression, float]]:
    """x as BIGINTs of at most 2^62, each with the size of its step; together they are x, but for one rounding."""
    power = REACH
    if x.kind.lower is not None and x.kind.upper is not None:
        power = _power(max(abs(x.kind.lower), abs(x.kind.upper)))
    steps = _scaled(x.tree, power, REACH - power)
    nearest, size = trees.nearest(steps, "BIGINT"), math.ldexp(1.0, power - REACH)
    if power <= _FINE:
        return [(nearest, size)]
    # What the first rounding left over, at most half a step, in steps of its own; the difference is exact.
    rest = trees.binary(exp.Sub, steps.copy(), trees.cast(nearest.copy(), "DOUBLE"))
    finer = trees.nearest(trees.binary(exp.Mul, rest, trees.real(2.0**REACH)), "BIGINT")
    return [(nearest, size), (finer, math.ldexp(size, -REACH))]


def _coarse(x: Typed, node: exp.Expression) -> tuple[exp.Expression, float, Fraction]:
    """x less the middle of its interval as a BIGINT of at most 2^31, the size of its step, the interval's width."""
    if x.kind.lower is None or x.kind.upper is None:
        raise QueryError(
            "The variance of numbers without known bounds cannot be computed exactly.",
            "bound them, such as VARIANCE(LEAST(GREATEST(x, 0), 100))",
            node,
        )
    middle, span = (x.kind.lower + x.kind.upper) / 2, min(x.kind.upper - x.kind.lower, _SPAN)
    if x.kind.is_whole and span < 2**31:
        return trees.binary(exp.Sub, x.tree.copy(), trees.whole(math.floor(middle))), 1.0, span
    power = _power(span / 2)
    away = trees.binary(exp.Sub, trees.cast(x.tree.copy(), "DOUBLE"), trees.real(_double(middle)))
    return trees.nearest(_scaled(away, power, 31 - power), "BIGINT"), math.ldexp(1.0, power - 31), span


def _power(size: Fraction) -> int:
    """The least p with size <= 2^p, within what doubles hold."""
    if size == 0:
        return 0
    p = size.numerator.bit_length() - size.denominator.bit_length() - 1
    while Fraction(2) ** p < size:
        p += 1
    return max(min(p, _LARGEST), -_LARGEST)


def _scaled(tree: exp.Expression, power: int, finer: int) -> exp.Expression:
    """x clamped to +-2^power, times 2^finer, which is exact."""
    end = math.ldexp(1.0, power)
    held = _held(tree, trees.real(-end), trees.real(end))
    return trees.binary(exp.Mul, held, trees.real(math.ldexp(1.0, finer)))


def _within(tree: exp.Expression, kind: Kind) -> exp.Expression:
    if kind.lower is None or kind.upper is None:
        return tree
    return _held(tree, trees.real(_double(kind.lower)), trees.real(_double(kind.upper)))


def _double(value: Fraction) -> float:
    largest = Fraction(2) ** _LARGEST
    return float(max(min(value, largest), -largest))


def _held(tree: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """Clamped; NULL stays NULL (the least and greatest of those present would skip it)."""
    below, above = trees.binary(exp.LT, tree.copy(), low.copy()), trees.binary(exp.GT, tree.copy(), high.copy())
    return trees.cases([(below, low), (above, high)], tree.copy())


def _nonzero(tree: exp.Expression) -> exp.Expression:
    """A divisor that is NULL where it would be 0: the engine raises on some divisions by 0."""
    return trees.nonzero(tree.copy(), exp.Literal.number(0))


def _wide(tree: exp.Expression) -> exp.Expression:
    """As an INT128."""
    return trees.cast(tree, "INT128")
