"""What DuckDB's columns hold, by its types: each as cells of one of a few kinds, by casts that cannot raise."""

from __future__ import annotations

import re

from .base import literal
from .raw_cells import Cell
from .spelling import there

_RANGES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
}
_SPANS = {
    "TIMESTAMP": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 00:00:00"),
    "TIME": ("00:00:00", "23:59:59.999999"),
    "TIME_NS": ("00:00:00", "23:59:59.999999999"),
}
_CLOCKS = ("TIME", "TIME_NS")
_NESTED = ("STRUCT", "MAP", "UNION", "LIST")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def cell_of(raw: str, physical: str, present: str = "") -> Cell:
    """The raw column (an SQL expression) of this type as cells of one kind. `present` says whether there is a cell,
    where that shows elsewhere than in the column."""
    physical = physical.upper()
    present = present or there(raw, physical)
    if physical in _RANGES:
        return Cell(raw, "whole", present, span=_RANGES[physical])
    if scaled := _DECIMAL.fullmatch(physical):
        if scaled[2] == "0":
            return Cell(f"TRY_CAST({raw} AS HUGEINT)", "whole", present, span=_RANGES["HUGEINT"])
        return Cell(raw, "decimal", present, places=int(scaled[2]))
    if physical in ("DOUBLE", "FLOAT"):
        # Files tell the engine the least and largest number of a column, leaving nan out, and where these are finite it
        # takes isnan() and comparisons for settled: whether one row is infinite would decide how others' nan is read.
        # These two tests it does not settle so.
        number = raw if physical == "DOUBLE" else f"CAST({raw} AS DOUBLE)"
        return Cell(f"CASE WHEN isfinite({number}) OR isinf({number}) THEN {number} END", "float", present)
    if physical == "BOOLEAN":
        return Cell(raw, "flag", present)
    if physical == "VARCHAR":
        # A column may bring an order of its own, by which 'A' is 'a', and a cast would keep it. Under this one texts
        # are compared and shown byte by byte, so that two units are two, whatever the file says. It costs nothing.
        return Cell(f"({raw} COLLATE C)", "text", present)
    if physical == "BLOB":
        return Cell(f"TRY(decode({raw}))", "text", present)
    if physical in ("UHUGEINT", "UUID") or physical.startswith("ENUM"):
        return Cell(f"TRY_CAST({raw} AS VARCHAR)", "text", present)
    if physical == "DATE":
        return Cell(raw, "day", present)
    if physical.startswith("TIMESTAMP"):
        return _moment(raw, physical, present)
    if physical in _CLOCKS:
        return Cell(raw, "none", present, key=_written(raw, physical))
    nested = physical.endswith("]") or physical.startswith(_NESTED)
    return Cell(raw, "none", present, key="" if nested else f"TRY_CAST({raw} AS VARCHAR)")


def _moment(raw: str, physical: str, present: str) -> Cell:
    """A moment of any of the engine's types as one in UTC: of microseconds; a key has nanoseconds where it has them."""
    exact = "TIMESTAMP_NS" if physical.endswith("_NS") else "TIMESTAMP"  # nanoseconds with a zone cast to no other
    moment = raw if physical == exact else f"TRY_CAST({raw} AS {exact})"
    key = _written(moment, exact)
    return Cell(moment if exact == "TIMESTAMP" else f"TRY_CAST({moment} AS TIMESTAMP)", "moment", present, key=key)


def _written(moment: str, exact: str) -> str:
    # The engine shuts down where it is to write a moment that its calendar does not hold; and it tries to, if that is
    # the least or largest of a column, as files tell it. After a sum it does not know which that is.
    low, high = (f"CAST({literal(end)} AS {exact})" for end in _SPANS[exact])
    text = f"CAST({moment} + INTERVAL 0 SECOND AS VARCHAR)" if exact == "TIMESTAMP" else f"CAST({moment} AS VARCHAR)"
    return f"CASE WHEN {moment} BETWEEN {low} AND {high} THEN {text} END"
