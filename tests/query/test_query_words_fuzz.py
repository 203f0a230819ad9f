"""Random queries with the words below the release: without a unit, what is below the noise moves by no more than the
noise was made for. Values that are made different across units are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.query.fuzzing import mutants
from tests.query.fuzzing.watching import Broken
from tests.query.fuzzing.younger_words import trial

FEATURES = {"different", "frequent", "ranged", "listed", "gaps", "longer", "own_different"}


def test_a_few_queries_with_younger_words_keep_what_they_promise(tmp_path: Path) -> None:
    assert trial(range(3), tmp_path).checked == 3


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(4))
def test_hundreds_of_queries_with_younger_words_keep_what_they_promise(tmp_path: Path, hundred: int) -> None:
    report = trial(range(100 * hundred, 100 * hundred + 100), tmp_path)
    assert len(report.refused) <= 20, report.refused
    assert FEATURES - set(report.features) == set()
    for name in ("total", "sums", "votes", "tree", "advice"):
        assert 0.99 < report.used[name] <= 1, name


def test_different_values_of_all_units_together_are_found(tmp_path: Path) -> None:
    with mutants.values_of_all_units(), pytest.raises(Broken, match=r"alike|additive"):
        trial([2], tmp_path)
