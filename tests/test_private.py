"""Blocks of private data: exactly the rows of the blocks that a receipt names are read."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit, bounds
from sfumato import mechanisms as m
from sfumato.errors import ArgumentError, BudgetError, PrivacyWarning, ReceiptError
from sfumato.openings import ROWS
from sfumato.plan import Receipt
from sfumato.schema import category, key, real, whole
from tests.helpers import Hooked, hooked, seeded

MONTHS = ["jan", "feb", "mar"]
VISITS = Schema.of(month=category(MONTHS), size=real(0, 10))
BY_USER = Unit("user:who")
MADE_UP = {
    "month": ["jan", "feb", None, "mar", "jan", "dec", "mar", "mar", "JAN", ""],
    "size": [float(n) for n in range(10)],
}


def visits(columns: Any = None, unit: Unit | None = None, schema: Schema = VISITS, **more: Any) -> Private:
    return Private(
        "visits", MADE_UP if columns is None else columns, unit=unit or Unit(), schema=schema, block="month", **more
    )


def rows_of(private: Private) -> Any:
    """As the curator gets them, with a receipt that was made by hand."""
    event = m.Laplace(query=bounds.count(private.unit), epsilon=1).event
    receipt = Receipt("1", ("a",), "", event, private.address, private.unit, "exact")
    return private._open(receipt, ROWS)


@pytest.mark.parametrize(
    ("blocks", "sizes"),
    [(("jan",), [0, 4]), (("feb",), [1]), (("mar", "jan"), [0, 3, 4, 6, 7]), (MONTHS, [0, 1, 3, 4, 6, 7])],
)
def test_only_rows_of_the_named_blocks_are_read(blocks: Any, sizes: list[int]) -> None:
    """NULL, unknown and misspelt blocks are in none: nobody paid for them."""
    assert rows_of(visits().of_blocks(*blocks))["size"].values.tolist() == sizes


def test_the_whole_data_is_all_blocks_and_still_not_the_rows_of_none() -> None:
    private = visits()
    assert private.blocks == tuple(MONTHS) and private.address == "visits@1#jan,feb,mar"
    assert rows_of(private)["size"].values.tolist() == [0, 1, 3, 4, 6, 7]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.sampled_from([*MONTHS, None, "dec"]), max_size=30), st.sets(st.sampled_from(MONTHS), min_size=1))
def test_counts_by_hand(cells: list[Any], blocks: set[str]) -> None:
    part = visits({"month": cells, "size": [1.0] * len(cells)}).of_blocks(*blocks)
    wanted = sum(Counter(cells)[block] for block in blocks)
    with pytest.warns(PrivacyWarning):
        plan = m.Laplace(query=bounds.count(Unit()), epsilon=10**3)  # noise of a thousandth: an exact count, rounded
    found = plan.finish(plan._run(rows_of(part), seeded()))
    assert round(float(np.asarray(found).reshape(-1)[0])) == wanted


def test_numbers_are_blocks_by_their_text() -> None:
    schema = Schema.of(month=category([1, 2, 12]), size=whole(0, 10))
    part = visits({"month": [1, 12, 2, 12], "size": [0, 1, 2, 3]}, schema=schema).of_blocks("12")
    assert part.address == "visits@1#12" and rows_of(part)["size"].values.tolist() == [1, 3]


def test_a_users_rows_in_other_blocks_stay_closed() -> None:
    schema = Schema.of(month=category(MONTHS), size=real(0, 10), who=key(), unit="who")
    columns = {"month": ["jan", "feb", "jan"], "size": [1.0, 2.0, 3.0], "who": ["u", "u", "v"]}
    part = visits(columns, BY_USER, schema).of_blocks("feb")
    assert rows_of(part)["size"].values.tolist() == [2]


def test_a_part_of_a_part_is_never_larger() -> None:
    part = visits().of_blocks("jan", "feb")
    assert part.of_blocks("feb").address == "visits@1#feb"
    for blocks in ((), ("mar",), ("jan", "mar"), ("dec",), ("",), (None,)):
        with pytest.raises(ArgumentError, match="blocks of this data"):
            part.of_blocks(*blocks)  # type: ignore[arg-type]
    assert part.address == "visits@1#jan,feb" and visits().blocks == tuple(MONTHS), "nothing else was changed"
    with pytest.raises(ArgumentError, match="it has none"):
        Private("visits", MADE_UP, unit=Unit(), schema=VISITS).of_blocks("jan")


def test_the_order_in_which_blocks_are_named_does_not_matter() -> None:
    assert visits().of_blocks("mar", "jan", "mar").address == visits().of_blocks("jan", "mar").address


@pytest.mark.parametrize("change", ["replace", "zero-out"])
def test_a_unit_that_may_change_its_block_is_refused(change: Any) -> None:
    with pytest.raises(ArgumentError, match="added or removed"):
        visits(unit=Unit(change=change))


@pytest.mark.parametrize("block", ["size", "nothing", ""])
def test_a_block_is_a_column_with_public_categories(block: str) -> None:
    with pytest.raises(Exception, match=r"public categories|no column"):
        Private("visits", MADE_UP, unit=Unit(), schema=VISITS, block=block)


def test_a_receipt_for_other_blocks_or_another_version_opens_nothing() -> None:
    jan, feb = visits().of_blocks("jan"), visits().of_blocks("feb")
    event = m.Laplace(query=bounds.count(Unit()), epsilon=1).event
    for paid_for in (feb, visits(), visits(version="2").of_blocks("jan")):
        receipt = Receipt("1", ("a",), "", event, paid_for.address, Unit(), "exact")
        with pytest.raises(ReceiptError):
            jan._open(receipt, ROWS)


@pytest.mark.parametrize("work", [copy.copy, copy.deepcopy, pickle.dumps])
def test_parts_are_neither_copied_nor_pickled(work: Any) -> None:
    with pytest.raises(TypeError, match="not pickled or copied"):
        work(visits().of_blocks("jan"))


# together with a ledger


def blocked() -> MemoryLedger:
    ledger = MemoryLedger({"visits": Budget(epsilon=3)})
    for month in MONTHS[:2]:
        ledger.open_block("visits", month, Budget(epsilon=1))
    return ledger


def sizes(tag: str, epsilon: Any = 1) -> Hooked:
    return hooked(tag, lambda rows, run: rows["size"].values.tolist(), protects=Unit(), epsilon=epsilon)


def test_the_answer_for_one_block_is_never_served_for_another() -> None:
    ledger = blocked()
    answers: dict[str, list[Any]] = {}
    for month in ("jan", "feb", "jan"):
        release = Curator(visits().of_blocks(month), ledger).release(sizes("blocks"))
        answers.setdefault(month, []).append(release.value)
    assert answers == {"jan": [(0, 4), (0, 4)], "feb": [(1,)]}
    assert [gauge.spent for gauge in ledger.spent("visits")] == [2], "the second answer for January was free"


def test_a_block_that_is_not_open_yet_is_not_read() -> None:
    ledger = blocked()
    for part in (visits().of_blocks("mar"), visits(), visits().of_blocks("jan", "mar")):
        with pytest.raises(BudgetError, match="no block 'mar' yet"):
            Curator(part, ledger).release(sizes("not yet", Fraction(1, 10)))
    whole_data = Private("visits", MADE_UP, unit=Unit(), schema=VISITS)
    with pytest.raises(BudgetError, match="say which blocks are read"):
        Curator(whole_data, ledger).release(sizes("not yet", Fraction(1, 10)))
    assert [gauge.spent for gauge in ledger.spent("visits")] == [0]
