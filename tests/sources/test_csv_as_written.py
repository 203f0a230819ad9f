"""Cells as people write them: blanks around them, decimal commas, signs between thousands, dates of any form."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ArgumentError, PlanError
from sfumato.schema import DROP, Column, Table, category, date, flag, key, moment, real, whole
from sfumato.sources import Csv, connect
from tests.sources.odd_tables import MEANING, TEXT_KINDS, TEXTS, run, text_columns, view

WIDE = 10**9


def _cells(folder: Path, column: Column, texts: list[str], **how: Any) -> list[Any]:
    """What a column reads, in the order of the texts, which hold no delimiter."""
    path = folder / "cells.csv"
    lines = (f"{number}|{text}\n" for number, text in enumerate(texts))
    path.write_text("n|x\n" + "".join(lines), encoding="utf-8", newline="")
    table = Table({"n": whole(0, 10**6), "x": column})
    return [row["x"] for row in view(table, Csv(path, delimiter="|", quote="", **how))]


def test_adult_as_it_comes(tmp_path: Path) -> None:
    """A blank after each comma, and no names: without trim no category is one of those listed."""
    (tmp_path / "adult.csv").write_text("39, State-gov, 2174, <=50K\n50, ?, 0, >50K.\n\n")
    table = Table(
        {
            "age": whole(0, 120),
            "work": category(["State-gov", "Private"]),
            "gain": real(0, 10**5),
            "income": category(["<=50K", ">50K", "<=50K.", ">50K."]),
        }
    )
    how: dict[str, Any] = {"header": False, "null": "?"}
    before = view(table, Csv(tmp_path / "adult.csv", **how))
    assert [row["work"] for row in before] == [None, None] and [row["income"] for row in before] == [None, None]
    assert view(table, Csv(tmp_path / "adult.csv", trim=True, **how)) == [
        {"age": 39, "work": "State-gov", "gain": 2174.0, "income": "<=50K"},
        {"age": 50, "work": None, "gain": 0.0, "income": ">50K."},
    ]


def test_trimmed_names_keys_quotes_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('who, "town, or city" ,x\n 12 , "a, b" ,1\n12,NA , 2\n\t12\t,\u00a0c,\n', encoding="utf-8")
    table = Table({"who": key(), "town, or city": key(), "x": real(0, 9)}, unit="who")
    source = Csv(path, trim=True, null="NA")
    source.compare(table)
    assert sorted(map(str, view(table, source))) == [
        "{'who': '12', 'town, or city': '\\xa0c', 'x': None}",
        "{'who': '12', 'town, or city': 'a, b', 'x': 1.0}",
        "{'who': '12', 'town, or city': None, 'x': 2.0}",
    ]
    with pytest.raises(PlanError, match="no column"):  # the names of the header have blanks of their own
        Csv(path).compare(table)


@pytest.mark.parametrize(
    ("how", "pairs"),
    [
        ({"decimal": ","}, {"1,5": 1.5, "1.5": None, "-,5": -0.5, "7": 7, "1,2,3": None, "1e3": 1000, "": None}),
        ({"decimal": ",", "thousands": "."}, {"1.234,5": 1234.5, "1.234": 1234, "1.5": None, "12.34": None,
                                              "1234,5": 1234.5, "1.2345": None, "1.234.567": 1234567,
                                              "1234.567": None, ".123": None}),
        ({"thousands": ","}, {"1,234.5": 1234.5, "1,5": None, "1,234,56": None, "+1,234e2": 123400, "12.5": 12.5}),
        ({"thousands": " "}, {"1 234.5": 1234.5, "1\u00a0234": 1234, "1\u202f234": 1234, " 7 ": 7, "1 2": None}),
        ({"thousands": "'"}, {"1'234.5": 1234.5, "1'2": None, "'123": None}),
    ],
)  # fmt: skip
def test_numbers(tmp_path: Path, how: dict[str, str], pairs: dict[str, float | None]) -> None:
    assert _cells(tmp_path, real(-WIDE, WIDE), list(pairs), **how) == list(pairs.values())
    whole_numbers = {text: None if number is None else round(number) for text, number in pairs.items()}
    assert _cells(tmp_path, whole(-WIDE, WIDE), list(pairs), **how) == list(whole_numbers.values())


def test_exact_digits_and_numbers_that_are_categories(tmp_path: Path) -> None:
    how = {"decimal": ",", "thousands": "."}
    big = whole(-(2**63), 2**63 - 1)
    assert _cells(tmp_path, big, ["9.007.199.254.740.993", "9007199254740993"], **how) == [2**53 + 1] * 2
    assert _cells(tmp_path, category([1000, 7]), ["1.000", "7,0", "7,5", "1000"], **how) == [1000, 7, None, 1000]
    assert _cells(tmp_path, key(), ["1.000", "7,0"], **how) == ["1.000", "7,0"], "names are no numbers"
    assert _cells(tmp_path, category(["1,5"]), ["1,5", "1.5"], **how) == ["1,5", None]


@pytest.mark.parametrize(
    ("forms", "pairs"),
    [
        ("%d.%m.%Y", {"31.12.2020": "2020-12-31", "1.2.2020": "2020-02-01", "1.2.20": None, "31.2.2020": None,
                      "2020-12-31": None, "epoch": None, "infinity": None, "1.2.2020 10:00": None,
                      " 1.2.2020 ": "2020-02-01", "1.2.0000": None}),
        (("%d.%m.%Y", "%Y-%m-%d"), {"31.12.2020": "2020-12-31", "2020-12-31": "2020-12-31"}),
        (("%d/%m/%Y", "%m/%d/%Y"), {"2/1/2020": "2020-01-02", "1/31/2020": "2020-01-31"}),
        ("%y%m%d", {"200131": "2020-01-31", "690131": "1969-01-31", "2001311": None}),
        ("%b %d, %Y", {"Jan 3, 2020": "2020-01-03", "JAN 3, 2020": "2020-01-03", "Janu 3, 2020": None}),
        ({"x": "%Y, month %m"}, {"2020, month 2": "2020-02-01", "2020, month 13": None}),
    ],
)  # fmt: skip
def test_dates(tmp_path: Path, forms: Any, pairs: dict[str, str | None]) -> None:
    days = _cells(tmp_path, date("1900-01-01", "2100-01-01"), list(pairs), dates=forms)
    assert [None if day is None else str(day) for day in days] == list(pairs.values())


def test_moments_and_other_columns(tmp_path: Path) -> None:
    seen = moment("2000-01-01", "2030-12-31")
    texts = ["1.2.2020 23:59:01.25", "12/31/20 11:05 PM", "2020-01-01 08:00:00"]
    forms = ["%d.%m.%Y %H:%M:%S.%f", "%m/%d/%y %I:%M %p"]
    assert _cells(tmp_path, seen, texts, dates=forms) == [
        dt.datetime(2020, 2, 1, 23, 59, 1, 250_000),
        dt.datetime(2020, 12, 31, 23, 5),
        None,
    ]
    assert _cells(tmp_path, seen, texts, dates={})[2] == dt.datetime(2020, 1, 1, 8), "no form, no change"
    assert _cells(tmp_path, real(0, 9), ["2020.5"], dates=forms) == [9.0]


def _number(text: str, decimal: str, thousands: str) -> float | None:
    """What a number is, said once more and otherwise."""
    bare, sign = text.strip(" \t"), re.escape(thousands)
    exponent = r"(?:[eE][+-]?\d+)?"
    plain = rf"[+-]?(?:\d+{re.escape(decimal)}?\d*|{re.escape(decimal)}\d+){exponent}"
    grouped = rf"[+-]?\d{{1,3}}(?:{sign}\d{{3}})+(?:{re.escape(decimal)}\d*)?{exponent}"
    if thousands and re.fullmatch(grouped, bare):
        bare = bare.replace(thousands, "")
    elif not re.fullmatch(plain, bare):
        return None
    return min(max(float(bare.replace(decimal, ".")), -WIDE), WIDE)


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("thousands", ["", ".", ",", "'", " "])
def test_generated_numbers(tmp_path: Path, decimal: str, thousands: str) -> None:
    if decimal == thousands:
        return
    draw = random.Random(f"{decimal}{thousands}")
    texts = ["".join(draw.choices("0123456789.,' -e", [3] * 10 + [2, 2, 1, 1, 1, 1], k=draw.randint(1, 9)))
             for _ in range(2000)]  # fmt: skip
    for _ in range(500):
        sign, first, more = draw.choice(["", "-", "+"]), draw.randint(1, 999), draw.randint(0, 10 ** draw.randint(2, 4))
        texts.append(f"{sign}{first}{thousands}{more:03}{draw.choice(['', decimal, decimal + '5'])}")
    expected = [_number(text, decimal, thousands) for text in texts]
    found = _cells(tmp_path, real(-WIDE, WIDE), texts, decimal=decimal, thousands=thousands)
    # To the engine "+-5" is a number, as `reading` says.
    different = [
        (text, number, told)
        for text, number, told in zip(texts, found, expected, strict=True)
        if number != told and not re.search("[+-]{2}", text)
    ]
    assert different == [] and sum(number is not None for number in expected) > 500


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y%m%d", "%m/%d/%y", "%Y-%m-%d %H:%M:%S", "%d %b %Y"])
def test_generated_dates(tmp_path: Path, form: str) -> None:
    draw = random.Random(form)
    days = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=draw.randrange(60 * 365 * 86_400)) for _ in range(300)]
    texts = [day.strftime(form) for day in days]
    for place in range(150):  # half of them with a sign that is off
        spot = draw.randrange(len(texts[place]))
        texts[place] = texts[place][:spot] + draw.choice("0123456789./-x ") + texts[place][spot + 1 :]
    found = _cells(tmp_path, moment("1900-01-01", "2100-01-01"), texts, dates=form)
    for text, moment_ in zip(texts, found, strict=True):
        try:
            expected = dt.datetime.strptime(text.strip(), form)
        except ValueError:
            expected = None
        if text.strip().count(" ") > form.count(" "):  # Python takes blanks where it finds them
            continue
        year = expected is not None and ("%Y" not in form or 1900 <= expected.year <= 2100)
        if expected is None or year:
            assert moment_ == expected, text


@pytest.mark.parametrize(
    "how",
    [
        {"trim": "yes"},
        {"decimal": ""},
        {"decimal": "'"},
        {"thousands": "."},
        {"thousands": "1"},
        {"thousands": "--"},
        {"thousands": None},
        {"dates": "dd.mm.yyyy"},
        {"dates": "%d.%m"},
        {"dates": "%Y-%Y"},
        {"dates": "%d.%m.%Y %z"},
        {"dates": "%Y, day %j"},
        {"dates": "%d.%m.%Y%"},
        {"dates": "%d.%m.%Y\n"},
        {"dates": 7},
        {"dates": {"x": ["%Y", None]}},
    ],
)
def test_odd_options_are_refused_before_anything_is_opened(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(how))):
        Csv("nowhere.csv", **how)


def test_dates_of_a_column_that_has_none_are_refused() -> None:
    table = Table({"born": date("1900-01-01", "2030-12-31"), "cost": real(0, 9)})
    Csv("nowhere.csv", dates={"born": "%d.%m.%Y"}).check(table)
    for name in ("cost", "birth"):
        with pytest.raises(PlanError, match=r"dates names .*name one of 'born'"):
            Csv("nowhere.csv", dates={name: "%d.%m.%Y"}).check(table)


# which cells cannot be read


def _flags(table: Table, source: Any) -> list[dict[str, Any]]:
    opened = connect({"people": (table, source)}, threads=1)
    try:
        return run(opened, "SELECT * FROM _flagged_people ORDER BY 1 NULLS LAST")
    finally:
        opened.close()


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_flags_tell_present_cells_that_mean_nothing(tmp_path: Path, kind: str) -> None:
    """Of every source of texts: a cell that is there and reads as NULL, or would, if nothing stood in for NULLs."""
    texts = text_columns()
    there = {name: dict(zip(texts["who"], cells, strict=True)) for name, cells in texts.items()}
    found = _flags(TEXTS, TEXT_KINDS[kind](tmp_path))
    assert [{name: row[name] for name in TEXTS.columns} for row in found] == MEANING
    for row in found:
        for name, column in TEXTS.columns.items():
            if name == "who":
                assert f"_unreadable {name}" not in row
                continue
            nothing = (
                row[name] is None if column.nulls == DROP else there[name][row["who"]] in ("NaN", "1,5", "perhaps")
            )
            assert row[f"_unreadable {name}"] == (bool(there[name][row["who"]]) and nothing), (row["who"], name)


def test_flags_of_empty_blank_and_null_cells(tmp_path: Path) -> None:
    table = Table({"n": whole(0, 9), "x": flag(), "y": category(["a"]), "_unreadable y": real(0, 1)})
    path = tmp_path / "t.csv"
    path.write_text("n,x,y,_unreadable y\n1,,,0\n2, ,?,0\n3,?, ?,0\n4,maybe,b,x\n5,yes,a,1\n")
    found = _flags(table, Csv(path, trim=True, null="?"))
    assert [row["_unreadable x"] for row in found] == [False, False, False, True, False]
    assert [row["_unreadable y"] for row in found] == [0.0, 0.0, 0.0, None, 1.0], "the table's own column"
    assert [row["_unreadable _unreadable y"] for row in found] == [False, False, False, True, False]
