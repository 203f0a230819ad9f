"""How ClickHouse is asked in the suite over engines, and where it means something else."""

from __future__ import annotations

from typing import Any

from sfumato.sources.clickhouse_settings import BEHIND
from sfumato.sources.vocabulary import STATEMENTS
from sfumato.sources.vocabulary.words import INFINITY, NAN
from tests.sources.dbapi import clickhouse_engine


def asked_of_clickhouse(text: str) -> list[tuple[Any, ...]]:
    return list(clickhouse_engine.run(text + BEHIND))


# NaN is equal to nothing there, and -0.0 is a value of its own where values are told apart. Doubles have no remainder.
CLICKHOUSE_WRONG: dict[str, Any] = {
    "equal": [("{0} = {1}", NAN, NAN, True)],
    "different": [("{0} <> {1}", NAN, NAN, False)],
    "less": [("{0} < {1}", INFINITY, NAN, True)],
    "at_most": [("{0} <= {1}", NAN, NAN, True)],
    "greater": [("{0} > {1}", NAN, INFINITY, True)],
    "at_least": [("{0} >= {1}", NAN, NAN, True)],
    "not_same": [("{0} IS DISTINCT FROM {1}", NAN, NAN, False)],
    "greatest_present": [("greatest_present({0}, {1})", NAN, INFINITY, NAN)],
    "count": [("count(DISTINCT {0})", [0.0, -0.0, NAN, NAN], 2)],
    "maximum": [("max({0})", [INFINITY, NAN], NAN)],
    "remainder": [("{0} % {1}", 7.5, 2.0, 1.5), ("{0} % {1}", -7.5, 2.0, -1.5), ("{0} % {1}", 1.0, 0.25, 0.0)],
    "": [(whole.text,) for whole in STATEMENTS if "nan" in whole.text and "IS NULL" not in whole.text],
}
