"""The privacy loss of one mechanism alone: delta(epsilon) as a sum over atoms and an integral over pieces.

    delta(epsilon) = sum of p (1 - e^(epsilon - loss)) over the losses above epsilon
Where a loss exceeds epsilon is a half-line of z; on it the integrand is analytic and positive, so Gauss-Legendre on
panels of a quarter of a standard deviation (a quarter of a unit of loss) is right to `SLACK`, relative (lattice.py).
"""

from __future__ import annotations

import math

import numpy as np

from . import brent
from .interval import Interval
from .lattice import SLACK
from .pairs import Loss, Piece

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def delta(law: Loss, epsilon: float) -> Interval:
    """The curve of one loss at epsilon."""
    gains = law.masses * -np.expm1(np.minimum(epsilon - law.atoms, 0.0))
    middle = float(gains.sum()) + sum(_integral(piece, epsilon) for piece in law.pieces)
    # An atom's place is known to a few roundings, and epsilon may lie on it.
    off = 4 * SLACK * middle + 8e-16 * float((law.masses * (1 + np.abs(law.atoms)))[law.atoms > epsilon - 1e-9].sum())
    low, high = middle - off + law.infinite, middle + off + law.infinite + law.cut
    return Interval(min(max(low, 0.0), 1.0), min(high, 1.0))


def _integral(piece: Piece, epsilon: float) -> float:
    edge = float(piece.place(np.array([epsilon if piece.forward else -epsilon]))[0])
    low, high = (edge, piece.high) if piece.forward else (piece.low, edge)
    panels = max(1, math.ceil((high - low) * max(1.0, piece.steepest) / 0.25))
    half = (high - low) / (2 * panels)
    z = (low + half * (2 * np.arange(panels)[:, None] + 1 + _NODES)).ravel()
    loss = piece.log_ratio(z) if piece.forward else -piece.log_ratio(z)
    log_mass = piece.log_base(z) + (loss if piece.forward else 0.0)
    return float(
        (np.tile(half * _WEIGHTS, panels) * np.exp(log_mass) * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()
    )


def epsilon(law: Loss, target: float) -> Interval:
    """Where the curve of one loss meets the target."""
    top = max(law.reach[1], 0.0) * (1 + 1e-15)  # a parameter may have been rounded down
    if delta(law, 0.0).upper <= target:
        return Interval(0.0, 0.0)
    if delta(law, top).upper > target:  # an atom at infinity that is too large was seen before
        return Interval(0.0, math.inf)

    def excess(at: float) -> float:
        interval = delta(law, at)
        return (interval.lower + interval.upper) / 2 - target

    crosses = excess(0.0) > 0 > excess(top)
    centre = brent.root(excess, 0.0, top, absolute=1e-14, relative=1e-14) if crosses else top
    return Interval(_outward(law, target, centre, -1), min(_outward(law, target, centre, 1), top))


def _outward(law: Loss, target: float, centre: float, side: int) -> float:
    """The nearest epsilon on this side of the centre at which the bound is beyond the target."""
    step = 1e-14 * max(1.0, centre)
    for _ in range(60):
        at = max(centre + side * step, 0.0)
        interval = delta(law, at)
        if (interval.upper <= target if side > 0 else interval.lower >= target) or at == 0:
            return at
        step *= 2
    return math.inf if side > 0 else 0.0
