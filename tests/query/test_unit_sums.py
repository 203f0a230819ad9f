"""What units hold in groups, added up once: read again, it is what it was, to half a step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Unit, sql
from sfumato.query import Limits, running
from sfumato.query.bounding import Sums
from sfumato.query.plan import Sql
from sfumato.query.statement_texts import filled
from sfumato.query.unit_sums import keep_sums, unit_sums
from sfumato.schema import Schema, Table, category, key, real, whole
from sfumato.sources import connect, source

COLUMNS = {"who": key(), "ward": category(["a", "b"]), "cost": real(-50, 900, nulls=0), "days": whole(0, 30, nulls=0)}
SCHEMA = Schema({"visits": Table(COLUMNS, unit="who")})
QUERY = "SELECT ward, COUNT(*) AS n, SUM(cost) AS cost, SUM(days) AS days FROM visits GROUP BY ward"
DATA = {
    "who": [1, 1, 1, 2, 2, 3, None],
    "ward": ["a", "a", "b", "a", "b", "b", "a"],
    "cost": [1.25, -49.5, 900.0, 0.1, -0.3, 33.3, 500.0],
    "days": [1, 2, 3, 30, 0, 7, 9],
}


def plan() -> Sql:
    made = sql(QUERY, SCHEMA, unit=Unit("user:who"), epsilon=1, delta=1e-6)
    assert isinstance(made, Sql)
    return made


def opened() -> Any:
    return connect({"visits": (SCHEMA.table("visits"), source(pa.table(DATA)))}, threads=1)


class KeepsNothing:
    """A connection to an engine that keeps nothing."""

    dialect = "duckdb"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, tree: Any) -> Any:
        return self._connection.run(tree)


def rows_of(table: Any) -> list[Any]:
    return sorted(map(tuple, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def test_an_engine_that_keeps_them_answers_as_one_that_does_not() -> None:
    made, limits = plan(), Limits(rows=2, keys=2)
    with opened() as connection:
        answers = []
        for engine in (connection, KeepsNothing(connection)):
            pairs = keep_sums(made, engine)
            statement = running._sums(made.front, made.design(limits), pairs=pairs).statement
            answers.append(rows_of(engine.run(statement)))
        assert answers[0] == answers[1] and len(answers[0]) == 2
        assert connection._kept == ["_kept_0"]


@pytest.mark.parametrize("finer", [-9, -1, 0, 1, 5, 12])
def test_a_sum_is_read_to_half_a_step(finer: int) -> None:
    """Of every unit and group, whatever steps the statement counts in; both ways from 0."""
    made = plan()
    design, pairs = made.design(Limits(rows=2, keys=2)), unit_sums(made)
    signed = next(one for one in design.sums if one.measure.signed)
    exponent = pairs.place(signed.measure)[1] - finer
    moved = replace(signed, scale=signed.scale * Fraction(2) ** (exponent - signed.exponent))
    assert moved.exponent == exponent
    block = Sums(pairs.rows, 1, (moved,), None, design.blur, True, pairs=pairs.places)
    with opened() as connection:
        text = block._pairs("_unit, k0", "")
        rows = rows_of(connection.run(filled(text, pairs.rows)))
    truth = {(1, "a"): 1.25 - 49.5, (1, "b"): 900.0, (2, "a"): 0.1, (2, "b"): -0.3, (3, "b"): 33.3}
    assert {(who, ward) for who, ward, _ in rows} == set(truth)
    fine = 2.0 ** pairs.place(signed.measure)[1]
    for who, ward, steps in rows:
        off = abs(steps * 2.0**exponent - truth[who, ward])
        assert off <= (2.0**exponent) / 2 * (finer < 0) + fine * 2, (who, ward)


def test_heavy_units_stay_whole_numbers_of_64_bits() -> None:
    made, many = plan(), 3000
    data = {"who": np.zeros(many), "ward": ["a"] * many, "cost": np.full(many, 900.0), "days": np.full(many, 30)}
    with connect({"visits": (SCHEMA.table("visits"), source(pa.table(data)))}, threads=1) as connection:
        table = connection.run(unit_sums(made).rows)
    assert {str(field.type) for field in table.schema if field.name.startswith("q")} == {"int64"}
    assert table["n"].to_pylist() == [many]
