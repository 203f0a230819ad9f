"""Without noise and with wide limits, every aggregate says what the engine says plainly."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Unit, sql
from sfumato.query import Limits
from sfumato.query.finish import expected
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, flag, key, real, whole
from tests.query.still import answered, plainly, raw_of

DAY = datetime.date(2024, 3, 1)
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(),
                "ward": category(["a", "b", "c", "d"]),
                "drug": key(),
                "days": real(0, 50),
                "cost": real(-20, 100),
                "n": whole(0, 9),
                "ok": flag(),
                "day": date("2024-03-01", "2024-03-20"),
            },
            unit="patient",
        )
    }
)
WIDE = Limits(rows=16, keys=64, values=64)
USER = Unit("user:patient")


def _visits(rows: int = 4000) -> dict[str, list[Any]]:
    draw = np.random.default_rng(6)
    days = draw.gamma(2, 4, rows).clip(0, 50)
    return {
        "patient": draw.integers(0, 1500, rows).tolist(),
        "ward": draw.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]).tolist(),
        "drug": draw.choice(["x", "y", "z"], rows).tolist(),
        "days": [None if draw.random() < 0.05 else float(each) for each in days],
        "cost": (days * 1.5 - 10 + draw.normal(0, 5, rows)).clip(-20, 100).tolist(),
        "n": draw.integers(0, 10, rows).tolist(),
        "ok": (draw.random(rows) < 0.3).tolist(),
        "day": [DAY + datetime.timedelta(days=int(each)) for each in draw.integers(0, 20, rows)],
    }


VISITS = _visits()
DATA = {"visits": pa.table(VISITS)}


def plan(text: str, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=USER, **{"epsilon": 8, "delta": 1e-6, "limits": WIDE, **options})


def numbers(text: str, **options: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answered(plan(text, **options), DATA).rows]


@pytest.mark.parametrize("options", [{}, {"delta": 0}], ids=["gaussian", "laplace"])
@pytest.mark.parametrize(
    "aggregate",
    [
        "COUNT(*)", "COUNT(days)", "COUNT(ok)", "SUM(n)", "SUM(days)", "SUM(cost)", "AVG(days)", "AVG(cost)", "AVG(n)",
        "COUNT(DISTINCT patient)", "COUNT(DISTINCT drug)", "COUNT(DISTINCT n)", "COUNT_IF(ok)", "SUM(ok)",
        "VARIANCE(days)", "VAR_POP(cost)", "STDDEV(days)", "STDDEV_POP(cost)", "STDDEV_SAMP(n)",
        "COVAR_POP(days, cost)", "COVAR_SAMP(days, cost)", "CORR(days, cost)", "CORR(cost, n)",
        "COUNT(*) FILTER (WHERE ok)", "SUM(cost) FILTER (WHERE n > 5)", "AVG(days) FILTER (WHERE NOT ok AND n < 7)",
        "COUNT(DISTINCT drug) FILTER (WHERE n > 3)", "SUM(cost) / COUNT(*)", "AVG(days) * 2 + 1",
        "SUM(n) / SUM(days)", "COUNT_IF(ok) * 100.0 / COUNT(*)", "SUM(days * n)",
        "SUM(CASE WHEN ok THEN n ELSE -n END)", "SUM(cost) + SUM(days)", "SUM(n + 1)", "AVG(n - 3)",
    ],
)  # fmt: skip
def test_without_noise_it_is_the_plain_answer(aggregate: str, options: dict[str, Any]) -> None:
    alone = f"SELECT {aggregate} AS x FROM visits"
    grouped = f"SELECT ward, {aggregate} AS x FROM visits WHERE ward <> 'd' GROUP BY ward ORDER BY ward"
    for text in (grouped,) if options else (alone, grouped):
        keys = {"keys": {"ward": ["a", "b", "c"]}} if "GROUP" in text else {}
        for ours, plain in zip(numbers(text, **options, **keys), plainly(text, DATA), strict=True):
            assert ours[:-1] == plain[:-1]
            assert ours[-1] == pytest.approx(float(plain[-1]), rel=2e-4, abs=2e-4)


def test_several_at_once_and_chosen_groups() -> None:
    text = (
        "SELECT drug, ok, COUNT(*) AS n, SUM(cost) AS s, AVG(days) AS m, STDDEV(cost) AS d, COUNT(DISTINCT patient) p "
        "FROM visits GROUP BY drug, ok ORDER BY drug, ok"
    )
    for ours, plain in zip(numbers(text), plainly(text, DATA), strict=True):
        assert ours[:2] == plain[:2]
        assert ours[2:] == pytest.approx(list(map(float, plain[2:])), rel=2e-4)


@pytest.mark.parametrize(
    "rest",
    [
        "HAVING n > 900", "HAVING COUNT(*) > 900 AND s > 0 ORDER BY n DESC", "ORDER BY n DESC", "ORDER BY s LIMIT 2",
        "ORDER BY 2 DESC LIMIT 1 OFFSET 1", "HAVING AVG(cost) > 1.0 ORDER BY ward DESC",
    ],
)  # fmt: skip
def test_having_order_and_limit_are_of_released_values(rest: str) -> None:
    text = f"SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward {rest}"
    ours = numbers(text, keys={"ward": ["a", "b", "c"]})
    plain = plainly(text, DATA)
    assert [row[0] for row in ours] == [row[0] for row in plain] or "ORDER" not in rest
    assert sorted(row[0] for row in ours) == sorted(row[0] for row in plain)


def test_quantiles_are_within_a_leaf() -> None:
    text = "SELECT MEDIAN(cost), QUANTILE(cost, [0.1, 0.9]), MIN(n), MAX(n), MEDIAN(day) FROM visits"
    ((median, (low, high), least, most, day),) = numbers(text)
    leaf = 2 * 128 / 4096
    cost = sorted(VISITS["cost"])
    for ours, p in ((median, 0.5), (low, 0.1), (high, 0.9)):
        near = cost[int(p * len(cost)) - 8], cost[int(p * len(cost)) + 8]
        assert near[0] - leaf <= ours <= near[1] + leaf
    assert (least, most) == pytest.approx((0, 9), abs=1)
    assert isinstance(day, datetime.date)
    assert abs((day - sorted(VISITS["day"])[2000]).days) <= 1


def test_lists_of_dates_are_written_in_every_form() -> None:
    answer = answered(plan("SELECT QUANTILE(day, [0.1, 0.9]) AS q FROM visits"), DATA)
    (pair,) = answer["q"]
    assert all(isinstance(each, datetime.date) for each in pair)
    assert answer.to_arrow().column("q").to_pylist() == [pair]
    assert str(pair[0]) in str(answer.to_csv()) and str(pair[1]) in str(answer)


def test_histograms_are_the_counts_of_their_bins() -> None:
    text = "SELECT ward, HISTOGRAM(cost, [-20, 0, 5, 20, 100]) AS h FROM visits GROUP BY ward"
    found = dict(numbers(text))
    for ward in "abc":
        mine = [cost for cost, each in zip(VISITS["cost"], VISITS["ward"], strict=True) if each == ward]
        assert found[ward] == pytest.approx(np.histogram(mine, [-20, 0, 5, 20, 100])[0].tolist())
    assert found["d"] == [0, 0, 0, 0]


def test_groups_without_rows_appear_with_zeros_and_nulls() -> None:
    row = answered(plan("SELECT ward, COUNT(*) n, SUM(cost) s, AVG(days) m FROM visits GROUP BY ward"), DATA).rows[3]
    assert (row["ward"], row["n"], row["s"]) == ("d", 0.0, 0.0)
    assert row["m"] is None or 0 <= row["m"] <= 50


def test_limits_are_kept_and_told() -> None:
    """Every patient counts for one row at most: the sum of the others' rows is gone, and a note says so."""
    text = "SELECT COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits"
    answer = answered(plan(text, limits=Limits(rows=1)), DATA)
    people = len(set(VISITS["patient"]))
    assert answer["p"] == [people]
    assert people * 0.999 < answer["n"][0] <= people
    assert any("each patient counts for at most 1 row;" in note for note in answer.notes)
    assert any("what that cuts from the numbers is not known" in note for note in answer.notes)


