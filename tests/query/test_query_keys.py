"""Which groups an answer has, and in which order."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from sfumato import Unit, sql
from sfumato.errors import ArgumentError
from sfumato.query import Limits
from sfumato.query.keys import label, ordering, product
from sfumato.query.plan import Sql
from sfumato.query.refusal import QueryError
from sfumato.schema import Schema, Table, category, date, flag, key, moment, real, whole
from tests.query.still import answered

TABLE = Table(
    {
        "patient": key(),
        "ward": category(["b", "a", "c"]),
        "drug": key(),
        "n": whole(1, 4),
        "big": whole(0, 10**6),
        "ok": flag(),
        "day": date("2024-01-30", "2024-02-02"),
        "at": moment("2024-01-01", "2025-01-01"),
        "days": real(0, 9),
    },
    unit="patient",
)
DRUGS = Table({"drug": key(), "kind": category(["pill", "drop"]), "size": whole(0, 9)}, private=False)
SCHEMA = Schema({"visits": TABLE, "drugs": DRUGS})
ROWS = 60
VISITS: dict[str, Any] = {
    "patient": list(range(ROWS)),
    "ward": ["a", "b"] * 30,
    "drug": ["x", "y", "12"] * 20,
    "n": [1, 2, 3] * 20,
    "big": [7, 8] * 30,
    "ok": [True, False, None] * 20,
    "day": [datetime.date(2024, 2, 1), datetime.date(2024, 1, 31)] * 30,
    "at": [datetime.datetime(2024, 2, 1, 12), datetime.datetime(2024, 1, 31)] * 30,
    "days": [1.5] * ROWS,
}
PUBLIC: dict[str, Any] = {"drug": ["y", "x", "w", None], "kind": ["pill", "drop", "pill", "pill"], "size": [1, 2, 3, 4]}
DATA = {"visits": VISITS, "drugs": PUBLIC}


def plan(by: str, *, keys: Any = None, source: str = "visits", **options: Any) -> Sql:
    text = f"SELECT {by}, COUNT(*) AS c FROM {source} GROUP BY {by}"
    more = {"epsilon": 1, "limits": Limits(rows=8, keys=4), **options}
    return sql(text, SCHEMA, unit=Unit("user:patient"), keys=keys, **more)


def groups(by: str, data: Any = DATA, **options: Any) -> dict[Any, float]:
    found = answered(plan(by, **options), data).rows
    return {tuple(list(row.values())[:-1]) if len(row) > 2 else next(iter(row.values())): row["c"] for row in found}


def test_categories_and_truth_values_are_known() -> None:
    assert list(groups("ward").items()) == [("a", 30), ("b", 30), ("c", 0)]
    assert groups("ok") == {False: 20, True: 20}  # NULL is no group


def test_few_whole_numbers_and_days_are_known() -> None:
    assert groups("n") == {1: 20, 2: 20, 3: 20, 4: 0}
    first = datetime.date(2024, 1, 30)
    days = [first + datetime.timedelta(days=i) for i in range(4)]
    assert groups("day") == dict(zip(days, (0, 30, 30, 0), strict=True))


@pytest.mark.parametrize("by", ["drug", "big", "at"])
def test_others_need_a_list_or_a_delta(by: str) -> None:
    with pytest.raises(ArgumentError, match="delta is missing"):
        plan(by)
    assert plan(by, delta=1e-6).front.selects
    assert plan("ward", keys={"ward": "select"}, delta=1e-6).front.selects


def test_given_keys_are_sorted_and_show_zeros() -> None:
    found = groups("drug", keys={"drug": ["y", "nothing", "x"]})
    assert list(found.items()) == [("nothing", 0), ("x", 20), ("y", 20)]
    assert groups("big", keys={"big": [8, 9]}) == {8: 30, 9: 0}
    assert groups("ward", keys={"ward": ["a"]}) == {"a": 30}


def test_numbers_and_texts_of_numbers_are_one_key() -> None:
    assert groups("drug", keys={"drug": [12, "x"]}) == {12: 20, "x": 20}
    assert groups("drug", keys={"drug": [12]}) == {12: 20}
    numbered = {**DATA, "visits": {**VISITS, "drug": [12, 13] * 30}}
    for keys in ([12, 14], ["12", "14"], [12, "14"]):
        assert groups("drug", numbered, keys={"drug": keys}) == {keys[0]: 30, keys[1]: 0}
    with pytest.raises(ArgumentError, match="a list of different values"):
        plan("drug", keys={"drug": [12, "12"]})


@pytest.mark.parametrize("cells", [pa.array([1.0, 2.5] * 30), pa.array([1, 2] * 30, pa.int32())])
def test_keys_of_other_engine_types_are_found(cells: Any) -> None:
    columns = {name: pa.array(each) for name, each in VISITS.items()} | {"drug": cells}
    assert groups("drug", {**DATA, "visits": pa.table(columns)}, keys={"drug": [1, 7]}) == {1: 30, 7: 0}


def test_dates_are_given_as_dates_or_texts() -> None:
    day = datetime.date(2024, 2, 1)
    for given in (["2024-02-01"], [day]):
        assert groups("day", keys={"day": given}) == {day: 30}
    moments = groups("at", keys={"at": ["2024-02-01 12:00:00", datetime.datetime(2024, 6, 1)]})
    assert moments == {datetime.datetime(2024, 2, 1, 12): 30, datetime.datetime(2024, 6, 1): 0}
    with pytest.raises(ArgumentError, match="dates or their ISO texts"):
        plan("day", keys={"day": ["soon"]})


def test_given_keys_become_what_the_column_holds() -> None:
    """A comparison that the engine cannot make would fail after the charge."""
    assert groups("n", keys={"n": ["3", 2.0, 1]}) == {1: 20, 2: 20, 3: 20}
    assert groups("ok", keys={"ok": ["true"]}) == {True: 20}
    assert groups("days", keys={"days": ["1.5", 2]}) == {1.5: 60, 2.0: 0}
    for by, wrong, allowed in (
        ("n", "many", "numbers"), ("n", 2.5, "whole numbers"), ("n", 2**63, "whole numbers"), ("ok", "so", "truth"),
        ("ok", 1, "truth"), ("days", "1/0", "numbers"), ("n", datetime.date(2024, 1, 1), "numbers"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"keys of {by} = .* is not allowed: give {allowed}"):
            plan(by, keys={by: [wrong]})


def test_keys_that_the_source_holds_as_dates_or_truths_are_found() -> None:
    moments = [datetime.datetime(2024, 2, 1, 12), datetime.datetime(2024, 2, 2)]
    cases: list[tuple[list[Any], list[Any]]] = [
        ([datetime.date(2024, 2, 1), datetime.date(2024, 2, 2)], [datetime.date(2024, 2, 1), "2024-02-02"]),
        (moments, ["2024-02-01 12:00:00", "2024-02-02 00:00:00"]),
        (moments, moments),
        ([True, False], [True, False]),
        ([True, False], ["true", "false"]),
        (["", "b c"], ["", "b c"]),
    ]
    for cells, given in cases:
        arrow, columns = pa.table({**VISITS, "drug": cells * 30}), {**VISITS, "drug": cells * 30}
        for made in (arrow,) if cells == [True, False] else (arrow, columns):
            assert list(groups("drug", {**DATA, "visits": made}, keys={"drug": given}).values()) == [30, 30]


def test_products_of_given_keys() -> None:
    found = groups("ward, drug", keys={"ward": ["a", "c"], "drug": ["x", "w"]})
    assert found == {("a", "x"): 10, ("a", "w"): 0, ("c", "x"): 0, ("c", "w"): 0}
    with pytest.raises(QueryError, match="more than 1000000 combinations"):
        product([tuple(range(1001)), tuple(range(1001))])


def test_a_public_table_gives_its_own_keys_sorted() -> None:
    source = "visits JOIN drugs USING (drug)"
    assert groups("drugs.drug", source=source, keys=None, delta=0) == {"w": 0, "x": 20, "y": 20}
    assert groups("kind", source=source) == {"pill": 20, "drop": 20}
    assert groups("size", source=source, delta=0)[2] == 20


def test_chosen_groups_are_sorted_by_themselves() -> None:
    """In an order of keys, not in the one that the engine found them in."""
    many = 900
    orders = (["z", "a", "m"] * many, ["m", "z", "a"] * many)
    for drugs in orders:
        data = {"visits": {name: (each * 45)[: 3 * many] for name, each in VISITS.items()}, "drugs": PUBLIC}
        data["visits"] |= {"patient": list(range(3 * many)), "drug": drugs}
        assert list(groups("drug", data, delta=1e-6)) == ["a", "m", "z"]
    arrow = pa.table({**data["visits"], "drug": [10, 9, -1] * many})
    assert list(groups("drug", {**data, "visits": arrow}, delta=1e-6)) == [-1, 9, 10]


def test_small_groups_stay_out_and_null_is_none() -> None:
    many = 600
    data = {"visits": {name: (each * 30)[:many] for name, each in VISITS.items()}, "drugs": PUBLIC}
    data["visits"] |= {"patient": list(range(many)), "drug": ["a"] * 500 + [None] * 90 + ["rare"] * 10}
    assert groups("drug", data, delta=1e-6) == {"a": 500}


def test_a_selection_is_one_for_all_keys() -> None:
    """Where one key is private, combinations are chosen, also of known ones."""
    many = 1200
    data = {"visits": {name: (each * 30)[:many] for name, each in VISITS.items()}, "drugs": PUBLIC}
    data["visits"] |= {
        "patient": list(range(many)),
        "drug": (["x"] * 600 + ["y"] * 600),
        "ward": ["a"] * 600 + ["b"] * 600,
    }
    assert groups("ward, drug", data, delta=1e-6) == {("a", "x"): 600, ("b", "y"): 600}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"nothing": [1]}, "keys names 'nothing', which is no group of the query: name what it groups by, 'drug'"),
        ({"drug": []}, "a list of different values, or 'select'"),
        ({"drug": ["a", "a"]}, "a list of different values, or 'select'"),
        ({"drug": [float("nan")]}, "texts, numbers, dates or truth values"),
        ({"drug": [("a",)]}, "texts, numbers, dates or truth values"),
        ({"drug": 5}, "a list of different values, or 'select'"),
        ({"drug": "chosen"}, "a list of different values, or 'select'"),
        (["drug"], "groups by column"),
    ],
)
def test_keys_are_refused_by_name(keys: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        plan("drug", keys=keys)


def test_a_long_list_is_as_good_as_a_short_one() -> None:
    for values in ([f"w{i}" for i in range(200)] + ["x"], [*range(100, 300), 12]):
        found = groups("drug", keys={"drug": values})
        assert len(found) == 201 and found[values[-1]] == 20 and sum(found.values()) == 20
    odd = [f"it's {i}" for i in range(100)] + ["a\x1fb", "x"]
    data = {**DATA, "visits": {**VISITS, "drug": ["it's 7", "a\x1fb", "x"] * 20}}
    found = groups("drug", data, keys={"drug": odd})
    assert (found["it's 7"], found["a\x1fb"], found["x"]) == (20, 20, 20)


def test_labels_tell_equal_keys_and_orders_are_total() -> None:
    assert label(12) == label("12") == label(12.0) != label(12.5)
    assert label(True) != label(1) and label(False) != label("False")
    mixed = [None, "b", 3, datetime.date(2024, 1, 1), 2.5, "a", True]
    assert sorted(mixed, key=ordering)[-1] is None
    backwards = mixed[::-1]
    assert sorted(mixed, key=ordering) == sorted(backwards, key=ordering)
