"""Random frames over random small tables: what they say without noise is what polars says."""

from __future__ import annotations

import datetime
from typing import Any

import polars as pl
import pytest
from frames_kit import beds, people, visits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato import frames
from tests.query.still import answered

FINE = {"rho": 10**4, "delta": 1e-6, "limits": {"rows": 60}}
WARDS = ["east", "north", "south"]

_value = st.integers(-9, 9)
_row = st.fixed_dictionaries({
    "patient": st.sampled_from(["P0", "P1", "P2", "P3"]), "ward": st.sampled_from([*WARDS, None]),
    "drug": st.sampled_from(["D0", "D1", None]), "score": st.none() | _value,
    "urgent": st.sampled_from([True, False, None]),
    "cost": st.integers(0, 40).map(lambda n: n / 4),
    "day": st.none() | st.integers(0, 30).map(lambda n: datetime.date(2026, 1, 1) + datetime.timedelta(days=n)),
})  # fmt: skip
_NUMBERS = ("score", "cost", "x", "y")

Tree = tuple[Any, ...]
_leaf: st.SearchStrategy[Tree] = st.tuples(st.just("col"), st.sampled_from(["score", "x"])) | st.tuples(
    st.just("lit"), _value
)


def _more(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    number = st.sampled_from([-7, -2, -1, 2, 3, 5])
    return (
        st.tuples(st.sampled_from(["+", "-", "*"]), inner, inner)
        | st.tuples(st.sampled_from(["//", "%"]), inner, number.map(lambda n: ("lit", n)))
        | st.tuples(st.sampled_from(["//", "%"]), inner, inner)
        | st.tuples(st.just("fill"), inner, inner)
        | st.tuples(st.just("when"), st.tuples(st.sampled_from(["<", "==", "!=", ">="]), inner, inner), inner, inner)
        | st.tuples(st.sampled_from(["abs", "-x", "sign"]), inner)
    )


_tree = st.recursive(_leaf, _more, max_leaves=4)
_test: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.sampled_from(["<", "==", "!=", ">="]), _tree, _tree)
    | st.tuples(
        st.sampled_from(["null", "there"]), st.tuples(st.just("col"), st.sampled_from(["score", "drug", "day"]))
    )
    | st.tuples(st.just("in"), st.lists(st.sampled_from(["D0", "D1", "D2", None]), max_size=3))
    | st.just(("col", "urgent")),
    lambda inner: st.tuples(st.sampled_from(["&", "|"]), inner, inner) | st.tuples(st.just("~"), inner),
    max_leaves=3,
)
_step: st.SearchStrategy[Tree] = (
    st.tuples(st.just("filter"), _test)
    | st.tuples(st.just("with"), st.sampled_from(["x", "y"]), _tree)
    | st.tuples(st.just("over"), st.sampled_from(["sum", "max", "len", "mean"]), _tree)
    | st.tuples(st.just("rank"), st.sampled_from(["min", "dense"]), st.booleans())
    | st.tuples(st.just("units"), _tree)
    | st.sampled_from([("people", "left"), ("people", "inner"), ("people", "semi"), ("people", "anti"), ("beds",)])
    | st.sampled_from([("unique",), ("drop_nulls", "score"), ("concat",)])
)  # fmt: skip


def value(f: Any, tree: Tree) -> Any:
    """An expression, in the words of either library."""
    head, *parts = tree
    if head == "col":
        return f.col(parts[0])
    if head == "lit":
        return f.lit(parts[0])
    if head == "in":
        return f.col("drug").is_in(parts[0])
    args = [value(f, part) for part in parts]
    first = args[0]
    if head == "when":
        return f.when(first).then(args[1]).otherwise(args[2])
    if head in ("abs", "sign"):
        return getattr(first, head)()
    return {
        "+": lambda: first + args[1], "-": lambda: first - args[1], "*": lambda: first * args[1],
        "//": lambda: first // args[1], "%": lambda: first % args[1], "fill": lambda: f.coalesce(first, args[1]),
        "<": lambda: first < args[1], "==": lambda: first == args[1], "!=": lambda: first != args[1],
        ">=": lambda: first >= args[1], "&": lambda: first & args[1], "|": lambda: first | args[1], "~": lambda: ~first,
        "-x": lambda: -first, "null": lambda: first.is_null(), "there": lambda: first.is_not_null(),
    }[head]()  # fmt: skip


