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
  truncation   |psi^| <= 1/omega^2, and |Phi| <= e^-D(omega) with a D that never falls (`_Decay`):
               at most e^-D(Omega) / (pi Omega).
  quadrature   K is an integral over pieces (pairs.py), by 16-point Gauss-Legendre panels of half-width r; the
               integrand is analytic, so a panel is off by at most (64/15) r M rho^-32 / (1 - rho^-2) with M its
               largest modulus on the Bernstein ellipse of parameter rho (Trefethen 2013, Theorem 19.3; see
               `_Panels.error`).
  rounding     of each term, from the sizes of its exponents; a relative error e of one factor is T e after T steps.
  cut          mass beyond the ends of the pieces: infinite loss for the upper bound, nothing for the lower one.

The answer is an interval around the sum, usually narrower than 1e-7, after some hundred frequencies instead of a
transform of 10^5 points, whatever the number of steps. It needs a smooth piece somewhere: where Phi does not decay
(atoms, very few steps) the lattice of pld.py takes over.

Numerical inversion at a saddle point is old (Lugannani, Rice 1980); for privacy accounting see Alghamdi et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from .interval import Interval
from .pairs import Floats, Loss, Piece

Part = tuple[Loss, int]

_UNIT = 2.0**-53
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANEL = _NODES.size
_WIDEST_GAP = float(np.diff(_NODES).max()) / 2  # of neighbouring nodes, in panels
_ELLIPSES = (5.6, 4.0, 3.0, 2.0)  # each reaches no further than the neighbouring panels
_ASIDE = 1.4  # the pieces' ratios have no zero while rate * height stays below pi/2; then |w(z + ih)| >= 0.76 w(z)
_FEW = 100  # frequencies
_MOST_NODES = 20_000
_MOST_WORK = 2_000_000  # frequencies times nodes
_GOALS = (1e-9, 1e-6)  # of delta, for aliases and truncation


