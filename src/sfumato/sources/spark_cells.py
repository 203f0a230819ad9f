"""What Spark's columns hold, by their types: each as cells of one of a few kinds, by expressions that cannot raise."""

from __future__ import annotations

import re

from .raw_cells import Cell
from .spark_numbers import DECIMAL_TEXT
from .spark_templates import text_of
from .spelling import PYTHON_BLANKS

_SPANS = {
    "tinyint": (-(2**7), 2**7 - 1), "smallint": (-(2**15), 2**15 - 1), "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_TEXT = re.compile(r"(string( collate .*)?|(var)?char\(\d+\))", re.IGNORECASE)
_MOST_PLACES = 36
_MOMENTS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")


def cell_of(raw: str, type_: str) -> Cell | None:
    """The raw column (an SQL expression) of this type, as Spark's `simpleString` writes it; None where it is none that
    is read."""
    present = f"({raw} IS NOT NULL)"
    if type_ in _SPANS:
        return Cell(raw, "whole", present, span=_SPANS[type_])
    if digits := _DECIMAL.fullmatch(type_):
        width, places = int(digits[1]), int(digits[2])
        if not places:
            return Cell(raw, "whole", present, span=(1 - 10**width, 10**width - 1))
        if not 0 < places <= _MOST_PLACES:
            return None
        return Cell(raw, "decimal", present, places=places, key=_plain(raw))
    if type_ in ("float", "double"):
        number = raw if type_ == "double" else f"CAST({raw} AS DOUBLE)"
        return Cell(f"CASE WHEN NOT ISNAN({raw}) THEN {number} END", "float", f"COALESCE(NOT ISNAN({raw}), FALSE)")
    if type_ == "boolean":
        return Cell(raw, "flag", present)
    if _TEXT.fullmatch(type_):
        # A column may bring an order of its own, by which 'A' is 'a'. Bytes that are no text are no cell of a text.
        return _text(f"COLLATE({raw}, 'UTF8_BINARY')", present)
    if type_ == "binary":
        return _text(f"CAST({raw} AS STRING)", present)
    if type_ == "date":
        return Cell(raw, "day", present)
    if type_ == "timestamp_ntz":
        return Cell(raw, "moment", present, key=_written(raw))
    if type_ == "timestamp":  # in UTC, as the session is
        moment = f"CAST({raw} AS TIMESTAMP_NTZ)"
        return Cell(moment, "moment", present, key=_written(moment))
    return None


def _text(text: str, present: str) -> Cell:
    proper = f"TRY_VALIDATE_UTF8({text})"
    blank = f"COALESCE(TRIM(BOTH {text_of(PYTHON_BLANKS)} FROM {proper}) = '', FALSE)"
    return Cell(proper, "text", f"({present} AND NOT {blank})")


def _plain(raw: str) -> str:
    """A decimal without zeros at its end."""
    return f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {DECIMAL_TEXT.replace('v_x', raw)}))"


def _written(moment: str) -> str:
    low, high = (f"CAST('{end}' AS TIMESTAMP_NTZ)" for end in _MOMENTS)
    return f"CASE WHEN {moment} BETWEEN {low} AND {high} THEN CAST({moment} AS STRING) END"
