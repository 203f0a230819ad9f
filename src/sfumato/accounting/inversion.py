"""Privacy loss without a lattice: the curve by inverting its moment function, with every error bounded.

Let S be the sum of the losses under P, K(s) = ln E e^(sS) its cumulants, which add up over mechanisms, and lambda > 0 a
tilt. Under the tilted law (density e^(lambda S - K(lambda))) S has the characteristic function
    Phi(omega) = e^(K(lambda + i omega) - K(lambda)),
and with psi(u) = e^(-lambda u) (1 - e^-u) for u > 0, else 0, of transform 1/((lambda + i omega)(lambda + 1 + i omega)),
    delta(epsilon) = E (1 - e^(epsilon - S))+ = e^(K(lambda) - lambda epsilon) E_tilted psi(S - epsilon)
                   = e^(K(lambda) - lambda epsilon) (1/2 pi) Int Phi(omega) psi^(omega) e^(-i omega epsilon) d omega.
The integral is taken by the trapezoidal rule of spacing eta = 2 pi / W up to Omega. What that leaves out:

  aliases      By Poisson's formula the sum equals sum_m E psi(S - epsilon + m W): all terms positive, m = 0 wanted. As
               psi(u) <= e^(-beta u) for 0 <= beta <= lambda and psi(u) <= e^(t u) for t >= 0, the rest is at most
               e^(-beta W + beta epsilon + K(lambda - beta) - K(lambda)) / (1 - e^(-beta W)) for m > 0 and
               e^(-t W - t epsilon + K(lambda + t) - K(lambda)) / (1 - e^(-t W)) for m < 0.
               (K with the error of its quadrature.)
  truncation   |psi^| <= 1/omega^2, and |Phi| <= e^-D(omega) with a D that never falls (`Decay`):
               at most e^-D(Omega) / (pi Omega).
  quadrature   K is an integral over pieces (pairs.py), by 16-point Gauss-Legendre panels of half-width r; the
               integrand is analytic, so a panel is off by at most (64/15) r M rho^-32 / (1 - rho^-2) with M its
               largest modulus on the Bernstein ellipse of parameter rho (Trefethen 2013, Theorem 19.3; see
               `Panels.error`).
  rounding     of each term, from the sizes of its exponents; a relative error e of one factor is T e after T steps.
  cut          mass beyond the ends of the pieces: infinite loss for the upper bound, nothing for the lower one.

The answer is an interval around the sum, usually narrower than 1e-7, after some hundred frequencies instead of a
transform of 10^5 points, whatever the number of steps. It needs a smooth piece somewhere: where Phi does not decay
(atoms, very few steps) the lattice of pld.py takes over.

Numerical inversion at a saddle point is old (Lugannani, Rice 1980); for privacy accounting see Alghamdi et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import brent
from .decay import Decay
from .interval import Interval
from .pairs import Floats, Loss
from .quadrature import UNIT, Nodes, log1p

Part = tuple[Loss, int]

_FEW = 100  # frequencies
_MOST_NODES = 40_000
_MOST_WORK, _MOST_WORK_CLOSER = 3e7, 1e8  # frequencies times nodes: a tenth of a second, and some
_GOALS = (1e-9, 1e-6)  # of delta, for aliases and truncation
_WIDE = 1e-5  # of an interval, relative: worth a second, closer look


def is_normal(law: Loss) -> bool:
    """Is this the loss of plain Gaussian noise?"""
    return _normal(law) is not None


def _normal(law: Loss) -> float | None:
    """The mu of a plain Gaussian: its cumulant is known in closed form."""
    if law.atoms.size == 0 and len(law.pieces) == 1:
        piece = law.pieces[0]
        if piece.base[2] and piece.rates.size == 1:
            return piece.steepest
    return None


@dataclass(frozen=True)
class _Sum:
    """All losses together: nodes for those that need quadrature, and the total mu^2 of plain Gaussians."""

    parts: tuple[tuple[Nodes, int], ...]
    mu_squared: float
    cut: float
    infinite: float

    @classmethod
    def of(cls, parts: Sequence[Part]) -> _Sum:
        nodes, mu_squared, cut, log_finite = [], 0.0, 0.0, 0.0
        for law, times in parts:
            mu = _normal(law)
            if mu is None:
                nodes.append((Nodes(law), times))
                cut += times * law.cut
            else:
                mu_squared += times * mu * mu
            log_finite += times * math.log1p(-law.infinite)
        return cls(tuple(nodes), mu_squared, cut, -math.expm1(log_finite))

    def cumulant(self, tilt: float) -> float:
        return sum(times * n.cumulant(tilt) for n, times in self.parts) + self.mu_squared * (tilt * tilt + tilt) / 2

    def cumulant_error(self, tilt: float) -> float:
        """How far the cumulant may be off at this tilt."""
        total = 1e-12 * (1 + abs(self.cumulant(tilt)))
        return total + sum(times * (n.quadrature(tilt) + n.tilted(tilt)[2]) for n, times in self.parts)

    def spread(self) -> float:
        """The standard deviation, roughly."""
        return math.sqrt(sum(times * n.variance() for n, times in self.parts) + self.mu_squared + 1e-300)

    def decay(self, tilt: float) -> Callable[[Floats], Floats]:
        """D of the sum, which never falls."""
        decays = [(Decay(nodes, tilt), times) for nodes, times in self.parts]

        def total(frequency: Floats) -> Floats:
            plain = self.mu_squared * frequency * frequency / 2
            return np.asarray(plain + sum(times * decay(frequency) for decay, times in decays))

        return total


@dataclass(frozen=True)
class _Layout:
    """Where to sum: the tilt, the period, the last frequency and the decay there."""

    tilt: float
    period: float
    furthest: float
    decay: float = 0.0

    @property
    def count(self) -> float:
        return self.period * self.furthest / (2 * math.pi) + 2


def _layout(whole: _Sum, tilt: float, epsilon: float, log_delta: float, goal: float) -> _Layout:
    here = whole.cumulant(tilt)
    log_small = log_delta + tilt * epsilon - here + math.log(goal)  # of E psi
    right = min((_alias(whole, tilt, -share * tilt, epsilon, here) - log_small) / (share * tilt) for share in _DOWN)
    left = min((_alias(whole, tilt, share * tilt, epsilon, here) - log_small) / (share * tilt) for share in _UP)
    period = max(right, left, 1 / tilt)
    decay = whole.decay(tilt)
    furthest = 0.01 / period
    for steps in (12, 1):  # the first of twelve to the decade that is far enough
        frequency = furthest * 10.0 ** (steps * np.arange(13) / 12)
        exponents = decay(frequency)
        enough = np.flatnonzero(-exponents - np.log(math.pi * frequency) < log_small)
        if not enough.size:
            return _Layout(tilt, period, math.inf)
        first = int(enough[0])
        if not exponents[first]:  # nothing is smooth: a lattice does better
            return _Layout(tilt, period, math.inf)
        furthest = float(frequency[max(first - 1, 0)])
    return _Layout(tilt, period, float(frequency[first]), float(exponents[first]))


_DOWN = (0.25, 0.5, 0.75, 1.0)
_UP = (0.1, 0.25, 0.5, 1.0, 2.0)


def _alias(whole: _Sum, tilt: float, move: float, epsilon: float, here: float) -> float:
    """The log of the bound on one alias, but for its factor e^(-|move| W)."""
    return whole.cumulant(tilt + move) - here - move * epsilon


class Curve:
    """delta(epsilon) of a sum of losses, near one point, from both sides."""

    def __init__(self, whole: _Sum, layout: _Layout, guess: float) -> None:
        self.whole, self.layout = whole, layout
        tilt, count = layout.tilt, int(layout.count)
        spacing = 2 * math.pi / layout.period
        self.frequency = spacing * np.arange(count)
        log_phi: Any = (1j * (tilt + 0.5) * self.frequency - self.frequency**2 / 2) * whole.mu_squared
        doubt = 8 * UNIT * (8 + np.abs(log_phi))
        self.cumulant = whole.mu_squared * (tilt * tilt + tilt) / 2
        self.doubt = 8 * UNIT * (1 + abs(self.cumulant))  # of the cumulant
        for nodes, times in whole.parts:
            fine, off = _refined(nodes, tilt, layout.furthest, times)
            cumulant, shares, rounding = fine.tilted(tilt)
            excess = fine.spectrum(shares, spacing, count)
            size = np.maximum(np.abs(1 + excess), 1e-300)
            angle = log1p(excess)
            error = off + fine.rounding(shares, tilt, layout.furthest)
            log_phi = log_phi + times * angle
            doubt = doubt + times * (error / size + UNIT * (16 * np.abs(excess) / size + 4 * np.abs(angle)))
            self.cumulant += times * cumulant
            self.doubt += times * (off + rounding + 2 * UNIT * abs(cumulant))
        kernel = 1 / ((tilt + 1j * self.frequency) * (tilt + 1 + 1j * self.frequency))
        terms = np.exp(log_phi) * kernel * (spacing / math.pi)
        terms[0] /= 2
        self.terms = terms
        heights = np.abs(terms) * np.expm1(np.minimum(doubt, 700.0))
        # A true factor is never larger than 1, whatever became of the computed one.
        caps = (1 + math.exp(min(self.doubt, 700.0))) * np.abs(kernel) * (spacing / math.pi)
        beyond = 1.01 * math.exp(-layout.decay) / (math.pi * layout.furthest)
        self.off = float(np.minimum(heights, caps).sum()) + beyond
        self.off += 16 * UNIT * float(np.abs(terms).sum())
        self.rounding = 4 * UNIT * float(np.abs(terms * self.frequency).sum())  # per unit of epsilon
        self.aliases = [self._alias_bound(_DOWN, -1, guess), self._alias_bound(_UP, 1, guess)]

    def _alias_bound(self, shares: tuple[float, ...], side: int, guess: float) -> tuple[float, float]:
        """(level, move): the bound's log is level - move * epsilon. Any move is valid; this one suits the guess."""
        tilt, period = self.layout.tilt, self.layout.period
        here = self.whole.cumulant(tilt)
        bounds = []
        for share in shares:
            move = side * share * tilt
            size = abs(move) * period
            level = self.whole.cumulant(tilt + move) - here - size - math.log(-math.expm1(-size))
            bounds.append((level - move * guess, level, move))
        _, level, move = min(bounds)
        return level + self.whole.cumulant_error(tilt + move) + self.doubt, move

    def delta(self, epsilon: float) -> Interval:
        middle = float((self.terms * np.exp(-1j * self.frequency * epsilon)).real.sum())
        log_scale = self.cumulant - self.layout.tilt * epsilon
        scale = math.exp(min(log_scale, 700.0))
        slack = self.doubt + 8 * UNIT * (1 + abs(log_scale)) + 1e-15
        off = self.off + self.rounding * abs(epsilon)
        slack = min(slack, 700.0)
        high = (middle + off) * scale * math.exp(slack) + self.whole.infinite + self.whole.cut
        low = max(middle - off - self._aliases(epsilon), 0.0) * scale * math.exp(-slack) + self.whole.infinite
        return Interval(min(low, 1.0), min(max(high, 0.0), 1.0))

    def _aliases(self, epsilon: float) -> float:
        return sum(math.exp(min(level - move * epsilon, 700.0)) for level, move in self.aliases)


