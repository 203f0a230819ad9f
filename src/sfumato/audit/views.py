"""Numbers made of outputs, by which events are cut: mixtures, sums of curves, cells and trees.

An event of an audit is "this number is at least t", "at most t" or "is t". By Neyman and Pearson the best number is
the likelihood ratio of the two neighbours; where the law is known it is computed, elsewhere it is learnt from samples.
However a number was found, it is written down as JSON, so that the same event can be counted again on fresh runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .counting import Floats

_COORDINATES = 16  # looked at one by one
_BINS = 24
_CELL_COLUMNS, _CELL_BINS, _CELL_FULL = 3, 12, 10  # the last: outputs in a cell, on average
_LISTED = 500  # whole outputs


@dataclass(frozen=True)
class View:
    """One number for each row of a reading."""

    form: ClassVar[str]
    name: str

    def of(self, sample: Floats) -> Floats:
        raise NotImplementedError

    def encode(self) -> dict[str, Any]:
        """As JSON."""
        raise NotImplementedError


@dataclass(frozen=True)
class Mix(View):
    """A weighted sum of columns."""

    form = "mix"
    weights: Floats

    def of(self, sample: Floats) -> Floats:
        used = np.flatnonzero(self.weights)
        return np.asarray(sample[:, used] @ self.weights[used])  # so that a lone column keeps every bit

    def encode(self) -> dict[str, Any]:
        return {"form": self.form, "name": self.name, "weights": self.weights.tolist()}


@dataclass(frozen=True)
class Curves(View):
    """A sum of functions of one column each: steps between edges, or straight lines between points."""

    form = "curves"
    columns: tuple[int, ...]
    at: tuple[Floats, ...]
    heights: tuple[Floats, ...]  # one more than edges; as many as points
    lines: bool = False

    def of(self, sample: Floats) -> Floats:
        total = np.zeros(len(sample))
        for column, at, heights in zip(self.columns, self.at, self.heights, strict=True):
            cells = sample[:, column]
            total += np.interp(cells, at, heights) if self.lines else heights[np.searchsorted(at, cells, side="right")]
        return total

    def encode(self) -> dict[str, Any]:
        curves = [
            {"column": column, "at": at.tolist(), "heights": heights.tolist()}
            for column, at, heights in zip(self.columns, self.at, self.heights, strict=True)
        ]
        return {"form": self.form, "name": self.name, "lines": self.lines, "curves": curves}


@dataclass(frozen=True)
class Cells(View):
    """A number for each cell of a grid over a few columns."""

    form = "cells"
    columns: tuple[int, ...]
    edges: tuple[Floats, ...]
    heights: Floats  # one axis for each column

    def of(self, sample: Floats) -> Floats:
        return np.asarray(self.heights[places_in(sample, self.columns, self.edges)])

    def encode(self) -> dict[str, Any]:
        axes = [
            {"column": column, "edges": edges.tolist()} for column, edges in zip(self.columns, self.edges, strict=True)
        ]
        return {"form": self.form, "name": self.name, "axes": axes, "heights": self.heights.tolist()}


@dataclass(frozen=True)
class Listed(View):
    """A number for each whole output that was seen often, and one for all others."""

    form = "listed"
    rows: Floats  # an output each
    heights: Floats  # one more: the last is for all others

    def of(self, sample: Floats) -> Floats:
        heights = {row.tobytes(): height for row, height in zip(self.rows + 0.0, self.heights.tolist(), strict=False)}
        other = float(self.heights[-1])
        return np.array([heights.get(row.tobytes(), other) for row in sample + 0.0])  # + 0.0: there is only one zero

    def encode(self) -> dict[str, Any]:
        return {
            "form": self.form,
            "name": self.name,
            "rows": self.rows.tolist(),
            "heights": self.heights.tolist(),
        }


@dataclass(frozen=True)
class Trees(View):
    """A sum of binary trees of one depth: each asks `depth` times whether a column exceeds a cut.

    columns, cuts  (trees, 2^depth - 1), the questions of each tree, level by level
    leaves         (trees, 2^depth)
    """

    form = "trees"
    columns: NDArray[np.int64]
    cuts: Floats
    leaves: Floats

    def of(self, sample: Floats) -> Floats:
        depth, every = int(np.log2(self.leaves.shape[1])), np.arange(len(sample))
        total = np.zeros(len(sample))
        for columns, cuts, leaves in zip(self.columns, self.cuts, self.leaves, strict=True):
            node = np.zeros(len(sample), dtype=np.int64)
            for _ in range(depth):
                node = 2 * node + 1 + (sample[every, columns[node]] > cuts[node])
            total += leaves[node - len(columns)]
        return total

    def encode(self) -> dict[str, Any]:
        trees = {name: getattr(self, name).tolist() for name in ("columns", "cuts", "leaves")}
        return {"form": self.form, "name": self.name, **trees}


def decode(data: Mapping[str, Any], width: int) -> View:
    """What a view's `encode` wrote, for rows of so many columns; anything else is a ValueError, KeyError or
    TypeError."""
    name, form = data["name"], data["form"]
    if not isinstance(name, str):
        raise ValueError("a name that is no text")
    if form == Mix.form:
        weights = _floats(data["weights"])
        _hold(weights.shape == (width,))
        return Mix(name, weights)
    if form == Curves.form:
        lines, curves = bool(data["lines"]), data["curves"]
        columns = _columns([curve["column"] for curve in curves], width)
        at, heights = ([_floats(curve[part]) for curve in curves] for part in ("at", "heights"))
        for a, h in zip(at, heights, strict=True):
            _hold(
                a.ndim == h.ndim == 1 and h.size == a.size + (not lines) and h.size > 0 and bool((np.diff(a) > 0).all())
            )
        return Curves(name, columns, tuple(at), tuple(heights), lines)
    if form == Cells.form:
        columns = _columns([axis["column"] for axis in data["axes"]], width)
        edges, table = tuple(_floats(axis["edges"]) for axis in data["axes"]), _floats(data["heights"])
        _hold(table.shape == tuple(each.size + 1 for each in edges))
        return Cells(name, columns, edges, table)
    if form == Listed.form:
        rows, values = _floats(data["rows"]), _floats(data["heights"])
        _hold(rows.ndim == 2 and rows.shape[1] == width and values.shape == (len(rows) + 1,))
        return Listed(name, rows, values)
    if form == Trees.form:
        questions, cuts, leaves = np.array(data["columns"]), _floats(data["cuts"]), _floats(data["leaves"])
        _hold(
            questions.dtype.kind == "i" and questions.ndim == 2 and questions.shape == cuts.shape and leaves.ndim == 2
        )
        _hold(len(leaves) == len(cuts) and leaves.shape[1] == cuts.shape[1] + 1 and leaves.shape[1] in (2, 4, 8, 16))
        _hold(bool((questions >= 0).all() and (questions < width).all()))
        return Trees(name, questions.astype(np.int64), cuts, leaves)
    raise ValueError("a view of a form that is not known")


def _hold(condition: bool) -> None:
    if not condition:
        raise ValueError("a view whose parts do not fit together")


def _floats(data: Any) -> Floats:
    numbers = np.array(data, dtype=np.float64)
    _hold(bool(np.isfinite(numbers).all()))
    return numbers


def _columns(columns: Sequence[Any], width: int) -> tuple[int, ...]:
    _hold(all(type(column) is int and 0 <= column < width for column in columns))
    return tuple(columns)


# ------------------------------------------------------------------------------------------------ learnt from samples


def simple(names: Sequence[str]) -> Iterator[View]:
    """What needs no samples: coordinates, their sum, neighbouring differences."""
    width = len(names)
    eye = np.eye(width)
    some = min(width, _COORDINATES)
    yield from (Mix(names[i], eye[i]) for i in range(some))
    yield from (Mix(names[i], eye[i]) for i in range(some, width) if names[i].startswith("("))
    if width > 1:
        yield Mix("sum of outputs", np.array([float(not name.startswith("(")) for name in names]))
        yield from (Mix(f"{names[i]} - {names[i + 1]}", eye[i] - eye[i + 1]) for i in range(some - 1))


def fitted(first: Floats, second: Floats) -> Iterator[View]:
    """The best linear direction, and the likelihood ratio by histograms: column by column, and of a few together."""
    columns = different(first, second)
    if columns.size == 0:
        return
    yield _ratio_of_columns(first, second, columns)
    if columns.size > 1:
        yield _discriminant(first, second)
        yield _ratio_of_cells(first, second, columns[:_CELL_COLUMNS])
        yield from _ratio_of_outputs(first, second)


def different(first: Floats, second: Floats) -> NDArray[np.int64]:
    """Columns that are not constant, by how far apart their two distributions lie: the widest gap comes first."""
    both = np.concatenate([first, second])
    moving = np.flatnonzero(both.min(axis=0) != both.max(axis=0))
    gaps = [gap(first[:, i], second[:, i]) for i in moving]
    return moving[np.argsort(-np.array(gaps), kind="stable")] if moving.size else moving


def gap(one: Floats, other: Floats) -> float:
    """The largest distance between two empirical distribution functions."""
    values = np.unique(np.concatenate([one, other]))
    here, there = (np.searchsorted(np.sort(x), values, side="right") / max(len(x), 1) for x in (one, other))
    return float(np.abs(here - there).max())


def _discriminant(first: Floats, second: Floats) -> View:
    """Fisher's direction. Where noise is shared between coordinates, it finds the mix that the noise leaves alone."""
    spread = np.concatenate([first, second]).std(axis=0)
    spread[spread == 0] = 1.0
    one, other = first / spread, second / spread
    within = np.atleast_2d(np.cov(one.T) + np.cov(other.T))
    ridge = 1e-9 * max(float(np.trace(within)), 1e-9) * np.eye(len(spread))
    weights = np.linalg.solve(within + ridge, one.mean(axis=0) - other.mean(axis=0)) / spread
    return Mix("best linear mix of outputs", np.nan_to_num(weights))


