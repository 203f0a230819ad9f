"""What `sfumato train` says of subgroups is said only where it is true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.office.training import GroupDocument, worse_for

SMALL = "noise and clipping cost small groups most"


def group(name: str, accuracy: float, records: int) -> GroupDocument:
    error = 1.96 * math.sqrt(max(accuracy * (1 - accuracy), 0.25 / records) / records)
    return GroupDocument(name=name, accuracy=accuracy, error=error, records=records)


def test_a_small_group_that_the_model_is_worse_for_is_named_with_the_likely_cause() -> None:
    told = worse_for([group("east", 0.9, 2000), group("west", 0.7, 200), group("north", 0.85, 900)])
    assert told is not None and told.startswith("the model is worse for west than for east") and SMALL in told


def test_a_large_group_that_the_model_is_worse_for_is_no_small_one() -> None:
    told = worse_for([group("east", 0.6, 2000), group("west", 0.95, 200)])
    assert told == "the model is worse for east than for west"
    assert worse_for([group("east", 0.6, 500), group("west", 0.95, 500)]) == told


@pytest.mark.parametrize("groups", [[], [group("east", 0.9, 50)], [group("a", 0.8, 40), group("b", 0.7, 40)]])
def test_nothing_is_said_where_there_is_nothing_to_compare_or_chance_explains_it(groups: list[GroupDocument]) -> None:
    assert worse_for(groups) is None


def test_many_equal_groups_are_rarely_called_unequal() -> None:
    """The best and the worst of thirty differ by chance; compared as any two, they were called unequal most times."""
    chance = np.random.default_rng(20)
    called = 0
    for _ in range(400):
        shares = chance.binomial(200, 0.8, 30) / 200
        called += worse_for([group(str(place), float(share), 200) for place, share in enumerate(shares)]) is not None
    assert called <= 40  # 5 % of 400 are 20
