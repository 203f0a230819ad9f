"""Which groups an answer has: given ones, those of a public table, or those that enough units share."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from .. import checks, times
from ..errors import ArgumentError
from ..sources.vocabulary import call
from .expressions import trees
from .kinds import FEW, MANY_DAYS, Kind, Typed
from .public_images import Image, PublicRows
from .refusal import QueryError

SELECT = "select"
"""keys={"ward": "select"}: choose groups privately even where they are public."""
MOST = 10**6
_LONG = 50
_SHOWN = 8  # values that a refusal lists
_BETWEEN = "\x1f"  # the separator of old: no text of a key holds it, or else the list is written out
_ORDER = (bool, int, float, str, datetime.date, datetime.datetime)


@dataclass(frozen=True)
class Key:
    """What the query groups by.

    values  given in public
    origin  (table, column) of a public table that holds them
    image   what they are made of, where that is public
    """

    name: str
    typed: Typed
    values: tuple[Any, ...] | None
    origin: tuple[str, str] | None
    image: Image | None = None

    @property
    def known(self) -> bool:
        return self.values is not None or self.origin is not None or self.image is not None


def keys_of(groups: Mapping[str, Typed], given: Mapping[str, Any]) -> tuple[Key, ...]:
    """Each key with what is known of it: `given` first, then what the schema or a public table says."""
    if unknown := sorted(set(given) - set(map(str.lower, groups))):
        instead = f"name what it groups by, {', '.join(map(repr, groups))}" if groups else "leave it out"
        raise ArgumentError(f"keys names {unknown[0]!r}, which is no group of the query: {instead}.")
    found = []
    for name, typed in groups.items():
        asked = given.get(name.lower())
        if asked == SELECT:
            found.append(Key(name, typed, None, None))
        elif asked is not None:
            found.append(Key(name, typed, _checked(asked, name, typed.kind), None))
        else:
            values, image = public_values(typed.kind), typed.kind.image
            most = 2 * (MANY_DAYS if values is not None else FEW)
            image = None if image is None or combinations_in(image.uses) > most else image
            found.append(Key(name, typed, values, typed.kind.origin, image))
    return _few_enough(found)


def combinations_in(uses: Mapping[str, PublicRows]) -> int:
    """How many there are of the values that the schema lists for these uses."""
    kinds = [use.listed for use in uses.values() if use.listed is not None]
    return math.prod(len(public_values(kind, MANY_DAYS) or ()) for kind in kinds)


def _few_enough(keys: Sequence[Key]) -> tuple[Key, ...]:
    """Without images that are made of lists alone, where together they might be more groups than an answer has: then
    the groups are chosen privately, as they were before there were images."""
    sizes = {key.name: combinations_in(key.image.uses) for key in keys if key.image is not None and _of_lists(key)}
    if math.prod(sizes.values()) <= MOST:
        return tuple(keys)
    return tuple(replace(key, image=None) if key.name in sizes else key for key in keys)


def _of_lists(key: Key) -> bool:
    """Is the schema all that says which groups there are, and only by an image?"""
    tables = [] if key.image is None else [use for use in key.image.uses.values() if use.tree is not None]
    return key.values is None and key.origin is None and not tables


def check_groups(keys: Sequence[Key]) -> None:
    """Refuse groups that no row can be in."""
    for key in keys:
        if key.values is None or key.typed.kind.values is None:
            continue
        known = set(map(label, key.typed.kind.values))
        for strange in (each for each in key.values if label(each) not in known):
            some = ", ".join(map(repr, key.typed.kind.values[:_SHOWN]))
            more = ", ..." if len(key.typed.kind.values) > _SHOWN else ""
            raise checks.refuse(f"keys of {key.name}", strange, f"values that {key.name} can have: {some}{more}")


def refuse_many(sizes: Iterable[int]) -> None:
    """Refuse more groups than an answer has: every combination of so many values."""
    if math.prod(sizes) > MOST:
        raise QueryError(
            f"There are more than {MOST} combinations of the groups.",
            "group by fewer columns, or name the groups that are wanted, or have them chosen privately "
            "(keys={'column': 'select'})",
        )


def public_values(kind: Kind, most: int = FEW) -> tuple[Any, ...] | None:
    """All values, where the schema tells them and they are few: categories, small whole numbers, the days of a year."""
    if kind.values is not None or not kind.listable(most):
        return kind.values
    assert kind.lower is not None and kind.upper is not None
    numbers = range(int(kind.lower), int(kind.upper) + 1)
    return tuple(times.read(each, "date") for each in numbers) if kind.is_date else tuple(numbers)


def _checked(values: Any, name: str, kind: Kind) -> tuple[Any, ...]:
    listed = tuple(values) if isinstance(values, list | tuple) else None
    if listed is not None and kind.temporal:
        listed = tuple(_moment(each, name, kind.type) for each in listed)
    if not listed:
        raise checks.refuse(f"keys of {name}", type(values).__name__, "a list of different values, or 'select'")
    for each in listed:
        if not isinstance(each, _ORDER) or (isinstance(each, float) and not math.isfinite(each)):
            raise checks.refuse(f"keys of {name}", each, "texts, numbers, dates or truth values")
    found = tuple(_typed(each, name, kind.type) for each in listed)
    if len(set(map(label, found))) != len(found):
        raise checks.refuse(f"keys of {name}", type(values).__name__, "a list of different values, or 'select'")
    return found


def _typed(value: Any, name: str, type: str) -> Any:
    """A given value as what the column holds, so that the engine can compare them."""
    written = label(value)
    if type == "text":
        return written
    if type == "flag":
        if written.lower() not in ("true", "false"):
            raise checks.refuse(f"keys of {name}", value, "truth values")
        return written.lower() == "true"
    if type in ("whole", "real"):
        try:
            number = Fraction(written)
        except (ValueError, ZeroDivisionError):
            raise checks.refuse(f"keys of {name}", value, "numbers") from None
        if type == "whole" and not (number.denominator == 1 and abs(number) < 2**63):
            raise checks.refuse(f"keys of {name}", value, "whole numbers of 64 bits")
        return number.numerator if type == "whole" else float(number)
    return value


def _moment(value: Any, name: str, type: str) -> datetime.date:
    try:
        number = times.days(value) if type == "date" else times.microseconds(value)
    except ValueError:
        number = None
    if number is None:
        raise checks.refuse(f"keys of {name}", value, "dates or their ISO texts")
    return times.read(number, type)


def product(lists: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Every combination of the given values."""
    refuse_many(map(len, lists))
    return list(itertools.product(*lists))


