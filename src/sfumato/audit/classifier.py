"""Boosted trees that learn to tell neighbours' outputs apart: Friedman, "Greedy function approximation" (2001).

Bichsel, Steffen, Bogunovic and Vechev (DP-Sniper, 2021) show why a classifier is enough: the posterior of "which
neighbour was it" is a monotone function of the likelihood ratio, and the events {posterior >= t} are the best ones. A
classifier that is wrong costs power, never soundness: its events are judged on samples that it has not seen.

Trees rather than a network: they need no scaling, find products of columns by themselves, train in a second in numpy,
and are written down as three small tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .counting import Floats
from .views import Trees, different

_TREES = 40
_DEPTH = 3
_RATE = 0.3
_BINS = 32
_MOST = 12_000  # samples a side
_COLUMNS = 24
_RIDGE = 4.0  # pseudo-observations in each leaf, so that a few odd outputs are not learnt by heart
_NAME = "classifier"


def trained(first: Floats, second: Floats) -> Trees | None:
    """A view that is large where an output looks like the first sample; None where no column differs at all."""
    first, second = first[:_MOST], second[:_MOST]
    sample = np.concatenate([first, second])
    columns = different(first, second)[:_COLUMNS]
    if columns.size == 0:
        return None
    edges = [_cuts(sample[:, i]) for i in columns]
    binned = np.stack(
        [np.searchsorted(each, sample[:, i], side="left") for i, each in zip(columns, edges, strict=True)], axis=1
    )
    label = np.concatenate([np.ones(len(first)), np.zeros(len(second))])
    score = np.full(len(sample), np.log(len(first) / len(second)))
    nodes = 2**_DEPTH - 1
    split_columns, cuts = np.zeros((_TREES, nodes), dtype=np.int64), np.zeros((_TREES, nodes))
    leaves = np.zeros((_TREES, nodes + 1))
    for tree in range(_TREES):
        chance = 1 / (1 + np.exp(-np.clip(score, -40, 40)))
        slope, bend = label - chance, np.maximum(chance * (1 - chance), 1e-9)
        node = np.zeros(len(sample), dtype=np.int64)
        for level in range(_DEPTH):
            start = 2**level - 1
            column, cut = _splits(binned, node - start, 2**level, slope, bend)
            split_columns[tree, start : start + 2**level] = columns[column]
            for k in range(2**level):
                cuts[tree, start + k] = edges[column[k]][cut[k]]
            node = 2 * node + 1 + (binned[np.arange(len(sample)), column[node - start]] > cut[node - start])
        leaf = node - nodes
        total, weight = (np.bincount(leaf, x, minlength=nodes + 1) for x in (slope, bend))
        leaves[tree] = _RATE * total / (weight + _RIDGE / 4)
        score += leaves[tree][leaf]
    return Trees(_NAME, split_columns, cuts, leaves)


def _cuts(column: Floats) -> Floats:
    """Where a column is cut, at most: "above the value" of every value but the largest, or of quantiles."""
    values = np.unique(column)
    if values.size > _BINS:
        values = np.unique(np.quantile(column, np.linspace(0, 1, _BINS), method="nearest"))
    return np.asarray(values[:-1])


def _splits(
    binned: NDArray[np.intp], node: NDArray[np.int64], nodes: int, slope: Floats, bend: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each node the column, and the last bin of its left side, that gain most (Newton's step, second order)."""
    gains = np.full((binned.shape[1], nodes, _BINS), -np.inf)
    for i in range(binned.shape[1]):
        bins = int(binned[:, i].max()) + 1
        place = node * bins + binned[:, i]
        total, weight = (
            np.cumsum(np.bincount(place, x, minlength=nodes * bins).reshape(nodes, bins), axis=1) for x in (slope, bend)
        )
        left, right = total[:, :-1], total[:, -1:] - total[:, :-1]
        gains[i, :, : bins - 1] = left**2 / (weight[:, :-1] + _RIDGE / 4) + right**2 / (
            weight[:, -1:] - weight[:, :-1] + _RIDGE / 4
        )
    flat = gains.transpose(1, 0, 2).reshape(nodes, -1).argmax(axis=1)
    return flat // _BINS, flat % _BINS
