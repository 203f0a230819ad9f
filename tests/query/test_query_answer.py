"""The answer as a table: values, error bars and notes, in every form that people read."""

from __future__ import annotations

import csv
import datetime
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sfumato.errors import ArgumentError
from sfumato.laws import RoundedGaussian, RoundedLaplace
from sfumato.query.released import formulas, images
from sfumato.query.released.answer import Answer, Output
from sfumato.query.released.figures import constant, measured
from sfumato.query.released.values import Lists, Truth, keys

DAY = datetime.date(2024, 3, 1)
SPREADS = {"n": (RoundedLaplace(10.0), 1.0), "s": (RoundedGaussian(100.0), 0.5)}
WIDTH = RoundedLaplace(10.0).half_width(0.05) + 0.5


def answer(rows: tuple[int, ...] = (2, 0, 1)) -> Answer:
    n, s = measured("n", [1000.0, -3.0, 50_000.25]), measured("s", [2e4, 100.0, 1e6])
    return Answer(
        [
            Output("ward", keys(["<b>a</b>", None, "c"], "text")),
            Output("n", images.clip(n, 0.0)),
            Output("mean", formulas.mean(n, s, 0.0, 0.0, 100.0)),
            Output("bins", Lists((n, n * constant(2.0, 3)))),
            Output("day", keys([DAY, DAY, None], "date")),
            Output("big", Truth(np.array([True, False, False]), np.array([True, True, False]))),
            Output("middle", constant([0.0, 1.0, np.nan], 3), lambda days: DAY + datetime.timedelta(days=days)),
        ],
        SPREADS,
        rows,
        ["1 group may have been suppressed", "values above 100 <were> clipped"],
    )


def test_columns_rows_and_values() -> None:
    found = answer()
    assert found.columns == ("ward", "n", "mean", "bins", "day", "big", "middle")
    assert found.numbers == ("n", "mean", "bins", "middle")
    assert len(found) == 3
    assert found["ward"] == ["c", "<b>a</b>", None]
    assert found["n"] == [50_000.25, 1000.0, 0.0]
    assert found.raw["n"] == [50_000.25, 1000.0, -3.0]
    assert found["mean"][:2] == [pytest.approx(1e6 / 50_000.25), 20.0]
    assert found["bins"] == [[50_000.25, 100_000.5], [1000.0, 2000.0], [-3.0, -6.0]]
    assert found["day"] == [None, DAY, DAY]
    assert found["big"] == [None, True, False]
    assert found["middle"] == [None, DAY, DAY + datetime.timedelta(days=1)]
    assert found.rows[1]["n"] == 1000.0
    assert list(found.rows[0]) == list(found.columns)
    assert all(type(each) is float for each in found["n"])


def test_error_bars_and_doubts() -> None:
    found = answer()
    assert found.std["n"] == [pytest.approx(RoundedLaplace(10.0).std)] * 3
    assert found.std["bins"][0] == [pytest.approx(RoundedLaplace(10.0).std * k) for k in (1, 2)]
    assert found.interval("n")[1] == (1000 - WIDTH, 1000 + WIDTH)
    assert found.interval("n")[2] == (0.0, WIDTH)
    assert found.interval("n", alpha=0.5)[1][0] > 1000 - WIDTH
    assert found.interval("bins")[1] == [(1000 - WIDTH, 1000 + WIDTH), (2000 - 2 * WIDTH, 2000 + 2 * WIDTH)]
    assert found.half_width("n")[:2] == [WIDTH, WIDTH]
    assert found.unreliable["mean"] == [False, False, True]
    assert found.interval("mean")[2] == (0.0, 100.0)
    assert found.interval("middle")[1] == (DAY, DAY)
    assert found.exact == {"n": True, "mean": False, "bins": True, "middle": True}
    with pytest.raises(ArgumentError, match="alpha"):
        found.interval("n", 2.0)
    with pytest.raises(ArgumentError, match="one of 'ward'"):
        found["m"]
    with pytest.raises(ArgumentError, match="a column of numbers"):
        found.interval("ward")


def test_open_intervals_are_infinite_and_nulls_have_none() -> None:
    n = measured("n", [2.0, 0.0])
    found = Answer([Output("r", constant(1.0, 2) / n)], SPREADS, [0, 1])
    assert found["r"] == [0.5, None]
    assert found.interval("r") == [(-np.inf, np.inf), (None, None)]
    assert found.unreliable["r"] == [True, True]
    assert "0.5 ± ∞ ?" in str(found)
    assert "NULL ?" in str(found)


