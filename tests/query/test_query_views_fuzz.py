"""Random queries that read views: without a unit, what is below the noise moves by no more than was declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.query.fuzzing import mutants
from tests.query.fuzzing.viewed import trial
from tests.query.fuzzing.watching import Broken


def test_a_few_queries_of_views_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial([11, 12, 13], tmp_path)
    assert report.checked == 3, report.refused
    assert {"view seen", "view base", "window", "distinct"} <= set(report.features)


@pytest.mark.slow
def test_a_hundred_queries_of_views_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial(range(100), tmp_path)
    assert report.checked >= 80, report.refused
    assert {"view seen", "view base", "view all_visits", "window", "per_unit", "per_unit_joined", "distinct"} <= set(
        report.features
    )


def test_units_that_are_mixed_below_a_view_are_found(tmp_path: Path) -> None:
    with mutants.units_mixed_in_joins(), pytest.raises(Broken):
        trial([23, 24], tmp_path)
