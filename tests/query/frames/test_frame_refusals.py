"""What is refused, where, and in which words; and that a frame never changes and takes any name."""

from __future__ import annotations

import copy
import dataclasses
import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from frames_kit import SCHEMA, UNIT, beds, people, visits

import sfumato as sf
from sfumato.errors import ArgumentError, PlanError
from sfumato.frames import LazyFrame, coalesce, col, concat, corr, cov, frame, int_range, len, lit, max_horizontal, when
from sfumato.schema import Table, category, key, real, whole

BUDGET: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "limits": {"rows": 5}}

BY_SQL: list[tuple[Callable[[], LazyFrame], str, str]] = [
    (lambda: visits(), "show rows", ""),
    (lambda: visits().select("cost"), "", ""),
    (lambda: visits().group_by("patient").agg(n=len()), "unit", "group_by()"),
    (lambda: visits().with_columns(r=col("cost").rank("min")).group_by("r").agg(n=len()), "PARTITION BY", "over()"),
    (lambda: visits().filter(col("cost") > col("cost").mean()).select(n=len()), "PARTITION BY", "over()"),
    (lambda: visits().join(people(), left_on="ward", right_on="patient").select(n=len()), "", "join()"),
    (lambda: visits().head(5).select(n=len()), "LIMIT", ""),
    (lambda: visits().select("ward").unique().select(n=len()), "", ""),
    (lambda: visits().filter(col("drug") + 1 > "a").select(m=col("drug").min()), "", "agg()"),
]


@pytest.mark.parametrize("case", range(8))
def test_what_sql_refuses_is_refused_alike(case: int) -> None:
    made, rule, step = BY_SQL[case]
    with pytest.raises(PlanError) as own:
        made().plan(**BUDGET)
    with pytest.raises(PlanError) as written:
        sf.sql(made().sql(), SCHEMA, unit=UNIT, **BUDGET)
    assert rule in str(own.value) and step in str(own.value)
    assert str(own.value).replace(f" ({step} wrote this.)", "") == str(written.value) or not step
    assert own.value.fix == written.value.fix


def test_a_refusal_says_which_step_wrote_what_is_underlined() -> None:
    made = visits().with_columns(r=col("cost").rank("min")).group_by("r").agg(n=len())
    with pytest.raises(
        PlanError, match=r"\(over\(\) wrote this\.\)[^^]*\n[^^]*\^+\nInstead: add visits.patient to PARTITION BY"
    ):
        made.plan(**BUDGET)


