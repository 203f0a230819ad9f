"""The unit of privacy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import Unit, bounds, record
from sfumato.errors import ArgumentError, RecordError


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"of": "people"}, "of"),
        ({"of": "user:"}, "of"),
        ({"of": ""}, "of"),
        ({"of": None}, "of"),
        ({"of": "user:a\nb"}, "of"),
        ({"change": "add"}, "change"),
        ({"change": None}, "change"),
        ({"change": ["replace"]}, "change"),
        ({"group": 0}, "group"),
        ({"group": -1}, "group"),
        ({"group": 1.0}, "group"),
        ({"group": float("nan")}, "group"),
        ({"group": True}, "group"),
        ({"group": "1"}, "group"),
        ({"group": None}, "group"),
        ({"group": 10**6 + 1}, "group"),
    ],
)
def test_a_bad_unit_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Unit(**fields)
    assert str(caught.value).startswith(f"{named} = {fields[named]!r} is not allowed: give ")


def test_a_unit_says_whose_presence_it_hides() -> None:
    assert str(Unit()) == "one row, present or absent"
    assert str(Unit("user:patient", "replace")) == "everything one patient ever contributed, exchanged for any other"
    assert str(Unit(change="zero-out", group=3)) == ("any 3 of: one row, blanked out (the number of them is public)")
    assert Unit().column is None and Unit("user:a:b").column == "a:b"


def test_units_are_values() -> None:
    assert Unit() == Unit("row", "add-remove", 1) and hash(Unit()) == hash(Unit("row", "add-remove", 1))
    assert len({Unit(), Unit(change="replace"), Unit(group=2), Unit("user:a")}) == 4
    with pytest.raises(AttributeError):
        Unit().group = 2  # type: ignore[misc]


def test_units_survive_json_and_stored_ones_are_checked_again() -> None:
    unit = Unit("user:patient", "replace", 4)
    assert record.parse(record.canonical(unit), Unit) == unit
    with pytest.raises(RecordError, match="group"):
        record.parse(record.canonical(unit).replace(b"4", b"0"))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.int64])
def test_a_group_given_as_a_numpy_integer_is_as_large_as_it_says(kind: type[Any]) -> None:
    # A narrow integer squared wraps around: 100 * 100 is 16 in int8, and so would be the noise.
    unit = Unit(group=kind(100))
    assert type(unit.group) is int
    assert bounds.count(unit).l2 == bounds.count(Unit(group=100)).l2 == 100
