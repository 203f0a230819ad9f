"""The public description: what it refuses, how it prints and survives JSON, and the rows it makes up."""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import record
from sfumato.errors import ArgumentError, PlanError, RecordError
from sfumato.schema import Column, Schema, Table, category, flag, key, real, whole

timeless = settings(deadline=None)

PATIENTS = Schema.of(
    patient=key(),
    age=real(0, 120),
    visits=whole(0, 20, nulls=0),
    ward=category(["north", "south"], nulls="south", constant=True),
    smoker=flag(nulls=False),
    unit="patient",
    rows=1000,
)


def words(seed: int = 1) -> Any:
    """A stream of 64-bit words for tests (splitmix64)."""
    state = seed

    def more(count: int) -> Any:
        nonlocal state
        out = []
        for _ in range(count):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = state
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
            out.append(z ^ (z >> 31))
        return np.array(out, dtype=np.uint64)

    return more


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: real(1, 0), "lower"),
        (lambda: real(0, 0), "lower"),
        (lambda: real(math.nan, 1), "lower"),
        (lambda: real(0, math.inf), "upper"),
        (lambda: real("0", 1), "lower"),
        (lambda: real(0, True), "upper"),
        (lambda: real(1e-320, 1), "lower"),
        (lambda: real(None, 1), "lower"),
        (lambda: whole(0, 1.5), "upper"),
        (lambda: whole(0.5, 2), "lower"),
        (lambda: whole(0, 2**63), "upper"),
        (lambda: whole(-(2**63) - 1, 0), "lower"),
        (lambda: real(0, 1, nulls=2), "nulls"),
        (lambda: real(0, 1, nulls="dropped"), "nulls"),
        (lambda: real(0, 1, nulls=None), "nulls"),
        (lambda: real(0, 1, nulls=math.nan), "nulls"),
        (lambda: real(0, 1, nulls=True), "nulls"),
        (lambda: whole(0, 5, nulls=2.5), "nulls"),
        (lambda: category(["a"], nulls="b"), "nulls"),
        (lambda: category([1, 2], nulls=True), "nulls"),
        (lambda: category([]), "categories"),
        (lambda: category(["a", "a"]), "categories"),
        (lambda: category(["a", 1]), "categories"),
        (lambda: category("ab"), "categories"),
        (lambda: category([0.5]), "categories"),
        (lambda: flag(nulls=1), "nulls"),
        (lambda: flag(constant=1), "constant"),  # type: ignore[arg-type]
        (lambda: Column("key", nulls=0), "nulls"),
        (lambda: Column("key", constant=True), "constant"),
        (lambda: Column("flag", lower=Fraction(0)), "lower"),
        (lambda: Column("flag", upper=Fraction(0)), "upper"),
        (lambda: Column("key", categories=("a",)), "categories"),
        (lambda: Column("real", Fraction(0), Fraction(1), ("a",)), "categories"),
        (lambda: Column("real", Fraction(0), Fraction(1), np.zeros(2)), "categories"),  # type: ignore[arg-type]
        (lambda: Column("text"), "type"),  # type: ignore[arg-type]
        (lambda: Table({}), "columns"),
        (lambda: Table([("a", flag())]), "columns"),  # type: ignore[arg-type]
        (lambda: Table({"a": 5}), "a"),  # type: ignore[dict-item]
        (lambda: Table({"": flag()}), "the name of a column"),
        (lambda: Table({"a": flag()}, name=""), "name"),
        (lambda: Table({"a": flag()}, private=1), "private"),  # type: ignore[arg-type]
        (lambda: Table({"a": flag()}, rows=-1), "rows"),
        (lambda: Table({"a": flag()}, rows=1.5), "rows"),  # type: ignore[arg-type]
        (lambda: Table({"a": flag()}, unit="user"), "unit"),
        (lambda: Table({"a": flag()}, unit=["a"]), "unit"),  # type: ignore[arg-type]
        (lambda: Table({"a": flag()}, unit="a"), "unit"),
        (lambda: Table({"a": whole(0, 9)}, unit="a"), "unit"),
        (lambda: Table({"a": category(["xy"], nulls="xy")}, unit="a"), "unit"),
        (lambda: Table({"a": key()}, unit="a", private=False), "unit"),
        (lambda: Schema({}), "tables"),
        (lambda: Schema(Table({"a": flag()})), "tables"),  # type: ignore[arg-type]
        (lambda: Schema({"t": flag()}), "t"),  # type: ignore[dict-item]
        (lambda: Schema({"\n": Table({"a": flag()})}), "the name of a table"),
        (lambda: Schema.of(age=5), "age"),  # type: ignore[arg-type]
        (lambda: Schema.of({"age": flag()}, age=flag()), "columns"),
        (lambda: Schema.of(), "columns"),
    ],
)
def test_a_bad_argument_is_refused_by_name(make: Any, named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        make()
    assert str(caught.value).startswith(f"{named} = ")


def test_what_is_stored_is_exact() -> None:
    column = real(0.1, Decimal("0.3"), nulls=0.2)
    assert (column.lower, column.upper, column.nulls) == (Fraction(1, 10), Fraction(3, 10), Fraction(1, 5))
    assert whole(np.int64(0), 5.0, nulls=np.int32(3)).nulls == 3
    assert category(np.array([3, 1])).categories == (3, 1)
    assert whole(-(2**63), 2**63 - 1).interval == (-(2**63), 2**63 - 1)
    with pytest.raises(PlanError, match="no bounds"):
        _ = flag().interval


def test_a_category_called_drop_is_not_a_stand_in() -> None:
    assert category(["drop", "keep"]).drops_nulls
    assert not category(["drop", "keep"], nulls="keep").drops_nulls


def test_columns_print_in_words() -> None:
    assert str(real(0, 120)) == "real in [0, 120], NULLs dropped"
    assert str(real(0.1, Fraction(1, 3), nulls=0.25)) == "real in [0.1, 1/3], NULLs read as 0.25"
    assert str(category(["a", "b"], nulls="b", constant=True)) == (
        "category of 2: 'a', 'b', NULLs read as 'b', constant per unit"
    )
    assert str(category(range(9))) == "category of 9: 0, 1, 2, 3, 4, ..., NULLs dropped"
    assert str(flag()) == "flag, NULLs dropped"
    assert str(real(-1e100, 1e100)) == "real in [-1e+100, 1e+100], NULLs dropped"


def test_tables_and_schemas_print_in_words() -> None:
    assert str(PATIENTS).splitlines()[:3] == [
        "data (private, unit patient, 1000 rows)",
        "  patient: key, NULLs dropped",
        "  age: real in [0, 120], NULLs dropped",
    ]
    assert str(Table({"a": flag()}, private=False)).startswith("data (public)\n")
    assert str(Table({"a": flag()})).startswith("data (private, each row is a unit)\n")
    page = Schema.of({"a<b": category(["<i>"])})._repr_html_()
    assert "a&lt;b" in page and "<i>" not in page and page.count("<tr>") == 2


bounds = st.fractions(-1000, 1000, max_denominator=50)
categories = st.one_of(
    st.lists(st.text('ab"\\ é\n\x00😀', max_size=5), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(), min_size=1, max_size=4, unique=True),
    st.lists(st.booleans(), min_size=1, max_size=2, unique=True),
)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    kind = draw(st.sampled_from(["real", "whole", "category", "flag", "key"]))
    constant, stand_in = draw(st.booleans()), draw(st.booleans())
    if kind == "real":
        low, high = sorted(draw(st.lists(bounds, min_size=2, max_size=2, unique=True)))
        return real(low, high, nulls=draw(st.fractions(low, high)) if stand_in else "drop", constant=constant)
    if kind == "whole":
        low_, high_ = sorted(draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2, unique=True)))
        return whole(low_, high_, nulls=draw(st.integers(low_, high_)) if stand_in else "drop", constant=constant)
    if kind == "category":
        values = draw(categories)
        return category(values, nulls=draw(st.sampled_from(values)) if stand_in else "drop", constant=constant)
    return flag(nulls=draw(st.booleans()) if stand_in else "drop", constant=constant) if kind == "flag" else key()


