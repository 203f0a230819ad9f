"""The law of an average of likelihood ratios, from above: what one random allocation costs.

A unit takes part in one of t steps, drawn uniformly. Let Q be the law of all outputs without it, and L_i the likelihood
ratio of step i with it to step i without it, given the earlier outputs. Then P/Q = (L_1 + ... + L_t)/t =: S/t and
    remove   delta(epsilon) = E_Q[(S/t - e^epsilon)+] = 1 - e^epsilon + V(e^epsilon)
    add      delta(epsilon) = E_Q[(1 - e^epsilon S/t)+] = e^epsilon V(e^-epsilon),       V(c) = E_Q[(c - S/t)+].
Each is the mean of a convex function of every L_i (the others fixed), and E_Q[L_i | earlier] = 1. So replacing L_i by a
law that is larger in convex order (a mean-preserving spread), from the last step to the first, can only raise it. This
proves three things at once:
  - adaptive steps cost no more than independent ones with the worst L of the event: for Gaussian noise the log-normal
    one at full sensitivity, for epsilon-DP events the two-point law on e^epsilon and e^-epsilon;
  - for the two-point law S is a binomial count, and V a binomial excess;
  - the log-normal law may be split onto a lattice (each value between its two neighbours, keeping the mean), and S is
    then found by one Fourier transform. The transform is circular, so sums above its range come back at its start:
    that only adds to V, and little, since large values are damped by a factor e^(-d L) that is undone at the end.
    What lies under the window is bounded by Bernstein's one-sided inequality and added.

Round-off. A transform of length n is off in norm by at most 8 log2(n) 2^-53 times its own norm. So the spectrum s of
one step is off by some d with |d| <= w, and its t-th power, coefficient by coefficient, by at most
(|s_k| + |d_k|)^t - |s_k|^t. That is convex in |d_k|, so at most |d_k|/w times the same at w: in norm, no more than the
largest of those. With the rounding of the power itself and of the transform back this bounds the norm of what is wrong
in the law, and Cauchy and Schwarz bound what it does to V.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft, special

from . import binomial
from .binomial import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_WIDE = 0.35
_MASSES = 1e-13  # relative error assumed of the lattice masses
_UNIT = 2.0**-53
_MOST_CELLS = 1 << 20
_ROOM = 8  # the transform is so many times as long as the window that is read
_DAMPING = 16.0


@dataclass(frozen=True)
class TwoPoint:
    """S for a local epsilon: each L is e^epsilon with probability 1/(e^epsilon + 1), else e^-epsilon (below 700)."""

    epsilon: float
    steps: int

    def remove(self, epsilon: float) -> float:
        return self._excess(epsilon, 1)

    def add(self, epsilon: float) -> float:
        return math.exp(epsilon) * self._excess(epsilon, -1)

    def _excess(self, epsilon: float, sign: int) -> float:
        """E[(S/t - e^epsilon)+], or E[(e^-epsilon - S/t)+]: slope times the excess of the number of L on that side."""
        slope = 2 * math.sinh(self.epsilon) / self.steps
        threshold = math.expm1(sign * (epsilon + self.epsilon)) / math.expm1(2 * sign * self.epsilon) * self.steps
        chance, other = special.expit(-sign * self.epsilon), special.expit(sign * self.epsilon)
        threshold *= 1 - 1e-14
        high = float(binomial.excess(threshold, float(self.steps), float(chance), float(other))[1])
        return slope * high * (1 + 1e-12)


@dataclass(frozen=True)
class LogNormal:
    """S for Gaussian noise, L = exp(mu x - mu^2/2) with x normal: V on a lattice, good for S/t up to `most`.

    `spare` is a probability that may be given away at the ends (it is added to delta).
    """

    mu: float
    steps: int
    most: float
    spare: float

    def remove(self, epsilon: float) -> float:
        return self.put(math.exp(epsilon)) - math.expm1(epsilon)

    def add(self, epsilon: float) -> float:
        return math.exp(epsilon) * self.put(math.exp(-epsilon))

    def put(self, level: float) -> float:
        """V(level) from above, for a level up to `most`."""
        values, law, growth, wrong, outside = self._law
        gain = np.maximum(level - values, 0.0)
        round_off = wrong * float(np.linalg.norm(gain * growth))
        return float((law * gain).sum() + round_off) * (1 + self.steps * _MASSES) + level * outside

    @cached_property
    def _law(self) -> tuple[Floats, Floats, Floats, float, float]:
        """S/t on a lattice, its probabilities, the growth that undid the damping, the norm of what was wrong before it,
        and a bound on the probability that was left out."""
        mu, t = self.mu, self.steps
        reach = -float(special.ndtri(self.spare / t))
        least = math.exp(-mu * reach - mu * mu / 2)
        fall = math.sqrt(2 * t * -math.log(self.spare) * math.exp(min(mu * mu, 600.0)))
        high = t * self.most
        low = max(t * least, min(t, high) - fall)
        if high <= low:  # then high <= t least, and some L must be below `least`
            return np.zeros(1), np.zeros(1), np.zeros(1), 0.0, min(self.spare, _tail(t - high, t, mu, 0.0))
        used = 1 << (15 if t <= 5000 else 16 if t <= 50000 else 17)
        size = _ROOM * used
        largest = min(math.exp(min(mu * reach - mu * mu / 2, 600.0)), max(high - (t - 1) * least, least) * (1 + 1e-9))
        step = max((high - low) / used, (largest - least) / _MOST_CELLS)
        under = 0.0 if low <= t * least else _tail(t - low, t, mu, step)
        count = max(2, math.ceil((largest - least) / step) + 1)
        first = math.floor((low - t * least) / step)
        damping = _DAMPING / size * (np.arange(count + 1) - first / t)
        masses = self._masses(least, step, count) * np.exp(-damping)
        folded = np.bincount(np.arange(count + 1) % size, masses, size).astype(np.float64)
        law, wrong = _power(folded, t)
        index = np.arange(first, first + used + 2, dtype=np.int64)
        growth = np.exp(_DAMPING / size * (index - first))
        values = np.asarray(least + index * (step / t), dtype=np.float64)
        return values, np.maximum(law[index % size], 0.0) * growth, growth, wrong, 2 * self.spare + under

    def _masses(self, least: float, step: float, count: int) -> Floats:
        """The law of L, split onto least + k step for k = 0 .. count. (Ends beyond are left out: `spare` pays.)"""
        mu = self.mu
        edges = (np.log(least + step * np.arange(count + 1)) + mu * mu / 2) / mu
        low, width = edges[:-1], np.diff(edges)
        k = np.arange(count)
        left, right = np.zeros(count), np.zeros(count)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            x = low + width * (1 + node) / 2
            share = np.clip((np.exp(mu * x - mu * mu / 2) - least) / step - k, 0.0, 1.0)
            mass = np.exp(-x * x / 2) * width * (weight / 2 / math.sqrt(2 * math.pi))
            left += mass * (1 - share)
            right += mass * share
        wide = np.flatnonzero((width > _WIDE) | (mu * width > 1))
        a, b = edges[wide], edges[wide + 1]
        mass, mean = _between(a, b), _between(a - mu, b - mu)
        right[wide] = np.clip((mean - least * mass) / step - k[wide] * mass, 0.0, mass)
        left[wide] = mass - right[wide]
        return np.append(left, 0.0) + np.append(0.0, right)


def _power(masses: Floats, times: int) -> tuple[Floats, float]:
    """The law of a sum of so many, on a circle, and the norm of what is wrong with it (see the top of the file)."""
    size = masses.size
    unit = 8 * math.log2(size) * _UNIT
    off = unit * math.sqrt(size) * float(np.linalg.norm(masses))
    spectrum = fft.rfft(masses)
    magnitude = np.abs(spectrum)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_spectrum = np.log(spectrum)
        power = np.nan_to_num(np.exp(times * log_spectrum))  # 0 where the spectrum is
        moved = np.exp(times * np.log(magnitude + off)) * -np.expm1(-times * np.log1p(off / magnitude))
        rounded = np.nan_to_num(np.abs(power) * np.expm1(8 * _UNIT * times * (1 + np.abs(log_spectrum))))
    law = fft.irfft(power, size)
    both_halves = math.sqrt(2) * float(np.linalg.norm(rounded))
    wrong = (float(moved.max()) + both_halves) / math.sqrt(size) + unit * float(np.linalg.norm(law))
    return law, wrong * (1 + 1e-9)


def _tail(fall: float, steps: int, mu: float, step: float) -> float:
    """P(S <= t - fall), for L split onto a lattice of that step: Bernstein for variables that are not negative."""
    square = math.exp(min(mu * mu, 600.0)) + step * step / 4  # at least E[L^2]
    return math.exp(-(fall**2) / (2 * steps * square))


def _between(a: Floats, b: Floats) -> Floats:
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    return np.asarray(special.ndtr(b) - special.ndtr(a))
