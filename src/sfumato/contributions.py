"""What bounds one unit, by name: the limits that a plan, its queries and its schema carry.

A class marks its limits where it declares them (`questions.REACH`, `questions.CLIP`). One whose limits are more than
numbers in its fields says them itself, in a method `_contribution_bounds(path)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from fractions import Fraction
from typing import Any

from . import questions

Bound = dict[str, Any]
"""Where it stands ("of"), what carries it ("kind", "column"), its limits by name, and, where these do not speak for
themselves, a sentence about them ("words")."""
WORDS = "words"


def clamped(name: str, lower: Any, upper: Any) -> Bound:
    """The sentence about a column that many questions may use, or none."""
    return {WORDS: f"{name}, where it is added up or ranked, is clamped to {lower} ... {upper}"}


_PLAIN = (int, float, str, bool, Fraction, type(None))  # most of what fields hold, in which there is no bound


def within(value: Any, path: str = "") -> Iterator[Bound]:
    """The bounds in a value, each before those inside it."""
    if type(value) in _PLAIN:
        return
    if hasattr(value, "_contribution_bounds"):
        yield from value._contribution_bounds(path)
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield from within(item, f"{path}[{place}]")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from within(item, joined(path, str(name)))
    elif is_dataclass(value):
        yield from of_fields(value, path)


def of_fields(value: Any, path: str) -> Iterator[Bound]:
    """The limits among a record's own fields, as one bound, and the bounds inside it."""
    kind: Any = type(value)
    yield from own(value, path, limits(value))
    for mark in questions.marks(kind):
        if not mark.live:
            yield from within(getattr(value, mark.name), joined(path, mark.name))


def limits(value: Any) -> dict[str, Any]:
    """The limits among a record's own fields, by name."""
    kind: Any = type(value)
    named = {mark.name: scalar(getattr(value, mark.name)) for mark in questions.marks(kind) if mark.limit}
    return {name: limit for name, limit in named.items() if limit is not None}


def own(value: Any, path: str, limits: Mapping[str, Any]) -> Iterator[Bound]:
    """A record's own bound, where it has limits."""
    if limits:
        column = getattr(value, "column", None)
        where = {"column": column} if isinstance(column, str) else {}
        yield {"of": path or "plan", "kind": getattr(type(value), "kind", None), **where, **limits}


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def scalar(value: Any) -> Any:
    """A number (exact ones as text), a word or a truth value; None for anything larger."""
    if isinstance(value, Fraction):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None
