"""Accuracy in, budget out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, sql
from sfumato.errors import ArgumentError
from sfumato.query import Limits, ranks
from sfumato.query.finish import expected
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, key, moment, real, whole

SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 30)}, unit="patient"
        )
    }
)
QUERY = (
    "SELECT ward, COUNT(*) AS n, SUM(days) AS s, COUNT(DISTINCT patient) AS p, COUNT(DISTINCT drug) AS d "
    "FROM visits GROUP BY ward"
)


def plan(text: str = QUERY, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=Unit("user:patient"), **{"limits": Limits(rows=4, keys=2, values=3), **options})


def spent(made: Sql) -> tuple[str, Fraction]:
    return ("epsilon", made.epsilon) if made.epsilon is not None else ("rho", made.rho)


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize(
    "wanted",
    [{"n": 20}, {"n": 50, "s": 3000}, {"n": 300, "s": 900, "p": 40, "d": 100}, {"p": Fraction(61, 2)}, {"N": 1000}],
)
def test_what_is_asked_for_is_got_for_the_least_budget(delta: Any, alpha: float, wanted: dict[str, Any]) -> None:
    made = plan(accuracy=wanted, alpha=alpha, delta=delta)
    widths = expected(made, alpha)
    assert all(widths[name.lower()] <= width for name, width in wanted.items())
    name, budget = spent(made)
    assert name == ("rho" if delta else "epsilon")
    assert budget < 10
    less = replace(made, **{name: budget * Fraction(98, 100)})
    narrow = expected(less, alpha)
    assert any(narrow[name.lower()] > width for name, width in wanted.items())
    if len(wanted) == 4:  # with all columns asked for, nothing is given away
        for each, width in wanted.items():
            assert widths[each] > 0.95 * width, each


def test_averages_need_to_know_how_many_rows_groups_have() -> None:
    text = "SELECT ward, AVG(days) AS m FROM visits GROUP BY ward"
    with pytest.raises(ArgumentError, match="accuracy of 'm' depends on how many rows a group has"):
        plan(text, accuracy={"m": 0.5})
    few, many = plan(text, accuracy={"m": 0.5}, group_rows=1000), plan(text, accuracy={"m": 0.5}, group_rows=10_000)
    assert few.epsilon > 5 * many.epsilon


MEDIAN = "SELECT MEDIAN(days) AS m FROM visits"


def test_quantiles_may_be_asked_for_by_rank() -> None:
    made = plan(MEDIAN, accuracy={"m": {"rank": 50}}, delta=1e-6, noise="gaussian")
    assert expected(made, 0.05)["m"] <= 50
    assert expected(replace(made, rho=made.rho * Fraction(98, 100)), 0.05)["m"] > 50


def test_quantiles_are_asked_for_in_their_own_unit() -> None:
    """Two days of 30, of 6,000 rows: a fifteenth of them, less a leaf."""
    made = plan(MEDIAN, accuracy={"M": 2}, group_rows=6000, delta=1e-6, noise="gaussian")
    leaves = ranks.ranked(made)["m"]
    rank = expected(made, 0.05)["m"]
    assert 0.98 * 400 < rank + float(leaves.width) * 200 <= 400
    assert 1.9 < ranks.width(leaves, rank, Fraction(6000)) <= 2
    few = plan(MEDIAN, accuracy={"m": 2}, group_rows=600, delta=1e-6, noise="gaussian")
    assert few.rho > 90 * made.rho


def test_an_accuracy_in_days_is_the_error_bar_of_evenly_spread_values() -> None:
    groups, rows = 60, 1000
    wards = [f"w{n}" for n in range(groups)]
    data = {"days": np.tile(np.arange(rows) * (30 / rows), groups), "ward": np.repeat(wards, rows)}
    private = Private("visits", data, unit=Unit(), schema=Schema.of(days=real(0, 30), ward=category(wards)))
    asked = "SELECT ward, MEDIAN(days) AS m, QUANTILE_CONT(days, 0.9) AS q FROM data GROUP BY ward"
    made = sql(asked, private, accuracy={"m": 3, "q": 4}, group_rows=rows, delta=1e-6)
    desk = Curator(private, MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)}))
    answer = desk.release(made).value
    assert 0.6 * 3 < np.median(answer.half_width("m", 0.05)) < 1.2 * 3
    assert np.mean(abs(np.array(answer["m"]) - 15) <= 3) > 0.8


def test_whole_numbers_may_be_asked_for_to_the_next_one() -> None:
    schema = Schema.of(age=whole(0, 110), at=moment("2026-01-01", "2026-12-31"), day=date("2026-01-01", "2026-12-31"))
    text = "SELECT MEDIAN(age) AS a, MEDIAN(at) AS m, MEDIAN(day) AS d FROM data"
    made = sql(text, schema, unit=Unit(), accuracy={"a": 1, "m": 48, "d": 2}, group_rows=10_000, delta=1e-6)
    leaves, off = ranks.ranked(made), expected(made, 0.05)
    widths = {name: ranks.width(leaves[name], off[name], Fraction(10_000)) for name in "amd"}
    assert widths["a"] <= 1 and widths["m"] <= 48 and widths["d"] <= 2  # years, hours, days
    assert max(widths["a"], widths["m"] / 48, widths["d"] / 2) > 0.95
    names = " ".join(made.expected_errors(0.05))
    assert "m (in hours, if the 1,000 rows" in names and "d (in days, if the 1,000 rows" in names
    assert "spread evenly over 2026-01-01 to 2026-12-31" in names


def test_texts_say_what_an_own_unit_assumes() -> None:
    made = plan("SELECT COUNT(*) AS n, MEDIAN(days) AS m FROM visits", epsilon=1)
    names = list(made.expected_errors(0.05))
    assert names == ["n", "m (in rows of rank)", "m (if the 1,000 rows of a group were spread evenly over 0 to 30)"]
    assert any(line.startswith(f"{names[2]}: ± ") for line in made.explain())


def test_chosen_groups_keep_their_delta() -> None:
    made = plan("SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug", accuracy={"n": 10}, delta=1e-6)
    assert made.blur.key_delta == Fraction(1, 2 * 10**6) and made.rho is not None  # half is for the noise


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": {"n": 5}, "epsilon": 1}, "give it without epsilon and rho"),
        ({"accuracy": {"n": 5}, "rho": 1}, "give it without epsilon and rho"),
        ({"accuracy": {"n": 5}, "shares": {"rows": 2}}, "give it without shares"),
        ({"accuracy": {"n": 5}, "limits": None}, "accuracy needs limits"),
        ({"accuracy": {}}, "half-widths by column"),
        ({"accuracy": 5}, "half-widths by column"),
        ({"accuracy": {"n": -5}}, "accuracy of n"),
        ({"accuracy": {"nothing": 5}}, "a column of the answer: ward, n, s, p, d"),
        ({"accuracy": {"ward": 5}}, "a column that is one aggregate"),
        ({"accuracy": {"n": 5}, "alpha": 1.5}, "a probability between 0 and 1"),
        ({"accuracy": {"n": {"rank": 5}}}, "only quantiles have a rank"),
        ({"accuracy": {"n": {"row": 5}}}, "of a quantile also {'rank': 20}"),
        ({"text": MEDIAN, "accuracy": {"m": 2}}, r"or give it in rows of rank, accuracy=\{'m': \{'rank': 20\}\}"),
        ({"text": MEDIAN, "accuracy": {"m": {"rank": -1}}}, "the rank in accuracy of m"),
        ({"text": MEDIAN, "accuracy": {"m": 1e-3}, "group_rows": 1000}, "a quantile is read from steps of 0.00"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        plan(**options)