def _refined(nodes: Nodes, tilt: float, furthest: float, times: int) -> tuple[Nodes, float]:
    """Panels narrow enough that quadrature is off by less than rounding, and by how much."""
    goal = 1e-13 / max(1.0, times / 1000)
    quadrature = nodes.quadrature(tilt, furthest)
    while nodes.losses.size < _MOST_NODES and quadrature > goal:
        nodes = Nodes(nodes.law, nodes.width / 1.6)
        quadrature = nodes.quadrature(tilt, furthest)
    return nodes, quadrature


def curve(
    parts: Sequence[Part], *, delta: float | None = None, epsilon: float | None = None, closer: bool = False
) -> tuple[Curve, float] | None:
    """The curve where it meets this delta (or at this epsilon), with a first guess of epsilon; None where inversion
    would be too long.

    closer  at the tilt that suits epsilon best, where terms cancel least, however many frequencies that takes
    """
    whole = _Sum.of(parts)
    tilt, guess = _saddle(whole, None if closer else delta, epsilon)
    log_delta = math.log(delta) if delta is not None else whole.cumulant(tilt) - tilt * guess - _prefactor(whole, tilt)
    nodes = max((n.losses.size for n, _ in whole.parts), default=1)
    reach = max((n.law.reach[1] - n.law.reach[0] for n, _ in whole.parts if n.panels), default=0.0)

    most = _MOST_WORK_CLOSER if closer else _MOST_WORK

    def fits(layout: _Layout) -> bool:  # panels follow the oscillation
        return layout.count * max(nodes, layout.furthest * reach, _FEW) < most

    for goal in _GOALS:
        best = _Layout(tilt, math.inf, math.inf)
        for share in (1.0, 0.6, 0.35):  # rare large losses widen the period; a smaller tilt sees less of them
            layout = _layout(whole, share * tilt, guess, log_delta, goal)
            best = min(best, layout, key=lambda candidate: candidate.count)
            if best.count < _FEW or (closer and fits(best)):
                break
        if fits(best):
            return Curve(whole, best, guess), guess
    return None


