"""Which of the cells themselves and the trees over them answers prefixes, and so ranges, best: at any size, at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .. import checks
from .base import check_noise
from .identity import Identity
from .tree import Tree

_BRANCHINGS = (2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32)
_SAMPLED = 256  # prefixes whose error stands for that of all


def ordered_strategy(cells: int, noise: str = "gaussian", *, change: str = "add-remove") -> Identity | Tree:
    """The one with the least mean squared error of prefixes at the same price, for Gaussian or Laplace noise.

    Gaussian noise grows with the square root of the number of levels, so deep trees are best; Laplace noise grows with
    the number itself, so flat ones are.
    """
    flat = Identity(cells=cells)
    tree = best_tree(cells, noise, change=change)
    return flat if (cells + 1) / 2 * _cost(flat, noise, change) <= _error(tree, noise, change) else tree


def best_tree(cells: int, noise: str = "gaussian", *, change: str = "add-remove") -> Tree:
    """The best tree for prefixes among usual branchings, with and without a root."""
    check_noise(noise, change)
    return _best_tree(checks.whole(cells, "cells", most=2**26), noise, change)


@lru_cache(maxsize=64)
def _best_tree(cells: int, noise: str, change: str) -> Tree:
    # Where a row is exchanged for another, a root costs nothing: one group of all cells may be best.
    widths = [b for b in _BRANCHINGS if b == 2 or b < cells] + [cells] * (2 < cells <= _BRANCHINGS[-1])
    full = [Tree(cells=cells, branching=b) for b in widths]
    rootless = [Tree(cells=cells, branching=tree.branching, levels=tree.height - 1) for tree in full if tree.height > 1]
    return min(full + rootless, key=lambda tree: _error(tree, noise, change))


def _cost(strategy: Identity | Tree, noise: str, change: str) -> float:
    """What the variance of the noise grows with."""
    reach = strategy.column_gaps if change == "replace" else strategy.column_norms
    return float(reach.l2_squared if noise == "gaussian" else reach.l1**2)


def _error(tree: Tree, noise: str, change: str) -> float:
    prefixes = np.unique(np.linspace(0, tree.cells - 1, _SAMPLED).astype(np.int64))
    return float(np.mean(tree.prefix_norms(prefixes).l2 ** 2)) * _cost(tree, noise, change)