def edges_of(column: Floats, bins: int) -> Floats:
    """Where a histogram cuts: at every value where they are few, else into bins that are equally full."""
    values = np.unique(column)
    if values.size > bins:
        values = np.unique(np.quantile(column, np.linspace(0, 1, bins), method="nearest"))
    return np.asarray(values[1:])


def _ratio_of_columns(first: Floats, second: Floats, columns: NDArray[np.int64]) -> View:
    """The likelihood ratio as if columns were independent."""
    at, heights = [], []
    for i in columns:
        edges = edges_of(np.concatenate([first[:, i], second[:, i]]), _BINS)
        counts = [
            np.bincount(np.searchsorted(edges, x[:, i], side="right"), minlength=edges.size + 1)
            for x in (first, second)
        ]
        at.append(edges)
        heights.append(log_ratio(counts[0], counts[1]))
    return Curves("likelihood ratio of outputs", tuple(columns.tolist()), tuple(at), tuple(heights))


def _ratio_of_cells(first: Floats, second: Floats, columns: NDArray[np.int64]) -> View:
    """The likelihood ratio of a few columns together."""
    chosen = tuple(columns.tolist())
    bins = int(min(max((len(first) / _CELL_FULL) ** (1 / len(chosen)), 2), _CELL_BINS))
    edges = tuple(edges_of(np.concatenate([first[:, i], second[:, i]]), bins) for i in chosen)
    shape = tuple(each.size + 1 for each in edges)
    counts = []
    for sample in (first, second):
        flat = np.ravel_multi_index(places_in(sample, chosen, edges), shape)
        counts.append(np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape))
    return Cells("likelihood ratio by cells", chosen, edges, log_ratio(counts[0], counts[1]))


def _ratio_of_outputs(first: Floats, second: Floats) -> Iterator[View]:
    """The likelihood ratio of whole outputs, where some come up again and again."""
    rows, place = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)
    if 2 * len(rows) > len(place):
        return
    here, there = (
        np.bincount(x, minlength=len(rows)) for x in (place.ravel()[: len(first)], place.ravel()[len(first) :])
    )
    often = np.argsort(-(here + there), kind="stable")[:_LISTED]
    left = [float(x.sum() - x[often].sum()) for x in (here, there)]
    heights = np.append(log_ratio(here[often], there[often]), log_ratio(*left))
    yield Listed("likelihood ratio of whole outputs", rows[often], heights)


def places_in(sample: Floats, columns: tuple[int, ...], edges: tuple[Floats, ...]) -> tuple[NDArray[np.intp], ...]:
    """In which cell of a grid each row lies."""
    return tuple(
        np.searchsorted(each, sample[:, column], side="right") for column, each in zip(columns, edges, strict=True)
    )


def log_ratio(here: Any, there: Any) -> Floats:
    """Smoothed: a cell that nobody saw says nothing."""
    return np.asarray(np.log((here + 0.5) / (there + 0.5)))
