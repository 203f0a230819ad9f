"""The adviser: what it chooses, what it costs, and what it tells afterwards."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, record, sql
from sfumato.query import Limits
from sfumato.query.advice import ADVICE, Advice, Cut
from sfumato.query.plan import Sql
from sfumato.schema import Schema, Table, category, key, real
from tests.query.still import Still, answered, raw_of

SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 50)}, unit="patient"
        )
    }
)
WARDS = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward"
DRUGS = "SELECT drug, COUNT(*) AS n, COUNT(DISTINCT patient) AS p FROM visits GROUP BY drug"


def plan(text: str = WARDS, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=Unit("user:patient"), **{"epsilon": 2, "delta": 1e-6, **options})


def visits(rows: int, patients: int, *, heavy: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(4)
    count = rows + heavy
    return {
        "patient": [i % patients for i in range(rows)] + [-1] * heavy,
        "ward": draw.choice(["a", "b"], count).tolist(),
        "drug": draw.choice(["x", "y", "z"], count).tolist(),
        "days": draw.uniform(0, 50, count).tolist(),
    }


def advice_of(made: Sql, data: dict[str, Any]) -> Advice:
    return Advice.read(raw_of(made, {"visits": data})["limits"])


def test_its_share_is_taken_from_the_others() -> None:
    made = plan()
    assert made.advises and made.fixed is None and made.advice == ADVICE == Fraction(3, 20)
    assert sum(made.design(Limits()).shares.values()) == 1 - ADVICE
    assert made.event == plan(limits=Limits()).event  # the whole costs what was asked for, adviser and all
    assert not plan(limits=Limits()).advises
    larger = plan(advice=0.3)
    assert sum(larger.design(Limits()).shares.values()) == Fraction(7, 10)


@pytest.mark.parametrize("options", [{}, {"delta": None}, {"epsilon": None, "rho": 0.2}])
def test_limits_follow_what_units_hold(options: dict[str, Any]) -> None:
    made = plan(**options)
    one = advice_of(made, visits(4000, 4000)).limits.rows
    many = advice_of(made, visits(40_000, 1000)).limits.rows
    assert one <= 3
    assert 8 <= many <= 100


def test_one_heavy_unit_does_not_move_the_limits() -> None:
    """What is chosen depends on counts of units: a single one is below the noise."""
    made = plan()
    assert advice_of(made, visits(4000, 2000, heavy=3000)).limits == advice_of(made, visits(4000, 2000)).limits


def test_the_answer_is_about_right() -> None:
    data = visits(20_000, 4000)
    for text in (WARDS, DRUGS):
        exact = answered(plan(text, limits=Limits(rows=64, keys=8)), {"visits": data})
        found = answered(plan(text), {"visits": data})
        assert len(found) == len(exact)
        for row, true in zip(found.rows, exact.rows, strict=True):
            assert row["n"] == pytest.approx(true["n"], rel=0.05)


def test_it_tells_how_much_the_limits_took() -> None:
    notes = answered(plan(DRUGS), {"visits": visits(20_000, 4000)}).notes
    told = [note for note in notes if note.startswith("limits cut about")]
    assert any("from rows" in note for note in told) and any("numbers of units" in note for note in told)


def test_no_data_is_no_accident() -> None:
    for text in (WARDS, DRUGS, "SELECT COUNT(*) AS n FROM visits", "SELECT MEDIAN(days) AS m FROM visits"):
        for options in ({}, {"unclip": True}):
            made = plan(text, **options)
            answer = answered(made, {"visits": {name: [] for name in SCHEMA.table("visits").columns}})
            assert all(each == 0 for each in (answer["n"] if "n" in answer.columns else ()))


def test_advice_is_stored_as_plain_values() -> None:
    limits = Limits(rows=Fraction(7, 3), keys=3, most_keys=9, values=2)
    advice = Advice(limits, {"rows": Fraction(5, 3)}, {"rows": Cut(123.5, 4.25, 120.0, 3.0)})
    again = Advice.read(record.parse(record.canonical(advice.stored())))
    assert (again.limits, dict(again.reaches), dict(again.cuts)) == (limits, advice.reaches, advice.cuts)


def test_answers_that_measured_no_cuts_are_still_read() -> None:
    """Releases of before the cuts of each number were measured are at least what they say."""
    made = plan()
    raw = raw_of(made, {"visits": visits(4000, 2000)})
    before = {name: each for name, each in raw["limits"].items() if name != "cuts"} | {"totals": {"rows": ["9", 3.0]}}
    answer = made.finish({**raw, "limits": before})
    assert answer["n"] == list(raw["numbers"]["rows"]) and answer.bias("n") == [None, None]
    assert all(high == float("inf") for _, high in answer.interval("n"))


def test_the_same_noise_is_drawn_whatever_the_data() -> None:
    """Where groups are given: histograms, sums and totals, each once."""
    counts = []
    for data in (visits(4000, 2000), visits(9000, 1000)):
        still = Still()
        raw_of(plan(), {"visits": data}, still)
        counts.append([count for _, count in still.laws])
    assert counts[0] == counts[1]


def test_rows_as_units_need_no_adviser() -> None:
    schema = Schema({"visits": Table({"ward": category(["a", "b"]), "days": real(0, 50)})})
    made = sql(WARDS, schema, unit=Unit("row"), epsilon=1)
    assert not made.advises and made.fixed is not None