class _Nodes:
    """One loss as weighted nodes: its atoms, and Gauss-Legendre nodes on its pieces."""

    def __init__(self, law: Loss, width: float = 1.0) -> None:
        self.law, self.width = law, width
        self.panels = [_Panels(piece, width) for piece in law.pieces]
        with np.errstate(divide="ignore"):
            atoms = np.log(law.masses)
        self.log_mass = np.concatenate([atoms, *(p.log_mass for p in self.panels)])
        self.losses = np.concatenate([law.atoms, *(p.losses for p in self.panels)])
        # what is summed to give a node's log-mass and its loss: they round in proportion
        self.size = np.concatenate([np.minimum(np.abs(atoms), 800.0), *(p.size for p in self.panels)])
        self.noise = np.concatenate([np.abs(law.atoms), *(p.noise for p in self.panels)])

    def cumulant(self, tilt: float) -> float:
        exponent = self.log_mass + tilt * self.losses
        top = float(exponent.max())
        return top + math.log(float(np.exp(exponent - top).sum()))

    def variance(self) -> float:
        shares = np.exp(self.log_mass)
        mean = float((shares * self.losses).sum())
        return float((shares * (self.losses - mean) ** 2).sum())

    def quadrature(self, tilt: float, furthest: float = 0.0) -> float:
        """The error of quadrature in Phi up to `furthest`, or in the cumulant."""
        cumulant = self.cumulant(tilt)
        return sum(p.error(tilt, furthest, cumulant) for p in self.panels)

    def tilted(self, tilt: float, furthest: float) -> tuple[float, Floats, float]:
        """The cumulant, the nodes' shares of the tilted law, and how far rounding takes any Phi up to `furthest`."""
        exponent = self.log_mass + tilt * self.losses
        top = float(exponent.max())
        shares = np.exp(exponent - top)
        whole = float(shares.sum())
        cumulant = top + math.log(whole)
        shares /= whole
        size = self.size + (1 + abs(tilt) + furthest) * self.noise
        return cumulant, shares, _UNIT * (64 + self.losses.size + 4 * float((shares * size).sum()))

    def spectrum(self, shares: Floats, spacing: float, count: int) -> NDArray[np.complex128]:
        """Phi at 0, spacing, 2 spacing, ...: the powers e^(i k spacing L) as products of coarse and fine ones."""
        fine = max(1, math.isqrt(count))
        coarse = -(-count // fine)
        fast = np.exp(1j * spacing * np.outer(np.arange(fine), self.losses))
        slow = np.exp(1j * spacing * fine * np.outer(np.arange(coarse), self.losses)) * shares
        return np.asarray(np.einsum("aj,bj->ab", slow, fast).ravel()[:count])


class _Panels:
    """Gauss-Legendre panels over one piece, with one more at either end for the error bound."""

    def __init__(self, piece: Piece, width: float) -> None:
        self.piece = piece
        count = max(1, math.ceil((piece.high - piece.low) * max(1.0, piece.steepest) / width))
        self.half = (piece.high - piece.low) / (2 * count)
        centres = piece.low + self.half * (2 * np.arange(-1, count + 1) + 1)
        self.z = (centres[:, None] + self.half * _NODES).ravel()
        self.log_ratio = piece.log_ratio(self.z)
        self.inner = slice(_PANEL, -_PANEL)
        z, ratio = self.z[self.inner], self.log_ratio[self.inner]
        weights = np.tile(np.log(self.half * _WEIGHTS), count)
        self.log_mass = piece.log_base(z) + weights + (ratio if piece.forward else 0.0)
        self.losses = ratio if piece.forward else -ratio
        self.slope = piece.slope(self.z, self.log_ratio)
        self.spread = piece.slope_spread(self.z, self.log_ratio, self.slope)
        self.noise = np.abs(ratio) + self.slope[self.inner] * (np.abs(z) + piece.steepest)
        self.size = np.abs(piece.log_base(z)) + np.abs(weights)

    def _power(self, tilt: float) -> float:
        return 1 + tilt if self.piece.forward else -tilt

    def error(self, tilt: float, furthest: float, cumulant: float) -> float:
        """The quadrature error of any Phi(omega), omega <= furthest, in all panels together.

        On the ellipse w(x + iy) = a w(x) with y at most `height`, and while rate * height < pi/2 both |ln |a|| and
        |arg a| grow with |y|: |e^base w^power e^(i omega ln w)| is largest at y = height, but for |a|^power, which is
        at most 1 where the power is positive. Between nodes the log of that bound lies below its chord plus
        bend gap^2/8: with V = (ln w)'' the curvature of ln |w(x + ih)| is at most V/0.58, that of the argument at most
        16 V (rate height), as |a| >= 0.76 bounds the complex variance and third cumulant of the rates.
        """
        power = self._power(tilt)
        gap = 2 * self.half * _WIDEST_GAP
        bend = self.spread * math.exp(self.piece.steepest * gap) * (1.71 * abs(power) + 22.5 * furthest)
        bend = (bend + 2 * abs(self.piece.base[2])) * gap * gap / 8
        level = self.piece.log_base(self.z) + power * self.log_ratio - cumulant
        best = math.inf
        for rho in _ELLIPSES:
            height = self.half * (rho - 1 / rho) / 2
            if height * self.piece.steepest > _ASIDE or best < -33:
                continue
            aside = self.piece.off_axis(self.z, self.log_ratio, height)
            modulus = level + bend + abs(self.piece.base[2]) * height**2 + furthest * np.abs(np.angle(aside))
            highest = (modulus + np.maximum(power * np.log(np.abs(aside)), 0.0)).reshape(-1, _PANEL).max(axis=1)
            around = np.maximum(np.maximum(highest[:-2], highest[1:-1]), highest[2:])
            scale = math.log(64 / 15 * self.half / (1 - rho**-2)) - 2 * _PANEL * math.log(rho)
            top = float(around.max())
            best = min(best, top + math.log(float(np.exp(around - top).sum())) + scale)
        return 1.2 * math.exp(best) if best < -2 else math.inf  # in the log of the integral it is at most e/(1-e)


class _Decay:
    """|Phi(omega)| <= e^-D(omega) for one smooth piece of a tilted law, D never falling.

    Let f be the density of the tilted loss. (a) Integration by parts: |Phi| <= rest + V/omega, V the variation of f and
    rest the mass elsewhere. (b) If f >= c/length on a stretch of that length, the law is a mixture that has a uniform
    law with weight c there: over disjoint stretches |Phi| <= 1 - sum c (1 - s(omega length / 2)), s(x) the largest
    |sin y / y| over y >= x.

    Between two nodes ln f, which is base + power ln w - ln (ln w)' + const, is within b = bend gap^2/8 of its chord,
    where bend bounds its curvature: that of ln w is the variance of the rates under the mixture's posterior, which
    grows at most as e^(steepest z), and |(ln (ln w)')''| <= steepest^2. So f is at least the smaller of its two ends
    times e^-b, and it varies by at most |f1 - f0| e^b + 2b max f (ln f and the chord differ by a g that is 0 at both
    ends, with |g''| <= bend: the integral of |g'| is at most 2b). Nodes just outside see to the ends of the piece.
    """

    def __init__(self, panels: _Panels, tilt: float, cumulant: float, error: float) -> None:
        piece, power = panels.piece, panels._power(tilt)
        seen = slice(_PANEL - 1, 1 - _PANEL)  # one node beyond either end
        z, ratio, slope = panels.z[seen], panels.log_ratio[seen], np.maximum(panels.slope[seen], 1e-300)
        base = piece.log_base(z)
        noise = np.abs(ratio) + slope * (np.abs(z) + piece.steepest)
        doubt = error + 8 * _UNIT * (32 + np.abs(base) + (1 + abs(power)) * noise + abs(cumulant))  # of ln f
        gap = 2 * panels.half * _WIDEST_GAP
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
        mass = float((density * slope * np.exp(-doubt))[1:-1] @ np.tile(panels.half * _WEIGHTS, (z.size - 2) // _PANEL))
        self.rest = max(1.0 - mass, 0.0) + error + 1e-13
        self.stretches = self._stretches(
            floor[1:-1], ratio[1:-1], (slope * np.append(np.diff(z), 0.0))[1:-1], noise[1:-1]
        )

    @staticmethod
    def _stretches(floor: Floats, ratio: Floats, rise: Floats, noise: Floats) -> list[tuple[Floats, Floats]]:
        """The piece cut into stretches, more and less finely; the weights and the lengths of each. ln w is convex: to
        the next node it rises at least as its slope here says, and at least as the difference but for rounding."""
        found = []
        for count in (8, 16, 32, 48, 64, 96):
            start = np.arange(0, floor.size - 1, count)
            end = np.append(start[1:], floor.size - 1)
            least = np.minimum(np.minimum.reduceat(floor, start), floor[end])
            length = np.maximum(
                ratio[end] - ratio[start] - 16 * _UNIT * (noise[end] + noise[start]), np.add.reduceat(rise[:-1], start)
            )
            found.append((least * length, length))
        return found

    def __call__(self, frequency: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            decay = np.maximum(-np.log(self.rest + self.variation / frequency), 0.0)
        for weights, lengths in self.stretches:
            gone = (weights * (1 - _largest_sinc(np.outer(frequency, lengths / 2)))).sum(axis=1)
            decay = np.maximum(decay, -np.log1p(1e-15 - np.minimum(gone, 1.0)))
        return np.asarray(decay)


def _largest_sinc(x: Floats) -> Floats:
    """The largest |sin y / y| over y >= x, from above: 0.2173 is the first side lobe."""
    return np.where(x <= math.pi, np.maximum(np.sinc(x / math.pi), 0.2173), np.minimum(0.2173, 1 / np.maximum(x, 1.0)))


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

    parts: tuple[tuple[_Nodes, int], ...]
    mu_squared: float
    cut: float
    infinite: float

    @classmethod
    def of(cls, parts: Sequence[Part]) -> _Sum:
        nodes, mu_squared, cut, log_finite = [], 0.0, 0.0, 0.0
        for law, times in parts:
            mu = _normal(law)
            if mu is None:
                nodes.append((_Nodes(law), times))
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
        return total + sum(times * (n.quadrature(tilt) + n.tilted(tilt, 0.0)[2]) for n, times in self.parts)

    def spread(self) -> float:
        """The standard deviation, roughly."""
        return math.sqrt(sum(times * n.variance() for n, times in self.parts) + self.mu_squared + 1e-300)

    def decay(self, tilt: float, frequency: Floats) -> Floats:
        total = self.mu_squared * frequency * frequency / 2
        for nodes, times in self.parts:
            cumulant, error = nodes.cumulant(tilt), nodes.quadrature(tilt)
            decays = [_Decay(p, tilt, cumulant, error)(frequency) for p in nodes.panels]
            if decays and error < 0.1:
                total = total + times * np.maximum.reduce(decays)
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
    frequency = np.logspace(-2, 10, 145) / period
    decay = whole.decay(tilt, frequency)
    small = np.flatnonzero(-decay - np.log(math.pi * frequency) < log_small)
    if not small.size:
        return _Layout(tilt, period, math.inf)
    return _Layout(tilt, period, float(frequency[small[0]]), float(decay[small[0]]))


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
        doubt = 8 * _UNIT * (8 + np.abs(log_phi))
        self.cumulant = whole.mu_squared * (tilt * tilt + tilt) / 2
        self.doubt = 8 * _UNIT * (1 + abs(self.cumulant))  # of the cumulant
        for nodes, times in whole.parts:
            fine, off = _refined(nodes, tilt, layout.furthest)
            cumulant, shares, rounding = fine.tilted(tilt, layout.furthest)
            error = off + rounding
            phi = fine.spectrum(shares, spacing, count)
            size = np.maximum(np.abs(phi), 1e-300)
            angle = np.log(size) + 1j * np.angle(phi)
            log_phi = log_phi + times * angle
            doubt = doubt + times * (error / size + 4 * _UNIT * (2 + np.abs(angle)))
            self.cumulant += times * cumulant
            self.doubt += times * (error + 2 * _UNIT * abs(cumulant))
        kernel = 1 / ((tilt + 1j * self.frequency) * (tilt + 1 + 1j * self.frequency))
        terms = np.exp(log_phi) * kernel * (spacing / math.pi)
        terms[0] /= 2
        self.terms = terms
        heights = np.abs(terms) * np.expm1(np.minimum(doubt, 700.0))
        # A true factor is never larger than 1, whatever became of the computed one.
        caps = (1 + math.exp(min(self.doubt, 700.0))) * np.abs(kernel) * (spacing / math.pi)
        beyond = 1.01 * math.exp(-layout.decay) / (math.pi * layout.furthest)
        self.off = float(np.minimum(heights, caps).sum()) + beyond
        self.off += 16 * _UNIT * float(np.abs(terms).sum())
        self.rounding = 4 * _UNIT * float(np.abs(terms * self.frequency).sum())  # per unit of epsilon
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
        slack = self.doubt + 8 * _UNIT * (1 + abs(log_scale)) + 1e-15
        off = self.off + self.rounding * abs(epsilon)
        slack = min(slack, 700.0)
        high = (middle + off) * scale * math.exp(slack) + self.whole.infinite + self.whole.cut
        low = max(middle - off - self._aliases(epsilon), 0.0) * scale * math.exp(-slack) + self.whole.infinite
        return Interval(min(low, 1.0), min(max(high, 0.0), 1.0))

    def _aliases(self, epsilon: float) -> float:
        return sum(math.exp(min(level - move * epsilon, 700.0)) for level, move in self.aliases)


def _refined(nodes: _Nodes, tilt: float, furthest: float) -> tuple[_Nodes, float]:
    """Panels narrow enough that quadrature is off by less than rounding, and by how much."""
    found = nodes.quadrature(tilt, furthest)
    while nodes.losses.size < _MOST_NODES and found > 1e-13:
        nodes = _Nodes(nodes.law, nodes.width / 1.6)
        found = nodes.quadrature(tilt, furthest)
    return nodes, found


def curve(
    parts: Sequence[Part], *, delta: float | None = None, epsilon: float | None = None
) -> tuple[Curve, float] | None:
    """The curve where it meets this delta (or at this epsilon), with a first guess of epsilon; None where inversion
    would be too long."""
    whole = _Sum.of(parts)
    tilt, guess = _saddle(whole, delta, epsilon)
    log_delta = math.log(delta) if delta is not None else whole.cumulant(tilt) - tilt * guess - _prefactor(whole, tilt)
    nodes = max((n.losses.size for n, _ in whole.parts), default=1)
    reach = max((n.law.reach[1] - n.law.reach[0] for n, _ in whole.parts if n.panels), default=0.0)
    for goal in _GOALS:
        best = _Layout(tilt, math.inf, math.inf)
        for share in (1.0, 0.6, 0.35):  # rare large losses widen the period; a smaller tilt sees less of them
            layout = _layout(whole, share * tilt, guess, log_delta, goal)
            best = min(best, layout, key=lambda each: each.count)
            if best.count < _FEW:
                break
        if best.count * max(nodes, best.furthest * reach, _FEW) < _MOST_WORK:  # panels follow the oscillation
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
            nodes = _Nodes(replace(law, pieces=tuple(p for p in halves if p.low < p.high)))
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

    best = optimize.minimize_scalar(height, bounds=(start - 12, start + 3), method="bounded", options={"xatol": 0.02})
    tilt = math.exp(float(best.x))
    if delta is not None:
        return tilt, max((whole.cumulant(tilt) - log_delta - _prefactor(whole, tilt)) / tilt, 0.0)
    return tilt, at


def epsilon(parts: Sequence[Part], delta: float) -> Interval:
    """Where the curve meets delta, in one direction; all of [0, inf] where inversion is not for these losses."""
    found = curve(parts, delta=delta)
    if found is None:
        return Interval(0.0, math.inf)
    at, guess = found
    if at.delta(0.0).upper <= delta:
        return Interval(0.0, 0.0)
    centre = _crossing(at, delta, guess)
    if centre is None:
        return Interval(0.0, math.inf)
    return Interval(_outward(at, delta, centre, -1), _outward(at, delta, centre, 1))


def delta(parts: Sequence[Part], epsilon: float) -> Interval:
    """The curve at epsilon, in one direction; all of [0, 1] where inversion is not for these losses."""
    found = curve(parts, epsilon=epsilon)
    return Interval(0.0, 1.0) if found is None else found[0].delta(epsilon)


def _middle(at: Curve, epsilon: float) -> float:
    found = at.delta(epsilon)
    return (found.lower + found.upper) / 2


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
    return float(optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-13))


def _outward(at: Curve, delta: float, centre: float, side: int) -> float:
    """The nearest epsilon on this side of the centre at which the bound is beyond delta."""
    found = at.delta(centre)
    step = max((found.upper - found.lower) / (2 * delta * (1 + at.layout.tilt)), 1e-13 * max(1.0, centre))
    for _ in range(80):
        epsilon = max(centre + side * step, 0.0)
        found = at.delta(epsilon)
        if (side > 0 and found.upper <= delta) or (side < 0 and (found.lower >= delta or epsilon == 0)):
            return epsilon
        step *= 2
    return math.inf
