"""Measure the cells in a hierarchy: each by itself, then groups of them, groups of groups, up to the total.

Ready to build on: `measure`, `estimate` and `mixing` cost a few passes over the cells, for any number of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..record import record
from .base import Floats, Mixing, Reach, Strategy, Vector, Workload, in_parts, row_norms
from .workloads import Cells, Prefixes

_MOST_BRANCHES = 1024
_BLOCK = 2**15  # leaves at a time, where each needs a number for each level


class _Node(NamedTuple):
    """What all nodes of one kind in a level share."""

    below: float  # the variance of the sum of its children's estimates, in units of one measurement's
    own: float  # the share of its own measurement in its estimate
    spread: float  # the variance of its estimate from its subtree: below/(1 + below)
    l1: float  # norms of the weights of its subtree's measurements in that estimate (the l2 norm is sqrt(spread))
    linf: float


class _Level(NamedTuple):
    """All nodes of a level are alike, but the last, whose subtree may be cut off."""

    nodes: int
    usual: _Node
    last: _Node
    last_children: int


@record("strategy-tree/1")
@dataclass(frozen=True, kw_only=True)
class Tree(Strategy):
    """Sums of cells in groups of `branching`, of those in groups of `branching`, and so on: `levels` levels, the cells
    themselves being the first. Without `levels`, up to one root, the total.

    Any number of cells will do: the last group of a level may be smaller, and no group is empty. Measurements are in
    this order: the cells, the groups of cells, ..., the top.

    A cell is in one group of each level, so a column has `levels` ones. Two columns differ in two places at each level
    that has more than one node.

    The estimate is least squares (Hay, Rastogi, Miklau, Suciu 2010, here for cut-off trees too), in two passes. Upward,
    a node's measurement (variance 1) and the sum of its children's estimates (variance `below`) are two independent
    estimates of the same sum, averaged with weights below : 1. Downward, what a node's final value differs from its
    children's sum is shared among them by their variances, which is the projection on what adds up.
    """

    branching: int = 2
    levels: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "branching", checks.whole(self.branching, "branching", least=2, most=_MOST_BRANCHES))
        height = 1
        nodes = self.cells
        while nodes > 1:
            height, nodes = height + 1, -(-nodes // self.branching)
        levels = height if self.levels is None else checks.whole(self.levels, "levels", most=height)
        object.__setattr__(self, "levels", levels)

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        leaf = _Node(0.0, 1.0, 1.0, 1.0, 1.0)
        levels = [_Level(self.cells, leaf, leaf, 0)]
        while len(levels) < self.height:
            under = levels[-1]
            nodes = -(-under.nodes // self.branching)
            children = under.nodes - (nodes - 1) * self.branching
            usual = _parent(under.usual, under.usual, self.branching)
            levels.append(_Level(nodes, usual, _parent(under.usual, under.last, children), children))
        return tuple(levels)

    @property
    def height(self) -> int:
        """The number of levels measured."""
        assert self.levels is not None
        return self.levels

    @property
    def measurements(self) -> int:
        return sum(level.nodes for level in self._levels)

    def measure(self, cells: Vector) -> Vector:
        return in_parts(self._sums, self.cells, cells)

    def _sums(self, cells: NDArray[np.int64]) -> Vector:
        sums = [cells]
        for _ in self._levels[1:]:
            sums.append(_fold(sums[-1], self.branching))
        return np.concatenate(sums)

    @property
    def column_norms(self) -> Reach:
        return Reach(self.height, self.height, 1)

    @property
    def column_gaps(self) -> Reach:
        apart = 2 * sum(level.nodes > 1 for level in self._levels)  # the first cell and the last meet only in a root
        most = max(apart, self.height)
        return Reach(most, most, 1)

    def split(self, measured: Floats) -> list[Floats]:
        """Measurements level by level, the cells first; the last axis is the measurements."""
        ends = np.cumsum([level.nodes for level in self._levels])
        return np.split(measured, ends[:-1], axis=-1)

    def estimate(self, noisy: Floats) -> Floats:
        measured = self.split(np.asarray(noisy, dtype=np.float64))
        upward, sums = [measured[0]], [measured[0]]
        for level, own in zip(self._levels[1:], measured[1:], strict=True):
            total = _fold(upward[-1], self.branching)
            value = level.usual.own * own + (1 - level.usual.own) * total
            value[..., -1] = level.last.own * own[..., -1] + (1 - level.last.own) * total[..., -1]
            upward.append(value)
            sums.append(total)
        final = upward[-1]
        for (under, level), low, total in reversed(
            list(zip(pairwise(self._levels), upward[:-1], sums[1:], strict=True))
        ):
            gap = (final - total) / level.usual.below
            gap[..., -1] = (final[..., -1] - total[..., -1]) / level.last.below
            shared = _spread(gap, self.branching, under.nodes)
            final = low + under.usual.spread * shared
            final[..., -1] = low[..., -1] + under.last.spread * shared[..., -1]
        return final

    def weights(self, queries: Floats) -> Floats:
        """The weights of the noisy measurements in linear queries of the estimate: `estimate` backwards."""
        down, up = [np.asarray(queries, dtype=np.float64)], []
        for under, level in pairwise(self._levels):
            share = down[-1] * under.usual.spread
            share[..., -1] = down[-1][..., -1] * under.last.spread
            above = _fold(share, self.branching) / level.usual.below
            above[..., -1] *= level.usual.below / level.last.below
            up.append(down[-1] - _spread(above, self.branching, under.nodes))
            down.append(above)
        levels = [down[-1]]
        for level, partial in reversed(list(zip(self._levels[1:], up, strict=True))):
            total = levels[-1]
            rest = (1 - level.usual.own) * total
            rest[..., -1] = (1 - level.last.own) * total[..., -1]
            own = level.usual.own * total
            own[..., -1] = level.last.own * total[..., -1]
            levels[-1] = own
            levels.append(partial + _spread(rest, self.branching, partial.shape[-1]))
        return np.concatenate(levels[::-1], axis=-1)

    def mixing(self, workload: Workload) -> Mixing:
        if isinstance(workload, Prefixes):
            blocks = [np.arange(start, min(start + _BLOCK, self.cells)) for start in range(0, self.cells, _BLOCK)]
            return Mixing(*map(np.concatenate, zip(*map(self.prefix_norms, blocks), strict=True)))
        if isinstance(workload, Cells):
            starts = np.array([0, *((level.nodes - 1) * self.branching**k for k, level in self._top_down)])
            counts = np.diff(np.append(starts, self.cells))
            return Mixing(*(np.repeat(norm, counts) for norm in self._norms(starts, 0)))
        matrix = workload.matrix
        size = max(1, 2**24 // self.measurements)
        parts = [row_norms(self.weights(matrix[at : at + size])) for at in range(0, len(matrix), size)]
        return Mixing(*map(np.concatenate, zip(*parts, strict=True)))

    def prefix_norms(self, cells: Any, all_of_them: float = 0.0) -> Mixing:
        """The mixing of the prefixes that end with these cells, plus so many times the total of all."""
        return self._norms(np.asarray(cells, dtype=np.int64), 1, all_of_them)

    @property
    def _top_down(self) -> list[tuple[int, _Level]]:
        """Where a cell's path meets the cut-off edge of the tree decides the norms of its weights."""
        return list(enumerate(self._levels))[::-1]

    def _norms(self, cells: Any, before: int, everywhere: float = 0.0) -> Mixing:
        """The norms of `weights` for each of the cells (before = 0) or for all cells up to each (before = 1), where all
        cells have weight `everywhere` more.

        Along a cell's path to the top, let f be the weight that the query gives to the path's node (as `weights` works
        it out upward: the mean of its children's, by variance; nodes to the left of the path have weight `before`,
        those to the right 0), and t what flows down to the node. Then a node beside the path gets t = (its weight) -
        f(parent) + (1 - own) t(parent), and its subtree's measurements weigh |t| times the norms of its own estimate.
        A weight that all cells have falls out of the differences, and counts at the top alone.
        """
        path, lasts, shares, counts = cells, [], [np.ones(cells.size)], []
        for under, level in pairwise(self._levels):
            parent = path // self.branching
            left = path - parent * self.branching
            last, cut = path == under.nodes - 1, parent == level.nodes - 1
            spread = np.where(last, under.last.spread, under.usual.spread)
            below = np.where(cut, level.last.below, level.usual.below)
            shares.append((before * left * under.usual.spread + spread * shares[-1]) / below)
            counts.append(left)
            lasts.append(last)
            path = parent
        lasts.append(path == self._levels[-1].nodes - 1)
        flow, tops = shares[-1] + everywhere, self._levels[-1]
        own = np.where(lasts[-1], tops.last.own, tops.usual.own)
        l1, l2, linf = own * np.abs(flow), (own * flow) ** 2, own * np.abs(flow)
        # Whole trees beside the path, where there is no root.
        right = tops.nodes - 1 - path
        for weight, count, last in ((before + everywhere, path, 0 * path), (everywhere, right, right > 0)):
            l1 = l1 + abs(weight) * (count * tops.usual.l1 + last * (tops.last.l1 - tops.usual.l1))
            l2 = l2 + weight**2 * (count * tops.usual.spread + last * (tops.last.spread - tops.usual.spread))
            heaviest = np.where(count > last, tops.usual.linf, 0.0)
            linf = np.maximum(linf, abs(weight) * np.maximum(heaviest, last * tops.last.linf))
        for k in range(self.height - 2, -1, -1):
            under, level, last, cut = self._levels[k], self._levels[k + 1], lasts[k], lasts[k + 1]
            usual, edge = under.usual, under.last
            passed = (1 - own) * flow - shares[k + 1]
            left, right = counts[k], np.where(cut, level.last_children, self.branching) - counts[k] - 1
            beyond = cut & ~last  # is the last node of the level among the siblings to the right?
            to_left, to_right = np.abs(passed + before), np.abs(passed)
            flow = passed + shares[k]
            own = np.where(last, edge.own, usual.own)
            l1 = l1 + own * np.abs(flow) + to_left * left * usual.l1
            l1 += to_right * (right * usual.l1 + beyond * (edge.l1 - usual.l1))
            l2 = l2 + (own * flow) ** 2 + to_left**2 * left * usual.spread
            l2 += to_right**2 * (right * usual.spread + beyond * (edge.spread - usual.spread))
            heaviest = np.where(right > beyond, usual.linf, 0.0)
            heaviest = np.where(beyond, np.maximum(heaviest, edge.linf), heaviest)
            linf = np.maximum(np.maximum(linf, own * np.abs(flow)), to_right * heaviest)
            linf = np.maximum(linf, np.where(left > 0, to_left * usual.linf, 0.0))
        return Mixing(l1, np.sqrt(l2), linf)


def _parent(usual: _Node, last: _Node, children: int) -> _Node:
    """A node with so many children, of which one is like `last`."""
    below = (children - 1) * usual.spread + last.spread
    own = below / (1 + below)
    l1 = own + (1 - own) * ((children - 1) * usual.l1 + last.l1)
    heaviest = max(usual.linf, last.linf) if children > 1 else last.linf
    return _Node(below, own, own, l1, max(own, (1 - own) * heaviest))


def _fold(values: Any, branching: int) -> Any:
    """Sums of neighbours in groups; the last group may be smaller."""
    if branching > 16:
        return np.add.reduceat(values, np.arange(0, values.shape[-1], branching), axis=-1)
    total = values[..., ::branching].copy()
    for place in range(1, branching):
        part = values[..., place::branching]
        total[..., : part.shape[-1]] += part
    return total


def _spread(values: Floats, branching: int, size: int) -> Floats:
    """Each value for its whole group."""
    return np.asarray(np.repeat(values, branching, axis=-1)[..., :size])