names = st.text("abcdefg _é", min_size=1, max_size=6).filter(str.strip)


@timeless
@given(st.dictionaries(names, columns(), min_size=1, max_size=4), st.one_of(st.none(), st.integers(0, 10**6)))
def test_a_schema_survives_json(described: dict[str, Column], rows: int | None) -> None:
    fit = [name for name, column in described.items() if column.type in ("key", "category") and column.drops_nulls]
    private = Table(described, unit=fit[0] if fit else None, rows=rows)
    schema = Schema({"people": private, "places": Table(described, private=False)})
    back = record.parse(record.canonical(schema), Schema)
    assert back == schema and hash(back) == hash(schema)
    assert record.digest(back) == record.digest(schema)
    assert back.table().name == "people"


def test_stored_json_is_validated_again() -> None:
    data = record.encode(Table({"age": real(0, 120)}))
    data["unit"] = "user"
    with pytest.raises(RecordError, match="unit"):
        record.decode(data)


def test_a_table_is_frozen_and_order_counts() -> None:
    given_columns = {"a": flag(), "b": key()}
    table = Table(given_columns)
    given_columns["c"] = flag()
    assert list(table.columns) == ["a", "b"] and "c" not in table.columns
    with pytest.raises(TypeError):
        table.columns["c"] = flag()  # type: ignore[index]
    turned = Table({"b": key(), "a": flag()})
    assert turned != table and record.digest(turned) != record.digest(table)
    assert copy.deepcopy(table) == table and repr(table) == repr(copy.deepcopy(table))


