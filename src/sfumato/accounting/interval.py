"""A number known from both sides."""

from __future__ import annotations

from typing import NamedTuple

ACCURACY, DELTA_ACCURACY = 2e-4, 5e-4  # widths of prices that are aimed at, relative
FLOOR = 0.01  # epsilons below are not told apart more finely than this one


class Interval(NamedTuple):
    """lower <= the true value <= upper. As a float it is the upper end: the safe one to report."""

    lower: float
    upper: float

    def __float__(self) -> float:
        return self.upper

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def both(self, other: Interval) -> Interval:
        """What is known when both intervals hold; should rounding let them miss each other by a hair, the upper end
        counts."""
        upper = min(self.upper, other.upper)
        return Interval(min(max(self.lower, other.lower), upper), upper)

    def __str__(self) -> str:
        return f"{self.upper:.6g} (at least {self.lower:.6g})"
