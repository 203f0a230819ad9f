"""Causal strategies: published numbers, exact sensitivities by brute force, and totals that wait for nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.strategies import Banded, Causal, Cells, Listed, Prefixes, SquareRoot, StepTree, Tree, best_step_tree
from sfumato.strategies.convolve import _by_residues, convolve, convolve_exactly, inverse_series

CAUSAL: list[Causal] = [
    *(SquareRoot(cells=n) for n in (1, 2, 3, 8, 13)),
    *(Banded(cells=n, bands=b) for n, b in ((1, 1), (5, 1), (8, 3), (13, 5), (6, 6))),
    *(StepTree(cells=n, refined=r) for n in (1, 2, 3, 7, 8, 13) for r in (True, False)),
    *(StepTree(cells=n, branching=b) for n, b in ((7, 3), (9, 3), (13, 3), (13, 12), (12, 4))),
]


def whole_matrix(strategy: Causal) -> np.ndarray[Any, Any]:
    """2^bits A, column by column."""
    return np.array([strategy.measure(row) for row in np.eye(strategy.cells, dtype=np.int64)]).T


def variances(strategy: Causal) -> np.ndarray[Any, Any]:
    """Of each running total, in units of the noise on one count with the same privacy."""
    return strategy.column_norms.l2_squared / 4**strategy.bits * strategy.running_mixing.l2**2


def test_published_weights_and_their_inverse() -> None:
    weights = SquareRoot(cells=64).weights / 2**20
    assert weights[:5].tolist() == [1, 1 / 2, 3 / 8, 5 / 16, 35 / 128]
    inverse = inverse_series(weights, 64)
    assert inverse[:5] == pytest.approx([1, -1 / 2, -1 / 8, -1 / 16, -5 / 128], abs=1e-12)


@pytest.mark.parametrize(
    ("cells", "sens", "largest", "mean"),
    [
        (128, 2.610104, 6.812642, 5.996747),
        (1024, 3.272554, 10.709611, 9.670793),
        (2048, 3.493229, 12.202646, 11.092342),
    ],
)
def test_published_errors_of_the_square_root(cells: int, sens: float, largest: float, mean: float) -> None:
    strategy = SquareRoot(cells=cells)
    assert strategy.column_norms.l2_squared / 4**20 == pytest.approx(sens, abs=2e-6)
    error = variances(strategy)
    assert error.max() == pytest.approx(largest, abs=2e-6) and error.max() == error[-1]
    assert error.mean() == pytest.approx(mean, abs=2e-6)
    # sens^2 = |c|^2 <= 1 + (ln(4n)/pi) of the papers, so that errors grow with the logarithm
    assert sens <= 1 + math.log(4 * cells) / math.pi


def test_published_errors_of_the_tree() -> None:
    plain = variances(StepTree(cells=1024, refined=False))
    assert plain.max() == pytest.approx(110) and plain.mean() == pytest.approx(55.010742, abs=1e-6)
    refined = variances(StepTree(cells=1024))
    # v_k = 2^k/(2^(k+1) - 1) falls to a half: nearly half the variance of the plain tree
    assert refined.max() == pytest.approx(11 * sum(2**k / (2 ** (k + 1) - 1) for k in range(10)))
    assert np.all(refined <= plain + 1e-9) and refined.mean() == pytest.approx(31.921, abs=1e-3)
    root = variances(SquareRoot(cells=1024))
    assert plain.max() / root.max() > 10 and refined.max() / root.max() > 5.9


def test_wider_trees_suit_laplace_noise() -> None:
    """Its scale grows with the number of levels itself, not with their square root."""
    for cells in (10, 100, 1024, 50_000):
        wide, narrow = best_step_tree(cells, "laplace"), best_step_tree(cells, "gaussian")
        assert wide.branching > narrow.branching
        others = [StepTree(cells=cells, branching=b) for b in (2, 3, 4, 6, 8, 16, 32)]
        for best, power in ((wide, 2), (narrow, 1)):
            worst = [tree.column_norms.l1**power * tree.running_mixing.l2.max() ** 2 for tree in (best, *others)]
            assert worst[0] <= 1.15 * min(worst)


def test_a_tree_that_waits_is_no_worse_than_one_that_does_not() -> None:
    cells = 64
    below, all_of_it = StepTree(cells=cells), Tree(cells=cells)
    assert all_of_it.column_norms == below.column_norms and all_of_it.measurements == below.measurements
    assert np.all(all_of_it.mixing(Prefixes(cells=cells)).l2 <= below.running_mixing.l2 + 1e-9)


@pytest.mark.parametrize("strategy", CAUSAL, ids=repr)
def test_totals_are_unbiased_and_wait_for_nothing(strategy: Causal) -> None:
    matrix, known = whole_matrix(strategy), strategy.measurements_by_step
    assert matrix.shape == (strategy.measurements, strategy.cells) and (matrix >= 0).all()
    for step, end in enumerate(known):
        assert not matrix[:end, step + 1 :].any()  # measured by now, of steps so far
    weights = strategy.running(np.eye(strategy.measurements)).T
    assert weights @ matrix / 2.0**strategy.bits == pytest.approx(np.tri(strategy.cells), abs=1e-9)
    for step, end in enumerate(known):
        assert np.abs(weights[step, end:]).max(initial=0.0) < 1e-12
        partly = strategy.running(np.arange(1.0, end + 1))
        whole = strategy.running(np.arange(1.0, strategy.measurements + 1))
        assert partly == pytest.approx(whole[: step + 1], rel=1e-9, abs=1e-9)
    assert strategy.estimate(np.eye(strategy.measurements)).T @ matrix / 2.0**strategy.bits == pytest.approx(
        np.eye(strategy.cells), abs=1e-9
    )


@pytest.mark.parametrize("strategy", CAUSAL, ids=repr)
def test_the_latest_measurements_are_the_measurements(strategy: Causal) -> None:
    for cells in (np.arange(5, 5 + strategy.cells), np.full(strategy.cells, 2**60), np.array([3**50] * strategy.cells)):
        whole = strategy.measure(cells)
        parts = [strategy.latest(cells[: step + 1]) for step in range(strategy.cells)]
        assert [int(x) for part in parts for x in part] == [int(x) for x in whole]
        assert np.cumsum([len(part) for part in parts]).tolist() == strategy.measurements_by_step.tolist()


@pytest.mark.parametrize("strategy", CAUSAL, ids=repr)
def test_mixing_is_the_norms_of_the_weights(strategy: Causal) -> None:
    cells = strategy.cells
    ranges = Listed(cells=cells, labels=("a", "b"), weights=((1,) * cells, (*(0,) * (cells - 1), 2)))
    for workload in (Prefixes(cells=cells), Cells(cells=cells), ranges):
        weights = np.abs(workload.answer(strategy.estimate(np.eye(strategy.measurements))).T)
        mixing = strategy.mixing(workload)
        assert mixing.l1 == pytest.approx(weights.sum(axis=1), abs=1e-9)
        assert mixing.l2 == pytest.approx(np.sqrt((weights**2).sum(axis=1)), abs=1e-9)
        assert mixing.linf == pytest.approx(weights.max(axis=1), abs=1e-9)


def test_mixing_of_large_tables_is_bounded() -> None:
    for strategy in (SquareRoot(cells=4096), StepTree(cells=4096)):
        exact, bound = strategy.running_mixing, strategy.mixing(Cells(cells=4096))
        assert np.all(bound.l2 >= 0.5) and bound.l2[5] == pytest.approx(exact.l2[5] + exact.l2[4])
        last = Listed(cells=4096, labels=("all",), weights=((1,) * 4096,))
        assert strategy.mixing(last).l2 == pytest.approx(exact.l2[-1:])


def reaches(moved: Iterator[Any]) -> tuple[int, int, int]:
    """The largest norms of a list of vectors."""
    sizes = [np.abs(np.asarray(vector, dtype=object)) for vector in moved]
    return tuple(max(int(f(v)) for v in sizes) for f in (sum, lambda v: sum(v * v), max))  # type: ignore[return-value]


@pytest.mark.parametrize("strategy", CAUSAL, ids=repr)
def test_columns_move_as_far_as_declared(strategy: Causal) -> None:
    columns = list(whole_matrix(strategy).T)
    assert strategy.column_norms == reaches(iter(columns))
    nothing = [np.zeros_like(columns[0])]
    assert strategy.column_gaps == reaches(a - b for a, b in combinations([*columns, *nothing], 2))


@pytest.mark.parametrize("strategy", CAUSAL, ids=repr)
@pytest.mark.parametrize("apart", [1, 2, 3, 5])
@pytest.mark.parametrize("times", [1, 2, 3, 20])
def test_spaced_rows_move_as_far_as_declared(strategy: Causal, apart: int, times: int) -> None:
    columns = whole_matrix(strategy).T.astype(object)
    spaced = [
        columns[list(places)].sum(axis=0)
        for k in range(1, min(times, strategy.cells) + 1)
        for places in combinations(range(strategy.cells), k)
        if all(b - a >= apart for a, b in pairwise(places))
    ]
    found, declared = reaches(iter(spaced)), strategy.spaced(times, apart)
    if isinstance(strategy, StepTree):  # a bound, not the worst case itself
        assert all(a <= b for a, b in zip(found, declared, strict=True))
    else:
        assert found == declared


def test_rows_a_band_apart_do_not_meet() -> None:
    strategy = Banded(cells=40, bands=8)
    for times in (1, 2, 5):
        assert strategy.spaced(times, 8).l2_squared == times * strategy.column_norms.l2_squared
    assert strategy.spaced(5, 7).l2_squared > 5 * strategy.column_norms.l2_squared
    # and that is better than the whole root, or than the tree, for units that come again
    assert strategy.spaced(5, 8).l2_squared < SquareRoot(cells=40).spaced(5, 8).l2_squared


def test_sensitivity_is_of_the_rounded_matrix() -> None:
    """The real root has another norm: using it would be too little noise for some number of cells."""
    short = 0
    for cells in range(1, 200):
        ideal = sum(Fraction(math.comb(2 * k, k), 4**k) ** 2 for k in range(cells))
        mine = Fraction(SquareRoot(cells=cells).column_norms.l2_squared, 4**20)
        assert abs(mine - ideal) < 1e-5
        short += ideal < mine
    assert short > 20


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=60), st.lists(st.integers(0, 2**20), min_size=1))
def test_convolutions_are_exact(values: list[int], weights: list[int]) -> None:
    a, x = np.array(weights[: len(values)], dtype=np.int64), np.array(values, dtype=np.int64)
    true = [sum(int(a[j]) * int(x[i - j]) for j in range(min(i + 1, a.size))) for i in range(x.size)]
    assert convolve_exactly(a, x).tolist() == true
    assert _by_residues(a, x).tolist() == true
    assert convolve_exactly(a, x.astype(object) * 2**40).tolist() == [t * 2**40 for t in true]
    assert convolve(a.astype(float), x.astype(float)) == pytest.approx(np.array(true, dtype=float), rel=1e-9, abs=1e3)


def test_long_convolutions_are_exact() -> None:
    strategy = SquareRoot(cells=2**15)
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 2**30, strategy.cells)  # all bits in use, sums up to 2^58
    fast = _by_residues(strategy.weights, cells)
    assert np.array_equal(fast, strategy.measure(cells))
    for place in (0, 1, 1000, 2**14, 2**15 - 1):
        assert int(fast[place]) == sum(
            map(int.__mul__, strategy.weights[: place + 1].tolist(), cells[place::-1].tolist())
        )
    full = np.full(2**15, 2**20, dtype=np.int64)  # the largest sums
    assert np.array_equal(_by_residues(full, full), np.arange(1, 2**15 + 1) << 40)


def test_long_totals_are_near_enough() -> None:
    cells = np.random.default_rng(4).integers(0, 1000, 2**15)
    for strategy in (SquareRoot(cells=2**15), Banded(cells=2**15, bands=300), StepTree(cells=2**15)):
        measured = np.ldexp(strategy.measure(cells).astype(float), -strategy.bits)
        assert strategy.running(measured) == pytest.approx(np.cumsum(cells), abs=1e-3)


def test_strategies_survive_json() -> None:
    for strategy in CAUSAL:
        assert record.parse(record.canonical(strategy)) == strategy


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SquareRoot(cells=0), "cells"),
        (lambda: SquareRoot(cells=2**20 + 1), "cells"),
        (lambda: Banded(cells=4, bands=5), "bands"),
        (lambda: Banded(cells=4, bands=0), "bands"),
        (lambda: StepTree(cells=4, refined=1), "refined"),
        (lambda: StepTree(cells=4, branching=1), "branching"),
    ],
)
def test_arguments_are_refused_by_name(make: Any, name: str) -> None:
    with pytest.raises(ArgumentError, match=name):
        make()


def test_the_bound_of_many_rows_in_one_step_holds() -> None:
    """Without a separation all rows of a unit may be in one step: times the largest column is the worst case."""
    for strategy in CAUSAL[:8]:
        columns = whole_matrix(strategy).T.astype(object)
        mixed = [columns[list(places)].sum(axis=0) for places in combinations_with_replacement(range(len(columns)), 3)]
        assert reaches(iter(mixed)) == (
            3 * strategy.column_norms.l1, 9 * strategy.column_norms.l2_squared, 3 * strategy.column_norms.linf
        )  # fmt: skip
