"""Randomized response, binary and k-ary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks, events, exact
from ..bounds import recode
from ..checks import Exact
from ..errors import ArgumentError
from ..laws import Integers
from ..plan import Plan, Run
from ..questions import ANY_ORDER, PRICE
from ..record import record
from ..rows import Rows
from ..schema import Column, category
from ..units import Unit, rows_or_users


@record("plan-randomized-response/1")
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Plan[Rows, Integers]):
    """Every row's answer is kept with probability e^epsilon/(e^epsilon + k - 1), otherwise exchanged for one of the
    other k - 1 categories. A NULL, or an answer that is not listed, is reported as a category drawn uniformly.

    Guarantee: epsilon-DP for each row.
    Needs: rows as units, and a relation that keeps their number (replace or zero-out): a report per row shows how many
        rows there are.
    Paper: Warner 1965; k-ary: Kairouz, Oh, Viswanath 2014.

    Proof sketch: with p = e^epsilon/(e^epsilon + k - 1) and q = 1/(e^epsilon + k - 1) each report has probability p or
    q whatever the answer, and p/q = e^epsilon. The uniform report of a NULL has 1/k, which lies between q and p. Rows
    are independent, and one change reaches one row. In a group of g units, g rows change: g * epsilon.
    """

    column: str
    categories: tuple[Any, ...] = field(metadata=ANY_ORDER)
    epsilon: Exact = field(metadata=PRICE)
    protects: Unit = field(metadata=PRICE)

    def __post_init__(self) -> None:
        checks.label(self.column, "column")
        object.__setattr__(self, "categories", checks.distinct(self.categories, "categories", least=2))
        object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        rows_or_users(self.protects, "protects")
        if self.protects.of != "row" or self.protects.change == "add-remove":
            raise ArgumentError(
                "randomized response reports once per row, so it protects Unit('row', 'replace') or "
                "Unit('row', 'zero-out'); for other units use a histogram."
            )

    @property
    def unit(self) -> Unit:
        return self.protects

    @property
    def event(self) -> events.RandomizedResponse | events.Pure:
        if self.unit.group > 1:
            return events.Pure(epsilon=self.unit.group * self.epsilon, relation=self.unit.change)
        return events.RandomizedResponse(
            epsilon=self.epsilon, categories=len(self.categories), relation=self.unit.change
        )

    @property
    def needs_whole(self) -> bool:
        return True  # there are as many reports as rows

    @property
    def columns(self) -> dict[str, Column]:
        return {self.column: category(self.categories)}

    def keep_chance(self, bits: int) -> exact.Enclosure:
        """p = 1 / (1 + (k - 1) e^-epsilon), to any number of bits."""
        work = bits + len(self.categories).bit_length() + 8
        others = exact.exp_neg(self.epsilon, work).times(Fraction(len(self.categories) - 1))
        return (exact.enclose(1, work) / (exact.enclose(1, work) + others)).to(bits)

    def _run(self, rows: Rows, run: Run) -> Integers:
        k, n = len(self.categories), len(rows)
        answer, valid = recode(rows, self.column, self.categories)
        honest = run.noise.coins(self.keep_chance, n)
        other = (answer + 1 + run.noise.integers(k - 1, n)) % k  # uniform on the k - 1 others
        anything = run.noise.integers(k, n)
        return np.where(valid, np.where(honest, answer, other), anything)

    def finish(self, raw: Integers) -> dict[Any, float]:
        """The estimated number of true answers per category, without bias where no answer is NULL (a NULL adds 1/k to
        each); the reports themselves are in `raw`."""
        p, q = self._chances
        reported = np.bincount(raw, minlength=len(self.categories))
        return dict(zip(self.categories, ((reported - raw.size * q) / (p - q)).tolist(), strict=True))

    def error(self, raw: Integers, alpha: float) -> dict[Any, float]:
        # Hoeffding: n independent reports, each 0 or 1 in a category.
        p, q = self._chances
        width = math.sqrt(raw.size * math.log(2 / alpha) / 2) / (p - q)
        return dict.fromkeys(self.categories, width)

    @property
    def _chances(self) -> tuple[float, float]:
        p = float(self.keep_chance(80))
        return p, (1 - p) / (len(self.categories) - 1)

    def explain(self) -> list[str]:
        p, _ = self._chances
        return [
            f"report each row's {self.column}: the true one of {len(self.categories)} with probability {p:.4g}, "
            "otherwise another",
            "estimate the true counts from the reports",
        ]

    @classmethod
    def sample(cls) -> RandomizedResponse:
        return cls(column="ward", categories=("east", "north", "west"), epsilon=1, protects=Unit(change="replace"))
