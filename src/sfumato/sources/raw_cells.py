"""A raw column as an engine hands it over: its own SQL for the cells, and what kind of thing these are.

This is all that an engine says of how cells are stored in it. What a schema makes of them (bounds, decimals,
categories, flags, keys, dates, NULLs) is `reading`, in words of the vocabulary, once for all engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..schema import INT64

Kind = Literal["whole", "decimal", "float", "flag", "text", "day", "moment", "none"]


@dataclass(frozen=True)
class Cell:
    """One raw column.

    sql     an expression of the engine's own SQL over the raw column. It gives NULL where there is no cell, or none of
            this kind, and raises for none; what it gives depends on no other row, and not on what a file says of its
            columns beside their types. It is a name, a call or in brackets, so that it may stand inside of others
    kind    what it gives, in a type of the vocabulary: "whole" an integer, of BIGINT where `span` is that of 64 bits,
            "decimal" a DECIMAL, "float" a DOUBLE that is not NaN, "flag" a BOOLEAN, "text" a VARCHAR that is compared
            by its bytes, "day" a DATE, "moment" a TIMESTAMP in UTC, "none" nothing that a schema could mean
    there   the engine's SQL for whether there is a cell at all: empty and blank texts are none, nor is NaN
    span    of "whole": the least and the largest
    places  of "decimal": how many stand behind the point
    key     the engine's SQL for the text that tells such cells apart, where their kind says too little for it: times
            of day, moments finer than a microsecond; empty where there is none
    """

    sql: str
    kind: Kind
    there: str
    span: tuple[int, int] = INT64
    places: int | None = None
    key: str = ""
