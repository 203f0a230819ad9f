"""Quantiles of every group at once, from noisy counts in a tree of intervals, and histograms.

The engine gives exact whole numbers: per group and leaf, the weights of the rows there, where a unit's rows are
weighted so that its counts, one per group, form a vector of length at most R (L2, or L1 for Laplace noise).

Proof of the price. The counts of one level of the tree, of all groups, form a vector. A unit's part of it is no longer
than R: in each group, sum c_i^2 <= (sum c_i)^2 over its nodes. With h levels it is sqrt(h) R long (L1: h R), which the
law's scale was chosen for. All that follows reads nothing but these counts plus independent noise: post-processing.

Noise is drawn for a node when it is first looked at. Which nodes are looked at depends on noisy counts alone, and each
node's noise is independent of all the rest; so what is seen has exactly the law of drawing noise for every node first
and then reading the same ones. A node has one draw: `Counts.children` opens each level once, for different nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..laws import Law
from ..noise import Noise
from .leaves import Floats, Integers, Leaves

_INWARD = 3.0
"""MIN and MAX are read so many standard deviations of the rank inside."""
_SURE = 3.0
_CELLS = 2**22  # numbers in memory at a time


@dataclass(frozen=True)
class Quantiles:
    """Per group, and for values and their intervals per p, in numbers (`Leaves.shown` makes dates of them).

    values      estimates: they never fall as p grows (but MIN and MAX, 0 and 1, have a rule of their own)
    lower       where the true quantiles of the weighted rows lie: intervals at confidence 1 - alpha, each for itself
    upper
    rows        estimates of the rows of the groups, by weight
    rows_std    the standard deviation of the noise in them
    unreliable  where the rows may well be none: noise hides whatever is there
    """

    values: Floats
    lower: Floats
    upper: Floats
    rows: Floats
    rows_std: float
    unreliable: NDArray[np.bool_]


class Counts:
    """Exact counts per group and leaf, of which only noisy sums come out."""

    def __init__(self, groups: int, codes: Any, leaves: Any, sums: Any, tree: Leaves, law: Law, noise: Noise) -> None:
        self.groups, self.tree, self.law = groups, tree, law
        self._noise = noise
        codes, leaves = np.asarray(codes, dtype=np.int64), np.asarray(leaves, dtype=np.int64)
        known = (codes >= 0) & (codes < groups) & (leaves >= 0) & (leaves < tree.count)
        places = codes[known] * tree.count + leaves[known]
        order = np.argsort(places, kind="stable")
        self._places = places[order]
        # Running totals may wrap around; their differences are exact wherever a sum by itself fits 64 bits.
        with np.errstate(over="ignore"):
            self._totals = np.append(0, np.cumsum(np.asarray(sums, dtype=np.int64)[known][order]))

    def children(self, level: int, groups: Integers, nodes: Integers) -> Integers:
        """Noisy counts of the children of these nodes: a row for each. No node may be asked for twice."""
        branches, stride = self.tree.fanout[level], self.tree.strides[level]
        ends = (nodes[:, None] * branches + np.arange(branches + 1)) * stride
        places = groups[:, None] * self.tree.count + np.minimum(ends, self.tree.count)
        found = self._totals[np.searchsorted(self._places, places.reshape(-1))].reshape(places.shape)
        noisy = found[:, 1:] - found[:, :-1]
        noisy += self._drawn(level, groups, nodes, branches)
        noisy[ends[:, :-1] >= self.tree.count] = 0  # no such leaves: the public knows that
        return noisy

    def _drawn(self, level: int, groups: Integers, nodes: Integers, branches: int) -> Integers:
        return self._noise.draw(self.law, nodes.size * branches).reshape(-1, branches)


class _Estimates:
    """Estimates of the children of nodes, from their noisy counts and, where that pays, those one level further down.

    The average is that of least variance. Weights in a running total, inside a node, add up to 0; so these averages
    are uncorrelated with what is read off the lower level itself, and variances of levels add up.
    """

    def __init__(self, counts: Counts) -> None:
        self.tree, self._counts = counts.tree, counts
        self._nodes = math.prod(self.tree.fanout)  # more than there are in any level
        self._ahead: tuple[Integers, Integers] | None = None  # nodes whose children are counted already

    def children(self, level: int, groups: Integers, nodes: Integers) -> Floats:
        """Of different nodes, by group and node in rising order: at each level those of the last one, or fewer."""
        own = self._counted(level, groups, nodes)
        if self.tree.spreads[level] == 1:
            self._ahead = None
            return own.astype(np.float64)
        branches = self.tree.fanout[level]
        children, owners = (nodes[:, None] * branches + np.arange(branches)).reshape(-1), np.repeat(groups, branches)
        below = self._counts.children(level + 1, owners, children)
        self._ahead = owners * self._nodes + children, below
        some = _children(self.tree, level + 1, children)
        return ((some * own.reshape(-1) + below.sum(axis=1)) / (some + 1)).reshape(own.shape)

    def _counted(self, level: int, groups: Integers, nodes: Integers) -> Integers:
        if self._ahead is None:
            return self._counts.children(level, groups, nodes)
        known, counts = self._ahead
        return counts[np.searchsorted(known, groups * self._nodes + nodes)]


def quantiles(
    groups: int,
    codes: Any,
    leaves: Any,
    sums: Any,
    *,
    tree: Leaves,
    law: Law,
    noise: Noise,
    ps: Sequence[float],
    step: float = 2.0**-16,
    alpha: float = 0.05,
) -> Quantiles:
    """The quantiles `ps` of each of `groups` groups, from the exact sums per (group code, leaf).

    law    of the noise, in steps; its scale is for all levels of the tree together
    step   how many rows a whole number of 1 in `sums` is
    ps     from 0 to 1; 0 is MIN and 1 is MAX, read where the rank first stands out from the noise: 3 standard
           deviations of the noise inside, so they are biased inward. Anything further out is hidden, as it should be
    """
    return read(Counts(groups, codes, leaves, sums, tree, law, noise), ps, step=step, alpha=alpha)


def read(counts: Counts, ps: Sequence[float], *, step: float, alpha: float) -> Quantiles:
    """The same, of noisy counts. Groups are taken by the thousand, to keep memory small."""
    tree = counts.tree
    searches = tuple(each for p in ps for each in _searches(tree, counts.law, float(p), alpha))
    block = max(_CELLS // (len(searches) * (2 + max(tree.fanout))), 1)
    starts = range(0, max(counts.groups, 1), block)
    parts = [_block(counts, np.arange(at, min(at + block, counts.groups)), ps, searches) for at in starts]
    values, low, high, totals = (np.concatenate(each) for each in zip(*parts, strict=True))
    spread = math.sqrt(tree.fanout[0] * tree.spreads[0]) * counts.law.std
    return Quantiles(values, low, high, totals * step, spread * step, totals < _SURE * spread)


@dataclass(frozen=True, eq=False)
class _Search:
    """A leaf to find, in terms of the running totals F before each leaf, N in all.

    slack  per edge, from the lower bound to the upper one
    first  the first leaf with F >= p N + slack at its upper edge; else the last one with F <= p N + slack at its lower
    tame   should the rank stay on its side of the median, however large the slack?
    """

    p: float
    slack: Floats
    first: bool
    tame: bool = False


@lru_cache(maxsize=64)
def _searches(tree: Leaves, law: Law, p: float, alpha: float) -> tuple[_Search, _Search, _Search]:
    """For the lower end of the interval, the value, and the upper end.

    The true quantile is in a leaf with F <= p N at its lower edge and F >= p N at its upper, for the true F and N. With
    probability 1 - alpha the estimates of F - p N at these two edges are not beyond their widths on the wrong side (a
    width at alpha leaves alpha/2 to each), so the leaf is among those that the estimates do not rule out, and the
    interval ends with the first and the last of them.

    MIN and MAX: the value is where the rank first exceeds 3 standard deviations of its noise. The true one may be
    anywhere further out, down to the bound; further in only where noise alone makes such a rank.
    """
    deviations = _deviations(tree, p)
    widths, inward = _widths(tree, law, deviations, alpha), _INWARD * law.std * deviations
    nothing = np.zeros_like(widths)
    if p == 0:
        return _Search(0.0, nothing, True), _Search(0.0, inward, True, True), _Search(0.0, widths, True)
    if p == 1:
        return _Search(1.0, -widths, False), _Search(1.0, -inward, False, True), _Search(1.0, nothing, False)
    return _Search(p, -widths, True), _Search(p, nothing, True), _Search(p, widths, False)


def _block(
    counts: Counts, groups: Integers, ps: Sequence[float], searches: Sequence[_Search]
) -> tuple[Floats, Floats, Floats, Floats]:
    tree, estimates = counts.tree, _Estimates(counts)
    top = estimates.children(0, groups, np.zeros_like(groups))
    totals = top.sum(axis=1)
    leaf, part = _descend(estimates, groups, _rising(top), searches)
    shape = (len(groups), len(ps), 3)
    leaf, part = leaf.reshape(shape), part.reshape(shape)
    chances = np.broadcast_to(np.asarray(ps, dtype=np.float64), shape[:2])
    extreme = (chances == 0) | (chances == 1)  # with the outer edge of their leaf: a pile at a bound stays there
    values = tree.at(leaf[..., 1], np.where(extreme, chances, part[..., 1]))
    guess = float(tree.lower) + chances * float(tree.upper - tree.lower)
    hidden = totals[:, None] <= 0
    values = np.where(hidden, guess if tree.type == "real" else np.floor(guess), values)
    low = np.where(hidden | (chances == 0), float(tree.lower), tree.least(leaf[..., 0]))
    high = np.where(hidden | (chances == 1), float(tree.upper), tree.most(leaf[..., 2]))
    return values, np.minimum(low, values), np.maximum(high, values), totals


def _rising(counts: Floats) -> Floats:
    """Running totals from 0 to the total (0 where that is negative), never falling. Where no running total is off by
    more than E, none of these is."""
    rough = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=rough[:, 1:])
    rising = np.maximum.accumulate(rough, axis=1)
    rising += np.minimum.accumulate(rough[:, ::-1], axis=1)[:, ::-1]
    return np.maximum(np.minimum(rising / 2, rough[:, -1:]), 0.0)


def _descend(
    estimates: _Estimates, groups: Integers, edges: Floats, searches: Sequence[_Search]
) -> tuple[Integers, Floats]:
    """For each group and search (columns): the leaf that is found, and which part of the leaf's rows is below.

    Below a node, its children are made to add up to what their parent is believed to hold, each by an equal share of
    the difference: of all estimates that add up, the nearest.
    """
    tree = estimates.tree
    slack = np.stack([each.slack for each in searches])
    search = np.tile(np.arange(len(searches)), len(groups))
    first = np.array([each.first for each in searches])[search]
    at = np.repeat(np.arange(len(groups)), len(searches))  # the row of `edges` where each search goes on
    owner, held = groups[at], edges[at, -1]
    wanted = np.array([each.p for each in searches])[search] * held
    bend = np.where(np.array([each.tame for each in searches])[search], held / 2, np.inf)
    node, before = np.zeros(at.size, dtype=np.int64), np.zeros(at.size)
    for level, (branches, stride) in enumerate(zip(tree.fanout, tree.strides, strict=True)):
        if level:
            _, one, at = np.unique(owner * tree.count + node, return_index=True, return_inverse=True)
            below = estimates.children(level, owner[one], node[one])
            there = np.arange(branches) < _children(tree, level, node[one])[:, None]
            gap = (held[one] - below.sum(axis=1)) / there.sum(axis=1)
            edges = _rising(below + gap[:, None] * there)
        inner = edges[at, 1:-1] + before[:, None]
        place = (node[:, None] * branches + np.arange(1, branches)) * stride
        over, place = place >= tree.count, np.minimum(place, tree.count)
        sought = wanted[:, None] + np.clip(slack[search[:, None], place], -bend[:, None], bend[:, None])
        passed = over | np.where(first[:, None], inner >= sought, inner > sought)
        # The first edge passed ends the first leaf; after the last edge not passed, the last leaf begins.
        ends = np.pad(passed, ((0, 0), (0, 1)), constant_values=True).argmax(axis=1)
        begins = branches - 1 - np.pad(~passed[:, ::-1], ((0, 0), (0, 1)), constant_values=True).argmax(axis=1)
        child = np.where(first, ends, begins)
        before = before + edges[at, child]
        held = edges[at, child + 1] - edges[at, child]
        node = node * branches + child
    part = np.clip((wanted - before) / np.where(held > 0, held, 1.0), 0.0, 1.0)
    shape = (len(groups), len(searches))
    return node.reshape(shape), np.where(held > 0, part, 0.5).reshape(shape)


def _children(tree: Leaves, level: int, nodes: Integers) -> Integers:
    """How many children of these nodes hold any leaf."""
    leaves = tree.count - nodes * tree.fanout[level] * tree.strides[level]
    return np.clip(-(-leaves // tree.strides[level]), 1, tree.fanout[level])


def _deviations(tree: Leaves, p: float) -> Floats:
    """The standard deviation of the estimate of F - p N at each edge of the leaves, where one count's is 1.

    Of b children with u = j + f before the edge (j of them whole, and f of the next as that is divided below): at the
    top, the counts before weigh 1 - p, those after -p and the divided one f - p, in all j + f^2 - 2 p u + b p^2. Below,
    children are held to their parent's total, so their weights are taken from their mean: j + f^2 - u^2/b. (Where the
    last nodes of a level have fewer children, estimates are a little better than that.)
    """
    leaf = np.maximum(np.arange(tree.count + 1) - 1, 0)  # an edge is the upper one of the leaf before it
    share = np.ones(tree.count + 1)
    share[0] = 0.0
    square = np.zeros(tree.count + 1)
    for level in range(tree.levels - 1, -1, -1):
        node = leaf // (tree.fanout[level] * tree.strides[level])
        whole = leaf // tree.strides[level] - node * tree.fanout[level]
        there = _children(tree, level, node)
        used = whole + share
        weights = whole + share**2 + (p * p * there - 2 * p * used if level == 0 else -(used**2) / there)
        square += weights * tree.spreads[level]
        share = used / there
    return np.sqrt(np.maximum(square, 0.0))


def _widths(tree: Leaves, law: Law, deviations: Floats, alpha: float) -> Floats:
    return law.mixed_half_width(
        deviations * math.sqrt(sum(tree.fanout)), deviations, np.minimum(deviations, 1.0), alpha
    )


def rank_error(tree: Leaves, law: Law, p: float, *, step: float = 2.0**-16, alpha: float = 0.05) -> float:
    """By how many rows the rank of a quantile is off, at most, with probability 1 - alpha: known before anything is
    spent. (The value is then off by so many rows' distance, and by a leaf.)"""
    return float(_widths(tree, law, _deviations(tree, p), alpha).max()) * step


def histogram(
    groups: int, codes: Any, bins: Any, sums: Any, *, size: int, law: Law, noise: Noise, step: float = 2.0**-16
) -> Floats:
    """The rows in each of `size` bins, per group, each with the law's noise: one level, so the law's scale is for R.
    Empty bins and groups have noise like all others."""
    codes, bins = np.asarray(codes, dtype=np.int64), np.asarray(bins, dtype=np.int64)
    known = (codes >= 0) & (codes < groups) & (bins >= 0) & (bins < size)
    exact = np.zeros(groups * size, dtype=np.int64)
    np.add.at(exact, codes[known] * size + bins[known], np.asarray(sums, dtype=np.int64)[known])
    return (exact + noise.draw(law, exact.size)).astype(np.float64).reshape(groups, size) * step
