"""What a stage leaves for the next: a public table of its keys and released numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...schema import Column, Table, category, date, flag, key, moment, real, whole
from ..aggregates import Aggregate, Binned, Ranked
from ..canonical import text_of
from ..kinds import Kind
from . import released_tables
from .released_tables import key_type, number_type

if TYPE_CHECKING:
    import pyarrow

    from ..plan import Sql

FAR = 10**18
"""Released numbers beyond are cut there; so many would not be told apart as doubles anyway."""
_DAYS, _MOMENTS = ("0001-01-01", "9999-12-31"), ("0001-01-01T00:00:00", "9999-12-31T23:59:59")


def stage_table(name: str, part: Sql) -> Table:
    """The table that the next stage reads. Nothing in it but names and types, which the plan alone gives."""
    return Table(dict(_columns(part)), name=name, private=False)


def names_in_stage(part: Sql) -> dict[str, str]:
    """By output of a release, as it was written: what the column is called in its table."""
    plain = by_itself(part)
    numbered = dict(zip((_told(plain, title) for title, _ in _outputs(plain)), _names(plain), strict=True))
    return {
        title.lower(): numbered[_told(part, title)] for title, _ in _outputs(part) if _told(part, title) in numbered
    }


def stage_cells(part: Sql, raw: Mapping[str, Any]) -> pyarrow.Table:
    """What was released, with noise and nothing else in it, as the table that the next stage reads."""
    import pyarrow

    plain = by_itself(part)
    bare = {name: value for name, value in raw.items() if name != "written"}
    columns = {column.name: column for column in released_tables.released(plain, bare, 0)}
    listed = dict(_columns(part))
    names = [(name, columns[title]) for name, (title, _) in zip(_names(plain), _outputs(plain), strict=True)]
    return pyarrow.table({name: column.values for name, column in names if name in listed})


def no_cells(part: Sql) -> pyarrow.Table:
    """The same without rows: what is bound before anybody pays."""
    import pyarrow

    plain, listed = by_itself(part), dict(_columns(part))
    types = {}
    for name, (title, _) in zip(_names(plain), _outputs(plain), strict=True):
        column = _asked(plain, title)
        types[name] = key_type(column.type, []) if isinstance(column, Kind) else number_type(column)
    return pyarrow.schema([(name, type_) for name, type_ in types.items() if name in listed]).empty_table()


def by_itself(part: Sql) -> Sql:
    """A release under the names of the one way to write its query, whatever it was written as."""
    return part if part.written is None else _by_itself(part)


@lru_cache(maxsize=64)
def _by_itself(part: Sql) -> Sql:
    return replace(part, written=None)


def _outputs(part: Sql) -> list[tuple[str, Any]]:
    """Those that are a key or an aggregate, and no formula of them: a release has no others."""
    texts = {*part.front.aggregates, *part.front.outermost.named}
    return [(title, node) for title, node in part.front.outermost.outputs if text_of(node) in texts]


def _names(part: Sql) -> Iterator[str]:
    keys = numbers = 0
    for title, _ in _outputs(part):
        if isinstance(_asked(part, title), Kind):
            keys += 1
            yield f"key_{keys}"
        else:
            numbers += 1
            yield f"number_{numbers}"


def _told(part: Sql, title: str) -> str:
    """What an output asks for, by which it is found under another name."""
    text = text_of(dict(_outputs(part))[title])
    return text if text in part.front.aggregates else part.front.outermost.named[text]


def _asked(part: Sql, title: str) -> Kind | Aggregate:
    """An aggregate, or what is known of a key."""
    text = _told(part, title)
    if text in part.front.aggregates:
        return part.front.aggregates[text]
    return next(key.typed.kind for key in part.front.keys if key.name == text)


def _columns(part: Sql) -> Iterator[tuple[str, Column]]:
    """Lists of numbers are no columns there."""
    plain = by_itself(part)
    for name, (title, _) in zip(_names(plain), _outputs(plain), strict=True):
        column = _asked(plain, title)
        if isinstance(column, Kind):
            yield name, _of_key(column)
        elif not isinstance(column, Binned) and not (isinstance(column, Ranked) and column.listed):
            yield name, _of_number(column)


def _of_key(kind: Kind) -> Column:
    """Values that the schema lists stay public; of others nothing is known but their type."""
    if kind.type == "flag":
        return flag()
    if kind.is_date:
        return date(*_DAYS)
    if kind.type == "moment":
        return moment(*_MOMENTS)
    if kind.is_whole:
        return whole(-FAR, FAR)
    if kind.is_real:
        return real(-FAR, FAR)
    return category(kind.values) if kind.values and all(type(each) is str for each in kind.values) else key()


def _of_number(aggregate: Aggregate) -> Column:
    """A number; of quantiles of dates, a date."""
    if isinstance(aggregate, Ranked) and aggregate.leaves.origin is not None:
        return date(*_DAYS) if aggregate.leaves.type == "date" else moment(*_MOMENTS)
    return real(-FAR, FAR)
