"""A frame's plan is that of the SQL that somebody would write: the same hash, so the same price and the same answer."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from frames_kit import SCHEMA, UNIT, beds, people, visits

import sfumato as sf
from sfumato.frames import (
    LazyFrame,
    coalesce,
    col,
    concat,
    corr,
    cov,
    frame,
    int_range,
    len,
    lit,
    when,
)

BUDGET = {"epsilon": 1, "delta": 1e-6, "limits": {"rows": 5}}
OPTIONS: dict[str, Any] = {**BUDGET}
ADVISED = {"epsilon": 1, "delta": 1e-6}
FIRST_OF_MAY = datetime.date(2026, 5, 1)


def _spent() -> LazyFrame:
    return visits().group_by("patient").agg(visits=len(), spent=col("cost").sum())


SAME: list[tuple[str, Callable[[], LazyFrame], str]] = [
    ("count", lambda: visits().select(n=len()), "SELECT COUNT(*) AS n FROM visits"),
    ("len of groups", lambda: visits().group_by("ward").len(), "SELECT ward, COUNT(*) FROM visits GROUP BY ward"),
    (
        "where",
        lambda: visits().filter(col("cost") > 10, col("ward") != "west").group_by("ward").agg(n=len()),
        "SELECT ward, COUNT(*) AS n FROM visits WHERE cost > 10 AND ward <> 'west' GROUP BY ward",
    ),
    (
        "filters in a row",
        lambda: visits().filter(col("cost") > 10).filter(ward="east").select(col("cost").mean()),
        "SELECT AVG(cost) FROM visits WHERE cost > 10 AND ward = 'east'",
    ),
    (
        "aggregates",
        lambda: visits().group_by("ward").agg(
            n=len(), there=col("score").count(), people=col("patient").n_unique(), total=col("cost").sum(),
            mean=col("cost").mean(), low=col("cost").min(), high=col("cost").max(), middle=col("cost").median(),
            spread=col("cost").std(), var=col("cost").var(ddof=0), late=col("day").quantile(0.9),
            gone=col("drug").null_count(), urgent=col("urgent").sum(),
        ),
        """SELECT ward, COUNT(*), COUNT(score), COUNT(DISTINCT patient), SUM(cost), AVG(cost), MIN(cost), MAX(cost),
           MEDIAN(cost), STDDEV(cost), VAR_POP(cost), QUANTILE(day, 0.9), COUNT_IF(drug IS NULL), COUNT_IF(urgent)
           FROM visits GROUP BY ward""",
    ),
    (
        "together",
        lambda: visits().select(c=corr("cost", "score"), d=cov("cost", "score")),
        "SELECT CORR(cost, score), COVAR_SAMP(cost, score) FROM visits",
    ),
    (
        "different values",
        lambda: visits().group_by("ward").agg(col("drug").drop_nulls().n_unique()),
        "SELECT ward, COUNT(DISTINCT drug) FROM visits GROUP BY ward",
    ),
    (
        "filtered aggregates",
        lambda: visits().group_by("ward").agg(
            n=col("cost").filter(col("urgent")).len(), m=col("cost").filter(col("score") > 0).mean()
        ),
        """SELECT ward, COUNT(*) FILTER (WHERE urgent), AVG(cost) FILTER (WHERE score > 0) FROM visits GROUP BY ward""",
    ),
    (
        "arithmetic on aggregates",
        lambda: visits().group_by("ward").agg(mean=col("cost").sum() / len(), n=len() * 2),
        "SELECT ward, SUM(cost) / COUNT(*) AS mean, COUNT(*) * 2 AS n FROM visits GROUP BY ward",
    ),
    (
        "an expression as a group",
        lambda: people().group_by(decade=col("born") // 10 * 10).agg(n=len()).sort("decade"),
        "SELECT born // 10 * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY decade",
    ),
    (
        "a column made before",
        lambda: visits().with_columns(month=col("day").dt.truncate("1mo")).group_by("month").agg(n=len()),
        "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month",
    ),
    (
        "having, order, limit",
        lambda: visits().group_by("drug").agg(n=len(), cost=col("cost").mean())
        .filter(col("n") > 100, col("cost") < 50).sort("n", descending=True).head(5),
        """SELECT drug, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY drug
           HAVING COUNT(*) > 100 AND AVG(cost) < 50 ORDER BY n DESC LIMIT 5""",
    ),
    (
        "columns of an answer",
        lambda: visits().group_by("ward").agg(n=len(), cost=col("cost").sum())
        .with_columns(mean=col("cost") / col("n")).select("ward", col("mean").alias("m"), col("n"), "cost"),
        "SELECT ward, SUM(cost) / COUNT(*) AS m, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY ward",
    ),
    (
        "renamed and dropped",
        lambda: visits().drop("at", "urgent").rename({"cost": "euros", "ward": "Station"})
        .group_by("Station").agg(col("euros").mean()),
        "SELECT ward, AVG(cost) FROM visits GROUP BY ward",
    ),
    (
        "public join",
        lambda: visits().join(beds(), on="ward").group_by("floor").agg(n=len()),
        "SELECT b.floor, COUNT(*) AS n FROM visits v JOIN beds b ON v.ward = b.ward GROUP BY b.floor",
    ),
    (
        "private join",
        lambda: visits().filter(col("cost") > 5).join(people(), on="patient", how="left")
        .group_by("ward").agg(born=col("born").mean()),
        """SELECT v.ward, AVG(p.born) AS born FROM visits v LEFT JOIN people p ON v.patient = p.patient
           WHERE v.cost > 5 GROUP BY v.ward""",
    ),
    (
        "semi join",
        lambda: visits().join(people().filter(col("born") < 1950), left_on="patient", right_on="patient", how="semi")
        .select(n=len()),
        """SELECT COUNT(*) AS n FROM visits SEMI JOIN (SELECT * FROM people WHERE born < 1950) AS old
           ON visits.patient = old.patient""",
    ),
    (
        "anti join",
        lambda: visits().join(people(), on="patient", how="anti").select(n=len()),
        "SELECT COUNT(*) AS n FROM visits ANTI JOIN people ON visits.patient = people.patient",
    ),
    (
        "a table with itself",
        lambda: visits().join(visits(), on="patient").filter(col("ward") != col("ward_right")).select(n=len()),
        """SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient = b.patient WHERE a.ward <> b.ward""",
    ),
    (
        "cross join",
        lambda: visits().join(beds(), how="cross").group_by("floor").agg(n=len()),
        "SELECT beds.floor, COUNT(*) AS n FROM visits CROSS JOIN beds GROUP BY beds.floor",
    ),
    (
        "per unit",
        lambda: _spent().filter(col("visits") > 2).select(patients=len(), spent=col("spent").clip(0, 500).mean()),
        """SELECT COUNT(*) AS patients, AVG(LEAST(GREATEST(spent, 0), 500)) AS spent
           FROM (SELECT patient, COUNT(*) AS visits, SUM(cost) AS spent FROM visits GROUP BY patient
                 HAVING COUNT(*) > 2)""",
    ),
    (
        "per unit, in groups",
        lambda: visits().group_by("patient", "ward").agg(n=len()).filter(col("n") == 1).group_by("ward").agg(n=len()),
        """SELECT ward, COUNT(*) AS n FROM (SELECT patient, ward, COUNT(*) AS n FROM visits GROUP BY patient, ward
           HAVING COUNT(*) = 1) GROUP BY ward""",
    ),
    (
        "sums of what may be missing",
        lambda: visits().group_by("patient").agg(s=col("score").sum(), some=col("urgent").sum())
        .filter(col("some") > 0).select(n=col("s").clip(0, 9).sum()),
        """SELECT SUM(LEAST(GREATEST(s, 0), 9)) AS n FROM (
             SELECT patient, COALESCE(SUM(score), 0) AS s, COUNT_IF(urgent) AS some
             FROM visits GROUP BY patient HAVING COUNT_IF(urgent) > 0)""",
    ),
    (
        "the first row of each unit",
        lambda: visits().filter(
            int_range(1, len() + 1).over("patient", order_by="day", nulls_last=True) == 1
        ).group_by("ward").agg(n=len()),
        """SELECT ward, COUNT(*) AS n FROM (SELECT * FROM visits
           QUALIFY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) = 1) GROUP BY ward""",
    ),
    (
        "a rank as a column",
        lambda: people().with_columns(r=col("born").rank("dense", descending=True).over("patient"))
        .filter(col("born") > 1940).group_by("r").agg(n=len()),
        """SELECT r, COUNT(*) AS n FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY patient ORDER BY born DESC) AS r
           FROM people) WHERE born > 1940 GROUP BY r""",
    ),
    (
        "gaps",
        lambda: visits().drop_nulls("day").select("patient", gap=col("day").diff().over("patient", order_by="day")
        .dt.total_days()).filter(col("gap").is_between(0, 180)).select(col("gap").mean()),
        """SELECT AVG(gap) FROM (
             SELECT patient, day - LAG(day) OVER (PARTITION BY patient ORDER BY day) AS gap FROM visits
             WHERE day IS NOT NULL) WHERE gap BETWEEN 0 AND 180""",
    ),
    (
        "whole windows",
        lambda: visits().select("ward", dear=col("cost") > col("cost").mean().over("patient"))
        .group_by("ward").agg(dear=col("dear").sum()),
        """SELECT ward, COUNT_IF(dear) AS dear FROM (
             SELECT ward, cost > AVG(cost) OVER (PARTITION BY patient) AS dear FROM visits) GROUP BY ward""",
    ),
    (
        "distinct",
        lambda: visits().select("patient", "ward").unique().group_by("ward").agg(n=len()),
        "SELECT ward, COUNT(*) AS n FROM (SELECT DISTINCT patient, ward FROM visits) GROUP BY ward",
    ),
    (
        "union all",
        lambda: concat([visits().select("patient", "ward"), visits().filter(col("urgent")).select("patient", "ward")])
        .group_by("ward").agg(n=len()),
        """SELECT ward, COUNT(*) AS n FROM (SELECT patient, ward FROM visits UNION ALL
           SELECT patient, ward FROM visits WHERE urgent) GROUP BY ward""",
    ),
    (
        "choices",
        lambda: visits().with_columns(
            band=when(col("cost") < 10).then(lit("low")).when(col("cost") < 100).then(lit("mid")).otherwise(lit("high"))
        ).group_by("band").agg(n=len()),
        """SELECT CASE WHEN cost < 10 THEN 'low' WHEN cost < 100 THEN 'mid' ELSE 'high' END AS band, COUNT(*) AS n
           FROM visits GROUP BY band""",
    ),
    (
        "functions",
        lambda: visits().filter(
            (col("drug").str.starts_with("D") & ~col("drug").str.contains("x")) | col("drug").is_null(),
            col("ward").is_in(["east", "north"]), col("day") >= FIRST_OF_MAY, col("day").dt.weekday() < 6,
            coalesce("score", 0) > -10, col("score").fill_null(1).abs() < 40,
        ).group_by(col("day").dt.month().alias("month")).agg(n=len()),
        """SELECT MONTH(day) AS month, COUNT(*) AS n FROM visits
           WHERE ((STARTS_WITH(drug, 'D') AND NOT CONTAINS(drug, 'x')) OR drug IS NULL) AND ward IN ('east', 'north')
             AND day >= DATE '2026-05-01' AND ISODOW(day) < 6 AND COALESCE(score, 0) > -10
             AND ABS(COALESCE(score, 1)) < 40 GROUP BY month""",
    ),
    (
        "a view",
        lambda: frame(SCHEMA, "dear", unit=UNIT).group_by("ward").agg(n=len()),
        "SELECT ward, COUNT(*) AS n FROM dear GROUP BY ward",
    ),
    (
        "histogram",
        lambda: visits().select(bars=col("cost").histogram([0, 50, 1000])),
        "SELECT HISTOGRAM(cost, [0, 50, 1000]) AS bars FROM visits",
    ),
    (
        "groups of enough units",
        lambda: visits().group_by("drug").agg(),
        "SELECT drug FROM visits GROUP BY drug",
    ),
    (
        "shares of a release",
        lambda: visits().group_by("ward").agg(n=len()).with_columns(share=col("n") / col("n").sum()),
        "SELECT *, n / SUM(n) OVER () AS share FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS part",
    ),
    (
        "places of a release",
        lambda: visits().group_by("ward").agg(n=len()).with_columns(place=col("n").rank("min", descending=True))
        .filter(col("place") <= 2),
        """SELECT * FROM (SELECT *, RANK() OVER (ORDER BY n DESC) AS place FROM (
             SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)) WHERE place <= 2""",
    ),
    (
        "a release joined",
        lambda: visits().group_by("ward").agg(n=len()).join(beds(), on="ward")
        .select("ward", per_bed=col("n") / col("beds")),
        """SELECT w.ward, w.n / beds.beds AS per_bed FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS w
           JOIN beds ON w.ward = beds.ward""",
    ),
]  # fmt: skip


def _hash(plan: Any) -> str:
    plans = getattr(plan, "plans", None)
    return plan.hash if plans is None else "".join(sorted(each.hash for each in plans.values()))


@pytest.mark.parametrize(("made", "text"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_a_frame_is_the_query_that_somebody_writes(made: Callable[[], LazyFrame], text: str) -> None:
    own, written = made().plan(**OPTIONS), sf.sql(text, SCHEMA, unit=UNIT, **OPTIONS)
    assert type(own) is type(written)
    assert _hash(own) == _hash(written), f"{made().sql()}\n{getattr(own, 'text', '')}\n{getattr(written, 'text', '')}"
