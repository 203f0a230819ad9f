"""Q1: an expression that raises on one cell tells who holds it, and its words may tell the cell.

DuckDB puts the cell into its message ("Could not convert string 'SECRET-4711' ..."). Every expression here is asked of
a table with and without one bad row: the same ending, the same words, the same charge, and the cell nowhere.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Mapping
from typing import Any

from sfumato.query import Limits
from sfumato.schema import category, date, key, real, whole
from sfumato.units import Unit

from ..mutants import queries
from .asking import LIBRARY, Asks, Seen, one_table, watched
from .verdict import Verdict

SECRET = "SECRET-4711"
USER = Unit("user:u")
SCHEMA = one_table(
    {
        "u": key(), "s": key(), "c": category(["1", "2"]), "x": real(-10, 10), "n": whole(-(2**63), 2**63 - 1),
        "d": date("2000-01-01", "2030-01-01"),
    },
    "u",
)  # fmt: skip

EXPRESSIONS = (
    "SUM(CAST(s AS DOUBLE))",
    "SUM(s::BIGINT)",
    "COUNT(CAST(s AS DATE))",
    "COUNT(strptime(s, '%Y-%m-%d'))",
    "COUNT(json_extract(s, '$.a'))",
    "COUNT(CAST(s AS BOOLEAN))",
    "COUNT(s::ENUM('1', '2'))",
    "COUNT(regexp_matches('a', s))",
    "COUNT(error(s))",
    "SUM(n % (n - n))",
    "SUM(n + n)",
    "SUM(n * n)",
    "SUM(-n)",
    "SUM(abs(n))",
    "SUM(n // (n - n))",
    "SUM(n << 60)",
    "SUM(factorial(CAST(n AS INT)))",
    "COUNT(chr(CAST(n AS INT)))",
    "SUM((SELECT x FROM t))",
    "COUNT(*) FILTER (WHERE s)",
    "COUNT(*) FILTER (WHERE c)",
    "COUNT(*) FILTER (WHERE CASE WHEN u = 'bad' THEN s ELSE 'true' END)",
    "SUM(1 / (x - x)) + COUNT(*)",
    "SUM(ln(x))",
    "SUM(sqrt(x))",
    "SUM(exp(exp(exp(x))))",
    "SUM(pow(x, 1000))",
    "COUNT(d + INTERVAL 9999 YEAR)",
    "COUNT(make_date(CAST(n AS INT), 13, 40))",
    "COUNT(substr(s, 1, CAST(n AS INT)))",
    "COUNT(repeat(s, CAST(n AS INT)))",
    "COUNT(lpad(s, 900, '*'))",
    "COUNT(rpad(s, CAST(n AS INT), '*'))",
    "COUNT(repeat(s, 1000))",
    "COUNT(DISTINCT (s, x, n, d))",
    "SUM(DISTINCT n)",
    "SUM((SELECT SUM(DISTINCT o.n) FROM t AS o WHERE o.u = t.u))",
    "COUNT((SELECT MODE(o.s) FROM t AS o WHERE o.u = t.u))",
    "SUM(date_diff('second', d, DATE '9999-12-31'))",
    "MEDIAN(CAST(s AS DOUBLE))",
    "COUNT(DISTINCT CAST(s AS TIMESTAMP))",
    "HISTOGRAM(CAST(s AS DOUBLE), [0, 1, 2])",
)
_BOUNDS = {"a": (-10, 10)}

GOOD: dict[str, list[Any]] = {
    "u": ["a", "b"], "s": ["1", "0"], "c": ["1", "2"], "x": [1.0, 2.0], "n": [1, 2], "d": ["2020-01-01"] * 2,
}  # fmt: skip
BAD = {"u": "bad", "s": SECRET, "c": SECRET, "x": -7.123456789, "n": -(2**63), "d": "2029-12-31"}


def attack(asks: Asks = LIBRARY) -> Verdict:
    differs, leaks, answered = [], [], 0
    both = {name: [*cells, BAD[name]] for name, cells in GOOD.items()}
    for expression in EXPRESSIONS:
        text = f"SELECT {expression} AS a FROM t"
        (one, heard), (other, overheard) = (_heard(asks, text, table) for table in (GOOD, both))
        answered += one.status == "answered"
        if not one.same(other):
            differs.append(expression)
        everything = one.words + one.trace + heard + other.words + other.trace + overheard
        if any(word in everything for word in (SECRET, "7.123456789")):
            leaks.append(expression)
    words = (
        f"{len(differs)} of {len(EXPRESSIONS)} end otherwise with the bad row {differs[:2]}; {len(leaks)} say a cell."
    )
    return Verdict(
        "Q1", bool(differs or leaks), words, {"differ": len(differs), "leak": len(leaks), "answered": answered}
    )


def _heard(asks: Asks, text: str, table: Mapping[str, Any]) -> tuple[Seen, str]:
    """The ending, and whatever was printed or logged on the way."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            options: dict[str, Any] = {"epsilon": 1, "limits": Limits()}
            seen = watched(asks, text, SCHEMA, USER, {"t": dict(table)}, **options, bounds=_BOUNDS)
            if "bounds names" in seen.words:  # nothing in it is added up
                seen = watched(asks, text, SCHEMA, USER, {"t": dict(table)}, **options)
    finally:
        logging.getLogger().removeHandler(handler)
    return seen, printed.getvalue()


CONTROL: Asks = queries.as_written
