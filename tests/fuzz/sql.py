"""SQL: whatever is typed is answered, or refused in words of the package; and the data shows in neither.

An input is the text of a query. One that begins with a zero byte is a list of choices instead, from which a query is
written by the grammar below: so a fuzzer gets deep into what is understood, and not only past the parser.
"""

from __future__ import annotations

import datetime
import re
from functools import cache
from typing import Any

import pyarrow as pa

from sfumato import Budget, Curator, MemoryLedger, Private
from sfumato.errors import DataError, SfumatoError
from sfumato.query import Limits, sql
from sfumato.schema import Schema, Table, category, date, flag, key, moment, real, whole
from sfumato.units import Unit
from tests.fuzz.watching import CANARY, CANARY_NUMBER, Choices, Finding, as_text, attempt

FIRST, LAST = datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)
SCHEMA = Schema({
    "visits": Table({
        "patient": key(), "ward": category(["a", "b"]), "drug": key(), "days": real(0, 50), "n": whole(-5, 1000),
        "ok": flag(), "day": date(FIRST, LAST), "at": moment(FIRST, LAST),
    }, unit="patient"),
    "patients": Table({"patient": key(), "age": whole(0, 120), "sex": category(["f", "m"])}, unit="patient"),
    "wards": Table({"ward": category(["a", "b"]), "region": key(), "beds": whole(0, 100)}, private=False),
})  # fmt: skip
UNIT = Unit("user:patient")
SECRETS = (CANARY, str(CANARY_NUMBER))
OPTIONS: tuple[dict[str, Any], ...] = (
    {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=3, keys=2, values=2)},
    {"epsilon": 1, "limits": Limits(rows=3, keys=2, values=2)},
    {"rho": 0.5},
    {"epsilon": 1, "delta": 1e-6, "limits": Limits(rows=3, keys=2, values=2), "keys": {"drug": ["x", "y"]}},
)