WORDS: list[tuple[Callable[[], Any], str]] = [
    (lambda: visits().filter(col("price") > 3), "one of: patient, ward"),
    (lambda: visits().drop("price"), "one of: patient, ward"),
    (lambda: visits().group_by("ward").agg(col("cost")), "list of the group's values"),
    (lambda: visits().group_by("ward").agg(col("cost") - col("cost").mean()), "list of the group's values"),
    (lambda: visits().group_by("ward").agg(col("cost").sum().mean()), "aggregate of an aggregate"),
    (lambda: visits().group_by("ward").agg(lit(1).sum()), "as one row"),
    (lambda: visits().group_by("ward").agg(col("cost").shift(1)), "list of the group's values"),
    (lambda: visits().group_by("ward").agg(col("cost").sum(), col("cost").mean()), "names that differ"),
    (lambda: visits().group_by("ward").agg(Cost=col("cost").sum(), cost=col("cost").mean()), "names that differ"),
    (lambda: visits().group_by().agg(n=len()), "columns, or expressions"),
    (lambda: visits().group_by(col("cost").mean()).agg(n=len()), "values of single rows"),
    (lambda: visits().group_by("ward").agg(col("cost").sum().over("patient").max()), "aggregate"),
    (lambda: visits().group_by("ward", maintain_order=True), "no order of their own"),
    (lambda: visits().select(col("score").shift(1)), "no order of their own"),
    (lambda: visits().select(col("score").cum_sum().over("patient")), "no order of their own"),
    (lambda: visits().select(col("score").over("patient")), "looks at several rows"),
    (lambda: visits().select(col("score").sum().over()), "says over which rows"),
    (lambda: visits().select(col("score").rank().over("patient")), "rank('min')"),
    (lambda: visits().select(col("cost").filter(col("urgent")) + 1), "an aggregate follows"),
    (lambda: visits().select(col("cost").round()), "half_away_from_zero"),
    (lambda: visits().select(col("cost").cast(int, strict=True)), "leave strict out"),
    (lambda: visits().select(col("drug").cast(int)), "cast to Float64 first"),
    (lambda: visits().select(col("cost").cast("Categorical")), "not cast to Categorical"),
    (lambda: visits().select(col("cost").cast(str)), "differs between polars and SQL"),
    (lambda: visits().select(col("drug") * 2), "Texts have no"),
    (lambda: visits().select(~col("score")), "turns its bits"),
    (lambda: visits().select(col("at") - col("at")), "Duration"),
    (lambda: visits().select(col("day") + 3), "add a datetime.timedelta"),
    (lambda: visits().select(col("day") + datetime.timedelta(hours=3)), "no hours"),
    (lambda: visits().select(col("at") + datetime.timedelta(microseconds=3)), "whole seconds"),
    (lambda: visits().select(col("day") - col("day") > 3), "compared with another one"),
    (lambda: visits().select(col("cost").dt.total_days()), "difference of dates"),
    (lambda: visits().select(col("day").dt.truncate("3d")), "none of SQL's"),
    (lambda: visits().select(col("day").dt.offset_by("3q")), "none of SQL's"),
    (lambda: visits().select(col("day").dt.offset_by("3h")), "no hours"),
    (lambda: visits().select(col("at").dt.month_end()), "keeps its hours"),
    (lambda: visits().select(col("day").dt.strftime("%A")), "%Y %m %d"),
    (lambda: visits().select(col("drug").str.contains("^D")), "no regular expressions"),
    (lambda: visits().select(col("drug").str.replace_all("", "x")), "Nothing cannot"),
    (lambda: visits().select(col("drug").str.slice(-1)), "from 0 on"),
    (lambda: visits().select(col("drug").str.strip_chars()), "all kinds of blanks"),
    (lambda: visits().select(col("drug").str.starts_with(3)), "stands in the query"),
    (lambda: visits().select(col("cost").is_in("east")), "stand in the query"),
    (lambda: visits().select(col("cost") > float("nan")), "no NaN"),
    (lambda: visits().select(col("cost") > object()), "a number, text"),
    (lambda: visits().select(col("cost").is_between(1, 2, closed="up")), "closed='both'"),
    (lambda: visits().select(col("cost").quantile(2)), "from 0 to 1"),
    (lambda: visits().select(col("cost").quantile(0.5, "odd")), "is nothing"),
    (lambda: visits().select(col("cost").var(2)), "ddof=1 or ddof=0"),
    (lambda: visits().select(cov("cost", "score", 3)), "ddof=1 or ddof=0"),
    (lambda: visits().select(corr("cost", col("score").drop_nulls())), "first one is filtered"),
    (lambda: visits().select(col("score").any()), "of conditions"),
    (lambda: visits().select(col("urgent").any(ignore_nulls=False)), "fill_null"),
    (lambda: visits().group_by("patient").agg(q=col("cost").quantile(0.5)).select(n=len()).sql(), "equiprobable"),
    (lambda: visits().group_by("patient").agg(q=col("day").median()).select(n=len()).sql(), "equiprobable"),
    (lambda: visits().unique("ward"), "stays would be left open"),
    (lambda: visits().unique(keep="first"), "the order of rows"),
    (lambda: visits().join(beds(), on="ward", how="sideways"), "how"),
    (lambda: visits().join(beds()), "how='cross'"),
    (lambda: visits().join(beds(), left_on="ward", right_on=["ward", "floor"]), "how='cross'"),
    (lambda: visits().join(beds(), on="ward", left_on="ward"), "left_on with right_on"),
    (lambda: visits().join(beds(), on="ward", coalesce=True), "leave it out"),
    (lambda: visits().join("beds", on="ward"), "a frame of the same data"),  # type: ignore[arg-type]
    (lambda: visits().join(visits(), on="patient", suffix=""), "suffix"),
    (lambda: visits().sort("ward", descending=[True, False]), "one for each column"),
    (lambda: visits().head(-1), "from 0 on"),
    (lambda: visits().rename({"cost": "ward"}), "names that differ"),
    (lambda: visits().drop(*visits().columns), "at least one"),
    (lambda: concat([visits(), people()]), "with the columns"),
    (lambda: concat([]), "frames"),
    (lambda: concat([visits()], how="diagonal"), "how='diagonal'"),
    (lambda: int_range(5), "int_range(len())"),
    (lambda: coalesce(), "columns or expressions"),
    (lambda: max_horizontal(), "columns or expressions"),
    (lambda: when(), "conditions"),
    (lambda: col("*"), "one column"),
    (lambda: frame(SCHEMA, "stays", unit=UNIT), "one of: visits"),
    (lambda: visits().plan(dialect="mysql", **BUDGET), "writes its own SQL"),
]


@pytest.mark.parametrize("case", range(WORDS.__len__()))
def test_what_polars_means_otherwise_is_refused(case: int) -> None:
    made, word = WORDS[case]
    with pytest.raises(ArgumentError) as refusal:
        made()
    assert word in str(refusal.value), str(refusal.value)


def test_what_is_not_there_says_what_to_write() -> None:
    for whose, name, word in (
        (visits(), "collect", "curator.release"), (visits(), "tail", "head()"), (visits(), "nothing", "docs/frames.md"),
        (col("cost"), "hist", "histogram(edges)"), (col("cost"), "sort_by", "over()"), (col("cost"), "x", "frames.md"),
        (visits().group_by("ward"), "mean", "agg"),
    ):  # fmt: skip
        with pytest.raises(AttributeError) as refusal:
            getattr(whose, name)
        assert word in str(refusal.value)
    assert not hasattr(visits(), "collect") and not hasattr(col("cost"), "hist")


