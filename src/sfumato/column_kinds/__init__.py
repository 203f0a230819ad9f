"""Kinds of columns, each with all that is special about it: `KINDS` by word, in the order in which they are named.

>>> from sfumato import schema
>>> schema.whole(0, 110).of_kind.is_number
True
"""

from __future__ import annotations

from .array_columns import TensorKind
from .column_kind import DROP, KINDS, AnyColumn, Chance, ColumnKind, SingleValue, Words, register, shown
from .key_columns import COMMON_KEYS, KeyKind
from .listed_columns import CategoryKind, FlagKind
from .number_columns import DIGITS, RealKind, WholeKind, whole_bounds
from .time_columns import DateKind, MomentKind

__all__ = [
    "COMMON_KEYS",
    "DIGITS",
    "DROP",
    "KINDS",
    "AnyColumn",
    "Chance",
    "ColumnKind",
    "SingleValue",
    "Words",
    "register",
    "shown",
    "whole_bounds",
]

for _kind in (RealKind(), WholeKind(), CategoryKind(), FlagKind(), KeyKind(), DateKind(), MomentKind(), TensorKind()):
    register(_kind)
