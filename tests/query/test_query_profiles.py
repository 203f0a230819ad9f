"""How much units hold: noisy histograms of lengths, and what is read from them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, sql
from sfumato.query.plan import Sql
from sfumato.query.profiles import Profile, profiles
from sfumato.query.running import ROWS
from sfumato.schema import Schema, Table, category, key, real
from sfumato.sources import connect, source
from tests.query.still import Still

MIDDLES = 2.0 ** ((np.arange(40) + 0.5) / 2)


def profile(**units: float) -> Profile:
    """Units by bin: b0, b1, ..."""
    counts = np.zeros(40)
    for name, many in units.items():
        counts[int(name[1:])] = many
    return Profile(MIDDLES, counts)


def test_totals_and_ends() -> None:
    made = profile(b0=100, b6=10)
    assert made.total == pytest.approx(100 * 2**0.25 + 10 * 2**3.25)
    assert made.largest == pytest.approx(2**3.5)
    assert profile().largest == 1.0 and profile().total == 0


def test_above_and_length_are_inverse() -> None:
    made = profile(b0=100, b4=50, b6=10)
    assert made.above(1.0) == pytest.approx(160)
    assert made.above(2**3.5) == pytest.approx(0)
    assert made.above(2**2.5) == pytest.approx(10)
    for units in (5.0, 12.0, 33.0, 120.0):
        assert made.above(made.length(units)) == pytest.approx(units, rel=1e-6)
    assert made.length(1000) == pytest.approx(1.0)


def test_what_is_beyond_a_limit() -> None:
    made = profile(b0=100, b6=10)
    assert made.beyond(100.0) == 0
    assert made.beyond(2.0) == pytest.approx(10 * (2**3.25 - 2) / made.total)
    assert profile().beyond(1.0) == 0


def test_losses_fall_as_limits_grow() -> None:
    lengths, masses = profile(b0=100, b4=50, b8=10), profile(b1=100, b5=50, b9=10)
    losses = [lengths.lost(limit, masses) for limit in (1, 2, 4, 8, 16, 32)]
    assert losses == sorted(losses, reverse=True) and losses[-1] == 0 and losses[0] > 0.3
    assert lengths.lost(2, masses, 0.5) < lengths.lost(2, masses)
    assert profile().lost(1.0, masses) == 0


SCHEMA = Schema(
    {"visits": Table({"patient": key(), "ward": category(["a", "b"]), "days": real(0, 50)}, unit="patient")}
)


def plan(**options: Any) -> Sql:
    text = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward"
    return sql(text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 8, "delta": 1e-6, **options})


def found(data: dict[str, Any], *, laplace: bool = False, measures: bool = True) -> tuple[list[Profile], Still]:
    made, still = plan(delta=None if laplace else 1e-6), Still()
    opened = connect({"visits": (SCHEMA.table("visits"), source(data))}, threads=1)
    try:
        asked = made.questions.measures if measures else ()
        return profiles(made.front, made.blur, opened, still, asked, Fraction(1, 2)), still  # type: ignore[arg-type]
    finally:
        opened.close()


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
            near = np.abs(np.log2(made.middles / (length * size))) <= 0.26
            assert made.counts[near].max() == many
        assert made.counts.sum() == pytest.approx(500, abs=60)  # and a tail that is drawn on
    near = np.abs(np.log2(masses.middles / 2)) <= 0.26
    assert masses.counts[near].max() == 200


def test_without_measures_groups_are_counted() -> None:
    data = {"patient": [i // 2 for i in range(800)], "ward": ["a", "b"] * 400, "days": [1.0] * 800}
    (groups,), _ = found(data, measures=False)
    assert groups.counts[2] == 400  # [2, 2^1.5)


def test_nobody_is_nowhere() -> None:
    made, still = found({"patient": [], "ward": [], "days": []})
    assert all(each.total == 0 for each in made)
    assert len(still.laws) == 3 and len({count for _, count in still.laws}) == 1  # as much noise as for many


def test_noise_alone_makes_no_units() -> None:
    """A few units are not told from noise."""
    made, _ = found({"patient": [1, 2, 3], "ward": ["a"] * 3, "days": [1.0] * 3}, laplace=True)
    assert all(each.total == 0 for each in made)


def test_counts_of_rows_have_the_step_one() -> None:
    assert ROWS.row is None and ROWS.largest == 1
