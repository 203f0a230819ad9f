"""What a record asks, without price and noise: the value that tells whether two plans ask the same.

A field is part of the question, to the letter, unless its class marks it otherwise where it declares it:

    epsilon: Exact = field(metadata=PRICE)

    PRICE    no part of the question: price and noise, who is protected, how the answer is computed, tidied and labelled
    REACH    the same, and it bounds what one unit can do: rows per unit
    CLIP     bounds what one unit can do, and says roughly what is asked: one significant digit counts
    COARSE   numbers of which one significant digit counts
    FINE     numbers that choose rows or cells: whole ones count in full, others by four digits
    ANY_ORDER  the same, in a list whose order says nothing

So a field that nobody thought of makes two plans different questions: a new mechanism is never "the same as before" by
accident. A record that asks what another one asks says so itself, in a method `asks`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from . import record

_PART, _LIMIT = "part of the question", "limit"
PRICE = {_PART: "none"}
REACH = {_PART: "none", _LIMIT: True}
CLIP = {_PART: "roughly", _LIMIT: True}
COARSE = {_PART: "roughly"}
FINE = {_PART: "nearly"}
ANY_ORDER = {_PART: "in any order"}

_ONE_DIGIT = Context(prec=1, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FOUR_DIGITS = Context(prec=4, Emax=MAX_EMAX, Emin=MIN_EMIN)


class Mark(NamedTuple):
    """What a class says of one of its fields."""

    name: str
    part: str  # "all" where nothing is said
    limit: bool
    live: bool


@lru_cache(maxsize=1024)
def marks(cls: type) -> tuple[Mark, ...]:
    """Of every field that is stored, in the order of their names."""
    stored = (f for f in fields(cls) if f.init and not f.metadata.get("shown"))
    return tuple(
        Mark(f.name, f.metadata.get(_PART, "all"), bool(f.metadata.get(_LIMIT)), bool(f.metadata.get("live")))
        for f in sorted(stored, key=lambda f: f.name)
    )


def word(cls: type) -> str:
    """The registered name of a record, without its version."""
    return str(getattr(cls, "kind", cls.__name__)).partition("/")[0]


def of_fields(value: Any) -> dict[str, Any]:
    """The question of a record: its name, and of its fields whatever they say."""
    kind: Any = type(value)
    question: dict[str, Any] = {"is": word(kind)}
    later = _later(kind)
    for name, part, _, live in marks(kind):
        item = getattr(value, name)
        if part == "none" or (name in later and item == later[name]):
            continue
        if live and item is not None:
            question[name] = {"is": "live", "fingerprint": record.fingerprint(item)}
            continue
        answer = of(item, part)
        question[name] = in_order(answer) if part == "in any order" and isinstance(answer, list) else answer
    return question


@lru_cache(maxsize=1024)
def _later(cls: type) -> Mapping[str, Any]:
    """Fields that came after the first stored record, with their defaults: there they change no question of before."""
    return {f.name: f.default for f in fields(cls) if f.metadata.get("later")}


def of(value: Any, part: str = "all") -> Any:
    """The same for any value of a field: numbers as rounded text, so that 1, 1.0 and an exact 1 are one."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int or type(value) is Fraction:
        return [_number(value.numerator, value.denominator, part)]
    if isinstance(value, np.generic):
        return of(value.item(), part)
    if isinstance(value, int | float | Fraction):
        return number(Fraction(repr(value)) if isinstance(value, float) else Fraction(value), part)
    if isinstance(value, tuple | list):
        return [of(item, part) for item in value]
    if isinstance(value, Mapping):
        return in_order([of(key, "nearly"), of(item, part)] for key, item in value.items())
    if hasattr(value, "asks"):
        return value.asks()
    return of_fields(value) if is_dataclass(value) else record.encode(value)


def number(value: Fraction, part: str = "all") -> list[str]:
    """A number as text; in a list, so that no text of a field is one."""
    return [_number(value.numerator, value.denominator, part)]


@lru_cache(maxsize=4096)  # a workload has tens of thousands of numbers, and few different ones
def _number(numerator: int, denominator: int, part: str) -> str:
    if denominator == 1 and part != "roughly":
        rounded = Decimal(numerator)
    else:
        context = _ONE_DIGIT if part == "roughly" else _FOUR_DIGITS
        rounded = context.divide(Decimal(numerator), Decimal(denominator))
        value = Fraction(numerator, denominator)
        if part == "all" and Fraction(rounded) != value:
            return str(value)
    sign, digits, exponent = rounded.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    bare = text.rstrip("0")
    if not bare:
        return "0"
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{bare}e{exponent + len(text) - len(bare)}"


def in_order(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=written)


def listed(questions: Iterable[Any]) -> list[Any]:
    """Several questions, each once, in the one order."""
    by_text = {written(question): question for question in questions}
    return [by_text[text] for text in sorted(by_text)]


def written(question: Any) -> str:
    """The one text of a question."""
    return json.dumps(question, sort_keys=True, separators=(",", ":"))


def digest(questions: Iterable[Any]) -> str:
    """SHA-256 of what a plan asks: equal for the same questions at other noise."""
    text = "\n".join(sorted({written(question) for question in questions}))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