GRAMMAR: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "query": ((
        "SELECT {aggregates} FROM {rows}", "SELECT {aggregates} FROM {rows} WHERE {test}",
        "SELECT ward, {aggregates} FROM visits GROUP BY ward", "SELECT {key}, {aggregates} FROM visits GROUP BY 1",
        "SELECT {key} AS k, {aggregates} FROM visits WHERE {test} GROUP BY 1 ORDER BY 2",
        "SELECT ward, {aggregates} FROM visits GROUP BY ward HAVING COUNT(*) > {number_literal}",
        "WITH t AS (SELECT {columns} FROM visits) SELECT {aggregates} FROM t",
        "SELECT ward, {aggregates} FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 3",
    ), (
        "SELECT {columns} FROM {rows}", "{query} UNION ALL {query}", "-- sfumato: {comment}\n{query}",
        "SELECT {key}, {aggregates} FROM {rows} GROUP BY {key} ORDER BY {aggregate} DESC LIMIT {literal}",
        "SELECT {key} AS k, {aggregates} FROM {rows} WHERE {test} GROUP BY ALL HAVING {aggregate} > {literal}",
    )),
    "comment": (
        ("epsilon=1", "epsilon=1, delta=1e-6, rows={number_literal}", "rho=1, keys={number_literal}"),
        ("epsilon={literal}", "{word}={word}", "{word}={literal}, {comment}"),
    ),
    "rows": ((
        "visits", "visits", "visits v", "visits JOIN patients USING (patient)",
        "visits v JOIN wards w ON v.ward = w.ward", "visits v LEFT JOIN patients p ON v.patient = p.patient",
        "(SELECT patient, {columns} FROM visits) AS t", "(SELECT * FROM visits UNION ALL SELECT * FROM visits) AS u",
        "(SELECT patient, COUNT(*) AS n, SUM(days) AS days FROM visits GROUP BY patient) AS g",
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY {number}) AS r FROM visits) AS o",
        "visits SEMI JOIN patients USING (patient)", "(SELECT * FROM visits WHERE {test}) AS f",
    ), (
        "wards", "patients", "visits CROSS JOIN wards", "visits v, patients p", "visits TABLESAMPLE 10%",
        "(VALUES (1, 2)) AS z(n, days)", "read_csv('x.csv')", "information_schema.tables", "visits AS OF {literal}",
        "(SELECT {columns} FROM {rows}) AS t", "visits JOIN LATERAL (SELECT 1) ON TRUE", "visits, UNNEST([1, 2])",
    )),
    "columns": (
        ("{number} AS days, n, ok, ward, drug, day, at", "*", "ward, drug, days, n, ok, day, at"),
        ("{number} AS x", "patient, {number} AS days", "{key}, {number} AS n", "patient, patient AS ward", "visits.*"),
    ),
    "aggregates": (("{aggregate} AS x", "{aggregate} AS x, COUNT(*) AS c", "{aggregate} AS x, {aggregate} AS y"), ()),
    "aggregate": ((
        "COUNT(*)", "COUNT({number})", "COUNT(DISTINCT {key})", "COUNT(DISTINCT patient)", "SUM({number})",
        "AVG({number})", "VARIANCE({number})", "STDDEV({number})", "MIN({number})", "MAX({number})", "MEDIAN({number})",
        "QUANTILE_CONT({number}, 0.9)", "QUANTILE_CONT({number}, [0.25, 0.5])", "COUNT_IF({test})",
        "SUM({number}) FILTER (WHERE {test})", "SUM({number}) / COUNT(*)", "HISTOGRAM({number}, [0, 7, 50])",
        "CORR({number}, {number})", "COVAR_POP({number}, {number})",
        "ROUND({aggregate}, 1)", "{aggregate} + {aggregate}", "{aggregate} / {aggregate}", "COALESCE({aggregate}, 0)",
        "CASE WHEN {aggregate} > {number_literal} THEN {aggregate} END", "ABS({aggregate})", "MEDIAN(day)",
    ), (
        "QUANTILE_CONT({number}, {literal})", "HISTOGRAM({number}, [0, {literal}, 50])", "MODE({key})", "MAX(ok)",
        "STRING_AGG({key})", "FIRST({key})", "APPROX_COUNT_DISTINCT({key})", "ARRAY_AGG({number})", "AVG(ok)",
        "PERCENTILE_CONT({literal}) WITHIN GROUP (ORDER BY {number})", "SUM(DISTINCT {number})", "{function}({number})",
        "SUM({number}) OVER ()", "BOOL_OR({test})", "SUM(SUM({number}))", "POWER({aggregate}, {aggregate})",
        "{function}({aggregate})",
    )),
    "key": (
        ("ward", "drug", "ok", "day", "YEAR(day)", "n", "DATE_TRUNC('month', day)", "{text}", "{number}",
         "CASE WHEN {test} THEN 'x' ELSE 'y' END", "LOWER(drug)", "n % 3", "CAST(ok AS VARCHAR)"),
        ("patient", "v.ward", "ROLLUP (ward, sex)", "ALL", "region", "sex", "at", "NULL", "1"),
    ),
    "number": ((
        "days", "n", "days", "n", "{number_literal}", "({number} + {number})", "({number} - {number})",
        "({number} * {number})", "({number} / {number})", "({number} % {number})", "({number} // {number})",
        "-{number}", "ABS({number})", "SQRT({number})", "LN({number})", "EXP({number})", "POWER({number}, {number})",
        "ROUND({number}, 2)", "FLOOR({number})", "CAST({number} AS DOUBLE)", "CAST({number} AS BIGINT)",
        "TRY_CAST({text} AS DOUBLE)", "COALESCE({number}, {number})", "NULLIF({number}, {number})",
        "CAST(ok AS BIGINT)",
        "GREATEST({number}, {number})", "LEAST({number}, {number})", "CASE WHEN {test} THEN {number} ELSE {number} END",
        "LENGTH({text})", "YEAR({time})", "MONTH({time})", "DATE_DIFF('day', {time}, {time})", "EXTRACT(hour FROM at)",
        "{good_function}({number})",
    ), (
        "age", "beds", "{literal}", "ROUND({number}, {literal})", "CAST({number} AS {type})", "{function}({number})",
        "TRY_CAST({text} AS {type})", "EPOCH({time})", "{function}({number}, {number})",
        "(SELECT MAX(beds) FROM wards)",
        "({number} << {number})", "xor(n, {number})", "CAST({text} AS {type})", "ASCII({text})", "{number}::{type}",
        "INSTR({text}, {text})", "days[1]", "n ** n", "POWER({number}, {literal})", "patient + 1", "({number} / 0)",
    )),
    "text": (
        ("drug", "ward", "'x'", "'it''s'", "LOWER({text})", "UPPER({text})", "({text} || {text})", "TRIM({text})",
         "SUBSTRING({text}, 1, 2)", "CAST(n AS VARCHAR)", "CONCAT({text}, {text})", "LEFT({text}, 3)"),
        ("REPLACE({text}, 'a', {text})", "SUBSTRING({text}, {literal}, {literal})", "REPEAT({text}, {literal})",
         "LPAD({text}, {literal}, 'x')", "REGEXP_REPLACE({text}, '(a+)+$', 'x')", "STRFTIME({time}, '%Y')",
         "LEFT({text}, {literal})", "CHR({number})", "CAST(days AS VARCHAR)", "CAST({time} AS VARCHAR)"),
    ),
    "time": (
        ("day", "at", "DATE '2024-06-01'", "TIMESTAMP '2024-06-01 12:00:00'", "({time} + INTERVAL 1 DAY)",
         "DATE_TRUNC('week', {time})", "({time} - INTERVAL 1 YEAR)", "TRY_CAST({text} AS DATE)"),
        ("DATE '2024-02-30'", "({time} + INTERVAL {literal} DAY)", "CAST({text} AS DATE)", "MAKE_DATE(n, 1, 1)",
         "TO_TIMESTAMP({number})", "TRY_CAST({text} AS TIMESTAMP)", "CURRENT_DATE", "DATE '0000-00-00'",
         "DATE '99999-01-01'", "(day + INTERVAL 999999 MONTH)", "(at - INTERVAL 9999 YEAR)"),
    ),
    "test": ((
        "{number} > {number}", "{number} = {number_literal}", "{text} = {text}", "{text} LIKE '%a_'", "ok",
        "{text} IN ('a', 'x')", "{number} BETWEEN {number} AND {number}", "({test} AND {test})", "({test} OR {test})",
        "NOT {test}", "{number} IS NULL", "{text} IS NOT NULL", "{time} < {time}", "{text} > {text}",
        "ward IN (SELECT ward FROM wards WHERE beds > 3)", "{number} IS DISTINCT FROM {number}",
    ), (
        "{text} SIMILAR TO '(a|b)*'", "TRUE", "NULL", "REGEXP_MATCHES({text}, 'a{{1,9}}')", "{text} ILIKE 'A%'",
        "{text} ~ 'x'", "STARTS_WITH(drug, 'a')", "{text} IN ('a', {text})", "{number} = {literal}",
        "{text} LIKE {text}", "patient = 1", "{number} IN (1, {literal})", "ward IN (SELECT drug FROM visits)",
        "EXISTS (SELECT 1 FROM patients p WHERE p.patient = visits.patient)",
        "patient IN (SELECT patient FROM patients)",
    )),
    "number_literal": (("0", "1", "2", "-1", "7", "0.5", "50", "12", "1e3", "-0.0", "1000000"), ("{literal}",)),
    "literal": ((
        "1e308", "1e-320", "9223372036854775807", "-9223372036854775808", "'x'", "NULL", "1e999", "'nan'", "0x1F", "''",
        "170141183460469231731687303715884105727", "99999999999999999999999999999999999999", "TRUE", "1_000",
        "'\u00e9'",
        "0.1234567890123456789012345678901234567890", "DATE '2024-01-01'", "100000000", "'inf'", "[]", "{{}}", "?",
        "$1",
    ), ()),
    "type": ((
        "INTEGER", "BIGINT", "HUGEINT", "DOUBLE", "REAL", "DECIMAL(38, 10)", "DECIMAL(4, 2)", "VARCHAR", "BOOLEAN",
        "DATE",
        "TIMESTAMP", "TINYINT", "UBIGINT", "BLOB", "INTEGER[]", "TIME", "BIT", "UUID", "INTERVAL", "DECIMAL(99, 1)",
    ), ()),
    "good_function": (("CEIL", "SIGN", "ABS", "SQRT"), ("LOG10", "LOG2", "SIN", "COS", "DEGREES", "CBRT", "TRUNC",
    "ISNAN")),
    "function": ((
        "GAMMA", "LGAMMA", "FACTORIAL", "ERROR", "RANDOM", "NOW", "SETSEED", "ATAN2", "EVEN", "MOD", "FMOD", "GCD",
        "LCM",
        "BIT_COUNT", "HASH", "IF", "IFNULL", "pow", "log", "nosuchfunction", "getenv", "NEXTVAL", "READ_TEXT", "UNNEST",
        "typeof", "RADIANS", "ASIN", "ACOS", "ATAN", "LOG", "LOG1P", "SINH", "COT", "NEXTAFTER", "SIGNBIT", "ISINF",
    ), ()),
    "word": (
        ("epsilon", "delta", "rho", "rows", "keys", "limits", "bounds", "1", "-1", "nan", "x", "accuracy", "advice"), ()
    ),
}  # fmt: skip
"""By symbol: what is mostly written, and what is written now and then, because it should be refused."""
_WILD = 244  # bytes from here on choose from the second list
_DEEPEST = 9
_HOLE = re.compile(r"\{(\w+)\}|\{\{|\}\}")