def _prefactor(whole: _Sum, tilt: float) -> float:
    """The log of what the saddle-point estimate of delta has below e^(K - tilt epsilon)."""
    step = 1e-3 * tilt
    bend = (whole.cumulant(tilt + step) - 2 * whole.cumulant(tilt) + whole.cumulant(tilt - step)) / step**2
    return math.log(tilt * (1 + tilt) * math.sqrt(2 * math.pi * max(bend, 1e-300)) + 1)


def variation(parts: Sequence[Part]) -> float:
    """A bound on delta(0), the total variation: the sum over the parts. (Panels end where the loss is 0, so that the
    quadrature is good to many digits; a hundredth is more than enough for what is left.)"""
    total = 0.0
    for law, times in parts:
        mu = _normal(law)
        if mu is not None:
            gains, cut = math.erf(mu / math.sqrt(8)), 0.0
        else:
            halves = [replace(p, low=p.zero()) if p.forward else replace(p, high=p.zero()) for p in law.pieces]
            nodes = Nodes(replace(law, pieces=tuple(p for p in halves if p.low < p.high)))
            gains = float((np.exp(nodes.log_mass) * -np.expm1(-np.maximum(nodes.losses, 0.0))).sum())
            cut = law.cut
        total += times * (1.01 * gains + law.infinite + cut)
    return total


