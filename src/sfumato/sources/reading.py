"""From cells to values: the one place where it is decided what a schema makes of a raw cell, in words of ours.

The rules are those of `sfumato.rows`, which reads the same cells in Python. (They differ on what no writer writes: to
an engine "+-5" may be a number, while digits and blanks beyond ASCII, and dates without dashes, are not.) No expression
here can raise, whatever the cell: whether a release fails must not depend on a row. And none looks at another row.

A reading has two steps: `cell` is what the raw column holds as one simple type, `value` turns the cell, by then called
`x`, into the declared type within the declared bounds. Where the engine's cell already fits, both are bare columns. How
an engine stores cells, and what its own SQL makes of the words, is not known here (`raw_cells`, `lowering`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .. import times
from ..errors import PlanError
from ..rows import NO, YES
from ..schema import DROP, INT64, Column, Table
from .base import literal
from .raw_cells import Cell
from .spelling import PYTHON_BLANKS

RAW = "_raw_cell_"
"""What a reading calls the engine's own expression."""
_SAFE = 2**53
_DATES = ("0001-01-01", "9999-12-31")


@dataclass(frozen=True)
class Reading:
    """How one column is read: words over the raw cell (RAW), words over what they give (`x`), and the type that comes
    out.

    `known` are the texts of the list that the value is looked up in, where there is one.
    """

    cell: str
    value: str
    type: str
    known: tuple[str, ...] = ()


def reading(column: Column, cell: Cell, x: str) -> Reading:
    """How to read a raw column as the schema says. `x` names its cells."""
    return READINGS[column.type](column, cell, x)


def stored(column: Column, cell: Cell) -> str:
    """The engine's own expression that RAW stands for."""
    return cell.key if cell.key and not column.of_kind.is_public else cell.sql


def unreadable(column: Column, cell: Cell, x: str, present: str) -> str:
    """Is a cell there that cannot be read as the schema says, whatever the schema puts in place of NULLs? Over the cell
    `x` and over `present`, which says that there is one."""
    return f"({present} AND ({reading(replace(column, nulls=DROP), cell, x).value}) IS NULL)"


def with_flags(table: str) -> str:
    """What the view of a table is called that has flags beside the columns."""
    return f"_flagged_{table}"


def flag_of(table: Table, column: str) -> str | None:
    """What the flag of a column's unreadable cells is called in that view; None where there is none: a key is
    read whatever it holds, and rows of nobody are left out."""
    name = f"_unreadable {column}"
    kind = table.columns[column].of_kind
    if not kind.is_public or kind.is_array or column == table.unit:
        return None
    return None if any(each.lower() == name.lower() for each in table.columns) else name


def _real(column: Column, cell: Cell, x: str) -> Reading:
    low, high = (float(bound) for bound in column.interval)
    other = "NULL" if column.drops_nulls else _double(float(column.nulls))
    number = _number(cell)
    if number is None:
        return _constant("DOUBLE", other)
    if cell.kind == "whole" and low <= cell.span[0] and cell.span[1] <= high:
        value = f"CAST({x} AS DOUBLE)"
        return Reading(RAW, value if column.drops_nulls else f"COALESCE({value}, {other})", "DOUBLE")
    value = x
    if column.decimals is not None and cell.kind != "whole" and not _has_at_most(cell, column.decimals):
        value = _rounded(x, column.decimals)
    return Reading(number, _clamped(x, _double(low), _double(high), value, other), "DOUBLE")


def _has_at_most(cell: Cell, places: int) -> bool:
    """Is it stored in decimals, with no more places than these?"""
    return cell.places is not None and cell.places <= places


def _rounded(x: str, places: int) -> str:
    """Half away from 0. As x is within its bounds, of 15 digits with these places, nothing here overflows, and the
    quotient is the double nearest to the decimal."""
    power = _double(10.0**places)
    return f"cut({x} * {power} + CASE WHEN {x} < {_double(0.0)} THEN {_double(-0.5)} ELSE {_double(0.5)} END) / {power}"


def _whole(column: Column, cell: Cell, x: str) -> Reading:
    low, high = (int(bound) for bound in column.interval)
    other = "NULL" if column.drops_nulls else _bigint(int(column.nulls))
    if cell.kind == "whole":
        value = x if cell.span == INT64 else f"narrowed_or_null({x}, BIGINT)"
        if low <= cell.span[0] and cell.span[1] <= high:
            return Reading(RAW, value if column.drops_nulls else f"COALESCE({value}, {other})", "BIGINT")
        return Reading(RAW, _clamped(x, _bigint(low), _bigint(high), value, other), "BIGINT")
    if cell.kind == "text" and max(abs(low), abs(high)) > _SAFE:
        # A double would round such numbers; plain digits are read exactly.
        value = _clamped(x, _bigint(low), _bigint(high), f"narrowed_or_null({x}, BIGINT)", other)
        return Reading(_exact(), value, "BIGINT")
    number = _number(cell)
    if number is None:
        return _constant("BIGINT", other)
    # The doubles next to the bounds, inside of them. The word rounds halves of doubles to even.
    first, last = float(low), float(high)
    if first < low:
        first = math.nextafter(first, math.inf)
    if last > high:
        last = math.nextafter(last, -math.inf)
    ends = _bigint(low), _bigint(high)
    value = _clamped(x, _double(first), _double(last), f"nearest_or_null({x}, BIGINT)", other, ends)
    return Reading(number, value, "BIGINT")


