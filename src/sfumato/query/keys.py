"""Which groups an answer has: given ones, those of a public table, or those that enough units share."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from .. import checks, times
from ..errors import ArgumentError
from ..sources.vocabulary import call
from .expressions import trees
from .kinds import Kind, Typed
from .refusal import QueryError

if TYPE_CHECKING:
    from ..sources import Connection

SELECT = "select"
"""keys={"ward": "select"}: choose groups privately even where they are public."""
MOST = 10**6
_LONG = 50
_SHOWN = 8  # values that a refusal lists
_BETWEEN = "\x1f"  # the separator of old: no text of a key holds it, or else the list is written out
FEW = 1000
"""Whole numbers and days are public groups where the schema allows no more than this."""
_ORDER = (bool, int, float, str, datetime.date, datetime.datetime)


@dataclass(frozen=True)
class Key:
    """What the query groups by. values: given in public; origin: (table, column) of a public table that holds them."""

    name: str
    typed: Typed
    values: tuple[Any, ...] | None
    origin: tuple[str, str] | None

    @property
    def known(self) -> bool:
        return self.values is not None or self.origin is not None


def blocks(keys: Sequence[Key]) -> list[list[int]]:
    """The places of keys that belong together: columns of one row of a public table, which are listed as they occur
    there. Every other key is alone, and so is one whose values somebody gave."""
    found: dict[Any, list[int]] = {}
    for place, key in enumerate(keys):
        row = None if key.origin is None else key.typed.kind.row
        found.setdefault(place if row is None else (key.origin[0], row), []).append(place)  # type: ignore[index]
    return list(found.values())


def listed(keys: Sequence[Key], connection: Connection) -> list[tuple[Any, ...]]:
    """All groups: every combination of values that are given and of what public tables hold."""
    together = blocks(keys)
    places = [place for block in together for place in block]
    order = sorted(range(len(places)), key=places.__getitem__)
    lists = [_block([keys[place] for place in block], connection) for block in together]
    rows = (tuple(itertools.chain.from_iterable(parts)) for parts in product(lists))
    return [tuple(row[at] for at in order) for row in rows]


def _block(keys: Sequence[Key], connection: Connection) -> list[tuple[Any, ...]]:
    """The values of one key, or the different rows of several columns of a public table; none with a NULL."""
    if len(keys) == 1 and keys[0].values is not None:
        return [(value,) for value in keys[0].values]
    origins = [key.origin for key in keys if key.origin is not None]
    names = [exp.column(column, quoted=True) for _, column in origins]
    found = connection.run(exp.select(*names).distinct().from_(exp.to_table(origins[0][0], quoted=True)))
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return sorted((row for row in rows if None not in row), key=lambda row: tuple(map(ordering, row)))


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
            found.append(Key(name, typed, _public(typed.kind), typed.kind.origin))
    return tuple(found)


def check_groups(keys: Sequence[Key]) -> None:
    """Refuse groups that no row can be in, and more of them than an answer has, as far as the schema tells."""
    for key in keys:
        if key.values is None or key.typed.kind.values is None:
            continue
        known = set(map(label, key.typed.kind.values))
        for strange in (each for each in key.values if label(each) not in known):
            some = ", ".join(map(repr, key.typed.kind.values[:_SHOWN]))
            more = ", ..." if len(key.typed.kind.values) > _SHOWN else ""
            raise checks.refuse(f"keys of {key.name}", strange, f"values that {key.name} can have: {some}{more}")
    if all(key.values is not None for key in keys):
        _few(len(key.values or ()) for key in keys)


def _few(sizes: Iterable[int]) -> None:
    if math.prod(sizes) > MOST:
        raise QueryError(
            f"There are more than {MOST} combinations of the groups.",
            "group by fewer columns, or name the groups that are wanted, or have them chosen privately "
            "(keys={'column': 'select'})",
        )


def _public(kind: Kind) -> tuple[Any, ...] | None:
    """All values, where the schema tells them and they are few: categories, small whole numbers, the days of a year."""
    if kind.values is not None or kind.lower is None or kind.upper is None or kind.type not in ("whole", "date"):
        return kind.values
    if kind.upper - kind.lower >= FEW:
        return None
    numbers = range(int(kind.lower), int(kind.upper) + 1)
    return tuple(times.read(each, "date") for each in numbers) if kind.type == "date" else tuple(numbers)


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
    _few(map(len, lists))
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
