"""Random expressions over awkward cells: none raises, none is NaN or infinite, all lie where their kind says, and a row
alone gives what it gives among others."""

from __future__ import annotations

import datetime
import math
import struct
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sfumato.query.expressions.functions import numbers, operands
from sfumato.query.expressions.functions.operands import interval
from sfumato.query.expressions.scalars import translate
from sfumato.query.kinds import Kind, Typed
from sfumato.query.refusal import QueryError
from sfumato.query.relation import Relation, Scope
from sfumato.sources.duckdb import DUCKDB

HUGE = 1.7e308
NUMBERS = Kind("real", Fraction(-5), Fraction(10))
COLUMNS: dict[str, tuple[Kind, pa.DataType, list[Any]]] = {
    "r": (NUMBERS, pa.float64(), [-5.0, 10.0, 0.0, -0.0, 5e-324, -1e-310, 0.1, 2.5, -2.5, math.pi, None]),
    "big": (
        Kind("real", Fraction(-HUGE), Fraction(HUGE)),
        pa.float64(),
        [HUGE, -HUGE, 0.0, 1.0, -1e200, 2.0**53, None],
    ),
    "unit01": (
        Kind("real", Fraction(0), Fraction(1, 10)),
        pa.float64(),
        [0.0, 0.1, 1e-300, 0.05, 0.049999999999999996],
    ),
    "wild": (Kind("real"), pa.float64(), [HUGE, -HUGE, 5e-324, -0.0, 0.5, -1.5, 1e16, None]),
    "w": (Kind("whole", Fraction(0), Fraction(120)), pa.int64(), [0, 1, 7, 60, 119, 120, None]),
    "signed": (Kind("whole", Fraction(-9), Fraction(9)), pa.int64(), [-9, -1, 0, 1, 5, 9, None]),
    "int": (Kind("whole"), pa.int64(), [-(2**63), 2**63 - 1, 0, -1, 1, 10**18, -(10**18) - 5, None]),
    "count": (Kind("whole", Fraction(0)), pa.int64(), [0, 1, 2**63 - 1, 12]),
    "grade": (Kind("whole", Fraction(1), Fraction(5), values=(1, 3, 5)), pa.int64(), [1, 3, 5, None]),
    "f": (Kind("flag", values=(False, True)), pa.bool_(), [True, False, None]),
    "c": (Kind("text", values=("a", "B c", "")), pa.string(), ["a", "B c", "", None]),
    "s": (
        Kind("key"),
        pa.string(),
        [
            "",
            " ",
            "12",
            "-0.0",
            "1e400",
            "nan",
            "inf",
            "2020-02-30",
            "infinity",
            "290000-01-01",
            "%_\\",
            "ß İ ŉ",
            "x" * 70000,
            "👨\u200d👩\u200d👧 é",
            "9223372036854775808",
            "true",
            "2020-02-29 23:59:59.5",
            "a\x01b",
            None,
        ],
    ),
    "k": (Kind("key"), pa.int64(), [0, -(2**63), 12, None]),
    "d": (Kind("date"), pa.date32(), [datetime.date.min, datetime.date.max, datetime.date(2020, 2, 29), None]),
    "m": (
        Kind("moment"),
        pa.timestamp("us"),
        [datetime.datetime.min, datetime.datetime.max, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None],
    ),
}
ROWS = 57
SCOPE = Scope({"t": Relation(exp.select("*").from_("t"), {name: kind for name, (kind, _, _) in COLUMNS.items()}, True)})


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    # Steps prime to one another, so that odd cells of different columns meet.
    columns = {
        name: pa.array([cells[(row * (2 * place + 1) + row // 7) % len(cells)] for row in range(ROWS)], type_)
        for place, (name, (_, type_, cells)) in enumerate(COLUMNS.items())
    }
    made = pa.table({"i": list(range(ROWS)), **columns})
    engine = duckdb.connect(config={"threads": 1})
    engine.register("made", made)
    engine.execute("CREATE TABLE t AS SELECT * FROM made")
    for row in range(ROWS):
        engine.execute(f"CREATE TABLE t{row} AS SELECT * FROM t WHERE i = {row}")
    return engine


def names(*wanted: str) -> st.SearchStrategy[str]:
    return st.sampled_from([name for name, (kind, _, _) in COLUMNS.items() if kind.type in wanted])


CONSTANTS = ["0", "1", "-1", "2", "10", "0.1", "2.5", "1e300", "-1e-300", "9223372036854775807", "-9223372036854775808"]
PATTERNS = ["'a%'", "'%_'", "''", "'%%\\%'", "'é%'"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
PARTS = [*UNITS, "dow", "isodow", "doy", "epoch"]
DATES = ["DATE '2020-02-29'", "DATE '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"]


def formed(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda each: pattern.format(*each))


def of(*choices: str) -> st.SearchStrategy[str]:
    return st.sampled_from(choices)


def expressions(depth: int) -> dict[str, st.SearchStrategy[str]]:
    """SQL for a number, a condition, a text and a date, at most so deep."""
    if depth == 0:
        return {
            "number": names("real", "whole") | of(*CONSTANTS),
            "flag": names("flag") | of("TRUE", "NULL"),
            "text": names("text", "key") | of("'a'", "'12'", "''"),
            "date": names("date", "moment") | of(*DATES),
        }
    inner = expressions(depth - 1)
    n, f, s, d = inner["number"], inner["flag"], inner["text"], inner["date"]
    small = st.integers(-15, 15).map(str)
    numbers = [
        formed("({} {} {})", n, of("+", "-", "*", "/", "%", "//"), n),
        formed(
            "{}({})", of("ABS", "SIGN", "FLOOR", "CEIL", "TRUNC", "ROUND", "SQRT", "LN", "LOG", "LOG2", "EXP", "-"), n
        ),
        formed("ROUND({}, {})", n, small),
        formed("POWER({}, {})", n, n | of("2", "3", "0", "0.5", "-1")),
        formed("LOG({}, {})", of("2", "10", "0.5", "1.0001"), n),
        formed("MOD({}, {})", n, n),
        formed("{}({}, {}, {})", of("GREATEST", "LEAST", "COALESCE"), n, n, n),
        formed("NULLIF({}, {})", n, n),
        formed(
            "WIDTH_BUCKET({}, {}, {}, {})", n, of("0", "-1.5", "-1e300"), of("7", "0.3", "1e300"), of("1", "3", "998")
        ),
        formed("CASE WHEN {} THEN {} ELSE {} END", f, n, n),
        formed("CASE {} WHEN {} THEN {} END", n, n, n),
        formed("CAST({} AS {})", n | f | s, of("DOUBLE", "BIGINT", "INT", "TINYINT", "UINTEGER", "FLOAT")),
        formed("CAST({} AS {})", n | f | s, of("DECIMAL", "DECIMAL(4, 2)", "NUMERIC(15, 0)", "DECIMAL(38, 9)")),
        formed("LENGTH({})", s),
        formed("STRPOS({}, {})", s, s),
        formed("EXTRACT({} FROM {})", of(*PARTS), d),
        formed("DATE_DIFF('{}', {}, {})", of(*UNITS), d, d),
    ]
    flags = [
        formed("({} {} {})", n, of("=", "<>", "<", ">=", "IS DISTINCT FROM"), n),
        formed("({} {} {})", s, of("=", "<>", "IS NOT DISTINCT FROM"), s),
        formed("({} {} {})", d, of("=", "<", ">="), d),
        formed("({} {} {})", f, of("AND", "OR", "="), f),
        formed("NOT {}", f),
        formed("({} IS NULL)", n | f | s | d),
        formed("({} IS TRUE)", f),
        formed("({} BETWEEN {} AND {})", n, n, n),
        formed("({} IN ({}, {}, NULL))", n, n, n),
        formed("({} IN ({}, 12))", names("key"), s),
        formed("({} {} {})", s, of("LIKE", "NOT LIKE", "ILIKE"), of(*PATTERNS)),
        formed("{}({}, {})", of("STARTS_WITH", "ENDS_WITH", "CONTAINS"), s, s),
        formed("CAST({} AS BOOLEAN)", n | f | s),
        formed("IF({}, {}, {})", f, f, f),
    ]
    texts = [
        formed("{}({})", of("LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "REVERSE"), s),
        formed("SUBSTR({}, {}, {})", s, small, st.integers(0, 20).map(str)),
        formed("{}({}, {})", of("LEFT", "RIGHT"), s, st.integers(0, 20).map(str)),
        formed("REPLACE({}, {}, {})", s, of("'a'", "''", "'x'"), of("''", "'aaaa'", "'é'")),
        formed("({} || {})", s, s),
        formed("CONCAT({}, {}, {})", s, n, d),
        formed("CAST({} AS VARCHAR)", n | f | s | d),
        formed("COALESCE({}, {})", s, s),
        formed("CASE WHEN {} THEN {} END", f, s),
        formed("{}({})", of("MONTHNAME", "DAYNAME"), d),
        formed("STRFTIME({}, {})", d, of("'%Y-%m'", "'%d.%m. %H:%M'", "'%j %%'")),
    ]
    dates = [
        formed("({} {} INTERVAL {} {})", d, of("+", "-"), st.integers(0, 3000).map(str), of(*UNITS)),
        formed("({} + {})", names("date"), names("whole")),
        formed("DATE_TRUNC('{}', {})", of(*UNITS), d),
        formed("LAST_DAY({})", d),
        formed("CAST({} AS {})", s | d, of("DATE", "TIMESTAMP", "TIMESTAMPTZ")),
        formed("({} AT TIME ZONE 'UTC')", d),
        formed("({} AT TIME ZONE 'UTC' AT TIME ZONE '{}')", names("date"), of("Asia/Kolkata", "America/Santiago")),
        formed("COALESCE({}, {})", d, d),
    ]
    return {
        "number": n | st.one_of(numbers),
        "flag": f | st.one_of(flags),
        "text": s | st.one_of(texts),
        "date": d | st.one_of(dates),
    }


GRAMMAR = expressions(3)
ANY = st.one_of(*GRAMMAR.values())


def bits(value: Any) -> Any:
    return struct.pack("d", value) if isinstance(value, float) else value


def check(found: Typed, value: Any) -> None:
    kind = found.kind
    if value is None:
        assert kind.nullable
        return
    python = {
        "real": float,
        "whole": int,
        "flag": bool,
        "text": str,
        "date": datetime.date,
        "moment": datetime.datetime,
    }
    if kind.type != "key":
        assert type(value) is python[kind.type]
    if isinstance(value, float):
        assert math.isfinite(value)
    if kind.numeric:
        assert interval(kind).holds(Fraction(value))
    if kind.values is not None:
        assert value in kind.values


def run(engine: duckdb.DuckDBPyConnection, tree: exp.Expression, table: str) -> list[Any]:
    query = exp.select(tree.copy().as_("x")).from_(exp.to_table(table).as_("t"))
    asked = query.order_by(exp.column("i", table="t"))
    DUCKDB.check(asked)
    sql = DUCKDB.text(asked)
    return [value for (value,) in engine.execute(sql).fetchall()]


def attempt(engine: duckdb.DuckDBPyConnection, text: str, row: int) -> bool:
    try:
        found = translate(sqlglot.parse_one(text, dialect="duckdb"), SCOPE)
    except QueryError as refused:
        assert refused.rule.endswith(".") and refused.rewrite
        return False
    values = run(engine, found.tree, "t")
    assert len(values) == ROWS
    for value in values:
        check(found, value)
    (alone,) = run(engine, found.tree, f"t{row}")
    assert bits(alone) == bits(values[row])
    return True


LAX = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=LAX, derandomize=True)
@given(text=ANY, row=st.integers(0, ROWS - 1))
def test_random_expressions_are_total(engine: duckdb.DuckDBPyConnection, text: str, row: int) -> None:
    attempt(engine, text, row)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None, suppress_health_check=LAX)
@given(text=ANY, row=st.integers(0, ROWS - 1))
def test_many_random_expressions_are_total(engine: duckdb.DuckDBPyConnection, text: str, row: int) -> None:
    attempt(engine, text, row)


def test_a_missing_guard_is_seen(engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without its guards the same checks fail."""
    monkeypatch.setattr(numbers, "_no_least", lambda found, divisor=None: found.tree)
    with pytest.raises(duckdb.Error):
        attempt(engine, "ABS(int)", 0)
    monkeypatch.setattr(numbers, "_divisor", lambda found, real=False: found.tree)
    with pytest.raises(duckdb.Error):
        attempt(engine, "w % signed", 0)
    monkeypatch.setattr(operands.trees, "finite", lambda tree: tree)
    with pytest.raises(AssertionError):
        attempt(engine, "wild * wild", 0)
    monkeypatch.setattr(operands.trees, "known_date", lambda tree: tree)
    with pytest.raises((AssertionError, duckdb.Error)):
        attempt(engine, "LAST_DAY(d + INTERVAL 9000 YEAR)", 0)