@pytest.mark.parametrize("options", [{}, {"delta": 0}], ids=["gaussian", "laplace"])
def test_units_at_their_limit_count_in_full(options: dict[str, Any]) -> None:
    """Without room for rounding, each would count for 4095/4096: far outside of the error bars of a large count."""
    schema = Schema({"visits": Table({"patient": key(), "ok": flag(nulls=False)}, unit="patient")})
    for rows in (1, 3):
        data = {"patient": [i // rows for i in range(60_000)], "ok": [True] * 60_000}
        text = "SELECT COUNT(*) AS n, COUNT_IF(ok) AS k, AVG(ok) AS m FROM visits"
        made = sql(text, schema, unit=USER, limits=Limits(rows=rows), **{"epsilon": 1, "delta": 1e-6, **options})
        assert answered(made, {"visits": data}).rows == [{"n": 60_000, "k": 60_000, "m": 1}]


def test_notes_of_chosen_groups_and_extremes() -> None:
    answer = answered(plan("SELECT drug, MAX(days) AS m FROM visits GROUP BY drug"), DATA)
    notes = "\n".join(answer.notes)
    assert "groups of fewer than about" in notes and "how many there are is private" in notes
    assert "rows without a group (NULL) are left out" in notes
    assert "MIN and MAX are read where ranks stand out" in notes
    alone = answered(plan("SELECT COUNT(*) AS n FROM visits"), DATA)
    assert not any("group" in note.split(";")[0] and "fewer" in note for note in alone.notes)


def test_unclip_raises_numbers_by_what_given_limits_cut() -> None:
    """Limits of one's own are kept; a part of the budget measures what they cut."""
    patients = [*(patient for patient in range(900) for _ in range(40)), *range(900, 4000)]
    visits = {"visits": {"patient": patients, "ward": ["a"] * len(patients)}}
    schema = Schema({"visits": Table({"patient": key(), "ward": category(["a", "b"])}, unit="patient")})
    text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    options = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=20)}
    clipping, raising = (sql(text, schema, unit=USER, unclip=each, **options) for each in (False, True))
    assert clipping.fixed is not None and raising.fixed is None and raising.measures_cuts and not raising.advises
    assert sum(raising.design(Limits(rows=20)).shares.values()) == 1 - raising.advice
    clipped, raised = answered(clipping, visits), answered(raising, visits)
    assert clipped["n"][0] == pytest.approx(900 * 20 + 3100, rel=1e-3)
    assert clipped.bias("n") == [None, None] and clipped.interval("n")[0][1] == float("inf")
    low, high = raised.interval("n")[0]
    assert low < len(patients) < high < 4 * len(patients)
    assert raised["n"][0] == pytest.approx(len(patients), rel=0.25)
    assert raised.bias("n")[0] == pytest.approx(raised["n"][0] - clipped["n"][0], rel=0.01)
    assert any("the number was raised by that" in note for note in raised.notes)


