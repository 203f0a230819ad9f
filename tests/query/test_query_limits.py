"""Limits as a record."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.query.limits import MOST_KEYS, Limits


def test_defaults_are_for_one_row() -> None:
    limits = Limits()
    assert (limits.rows, limits.keys, limits.most_keys, limits.values) == (1, 1, MOST_KEYS, 1)
    assert dict(limits.reach) == {}


def test_limits_survive_json_and_are_exact() -> None:
    limits = Limits(rows=0.1, keys=3, most_keys=9, values=2, reach={"s": Fraction("0.3")})
    assert limits.rows == Fraction(1, 10) and limits.reach["s"] == Fraction(3, 10)
    assert record.parse(record.canonical(limits)) == limits
    assert hash(limits) == hash(Limits(rows=Fraction("0.1"), keys=3, most_keys=9, values=2, reach={"s": 0.3}))


def test_limits_are_told_in_words() -> None:
    assert str(Limits(rows=8, keys=3, reach={"total": 500})) == "8 rows, 3 groups, total by 500"


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rows": 0}, "rows"), ({"rows": -1}, "rows"), ({"rows": float("inf")}, "rows"), ({"rows": "many"}, "rows"),
        ({"keys": 0}, "keys"), ({"keys": 1.5}, "keys"), ({"keys": 2**18 + 1}, "keys"), ({"keys": True}, "keys"),
        ({"most_keys": 0}, "most_keys"), ({"values": -3}, "values"), ({"reach": 5}, "reach"),
        ({"reach": {"s": 0}}, "reach of s"), ({"reach": {5: 1}}, "reach"),
    ],
)  # fmt: skip
def test_limits_are_refused_by_name(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        Limits(**fields)
