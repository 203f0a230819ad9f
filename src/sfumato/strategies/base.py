"""Strategies: which linear combinations of a table's cells are measured, so that the answers asked for come out best.

The matrix mechanism (Li, Hay, Rastogi, Miklau, McGregor 2010) adds noise not to the answers W x but to other
measurements A x of the same cells x, and answers W times the least-squares estimate of x. The price is that of the
noise on A x; everything after it is post-processing. A `Strategy` is A, a `Workload` is W; both are public.

Entries of A are whole multiples of 2^-bits, so that A x is exact in integers and the norms of its columns, which are
what one unit can move, are exact too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import checks

Vector = NDArray[Any]  # int64, or object (Python integers) where int64 could be too narrow
Floats = NDArray[np.float64]


class Reach(NamedTuple):
    """How far a unit vector of cells reaches: norms in steps of 2^-bits, exact."""

    l1: int
    l2_squared: int
    linf: int


class Mixing(NamedTuple):
    """For each answer, the norms of its weights on the noisy measurements: what error bars are made of."""

    l1: Floats
    l2: Floats
    linf: Floats


@dataclass(frozen=True, kw_only=True)
class Workload(ABC):
    """The linear queries that are asked: W, one row for each answer."""

    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", checks.whole(self.cells, "cells", most=2**26))

    @abstractmethod
    def answer(self, cells: Floats) -> Floats:
        """W x; the last axis of `cells` is the cells."""

    @property
    @abstractmethod
    def answers(self) -> int:
        """How many answers there are."""

    @abstractmethod
    def names(self, cells: tuple[Any, ...]) -> tuple[Any, ...]:
        """A name for each answer, from the names of the cells."""

    @property
    def matrix(self) -> Floats:
        """W written out, for small tables."""
        return np.asarray(self.answer(np.eye(self.cells)).T)


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """What is measured: A, one row for each measurement."""

    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", checks.whole(self.cells, "cells", most=2**26))

    @property
    def bits(self) -> int:
        """Entries are whole multiples of 2^-bits."""
        return 0

    @property
    @abstractmethod
    def measurements(self) -> int:
        """How many measurements there are."""

    @abstractmethod
    def measure(self, cells: Vector) -> Vector:
        """2^bits A x, exactly, for whole x."""

    @property
    @abstractmethod
    def column_norms(self) -> Reach:
        """The largest norms of a column of 2^bits A: what one row added to one cell moves."""

    @property
    @abstractmethod
    def column_gaps(self) -> Reach:
        """The largest norms of a column, or of the difference of two: what one row moved between cells moves."""

    @abstractmethod
    def estimate(self, noisy: Floats) -> Floats:
        """The cells, without bias, from noisy measurements of A x; least squares where that is affordable."""

    @abstractmethod
    def mixing(self, workload: Workload) -> Mixing:
        """The weights of the noisy measurements in the workload's answers, or upper bounds on their norms."""

    def determines(self, workload: Workload) -> bool:
        """Do the measurements determine the answers: is every row of W a mixture of rows of A?"""
        return True


def check_noise(noise: Any, change: Any = "add-remove") -> None:
    """What a strategy is chosen for."""
    checks.one_of(noise, "noise", ("gaussian", "laplace"))
    checks.one_of(change, "change", ("add-remove", "replace", "zero-out"))


def in_parts(linear: Callable[[NDArray[np.int64]], Vector], weight: int, values: Vector) -> Vector:
    """A linear map of whole numbers of any size, from one that works in int64. No result is more than `weight` times
    the largest number: it fits where that is below 2^62. Larger numbers are mapped in two parts, high * 2^room + low,
    so that the time does not jump with the data."""
    largest, room = max(int(values.max(initial=0)), -int(values.min(initial=0))), 62 - weight.bit_length()
    if room < 1:
        raise ArithmeticError("weights of 2^62 and more leave no room for numbers")
    if largest < 2**room:
        return linear(values.astype(np.int64, copy=False))
    high, low = in_parts(linear, weight, values >> room), linear((values & (2**room - 1)).astype(np.int64))
    return high.astype(object) * 2**room + low.astype(object)


def exact_product(matrix: NDArray[np.int64], cells: Vector) -> Vector:
    """matrix @ cells in integers, whatever their size; entries of at most 2^30 in rows of at most 2^26."""
    return in_parts(matrix.__matmul__, int(np.abs(matrix).sum(axis=1).max(initial=0)), cells)


def row_norms(weights: Floats) -> Mixing:
    """The norms of each row."""
    size = np.abs(weights)
    return Mixing(size.sum(axis=1), np.sqrt((size**2).sum(axis=1)), size.max(axis=1))
