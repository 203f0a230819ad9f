"""How the numbers of a query share one budget, and the noise that each of them gets.

Claim. Let unit u hold sums x_j(u) over the groups (a vector for each coordinate j), and let s_j > 0 be shares that add
up to 1. In a block b of coordinates, with S_b the sum of its shares, every unit has a weight w_b(u) in [0, 1] with

    Gaussian:  sum over j in b of (s_j / S_b) |w x_j|_2^2 / R_j^2  <=  1
    Laplace:   sum over j in b of (s_j / S_b) |w x_j|_1 / R_j      <=  1

and coordinate j gets Gaussian noise of standard deviation m R_j / sqrt(s_j), or Laplace noise of scale R_j / (s_j
epsilon). Then releasing all sums is a Gaussian mechanism of multiplier m, or epsilon-DP.

Proof. In units of its own noise, the vector of one unit has squared length at most sum_b sum_{j in b} s_j |w x_j|^2 /
(R_j m)^2 <= sum_b S_b / m^2 = 1/m^2, and scaling coordinates changes no privacy: it is one Gaussian of multiplier m.
Likewise the absolute lengths add up to at most sum_b S_b epsilon = epsilon. A unit that is added or removed moves the
sums by its own vector; one that is replaced by two of them, and a group of g by g times as much: the noise is larger by
that factor. Blocks may be chosen after seeing earlier ones: Gaussian mechanisms compose adaptively into one whose 1/m^2
is the sum (Dong, Roth, Su 2022), and pure budgets add.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from .. import events, exact
from ..accounting import gdp
from ..errors import ArgumentError
from ..laws import Law, RoundedGaussian, RoundedLaplace
from ..units import Unit

Kind = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class Blur:
    """The noise of a whole query.

    amount     the multiplier of Gaussian noise, epsilon of Laplace noise
    key_delta  what keys of one neighbour alone may show with; 0 where keys are given
    """

    kind: Kind
    amount: Fraction
    unit: Unit
    key_delta: Fraction = Fraction(0)

    @property
    def sides(self) -> int:
        """A change moves sums by so many vectors of one unit."""
        return self.unit.group * (1 if self.unit.change == "add-remove" else 2)

    def scale(self, reach: Fraction, share: Fraction) -> Fraction:
        """Of the noise on a coordinate, rounded up."""
        if self.kind == "laplace":
            return self.sides * reach / (share * self.amount)
        return Fraction(exact.sqrt_above((self.sides * reach * self.amount) ** 2 / share))

    def law(self, steps: Fraction) -> Law:
        scale = exact.float_above(steps)
        return RoundedGaussian(scale) if self.kind == "gaussian" else RoundedLaplace(scale)

    def pull(self, reach: Fraction, share: Fraction) -> Fraction:
        """What a sum of 1 counts for in the norm of a block, where the limit is 1; rounded up. Gaussian: a length, to
        be squared; Laplace: as it is."""
        if self.kind == "laplace":
            return share / reach
        return Fraction(exact.sqrt_above(share)) / reach

    @property
    def event(self) -> events.Event:
        relation = self.unit.change
        noise: events.Event
        if self.kind == "gaussian":
            noise = events.Gaussian(multiplier=self.amount, relation=relation)
        else:
            noise = events.Laplace(epsilon=self.amount, relation=relation)
        if not self.key_delta:
            return noise
        return events.Bundle((noise, events.Approximate(epsilon=0, delta=self.key_delta, relation=relation)))


def blur(unit: Unit, *, epsilon: Fraction | None, delta: Fraction, rho: Fraction | None, selects: bool) -> Blur:
    """The most that a budget buys: Laplace noise for epsilon alone, Gaussian noise with delta, or for rho.

    Where groups are not given, half of delta is for groups of one neighbour alone.
    """
    if selects and not delta:
        raise ArgumentError(
            "delta is missing: which groups there are is private here, and showing them takes a delta. Give delta, or "
            "the groups: keys={'column': [...]}.",
            code="groups-private",
        )
    key_delta = delta / 2 if selects else Fraction(0)
    if rho is not None:
        return Blur("gaussian", Fraction(exact.sqrt_above(1 / (2 * rho))), unit, key_delta)
    assert epsilon is not None
    if not delta:
        return Blur("laplace", epsilon, unit)
    return Blur("gaussian", gdp.least_multiplier(epsilon, delta - key_delta), unit, key_delta)
