"""Trees of sums, against the matrices written out."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato import record
from sfumato.errors import ArgumentError
from sfumato.strategies import (
    Cells,
    Identity,
    Listed,
    Prefixes,
    Tree,
    best_tree,
    expected_squared_error,
    ordered_strategy,
)
from sfumato.strategies.base import row_norms


def matrix(tree: Tree) -> Any:
    """A, written out: each level by itself, straight from what the docstring says."""
    rows = []
    for level in range(tree.height):
        group = tree.branching**level
        for start in range(0, tree.cells, group):
            row = np.zeros(tree.cells)
            row[start : start + group] = 1
            rows.append(row)
    return np.array(rows)


def every(cells: range, branchings: range = range(2, 6)) -> list[Tree]:
    full = [Tree(cells=n, branching=b) for n in cells for b in branchings]
    return full + [Tree(cells=t.cells, branching=t.branching, levels=k) for t in full for k in range(1, t.height)]


SMALL = every(range(1, 41))
FEWER = SMALL[::3]


def test_small_trees_are_many() -> None:
    assert len(SMALL) > 400


def test_it_measures_what_it_says() -> None:
    for tree in SMALL:
        cells = (np.arange(tree.cells, dtype=np.int64) * 7919) % 31 - 3
        assert tree.measure(cells).tolist() == (matrix(tree).astype(np.int64) @ cells).tolist()
        assert tree.measurements == len(matrix(tree))


def test_sums_are_exact_at_any_size() -> None:
    tree = Tree(cells=5)
    for cell in (2**61, -(2**61), 2**63 - 1, 2**200):
        cells = np.array([cell] * 5, dtype=object)
        narrow = cells.astype(np.int64) if abs(cell) < 2**63 else cells
        expected = [cell] * 5 + [2 * cell, 2 * cell, cell, 4 * cell, cell, 5 * cell]
        assert [int(v) for v in tree.measure(narrow)] == expected


def test_norms_of_columns_and_of_their_differences_are_exact() -> None:
    for tree in FEWER:
        columns = list(matrix(tree).T)
        apart = [np.abs(a - b) for a, b in combinations([*columns, np.zeros(len(columns[0]))], 2)]
        for reach, vectors in ((tree.column_norms, columns), (tree.column_gaps, apart)):
            assert reach.l1 == max(v.sum() for v in vectors), tree
            assert reach.l2_squared == max((v * v).sum() for v in vectors), tree
            assert reach.linf == max(v.max() for v in vectors), tree


def test_the_estimate_is_least_squares() -> None:
    rng = np.random.default_rng(1)
    for tree in SMALL:
        noisy = rng.normal(size=(2, tree.measurements))
        best = noisy @ np.linalg.pinv(matrix(tree)).T
        assert np.allclose(tree.estimate(noisy), best, atol=1e-9), tree
        assert np.allclose(tree.estimate(noisy[0]), best[0], atol=1e-9)


def test_mixing_is_that_of_the_matrices() -> None:
    rng = np.random.default_rng(2)
    for place, tree in enumerate(SMALL):
        n, inverse = tree.cells, np.linalg.pinv(matrix(tree))
        cases: list[Any] = [(Cells(cells=n), np.eye(n)), (Prefixes(cells=n), np.tril(np.ones((n, n))))]
        if place % 10 == 0:
            asked = rng.integers(-4, 5, size=(3, n)) + np.eye(3, n)
            cases.append((Listed.of(asked), asked))
        for workload, queries in cases:
            for found, exact in zip(tree.mixing(workload), row_norms(queries @ inverse), strict=True):
                assert np.allclose(found, exact, rtol=1e-9, atol=1e-12), (tree, workload)


def test_prefixes_and_a_share_of_the_total() -> None:
    for tree in FEWER:
        prefixes = np.tril(np.ones((tree.cells, tree.cells)))
        for share in (-1.0, -0.3, 0.7):
            exact = row_norms((prefixes + share) @ np.linalg.pinv(matrix(tree)))
            for found, norms in zip(tree.prefix_norms(np.arange(tree.cells), share), exact, strict=True):
                assert np.allclose(found, norms, rtol=1e-9, atol=1e-7), (tree, share)


@pytest.mark.parametrize(("cells", "branching"), [(100_000, 2), (99_999, 7), (65_536, 16), (70_001, 300)])
def test_large_trees(cells: int, branching: int) -> None:
    tree = Tree(cells=cells, branching=branching)
    truth = np.arange(cells, dtype=np.int64) % 97
    measured = tree.measure(truth)
    assert measured[-1] == truth.sum() and measured.size == tree.measurements
    assert np.allclose(tree.estimate(measured.astype(np.float64)), truth, atol=1e-6)
    places = np.array([0, 1, cells // 3, cells - 2, cells - 1])
    asked = np.arange(cells) <= places[:, None]
    exact = row_norms(tree.weights(asked.astype(np.float64)))
    for found, norms in zip(tree.mixing(Prefixes(cells=cells)), exact, strict=True):
        assert np.allclose(found[places], norms, rtol=1e-9)
    exact = row_norms(tree.weights((np.arange(cells) == places[:, None]).astype(np.float64)))
    for found, norms in zip(tree.mixing(Cells(cells=cells)), exact, strict=True):
        assert np.allclose(found[places], norms, rtol=1e-9)


def test_the_error_of_a_prefix_grows_with_the_logarithm() -> None:
    """Hay et al. 2010: a range takes at most 2 (b - 1) log_b n nodes; least squares does better than adding them up."""
    for levels in range(2, 15):
        tree = Tree(cells=2**levels)
        assert tree.mixing(Prefixes(cells=2**levels)).l2.max() ** 2 < 1 + levels / 2
    # At 1024 cells, adding up nodes has a largest squared error of 11 levels times 10 nodes = 110.
    tree = Tree(cells=1024)
    assert tree.column_norms.l2_squared * tree.mixing(Prefixes(cells=1024)).l2.max() ** 2 < 20


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("change", ["add-remove", "replace"])
@pytest.mark.parametrize("cells", [1, 2, 3, 7, 20, 64, 300, 2000])
def test_the_choice_is_the_best_one(cells: int, noise: Any, change: str) -> None:
    workload, flat = Prefixes(cells=cells), Identity(cells=cells)
    tree, chosen = best_tree(cells, noise, change=change), ordered_strategy(cells, noise, change=change)

    def error(strategy: Any) -> float:
        return expected_squared_error(strategy, workload, noise, change=change)

    assert error(chosen) <= 1.02 * min(error(flat), error(tree))
    for branching in (2, 5, 8, 16):
        assert error(tree) <= 1.1 * error(Tree(cells=cells, branching=branching)), branching


def test_fields_are_checked_and_survive_json() -> None:
    assert Tree(cells=9).levels == 5 and Tree(cells=1).levels == 1 and Tree(cells=8, levels=3).measurements == 14
    for wrong in ({"cells": 0}, {"cells": 4, "branching": 1}, {"cells": 4, "levels": 4}, {"cells": 4, "levels": 0}):
        with pytest.raises(ArgumentError):
            Tree(**wrong)
    with pytest.raises(ArgumentError, match="noise"):
        best_tree(4, "uniform")
    tree = Tree(cells=10, branching=3)
    assert record.parse(record.canonical(tree)) == tree