def test_a_schema_of_several_private_tables_wants_a_name() -> None:
    with pytest.raises(PlanError, match="name the one you mean"):
        frame(SCHEMA, unit=UNIT)
    with pytest.raises(ArgumentError, match="a Unit"):
        frame(SCHEMA, "visits")


def test_frames_and_expressions_do_not_change() -> None:
    start, cost = visits(), col("cost")
    text, shown = start.sql(), repr(cost)
    start.filter(cost > 3).with_columns(x=cost).group_by("ward").agg(cost.sum()).sort("ward").head(2).sql()
    cost.sum().over("patient")
    assert (start.sql(), repr(cost)) == (text, shown)
    with pytest.raises(dataclasses.FrozenInstanceError):
        start._block = None  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        cost._name = "x"
    with pytest.raises(TypeError, match="write & for and"):
        bool(cost == 3)
    with pytest.raises(TypeError):
        hash(cost)
    twice = visits().group_by("ward").agg(n=len())
    assert twice.filter(col("n") > 3).sql() != twice.sql() == copy.copy(twice).sql()


def test_expressions_and_frames_show_themselves() -> None:
    assert repr(col("cost").filter(col("urgent")).sum()) == "<SUM(cost) FILTER(WHERE urgent)>"
    assert repr(visits().select("cost")) == "<LazyFrame of cost>\nSELECT\n  cost\nFROM visits"
    assert visits().columns[:2] == ["patient", "ward"]
    assert visits().pipe(lambda table, name: table.select(name), "day").columns == ["day"]


def test_any_value_stands_in_a_query() -> None:
    values = [3, -3, 10**20, 0.1, -1e-7, Decimal("2.50"), np.int64(7), np.float64(0.5), True, None, "it's"]
    assert [repr(lit(value))[1:-1] for value in values] == [
        "3", "-3", "1" + "0" * 20, "0.1", "-0.0000001", "2.50", "7", "0.5", "TRUE", "NULL", "'it''s'",
    ]  # fmt: skip
    east = datetime.timezone(datetime.timedelta(hours=2))
    assert repr(lit(datetime.datetime(2026, 1, 1, 1, tzinfo=east))) == "<CAST('2025-12-31 23:00:00' AS TIMESTAMP)>"


ODD = ['Total "cost"', "select", "a.b", "ward name", "Ünit", "x;y", "it's", "GROUP BY"]


def test_columns_may_be_called_anything() -> None:
    columns: dict[str, Any] = {name: real(0, 10) for name in ODD}
    schema = sf.Schema(
        {'My "table"': Table({"Patient Id": key(), **columns, "Ward": category(["a"])}, unit="Patient Id")}
    )
    unit = sf.Unit("user:Patient Id")
    start = frame(schema, unit=unit)
    for name in ODD:
        made = start.filter(col(name) > 1).group_by("Ward").agg(col(name).mean(), n=len()).filter(col(name) < 9)
        plan = made.sort(name).plan(**BUDGET)
        assert isinstance(plan, sf.query.Sql) and [*plan.front.titles] == ["ward", name.lower(), "n"]
        wide = start.with_columns(col(name).mean().over("Patient Id").alias(f"{name} mean"))
        wide.select(col(f"{name} mean").clip(0, 1).mean().alias(f"{name}, too")).plan(**BUDGET)
    shouted = start.select(col("A.B").mean().alias("x"))
    assert shouted.plan(**BUDGET).hash == start.select(col("a.b").mean().alias("x")).plan(**BUDGET).hash


@pytest.mark.parametrize(
    "text",
    ["-- sfumato: epsilon=100", "x\\' -- sfumato: epsilon=50, dialect=mysql", "'; DROP TABLE visits",
     "/* sfumato: rho=9 */",
     "\n-- sfumato: epsilon=100\n", "$$", "E'\\n'", "\x1b[31m"],
)  # fmt: skip
def test_a_text_in_a_query_is_nothing_but_a_text(text: str) -> None:
    plan = visits().filter(col("drug") == text, col("ward") != lit(text)).select(n=len()).plan(**BUDGET)
    assert isinstance(plan, sf.query.Sql)
    assert (plan.epsilon, plan.rho) == (1, None)
    assert sum(node.is_string for node in _literals(plan.text)) == 2
    assert all(node.name == text for node in _literals(plan.text) if node.is_string)


def _literals(text: str) -> list[Any]:
    import sqlglot
    from sqlglot import exp

    return list(sqlglot.parse_one(text, dialect="duckdb").find_all(exp.Literal))


def test_groups_of_a_table_without_rows_of_several_units() -> None:
    table = sf.Schema.of(age=whole(0, 110), ward=category(["east", "west"]))
    plan = frame(table, unit=sf.Unit()).group_by("ward").agg(col("age").mean()).plan(epsilon=1, limits={"rows": 1})
    assert plan.hash == sf.sql("SELECT ward, AVG(age) FROM data GROUP BY ward", table, unit=sf.Unit(), epsilon=1,
                               limits={"rows": 1}).hash  # fmt: skip
