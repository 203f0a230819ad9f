"""Accuracy in, budget out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Unit, sql
from sfumato.errors import ArgumentError
from sfumato.query import Limits
from sfumato.query.finish import expected
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real

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


def test_quantiles_are_asked_for_by_rank() -> None:
    made = plan("SELECT MEDIAN(days) AS m FROM visits", accuracy={"m": 50}, delta=1e-6)
    assert expected(made, 0.05)["m"] <= 50
    assert expected(replace(made, rho=made.rho * Fraction(98, 100)), 0.05)["m"] > 50


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
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        plan(**options)
