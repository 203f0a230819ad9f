"""Decimals: numbers of the query, and columns whose schema says how many decimals they have, computed with as SQL does.

Relations carry decimals as DOUBLEs. Those of up to 15 digits lose nothing on the way: k / 10^places is then the nearest
double, different decimals are different doubles, and comparing these compares the decimals. Only + - * round, so within
an expression they are done in the engine's DECIMAL, and the result becomes a DOUBLE once.

Why none of it raises: an operand enters by a cast that gives NULL where it fails, and has then at most `width` digits
by its type alone. A sum has one digit more than the wider operand, a product as many as both together. Beyond 18 digits
a result is cast to those that its interval leaves it, if these are fewer; what would need over 38 is done in DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ...schema import DIGITS
from ..kinds import Kind, Typed
from . import trees
from .intervals import SLACK, Interval

WIDEST = 38
"""Digits of the engine's widest DECIMAL."""
_FAST = 18  # up to here a DECIMAL is a 64-bit integer
_SCALES = 22  # 10^22 is the last power of ten that is a double


@dataclass(frozen=True)
class Constant(Typed):
    """A number that stands in the query, or is computed from such: `value` is it exactly, the tree its nearest double
    or whole number."""

    value: Fraction


@dataclass(frozen=True)
class Exact(Typed):
    """A number that the engine holds as DECIMAL(width, kind.places). Whoever reads it for more than + - * and
    comparisons gets its nearest double."""

    width: int


def places_of(value: Fraction) -> int | None:
    """How many places a decimal of up to 15 digits has; None where the number is none."""
    places = _places(value)
    return places if places is not None and _digits(abs(value), places) <= DIGITS else None


def _places(value: Fraction) -> int | None:
    """How many decimals a number has; None where they do not end."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 and max(twos, fives) <= _SCALES else None


def _digits(size: Fraction, places: int) -> int:
    """Of all numbers up to this size, written with so many places."""
    return max(len(str(-(-size.numerator * 10**places // size.denominator))), places, 1)


def digits_of(kind: Kind) -> int | None:
    """How many digits its values have at most; None where there are no bounds."""
    if kind.lower is None or kind.upper is None:
        return None
    return _digits(max(abs(kind.lower), abs(kind.upper)), kind.places or 0)


def as_double(found: Exact) -> Typed:
    """The double nearest to it; beyond 15 digits, one near to it."""
    tree = trees.cast(found.tree, "DOUBLE")
    digits = digits_of(found.kind)
    if digits is not None and digits <= DIGITS:
        return Typed(tree, found.kind)
    assert found.kind.lower is not None and found.kind.upper is not None
    slack = max(abs(found.kind.lower), abs(found.kind.upper)) * SLACK
    bounds = Interval(found.kind.lower - slack, found.kind.upper + slack).floats()
    return Typed(tree, Kind("real", bounds.lower, bounds.upper, nullable=found.kind.nullable))


def as_exact(found: Typed) -> Exact | None:
    """The number as a DECIMAL, where it is known to be one."""
    if isinstance(found, Exact):
        return found
    if isinstance(found, Constant):
        places = _places(found.value)
        width = None if places is None else _digits(abs(found.value), places)
        if places is None or width is None or width > WIDEST:
            return None
        kind = replace(found.kind, type="real", places=places, values=None)
        return Exact(trees.decimal(found.value, width, places), kind, width)
    kind, digits = found.kind, digits_of(found.kind)
    if digits is None or digits > DIGITS or (not kind.is_whole and kind.places is None):
        return None
    places = kind.places or 0
    exact = replace(kind, type="real", places=places, values=None, origin=None, unit=False)
    return Exact(trees.try_decimal(found.tree, digits, places), exact, digits)


def computed(node: type[exp.Expression], compute: Callable[[Any, Any], Any], left: Typed, right: Typed) -> Exact | None:
    """+, - or * in decimals, where both operands are some and the result fits."""
    if left.kind.is_whole and right.kind.is_whole:
        return None
    one, other = as_exact(left), as_exact(right)
    if one is None or other is None:
        return None
    bounds = compute(Interval(one.kind.lower, one.kind.upper), Interval(other.kind.lower, other.kind.upper))
    ones, others = one.kind.places or 0, other.kind.places or 0
    if node is exp.Mul:
        places, width = ones + others, one.width + other.width
    else:
        places = max(ones, others)
        width = max(one.width - ones, other.width - others) + places + 1
    if places > _SCALES or width > WIDEST:
        return None
    kind = Kind("real", bounds.lower, bounds.upper, nullable=left.kind.nullable or right.kind.nullable, places=places)
    first = one.tree
    if width > _FAST >= max(one.width, other.width):  # the engine makes no wider type of two narrow ones, and raises
        first = trees.try_decimal(first, _FAST + 1, ones)
    tree = trees.binary(node, first, other.tree)
    digits = digits_of(kind)
    if digits is not None and digits <= _FAST < width:  # narrow again, so that what is built on it fits and is fast
        return Exact(trees.try_decimal(tree, digits, places), kind, digits)
    return Exact(tree, kind, width)


def compared(operands: list[Typed]) -> list[Typed] | None:
    """Operands of a comparison as DECIMALs of one type, where doubles could not tell them apart; None where they can,
    or where not all are decimals."""
    if not any(isinstance(each, Exact) and (digits_of(each.kind) or WIDEST) > DIGITS for each in operands):
        return None
    exact = [as_exact(each) for each in operands]
    found = [each for each in exact if each is not None]
    places = max(each.kind.places or 0 for each in found)
    width = max(each.width - (each.kind.places or 0) for each in found) + places
    if len(found) < len(exact) or width > WIDEST:
        return None
    return [replace(each, tree=trees.try_decimal(each.tree, width, places), width=width) for each in found]


def shared_places(kinds: list[Kind], bounds: Interval) -> int | None:
    """The places that hold the values of all these kinds, which lie within the bounds."""
    counted = [0 if kind.is_whole else kind.places for kind in kinds]
    if None in counted or bounds.lower is None or bounds.upper is None:
        return None
    places = max(each for each in counted if each is not None)
    return places if _digits(max(abs(bounds.lower), abs(bounds.upper)), places) <= DIGITS else None
