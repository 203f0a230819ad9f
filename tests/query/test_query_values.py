"""Values as people write them: flags beside numbers and words, keys in order, qualified names, texts of groups."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sfumato import Schema, Unit, schema, sql
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Table
from tests.query.still import answered

SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": schema.key(), "ward": schema.category(["north east", "south"]), "code": schema.key(),
                "n": schema.whole(0, 9), "x": schema.real(0, 9), "ok": schema.flag(),
            },
            unit="user",
        ),
        "wards": Table({"ward": schema.category(["north east", "south"]), "beds": schema.whole(0, 9)}, private=False),
    }
)  # fmt: skip
DATA = {
    "visits": pa.table(
        {
            "user": [1, 2, 3, 4, 5], "ward": ["south", "south", "north east", "south", None],
            "code": ["3", "12", "b", "nan", None], "n": [1, 0, 1, 2, None], "x": [1.5, 2.5, 0.0, 9.0, None],
            "ok": [True, False, True, None, None],
        }
    ),
    "wards": pa.table({"ward": ["north east", "south"], "beds": [3, 4]}),
}  # fmt: skip


def plan_of(text: str, **options: Any) -> Sql:
    return sql(text, SCHEMA, unit=Unit("user:user"), epsilon=1, limits={"rows": 1}, **options)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("ok = 1", 2),
        ("ok = 0", 1),
        ("ok = 7", 0),
        ("ok <> 1", 1),
        ("1 = ok", 2),
        ("ok > 0", 2),
        ("ok IN (0, 1)", 3),
        ("ok = n", 3),
        ("ok = 'true'", 2),
        ("ok = 'No'", 1),
        ("ok = '1'", 2),
        ("ok", 2),
        ("NOT ok AND n = 0", 1),
        ("CASE WHEN ok THEN 1 ELSE 0 END = 1", 2),
        ("ok + n = 2", 2),
        ("(n > 0) + (x > 1) = 2", 2),
        ("COALESCE(ok, 0) = 0", 3),
        ("code < 5", 1),
        ("code BETWEEN 3 AND 12", 2),
        ("code >= 'a'", 2),
        ("code = 12", 1),
    ],
)
def test_a_condition_holds_for_so_many_rows(condition: str, rows: int) -> None:
    assert answered(plan_of(f"SELECT COUNT(*) AS c FROM visits WHERE {condition}"), DATA)["c"] == [rows]


def test_flags_are_added_up() -> None:
    answer = answered(plan_of("SELECT SUM(ok) AS s, AVG(ok) AS a, SUM(n * ok) AS p FROM visits"), DATA)
    assert answer["s"] == [2] and answer["a"] == [pytest.approx(2 / 3)] and answer["p"] == [2]
    inner = "SELECT user, SUM(ok) AS s FROM visits GROUP BY user"
    assert answered(plan_of(f"SELECT SUM(s) AS s FROM ({inner}) t", bounds={"s": (0, 1)}), DATA)["s"] == [2]


@pytest.mark.parametrize(
    "source",
    [
        "main.visits",
        "public.visits",
        "dbo.visits",
        '"clinic"."public"."visits"',
        "Clinic.DBO.Visits",
        "public.visits AS visits",
    ],
)
def test_a_table_may_be_named_with_its_schema(source: str) -> None:
    plain = plan_of("SELECT ward, SUM(n) AS s FROM visits WHERE visits.x > 1 GROUP BY ward")
    plan = plan_of(
        f"SELECT visits.ward, SUM(visits.n) AS s FROM {source} WHERE public.visits.x > 1 GROUP BY visits.ward"
    )
    assert plan == plain


def test_columns_may_be_named_with_schema_and_table_in_joins() -> None:
    text = (
        "SELECT public.wards.beds, COUNT(*) AS c FROM public.visits JOIN public.wards "
        "ON public.visits.ward = public.wards.ward GROUP BY public.wards.beds"
    )
    assert [count for count in answered(plan_of(text), DATA)["c"] if count] == [1, 3]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM other.visits",
        "SELECT COUNT(*) FROM shop.other.visits",
        "WITH visits AS (SELECT * FROM visits WHERE n > 1) SELECT COUNT(*) FROM main.visits",
        "SELECT COUNT(other.visits.n) FROM visits",
    ],
)
def test_other_schemas_are_not_guessed(text: str) -> None:
    with pytest.raises(QueryError):
        plan_of(text)


@pytest.mark.parametrize(
    ("shown", "values"),
    [
        ("UPPER(ward)", ["NORTH EAST", "SOUTH"]),
        ("LOWER(UPPER(ward))", ["north east", "south"]),
        ("SUBSTRING(ward, 1, 5)", ["north", "south"]),
        ("SUBSTR(ward, -2)", ["st", "th"]),
        ("SUBSTR(ward, 0, 3)", ["no", "so"]),
        ("LEFT(ward, 1) || '.'", ["n.", "s."]),
        ("RIGHT(ward, 4)", ["east", "outh"]),
        ("RIGHT(ward, 0)", ["", ""]),
        ("CONCAT('ward ', ward, NULL)", ["ward north east", "ward south"]),
        ("REPLACE(ward, ' ', '-')", ["north-east", "south"]),
        ("REVERSE(ward)", ["tsae htron", "htuos"]),
        ("TRIM(ward, 'n')", ["orth east", "south"]),
        ("LENGTH(ward)", [10, 5]),
        ("ward || ': ' || CAST(COUNT(*) AS VARCHAR)", ["north east: 1", "south: 3"]),
        ("CONCAT(ward, COUNT(*))", ["north east1", "south3"]),
        ("CAST(SUM(x) / 7 AS DECIMAL(10, 2))", [0.0, 1.86]),
        ("CAST(SUM(x) / 7 AS DECIMAL)", [0.0, 1.857]),
        ("COUNT(*) // 2", [0, 1]),
        ("IFF(UPPER(ward) = 'SOUTH', 1, 0)", [0, 1]),
    ],
)
def test_texts_are_made_of_released_keys(shown: str, values: list[Any] | None) -> None:
    text = f"SELECT {shown} AS v, COUNT(*) AS c, SUM(x) AS s FROM visits GROUP BY ward ORDER BY ward"
    if values is None:
        with pytest.raises(QueryError):
            plan_of(text)
        return
    plan = plan_of(text)
    answer = answered(plan, DATA)
    assert answer["v"] == pytest.approx(values) if isinstance(values[0], float) else answer["v"] == values
    assert (
        plan.text == plan_of("SELECT ward, COUNT(*) AS c, SUM(x) AS s FROM visits GROUP BY ward").text or "(x)" in shown
    )


@pytest.mark.parametrize("shown", ["UPPER(COUNT(*))", "LEFT(ward, COUNT(*))", "LEFT(ward, 0.5)"])
def test_texts_of_noise_are_refused(shown: str) -> None:
    with pytest.raises(QueryError):
        plan_of(f"SELECT {shown} AS v, COUNT(*) AS c FROM visits GROUP BY ward")
