"""Limits that nobody gave: by the rows; and an average of a group without rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Limits, Schema, Unit, record, schema, sql
from sfumato.plan import told_before
from sfumato.query.plan import Sql
from sfumato.query.words import counts_for
from sfumato.schema import Table
from tests.query.still import answered

USER = Unit("user:user")
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": schema.key(),
                "ward": schema.category(list("abcdef")),
                "drug": schema.key(),
                "age": schema.whole(17, 90),
            },
            name="visits",
            unit="user",
        )
    }
)
WARDS = list("abcde")
VISITS = pa.table(
    {
        "user": np.repeat(np.arange(100), 5),
        "ward": WARDS * 100,
        "drug": [f"d{i}" for i in range(500)],
        "age": np.full(500, 40),
    }
)


def plan(text: str, **more: object) -> Sql:
    return sql(text, SCHEMA, unit=USER, **{"epsilon": 1, "delta": 1e-6, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_users_count_in_as_many_groups_as_they_may_have_rows(delta: float) -> None:
    """Each has a row in five wards: with rows=5 alone, all of them count in each. It was one ward, silently."""
    text = "SELECT ward, COUNT(DISTINCT user) AS users, COUNT(DISTINCT drug) AS drugs FROM visits GROUP BY ward"
    found = answered(plan(text, delta=delta, limits={"rows": 5}), {"visits": VISITS}).rows
    assert [row["users"] for row in found] == [100.0] * 5 + [0.0]
    assert [row["drugs"] for row in found] == [100.0] * 5 + [0.0]


def test_no_unit_counts_in_more_groups_than_there_are() -> None:
    counted = "SELECT ward, COUNT(DISTINCT user) AS n FROM visits GROUP BY ward"
    many, six = plan(counted, limits={"rows": 500}), plan(counted, limits={"rows": 500, "keys": 6})
    assert many.expected_errors(0.05) == six.expected_errors(0.05)
    alone = "SELECT COUNT(DISTINCT user) AS n FROM visits"
    assert plan(alone, limits={"rows": 500}).expected_errors(0.05) == plan(alone, limits=Limits()).expected_errors(0.05)
    sampled = plan(counted, limits={"rows": 500, "sample": 2})
    assert sampled.expected_errors(0.05) == plan(counted, limits={"rows": 500, "keys": 2}).expected_errors(0.05)


def test_what_was_chosen_is_said() -> None:
    text = "SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug"
    assert any("5 groups where users are counted" in line for line in plan(text, limits={"rows": 5}).explain())


def test_what_follows_from_rows_is_said_beforehand() -> None:
    """A quote speaks of limits as they were given; it met keys that nobody gave, and failed."""
    text = "SELECT ward, COUNT(DISTINCT user) AS n, COUNT(DISTINCT drug) AS d FROM visits GROUP BY ward"
    said = counts_for(plan(text, limits={"rows": 5}), Limits(rows=5))
    assert said == "each user counts for at most 5 groups where users are counted; 5 different values"


def test_limits_stored_before_mean_what_they_meant() -> None:
    """Their JSON says keys: 1."""
    old = record.parse(
        b'{"is":"sql-limits/1","keys":1,"most_keys":1000,"reach":{"is":"map","items":[]},'
        b'"rows":{"is":"exact","value":"5"},"salt":0,"sample":null,"values":1}'
    )
    assert old == Limits(rows=5, keys=1, values=1)
    assert (old.completed(6).keys, old.completed(6).values) == (1, 1)
    assert record.parse(record.canonical(Limits(rows=5))) == Limits(rows=5)
    assert Limits() == Limits(keys=1, values=1), "one row is in one group"


@pytest.mark.parametrize("also", ["", ", SUM(age) AS s"])
def test_an_average_without_rows_is_within_its_bounds(also: str) -> None:
    """No row has the ward f, and nothing is known of its average but the bounds."""
    text = f"SELECT ward, AVG(age) AS mean{also} FROM visits GROUP BY ward"
    answer = answered(plan(text, limits={"rows": 5}), {"visits": VISITS})
    means = [row["mean"] for row in answer.rows]
    assert means[:5] == pytest.approx([40.0] * 5, abs=0.01)
    assert means[5] == 53.5
    assert tuple(answer.interval("mean", 0.05)[5]) == (17.0, 90.0)
    assert answer.unreliable["mean"][5]


def test_an_error_that_is_known_beforehand_says_what_it_leaves_out() -> None:
    """Limits of users may cut; one row is one row."""
    text = "SELECT COUNT(*) AS n FROM visits"
    alone = Schema({"visits": Table({"age": schema.whole(17, 90)}, name="visits")})
    by_user, by_row = plan(text, limits={"rows": 5}), sql(text, alone, unit=Unit(), epsilon=1)
    assert any(line.endswith("at 95 %, of noise alone") for _, line in told_before(by_user))
    assert any(line.endswith("at 95 %") for _, line in told_before(by_row))
