"""Sums and counts over a public number of rows: means and shares in one coordinate each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, exact, questions
from ..errors import ArgumentError
from ..record import record
from ..rows import Rows
from ..schema import Column
from .base import Bounded, Floats, Sensitivity, Vector


@record("share/1")
@dataclass(frozen=True, kw_only=True)
class Share(Bounded):
    """A count or sum divided by a number of rows that you name. That number is public; it is never read off the data,
    so the share is right where the data has so many rows, and private in any case.

    In steps of 2^e it is floor(x 2^k / rows), with x in steps of 2^(e+k) and rows < 2^k <= 2 rows. A floor moves by at
    most the next whole number: the sensitivity in steps is rounded up.
    """

    query: Bounded
    rows: int

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.instance(self.query, Bounded, "query", "a bounded query, such as bounds.count(unit)")
        object.__setattr__(self, "rows", checks.whole(self.rows, "rows", most=2**30))
        if self.query.unit != self.unit:
            raise ArgumentError("the query protects another unit: give both the same Unit.")
        if self.query.combined != 1 or self.query.mixing is not None:
            raise checks.refuse(
                "query", self.query, "a count, a sum or a histogram, whose numbers stand for themselves"
            )

    def asks(self) -> Any:
        """The same numbers as its query, divided by a public one."""
        return questions.of(self.query)

    @property
    def sensitivity(self) -> Sensitivity:
        whole, n = self.query.sensitivity, self.rows
        return Sensitivity(whole.l1 / n, whole.l2_squared / n**2, whole.linf / n)

    def in_steps(self, exponent: int) -> Sensitivity:
        whole, count = self.query.in_steps(exponent + self._bits), len(self.names)
        factor = Fraction(1 << self._bits, self.rows)
        linf = Fraction(math.ceil(whole.linf * factor))
        if count == 1:
            return Sensitivity(linf, linf**2, linf)
        l2 = Fraction(exact.sqrt_above(whole.l2_squared * factor**2)) + Fraction(exact.sqrt_above(Fraction(count)))
        return Sensitivity(whole.l1 * factor + count, l2**2, linf)

    @property
    def _bits(self) -> int:
        return self.rows.bit_length()

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.query.columns

    @property
    def names(self) -> tuple[Any, ...]:
        return self.query.names

    @property
    def largest(self) -> Fraction:
        return self.query.largest / self.rows

    @property
    def finer(self) -> int:
        return self.query.finer

    @property
    def coarsest(self) -> int | None:
        return None if self.query.coarsest is None else self.query.coarsest - self._bits

    @property
    def monotone(self) -> bool:
        return self.query.monotone

    @property
    def vouched(self) -> bool:
        return self.query.vouched

    def steps(self, rows: Rows, exponent: int) -> Vector:
        x, n, bits = self.query.steps(rows, exponent + self._bits), self.rows, self._bits
        return np.asarray((x // n << bits) + ((x % n << bits) // n))  # n^2 2 < 2^62, and x/n 2^bits <= 2x

    def finish(self, noisy: Floats) -> Any:
        return self.query.finish(noisy)

    def error(self, noisy: Floats, width: Any) -> Any:
        return self.query.error(noisy, width)
