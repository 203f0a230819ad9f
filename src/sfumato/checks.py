"""Validators of public arguments. Each names the argument, the value given and what is allowed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from .errors import ArgumentError, PrivacyWarning

Exact = Any
"""A field that takes any real number (0.1, Fraction(1, 3), Decimal("0.1")) and holds it as a Fraction."""

EPSILON_RANGE = (Fraction(1, 10**9), Fraction(10**4))
DELTA_LEAST = Fraction(1, 10**100)
MAGNITUDE = (Fraction(1, 10**100), Fraction(1e100))  # as decimals and as floats, 1e-100 and 1e100 are inside
WEAK_EPSILON = 10
VALUE = "value"  # the code of a refusal that names the argument, what was given and what is allowed


def refuse(name: str, value: Any, allowed: str) -> ArgumentError:
    """The error for one argument; the caller raises it."""
    shown = _shown(value)
    cause, fix = f"{name} = {shown if len(shown) <= 80 else shown[:77] + '...'} is not allowed", f"give {allowed}"
    return ArgumentError(f"{cause}: {fix}.", cause=cause, fix=fix, argument=name, code=VALUE)


def _shown(value: Any) -> str:
    """The value as Python prints it. Tables, arrays and lists of rows may be the data itself, in the wrong place: only
    their type."""
    kind = type(value).__name__
    if _is_table(value) or (
        isinstance(value, list | tuple) and any(_is_table(each) or isinstance(each, list | tuple) for each in value)
    ):
        return f"<{kind}>"
    try:
        return repr(value)
    except ValueError:  # Python does not print whole numbers of thousands of digits
        return f"<{kind} of thousands of digits>"
    except Exception:  # whatever a stranger's repr does
        return f"<{kind}>"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "__array__") and getattr(value, "ndim", None) != 0)


def rational(value: Any, name: str, allowed: str) -> Fraction:
    """An exact number. A float means the decimal it prints as: 0.1 is one tenth, so ten of them make exactly one."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise refuse(name, value, allowed)
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > 400:  # a huge exponent would fill the memory
            raise refuse(name, value, allowed)
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise refuse(name, value, allowed)
    return Fraction(repr(number))


def epsilon(value: Any, name: str = "epsilon", *, warn: bool = True, zero: bool = False) -> Fraction:
    """An epsilon of sane size; 0 only where a delta stands beside it."""
    low, high = EPSILON_RANGE
    allowed = (
        "0 or " if zero else ""
    ) + "a finite number from 1e-9 to 1e4 (0.1 is strong, 1 is usual, above 10 is weak)"
    number = rational(value, name, allowed)
    if zero and number == 0:
        return number
    if not low <= number <= high:
        raise refuse(name, value, allowed)
    if warn and number > WEAK_EPSILON:
        warnings.warn(
            f"{name} = {float(number):g} is weak: an attacker's odds may change by a factor of e^{float(number):g}. "
            "Most published guarantees stay at or below 10.",
            PrivacyWarning,
            stacklevel=4,
        )
    return number


def delta(value: Any, name: str = "delta", *, zero: bool = False) -> Fraction:
    allowed = ("0 or " if zero else "") + "a number above 0 (at least 1e-100) and below 1; well below 1/n for n people"
    number = rational(value, name, allowed)
    if zero and number == 0:
        return number
    if not DELTA_LEAST <= number < 1:
        raise refuse(name, value, allowed)
    return number


def positive(value: Any, name: str) -> Fraction:
    """A positive quantity of ordinary size (scales, multipliers, rho)."""
    low, high = MAGNITUDE
    allowed = "a finite number from 1e-100 to 1e100"
    number = rational(value, name, allowed)
    if not low <= number <= high:
        raise refuse(name, value, allowed)
    return number


def bound(value: Any, name: str) -> Fraction:
    """One end of an interval: finite, and zero or of ordinary size."""
    low, high = MAGNITUDE
    allowed = "0 or a finite number of magnitude 1e-100 to 1e100"
    number = rational(value, name, allowed)
    if number and not low <= abs(number) <= high:
        raise refuse(name, value, allowed)
    return number


def interval(lower: Any, upper: Any, lower_name: str = "lower", upper_name: str = "upper") -> tuple[Fraction, Fraction]:
    low, high = bound(lower, lower_name), bound(upper, upper_name)
    if low >= high:
        raise refuse(lower_name, lower, f"a number below {upper_name} = {upper!r}")
    return low, high


def whole(value: Any, name: str, *, least: int = 1, most: int = 2**53) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise refuse(name, value, f"a whole number from {least} to {most}")
    return int(value)


def one_of(value: Any, name: str, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise refuse(name, value, "one of " + ", ".join(map(repr, allowed)))
    return value


def instance(value: Any, kind: type[Any], name: str, allowed: str) -> None:
    if not isinstance(value, kind):
        raise refuse(name, value, allowed)


def label(value: Any, name: str) -> str:
    """A name that a person reads: not empty, printable, of sane length."""
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise refuse(name, value, "a printable text of 1 to 200 characters")
    return value


def distinct(values: Any, name: str, *, least: int = 1) -> tuple[Any, ...]:
    """A public list of keys or categories: text, whole numbers or booleans, all different, of one type."""
    allowed = f"a list of at least {least} different texts, whole numbers or booleans, all of one type"
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        raise refuse(name, values, allowed)
    items = tuple(v.item() if hasattr(v, "item") else v for v in values)
    kinds = {type(v) for v in items}
    if len(items) < least or len(kinds) > 1 or not kinds <= {str, int, bool} or len(set(items)) != len(items):
        raise refuse(name, values, allowed)
    return items


def texts(values: Any, name: str) -> tuple[str, ...]:
    """A tuple of names. One text is none: its letters would be taken for names."""
    if not isinstance(values, tuple) or not all(isinstance(each, str) for each in values):
        raise refuse(name, values, "a tuple of names, such as ('research',)")
    return values


def path(value: Any, name: str) -> str | Path:
    """Where a file is, or is to be."""
    if not isinstance(value, str | Path) or not str(value) or "\0" in str(value):
        raise refuse(name, value, "the path of a file")
    return value


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def waiting(value: Any, name: str) -> float:
    """Seconds to wait, up to a day."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86400:
        raise refuse(name, value, "a number of seconds from 0 to 86400")
    return float(value)


def library(name: str) -> Any:
    """A package that sfumato can do without, on first use."""
    try:
        return import_module(name)
    except ImportError:
        raise ArgumentError(f"{name} is not installed: pip install {name}, or use .rows or .to_csv().") from None
