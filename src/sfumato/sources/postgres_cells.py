"""What PostgreSQL's columns hold, by their types: each as cells of one of a few kinds, by casts that cannot raise."""

from __future__ import annotations

from .base import literal
from .raw_cells import Cell
from .spelling import PYTHON_BLANKS

_SPANS = {"int2": (-(2**15), 2**15 - 1), "int4": (-(2**31), 2**31 - 1), "int8": (-(2**63), 2**63 - 1)}
_WIDEST = 38
_LARGEST = "1.7976931348623157e308"


def cell_of(raw: str, type_: str, digits: tuple[int, int] | None = None) -> Cell | None:
    """The raw column (an SQL expression) of this type as cells of one kind; None where the type is none that is read.

    type_   the server's own name of it, or "enum"
    digits  of numeric: how many, and how many of them behind the point, where the column says so
    """
    present = f"({raw} IS NOT NULL)"
    if type_ in _SPANS:
        return Cell(raw, "whole", present, span=_SPANS[type_])
    if type_ == "numeric":
        return _numeric(raw, digits)
    if type_ in ("float4", "float8"):
        number = raw if type_ == "float8" else f"CAST({raw} AS DOUBLE PRECISION)"
        return Cell(f"CASE WHEN {raw} <> 'NaN' THEN {number} END", "float", _number_there(raw))
    if type_ == "bool":
        return Cell(raw, "flag", present)
    if type_ in ("text", "varchar", "bpchar"):
        # Compared and shown byte by byte, whatever the column or the database says.
        text = f'(CAST({raw} AS TEXT) COLLATE "C")'
        return Cell(text, "text", f"COALESCE(BTRIM({text}, {literal(PYTHON_BLANKS)}) <> '', FALSE)")
    if type_ == "uuid":
        return Cell(f'(CAST({raw} AS TEXT) COLLATE "C")', "text", present)
    if type_ == "enum":  # a cast may be somebody's own function; this one writes the value as the server shows it
        return Cell(f'CASE WHEN {raw} IS NOT NULL THEN CONCAT({raw}) COLLATE "C" END', "text", present)
    if type_ == "date":
        return Cell(raw, "day", present)
    if type_ == "timestamp":
        return Cell(raw, "moment", present, key=_written(raw))
    if type_ == "timestamptz":
        moment = f"TIMEZONE('UTC', {raw})"
        return Cell(moment, "moment", present, key=_written(moment))
    return None


def _number_there(raw: str) -> str:
    return f"COALESCE({raw} <> 'NaN', FALSE)"


def _numeric(raw: str, digits: tuple[int, int] | None) -> Cell:
    """Exactly, where the column says how many digits there are. Else a cell may have any number of them: as a DOUBLE,
    which a schema's bounds are, and as its digits where it is a key."""
    there = _number_there(raw)
    whole, places = (digits[0] - digits[1], max(digits[1], 0)) if digits is not None else (_WIDEST + 1, 0)
    number = f"CASE WHEN {raw} <> 'NaN' THEN {raw} END"
    if digits is not None and whole + places <= _WIDEST and whole >= 0:
        most = 10**whole - 1
        if not places:
            return Cell(number, "whole", there, span=(-most, most))
        return Cell(number, "decimal", there, places=places)
    double = (
        f"CASE WHEN {raw} = 'NaN' THEN NULL WHEN ABS({raw}) <= {_LARGEST} THEN CASE WHEN ABS({raw}) < 1e-300 THEN "
        f"CAST(0 AS DOUBLE PRECISION) ELSE CAST({raw} AS DOUBLE PRECISION) END WHEN {raw} > 0 THEN "
        f"CAST('Infinity' AS DOUBLE PRECISION) WHEN {raw} < 0 THEN CAST('-Infinity' AS DOUBLE PRECISION) END"
    )
    key = f"CASE WHEN {raw} <> 'NaN' THEN CAST(TRIM_SCALE({raw}) AS TEXT) COLLATE \"C\" END"
    return Cell(double, "float", there, key=key)


def _written(moment: str) -> str:
    low, high = ("CAST('0001-01-01' AS TIMESTAMP)", "CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)")
    return f'CASE WHEN {moment} BETWEEN {low} AND {high} THEN CAST({moment} AS TEXT) COLLATE "C" END'