def test_floors_keep_the_raw_numbers_beside() -> None:
    made = plan("SELECT ward, SUM(cost) - 100000 AS s FROM visits GROUP BY ward", floor=True)
    answer = answered(made, DATA)
    assert answer["s"] == [0.0] * 4
    assert all(each < 0 for each in answer.raw["s"])


def test_expected_widths_are_those_of_the_answer() -> None:
    """`quote` says beforehand what the error bars will be."""
    aggregates = "COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT patient) AS p, COUNT(DISTINCT n) v"
    text = f"SELECT ward, {aggregates} FROM visits GROUP BY ward"
    for options in ({}, {"delta": 0}, {"epsilon": None, "rho": Fraction(1, 10), "delta": 0}):
        made = plan(text, **options)
        answer = answered(made, DATA)
        for alpha in (0.05, 0.001):
            widths = expected(made, alpha)
            assert set(widths) == {"n", "s", "p", "v"}
            for name, width in widths.items():
                assert answer.noise_width(name, alpha)[0] == pytest.approx(width, rel=1e-3, abs=1e-3)
    assert made.expected_error(0.05) is None  # several columns have several
    assert plan("SELECT COUNT(*) AS n FROM visits").expected_error(0.05) is not None


def test_error_is_by_column_and_row() -> None:
    made = plan("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    error = made.error(raw_of(made, DATA), 0.05)
    assert error["ward"] is None and len(error["n"]) == 4


def test_dates_as_groups_survive_storage() -> None:
    found = numbers("SELECT day, COUNT(*) AS n FROM visits GROUP BY day ORDER BY day")
    assert [row[0] for row in found] == [DAY + datetime.timedelta(days=i) for i in range(20)]
    assert sum(row[1] for row in found) == 4000