def written(choices: Choices, symbol: str = "query", depth: int = 0) -> str:
    """A text of the grammar. Where it gets deep, or the choices are used up, the first of the rules is taken."""
    tame, wild = GRAMMAR[symbol]
    byte = 0 if depth > _DEEPEST else choices.byte()
    rest = choices.of(wild) if wild and byte >= _WILD else tame[byte % len(tame)]
    text = ""
    while found := _HOLE.search(rest):
        hole = found.group(1)
        text += rest[: found.start()] + (written(choices, hole, depth + 1) if hole else found.group()[:1])
        rest = rest[found.end() :]
    return text + rest


def query_of(data: bytes) -> tuple[str, dict[str, Any]]:
    """The query and the arguments that an input stands for."""
    if data[:1] == b"\0":
        choices = Choices(data[1:])
        options = choices.of(OPTIONS)
        text = written(choices)
    else:
        text, options = as_text(data), OPTIONS[len(data) % len(OPTIONS)]
    if "sfumato:" in text:
        return text, {}
    return text, options


_BOUNDS: tuple[dict[str, Any], ...] = ({}, {"x": (0, 50)}, {"y": (0, 50)}, {"x": (0, 50), "y": (-1e6, 1e6)})


def planned(data: bytes) -> tuple[str, Any]:
    """The query, and its plan or None. Bounds are given for the columns that ask for them."""
    text, options = query_of(data)
    for bounds in _BOUNDS if "bounds" not in text else _BOUNDS[:1]:
        given = {**options, "bounds": bounds} if bounds else options
        plan = attempt("sql", lambda given=given: sql(text, SCHEMA, unit=UNIT, **given))  # type: ignore[misc]
        if not isinstance(plan, BaseException):
            return text, plan
        if "bound" not in str(plan):
            break
    return text, None


