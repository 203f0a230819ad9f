"""A made-up histogram that learns from noisy answers: multiplicative weights. Public through and through.

It starts uniform. An answer m to a linear query w of the cells multiplies the cell x_i by
exp(w_i (m - <w, x>)/(2 n s^2)), s the largest size of a weight, and the whole is scaled back to n rows (Hardt, Ligett,
McSherry 2012). Whatever it is told already has its noise, so all of this is post-processing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, grid
from ..bounds import Bounded
from ..bounds.measured import cell_moves
from ..strategies.base import exact_product

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MOST_CELLS = 2**20
_FRACTIONS = 20  # bits of what a unit with several rows may move


class Synthetic:
    """The histogram, and what it was told. With every answer it goes through all of them `passes` times."""

    def __init__(self, cells: int, total: float, passes: int) -> None:
        self.total = max(total, 1.0)
        self.cells: Floats = np.full(cells, self.total / cells)
        self._passes = passes
        self._told: list[tuple[Floats, float]] = []

    def answer(self, weights: Floats) -> Any:
        return weights @ self.cells

    def learn(self, weights: Floats, value: float) -> None:
        size = float(np.abs(weights).max(initial=0.0))
        if size == 0:
            return
        unit = weights / size
        # No histogram of n rows has an answer beyond these, and no step gets large.
        low, high = self.total * min(float(unit.min()), 0.0), self.total * max(float(unit.max()), 0.0)
        self._told.append((unit, min(max(value / size, low), high)))
        for _ in range(self._passes):
            for query, wanted in self._told:
                self.cells = self.cells * np.exp(query * ((wanted - query @ self.cells) / (2 * self.total)))
                self.cells *= self.total / self.cells.sum()


def check_cells(query: Any, least: int = 1) -> None:
    """Refuse what is not a histogram."""
    if not isinstance(query, Bounded) or not query.exclusive or query.coarsest != 0:
        raise checks.refuse("query", query, "cells that each row is in one of, such as bounds.histogram(...)")
    if not least <= query.size <= MOST_CELLS:
        raise checks.refuse("query", f"of {query.size} cells", f"{least} to {MOST_CELLS} cells")


def check_total(query: Bounded, total: Any) -> int | None:
    """The public number of rows; None where it is private, and paid for."""
    if total is None:
        return None
    if query.unit.change == "add-remove":
        raise checks.refuse("total", total, "None: under add-remove the number of rows is private, and is paid for")
    return checks.whole(total, "total", most=2**40)


def coarsest(query: Bounded, bits: int) -> int:
    """The largest exponent at which answers to queries with `bits` fractional bits are exact; finer where a unit's
    rows are shared out over cells, so that rounding them down loses next to nothing of what the unit may move."""
    if query.unit.column is None:
        return -bits
    return -bits - max(0, _FRACTIONS - grid.floor_log2(cell_moves(query, 0).steps))


def reach(query: Bounded, exponent: int, weights: Whole) -> Fraction:
    """The most that one change of the unit moves any of the queries, in the steps of the answers: `weights` times the
    cells in steps of 2^exponent.

    A row of weight w that comes or goes moves an answer by |w|; one that goes from cell to cell, or to none, by at most
    the largest difference of two weights, or of a weight and 0.
    """
    times, exchanged = cell_moves(query, exponent)
    if not exchanged:
        return times * int(np.abs(weights).max())
    gaps = np.maximum(weights.max(axis=-1), 0) - np.minimum(weights.min(axis=-1), 0)
    return times * int(gaps.max())


def answers(cells: NDArray[Any], weights: Whole) -> NDArray[Any]:
    """The exact answers of the queries, in their steps."""
    return exact_product(np.atleast_2d(weights), cells)


def far_off(exact: NDArray[Any], guess: Floats, exponent: int) -> NDArray[Any]:
    """How far the exact answers are from a public guess, which is put on the grid first: whole steps, which move at
    most as far as the answers do."""
    with np.errstate(over="ignore"):
        steps = np.rint(np.ldexp(np.atleast_1d(guess), -exponent))
    return np.abs(exact - np.clip(steps, -(2.0**60), 2.0**60).astype(np.int64))
