"""V3, the whole curve: a mechanism may keep its word at one (epsilon, delta) and break it at every other (the idea of
Delta-Siege: Lokna, Paradis, Dimitrov, Vechev, "Group and attack: auditing differential privacy", 2023).

An event with chance at least p on one table and at most q on its neighbour proves delta >= p - e^epsilon q, at *every*
epsilon. The attack cuts the output at 20 places, chosen on one half of the samples, and compares what the other half
proves with the curve delta(epsilon) that the plan's event is sold at, all along a grid of epsilons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import bounds
from sfumato.accounting import price
from sfumato.audit.counting import at_least, at_most
from sfumato.audit.stages import table_for
from sfumato.mechanisms.additive import Additive
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.noise import Bits, SecureBits
from sfumato.rows import Rows
from sfumato.units import Unit

from .. import mutants
from .sampling import many
from .verdict import FALSE_ALARM, Verdict

RUNS = 200_000
CUTS = 20
EPSILONS = tuple(Fraction(i, 10) for i in (0, 1, 2, 3, 5, 7, 10, 14, 19, 25, 32, 40, 60, 80, 100))
_ROW = Unit()


@dataclass(frozen=True)
class Curved:
    """A plan of one noisy number; one row is added."""

    name: str
    make: Callable[[], Additive]


LIBRARY = (
    Curved("Laplace", lambda: Laplace(query=bounds.clipped_sum("x", 0, 1, _ROW), epsilon=1)),
    Curved("Laplace, counts at epsilon 0.3", lambda: Laplace(query=bounds.count(_ROW), epsilon=0.3)),
    Curved("Gaussian", lambda: Gaussian(query=bounds.clipped_sum("x", 0, 1, _ROW), epsilon=1, delta=1e-5)),
    Curved("Gaussian, multiplier 0.5", lambda: Gaussian(query=bounds.count(_ROW), multiplier=0.5)),
)

MUTANTS = (Curved("Laplace sold as Gaussian", lambda: _sold(mutants.LaplaceSoldAsGaussian)),)


def _sold(kind: type[Any]) -> Additive:
    plan: Additive = kind(query=bounds.count(_ROW), epsilon=1, delta=1e-5)
    return plan


@dataclass(frozen=True)
class CurvePoint:
    """The place on the curve where most is proven: epsilon, the delta shown there, the delta that is sold."""

    epsilon: float
    shown: float
    sold: float

    @property
    def broken(self) -> bool:
        return self.shown > self.sold * (1 + 1e-9)

    @property
    def share(self) -> float:
        return self.shown / max(self.sold, 1e-300)  # a pure plan is sold at no delta at all


def attack(targets: Sequence[Curved] = LIBRARY, *, runs: int = RUNS, bits: Bits | None = None) -> Verdict:
    points = shown(targets, runs=runs, bits=bits)
    broken = [
        f"{name} shows delta {p.shown:.4g} at epsilon {p.epsilon:g}, and is sold at {p.sold:.4g}"
        for name, p in points.items()
        if p.broken
    ]
    text = f"{'; '.join(broken)}." if broken else f"No point of {len(EPSILONS)} on {len(points)} curves is exceeded."
    return Verdict("V3", bool(broken), text, _figures(points))


def control(targets: Sequence[Curved] = MUTANTS, *, runs: int = RUNS, bits: Bits | None = None) -> Verdict:
    """The attack on the planted bugs: broken only if every one of them is."""
    points = shown(targets, runs=runs, bits=bits)
    missed = [name for name, point in points.items() if not point.broken]
    text = f"Not caught: {', '.join(missed)}." if missed else f"All {len(points)} planted bugs are caught."
    return Verdict("V3", not missed, text, _figures(points))


def _figures(points: Mapping[str, CurvePoint]) -> dict[str, float]:
    return {f"{name}: most of its curve shown, at epsilon {p.epsilon:g}": p.share for name, p in points.items()}


def shown(targets: Sequence[Curved], *, runs: int, bits: Bits | None = None) -> dict[str, CurvePoint]:
    source = SecureBits() if bits is None else bits
    return {target.name: worst(target.make(), runs, source, FALSE_ALARM / len(targets)) for target in targets}


def worst(plan: Additive, runs: int, bits: Bits, false_alarm: float) -> CurvePoint:
    """The most that is proven, beside what is sold; wrong with chance at most false_alarm."""
    table = table_for(plan)
    named = next(iter(table.columns))
    tables = [Rows.read(table, {named: cells}, plan.unit) for cells in ([], [1.0])]
    one, other = (many(plan, rows, runs, bits)[:, 0] for rows in tables)
    half = runs // 2
    cuts = np.quantile(np.concatenate([one[:half], other[:half]]), np.linspace(0, 1, CUTS + 2)[1:-1], method="nearest")
    alpha = false_alarm / (4 * CUTS)  # two directions, two bounds each; all epsilons follow from the same bounds
    sold = np.array([price.delta(plan.event, epsilon=epsilon).upper for epsilon in EPSILONS], dtype=np.float64)
    points = []
    for here, there, sign in ((other, one, 1), (one, other, -1)):  # one row more: the larger values, and back
        p = at_least(_hits(here[half:], cuts, sign), runs - half, alpha)
        q = at_most(_hits(there[half:], cuts, sign), runs - half, alpha)
        points += [
            CurvePoint(float(e), float(np.max(p - math.exp(e) * q)), float(d))
            for e, d in zip(EPSILONS, sold, strict=True)
        ]
    return max(points, key=lambda point: point.share)


def _hits(sample: NDArray[np.float64], cuts: NDArray[np.float64], sign: int) -> NDArray[np.int64]:
    ordered = np.sort(sign * sample)
    return np.asarray(sample.size - np.searchsorted(ordered, sign * cuts, side="left"))
