"""C1: one cell that changes how others are read."""

from __future__ import annotations

import pytest

from sfumato_referee.attacks import attack, cells
from sfumato_referee.mutants.reading import rows_by_nulls


def test_columns_that_are_read_by_their_nulls_are_found() -> None:
    told = cells.control()
    assert told.broken and told.figures["that change others"] >= 3


@pytest.mark.parametrize("form", ["columns", "arrow", "csv latin-1", "parquet"])
def test_the_library_withstands_it(form: str) -> None:
    told = cells.attack((form,), quick=True)
    assert not told.broken, told
    assert told.figures["awkward rows"] > 5


@pytest.mark.slow
def test_the_library_withstands_it_in_every_form() -> None:
    assert not attack("C1").broken
    assert cells.attack(("arrow",), rows_by_nulls).broken
