"""Whole numbers of any width come out of Arrow as they are."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from sfumato.query.integers import wholes


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [1, -1, None, 2**61],
        [2**62, -(2**62)],
        [2**63, -(2**63), 2**64 - 1, 2**64, -(2**64) - 1, 10**37, -(10**37), 0, None],
    ],
)
def test_decimals(numbers: list[int | None]) -> None:
    given = [None if each is None else Decimal(each) for each in numbers]
    for extra in (0, 3):  # also a slice of a larger array
        column = pa.array([Decimal(7)] * extra + given, pa.decimal128(38, 0))[extra:]
        found = wholes(pa.table({"s": column}), 0)
        assert found.tolist() == [0 if each is None else each for each in numbers]
        assert found.dtype == (np.int64 if all(abs(each or 0) < 2**62 for each in numbers) else object)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.int8(), pa.uint16()])
def test_plain_integers(kind: pa.DataType) -> None:
    found = wholes(pa.table({"a": pa.array([1, None, 3], kind)}), 0)
    assert found.tolist() == [1, 0, 3] and found.dtype == np.int64
