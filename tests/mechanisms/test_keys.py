"""What all selections of keys share: who brings which keys, nothing in the order of the data, odd tables."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, Curator, MemoryLedger, Private, Schema, Unit
from sfumato.mechanisms import OptimalKeys, ThresholdKeys, WeightedKeys
from sfumato.mechanisms.keys import blocks, tally
from sfumato.plan import Plan
from sfumato.rows import Rows
from sfumato.schema import key
from tests.helpers import account_of
from tests.mechanisms.keyed import ROW, USER, run, table


def plans(unit: Unit = USER, per_unit: int = 2, epsilon: Any = 1, delta: Any = 1e-4) -> list[Plan[Any, Any]]:
    fields: dict[str, Any] = {"column": "k", "protects": unit, "per_unit": per_unit}
    fields |= {"epsilon": epsilon, "delta": delta}
    return [
        OptimalKeys(**fields),
        ThresholdKeys(**fields),
        ThresholdKeys(**fields, noise="gaussian"),
        WeightedKeys(**fields),
        WeightedKeys(**fields, count_epsilon=1),
    ]


ALL = pytest.mark.parametrize("which", range(5))


def held(rows: Rows, per_unit: int, seed: int = 1, unit: Unit = USER) -> dict[int, list[int]]:
    units, codes = plans(unit, per_unit)[0]._held(rows, run(seed))  # type: ignore[attr-defined]
    found: dict[int, list[int]] = {}
    for u, c in zip(units.tolist(), codes.tolist(), strict=True):
        found.setdefault(u, []).append(c)
    return found


def test_a_key_counts_once_for_a_unit_and_never_without_a_key() -> None:
    rows = table(USER, ("a", "a", "b", None), (None, math.nan), ("b",) * 9)
    assert {u: len(k) for u, k in held(rows, 5).items()} == {0: 2, 2: 1}
    by_row = table(ROW, ("a", "a"), (None,))
    assert sum(map(len, held(by_row, 1, unit=ROW).values())) == 2


def test_of_too_many_keys_a_uniform_choice_counts() -> None:
    rows = table(USER, *[tuple("abcde")] * 4000, ("a",), ("b", "c"))
    found = held(rows, 2)
    chosen = [tuple(sorted(found[u])) for u in range(4000)]
    assert all(len(set(each)) == 2 for each in chosen)
    counts = np.array([chosen.count(pair) for pair in set(chosen)])
    assert counts.size == 10 and float(((counts - 400) ** 2 / 400).sum()) < 50  # 9 degrees of freedom
    together = sum(a == b for a, b in zip(chosen[::2], chosen[1::2], strict=True))
    assert together == pytest.approx(200, abs=80)  # units choose independently
    assert len(found[4000]) == 1 and len(found[4001]) == 2


def test_kept_rows_keep_their_keys() -> None:
    rows = table(USER, *[(f"k{i}",) for i in range(50)], *[("z",)] * 60)
    late = rows.keep(np.arange(len(rows)) >= 50)
    for plan in plans():
        assert list(plan.finish(plan._run(late, run()))) == ["z"]


@ALL
def test_the_order_of_rows_is_not_seen(which: int) -> None:
    names = ["b", 10, "a", 9, 1.5, "10", "Z", -3]
    plan = plans(ROW, 1, epsilon=1)[which]
    for order in (names, names[::-1], sorted(names, key=str)):
        rows = table(ROW, *[[k] for k in order for _ in range(120)])
        assert list(plan.finish(plan._run(rows, run()))) == [-3, 1.5, 9, 10, "Z", "a", "b"]


@ALL
def test_odd_tables_are_answered(which: int) -> None:
    strange = [None, math.nan, math.inf, b"\xff", 1j, object(), [1], (1, 2), 10**400, "", "nan", np.datetime64("NaT")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for plan in (plans()[which], plans(ROW, 1)[which]):
            for cells in ([], ["a"], [None] * 5, ["a"] * 500, strange, list(range(300))):
                rows = table(plan.unit, *[[k] for k in cells])
                assert isinstance(plan.finish(plan._run(rows, run())), list | dict)


@ALL
def test_nobody_who_is_alone_shows_at_a_small_delta(which: int) -> None:
    plan = plans(ROW, 1, delta=1e-9)[which]
    assert not plan._run(table(ROW, *[[k] for k in range(20_000)]), run())


@ALL
def test_a_ledger_charges_what_was_asked(which: int) -> None:
    plan = plans(delta=1e-12)[which]  # true noise: each rare key shows with this chance
    raw = {"u": [f"u{i}" for i in range(2100)], "k": ["common"] * 2000 + [f"rare{i}" for i in range(100)]}
    schema = Schema.of(u=key(), k=key(), unit="u")
    private = Private("searches", raw, unit=USER, schema=schema)
    ledger = MemoryLedger({"searches": Budget(epsilon=2, delta=3e-12)})
    curator = Curator(private, ledger)
    answer = curator.release(plan)
    assert list(answer.value) == ["common"] and str(answer)
    assert max(member.spent for member in account_of(ledger, "searches").filter.open) > 0
    for more in range(3):  # and refuses when it is spent
        another = replace(plan, epsilon=Fraction(3, 2) + Fraction(more, 100))
        if not curator.quote(another).affordable:
            return
        curator.release(another)
    raise AssertionError("a budget of 2 paid for more than 1 + 1.5")


def test_tally_and_blocks() -> None:
    codes, counts = tally(np.array([3, 1, 3, 3]))
    assert codes.tolist() == [1, 3] and counts.tolist() == [1, 3]
    assert tally(np.zeros(0, dtype=np.int64))[0].size == 0
    for last in (1, 2, 64, 65, 1000, 12345):
        runs = list(blocks(last, 64))
        assert [x for first, end in runs for x in range(first, end + 1)] == list(range(1, last + 1))
        assert all(end == first for first, end in runs if first < 64)