COLUMNS = ["patient", "ward", "drug", "score", "cost", "urgent", "day", "x"]


def program(f: Any, tables: dict[str, Any], steps: list[Tree]) -> Any:
    """The steps, and a released number at the end; every step leaves the same columns."""
    frame = tables["visits"].with_columns(x=f.col("score") + 1).select(*COLUMNS)
    for step in steps:
        match step:
            case ("filter", test):
                frame = frame.filter(value(f, test))
            case ("with", name, tree):
                frame = frame.with_columns(value(f, tree).alias(name)).with_columns(x=f.col(name)).select(*COLUMNS)
            case ("over", how, tree) if _reads(tree):
                many = f.len() if how == "len" else getattr(value(f, tree), how)()
                frame = frame.with_columns(x=many.over("patient").cast(int if how == "len" else float))
            case ("rank", method, descending):
                place = f.col("score").rank(method, descending=descending)
                frame = frame.with_columns(x=place.over("patient", "ward").cast(int))  # polars' is unsigned
            case ("units", tree):
                frame = frame.group_by("patient", "ward").agg(
                    drug=f.col("drug").cast(str).min(),
                    score=(value(f, tree) if _reads(tree) else f.col("score")).sum(),
                    cost=f.col("cost").mean(), urgent=f.col("urgent").all(), day=f.col("day").max(),
                    x=f.col("drug").n_unique().cast(int),
                ).filter(f.col("score") > -100).select(*COLUMNS)  # fmt: skip
            case ("people", how):
                frame = frame.join(tables["people"], on="patient", how=how)
                if how in ("left", "inner"):
                    frame = frame.with_columns(x=f.col("born") - 1950).select(*COLUMNS)
            case ("beds",):
                frame = frame.join(tables["beds"], on="ward").with_columns(x=f.col("beds")).select(*COLUMNS)
            case ("unique",):
                frame = frame.unique()
            case ("drop_nulls", name):
                frame = frame.drop_nulls(name)
            case ("concat",):
                frame = f.concat([frame, frame])
    return frame.group_by("ward").agg(
        n=f.len(), s=f.col("x").clip(-50, 50).sum(), k=f.col("x").count(), c=f.col("cost").sum()
    )  # fmt: skip


def _reads(tree: Any) -> bool:
    return isinstance(tree, tuple) and (tree[:1] == ("col",) or any(map(_reads, tree)))


_POLARS = {
    "visits": {"patient": pl.String, "ward": pl.String, "drug": pl.String, "score": pl.Int64, "urgent": pl.Boolean,
               "cost": pl.Float64, "day": pl.Date, "at": pl.Datetime},
}  # fmt: skip


@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_row, min_size=1, max_size=12), st.lists(_step, max_size=4))
def test_random_frames_say_what_polars_says(rows: list[dict[str, Any]], steps: list[Tree]) -> None:
    tables = {
        "visits": pl.DataFrame([{**row, "at": None} for row in rows], schema=_POLARS["visits"]),
        "people": pl.DataFrame({"patient": ["P0", "P2", "P9"], "born": [1940, 1960, 1990]}),
        "beds": pl.DataFrame({"ward": WARDS, "floor": ["a", "b", "b"], "beds": [5, 6, 7]}),
    }
    lazy = program(pl, {name: table.lazy() for name, table in tables.items()}, steps)
    own = program(frames, {"visits": visits(), "people": people(), "beds": beds()}, steps)
    bounds = {"c": (0, 50)}
    plan = own.plan(**FINE, bounds=bounds)
    assert isinstance(plan, sf.query.Sql)
    answer = {line["ward"]: line for line in answered(plan, tables).rows}
    for truth in lazy.drop_nulls("ward").collect().to_dicts():
        line = answer.pop(truth["ward"])
        for name in ("n", "s", "k", "c"):
            assert line[name] == pytest.approx(truth[name], abs=0.05), (own.sql(), line, truth)
    assert all(abs(number) < 0.01 for line in answer.values() for name, number in line.items() if name != "ward")
