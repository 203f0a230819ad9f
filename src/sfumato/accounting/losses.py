"""The privacy loss of each mechanism, cut into lattice cells.

A mechanism is a pair (P, Q): some atoms, and a continuous part along a coordinate z on which the loss L(z) rises.
Poisson sampling at rate r mixes the pair (Zhu, Dong, Wang 2022):
    remove   P' = (1 - r) Q + r P against Q      L' = ln(1 - r + r e^L)
    add      Q against P'                        -L'
so a cell of the new loss is an interval of z, and its masses are integrals over it: by Gauss-Legendre quadrature where
the interval is narrow (the integrand is smooth, nothing cancels), by differences of tail functions where it is wide
(few cells, with large masses).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Gaussian, Laplace, Poisson, PureEvent, RandomizedResponse
from .lattice import Cells

Floats = NDArray[np.float64]
Masses = tuple[Floats, Floats]  # of P and of Q

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
ATOM_SLACK = 1e-12  # in steps
_NARROW = 0.35  # in standard deviations


class Smooth(ABC):
    """The continuous part of a pair, along z."""

    @abstractmethod
    def loss(self, z: Floats) -> Floats:
        """L(z), rising."""

    @abstractmethod
    def place(self, loss: Floats) -> Floats:
        """The z of a loss."""

    @abstractmethod
    def density(self, z: Floats) -> Masses:
        """Of P and Q at z."""

    @abstractmethod
    def mass(self, low: Floats, high: Floats) -> Masses:
        """Of P and Q between."""

    @abstractmethod
    def ends(self, tail: float) -> tuple[float, float]:
        """Beyond either end lies at most `tail` of P and of Q."""


@dataclass(frozen=True)
class Normal(Smooth):
    """N(mu, 1) against N(0, 1)."""

    mu: float

    def loss(self, z: Floats) -> Floats:
        return self.mu * z - self.mu**2 / 2

    def place(self, loss: Floats) -> Floats:
        return (loss + self.mu**2 / 2) / self.mu

    def density(self, z: Floats) -> Masses:
        q = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return q * np.exp(self.loss(z)), q

    def mass(self, low: Floats, high: Floats) -> Masses:
        return _between(low - self.mu, high - self.mu), _between(low, high)

    def ends(self, tail: float) -> tuple[float, float]:
        z = -float(special.ndtri(tail))
        return -z, self.mu + z


def _between(low: Floats, high: Floats) -> Floats:
    """The normal mass of an interval, by the tails on its own side of 0."""
    flip = low > 0
    return np.asarray(special.ndtr(np.where(flip, -low, high)) - special.ndtr(np.where(flip, -high, low)))


@dataclass(frozen=True)
class LaplaceMiddle(Smooth):
    """Two Laplace laws of scale 1/epsilon, one apart, between their centres; z is the loss itself. The outer halves are
    atoms at +-epsilon."""

    epsilon: float

    def loss(self, z: Floats) -> Floats:
        return z

    def place(self, loss: Floats) -> Floats:
        return np.clip(loss, -self.epsilon, self.epsilon)

    def density(self, z: Floats) -> Masses:
        return np.exp((z - self.epsilon) / 2) / 4, np.exp(-(z + self.epsilon) / 2) / 4

    def mass(self, low: Floats, high: Floats) -> Masses:
        half = (high - low) / 2
        return (
            np.exp((low - self.epsilon) / 2) * np.expm1(half) / 2,
            -np.exp(-(low + self.epsilon) / 2) * np.expm1(-half) / 2,
        )

    def ends(self, tail: float) -> tuple[float, float]:
        return -self.epsilon, self.epsilon


@dataclass(frozen=True)
class Pair:
    """One mechanism as a pair of laws, Poisson-sampled at a rate."""

    atoms: tuple[tuple[float, float], ...] = ()  # (P-mass, Q-mass)
    smooth: Smooth | None = None
    infinite: float = 0.0
    rate: float = 1.0

    @property
    def symmetric(self) -> bool:
        """Are both directions alike? (All mechanisms here are, before sampling.)"""
        return self.rate == 1.0

    @property
    def resolution(self) -> float:
        """The finest feature of the loss that a lattice should see: its standard deviation under Q, roughly."""
        if isinstance(self.smooth, Normal):
            spread = math.sqrt(math.expm1(min(self.smooth.mu**2, 50.0)))
        else:
            spread = max(abs(math.log(p / q)) for p, q in self.atoms)
        return spread * self.rate if self.rate < 1 else max(spread, 1e-9)

    def cells(self, step: float, tail: float, *, remove: bool) -> Cells:
        """The loss in one direction, cut at the multiples of `step`."""
        sign = 1.0 if remove else -1.0
        p0, q0 = np.array(self.atoms).reshape(-1, 2).T
        mixed = (1 - self.rate) * q0 + self.rate * p0
        atom_loss, atom_mass = sign * np.log(mixed / q0), mixed if remove else q0
        reach = [0.0, *atom_loss.tolist()]
        if self.smooth is not None:
            reach += [sign * float(self._sampled(self.smooth.loss(np.array(z)))) for z in self.smooth.ends(tail)]
        first, last = math.floor(min(reach) / step) - 1, math.ceil(max(reach) / step) + 1
        nodes = step * np.arange(first, last + 1)
        left, right = np.zeros(nodes.size - 1), np.zeros(nodes.size - 1)
        at = np.zeros(nodes.size)
        nearest = np.rint(atom_loss / step)
        on_node = np.abs(atom_loss / step - nearest) < ATOM_SLACK  # pld.py adds what calling it equal may cost
        np.add.at(at, nearest[on_node].astype(np.int64) - first, atom_mass[on_node])
        atom_loss, atom_mass = atom_loss[~on_node], atom_mass[~on_node]
        index = np.floor(atom_loss / step).astype(np.int64) - first
        to_left, to_right = _shares(atom_loss - nodes[index], step)
        np.add.at(left, index, atom_mass * to_left)
        np.add.at(right, index, atom_mass * to_right)
        outside = 0.0
        if self.smooth is not None:
            self._fill(self.smooth, nodes, left, right, step, tail, remove)
            outside = tail if isinstance(self.smooth, Normal) else 0.0
        slack = 1e-12 if self.smooth is None else 1e-10  # quadrature and differences; sums are off by about 1e-12
        return Cells(step, first, left, right, at, self.infinite, above=outside, below=outside, slack=slack)

    def _sampled(self, loss: Floats) -> Floats:
        return np.asarray(loss if self.rate == 1 else np.log1p(self.rate * np.expm1(loss)))

    def _unsampled(self, loss: Floats) -> Floats:
        """The loss before sampling; -inf below what sampling can reach."""
        if self.rate == 1:
            return loss
        inner = np.expm1(loss) / self.rate
        return np.log1p(np.maximum(inner, -1.0))

    def _fill(
        self, smooth: Smooth, nodes: Floats, left: Floats, right: Floats, step: float, tail: float, remove: bool
    ) -> None:
        sign = 1.0 if remove else -1.0
        with np.errstate(divide="ignore"):
            z = np.clip(smooth.place(self._unsampled(sign * nodes)), *smooth.ends(tail))
        low, high = (z[:-1], z[1:]) if remove else (z[1:], z[:-1])
        wide = high - low > _NARROW
        some = np.flatnonzero(~wide & (high > low))
        middle, half = (low[some] + high[some]) / 2, (high[some] - low[some]) / 2
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            x = middle + half * node
            p, q = smooth.density(x)
            mass = ((1 - self.rate) * q + self.rate * p if remove else q) * half * weight
            to_left, to_right = _shares(sign * self._sampled(smooth.loss(x)) - nodes[some], step)
            left[some] += mass * to_left
            right[some] += mass * to_right
        some = np.flatnonzero(wide)
        p, q = smooth.mass(low[some], high[some])
        mixed = (1 - self.rate) * q + self.rate * p
        ours, theirs = (mixed, q) if remove else (q, mixed)
        share = np.clip((ours - theirs * np.exp(nodes[some])) / -math.expm1(-step), 0.0, ours)
        right[some] += share
        left[some] += ours - share


def _shares(offset: Floats, step: float) -> tuple[Floats, Floats]:
    """What a loss at `offset` into its cell sends to the left and to the right end, keeping P and Q."""
    u = np.clip(offset, 0.0, step)
    return np.expm1(step - u) / math.expm1(step), np.expm1(-u) / math.expm1(-step)


def pair(event: Event) -> Pair:
    """The dominating pair of one mechanism."""
    if isinstance(event, Poisson):
        inner = pair(event.event)
        if inner.infinite:
            raise UnsupportedEventError("sampling of an (epsilon, delta) event is not priced by privacy loss")
        return Pair(inner.atoms, inner.smooth, rate=float(event.rate))
    if isinstance(event, Gaussian):
        return Pair(smooth=Normal(float(1 / event.multiplier)))
    if isinstance(event, Laplace):
        size = float(event.epsilon)
        small = math.exp(-size) / 2
        return Pair(((0.5, small), (small, 0.5)), LaplaceMiddle(size))
    if isinstance(event, RandomizedResponse):
        q = 1 / (math.exp(event.epsilon) + event.categories - 1)
        p = q * math.exp(event.epsilon)
        rest = (event.categories - 2) * q
        return Pair(((p, q), (q, p)) + (((rest, rest),) if rest else ()))
    if isinstance(event, PureEvent | Approximate):
        delta = float(event.delta) if isinstance(event, Approximate) else 0.0
        p = (1 - delta) / (1 + math.exp(-event.epsilon))
        return Pair(((p, 1 - delta - p), (1 - delta - p, p)), infinite=delta)
    raise UnsupportedEventError(f"{type(event).__name__} has no privacy-loss distribution here: price it by rho")
