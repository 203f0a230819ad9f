"""The release: what is drawn, in which order, and what is stored."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Unit, sql
from sfumato.noise import Noise, SeededBits
from sfumato.query import Limits
from sfumato.query.plan import Sql
from sfumato.query.running import Groups, restored
from sfumato.schema import Schema, Table, category, date, key, real
from sfumato.sources.session import Session
from tests.query.still import Still, answered, raw_of

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "patient": key(),
                "ward": category(["a", "b", "c"]),
                "drug": key(),
                "days": real(0, 50),
                "day": date("2024-01-01", "2030-01-01"),
            },
            unit="patient",
        )
    }
)
MANY = 3000
VISITS: dict[str, Any] = {
    "patient": [i // 2 for i in range(MANY)],
    "ward": ["a", "b", "a"] * (MANY // 3),
    "drug": ["x", "y", "z"] * (MANY // 3),
    "days": [1.0, 2.0, 3.0, 4.0, 5.0] * (MANY // 5),
    "day": [datetime.date(2024, 5, 1 + i % 2) for i in range(MANY)],
}


def plan(text: str, **options: Any) -> Sql:
    more = {"epsilon": 4, "delta": 1e-6, "limits": Limits(rows=4, keys=3, values=3), **options}
    return sql(text, SCHEMA, unit=Unit("user:patient"), **more)


def mixed(seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(MANY)
    return {name: [cells[i] for i in order] for name, cells in VISITS.items()}


def test_the_order_of_rows_changes_nothing_that_is_released() -> None:
    """With the same bits, the same noise falls on the same groups, wherever the engine found them first."""
    given = plan(
        "SELECT ward, COUNT(*) n, AVG(days) m, MEDIAN(days) q, HISTOGRAM(days, [0, 2, 50]) h, COUNT(DISTINCT drug) d, "
        "COUNT(DISTINCT patient) p FROM visits GROUP BY ward"
    )
    for made in (given, plan(given.text, limits=None, unclip=True)):
        found = [raw_of(made, {"visits": data}, Noise(SeededBits(5))) for data in (VISITS, mixed(1), mixed(2))]
        assert found[0] == found[1] == found[2]


def test_chosen_groups_stand_in_their_own_order() -> None:
    made = plan("SELECT drug, COUNT(*) n FROM visits GROUP BY drug")
    for data in (VISITS, mixed(1), mixed(2)):
        raw = raw_of(made, {"visits": data}, Noise(SeededBits(5)))
        assert list(raw["keys"]["drug"]) == ["x", "y", "z"] and raw["groups"] == 3


def test_groups_that_come_in_parts_are_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drawn for once, and those of few units left out of their part."""
    made = plan("SELECT drug, day, COUNT(*) n, SUM(days) s FROM visits GROUP BY drug, day")
    rare = {name: [*cells, cells[-1]] for name, cells in {**VISITS, "drug": [*VISITS["drug"][:-1], "rare"]}.items()}
    whole, parted = Still(), Still()
    expected = raw_of(made, {"visits": rare}, whole)

    def parts(self: Session, tree: Any) -> Iterator[Any]:
        rows = self.run(tree)
        yield from (rows.slice(place, 1) for place in range(rows.num_rows + 1))

    monkeypatch.setattr(Session, "parts", parts)
    assert raw_of(made, {"visits": rare}, parted) == expected
    assert expected["groups"] == 6 and "rare" not in expected["keys"]["drug"]
    assert sum(count for _, count in parted.laws) == sum(count for _, count in whole.laws)


def test_noise_is_drawn_for_every_group_and_number() -> None:
    still = Still()
    aggregates = "COUNT(*) n, SUM(days) s, COUNT(DISTINCT patient) p, COUNT(DISTINCT drug) d"
    made = plan(f"SELECT ward, {aggregates} FROM visits GROUP BY ward")
    raw_of(made, {"visits": VISITS}, still)
    assert made.fixed is not None
    assert [count for _, count in still.laws] == [3] * 4
    assert {law for law, _ in still.laws} == {law for law, _ in made.fixed.spreads.values()}


def test_nothing_is_drawn_less_where_there_is_no_data() -> None:
    """The number of draws, and the shape of what is stored, come from the plan alone where groups are given."""
    made = plan("SELECT ward, COUNT(*) n, MEDIAN(days) m, HISTOGRAM(days, [0, 1, 50]) h FROM visits GROUP BY ward")
    shapes = []
    for data in (VISITS, {name: [] for name in VISITS}, {name: [None, None] for name in VISITS}):
        raw = raw_of(made, {"visits": data}, Noise(SeededBits(1)))
        shapes.append((raw["groups"], raw["keys"], {name: len(each) for name, each in raw["numbers"].items()}))
    assert shapes[0] == shapes[1] == shapes[2]


def test_dates_are_stored_as_texts_and_restored() -> None:
    made = plan("SELECT day, COUNT(*) n FROM visits GROUP BY day")
    raw = raw_of(made, {"visits": VISITS})
    assert list(raw["keys"]["day"]) == [{"date": "2024-05-01"}, {"date": "2024-05-02"}]
    assert made.finish(raw)["day"] == [datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)]
    assert restored({"moment": "2024-05-01T10:00:00"}) == datetime.datetime(2024, 5, 1, 10)
    assert restored("x") == "x" and restored(None) is None


def test_rows_of_groups_that_are_not_shown_count_in_no_norm() -> None:
    """A patient of many unlisted groups still counts in full in the listed one."""
    data = {
        "patient": [1] * 50 + list(range(100, 200)), "ward": ["b"] * 49 + ["a"] * 101, "drug": ["x"] * 150,
        "days": [1.0] * 150, "day": [datetime.date(2024, 5, 1)] * 150,
    }  # fmt: skip
    made = plan("SELECT ward, COUNT(*) n FROM visits GROUP BY ward", keys={"ward": ["a"]}, limits=Limits(rows=1))
    assert answered(made, {"visits": data})["n"] == [101]
    both = plan("SELECT ward, COUNT(*) n FROM visits GROUP BY ward", limits=Limits(rows=1))
    assert answered(both, {"visits": data})["n"][0] < 100.1


def test_rows_as_units_count_in_full() -> None:
    table = Table({"ward": category(["a", "b"]), "days": real(0, 50)})
    schema = Schema({"visits": table})
    data = {"ward": ["a"] * 10, "days": [50.0] * 10}
    text = "SELECT ward, COUNT(*) n, SUM(days) s FROM visits GROUP BY ward"
    made = sql(text, schema, unit=Unit("row"), epsilon=1)
    assert answered(made, {"visits": data}).rows[0] == {"ward": "a", "n": 10, "s": 500}


def test_places_are_found_by_label_or_as_they_are() -> None:
    table = pa.table({"k0": ["12", "x", "y"], "s0": [1, 2, 3]})
    assert Groups([(12,), ("y",)], True).places(table, 1).tolist() == [0, -1, 1]
    assert Groups([("y",), ("12",)], False).places(table, 1).tolist() == [1, -1, 0]
    assert Groups([()], True).places(table, 0).tolist() == [0, 0, 0]
