"""From raw cells to values: the one place where it is decided, in SQL, what a cell means.

The rules are those of `sfumato.rows`, which reads the same cells in Python. (They differ on what no writer writes: to
the engine "+-5" is a number, while digits and blanks beyond ASCII, and dates without dashes, are not.) No expression
here can raise, whatever the cell: whether a release fails must not depend on a row. And none looks at another row.

A reading has two steps: `cell` is what the raw column holds as one simple type, `value` turns the cell, by then called
`x`, into the declared type within the declared bounds. Where the engine's type already fits, both are bare columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .. import times
from ..errors import PlanError
from ..rows import NO, YES
from ..schema import DROP, INT64, Column, Table, TensorColumn
from .base import literal
from .spelling import trimmed

_SAFE = 2**53
_RANGES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": INT64,
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
}
_DATES = ("0001-01-01", "9999-12-31")
_CLOCKS = {"TIME": ("00:00:00", "23:59:59.999999"), "TIME_NS": ("00:00:00", "23:59:59.999999999")}
_SPANS = {
    "TIMESTAMP": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 00:00:00"),
    **_CLOCKS,
}
_NESTED = ("STRUCT", "MAP", "UNION", "LIST")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Reading:
    """How one column is read: an expression over the raw column, one over its cell, and the type that comes out.

    `known` are the texts of an enumeration that the value needs, under the name of `enumeration(x)`.
    """

    cell: str
    value: str
    type: str
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cell:
    """A raw column as one kind: "whole" (within `span`), "decimal", "float", "text", "flag", "time" or "none"."""

    x: str
    sql: str
    kind: str
    type: str
    span: tuple[int, int] = INT64

    def has_at_most(self, places: int) -> bool:
        """Is it stored in decimals, with no more places than these?"""
        scaled = _DECIMAL.fullmatch(self.type) if self.kind == "decimal" else None
        return scaled is not None and int(scaled[2]) <= places


def reading(column: Column, raw: str, physical: str, x: str) -> Reading:
    """How to read the raw column (an SQL expression) of this engine type as the schema says. `x` names its cells."""
    cell = _cell(x, raw, physical.upper())
    if column.type == "key":
        return _key(cell)
    if column.type in ("date", "moment"):
        return _time(column, cell)
    if column.type == "real":
        return _real(column, cell)
    if column.type == "whole":
        return _whole(column, cell)
    if column.type == "flag" or type(column.categories[0]) is bool:
        return _flag(column, cell)
    return _category(column, cell)


def unreadable(column: Column, physical: str, x: str, held: str) -> str:
    """Is a cell there that cannot be read as the schema says, whatever the schema puts in place of NULLs? Over the cell
    `x` and over `held`, which says that there is one."""
    return f"({held} AND ({reading(replace(column, nulls=DROP), 'NULL', physical, x).value}) IS NULL)"


def with_flags(table: str) -> str:
    """What the view of a table is called that has flags beside the columns."""
    return f"_flagged_{table}"


def flag_of(table: Table, column: str) -> str | None:
    """What the flag of a column's unreadable cells is called in that view; None where there is none: a key is
    read whatever it holds, and rows of nobody are left out."""
    name = f"_unreadable {column}"
    if table.columns[column].type == "key" or column == table.unit or isinstance(table.columns[column], TensorColumn):
        return None
    return None if any(each.lower() == name.lower() for each in table.columns) else name


def enumeration(x: str) -> str:
    """The name of the enumeration that belongs to the cell."""
    return f"{x}_known"


def _cell(x: str, raw: str, physical: str) -> _Cell:
    if physical in _RANGES:
        return _Cell(x, raw, "whole", physical, _RANGES[physical])
    if scaled := _DECIMAL.fullmatch(physical):
        if scaled[2] == "0":
            return _Cell(x, f"TRY_CAST({raw} AS HUGEINT)", "whole", "HUGEINT", _RANGES["HUGEINT"])
        return _Cell(x, raw, "decimal", physical)
    if physical in ("DOUBLE", "FLOAT"):
        # Files tell the engine the least and largest number of a column, leaving nan out, and where these are finite it
        # takes isnan() and comparisons for settled: whether one row is infinite would decide how others' nan is read.
        # These two tests it does not settle so.
        number = raw if physical == "DOUBLE" else f"CAST({raw} AS DOUBLE)"
        return _Cell(x, f"CASE WHEN isfinite({number}) OR isinf({number}) THEN {number} END", "float", "DOUBLE")
    if physical == "BOOLEAN":
        return _Cell(x, raw, "flag", "BOOLEAN")
    if physical == "VARCHAR":
        # A column may bring an order of its own, by which 'A' is 'a', and a cast would keep it. Under this one texts
        # are compared and shown byte by byte, so that two units are two, whatever the file says. It costs nothing.
        return _Cell(x, f"({raw} COLLATE C)", "text", "VARCHAR")
    if physical == "BLOB":
        return _Cell(x, f"TRY(decode({raw}))", "text", "VARCHAR")
    if physical in ("UHUGEINT", "UUID") or physical.startswith("ENUM"):
        return _Cell(x, f"TRY_CAST({raw} AS VARCHAR)", "text", "VARCHAR")
    if physical.startswith(("DATE", "TIMESTAMP")):
        return _Cell(x, raw, "time", physical)
    return _Cell(x, raw, "none", physical)


def _real(column: Column, cell: _Cell) -> Reading:
    x = cell.x
    low, high = (float(bound) for bound in column.interval)
    other = "NULL" if column.drops_nulls else _double(float(column.nulls))
    number = _number(cell)
    if number is None:
        return _constant("DOUBLE", other)
    if cell.kind == "whole" and low <= cell.span[0] and cell.span[1] <= high:
        value = f"CAST({x} AS DOUBLE)"
        return Reading(cell.sql, value if column.drops_nulls else f"COALESCE({value}, {other})", "DOUBLE")
    value = x
    if column.decimals is not None and cell.kind != "whole" and not cell.has_at_most(column.decimals):
        value = _rounded(x, column.decimals)
    return Reading(number, _clamped(x, _double(low), _double(high), value, other), "DOUBLE")


def _rounded(x: str, places: int) -> str:
    """Half away from 0. As x is within its bounds, of 15 digits with these places, nothing here overflows, and the
    quotient is the double nearest to the decimal."""
    power = _double(10.0**places)
    return (
        f"trunc({x} * {power} + CASE WHEN {x} < {_double(0.0)} THEN {_double(-0.5)} ELSE {_double(0.5)} END) / {power}"
    )


def _whole(column: Column, cell: _Cell) -> Reading:
    x = cell.x
    low, high = (int(bound) for bound in column.interval)
    other = "NULL" if column.drops_nulls else _bigint(int(column.nulls))
    if cell.kind == "whole":
        value = x if cell.type == "BIGINT" else f"TRY_CAST({x} AS BIGINT)"
        if low <= cell.span[0] and cell.span[1] <= high:
            return Reading(cell.sql, value if column.drops_nulls else f"COALESCE({value}, {other})", "BIGINT")
        return Reading(cell.sql, _clamped(x, _bigint(low), _bigint(high), value, other), "BIGINT")
    if cell.kind == "text" and max(abs(low), abs(high)) > _SAFE:
        # A double would round such numbers; plain digits are read exactly.
        value = _clamped(x, _bigint(low), _bigint(high), f"TRY_CAST({x} AS BIGINT)", other)
        return Reading(_exact(cell.sql), value, "BIGINT")
    number = _number(cell)
    if number is None:
        return _constant("BIGINT", other)
    # The doubles next to the bounds, inside of them. The engine rounds halves of doubles to even.
    first, last = float(low), float(high)
    if first < low:
        first = math.nextafter(first, math.inf)
    if last > high:
        last = math.nextafter(last, -math.inf)
    ends = _bigint(low), _bigint(high)
    value = _clamped(x, _double(first), _double(last), f"TRY_CAST({x} AS BIGINT)", other, ends)
    return Reading(number, value, "BIGINT")


def _clamped(x: str, low: str, high: str, value: str, other: str, ends: tuple[str, str] | None = None) -> str:
    """NULL and nan, which the engine orders above infinity, become `other`. LEAST and GREATEST would skip NULLs."""
    to_low, to_high = ends or (low, high)
    finite = f"{x} <= {_double(math.inf)}" if low.endswith("DOUBLE)") else f"{x} > {high}"
    return (
        f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {value} WHEN {x} < {low} THEN {to_low} "
        f"WHEN {finite} THEN {to_high} ELSE {other} END"
    )


def _number(cell: _Cell) -> str | None:
    """The cell as a DOUBLE; None where it is no number."""
    if cell.kind == "float":
        return cell.sql
    if cell.kind in ("whole", "flag", "decimal"):
        return f"TRY_CAST({cell.sql} AS DOUBLE)"
    if cell.kind == "text":
        # The engine reads 1_000 as a number, `sfumato.rows` does not.
        return f"TRY_CAST(CASE WHEN contains({cell.sql}, '_') THEN NULL ELSE {cell.sql} END AS DOUBLE)"
    return None


def _exact(text: str) -> str:
    """Text as a HUGEINT, whole numbers exactly; what lies beyond 2^127 counts as its end."""
    number = _number(_Cell("", text, "text", "VARCHAR"))
    return (
        f"CASE WHEN isnan({number}) THEN NULL WHEN abs({number}) < {_double(float(_SAFE))} "
        f"THEN TRY_CAST({number} AS HUGEINT) WHEN {number} >= {_double(2.0**126)} THEN TRY_CAST({_double(2.0**126)} AS "
        f"HUGEINT) WHEN {number} <= {_double(-(2.0**126))} THEN TRY_CAST({_double(-(2.0**126))} AS HUGEINT) "
        f"WHEN regexp_full_match({text}, '\\s*[+-]?[0-9]+\\s*') THEN TRY_CAST({text} AS HUGEINT) "
        f"ELSE TRY_CAST({number} AS HUGEINT) END"
    )


def _flag(column: Column, cell: _Cell) -> Reading:
    x = cell.x
    known = column.categories or (False, True)
    other = "NULL" if column.drops_nulls else str(column.nulls).upper()
    if cell.kind == "flag" and len(known) == 2:
        return Reading(cell.sql, x if column.drops_nulls else f"COALESCE({x}, {other})", "BOOLEAN")
    if cell.kind == "none" or cell.kind == "time":
        return _constant("BOOLEAN", other)
    cases = {True: f"{x} = 1", False: f"{x} = 0"}
    sql = cell.sql
    if cell.kind == "flag":
        cases = {True: x, False: f"NOT {x}"}
    elif cell.kind == "text":
        sql = f"lower({trimmed(cell.sql)})"
        cases = {True: _one_of(x, YES), False: _one_of(x, NO)}
    whens = " ".join(f"WHEN {cases[each]} THEN {str(each).upper()}" for each in known)
    return Reading(sql, f"CASE {whens} ELSE {other} END", "BOOLEAN")


def _category(column: Column, cell: _Cell) -> Reading:
    x = cell.x
    if type(column.categories[0]) is str:
        other = "NULL" if column.drops_nulls else literal(column.nulls)
        text = _digits(cell)
        if text is None:
            return _constant("VARCHAR", other)
        return Reading(text, _known(x, x, "VARCHAR", other), "VARCHAR", column.categories)
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
    value = _known(x, f"CAST({x} AS VARCHAR)", "BIGINT", other)
    return Reading(number, value, "BIGINT", tuple(map(str, column.categories)))


def _known(x: str, text: str, type_: str, other: str) -> str:
    """The text if it is one of the known, else `other`. The engine would make a join of IN (...), and run it in every
    query, also in those that do not ask for the column."""
    name = enumeration(x)
    value = f"CAST(TRY_CAST({text} AS {name}) AS VARCHAR)"
    if type_ != "VARCHAR":
        value = f"TRY_CAST({value} AS {type_})"
    return value if other == "NULL" else f"COALESCE({value}, {other})"


def _whole_or_none(cell: _Cell) -> str | None:
    """The cell as a BIGINT, where it is a whole number that fits."""
    if cell.kind in ("whole", "flag"):
        return f"TRY_CAST({cell.sql} AS BIGINT)"
    if cell.kind in ("float", "decimal"):
        return f"CASE WHEN trunc({cell.sql}) = {cell.sql} THEN TRY_CAST({cell.sql} AS BIGINT) END"
    if cell.kind == "text":
        number = _number(cell)
        return f"CASE WHEN trunc({number}) = {number} THEN TRY_CAST({_exact(cell.sql)} AS BIGINT) END"
    return None


def _digits(cell: _Cell) -> str | None:
    """The cell as text that may be a category: a whole number stands for its digits."""
    if cell.kind == "text":
        return cell.sql
    number = None if cell.kind == "flag" else _whole_or_none(cell)
    return None if number is None else f"CAST({number} AS VARCHAR)"


def _key(cell: _Cell) -> Reading:
    """An opaque value; lists and records are none. Text stays as it is; numbers that 64 bits cannot hold, floats and
    moments become text, whole numbers digits alone, so that 12.0 is '12', and moments in UTC. The engine compares
    within one column, and joins of columns of different types are not for this file to make: '12' here and 12 there are
    different keys to it."""
    x = cell.x
    if cell.kind == "whole" and INT64[0] <= cell.span[0] and cell.span[1] <= INT64[1]:
        return Reading(cell.sql, x if cell.type == "BIGINT" else f"CAST({x} AS BIGINT)", "BIGINT")
    if cell.kind == "float":
        fits = f"trunc({x}) = {x} AND abs({x}) < {_double(1e38)}"
        digits = f"CAST(TRY_CAST({x} AS HUGEINT) AS VARCHAR)"
        value = f"CASE WHEN isnan({x}) THEN NULL WHEN {fits} THEN {digits} ELSE CAST({x} AS VARCHAR) END"
        return Reading(cell.sql, value, "VARCHAR")
    if cell.kind == "decimal":
        return Reading(cell.sql, f"rtrim(rtrim(CAST({x} AS VARCHAR), '0'), '.')", "VARCHAR")
    if cell.kind == "time" and cell.type == "DATE":
        # Functions of infinite dates, and of those of no calendar, may raise.
        low, high = (f"CAST({literal(end)} AS DATE)" for end in _DATES)
        return Reading(cell.sql, f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {x} END", "DATE")
    if cell.kind in ("text", "flag"):
        return Reading(cell.sql, x, cell.type)
    if cell.kind == "time" or cell.type in _CLOCKS:
        # The engine shuts down where it is to write a moment that its calendar does not hold; and it tries to, if that
        # is the least or largest of a column, as files tell it. After a sum it does not know which that is.
        moment, exact = _moment(cell) if cell.kind == "time" else (cell.sql, cell.type)
        low, high = (f"CAST({literal(end)} AS {exact})" for end in _SPANS[exact])
        text = f"CAST({x} + INTERVAL 0 SECOND AS VARCHAR)" if exact == "TIMESTAMP" else f"CAST({x} AS VARCHAR)"
        return Reading(moment, f"CASE WHEN {x} BETWEEN {low} AND {high} THEN {text} END", "VARCHAR")
    if cell.type.endswith("]") or cell.type.startswith(_NESTED):
        return _constant("VARCHAR", "NULL")
    return Reading(f"TRY_CAST({cell.sql} AS VARCHAR)", x, "VARCHAR")


def _time(column: Column, cell: _Cell) -> Reading:
    assert column.lower is not None and column.upper is not None
    type_ = "DATE" if column.type == "date" else "TIMESTAMP"
    if cell.kind == "text":  # with a time zone it counts in UTC, which is the session's own
        sql = f"TRY_CAST(TRY_CAST({cell.sql} AS TIMESTAMPTZ) AS TIMESTAMP)"
    elif cell.kind == "time":
        sql, exact = (cell.sql, cell.type) if cell.type == "DATE" else _moment(cell)
        sql = f"TRY_CAST({sql} AS TIMESTAMP)" if exact == "TIMESTAMP_NS" else sql
    else:
        return _constant(type_, "NULL")
    if cell.type != type_ and not (type_ == "TIMESTAMP" and cell.kind == "text"):
        sql = f"TRY_CAST({sql} AS {type_})"
    low, high = (
        f"CAST({literal(times.shown(int(end), column.type))} AS {type_})" for end in (column.lower, column.upper)
    )
    return Reading(sql, _clamped(cell.x, low, high, cell.x, "NULL"), type_)


def _moment(cell: _Cell) -> tuple[str, str]:
    """A moment of any of the engine's types as one in UTC: of microseconds, or of nanoseconds where it has them."""
    if cell.type in ("TIMESTAMP", "TIMESTAMP_NS"):
        return cell.sql, cell.type
    exact = "TIMESTAMP_NS" if cell.type.endswith("_NS") else "TIMESTAMP"  # nanoseconds with a zone cast to no other
    return f"TRY_CAST({cell.sql} AS {exact})", exact


def _constant(type_: str, value: str) -> Reading:
    """A column whose engine type cannot hold what the schema wants: every cell is unreadable."""
    return Reading("NULL", f"CAST({value} AS {type_})", type_)


def _double(number: float) -> str:
    return f"CAST('{'infinity' if number == math.inf else repr(number)}' AS DOUBLE)"


def _bigint(number: int) -> str:
    return f"CAST('{number}' AS BIGINT)"


def _one_of(x: str, words: Iterable[str]) -> str:
    return " OR ".join(f"{x} = {literal(word)}" for word in sorted(words))
