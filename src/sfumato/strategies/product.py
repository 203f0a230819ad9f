"""A strategy for cells of several columns, made of one for each column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from .. import checks
from ..record import record
from .base import Floats, Mixing, Reach, Strategy, Vector, Workload, exact_product
from .identity import Identity
from .workloads import Prefixes

_SMALL = 64  # cells of a column whose matrix is written out


@record("strategy-product/1")
@dataclass(frozen=True, kw_only=True)
class Product(Strategy):
    """The Kronecker product of the columns' strategies: A = A_1 x A_2 x ..., on the cells of the first column, by those
    of the second, and so on.

    A column of A is a product of columns, so its norms are products of theirs; two of them differ by at most the sum of
    both, in every norm. Inverses and workloads that are products are products, too: answers, and the norms of their
    weights, are found column by column (McKenna, Miklau, Hay, Machanavajjhala 2018).
    """

    factors: tuple[Strategy, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factors", tuple(self.factors))
        for factor in self.factors:
            checks.instance(factor, Strategy, "factors", "a strategy for each column")
        if math.prod(factor.cells for factor in self.factors) != self.cells:
            raise checks.refuse("cells", self.cells, "the product of the cells of the factors")

    @classmethod
    def of(cls, factors: Sequence[Strategy]) -> Product:
        return cls(cells=math.prod(factor.cells for factor in factors), factors=tuple(factors))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(factor.cells for factor in self.factors)

    @property
    def bits(self) -> int:
        return sum(factor.bits for factor in self.factors)

    @property
    def measurements(self) -> int:
        return math.prod(factor.measurements for factor in self.factors)

    def measure(self, cells: Vector) -> Vector:
        numbers: Any = cells.reshape(self.sizes)
        for place, factor in enumerate(self.factors):
            if not isinstance(factor, Identity):
                rows = np.moveaxis(numbers, place, -1)
                numbers = np.moveaxis(_measured(factor, rows), -1, place)
        return np.asarray(numbers).ravel()

    @property
    def column_norms(self) -> Reach:
        norms = [factor.column_norms for factor in self.factors]
        return Reach(*(math.prod(norm) for norm in zip(*norms, strict=True))) if norms else Reach(1, 1, 1)

    @property
    def column_gaps(self) -> Reach:
        parts = [factor for factor in self.factors if factor.cells > 1]
        if len(parts) == 1:
            return self._alone(parts[0])
        norms = self.column_norms
        if all(isinstance(factor, Identity) for factor in parts):
            return Reach(2, 2, 1) if parts else norms
        return Reach(2 * norms.l1, 4 * norms.l2_squared, 2 * norms.linf)

    def _alone(self, factor: Strategy) -> Reach:
        """Of columns with one cell each beside it, only the norm counts."""
        rest = [other.column_norms for other in self.factors if other is not factor]
        gaps = [factor.column_gaps, *rest]
        return Reach(*(math.prod(gap) for gap in zip(*gaps, strict=True)))

    def estimate(self, noisy: Floats) -> Floats:
        numbers: Any = np.asarray(noisy, dtype=np.float64).reshape([factor.measurements for factor in self.factors])
        for place, factor in enumerate(self.factors):
            numbers = np.moveaxis(factor.estimate(np.moveaxis(numbers, place, -1)), -1, place)
        return np.asarray(numbers).ravel()

    def mixing(self, workload: Workload) -> Mixing:
        """Of a workload that is no product, written out."""
        weights = [factor.estimate(np.eye(factor.measurements)) for factor in self.factors]
        whole: Any = np.ones((1, 1))
        for part in weights:
            whole = np.kron(whole, part)
        size = np.abs(workload.answer(whole).T)
        return Mixing(size.sum(axis=1), np.sqrt((size**2).sum(axis=1)), size.max(axis=1))

    def mixing_of(self, workloads: Sequence[Workload | None]) -> Mixing:
        """Of the product of one workload for each column, or its total where that is None; arrays with an axis for each
        workload."""
        norms = [_norms(factor, workload) for factor, workload in zip(self.factors, workloads, strict=True)]
        whole = [reduce(np.multiply.outer, parts, np.ones(())) for parts in zip(*norms, strict=True)]
        return Mixing(*(np.asarray(part) for part in whole)) if norms else Mixing(*(np.ones(()) for _ in range(3)))


def _norms(factor: Strategy, workload: Workload | None) -> Mixing:
    if workload is not None:
        return factor.mixing(workload)
    return Mixing(*(np.asarray(norm[-1]) for norm in factor.mixing(Prefixes(cells=factor.cells))))


def _measured(factor: Strategy, rows: Vector) -> Vector:
    """Of each row of cells, along the last axis."""
    if factor.cells <= _SMALL:
        matrix = np.array([factor.measure(cell) for cell in np.eye(factor.cells, dtype=np.int64)], dtype=np.int64).T
        flat = exact_product(matrix, rows.reshape(-1, factor.cells).T)
        return np.asarray(flat.T).reshape(*rows.shape[:-1], factor.measurements)
    measure: Callable[[Vector], Vector] = factor.measure
    parts = [measure(row) for row in rows.reshape(-1, factor.cells)]
    return np.array(parts).reshape(*rows.shape[:-1], factor.measurements)
