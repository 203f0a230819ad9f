"""Lazy data frames over private tables, in polars' words: each is a query, and its plan is that of its SQL.

>>> from sfumato import Schema, Unit, frames, schema
>>> table = Schema.of(ward=schema.category(["east", "west"]), cost=schema.real(0, 1000))
>>> visits = frames.frame(table, unit=Unit())
>>> dear = frames.when(frames.col("cost") > 500).then(1).otherwise(0).sum()
>>> visits.group_by("ward").agg(n=frames.len(), dear=dear).columns
['ward', 'n', 'dear']
"""

from .expr import Expr
from .functions import (
    coalesce,
    col,
    concat,
    corr,
    cov,
    frame,
    int_range,
    lit,
    max_horizontal,
    min_horizontal,
    when,
)
from .functions import length as len
from .lazy_frame import GroupBy, LazyFrame

__all__ = [
    "Expr",
    "GroupBy",
    "LazyFrame",
    "coalesce",
    "col",
    "concat",
    "corr",
    "cov",
    "frame",
    "int_range",
    "len",
    "lit",
    "max_horizontal",
    "min_horizontal",
    "when",
]