def fuzz_sql(data: bytes) -> None:
    """Reading alone: a plan, or a refusal; the plan's price, words and JSON then exist."""
    _, plan = planned(data)
    if plan is None:
        return
    for name in ("price", "explain"):
        attempt(name, getattr(plan, name))
    attempt("hash", lambda: plan.hash)
    attempt("expected errors", lambda: plan.expected_errors(0.05))


def _column(given: list[Any], kind: Any) -> Any:
    return pa.array(given, kind)


def tables(canary: bool) -> dict[str, pa.Table]:
    """Eight rows of four people; and, with the canary, rows of one more that hold what is hardest to compute with."""
    one = 1 if canary else 0
    inf, nan = float("inf"), float("nan")
    moments = [datetime.datetime(2024, month, 7, 13, 30) for month in range(1, 9)]
    odd = {
        "patient": [CANARY_NUMBER] * 3, "ward": ["a", None, CANARY], "drug": [CANARY, "\u00e9'\"%_(" * 50, None],
        "days": [nan, inf, float(CANARY_NUMBER)], "n": [-(2**63), 2**63 - 1, None], "ok": [True, None, False],
        "day": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
        "at": [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31), None],
    }  # fmt: skip
    usual = {
        "patient": [1, 1, 2, 2, 3, 3, 4, 4], "ward": list("abababab"), "drug": ["x", "y"] * 4,
        "days": [1.5, 2.0, 3.0, 0.0, 7.0, 1.0, 2.0, 4.0], "n": [1, 2, 3, 4, 5, 6, 7, 8], "ok": [True, False] * 4,
        "day": [each.date() for each in moments], "at": moments,
    }  # fmt: skip
    kinds = {
        "patient": pa.int64(), "ward": pa.string(), "drug": pa.string(), "days": pa.float64(), "n": pa.int64(),
        "ok": pa.bool_(), "day": pa.date32(), "at": pa.timestamp("us"),
    }  # fmt: skip
    return {
        "visits": pa.table({name: _column(usual[name] + odd[name] * one, kinds[name]) for name in usual}),
        "patients": pa.table({
            "patient": _column([1, 2, 3, 4] + [CANARY_NUMBER] * one, pa.int64()),
            "age": _column([30, 40, 50, 60] + [2**31 - 1] * one, pa.int64()),
            "sex": _column(["f", "m", "f", None] + [CANARY] * one, pa.string()),
        }),
        "wards": pa.table({"ward": ["a", "b", "b"], "region": ["x", "y", None], "beds": [3, 4, 5]}),
    }  # fmt: skip