def ceiling(parts: Sequence[Part], epsilon: float) -> float:
    """Chernoff's bound on delta(epsilon), at the best tilt: psi is at most tilt^tilt / (1 + tilt)^(1 + tilt)."""
    whole = _Sum.of(parts)
    tilt, _ = _saddle(whole, None, epsilon)
    highest = -tilt * math.log1p(1 / tilt) - math.log1p(tilt)
    log_bound = whole.cumulant(tilt) + whole.cumulant_error(tilt) - tilt * epsilon + highest
    return math.exp(min(log_bound, 0.0)) + whole.infinite + whole.cut


def saddle(parts: Sequence[Part], delta: float) -> tuple[float, float]:
    """A good tilt for this delta, and the epsilon to be expected."""
    return _saddle(_Sum.of(parts), delta, None)


def saddle_delta(parts: Sequence[Part], epsilon: float) -> tuple[float, float]:
    """A good tilt at this epsilon, and the log of the delta to be expected."""
    whole = _Sum.of(parts)
    tilt, _ = _saddle(whole, None, epsilon)
    return tilt, whole.cumulant(tilt) - tilt * epsilon - _prefactor(whole, tilt)


def _saddle(whole: _Sum, delta: float | None, epsilon: float | None) -> tuple[float, float]:
    """The tilt that Chernoff's bound likes best, and the epsilon to be expected. Any tilt is valid."""
    start = math.log(3 / whole.spread())
    if delta is not None:
        log_delta = math.log(delta)

        def height(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            return (whole.cumulant(tilt) - log_delta) / tilt
    else:
        assert epsilon is not None
        at = epsilon

        def height(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            return whole.cumulant(tilt) - tilt * at - math.log(tilt) - math.log1p(tilt)  # the transform of psi too

    best, _ = brent.least(height, start - 12, start + 3, absolute=0.02)
    tilt = math.exp(best)
    if delta is not None:
        return tilt, max((whole.cumulant(tilt) - log_delta - _prefactor(whole, tilt)) / tilt, 0.0)
    return tilt, at


def epsilon(parts: Sequence[Part], delta: float) -> Interval:
    """Where the curve meets delta, in one direction; all of [0, inf] where inversion is not for these losses."""
    nothing = Interval(0.0, math.inf)
    estimate = curve(parts, delta=delta)
    if estimate is None:
        return nothing
    first, centre = _meets(*estimate, delta)
    if first.width <= _WIDE * first.upper or not centre:
        return first
    estimate = curve(parts, delta=delta, epsilon=centre, closer=True)
    return first if estimate is None else first.both(_meets(*estimate, delta)[0])


def _meets(at: Curve, guess: float, delta: float) -> tuple[Interval, float]:
    """Where this curve meets delta, from both sides and in the middle; 0 where it has no middle to speak of."""
    if at.delta(0.0).upper <= delta:
        return Interval(0.0, 0.0), 0.0
    centre = _crossing(at, delta, guess)
    if centre is None:
        return Interval(0.0, math.inf), 0.0
    return Interval(_outward(at, delta, centre, -1), _outward(at, delta, centre, 1)), centre


def delta(parts: Sequence[Part], epsilon: float) -> Interval:
    """The curve at epsilon, in one direction; all of [0, 1] where inversion is not for these losses."""
    estimate = curve(parts, epsilon=epsilon)
    if estimate is None:
        return Interval(0.0, 1.0)
    first = estimate[0].delta(epsilon)
    if first.width <= 10 * _WIDE * first.upper:
        return first
    estimate = curve(parts, epsilon=epsilon, closer=True)
    return first if estimate is None else first.both(estimate[0].delta(epsilon))


def _middle(at: Curve, epsilon: float) -> float:
    interval = at.delta(epsilon)
    return (interval.lower + interval.upper) / 2


def _crossing(at: Curve, delta: float, guess: float) -> float | None:
    """Where the middle of the curve meets delta."""

    def excess(epsilon: float) -> float:
        return math.log(max(_middle(at, epsilon), 1e-320)) - math.log(delta)

    low, high = 0.0, max(guess, 1e-12)
    growth = 0.02 * high + 1e-9
    while excess(high) > 0:
        low, high, growth = high, high + growth, 2 * growth
        if high > 1e18:
            return None
    if excess(low) <= 0:
        return 0.0
    return brent.root(excess, low, high, absolute=1e-13, relative=1e-13)


def _outward(at: Curve, delta: float, centre: float, side: int) -> float:
    """The nearest epsilon on this side of the centre at which the bound is beyond delta."""
    interval = at.delta(centre)
    step = max((interval.upper - interval.lower) / (2 * delta * (1 + at.layout.tilt)), 1e-13 * max(1.0, centre))
    for _ in range(80):
        epsilon = max(centre + side * step, 0.0)
        interval = at.delta(epsilon)
        if (side > 0 and interval.upper <= delta) or (side < 0 and (interval.lower >= delta or epsilon == 0)):
            return epsilon
        step *= 2
    return math.inf
