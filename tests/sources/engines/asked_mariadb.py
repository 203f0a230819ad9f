"""How MariaDB is asked in the suite over engines, and where it means something else."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

from sfumato.sources.mariadb_server import SETTINGS
from sfumato.sources.vocabulary import STATEMENTS
from sfumato.sources.vocabulary.words import INFINITY, NAN
from tests.sources.dbapi import mariadb_server


@functools.cache
def _opened() -> Any:
    opened = mariadb_server.opened()
    with opened.cursor() as cursor:
        for setting in SETTINGS:
            cursor.execute(setting)
    return opened


def asked_of_mariadb(text: str) -> list[tuple[Any, ...]]:
    """Its numbers of any width are decimals to the driver."""
    with _opened().cursor() as cursor:
        cursor.execute(text)
        return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in cursor.fetchall()]


# It has no NaN, which is NULL there, no infinity, which is a number of 2^1022 or more, and no -0.0.
MARIADB_WRONG: dict[str, Any] = {
    "sum_of_two": [
        ("{0} + {1}", 1e308, 1e308, INFINITY),
        ("{0} + {1}", INFINITY, -INFINITY, NAN),
        ("{0} + {1}", -0.0, -0.0, -0.0),
    ],
    "difference": [("{0} - {1}", INFINITY, INFINITY, NAN)],
    "product": [
        ("{0} * {1}", 1e200, 1e200, INFINITY),
        ("{0} * {1}", INFINITY, 0.0, NAN),
        ("{0} * {1}", -1.0, 0.0, -0.0),
    ],
    "negative": [("-{0}", 0.0, -0.0), ("-{0}", NAN, NAN), ("-{0}", INFINITY, -INFINITY)],
    "quotient": [
        ("{0} / {1}", INFINITY, INFINITY, NAN),
        ("{0} / {1}", 1.0, INFINITY, 0.0),
        ("{0} / {1}", 1.0, -INFINITY, -0.0),
    ],
    "size": [("abs({0})", -INFINITY, INFINITY), ("abs({0})", NAN, NAN)],
    "floor": [("floor({0})", -0.0, -0.0), ("floor({0})", INFINITY, INFINITY), ("floor({0})", NAN, NAN)],
    "ceiling": [("ceil({0})", -0.5, -0.0), ("ceil({0})", NAN, NAN)],
    "cut": [("cut({0})", -0.5, -0.0), ("cut({0})", INFINITY, INFINITY), ("cut({0})", NAN, NAN)],
    "root": [("sqrt({0})", -0.0, -0.0), ("sqrt({0})", INFINITY, INFINITY)],
    "exponential": [("exp({0})", 1000.0, INFINITY)],
    "power": [("pow({0}, {1})", -8.0, 0.5, NAN), ("pow({0}, {1})", 10.0, 400.0, INFINITY)],
    "natural_log": [("natural_log({0})", INFINITY, INFINITY)],
    "is_finite": [("is_finite({0})", NAN, False)],
    "sign_bit": [("sign_bit({0})", -0.0, True)],
    "read_or_null": [
        ("read_or_null({0}, DOUBLE)", "-0", -0.0),
        ("read_or_null({0}, DOUBLE)", "nan", NAN),
        ("read_or_null({0}, DOUBLE)", "-inf", -INFINITY),
    ],
    "equal": [("{0} = {1}", NAN, NAN, True)],
    "different": [("{0} <> {1}", NAN, NAN, False), ("{0} <> {1}", NAN, 1.0, True)],
    "less": [("{0} < {1}", INFINITY, NAN, True), ("{0} < {1}", NAN, 1.0, False)],
    "at_most": [("{0} <= {1}", NAN, NAN, True), ("{0} <= {1}", NAN, INFINITY, False)],
    "greater": [("{0} > {1}", NAN, INFINITY, True), ("{0} > {1}", NAN, NAN, False)],
    "at_least": [("{0} >= {1}", NAN, NAN, True), ("{0} >= {1}", 1.0, NAN, False)],
    "between": [("{0} BETWEEN {1} AND {2}", NAN, 0.0, INFINITY, False)],
    "is_null": [("{0} IS NULL", NAN, False)],
    "first_present": [("coalesce({0}, {1})", NAN, 2.0, NAN)],
    "least_present": [("least_present({0}, {1})", NAN, None, NAN)],
    "greatest_present": [
        ("greatest_present({0}, {1})", NAN, INFINITY, NAN),
        ("greatest_present({0}, {1})", -INFINITY, None, -INFINITY),
    ],
    "count": [("count(DISTINCT {0})", [0.0, -0.0, NAN, NAN], 2)],
    "minimum": [("min({0})", [NAN, INFINITY, None], INFINITY), ("min({0})", [NAN], NAN)],
    "maximum": [("max({0})", [INFINITY, NAN], NAN)],
    "not_a_number": [("not_a_number({0})", NAN, True)],
    "": [(whole.text,) for whole in STATEMENTS if "nan" in whole.text and "IS NULL" not in whole.text],
}
