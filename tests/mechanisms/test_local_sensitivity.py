"""Local sensitivity of the median: published values, the definition by brute force, and long tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.mechanisms.local_sensitivity import around_median, distance, smooth


def replaced(x: tuple[int, ...], top: int) -> set[tuple[int, ...]]:
    """All sorted neighbours: one number replaced by any other."""
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in range(top + 1)}


def median(x: tuple[int, ...]) -> int:
    return x[(len(x) + 1) // 2 - 1]


def definition(values: list[int], low: int, high: int) -> list[int]:
    """A_0, ..., A_n as the paper writes them."""
    x, n = sorted(values), len(values)
    m = (n + 1) // 2

    def at(i: int) -> int:
        return low if i < 1 else high if i > n else x[i - 1]

    return [max(at(m + t) - at(m + t - k - 1) for t in range(k + 2)) for k in range(n + 1)]


@pytest.mark.parametrize(
    ("values", "high", "beta", "size", "k"),
    [
        (list(range(1, 12)), 20, "1/10", 8.491429, 5),
        ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 10, "1/4", 1.839397, 4),
        ([50] * 101, 100, "1/10", 0.336897, 50),
    ],
)
def test_published_values(values: list[int], high: int, beta: str, size: float, k: int) -> None:
    found = smooth(around_median(np.array(values), 0, high), Fraction(beta))
    assert float(found) == pytest.approx(size, abs=5e-7)
    assert float(found.enclose(80)) == pytest.approx(size, abs=5e-7)
    assert [runner for runner, _ in found.runners] == [k]


def test_it_is_the_local_sensitivity_some_changes_away() -> None:
    """By brute force: A_k is the largest local sensitivity within k changes, and the distance follows from it."""
    top = 4
    for n in (1, 2, 3, 4):
        every = list(combinations_with_replacement(range(top + 1), n))
        near = {x: replaced(x, top) for x in every}
        level = {x: max(abs(median(x) - median(y)) for y in near[x]) for x in every}
        sizes = {x: [level[x]] for x in every}
        for _ in range(n):
            level = {x: max(level[y] for y in near[x]) for x in every}
            for x in every:
                sizes[x].append(level[x])
        for x in every:
            around = around_median(np.array(x), 0, top)
            assert [around.gap(k) for k in range(n + 1)] == sizes[x] == definition(list(x), 0, top)
            for bound in range(top):
                assert distance(around, bound) == next(k for k, a in enumerate(sizes[x]) if a > bound)
                assert all(
                    abs(distance(around, bound) - distance(around_median(np.array(y), 0, top), bound)) <= 1
                    for y in near[x]
                )


lists = st.lists(st.integers(0, 40), min_size=1, max_size=40)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(lists, st.integers(1, 400), st.integers(0, 1))
def test_smooth_is_the_largest_over_all_changes(values: list[int], percent: int, wide: int) -> None:
    beta, high = Fraction(percent, 200), 40 + wide
    found = smooth(around_median(np.array(values), 0, high), beta)
    size = max(math.exp(-float(beta) * k) * a for k, a in enumerate(definition(values, 0, high)))
    assert float(found) == pytest.approx(size, rel=1e-11)
    sure, rough = found.enclose(96), found.rough(96)
    assert rough.lo <= sure.lo <= sure.hi <= rough.hi
    assert float(sure) == pytest.approx(size, rel=1e-11)
    assert sure.hi - sure.lo <= 2**20


@settings(derandomize=True, deadline=None, max_examples=60)
@given(lists, st.integers(0, 39), st.integers(0, 40), st.integers(1, 300))
def test_smooth_is_smooth(values: list[int], place: int, other: int, percent: int) -> None:
    beta = Fraction(percent, 100)
    changed = list(values)
    changed[place % len(values)] = other
    one, two = (smooth(around_median(np.array(x), 0, 40), beta) for x in (values, changed))
    assert abs(one.log - two.log) <= float(beta) + 1e-9
    assert one.log >= math.log(max(around_median(np.array(values), 0, 40).gap(0), 1e-300)) - 1e-9


def long_tables() -> dict[str, Any]:
    n = 3_000
    return {
        "spaced": np.arange(n) * 5,
        "tied": np.full(n, 777),
        "two heaps": np.repeat([10, 15_900], n // 2),
        "growing": np.exp(np.arange(n) / n * 9.6).astype(np.int64),
        "scattered": (np.arange(n) * 7919) % 16_000,
    }


@pytest.mark.parametrize("name", list(long_tables()))
@pytest.mark.parametrize("beta", ["1/3", "1/200", "1/3000", "1/1000000000"])
def test_long_tables_are_searched_without_missing_the_largest(name: str, beta: str) -> None:
    values, rate = long_tables()[name], Fraction(beta)
    around = around_median(values, 0, 16_384)
    direct = max(math.log(gap) - float(rate) * k for k in range(len(values) + 1) if (gap := around.gap(k)))
    found = smooth(around, rate)
    assert found.log == pytest.approx(direct, abs=1e-9)
    assert all(math.log(gap) - float(rate) * k == pytest.approx(direct, abs=1e-9) for k, gap in found.runners)


def test_far_and_empty_tables() -> None:
    empty = around_median(np.array([], dtype=np.int64), 3, 9)
    assert empty.median == 3 and empty.gap(0) == 6 and distance(empty, 5) == 0
    tied = smooth(around_median(np.full(1001, 5), 0, 10), Fraction(2))
    assert tied.log == pytest.approx(math.log(5) - 1000) and float(tied) == 0.0  # far below the smallest float
    assert tied.enclose(64).lo == 0 and tied.rough(64).lo == 0
    assert tied.enclose(2000).lo > 0
    with pytest.raises(ArithmeticError):
        around_median(np.array([11]), 0, 10)
    with pytest.raises(ArithmeticError):
        distance(empty, 6)
