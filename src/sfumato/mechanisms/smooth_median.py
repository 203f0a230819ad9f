"""The median with noise scaled to its smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from .. import checks, events, exact, grid
from ..exact import Enclosure
from ..plan import Run
from ..questions import PRICE
from ..record import record
from ..rows import Rows
from ..units import Unit
from .local_sensitivity import Smooth, smooth
from .unit_median import UnitMedian

_FINER = 32  # the interval has about 2^32 steps
_BITS = 256  # for constants of the fields


@record("plan-smooth-median/1")
@dataclass(frozen=True, kw_only=True)
class SmoothMedian(UnitMedian[int]):
    """The median plus noise scale * S * Z, where S is the smooth sensitivity of the median in these data and Z has the
    density (g-1)/2 (1 + |z|)^-g, that is P(|Z| >= z) = (1 + z)^-(g-1), with g = `shape`. Where the data lie densely
    around their median, S is tiny. Clamped to [lower, upper].

    Guarantee: epsilon-DP for one replaced unit.
    Needs: bounds, and a public number of units (relation replace, group 1). A unit counts with its average value, one
        without a value as `lower`.
    Paper: Nissim, Raskhodnikova, Smith 2007.

    Proof sketch: for neighbours with medians f, f' and smooth sensitivities S, S' = r S let u = |y - f|/(scale S) and
    s = 1/scale. |f - f'| <= min(S, S') and e^-beta <= r <= e^beta (local_sensitivity.py), so the densities at y satisfy
        p(y)/p'(y) = r ((1 + |y - f'|/(scale S')) / (1 + u))^g <= r^(1-g) ((r + u + s min(1, r)) / (1 + u))^g.
    The last ratio is monotone in u, so this is at most its value at u = 0 or as u grows:
        u -> infinity   r^(1-g)               <= e^((g-1) beta)
        u = 0, r <= 1   r (1 + s)^g           <= (1 + s)^g
        u = 0, r >= 1   r^(1-g) (r + s)^g     <= its value at one end, (1 + s)^g or e^beta (1 + s e^-beta)^g,
    since the logarithm's derivative in r has the sign of r - s (g-1). All three are at most e^epsilon for
    beta = epsilon/(g-1) and the scale below. Rounding to the grid and clamping are post-processing.

    There is no error bar: S is a property of the data, and how wide the noise was tells it.
    """

    shape: int = field(default=4, metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", checks.whole(self.shape, "shape", least=3, most=32))
        self._check_grid()

    @property
    def event(self) -> events.Pure:
        return events.Pure(epsilon=self.epsilon, relation=self.unit.change)

    @cached_property
    def exponent(self) -> int:
        return max(grid.floor_log2(self.upper - self.lower) - _FINER, self._finest)

    @property
    def beta(self) -> Fraction:
        """How smooth: as large as the tails allow."""
        return self.epsilon / (self.shape - 1)

    @cached_property
    def scale(self) -> Fraction:
        """The least scale with (1 + 1/scale)^g <= e^epsilon and e^beta (1 + e^-beta/scale)^g <= e^epsilon, rounded up:
        1/(e^(epsilon/g) - 1) and e^-beta/(e^((epsilon - beta)/g) - 1)."""
        one = _inverse_expm1(self.epsilon / self.shape)
        other = exact.exp_neg(self.beta, _BITS) * _inverse_expm1((self.epsilon - self.beta) / self.shape)
        return exact.short_above(Fraction(max(one.hi, other.hi), 1 << _BITS))

    def _run(self, rows: Rows, run: Run) -> int:
        around = self._around(rows)
        return run.noise.settle(_Rounding(around.median, smooth(around, self.beta), self).decide)

    def finish(self, raw: int) -> float:
        return self._real(raw)

    def explain(self) -> list[str]:
        return [
            f"one value of {self.column} per unit, its average; take the median on a grid of step 2^{self.exponent}",
            f"S: how far one change moves the median, or e^-{float(self.beta):.4g} per change for data further away",
            f"add {float(self.scale):.6g} S times noise with tail (1 + z)^-{self.shape - 1}; clamp to the bounds",
            "no error bar: S is a property of the data",
        ]

    @classmethod
    def sample(cls) -> SmoothMedian:
        return cls(column="age", lower=0, upper=120, epsilon=1, protects=Unit(change="replace"))


def _inverse_expm1(x: Fraction) -> Enclosure:
    """1/(e^x - 1) for x > 0."""
    power = exact.exp_neg(x, _BITS)
    return power / (exact.enclose(1, _BITS) - power)


@dataclass(frozen=True)
class _Rounding:
    """round(median + scale S Z), clamped, from a uniform number whose first bit is the sign. With the rest of it,
    |Z| = U^(-1/(g-1)) - 1, and the magnitude is floor(scale S |Z| + 1/2)."""

    median: int
    smooth: Smooth
    plan: SmoothMedian

    def decide(self, n: int, precision: int) -> int | None:
        bits = precision - 1
        sign, rest = 1 - 2 * (n >> bits), n & ((1 << bits) - 1)
        if precision == 64:
            steps = self._agreed(sign, rest, bits, self.smooth.rough(precision))
            if steps is not None:
                return steps
        return self._agreed(sign, rest, bits, self.smooth.enclose(precision))

    def _agreed(self, sign: int, rest: int, bits: int, size: Enclosure) -> int | None:
        least = self._magnitude(rest + 1, bits, Fraction(max(size.lo, 0), 1 << size.bits), 0)
        most = self._magnitude(rest, bits, Fraction(size.hi, 1 << size.bits), 1) if rest else None
        low, high = self.plan._ends
        ends = [high - low if each is None else min(each, high - low) for each in (least, most)]
        first, second = (min(max(self.median + sign * each, low), high) for each in ends)
        return first if first == second else None

    def _magnitude(self, n: int, bits: int, size: Fraction, above: int) -> int:
        """floor(scale size ((n / 2^bits)^(-1/p) - 1) + 1/2), the root rounded down, or up where `above` is 1."""
        p, work = self.plan.shape - 1, bits + 64
        root = _root((1 << (bits + p * work)) // n, p) + above
        return math.floor(self.plan.scale * size * (Fraction(root, 1 << work) - 1) + Fraction(1, 2))


def _root(x: int, p: int) -> int:
    """The largest y with y^p <= x, by Newton's steps from above."""
    y = 1 << -(-x.bit_length() // p)
    while True:
        better = ((p - 1) * y + x // y ** (p - 1)) // p
        if better >= y:
            return y
        y = better