def test_looking_up_tables_and_columns() -> None:
    assert PATIENTS.table() is PATIENTS.table("data")
    assert PATIENTS.table().column("age") == real(0, 120)
    with pytest.raises(PlanError, match="no column 'agee': its columns are 'patient', 'age'"):
        PATIENTS.table().column("agee")
    with pytest.raises(PlanError, match="no table 'visits': its tables are 'data'"):
        PATIENTS.table("visits")
    table = Table({"a": flag()})
    with pytest.raises(PlanError, match="2 private tables: name the one you mean, out of 'x', 'y'"):
        Schema({"x": table, "y": table}).table()
    with pytest.raises(PlanError, match="0 private tables"):
        Schema({"x": Table({"a": flag()}, private=False)}).table()
    assert Schema.of({"rows": flag(), "unit": key()}, unit="unit").table().unit == "unit"


def test_made_up_rows_obey_the_schema() -> None:
    table = Table(
        {
            "user": key(),
            "x": real(-1, 0.1),
            "n": whole(-(2**63), 2**63 - 1),
            "m": whole(2, 4, constant=True),
            "ward": category(["a", "b", "c"], constant=True),
            "on": flag(),
            "device": key(),
        },
        unit="user",
    )
    made = table.make_up(300, words(), awkward=False)
    assert list(made) == list(table.columns) and {len(v) for v in made.values()} == {300}
    assert len(np.unique(made["user"])) == 100 and len(np.unique(made["device"])) < 110
    assert made["x"].min() >= -1 and made["x"].max() <= 0.1 and np.ptp(made["x"]) > 1
    assert set(made["m"]) == {2, 3, 4} and set(made["ward"]) == {"a", "b", "c"} and set(made["on"]) == {True, False}
    assert made["n"].min() < -(2**60) and made["n"].max() > 2**60
    for column in ("m", "ward"):
        assert len(set(zip(made["user"], made[column], strict=True))) == 100


def test_awkward_rows_are_mixed_in() -> None:
    table = PATIENTS.table()
    made = table.make_up(200, words())
    ages, visits, wards = made["age"].tolist(), made["visits"].tolist(), made["ward"].tolist()
    assert {None, math.inf, -math.inf, 0.0, 120.0, -120.0, 240.0, "n/a"} <= set(ages)
    assert any(a != a for a in ages) and any(str(a) == "-0.0" for a in ages)
    assert {None, 0, 20, -1, 21, 2**64, 0.5} <= set(visits)
    assert {None, "unknown", "north", "south"} <= set(wards) and {None, 2, "maybe"} <= set(made["smoker"].tolist())
    assert None in made["patient"].tolist()
    clean = [a for a in ages if isinstance(a, float) and 0 <= a <= 120]
    assert len(clean) > 150
    # A declared constant stays constant, awkward values and all.
    known = [(p, repr(w)) for p, w in zip(made["patient"], made["ward"], strict=True) if p is not None and p == p]
    assert len(set(known)) == len({p for p, _ in known})


def test_awkward_categories_are_never_real_ones() -> None:
    made = Table({"c": category(["unknown", "x"]), "i": category([7, 9])}).make_up(60, words())
    assert "unknown?" in made["c"].tolist() and 10 in made["i"].tolist()


def test_a_category_may_name_the_unit() -> None:
    table = Table({"school": category(["a", "b"]), "x": whole(0, 9, constant=True)}, unit="school")
    made = table.make_up(30, words(), awkward=False)
    assert len(set(zip(made["school"], made["x"], strict=True))) == 2


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 50])
@pytest.mark.parametrize("awkward", [True, False])
def test_the_same_words_make_up_the_same_rows(count: int, awkward: bool) -> None:
    table = PATIENTS.table()
    first, again, other = (table.make_up(count, words(seed), awkward=awkward) for seed in (5, 5, 6))
    assert repr({n: v.tolist() for n, v in first.items()}) == repr({n: v.tolist() for n, v in again.items()})
    assert all(len(v) == count for v in first.values())
    if count == 50:
        assert first["age"].tolist() != other["age"].tolist()


@timeless
@given(st.dictionaries(names, columns(), min_size=1, max_size=4), st.integers(0, 20))
def test_any_schema_can_make_up_rows(described: dict[str, Column], count: int) -> None:
    made = Table(described).make_up(count, words())
    assert all(len(values) == count for values in made.values())


def test_a_bad_count_is_refused() -> None:
    with pytest.raises(ArgumentError, match="count = -1"):
        PATIENTS.table().make_up(-1, words())
