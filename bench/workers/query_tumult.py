"""Private queries by Tumult Analytics on local Spark: the worker for bench.query.

A session answers one aggregate at a time: the keys first, then count, distinct users and sum, a quarter of epsilon
each; the mean is the quotient of two of them. Spark is as the library's tutorial starts it, on two threads.
"""

import os
import sys

import query_jobs
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    QueryBuilder,
    Session,
)

os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's own processes must be of this environment too


def grouped(path, l0, linf, lower, upper, epsilon, delta):
    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    session = Session.from_dataframe(
        privacy_budget=ApproxDPBudget(epsilon, delta),
        source_id="t",
        dataframe=spark.read.parquet(path),
        protected_change=AddRowsWithID("user_id"),
    )
    rows = QueryBuilder("t").enforce(MaxGroupsPerID("key", l0)).enforce(MaxRowsPerGroupPerID("key", linf))
    part = epsilon / 4
    keys = [row["key"] for row in session.evaluate(rows.get_groups(["key"]), ApproxDPBudget(part, delta)).collect()]
    if not keys:
        return {}
    groups = rows.groupby(KeySet.from_dict({"key": keys}))
    columns = {}
    for name, query in (
        ("count", groups.count(name="value")),
        ("users", groups.count_distinct(["user_id"], name="value")),
        ("sum", groups.sum("v1", low=float(lower), high=float(upper), name="value")),
    ):
        answer = session.evaluate(query, ApproxDPBudget(part, 0))
        columns[name] = {row["key"]: row["value"] for row in answer.collect()}
    return {key: _row(columns["count"][key], columns["users"][key], columns["sum"][key]) for key in keys}


def _row(count, users, total):
    return [count, users, total, total / count if count > 0 else None]


if __name__ == "__main__":
    query_jobs.serve({"grouped": grouped})