@cache
def private(canary: bool) -> Private:
    return Private("clinic", tables(canary), unit=UNIT, schema=SCHEMA, engine={"threads": 1, "seconds": 60})


def fuzz_sql_run(data: bytes) -> None:
    """The same, run: whatever the query, one person more or less changes neither the outcome nor the charge."""
    text, plan = planned(data)
    if plan is None:
        return
    with_one, without = _released(plan, text, True), _released(plan, text, False)
    if with_one != without and _released(plan, text, True) != _released(plan, text, False):  # not a busy machine
        raise Finding(f"with one person more the outcome is {with_one}, without {without}: {text[:500]}")


def _released(plan: Any, text: str, canary: bool) -> str:
    ledger = MemoryLedger({"clinic": Budget(epsilon=10, delta=0.01)})
    curator = Curator(private(canary), ledger, accounts=("clinic",))
    found = attempt("release", lambda: curator.release(plan), secrets=SECRETS)
    _charged(ledger, found, text)
    return _outcome(found)


def _outcome(found: Any) -> str:
    return type(found).__name__ if isinstance(found, BaseException) else "answered"


def _charged(ledger: MemoryLedger, found: Any, text: str) -> None:
    """Paid for exactly where there is a receipt, which is then answered or failed."""
    with ledger._store.reading() as book:
        states = [filed.state for _, filed in book.receipts()]
    spent = any(gauge.spent for gauge in ledger.spent("clinic"))
    due = {"answered": ["answered"], "DataError": ["failed"]}.get(_outcome(found), [])
    if states != due or spent != bool(due):
        raise Finding(f"{_outcome(found)}, but the receipts are {states} and spent is {spent}: {text[:500]}")
    if isinstance(found, SfumatoError) and not isinstance(found, DataError) and due:
        raise Finding(f"refused, and charged all the same: {text[:500]}")
