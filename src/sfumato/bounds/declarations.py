"""A function of your own, with the sensitivity you vouch for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, exact, schema
from ..checks import Exact
from ..questions import PRICE
from ..record import LIVE, record
from ..rows import Rows
from ..schema import Column
from .base import Bounded, Floats, Sensitivity, Vector


@record("declared/1")
@dataclass(frozen=True, kw_only=True)
class Declared(Bounded):
    """Your own function of the rows, with the sensitivity you vouch for.

    It returns one number per name. The result is rounded to the grid, which may move each coordinate by half a step on
    either neighbour: the noise is scaled for one step more in every coordinate. Values that are not finite count as 0.
    """

    fn: Callable[[Rows], Any] = field(metadata=LIVE)
    reads: Mapping[str, Column]
    labels: tuple[str, ...] = field(metadata=PRICE)
    declared_l1: Exact = field(metadata=PRICE)
    declared_l2: Exact = field(metadata=PRICE)
    declared_linf: Exact = field(metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.fn):
            raise checks.refuse("fn", self.fn, "a function of the rows")
        object.__setattr__(self, "labels", checks.distinct(self.labels, "labels"))
        object.__setattr__(self, "reads", schema.columns_read(self.reads))
        for name in ("declared_l1", "declared_l2", "declared_linf"):
            object.__setattr__(self, name, checks.positive(getattr(self, name), name))
        if not self.declared_linf <= self.declared_l2 <= self.declared_l1:
            raise checks.refuse("declared_l2", float(self.declared_l2), "linf <= l2 <= l1, as norms are ordered")

    @property
    def vouched(self) -> bool:
        return True

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(self.declared_l1, self.declared_l2**2, self.declared_linf)

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.reads

    @property
    def names(self) -> tuple[str, ...]:
        return self.labels

    @property
    def largest(self) -> Fraction:
        return self.declared_linf

    def in_steps(self, exponent: int) -> Sensitivity:
        one, n = super().in_steps(exponent), len(self.labels)
        l2 = Fraction(exact.sqrt_above(one.l2_squared)) + Fraction(exact.sqrt_above(Fraction(n)))
        return Sensitivity(one.l1 + n, l2**2, one.linf + 1)

    def steps(self, rows: Rows, exponent: int) -> Vector:
        values = np.asarray(self.fn(rows), dtype=np.float64).reshape(-1)
        if values.size != len(self.labels):
            raise ValueError(f"fn returned {values.size} numbers for {len(self.labels)} labels")
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -exponent))
        return np.clip(scaled, -(2.0**61), 2.0**61).astype(np.int64)

    def finish(self, noisy: Floats) -> Any:
        return super().finish(noisy) if len(self.labels) == 1 else dict(zip(self.labels, noisy.tolist(), strict=True))

    def error(self, noisy: Floats, width: float) -> Any:
        return width if len(self.labels) == 1 else dict.fromkeys(self.labels, width)
