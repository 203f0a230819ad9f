"""What a plan says about itself."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import Unit, sql
from sfumato.query import Limits
from sfumato.query.finish import expected
from sfumato.schema import Schema, Table, category, key, real

SCHEMA = Schema(
    {
        "visits": Table(
            {"patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 50)}, unit="patient"
        ),
        "drugs": Table({"drug": key(), "price": real(0, 9)}, private=False),
    }
)


def steps(text: str, *, unit: Unit | None = None, schema: Schema = SCHEMA, **options: Any) -> list[str]:
    more = {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=4, keys=3), **options}
    return sql(text, schema, unit=unit or Unit("user:patient"), **more).explain()


def test_given_groups_and_noise_are_told_with_numbers() -> None:
    text = "SELECT ward, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY ward"
    lines = steps(text)
    assert "each belongs to one patient" in lines[0]
    assert "group by ward: 2 public values; those without rows appear, too" in lines
    assert any("counts for at most 4 rows in one group, or 8 spread over four; no row" in line for line in lines)
    assert any("(reach 200 for one unit; 50 % of the budget)" in line for line in lines)
    made = sql(text, SCHEMA, unit=Unit("user:patient"), epsilon=1, delta=1e-6, limits=Limits(rows=4, keys=3))
    for name, width in expected(made, 0.05).items():
        assert f"{name}: ± {width:.4g} at 95 %" in lines
    assert sum("gaussian noise of standard deviation" in line for line in lines) == 2


def test_chosen_groups_tell_their_threshold_and_delta() -> None:
    text = "\n".join(steps("SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug"))
    assert "which values there are is private" in text
    assert "show the groups whose noisy number of units reaches" in text
    assert "stays out but for probability 5e-07" in text


def test_public_tables_are_named() -> None:
    lines = steps("SELECT drugs.drug, COUNT(*) AS n FROM visits JOIN drugs USING (drug) GROUP BY drugs.drug")
    assert "group by drug: the values of the public table drugs" in lines


def test_the_adviser_tells_its_share() -> None:
    lines = steps("SELECT COUNT(*) AS n FROM visits", limits=None, advice=0.2)
    assert any(line.startswith("spend 20 % of the budget on how much units hold") for line in lines)


def test_rows_as_units_have_no_weights() -> None:
    schema = Schema({"visits": Table({"ward": category(["a", "b"]), "days": real(0, 50)})})
    lines = steps("SELECT COUNT(*) AS n FROM visits", schema=schema, unit=Unit("row"), limits=None)
    assert not any("weight" in line for line in lines)


@pytest.mark.parametrize("aggregate", ["MEDIAN(days)", "HISTOGRAM(days, [0, 9])", "COUNT(DISTINCT drug)"])
def test_every_question_has_a_line_of_noise(aggregate: str) -> None:
    lines = steps(f"SELECT {aggregate} AS x FROM visits", delta=None)
    assert sum("laplace noise of standard deviation" in line for line in lines) == 1
