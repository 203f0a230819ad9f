"""Unknown keys by noisy counts above a threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from .. import checks, events, exact, grid
from ..accounting import gdp
from ..errors import ArgumentError
from ..laws import SCALES, Law, RoundedGaussian, RoundedLaplace
from ..plan import Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..units import Unit
from .keys import Cases, Keys, Label, Selected, blocks, least_threshold, tally

Kind = Literal["laplace", "gaussian"]


@record("plan-threshold-keys/1")
@dataclass(frozen=True, kw_only=True)
class ThresholdKeys(Keys):
    """The noisy number of units of every key, where it is above a threshold; key and number leave together.

    Guarantee: (epsilon, delta)-DP. Laplace noise is epsilon-DP, and the whole of delta goes into the threshold;
        Gaussian noise takes half of delta, which pays where units have many keys.
    Needs: a key column. Units with more than per_unit keys lose some, at random.
    Paper: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Gaussian: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020.

    Proof sketch: split the keys. On keys that both neighbours hold, the release is the noisy counts, which differ by at
    most per_unit in L1 (the square root in L2; twice per_unit under replace), with small ones left out afterwards. Keys
    that only one neighbour holds are held by changed units alone. The threshold is such that all of them together stay
    out with probability 1 - d at least, computed from the law that is drawn. Their part of the release is empty on the
    other side, so these parts differ by at most d in total variation, also under replace, where either side has some:
    with p and p' the chances that anything shows, the distance is max(p, p'). Both parts are independent: the
    plain noise event, and (0, d). (A bundle of them: which keys are in which part depends on the neighbours.)
    In a group of g units a new key has up to g of them and all new keys together up to g per_unit: with f(c) = -ln(1 -
    p(c)) for a key of c units, the sum of f is at most g per_unit max f(c)/c, and the threshold is taken over all c.
    """

    noise: Kind = field(default="laplace", metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of(self.noise, "noise", get_args(Kind))
        if 4 * grid.steps(self._scale, self.exponent) > SCALES[1]:
            raise ArgumentError(
                "the noise would be more than 10^11 units: give a larger epsilon, or a smaller per_unit."
            )
        _ = self.threshold

    @property
    def _l1(self) -> int:
        return self.unit.group * self.sides * self.per_unit

    @property
    def _l2_squared(self) -> int:
        return self.unit.group**2 * self.sides * self.per_unit

    @property
    def key_delta(self) -> Fraction:
        """The part of delta that keys of one neighbour alone may show with."""
        return Fraction(self.delta) / (1 if self.noise == "laplace" else 2)

    @cached_property
    def _multiplier(self) -> Fraction:
        return gdp.least_multiplier(self.epsilon, self.delta - self.key_delta)

    @property
    def event(self) -> events.Event:
        relation = self.unit.change
        noise: events.Event = events.Laplace(epsilon=self.epsilon, relation=relation)
        if self.noise == "gaussian":
            noise = events.Gaussian(multiplier=self._multiplier, relation=relation)
        return events.Bundle((noise, events.Approximate(epsilon=0, delta=self.key_delta, relation=relation)))

    @property
    def _scale(self) -> Fraction:
        if self.noise == "laplace":
            return self._l1 / Fraction(self.epsilon)
        return Fraction(exact.sqrt_above(self._l2_squared * self._multiplier**2))

    @cached_property
    def exponent(self) -> int:
        """The grid step is 2^exponent of a unit."""
        return grid.exponent_for(self._scale, largest=Fraction(1), finer=grid.FINER_COUNTS, coarsest=0)

    @cached_property
    def law(self) -> Law:
        """The law of the noise, in grid steps."""
        unit = 1 << -self.exponent
        if self.noise == "laplace":
            return RoundedLaplace(exact.float_above(unit * self._l1 / Fraction(self.epsilon)))
        return RoundedGaussian(exact.sqrt_above(unit**2 * self._l2_squared * self._multiplier**2))

    @property
    def _cases(self) -> Cases:
        """New keys of c units, for every c up to the size of the group; g per_unit/c of them, rounded up."""
        everything = self.unit.group * self.per_unit
        runs = list(blocks(self.unit.group, 16))
        return tuple((most << -self.exponent, -(-everything // least)) for least, most in reversed(runs))

    @cached_property
    def threshold_steps(self) -> int:
        return least_threshold(self.law, self.key_delta, self._cases)

    @property
    def threshold(self) -> float:
        """A noisy count must reach it."""
        return float(self.threshold_steps * 2.0**self.exponent)

    def _run(self, rows: Rows, run: Run) -> Selected:
        codes, counts = tally(self._held(rows, run)[1])
        noisy = (counts << -self.exponent) + run.noise.draw(self.law, counts.size)
        above = noisy >= self.threshold_steps
        return self._named(rows, codes[above], grid.to_float(noisy[above], self.exponent))

    def width(self, alpha: float) -> float:
        return float((self.law.half_width(alpha) + 0.5) * 2.0**self.exponent)

    def error(self, raw: Selected, alpha: float) -> dict[Label, float]:
        """Of the noise on each count. Of keys near the threshold only those with noise upwards are seen."""
        return dict.fromkeys(raw, self.width(alpha))

    def expected_error(self, alpha: float) -> float:
        return self.width(alpha)

    def keep_chance(self, n: int) -> float:
        """The probability that a key of n units is kept."""
        return float(self.law.sf(np.float64(self.threshold_steps - (n << -self.exponent) - 1)))

    def explain(self) -> list[str]:
        return [
            f"count the units of each key of {self.column}; a unit has at most {self.per_unit} key(s), drawn at random",
            f"add {self.noise} noise of standard deviation {self.law.std * 2.0**self.exponent:.6g} to each count",
            f"keep the keys that reach {self.threshold:.6g}: keys of one neighbour alone stay out but for probability "
            f"{float(self.key_delta):.3g}",
            "name the kept keys in sorted order, each with its noisy count",
        ]

    @classmethod
    def sample(cls) -> ThresholdKeys:
        return cls(column="query", protects=Unit(change="replace"), epsilon=1, delta=0.05)
