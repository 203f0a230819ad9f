"""What MariaDB's columns hold, by their types: each as cells of one of a few kinds, by casts that cannot raise."""

from __future__ import annotations

from .mariadb_texts import COLLATION, quoted_text
from .raw_cells import Cell

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_WIDEST = 38
_LONGEST_KEY = 250
"""Characters of a key that is compared as it is: sorting and temporary tables are made for short ones."""


def cell_of(raw: str, type_: str, unsigned: bool = False, digits: tuple[int, int] | None = None) -> Cell | None:
    """The raw column (an SQL expression) of this type as cells of one kind; None where the type is none that is read.

    type_   information_schema's DATA_TYPE
    digits  of a decimal: how many, and how many of them behind the point
    """
    present = f"({raw} IS NOT NULL)"
    if type_ in _BITS:
        return _whole(raw, _BITS[type_], unsigned, present)
    if type_ == "year":
        return Cell(f"CAST({raw} AS SIGNED)", "whole", present, span=(0, 9999))
    if type_ == "decimal" and digits is not None:
        return _decimal(raw, digits, present)
    if type_ in ("float", "double"):
        return Cell(raw if type_ == "double" else f"CAST({raw} AS DOUBLE)", "float", present)
    if type_ in _TEXTS:
        return text_cell(f"(CONVERT({raw} USING utf8mb4) COLLATE {COLLATION})")
    if type_ in ("uuid", "inet4", "inet6"):
        return Cell(f"(CAST({raw} AS CHAR) COLLATE {COLLATION})", "text", present)
    if type_ == "date":
        return Cell(_of_the_calendar(raw), "day", present)
    if type_ in ("datetime", "timestamp"):
        moment = f"CAST({_of_the_calendar(raw)} AS DATETIME(6))"
        written = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({moment} AS CHAR)))"
        return Cell(moment, "moment", present, key=written)
    return None


def text_cell(text: str) -> Cell:
    there = f"COALESCE(REGEXP_INSTR({text}, {quoted_text(_SIGN)}) > 0, FALSE)"
    key = (
        f"CAST(CASE WHEN CHAR_LENGTH({text}) <= {_LONGEST_KEY} THEN {text} "
        f"ELSE CONCAT(LEFT({text}, 100), ' sha256:', SHA2({text}, 256)) END AS CHAR({_LONGEST_KEY}))"
    )
    return Cell(text, "text", there, key=key)


_SIGN = r"[^ \t\n\v\f\r]"


def _whole(raw: str, bits: int, unsigned: bool, present: str) -> Cell:
    if not unsigned:
        return Cell(
            raw if bits == 64 else f"CAST({raw} AS SIGNED)",
            "whole",
            present,
            span=(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
        )
    if bits == 64:  # numbers without a sign raise where they are subtracted
        return Cell(f"CAST({raw} AS DECIMAL(20, 0))", "whole", present, span=(0, 2**64 - 1))
    return Cell(f"CAST({raw} AS SIGNED)", "whole", present, span=(0, 2**bits - 1))


def _decimal(raw: str, digits: tuple[int, int], present: str) -> Cell:
    """Exactly, where it has no more than 38 digits. Else as a DOUBLE, which a schema's bounds are, and as its digits
    where it is a key."""
    width, places = digits
    if width <= _WIDEST:
        if not places:
            return Cell(raw, "whole", present, span=(-(10**width - 1), 10**width - 1))
        return Cell(raw, "decimal", present, places=places)
    key = f"CAST({raw} AS CHAR)"
    if places:
        key = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {key}))"
    return Cell(f"CAST({raw} AS DOUBLE)", "float", present, key=key)


def _of_the_calendar(raw: str) -> str:
    """Days and months may be 0 there, and February have 31 days: no such day is one."""
    return f"CASE WHEN DAYOFMONTH({raw}) BETWEEN 1 AND DAYOFMONTH(LAST_DAY({raw})) AND YEAR({raw}) >= 1 THEN {raw} END"


def sent_cell(raw: str, type_: str, digits: tuple[int, int] | None = None) -> Cell:
    """A text that was sent, as cells of what it writes; `type_` is of the vocabulary."""
    there = f"({raw} IS NOT NULL)"
    text = f"(CONVERT({raw} USING utf8mb4) COLLATE {COLLATION})"
    if type_ == "BIGINT":
        return Cell(f"CAST({text} AS SIGNED)", "whole", there)
    if type_ == "BOOLEAN":
        return Cell(f"({text} = '1')", "flag", there)
    if type_ == "DOUBLE":
        words = f"CASE {text} WHEN 'inf' THEN 1.7976931348623157e308 WHEN '-inf' THEN -1.7976931348623157e308"
        return Cell(f"{words} WHEN 'nan' THEN NULL ELSE CAST({text} AS DOUBLE) END", "float", f"({raw} <> 'nan')")
    if type_ == "DECIMAL" and digits is not None:
        return _decimal(f"CAST({text} AS DECIMAL({max(digits[0], 1)}, {digits[1]}))", digits, there)
    if type_ == "DATE":
        return Cell(f"CAST({text} AS DATE)", "day", there)
    if type_ == "TIMESTAMP":
        moment = f"CAST({text} AS DATETIME(6))"
        written = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM CAST({moment} AS CHAR)))"
        return Cell(moment, "moment", there, key=written)
    return text_cell(text)
