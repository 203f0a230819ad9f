"""How much units hold: noisy histograms of lengths, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sqlglot import exp

from sfumato import Unit, sql
from sfumato.query.measures import ROWS
from sfumato.query.plan import Sql
from sfumato.query.profiles import BINS, Histogram, groups_profile, profiles, values_profile
from sfumato.query.running import Groups
from sfumato.query.unit_sums import unit_sums
from sfumato.schema import Schema, Table, category, key, real
from sfumato.sources import connect, source
from tests.query.still import Still

SCHEMA = Schema(
    {"visits": Table({"patient": key(), "ward": category(["a", "b"]), "days": real(0, 50)}, unit="patient")}
)


def plan(**options: Any) -> Sql:
    text = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward"
    return sql(text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 8, "delta": 1e-6, **options})


@contextmanager
def opened(data: dict[str, Any]) -> Iterator[Any]:
    connection = connect({"visits": (SCHEMA.table("visits"), source(data))}, threads=1)
    try:
        yield connection
    finally:
        connection.close()


def found(data: dict[str, Any], *, laplace: bool = False) -> tuple[list[Histogram], Still]:
    made, still = plan(delta=None if laplace else 1e-6), Still()
    with opened(data) as connection:
        measures = made.questions.measures
        half, pairs = Fraction(1, 2), unit_sums(made)
        return profiles(made.front, made.blur, connection, still, pairs, measures, half, masses=True), still  # type: ignore[arg-type]


@pytest.mark.parametrize("laplace", [False, True])
def test_every_unit_is_in_its_bin(laplace: bool) -> None:
    """300 patients with 4 rows of 10 days in one ward, 200 with one row in each of two."""
    data = {
        "patient": [i // 4 for i in range(1200)] + [1000 + i // 2 for i in range(400)],
        "ward": ["a"] * 1200 + ["a", "b"] * 200,
        "days": [10.0] * 1600,
    }
    (rows, days, masses), still = found(data, laplace=laplace)
    assert len(still.laws) == 3
    two = 2.0 if laplace else 2**0.5  # the length of (1, 1)
    for made, size in ((rows, 1), (days, 10)):
        for length, many in ((4.0, 300), (two, 200)):
            near = np.abs(np.log2(made.middles / (length * size))) <= 0.3
            assert made.counts[near].max() == many
        assert made.counts.sum() == 500
    near = np.abs(np.log2(masses.middles / 2)) <= 0.26
    assert masses.counts[near].max() == 200


def test_groups_and_values_of_units_are_counted() -> None:
    data = {"patient": [i // 2 for i in range(800)], "ward": ["a", "b"] * 400, "days": [1.0] * 800}
    made, still = plan(), Still()
    value = exp.column("days", table="visits", quoted=True)
    with opened(data) as connection:
        groups = groups_profile(made.blur, connection, still, unit_sums(made), Fraction(1))  # type: ignore[arg-type]
        both = Groups([("a",), ("b",)], True)
        values = values_profile(made.front, made.blur, connection, still, value, Fraction(1), both)  # type: ignore[arg-type]
    assert groups.counts[2] == 400 and groups.middles[2] == 2 and groups.longest(2) == 2
    assert values.counts[2] == 400  # one value in each of two groups


def test_bins_of_whole_numbers_hold_whole_numbers() -> None:
    nothing = np.zeros(BINS)
    whole, root, real = (Histogram(nothing, 1.0, 5.0, 1.0, power) for power in (1, 2, None))
    assert [whole.longest(k) for k in range(7)] == [1, 1, 2, 3, 5, 7, 11]
    assert whole.middles[[0, 2, 3, 4]].tolist() == [1, 2, 3, 4.5]
    assert root.longest(0) == 1 and root.longest(1) == pytest.approx(3**0.5) and root.middles[0] == 1
    assert real.longest(2) == real.end(2) == pytest.approx(2**1.5)


def test_nobody_is_nowhere() -> None:
    made, still = found({"patient": [], "ward": [], "days": []})
    assert all(each.tail() is None for each in made)
    assert len(still.laws) == 3 and len({count for _, count in still.laws}) == 1  # as much noise as for many


def test_noise_alone_makes_no_units() -> None:
    """A few units are not told from noise."""
    made, _ = found({"patient": [1], "ward": ["a"], "days": [1.0]}, laplace=True)
    assert all(each.tail() is None for each in made)


def test_counts_of_rows_have_the_step_one() -> None:
    assert ROWS.row is None and ROWS.largest == 1
