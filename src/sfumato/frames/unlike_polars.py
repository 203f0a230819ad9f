"""What polars has and a private frame has not, with what to write: so that a missing method is no riddle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FRAMES: Final = {
    "collect": "a frame holds no rows: curator.release(frame.plan(epsilon=...)) answers it",
    "fetch": "a frame holds no rows: curator.rehearse(frame.plan(...)) runs it on made-up ones",
    "tail": "sort the other way, and take head()",
    "slice": "take head()",
    "first": "rows have no order: group_by(unit), and min() or max()",
    "last": "rows have no order: group_by(unit), and min() or max()",
    "sample": "limits={'sample': ...} of plan() keeps a part of each unit's groups",
    "pivot": "group_by() both columns, and pivot the answer's to_polars()",
    "unpivot": "concat() a select() for each column",
    "explode": "columns hold no lists here",
    "map_batches": "no code of yours runs on private rows",
    "with_row_index": "rows have no order: int_range(len()).over(unit, order_by=...)",
    "join_asof": "join() on the unit, and filter",
    "join_where": "join() on the unit, and filter",
    "group_by_dynamic": "group_by(col('day').dt.truncate('1mo'))",
    "rolling": "a window: col('x').sum().over(...), or private SQL with a RANGE frame",
    "describe": "select() the aggregates that you want: each is paid for",
    "show": "print(frame) shows its SQL",
    "schema": "the data's own schema says what columns hold; frame.columns names them",
    "lazy": "it is lazy",
    "count": "select(len()), or count() of each column",
    "sum": "select(col(...).sum()) of each column",
    "mean": "select(col(...).mean()) of each column",
    "group_by_rolling": "a window: col('x').sum().over(...)",
    "fill_null": "with_columns(col(...).fill_null(...))",
    "cast": "with_columns(col(...).cast(...))",
    "reverse": "rows have no order: sort() released ones",
    "vstack": "concat([a, b])",
}
EXPRESSIONS: Final = {
    "hist": "its bins hold their upper edges, those of private SQL their lower ones: histogram(edges)",
    "mode": "it is a list in polars: count() by group, or MODE in private SQL per unit",
    "implode": "columns hold no lists here",
    "unique": "n_unique() counts values; unique() of a frame",
    "value_counts": "group_by(column).agg(len())",
    "sort": "rows have no order: sort() the released frame",
    "sort_by": "give the order to over(): .over(unit, order_by='day')",
    "head": "rows have no order: filter by rank() or int_range(len()) over the unit",
    "tail": "rows have no order: filter by rank() or int_range(len()) over the unit",
    "get": "rows have no order: filter by rank() or int_range(len()) over the unit",
    "map_elements": "no code of yours runs on private rows",
    "map_batches": "no code of yours runs on private rows",
    "replace": "when(...).then(...).otherwise(...)",
    "replace_strict": "when(...).then(...).otherwise(...)",
    "cut": "when(...).then(...).otherwise(...), or histogram(edges)",
    "qcut": "quantile() first, and when(...) with what was released",
    "product": "sum() of log()",
    "is_nan": "there is no NaN: is_null()",
    "is_not_nan": "there is no NaN: is_not_null()",
    "fill_nan": "there is no NaN: fill_null()",
    "is_finite": "all numbers are finite: is_not_null()",
    "is_infinite": "all numbers are finite",
    "nan_max": "there is no NaN: max()",
    "nan_min": "there is no NaN: min()",
    "skew": "it is not among the aggregates",
    "kurtosis": "it is not among the aggregates",
    "arg_max": "rows have no order: filter by rank() over the unit",
    "arg_min": "rows have no order: filter by rank() over the unit",
    "is_unique": "values of different units would be compared: len() over the unit and the column, == 1",
    "is_duplicated": "values of different units would be compared: len() over the unit and the column, > 1",
    "is_first_distinct": "rows have no order: rank('ordinal') over the unit and the column",
    "rolling_sum": "a window in private SQL: SUM(x) OVER (... ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "rolling_mean": "a window in private SQL: AVG(x) OVER (... ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "forward_fill": "the order of rows decides: shift() over the unit",
    "backward_fill": "the order of rows decides: shift(-1) over the unit",
    "interpolate": "the order of rows decides",
    "shuffle": "random numbers are no business of a query",
    "approx_n_unique": "n_unique() is noisy already",
    "list": "columns hold no lists here",
    "name": "alias() names a column",
    "truncate": "cast(int), or floor()",
}


def no_such_method(whose: str, name: str, words: Mapping[str, str]) -> AttributeError:
    """The error of a name that is not there; the caller raises it."""
    if name in words:
        return AttributeError(f"{whose} has no {name!r} here: {words[name]}")
    return AttributeError(
        f"{whose} has no {name!r}: docs/frames.md lists what there is, and .sql() may be written on by hand"
    )