def test_text_is_aligned_and_short() -> None:
    lines = str(answer()).splitlines()
    assert lines[0].split() == ["ward", "n", "mean", "bins", "day", "big", "middle"]
    assert "50,000.2 ± 30.5" in lines[1]
    assert " 1,000.0 ± 30.5" in lines[2]
    assert "0.0 ± 30.5" in lines[3]
    assert {line.index(" ± ") for line in lines[1:4]} == {lines[1].index(" ± ")}
    assert lines[0].index("n ") + 1 == lines[1].index(" ±")
    assert "NULL" in lines[3]
    assert "?" in lines[3]
    assert lines[4] == "(± at 95 %; ? = hidden by noise or by what limits cut, do not rely on it)"
    assert lines[5:] == ["- 1 group may have been suppressed", "- values above 100 <were> clipped"]
    assert repr(answer()) == str(answer())


def test_long_tables_are_cut_and_odd_keys_stay_on_their_line() -> None:
    odd = keys([f"k{i}" for i in range(29)] + ["two\nlines"], "text")
    found = Answer([Output("k", odd), Output("n", measured("n", np.arange(30.0)))], SPREADS, [29, *range(29)])
    lines = str(found).splitlines()
    assert len(lines) == 1 + 20 + 2
    assert lines[-2] == "... and 10 more"
    assert lines[1].startswith("two\\nlines")
    assert str(Answer([Output("k", keys([], "text"))], {}, [])) == "k"


def test_dates_are_off_by_days_and_moments_by_hours() -> None:
    n = measured("n", [0.0])
    moments = n * constant(3.6e9, 1)
    dates = Output("d", n, lambda days: DAY + datetime.timedelta(days=round(days)))
    times = Output("t", moments, lambda us: datetime.datetime(2024, 3, 1) + datetime.timedelta(microseconds=us))
    found = Answer([dates, times], SPREADS, [0])
    assert "2024-03-01 ± 30.5 days" in str(found)
    assert "2024-03-01 00:00:00 ± 1 day, 6:30:00" in str(found)
    assert found.interval("d")[0][0] == DAY + datetime.timedelta(days=round(-WIDTH))


def test_html_is_escaped() -> None:
    shown = answer()._repr_html_()
    assert "<b>" not in shown
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "&lt;were&gt;" in shown
    assert shown.count("<tr>") == 4


ENDINGS = ("", "_std", "_low", "_high", "_bias")
NAMES = [
    "ward",
    *(f"{name}{end}" for name in ("n", "mean", "bins") for end in ENDINGS),
    "day",
    "big",
    *(f"middle{end}" for end in ENDINGS),
]


def test_arrow_pandas_and_polars() -> None:
    table = answer().to_arrow()
    assert table.column_names == NAMES
    assert str(table.schema.field("ward").type) == "string"
    assert str(table.schema.field("day").type) == "date32[day]"
    assert str(table.schema.field("big").type) == "bool"
    assert {str(table.schema.field(f"n{end}").type) for end in ENDINGS} == {"double"}
    assert table["n_low"].to_pylist()[1] == 1000 - WIDTH
    assert table["middle"].to_pylist()[1] == DAY
    frame = answer().to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == NAMES
    assert frame["n"].tolist() == answer()["n"]
    other = answer().to_polars()
    assert isinstance(other, pl.DataFrame)
    assert other.columns == NAMES
    assert other["n_high"].to_list()[1] == 1000 + WIDTH
    empty = answer(()).to_arrow()
    assert empty.num_rows == 0
    assert empty.column_names == NAMES


def test_csv(tmp_path: Path) -> None:
    text = answer().to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == NAMES
    assert rows[2]["ward"] == ""
    assert float(rows[1]["n_std"]) == pytest.approx(RoundedLaplace(10.0).std)
    assert json.loads(rows[1]["bins"]) == [1000.0, 2000.0]
    assert answer().to_csv(tmp_path / "a.csv") is None
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text


def test_names_never_clash() -> None:
    n = measured("n", [1.0])
    found = Answer([Output("n", n), Output("n", n), Output("n_std", n)], SPREADS, [0])
    assert found.columns == ("n", "n_2", "n_std")
    assert len(set(found.table())) == 15


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ArgumentError, match="pip install polars"):
        answer().to_polars()


def test_no_table_library_is_imported_at_first() -> None:
    heavy = ("pyarrow", "pandas", "polars", "duckdb")
    code = f"import sys, sfumato.query.released.answer; print([each for each in {heavy} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
