"""How fast the characteristic function of a tilted loss decays: a bound that never rises with the frequency."""

from __future__ import annotations

import math

import numpy as np

from .pairs import Floats
from .quadrature import PANEL, UNIT, WEIGHTS, WIDEST_GAP, Nodes, Panels

_MOST_LEVELS = 200


class Decay:
    """|Phi(omega)| <= e^-D(omega) for a tilted law with smooth pieces, D never falling.

    Let f be the density of the tilted loss on a piece. (a) Integration by parts: |Phi| <= rest + V/omega, V the
    variation of f and rest the mass elsewhere. (b) If intervals I_1, I_2, ... shrink, each within the one before, and
    f >= h_k on I_k for levels 0 = h_0 < h_1 < ..., then f >= sum of (h_k - h_(k-1)) 1(I_k): the law is a mixture that
    has uniform laws on the I_k with the weights c_k = (h_k - h_(k-1)) |I_k|. (Where f has one peak, that is nearly all
    of it.) Over all pieces |Phi| <= 1 - sum of c_k (1 - s(omega |I_k| / 2)), s(x) the largest |sin y / y| over y >= x.

    Between two nodes ln f, which is base + power ln w - ln (ln w)' + const, is within b = bend gap^2/8 of its chord,
    where bend bounds its curvature: that of ln w is the variance of the rates under the mixture's posterior, which
    grows at most as e^(steepest z), and |(ln (ln w)')''| <= steepest^2. So f is at least the smaller of its two ends
    times e^-b, and it varies by at most |f1 - f0| e^b + 2b max f (ln f and the chord differ by a g that is 0 at both
    ends, with |g''| <= bend: the integral of |g'| is at most 2b). Nodes just outside see to the ends of the piece.
    """

    def __init__(self, nodes: Nodes, tilt: float) -> None:
        cumulant, self.error = nodes.cumulant(tilt), nodes.quadrature(tilt)
        pieces = [Density(panels, tilt, cumulant, self.error) for panels in nodes.panels] if self.error < 0.1 else []
        self.bounds = [(piece.rest, piece.variation) for piece in pieces]
        self.weights = np.concatenate([piece.weights for piece in pieces] or [np.zeros(0)])
        self.lengths = np.concatenate([piece.lengths for piece in pieces] or [np.zeros(0)])

    def __call__(self, frequency: Floats) -> Floats:
        gone = (self.weights * (1 - _largest_sinc(np.outer(frequency, self.lengths / 2)))).sum(axis=1)
        decay = np.maximum(-np.log1p(1e-13 - np.minimum(gone, 1.0)), 0.0)
        for rest, variation in self.bounds:
            decay = np.maximum(decay, -np.log(rest + variation / frequency))
        return np.asarray(decay)


class Density:
    """The density of a tilted loss on one piece: its variation, the mass elsewhere, and uniform laws below it."""

    def __init__(self, panels: Panels, tilt: float, cumulant: float, error: float) -> None:
        piece, power = panels.piece, panels._power(tilt)
        seen = slice(PANEL - 1, 1 - PANEL)  # one node beyond either end
        z, ratio, slope = panels.z[seen], panels.log_ratio[seen], np.maximum(panels.slope[seen], 1e-300)
        base = piece.log_base(z)
        noise = np.abs(ratio) + slope * (np.abs(z) + piece.steepest)
        doubt = error + 8 * UNIT * (32 + np.abs(base) + (1 + abs(power)) * noise + abs(cumulant))  # of ln f
        gap = 2 * panels.half * WIDEST_GAP
        curved = 0.0 if piece.rates.size == 1 else piece.steepest**2
        bend = 2 * abs(piece.base[2]) + abs(power) * panels.spread[seen] * math.exp(piece.steepest * gap) + curved
        bump = bend * gap * gap / 8 + doubt
        log_density = base + power * ratio - cumulant - np.log(slope)
        floor = np.exp(np.minimum(log_density - bump, 600.0))
        density = np.exp(np.minimum(log_density, 600.0))
        either = np.minimum(np.maximum(bump[1:], bump[:-1]), 100.0)
        larger = np.maximum(density[1:], density[:-1])
        inside = (np.abs(np.diff(density)) + 2 * either * larger) * np.exp(either)
        self.variation = float(inside.sum() + density[0] + density[-1]) * math.exp(min(float(doubt.max()), 1.0))
        if float((log_density + bump).max()) > 99 or float(slope.min()) < 1e-290:
            self.variation = math.inf
        mass = float((density * slope * np.exp(-doubt))[1:-1] @ np.tile(panels.half * WEIGHTS, (z.size - 2) // PANEL))
        self.rest = max(1.0 - mass, 0.0) + error + 1e-13
        rise = (slope * np.append(np.diff(z), 0.0))[1:-1]
        self.weights, self.lengths = uniforms(floor[1:-1], ratio[1:-1], rise, noise[1:-1])


def uniforms(floor: Floats, ratio: Floats, rise: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Uniform laws below a density with this floor at and between the nodes: their weights and lengths.

    The intervals shrink around the highest node; the levels are the floors, lowest first. ln w is convex: to the next
    node it rises at least as its slope here says, and at least as the difference but for rounding."""
    top = int(floor.argmax())
    left = np.minimum.accumulate(floor[top::-1])[::-1]  # the least from here to the top
    right = np.minimum.accumulate(floor[top:])
    levels = np.unique(np.concatenate([left, right]))
    levels = levels[(levels.size - 1) % (1 + levels.size // _MOST_LEVELS) :: 1 + levels.size // _MOST_LEVELS]
    first = np.searchsorted(left, levels, side="left")
    last = floor.size - np.searchsorted(right[::-1], levels, side="left") - 1
    along = np.append(0.0, np.cumsum(rise[:-1]))
    by_slope = (along[last] - along[first]) - 4 * UNIT * floor.size * float(along[-1])
    by_ends = ratio[last] - ratio[first] - 16 * UNIT * (noise[last] + noise[first])
    lengths = np.maximum(np.maximum(by_slope, by_ends), 0.0)
    return np.diff(levels, prepend=0.0) * lengths * (1 - 1e-14), lengths


def _largest_sinc(x: Floats) -> Floats:
    """The largest |sin y / y| over y >= x, from above: 0.2173 is the first side lobe."""
    return np.where(x <= math.pi, np.maximum(np.sinc(x / math.pi), 0.2173), np.minimum(0.2173, 1 / np.maximum(x, 1.0)))