def within(name: str, key: Key, values: Sequence[Any]) -> exp.Expression:
    """Is column `name` one of these values? A key column may be of any type in the engine, so it is compared as what
    the values are, without a cast that could fail."""
    column: exp.Expression = exp.column(name, quoted=True)
    if key.typed.kind.type == "key":
        if all(type(each) is int and abs(each) < 2**63 for each in values):
            return _among(trees.read_or_null(column, "BIGINT"), values)
        return _among(exp.cast(column, "VARCHAR"), [label(each) for each in values])
    return _among(column, values)


def _among(column: exp.Expression, values: Sequence[Any]) -> exp.Expression:
    """Is it one of the values? A long list of one type goes to the engine as one text, taken apart there."""
    kinds = {type(each) for each in values}
    if len(values) <= _LONG or kinds not in ({int}, {str}) or any(_BETWEEN in str(each) for each in values):
        return exp.In(this=column, expressions=[literal(each) for each in values])
    text = trees.text(_BETWEEN.join(map(str, values)))
    parts = call("wholes_of" if kinds == {int} else "texts_of", text, trees.text(_BETWEEN))
    return exp.In(this=column, query=exp.Subquery(this=exp.select(parts)))


def among(names: Sequence[str], chosen: Sequence[tuple[Any, ...]]) -> exp.Expression:
    """Are these columns together one of the rows that the engine itself gave before?"""
    if len(names) == 1:
        return _among(exp.column(names[0], quoted=True), [row[0] for row in chosen])
    columns = exp.Tuple(expressions=[exp.column(name, quoted=True) for name in names])
    return exp.In(this=columns, expressions=[exp.Tuple(expressions=[literal(each) for each in row]) for row in chosen])


def literal(value: Any) -> exp.Expression:
    """A public value as an engine constant of its own type."""
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value)
    if isinstance(value, float):
        return exp.cast(exp.Literal.string(repr(value)), "DOUBLE")
    if isinstance(value, datetime.datetime):
        return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
    if isinstance(value, datetime.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    return exp.Literal.string(str(value))


def label(value: Any) -> str:
    """What makes two keys equal: 12 and '12' are one, as a file may hold either. It is how the engine writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def ordering(value: Any) -> tuple[int, Any]:
    """A total order over keys of any types, which tells nothing of how the engine found them."""
    if value is None:
        return (9, 0)
    if isinstance(value, bool | int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, value.isoformat())
