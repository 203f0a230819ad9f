"""Random queries of the shapes around words, over tables that may be empty: without a unit, what is below the noise
moves by no more than the noise was made for, release by release and together. Planted faults are found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from sfumato.query.above import part_options
from tests.query.fuzzing import mutants
from tests.query.fuzzing.watching import Broken
from tests.query.fuzzing.whole_shapes import trial

FEATURES = {
    "natural", "using", "bracketed", "commas", "own_numbers", "own_flags", "zoned", "ROLLUP", "CUBE", "GROUPING SETS",
    "pairs of all rows", "list of groups", "several releases",
}  # fmt: skip


def test_a_few_queries_of_these_shapes_keep_what_they_promise(tmp_path: Path) -> None:
    assert trial([1, 2, 26], tmp_path).checked >= 2


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(3))
def test_hundreds_of_queries_of_these_shapes_keep_what_they_promise(tmp_path: Path, hundred: int) -> None:
    report = trial(range(150 * hundred, 150 * hundred + 150), tmp_path)
    assert len(report.refused) <= 30, report.refused
    assert FEATURES - set(report.features) == set()
    for name in ("total", "together", "sums", "votes", "tree"):
        assert 0.99 < report.used[name] <= 1, name


def whole_budget_for_each_release() -> Any:
    """Releases of one query do not share its budget."""

    def unshared(names: list[str], choose: Any, options: Any, delta: Any) -> Any:
        return {name: honest([name], [each for each in choose if each == name], options, delta)[name] for name in names}

    honest = part_options._prices
    return mock.patch.object(part_options, "_prices", unshared)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "seeds", "fault"),
    [
        (whole_budget_for_each_release, [5], "together: .* times what is allowed"),
        (mutants.units_mixed_in_joins, [22], "depend on another"),
        (mutants.units_mixed_in_subqueries, [10], "depend on another"),
    ],
)
def test_planted_faults_are_found_in_these_shapes(
    mutant: mutants.Mutant, seeds: Sequence[int], fault: str, tmp_path: Path
) -> None:
    with mutant(), pytest.raises(Broken, match=fault):
        trial(seeds, tmp_path)
