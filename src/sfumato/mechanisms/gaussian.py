"""The Gaussian mechanism, calibrated exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from .. import bounds, checks, events, exact
from ..accounting import gdp
from ..checks import Exact
from ..errors import ArgumentError
from ..laws import RoundedGaussian
from ..questions import PRICE
from ..record import record
from ..units import Unit
from .additive import Additive


@record("plan-gaussian/1")
@dataclass(frozen=True, kw_only=True)
class Gaussian(Additive):
    """Gaussian noise on a bounded query. Say how much by epsilon and delta, by rho, or by the noise multiplier.

    Guarantee: exactly the Gaussian curve of its multiplier: (epsilon, delta)-DP where asked so, rho-zCDP with
        rho = 1/(2 multiplier^2), and 1/multiplier-GDP.
    Needs: a finite L2 sensitivity, which the query carries.
    Paper: Balle, Wang 2018 (analytic calibration; never the classic formula, which is wrong above epsilon = 1).

    Proof sketch: between neighbours at L2 distance d the privacy loss of N(x, s^2 I) is Gaussian with mean d^2/(2 s^2)
    and variance d^2/s^2, which depends on d/s alone and grows with it; s >= l2 * multiplier bounds it by the curve.
    Rounding to the grid is post-processing. s is rounded up to a float, the multiplier by certified arithmetic.
    """

    epsilon: Exact = field(default=None, metadata=PRICE)
    delta: Exact = field(default=Fraction(0), metadata=PRICE)
    rho: Exact = field(default=None, metadata=PRICE)
    multiplier: Exact = field(default=None, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(each is None for each in (self.epsilon, self.rho, self.multiplier)) != 2:
            raise ArgumentError("say how much noise in one way: epsilon (with delta), rho, or multiplier.")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.epsilon(self.epsilon))
        # Without epsilon, delta only says at which delta an (epsilon, delta) account prices this plan.
        object.__setattr__(self, "delta", checks.delta(self.delta, zero=self.epsilon is None))
        if self.rho is not None:
            object.__setattr__(self, "rho", checks.positive(self.rho, "rho"))
        if self.multiplier is not None:
            object.__setattr__(self, "multiplier", checks.positive(self.multiplier, "multiplier"))
        if not Fraction(1, 1000) <= self._noise_multiplier <= 10**9:
            name = next(name for name in ("epsilon", "rho", "multiplier") if getattr(self, name) is not None)
            raise checks.refuse(name, getattr(self, name), "a noise multiplier from 1e-3 to 1e9")
        self._check_scale()

    @cached_property
    def _noise_multiplier(self) -> Fraction:
        if self.multiplier is not None:
            return self.multiplier
        if self.rho is not None:
            return Fraction(exact.sqrt_above(1 / (2 * self.rho)))
        return gdp.least_multiplier(self.epsilon, self.delta)

    @property
    def event(self) -> events.Gaussian:
        return events.Gaussian(multiplier=self._noise_multiplier, relation=self.unit.change)

    @property
    def _scale(self) -> Fraction:
        return Fraction(self.query.l2) * self._noise_multiplier

    def _law_in_steps(self, exponent: int) -> RoundedGaussian:
        return RoundedGaussian(exact.sqrt_above(self.query.in_steps(exponent).l2_squared * self._noise_multiplier**2))

    @classmethod
    def sample(cls) -> Gaussian:
        return cls(
            query=bounds.histogram("ward", ("east", "north", "west"), Unit(change="replace")), epsilon=1, delta=1e-6
        )

    @classmethod
    def counting(cls, unit: Unit, noise: Fraction) -> Gaussian:
        return Gaussian(query=bounds.count(unit), multiplier=noise)