def _clamped(x: str, low: str, high: str, value: str, other: str, ends: tuple[str, str] | None = None) -> str:
    """NULL and nan, which is ordered above infinity, become `other`. The least and greatest of those present would skip
    NULLs."""
    to_low, to_high = ends or (low, high)
    finite = f"{x} <= {_double(math.inf)}" if low.endswith("DOUBLE)") else f"{x} > {high}"
    return (
        f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {value} WHEN {x} < {low} THEN {to_low} "
        f"WHEN {finite} THEN {to_high} ELSE {other} END"
    )


def _number(cell: Cell) -> str | None:
    """The cell as a DOUBLE; None where it is no number."""
    if cell.kind == "float":
        return RAW
    if cell.kind in ("whole", "flag", "decimal"):
        return f"CAST({RAW} AS DOUBLE)"
    if cell.kind == "text":
        # Engines read 1_000 as a number, `sfumato.rows` does not.
        return f"read_or_null(CASE WHEN holds({RAW}, '_') THEN NULL ELSE {RAW} END, DOUBLE)"
    return None


def _exact() -> str:
    """Text as an integer of 128 bits, whole numbers exactly; what lies beyond 2^126 counts as its end."""
    number = _number(Cell(RAW, "text", ""))
    end = f"nearest_or_null({_double(2.0**126)}, INT128)", f"nearest_or_null({_double(-(2.0**126))}, INT128)"
    return (
        f"CASE WHEN not_a_number({number}) THEN NULL WHEN abs({number}) < {_double(float(_SAFE))} "
        f"THEN nearest_or_null({number}, INT128) WHEN {number} >= {_double(2.0**126)} THEN {end[0]} "
        f"WHEN {number} <= {_double(-(2.0**126))} THEN {end[1]} "
        f"WHEN is_digits({RAW}) THEN read_or_null({RAW}, INT128) "
        f"ELSE nearest_or_null({number}, INT128) END"
    )


def _flag(column: Column, cell: Cell, x: str) -> Reading:
    known = column.categories or (False, True)
    other = "NULL" if column.drops_nulls else str(column.nulls).upper()
    if cell.kind == "flag" and len(known) == 2:
        return Reading(RAW, x if column.drops_nulls else f"COALESCE({x}, {other})", "BOOLEAN")
    if cell.kind in ("none", "day", "moment"):
        return _constant("BOOLEAN", other)
    cases = {True: f"{x} = 1", False: f"{x} = 0"}
    words = RAW
    if cell.kind == "flag":
        cases = {True: x, False: f"NOT {x}"}
    elif cell.kind == "text":
        words = f"lower(trimmed({RAW}, {literal(PYTHON_BLANKS)}))"
        cases = {True: _one_of(x, YES), False: _one_of(x, NO)}
    whens = " ".join(f"WHEN {cases[each]} THEN {str(each).upper()}" for each in known)
    return Reading(words, f"CASE {whens} ELSE {other} END", "BOOLEAN")


def _category(column: Column, cell: Cell, x: str) -> Reading:
    if type(column.categories[0]) is bool:
        return _flag(column, cell, x)
    if type(column.categories[0]) is str:
        other = "NULL" if column.drops_nulls else literal(column.nulls)
        text = _digits(cell)
        if text is None:
            return _constant("VARCHAR", other)
        return Reading(text, _or_else(_listed(x, column.categories), other), "VARCHAR", column.categories)
    if not all(INT64[0] <= number <= INT64[1] for number in column.categories):
        raise PlanError("numbers that are categories must fit into 64 bits: make them texts")
    other = "NULL" if column.drops_nulls else _bigint(column.nulls)
    number = _whole_or_none(cell)
    if number is None:
        return _constant("BIGINT", other)
    first, last = min(column.categories), max(column.categories)
    if last - first + 1 == len(column.categories):
        value = f"CASE WHEN {x} BETWEEN {_bigint(first)} AND {_bigint(last)} THEN {x} ELSE {other} END"
        return Reading(number, value, "BIGINT")
    texts = tuple(map(str, column.categories))
    value = f"read_or_null({_listed(f'CAST({x} AS VARCHAR)', texts)}, BIGINT)"
    return Reading(number, _or_else(value, other), "BIGINT", texts)


def _listed(text: str, texts: Sequence[str]) -> str:
    """The text if it is one of these."""
    between = _between(texts)
    return f"listed_or_null({text}, {literal(between.join(texts))}, {literal(between)})"


