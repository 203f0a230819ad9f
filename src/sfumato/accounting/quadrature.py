"""One privacy loss as weighted nodes: atoms, and Gauss-Legendre panels over the pieces, with every error bounded.

The moment function of a loss, and its characteristic function once tilted, are sums over these nodes (inversion.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .pairs import Floats, Loss, Piece

UNIT = 2.0**-53
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PANEL = NODES.size
WIDEST_GAP = float(np.diff(NODES).max()) / 2  # of neighbouring nodes, in panels
_ELLIPSES = (5.6, 4.0, 3.0, 2.0)  # each reaches no further than the neighbouring panels
_ASIDE = 1.4  # the pieces' ratios have no zero while rate * height stays below pi/2; then |w(z + ih)| >= 0.76 w(z)
_BLOCK = 128  # of nodes that are summed at once


class Nodes:
    """One loss as weighted nodes: its atoms, and Gauss-Legendre nodes on its pieces."""

    def __init__(self, law: Loss, width: float = 1.0) -> None:
        self.law, self.width = law, width
        self.panels = [Panels(piece, width) for piece in law.pieces]
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

    def tilted(self, tilt: float) -> tuple[float, Floats, float]:
        """The cumulant, the nodes' shares of the tilted law, and how far rounding takes the cumulant."""
        exponent = self.log_mass + tilt * self.losses
        top = float(exponent.max())
        shares = np.exp(exponent - top)
        whole = math.fsum(shares)
        cumulant = top + math.log(whole)
        shares /= whole
        return cumulant, shares, UNIT * (64 + 4 * float((shares * self._exponents(tilt)).sum()))

    def _exponents(self, tilt: float) -> Floats:
        """What is summed up in a node's tilted log-mass: it rounds in proportion."""
        return np.asarray(self.size + (1 + abs(tilt)) * self.noise)

    def spectrum(self, shares: Floats, spacing: float, count: int) -> NDArray[np.complex128]:
        """Phi - 1 at 0, spacing, 2 spacing, ...: sums of shares (e^(i omega L) - 1), which are small where losses are.
        With omega = a + b, coarse and fine, e^(iaL + ibL) - 1 = A + (1 + A) B for A = e^(iaL) - 1, B = e^(ibL) - 1."""
        fine = max(1, math.isqrt(count))
        coarse = -(-count // fine)
        fast = _turn(spacing * np.outer(np.arange(fine), self.losses))
        slow = _turn(spacing * fine * np.outer(np.arange(coarse), self.losses))
        sums = np.zeros((coarse, fine), dtype=np.complex128)
        for start in range(0, self.losses.size, _BLOCK):  # a sum of n terms is off by _BLOCK + n/_BLOCK roundings
            some = slice(start, start + _BLOCK)
            sums += (slow[:, some] @ shares[some])[:, None] + ((1 + slow[:, some]) * shares[some]) @ fast[:, some].T
        return np.asarray(sums.ravel()[:count])

    def rounding(self, shares: Floats, tilt: float, furthest: float) -> float:
        """How far rounding takes any such Phi - 1 up to `furthest`.

        Its terms are at most m = min(2, furthest |L|). A share is off by its exponent and by the sum that all are
        divided by, their sum by the roundings of its blocks, and e^(i omega L) by the rounding of omega L."""
        most = np.minimum(2.0, furthest * np.abs(self.losses))
        exponents = self._exponents(tilt)
        common = 256 + 4 * (_BLOCK + self.losses.size / _BLOCK) + 4 * float((shares * exponents).sum())
        terms = float((shares * most * (common + 8 * exponents)).sum())
        return UNIT * (terms + 16 * furthest * float((shares * self.noise).sum()))


def _turn(angle: Floats) -> NDArray[np.complex128]:
    """e^(i angle) - 1, to full relative accuracy."""
    half = np.sin(angle / 2)
    return np.asarray(-2 * half * half + 1j * np.sin(angle))


def log1p(z: Any) -> Any:
    """ln(1 + z), off by a few roundings of z/(1 + z) where z is small (numpy's is off by one of 1)."""
    near = np.log1p(np.where(np.abs(z) < 0.5, z.real * (2 + z.real) + z.imag * z.imag, 0.0)) / 2
    far = np.log(np.where(np.abs(1 + z) < 1e-300, 1e-300, 1 + z))
    return np.where(np.abs(z) < 0.5, near + 1j * np.arctan2(z.imag, 1 + z.real), far)


class Panels:
    """Gauss-Legendre panels over one piece, with one more at either end for the error bound."""

    def __init__(self, piece: Piece, width: float) -> None:
        self.piece = piece
        count = max(1, math.ceil((piece.high - piece.low) * max(1.0, piece.steepest) / width))
        self.half = (piece.high - piece.low) / (2 * count)
        centres = piece.low + self.half * (2 * np.arange(-1, count + 1) + 1)
        self.z = (centres[:, None] + self.half * NODES).ravel()
        self.log_ratio = piece.log_ratio(self.z)
        self.inner = slice(PANEL, -PANEL)
        z, ratio = self.z[self.inner], self.log_ratio[self.inner]
        weights = np.tile(np.log(self.half * WEIGHTS), count)
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
        gap = 2 * self.half * WIDEST_GAP
        bend = self.spread * math.exp(self.piece.steepest * gap) * (1.71 * abs(power) + 22.5 * furthest)
        bend = (bend + 2 * abs(self.piece.base[2])) * gap * gap / 8
        level = self.piece.log_base(self.z) + power * self.log_ratio - cumulant
        best = math.inf
        for rho in _ELLIPSES:
            height = self.half * (rho - 1 / rho) / 2
            if height * self.piece.steepest > _ASIDE or best < -45:
                continue
            aside = self.piece.off_axis(self.z, self.log_ratio, height)
            modulus = level + bend + abs(self.piece.base[2]) * height**2 + furthest * np.abs(np.angle(aside))
            highest = (modulus + np.maximum(power * np.log(np.abs(aside)), 0.0)).reshape(-1, PANEL).max(axis=1)
            around = np.maximum(np.maximum(highest[:-2], highest[1:-1]), highest[2:])
            scale = math.log(64 / 15 * self.half / (1 - rho**-2)) - 2 * PANEL * math.log(rho)
            top = float(around.max())
            best = min(best, top + math.log(float(np.exp(around - top).sum())) + scale)
        return 1.2 * math.exp(best) if best < -2 else math.inf  # in the log of the integral it is at most e/(1-e)
