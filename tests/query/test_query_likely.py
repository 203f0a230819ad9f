"""Where values likely lie: enough to clamp what is added up, and used for nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Unit, sql
from sfumato.errors import ArgumentError, PlanError
from sfumato.query import Limits
from sfumato.query.expressions.likely import MOST
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, date, key, real, whole

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(), "ward": category(["a", "b"]), "cost": real(0, 100), "n": whole(0, 9),
                "day": date("2025-01-01", "2025-12-31"), "note": key(),
            },
            unit="patient",
        )
    }
)  # fmt: skip
GAPS = "(SELECT day - LAG(day) OVER (PARTITION BY patient ORDER BY day) AS gap, n, cost FROM visits) AS t"
BY_UNIT = "(SELECT patient, COUNT(*) AS many, SUM(cost) AS spent, SUM(n) AS n FROM visits GROUP BY patient) AS t"


def plan(text: str, **options: Any) -> Sql:
    made = sql(text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 1, "delta": 1e-6} | options)
    assert isinstance(made, Sql)
    return made


def bounds_of(text: str) -> tuple[Fraction, Fraction, bool]:
    """Of the sum that the query measures."""
    (measure,) = [each for each in plan(text).questions.measures if each.row is not None]
    return measure.lower, measure.upper, measure.generous


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        (f"SELECT SUM(gap) AS s FROM {GAPS}", -364, 364),
        (f"SELECT SUM(gap) AS s FROM {GAPS} WHERE gap BETWEEN 0 AND 90", 0, 90),
        (f"SELECT SUM(gap) AS s FROM {GAPS} WHERE gap > 0 AND 30 >= gap AND cost > 5", 0, 30),
        (f"SELECT SUM(2 * gap + 1) AS s FROM {GAPS} WHERE gap BETWEEN 0 AND 90", 1, 181),
        (f"SELECT SUM(CASE WHEN n > 3 THEN gap ELSE -1 END) AS s FROM {GAPS} WHERE gap BETWEEN 0 AND 90", -1, 90),
        (f"SELECT SUM(gap) AS s FROM {GAPS} WHERE gap BETWEEN 0 AND 90 OR n = 1", -364, 364),
        (f"SELECT SUM(gap) AS s FROM {GAPS} WHERE NOT gap > 90", -364, 364),
        (f"SELECT SUM(g) AS s FROM (SELECT gap AS g FROM {GAPS} WHERE gap <= 7) AS u WHERE g >= -3", -3, 7),
        ("SELECT SUM(DATE_DIFF('month', DATE '2024-11-30', day)) AS s FROM visits", 2, 13),
        ("SELECT SUM(DATE_DIFF('week', day, TIMESTAMP '2026-01-05 12:00:00')) AS s FROM visits", 1, 53),
        ("SELECT SUM(n / cost) AS s FROM visits WHERE cost >= 2", 0, Fraction(9, 2)),
        ("SELECT SUM(CAST(note AS INT)) AS s FROM visits WHERE CAST(note AS INT) > 0 AND n = 1", None, None),
        (
            "SELECT SUM(x) AS s FROM (SELECT CAST(note AS INT) AS x FROM visits) AS t WHERE x BETWEEN 1 AND 2 * 8",
            1,
            16,
        ),
        (
            "SELECT SUM(top - low) AS s FROM (SELECT patient, MAX(day) AS top, MIN(day) AS low FROM visits"
            " GROUP BY patient HAVING COUNT(*) > 1) AS t",
            -364,
            364,
        ),
        (
            "SELECT SUM(many) AS s FROM (SELECT patient, COUNT(*) AS many FROM visits GROUP BY patient"
            " HAVING COUNT(*) <= 12) AS t",
            0,
            12,
        ),
    ],
)
def test_bounds_follow_from_dates_conditions_and_arithmetic(
    text: str, low: int | None, high: int | Fraction | None
) -> None:
    if low is None:
        with pytest.raises(PlanError, match="no public bounds"):
            plan(text)
        return
    assert bounds_of(text) == (low, high, False)


def test_sure_bounds_are_not_narrowed() -> None:
    """The noise of queries that were answered before stays what it was."""
    assert bounds_of("SELECT SUM(cost) AS s FROM visits WHERE cost BETWEEN 0 AND 10") == (0, 100, False)


def test_likely_bounds_make_no_groups_public() -> None:
    assert plan(f"SELECT gap, COUNT(*) AS m FROM {GAPS} WHERE gap BETWEEN 0 AND 9 GROUP BY gap").front.selects
    with pytest.raises(ArgumentError, match="delta is missing"):
        plan(f"SELECT gap, COUNT(*) AS m FROM {GAPS} WHERE gap BETWEEN 0 AND 9 GROUP BY gap", delta=0)


def test_what_a_unit_holds_has_a_generous_bound() -> None:
    assert bounds_of(f"SELECT SUM(many) AS s FROM {BY_UNIT}") == (0, MOST, True)
    assert bounds_of(f"SELECT SUM(spent) AS s FROM {BY_UNIT}") == (0, 100 * MOST, True)
    assert bounds_of(f"SELECT SUM(many) AS s FROM {BY_UNIT} WHERE many < 50") == (0, 50, False)
    # The average is taken from 0, not from the middle: its noise is that of what units really hold.
    assert bounds_of(f"SELECT AVG(many) AS s FROM {BY_UNIT}") == (0, MOST, True)
    with pytest.raises(PlanError, match="quantile needs bounds"):
        plan(f"SELECT MEDIAN(many) AS s FROM {BY_UNIT}")


def test_with_limits_a_generous_bound_is_refused_with_what_to_write() -> None:
    text = f"SELECT AVG(many) AS s FROM {BY_UNIT}"
    with pytest.raises(PlanError, match=r"bounds=\{'s': \(lowest, highest\)\}"):
        plan(text, limits=Limits(rows=1))
    assert plan(text, limits=Limits(rows=1), bounds={"s": (0, 20)}).fixed is not None
    assert plan(text, limits=Limits(rows=1, reach={"s": 20})).fixed is not None


@pytest.fixture(scope="module")
def clinic() -> Private[Any]:
    """2,000 patients with one to six visits, a few without bound."""
    patients = [p for p in range(2000) for _ in range(1 + p % 6)] + [5000] * 3000
    rows = {
        "patient": patients, "ward": ["a"] * len(patients), "cost": [40.0] * len(patients), "n": [2] * len(patients),
        "day": pa.array([20_100 + i % 300 for i in range(len(patients))], pa.int32()).cast(pa.date32()),
        "note": ["1"] * len(patients),
    }  # fmt: skip
    return Private("clinic", pa.table(rows), unit=Unit("user:patient"), schema=SCHEMA)


@pytest.mark.parametrize(
    ("text", "truth", "off"),
    [
        (f"SELECT AVG(many) AS s FROM {BY_UNIT}", 3.5, 0.35),
        (f"SELECT SUM(spent) AS s FROM {BY_UNIT}", 7000 * 40, 28_000),
        (f"SELECT AVG(spent / 40) AS s FROM {BY_UNIT}", 3.5, 0.5),
    ],
)
def test_noise_is_for_what_units_hold(clinic: Private[Any], text: str, truth: float, off: float) -> None:
    """One user with 3,000 visits is weighed down as everywhere; a million is what clamps, not what is paid for."""
    made = plan(text, epsilon=5)
    budget = MemoryLedger({"clinic": Budget(epsilon=6, delta=1e-5)})
    answer = Curator(clinic, budget).release(made).value
    assert abs(answer["s"][0] - truth) < off
