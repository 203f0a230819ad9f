"""polars is the oracle: a frame's answer without noise is what polars says of the same rows, step by step."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from frames_kit import SCHEMA, UNIT, beds, people, rows, visits

import sfumato as sf
from sfumato import frames
from sfumato.frames import LazyFrame
from tests.query.still import answered

TABLES = rows()
WIDE = {"rho": 10**4, "delta": 1e-6, "limits": {"rows": 60, "keys": 60, "values": 60}}  # fine enough a grid
DAY = datetime.date(2026, 3, 1)


def numbers(frame: LazyFrame, **options: Any) -> list[dict[str, Any]]:
    """The answer to the frame without noise."""
    plan = frame.plan(**{**WIDE, **options})
    assert isinstance(plan, sf.query.Sql)
    return [dict(row) for row in answered(plan, TABLES).rows]


def _sorted(lines: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
    return sorted(lines, key=lambda line: tuple(repr(line[key]) for key in keys))


def agree(
    own: LazyFrame, polars: pl.LazyFrame | pl.DataFrame, keys: list[str], near: float = 1e-3, **options: Any
) -> None:
    """The same groups with the same numbers; a group that is NULL is left out of a release."""
    answer = _sorted(numbers(own, **options), keys)
    oracle = polars.lazy().drop_nulls(keys).collect().to_dicts() if keys else polars.lazy().collect().to_dicts()
    expected = _sorted(oracle, keys)
    assert [[line[key] for key in keys] for line in answer] == [[line[key] for key in keys] for line in expected]
    for line, truth in zip(answer, expected, strict=True):
        assert set(line) == set(truth)
        for name, value in truth.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert math.isclose(line[name], value, rel_tol=near, abs_tol=0.05), (name, line, truth)


def of_polars(name: str) -> pl.LazyFrame:
    return TABLES[name].lazy()


# The same steps in both languages: f is `sfumato.frames` or polars itself.
VALUES: dict[str, Callable[[Any], Any]] = {
    "floor division": lambda f: f.col("score") // 7,
    "floor division by below 0": lambda f: f.col("score") // -7,
    "floor division of columns": lambda f: f.col("score") // (f.col("score") + 3),
    "modulo": lambda f: f.col("score") % 7,
    "modulo of below 0": lambda f: f.col("score") % -7,
    "modulo of reals": lambda f: (f.col("cost") - 500) % 7,
    "division": lambda f: f.col("score") / 4,
    "floor division of reals": lambda f: (f.col("cost") - 500) // 7.5,
    "powers": lambda f: f.col("score") ** 2,
    "cut off": lambda f: (f.col("cost") - 500).cast(int),
    "to truth": lambda f: (f.col("cost") - 500).cast(bool).cast(int),
    "absolute": lambda f: f.col("score").abs(),
    "signs": lambda f: f.col("score").sign(),
    "ceilings": lambda f: (f.col("cost") / 3).ceil() + (f.col("cost") / 3).floor(),
    "rounded": lambda f: f.col("cost").round(0, "half_away_from_zero"),
    "roots": lambda f: f.col("cost").sqrt(),
    "logarithms": lambda f: (f.col("cost") + 1).log() + (f.col("cost") + 1).log(2),
    "clipped": lambda f: f.col("score").clip(-10, 20),
    "filled": lambda f: f.col("score").fill_null(7),
    "first of": lambda f: f.coalesce("score", f.lit(3)),
    "largest": lambda f: f.max_horizontal("score", f.lit(3)),
    "least": lambda f: f.min_horizontal("score", f.col("cost")),
    "choices": lambda f: f.when(f.col("score") > 3).then(1).when(f.col("urgent")).then(f.col("score")).otherwise(-1),
    "choices without": lambda f: f.when(f.col("score") > 3).then(1),
    "in": lambda f: f.col("drug").is_in(["D1", "D2"]).cast(int),
    "in with none": lambda f: (~f.col("drug").is_in(["D1", None])).cast(int),
    "in nothing": lambda f: f.col("drug").is_in([]).cast(int),
    "in with nulls": lambda f: f.col("drug").is_in(["D1", None], nulls_equal=True).cast(int),
    "between": lambda f: f.col("score").is_between(-3, 20, closed="left").cast(int),
    "missing alike": lambda f: f.col("drug").eq_missing(f.lit(None)).cast(int),
    "missing unlike": lambda f: f.col("drug").ne_missing("D1").cast(int),
    "and": lambda f: (f.col("urgent") & (f.col("score") > 0)).cast(int),
    "or": lambda f: (f.col("urgent") | (f.col("score") > 0)).cast(int),
    "not": lambda f: (~f.col("urgent")).cast(int),
    "parts of dates": lambda f: f.col("day").dt.month().cast(int) * 100 + f.col("day").dt.day(),
    "weeks": lambda f: f.col("day").dt.week().cast(int) * 10 + f.col("day").dt.weekday(),
    "days of the year": lambda f: f.col("day").dt.ordinal_day() + f.col("day").dt.quarter() + f.col("day").dt.year(),
    "hours": lambda f: f.col("at").dt.hour() + f.col("at").dt.minute() + f.col("at").dt.second(),
    "days between": lambda f: (f.col("day") - DAY).dt.total_days(),
    "months begin": lambda f: (f.col("day") - f.col("day").dt.month_start()).dt.total_days(),
    "months end": lambda f: (f.col("day").dt.month_end() - f.col("day")).dt.total_days(),
    "days of moments": lambda f: (f.col("at").dt.date() - DAY).dt.total_days(),
    "weeks begin": lambda f: (f.col("day") - f.col("day").dt.truncate("1w")).dt.total_days(),
    "moved": lambda f: (f.col("day").dt.offset_by("1mo") - f.col("day")).dt.total_days(),
    "added": lambda f: (f.col("day") + datetime.timedelta(days=3) - DAY).dt.total_days(),
    "days compared": lambda f: (f.col("day") - DAY > datetime.timedelta(days=9)).cast(int),
    "lengths": lambda f: f.col("drug").str.len_chars() + f.col("drug").str.to_lowercase().str.len_chars(),
    "starts": lambda f: (f.col("ward").str.starts_with("n") | f.col("ward").str.ends_with("t")).cast(int),
    "contains": lambda f: f.col("ward").str.contains("ort").cast(int),
    "pieces": lambda f: (f.col("drug").str.slice(1, 1) == "3").cast(int),
    "heads": lambda f: (f.col("ward").str.head(2) + f.col("ward").str.tail(1) == "eat").cast(int),
    "replaced": lambda f: f.col("ward").str.replace_all("t", "tt", literal=True).str.len_chars(),
    "stripped": lambda f: (f.col("ward") + " ").str.strip_chars(" ").str.len_chars(),
    "stripped of letters": lambda f: f.col("ward").str.strip_chars_end("t").str.len_chars(),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_mean_what_polars_says(name: str) -> None:
    """Sums and counts of an expression, over rows with missing values, by group."""
    make = VALUES[name]

    def steps(f: Any, table: Any) -> Any:
        made = table.with_columns(x=make(f)).group_by("urgent")
        return made.agg(s=f.col("x").sum(), n=f.col("x").count(), rows=f.len())

    agree(steps(frames, visits()), steps(pl, of_polars("visits")), ["urgent"], bounds={"s": (-3000, 3000)})


SUMMARIES: dict[str, Callable[[Any], list[Any]]] = {
    "sums": lambda f: [f.col("score").sum().alias("a"), f.col("urgent").sum().alias("b")],
    "means": lambda f: [f.col("cost").mean().alias("a"), f.col("score").mean().alias("b")],
    "spreads": lambda f: [f.col("cost").var().alias("a"), f.col("cost").std(ddof=0).alias("b")],
    "together": lambda f: [f.corr("cost", "score").alias("a"), f.cov("cost", "score").alias("b")],
    "counts": lambda f: [f.len().alias("a"), f.col("drug").count().alias("b"), f.col("day").null_count().alias("c")],
    "people": lambda f: [f.col("patient").n_unique().alias("a")],
    "different": lambda f: [f.col("drug").n_unique().alias("a")],
    "different that are there": lambda f: [f.col("drug").drop_nulls().n_unique().alias("a")],
    "filtered": lambda f: [
        f.col("score").filter(f.col("urgent"), f.col("cost") > 100).sum().alias("a"),
        f.col("score").filter(f.col("urgent")).len().alias("b"),
    ],
    "ratios": lambda f: [(f.col("cost").sum() / f.len()).alias("a"), (f.len() * 2).alias("b")],
}  # fmt: skip


@pytest.mark.parametrize("name", SUMMARIES)
def test_aggregates_mean_what_polars_says(name: str) -> None:
    def steps(f: Any, table: Any) -> Any:
        return table.group_by("ward").agg(*SUMMARIES[name](f))

    oracle = steps(pl, of_polars("visits")).collect()
    empty = [{"ward": "west"}]  # public groups appear, also those without rows
    own = [line for line in numbers(steps(frames, visits())) if line["ward"] != "west"]
    assert empty and "west" not in oracle["ward"].to_list()
    expected = _sorted(oracle.drop_nulls("ward").to_dicts(), ["ward"])
    for line, truth in zip(_sorted(own, ["ward"]), expected, strict=True):
        assert line["ward"] == truth["ward"]
        assert all(math.isclose(line[key], truth[key], rel_tol=1e-3) for key in truth if key != "ward"), (line, truth)


STEPS: dict[str, tuple[list[str], Callable[[Any, Callable[[str], Any]], Any]]] = {
    "per unit": (["n"], lambda f, t: t("visits").group_by("patient").agg(n=f.len()).group_by("n").agg(m=f.len())),
    "per unit and column": (["ward"], lambda f, t: t("visits").group_by("patient", "ward").agg(
        s=f.col("score").sum(), d=f.col("drug").n_unique(), m=f.col("cost").median(),
        q=f.col("cost").quantile(0.3, "equiprobable"), v=f.col("cost").max(), y=f.col("urgent").any(),
        z=f.col("urgent").all(), late=f.col("day").max(),
    ).filter(f.col("s") > -20).group_by("ward").agg(
        s=f.col("s").clip(-500, 500).sum(), d=f.col("d").clip(0, 9).sum(), m=f.col("m").sum(), q=f.col("q").sum(),
        v=f.col("v").sum(), y=f.col("y").sum(), z=f.col("z").sum(),
        late=(f.col("late") - DAY).dt.total_days().clip(-999, 999).sum(), n=f.len(),
    )),
    "joined": (["floor"], lambda f, t: t("visits").join(t("beds"), on="ward").group_by("floor").agg(
        n=f.len(), beds=f.col("beds").sum())),
    "joined with people": (["ward"], lambda f, t: t("visits").join(t("people"), on="patient", how="left")
        .group_by("ward").agg(born=f.col("born").count(), n=f.len())),
    "right": (["ward"], lambda f, t: t("people").join(
        t("visits").filter(f.col("cost") > 300), on="patient", how="right")
        .group_by("ward").agg(born=f.col("born").count(), n=f.len())),
    "full": (["ward"], lambda f, t: t("visits").filter(f.col("cost") > 300).join(
        t("people"), on="patient", how="full", coalesce=True).with_columns(f.col("ward").fill_null("west"))
        .group_by("ward").agg(born=f.col("born").count(), n=f.len(), p=f.col("patient").count())),
    "semi": (["ward"], lambda f, t: t("visits").join(t("people").filter(f.col("born") < 1980), on="patient", how="semi")
        .group_by("ward").agg(n=f.len())),
    "anti": (["ward"], lambda f, t: t("visits").join(t("people"), left_on="patient", right_on="patient", how="anti")
        .group_by("ward").agg(n=f.len())),
    "stacked": (["ward"], lambda f, t: f.concat([t("visits").select("patient", "ward"), t("visits").filter(
        f.col("urgent")).select("patient", "ward")]).group_by("ward").agg(n=f.len())),
    "distinct": (["ward"], lambda f, t: t("visits").select("patient", "ward").unique().group_by("ward").agg(n=f.len())),
    "whole windows": (["ward"], lambda f, t: t("visits").with_columns(
        s=f.col("score").sum().over("patient"), m=f.col("cost").mean().over("patient", "ward"))
        .filter(f.col("cost") > f.col("m")).group_by("ward").agg(n=f.len(), s=f.col("s").clip(-500, 500).sum())),
    "ranks": (["ward"], lambda f, t: t("visits").with_columns(
        a=f.col("score").rank("min").over("patient"), b=f.col("cost").rank("dense", descending=True).over("patient"))
        .filter(f.col("b") <= 2).group_by("ward").agg(a=f.col("a").clip(0, 50).sum(), n=f.len())),
    "numbers of rows": (["ward"], lambda f, t: t("visits").filter(f.int_range(f.len()).over(
        "patient", order_by=["day", "at", "cost", "score"]) < 2).group_by("ward").agg(n=f.len())),
    "running": (["ward"], lambda f, t: t("visits").with_columns(c=f.col("score").cum_sum().over(
        "patient", order_by=["at", "day", "cost", "score"]), k=f.col("score").cum_count().over(
        "patient", order_by=["at", "day", "cost", "score"])).group_by("ward").agg(
        c=f.col("c").clip(-900, 900).sum(), n=f.col("c").count(), k=f.col("k").clip(0, 99).sum())),
    "shifted": (["ward"], lambda f, t: t("visits").with_columns(
        p=f.col("score").shift(1).over("patient", order_by=["at", "day", "cost", "score"]),
        d=f.col("score").diff().over("patient", order_by=["at", "day", "cost", "score"]),
        first=f.col("score").first().over("patient", order_by=["at", "day", "cost", "score"]),
        last=f.col("score").last().over("patient", order_by=["at", "day", "cost", "score"]))
        .group_by("ward").agg(f.col("p").sum(), f.col("d").sum(), f.col("first").sum(), f.col("last").sum(),
        n=f.len())),
    "having": (["ward"], lambda f, t: t("visits").group_by("ward").agg(n=f.len(), s=f.col("cost").sum())
        .filter(f.col("n") > 60).with_columns(m=f.col("s") / f.col("n")).select("ward", "m", "n")),
    "a filter after a window": (["ward"], lambda f, t: t("visits").with_columns(
        n=f.len().over("patient")).filter(f.col("urgent")).group_by("ward").agg(n=f.col("n").clip(0, 99).sum())),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps_mean_what_polars_says(name: str) -> None:
    keys, steps = STEPS[name]
    tables = {"visits": visits(), "people": people(), "beds": beds()}
    bounds = {"n": {"n": (0, 10_000)}}.get(name, {})
    oracle = steps(pl, of_polars).collect()
    seen = {line[keys[0]] for line in oracle.to_dicts()}
    own = steps(frames, tables.__getitem__)
    lines = [line for line in numbers(own, bounds=bounds) if line[keys[0]] in seen]
    expected = _sorted(oracle.drop_nulls(keys).to_dicts(), keys)
    lines = _sorted(lines, keys)
    assert [line[keys[0]] for line in lines] == [line[keys[0]] for line in expected]
    for line, truth in zip(lines, expected, strict=True):
        assert all(line[key] == pytest.approx(truth[key], rel=1e-3) for key in truth if key not in keys), (line, truth)


def test_the_order_of_an_answer_is_polars() -> None:
    def steps(f: Any, table: Any) -> Any:
        counts = table.group_by("drug").agg(n=f.len()).sort("n", "drug", descending=[True, False])
        return counts.filter(f.col("drug").is_not_null()).head(3)

    own = numbers(steps(frames, visits()), keys={"drug": [f"D{n}" for n in range(6)]})
    assert [(line["drug"], round(line["n"])) for line in own] == steps(pl, of_polars("visits")).collect().rows()
    assert SCHEMA.tables["visits"].unit == UNIT.column
