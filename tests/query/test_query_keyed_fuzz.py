"""Random queries over tables that are owned through keys: without a unit, what is below the noise moves by no more than
the noise was made for. Chains that lose their owner are found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.query.fuzzing import mutants
from tests.query.fuzzing.keyed import trial
from tests.query.fuzzing.watching import Broken

FEATURES = {
    "keyed", "along", "whole_chain", "by_key", "by_key_joined", "key_window", "key_distinct", "siblings", "tested",
    "passed_on", "with_wards", "keyed JOIN", "keyed LEFT JOIN", "keyed RIGHT JOIN", "keyed FULL JOIN", "keyed COMMA",
    "keyed TURNED", "EXISTS along a key", "NOT EXISTS along a key", "values along a key", "lone value along a key",
}  # fmt: skip


def test_a_few_queries_along_keys_keep_what_they_promise(tmp_path: Path) -> None:
    assert trial(range(4), tmp_path).checked == 4


@pytest.mark.slow
def test_a_hundred_queries_along_keys_keep_what_they_promise(tmp_path: Path) -> None:
    report = trial(range(150), tmp_path)
    assert len(report.refused) <= 15, report.refused
    assert FEATURES - set(report.features) == set()
    for name in ("total", "sums", "votes", "tree", "advice"):
        assert 0.99 < report.used[name] <= 1, name


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(2, 4))
def test_hundreds_of_queries_along_keys_keep_what_they_promise(tmp_path: Path, hundred: int) -> None:
    assert trial(range(100 * hundred, 100 * hundred + 100), tmp_path).checked >= 90


@pytest.mark.parametrize(
    ("mutant", "seeds", "fault"),
    [
        (mutants.owner_lost_on_the_way, [8], "times what is allowed"),
        (mutants.one_owner_for_a_key, [3], "depend on another"),
        (mutants.units_mixed_in_joins, [3], "depend on another"),
        (mutants.units_mixed_in_subqueries, [22], "depend on another"),
    ],
)
def test_a_chain_that_loses_its_owner_is_found(
    mutant: mutants.Mutant, seeds: Sequence[int], fault: str, tmp_path: Path
) -> None:
    with mutant(), pytest.raises(Broken, match=fault):
        trial(seeds, tmp_path)