def _between(texts: Iterable[str]) -> str:
    """A sign that none of the texts holds, from the separator of old on."""
    used = set().union(*texts)
    return next(sign for sign in map(chr, range(0x1F, 0xD800)) if sign not in used)


def _or_else(value: str, other: str) -> str:
    return value if other == "NULL" else f"COALESCE({value}, {other})"


def _whole_or_none(cell: Cell) -> str | None:
    """The cell as a BIGINT, where it is a whole number that fits."""
    if cell.kind == "whole":
        return f"narrowed_or_null({RAW}, BIGINT)"
    if cell.kind == "flag":
        return f"CAST({RAW} AS BIGINT)"
    if cell.kind in ("float", "decimal"):
        return f"whole_or_null({RAW})"
    if cell.kind == "text":
        number = _number(cell)
        return f"CASE WHEN cut({number}) = {number} THEN narrowed_or_null({_exact()}, BIGINT) END"
    return None


def _digits(cell: Cell) -> str | None:
    """The cell as text that may be a category: a whole number stands for its digits."""
    if cell.kind == "text":
        return RAW
    number = None if cell.kind == "flag" else _whole_or_none(cell)
    return None if number is None else f"CAST({number} AS VARCHAR)"


def _key(column: Column, cell: Cell, x: str) -> Reading:
    """An opaque value; lists and records are none. Text stays as it is; numbers that 64 bits cannot hold, floats and
    moments become text, whole numbers digits alone, so that 12.0 is '12', and moments in UTC. The engine compares
    within one column, and joins of columns of different types are not for this file to make: '12' here and 12 there are
    different keys to it."""
    if cell.key:
        return Reading(RAW, x, "VARCHAR")
    if cell.kind == "whole":
        if INT64[0] <= cell.span[0] and cell.span[1] <= INT64[1]:
            return Reading(RAW, x if cell.span == INT64 else f"CAST({x} AS BIGINT)", "BIGINT")
        return Reading(f"CAST({RAW} AS VARCHAR)", x, "VARCHAR")
    if cell.kind == "float":
        fits = f"cut({x}) = {x} AND abs({x}) < {_double(1e38)}"
        digits = f"CAST(nearest_or_null({x}, INT128) AS VARCHAR)"
        value = f"CASE WHEN not_a_number({x}) THEN NULL WHEN {fits} THEN {digits} ELSE CAST({x} AS VARCHAR) END"
        return Reading(RAW, value, "VARCHAR")
    if cell.kind == "decimal":
        return Reading(RAW, f"trimmed_behind(trimmed_behind(CAST({x} AS VARCHAR), '0'), '.')", "VARCHAR")
    if cell.kind == "day":
        # Functions of infinite dates, and of those of no calendar, may raise.
        low, high = (f"CAST({literal(end)} AS DATE)" for end in _DATES)
        return Reading(RAW, f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} END", "DATE")
    if cell.kind == "flag":
        return Reading(RAW, x, "BOOLEAN")
    return Reading(RAW, x, "VARCHAR") if cell.kind == "text" else _constant("VARCHAR", "NULL")


def _day(column: Column, cell: Cell, x: str) -> Reading:
    return _time(column, cell, x, "DATE")


def _moment(column: Column, cell: Cell, x: str) -> Reading:
    return _time(column, cell, x, "TIMESTAMP")


def _time(column: Column, cell: Cell, x: str, type_: str) -> Reading:
    assert column.lower is not None and column.upper is not None
    words, kind = RAW, cell.kind
    if cell.kind == "text":  # with a time zone it counts in UTC
        words, kind = f"moment_or_null({RAW})", "moment"
    if kind not in ("day", "moment"):
        return _constant(type_, "NULL")
    if (kind == "day") != (type_ == "DATE"):
        words = f"time_or_null({words}, {type_})"
    low, high = (
        f"CAST({literal(times.shown(int(end), column.type))} AS {type_})" for end in (column.lower, column.upper)
    )
    return Reading(words, _clamped(x, low, high, x, "NULL"), type_)


def _constant(type_: str, value: str) -> Reading:
    """A column whose cells cannot be what the schema wants: every one is unreadable."""
    return Reading("NULL", f"CAST({value} AS {type_})", type_)


def _double(number: float) -> str:
    return f"CAST('{'infinity' if number == math.inf else repr(number)}' AS DOUBLE)"


def _bigint(number: int) -> str:
    return f"CAST('{number}' AS BIGINT)"


def _one_of(x: str, words: Iterable[str]) -> str:
    return " OR ".join(f"{x} = {literal(word)}" for word in sorted(words))


READINGS: dict[str, Callable[[Column, Cell, str], Reading]] = {
    "real": _real,
    "whole": _whole,
    "category": _category,
    "flag": _flag,
    "key": _key,
    "date": _day,
    "moment": _moment,
}
"""By kind of column. Arrays are held by no engine."""
