"""What ClickHouse's columns hold, by their types: each as cells of one of a few kinds, by casts that cannot raise."""

from __future__ import annotations

import re

from .clickhouse_numbers import quoted_text
from .raw_cells import Cell

_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")
_BITS = re.compile(r"(U?)Int(8|16|32|64|128)")
_DECIMAL = re.compile(r"Decimal\((\d+), ?(\d+)\)")
_WIDEST = 38
_SIGN = r"[^ \t\n\v\f\r]"
_ENDS = "toDate32('0001-01-01') AND toDate32('9999-12-31')"


def bare(type_: str) -> str:
    """The type of the values, whether they may be NULL or not, and however they are stored."""
    while wrapped := _WRAPPED.fullmatch(type_):
        type_ = wrapped[1]
    return type_


def cell_of(raw: str, type_: str) -> Cell | None:
    """The raw column (an SQL expression) of this type as cells of one kind; None where it is none that is read."""
    type_, there = bare(type_), f"({raw} IS NOT NULL)"
    if integer := _BITS.fullmatch(type_):
        bits = int(integer[2])
        span = (0, 2**bits - 1) if integer[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if bits == 128 and integer[1]:
            return None
        wide = bits == 128 or (bits == 64 and integer[1])
        return Cell(f"{'toInt128' if wide else 'toInt64'}({raw})", "whole", there, span=span)
    if type_ in ("Float32", "Float64"):
        number = f"toFloat64({raw})"
        present = f"ifNull(NOT isNaN({raw}), false)"
        return Cell(f"CASE WHEN NOT isNaN({raw}) THEN {number} END", "float", present)
    if scaled := _DECIMAL.fullmatch(type_):
        return decimal_cell(raw, (int(scaled[1]), int(scaled[2])), there)
    if type_ == "Bool":
        return Cell(f"CASE WHEN {raw} THEN 1 WHEN NOT {raw} THEN 0 END", "flag", there)
    if type_ == "String":
        # Any bytes may stand in a text; what is none in UTF-8 is no text, and two such are not one.
        return text_cell(f"CAST(CASE WHEN isValidUTF8({raw}) THEN {raw} END AS Nullable(String))", raw)
    if type_ == "UUID" or type_.startswith(("Enum8(", "Enum16(")):
        return Cell(f"CAST({raw} AS Nullable(String))", "text", there)
    if type_ in ("Date", "Date32"):
        return Cell(f"toDate32({raw})", "day", there)
    if type_.startswith("DateTime"):
        moment = f"toDateTime64({raw}, 6, 'UTC')"
        return Cell(moment, "moment", there, key=written(moment))
    return None


def written(moment: str) -> str:
    return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM toString({moment})))"


def text_cell(text: str, raw: str) -> Cell:
    there = f"ifNull(match({raw}, {quoted_text(_SIGN)}), false)"
    return Cell(text, "text", there)


def decimal_cell(raw: str, digits: tuple[int, int], there: str) -> Cell | None:
    width, places = digits
    if width > _WIDEST:
        return None
    if not places:
        return Cell(f"toInt128({raw})", "whole", there, span=(-(10**width - 1), 10**width - 1))
    return Cell(f"CAST({raw} AS Nullable(Decimal(38, {places})))", "decimal", there, places=places)


def sent_cell(raw: str, type_: str, digits: tuple[int, int] | None = None) -> Cell:
    """A text that was sent, as cells of what it writes; `type_` is of the vocabulary."""
    there = f"({raw} IS NOT NULL)"
    if type_ == "BIGINT":
        return Cell(f"toInt64OrNull({raw})", "whole", there)
    if type_ == "BOOLEAN":
        return Cell(f"({raw} = '1')", "flag", there)
    if type_ == "DOUBLE":
        return Cell(
            f"CASE WHEN {raw} <> 'nan' THEN toFloat64OrNull({raw}) END", "float", f"ifNull({raw} <> 'nan', false)"
        )
    if type_ == "DECIMAL" and digits is not None:
        cell = decimal_cell(f"toDecimal128OrNull({raw}, {digits[1]})", digits, there)
        return cell or text_cell(raw, raw)
    if type_ == "DATE":
        return Cell(f"toDate32OrNull({raw})", "day", there)
    if type_ == "TIMESTAMP":
        moment = f"toDateTime64OrNull({raw}, 6, 'UTC')"
        return Cell(moment, "moment", there, key=written(moment))
    return text_cell(raw, raw)
