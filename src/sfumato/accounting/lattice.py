"""Privacy loss on a lattice: discretisation from both sides.

A pair of laws (P, Q) has the privacy loss L = ln dP/dQ, and its hockey-stick curve is, with x = e^epsilon,
    H(x) = sup_S P(S) - x Q(S) = E_P[(1 - x e^-L)+]      convex in x, with slope -Q(L > ln x).
Two pairs compose as their losses add, and whoever has the larger curve has it after composition too. A pair whose
losses are whole multiples of a step h composes by convolution, so we look for lattice pairs just above and just below
the true one. A lattice pair has a curve with kinks at the nodes x_i = e^(ih) only.

  above   Connect the dots (Doroshenko et al. 2022): the chords through (x_i, H(x_i)). In masses: the loss l in the cell
          [ih, (i+1)h) is sent to both ends so that P and Q are kept,
              right share (1 - e^-u)/(1 - e^-h), left share (e^(h-u) - 1)/(e^h - 1), u = l - ih.
  below   The chords lowered: over one cell a chord lies above the curve by at most
              e_i = dx_i ql_i qr_i / (ql_i + qr_i),
          the height of the triangle that the chord makes with the tangents at its ends (ql_i, qr_i: the Q-mass the cell
          sends left and right, which are the slopes between chord and tangents). So the nodes y_i = H(x_i) - g_i with
          g_i >= max(e_(i-1), e_i) give a polygon below H. Where y would fall below the trivial curve max(1 - x, 0) it
          follows that curve; the cell next to it needs no more than its tangent there, g = dx_i times the Q-mass sent
          to the trivial side. A node at which the polygon is not convex is dropped: its (negative) mass goes to its
          neighbours, which is the lower hull. A convex polygon from (0, 1) to 0 above 1 - x is the curve of a pair, and
          it lies below H: a lower bound, off by O(h^2) like the upper one.

In exact arithmetic these are proofs. Cell masses are Gauss-Legendre sums of positive terms, cut where the loss meets a
node and wherever a stretch of z would be wider than a quarter of a standard deviation (a quarter of a unit of loss): by
the bound on Bernstein ellipses each is right to far better than `SLACK`, as are atoms; the error enters once per
composition, on P (through delta) and on Q (through epsilon). A hair of mass that rounding leaves negative at the end
of the lowered polygon is dropped, and counted in `excess`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .pairs import Floats, Loss, Piece

SLACK = 1e-12  # relative error of a cell's masses
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class LatticeCells:
    """P-masses of the cells [ih, (i+1)h), i = first, first + 1, ..., each as what goes to its left and right end."""

    step: float
    first: int
    left: Floats
    right: Floats
    at: Floats  # P-masses that lie on the nodes themselves: no chord passes over them
    infinite: float = 0.0  # P-mass at infinite loss
    cut: float = 0.0  # bound on P-mass that is missing: infinite for the upper side, nothing for the lower
    offset: float = 0.0  # of the nodes, which lie at offset + ih

    @classmethod
    def of(cls, law: Loss, step: float) -> tuple[LatticeCells, LatticeCells]:
        """A loss, cut up at the multiples of `step`: for the lower side, and for the upper one.

        For the lower side, all outcomes with losses within one step of 0 are made one, which is post-processing, and
        the lattice is moved to meet the loss of that one: where nearly all mass lies near 0 (rare sampling) the chords
        over it would drown the rest."""
        low, high = law.reach
        first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
        losses, masses = [law.atoms], [law.masses]
        for piece in law.pieces:
            z, weights = _quadrature(piece, step, first, last)
            ratio = piece.log_ratio(z)
            losses.append(ratio if piece.forward else -ratio)
            masses.append(weights * np.exp(piece.log_base(z) + (ratio if piece.forward else 0.0)))
        loss, mass = np.concatenate(losses), np.concatenate(masses)
        above = cls._sorted(law, step, first, last, loss, mass)
        near = np.abs(loss) < step * (1 - ON_NODE)
        lump = float(mass[near].sum())
        if lump == 0:
            return above, above
        offset = -math.log1p(float((mass[near] * np.expm1(-loss[near])).sum()) / lump)
        below = cls._sorted(law, step, first, last, loss[~near] - offset, mass[~near], offset)
        below.at[-first] += lump
        return below, above

    @classmethod
    def _sorted(
        cls, law: Loss, step: float, first: int, last: int, loss: Floats, mass: Floats, moved: float = 0.0
    ) -> LatticeCells:
        place = loss / step - first
        nearest = np.rint(place)
        on_node = np.abs(place - nearest) < ON_NODE
        size = last - first + 1
        at = _sums(nearest[on_node].astype(np.int64), mass[on_node], size)
        place, mass = place[~on_node], mass[~on_node]
        index = np.floor(place).astype(np.int64)
        offset = step * (place - index)
        left = _sums(index, mass * np.expm1(step - offset) / math.expm1(step), size)[:-1]
        right = _sums(index, mass * np.expm1(-offset) / math.expm1(-step), size)[:-1]
        return cls(step, first, left, right, at, law.infinite, law.cut, moved)

    def upper(self) -> Lattice:
        p = self.at.copy()
        p[:-1] += self.left
        p[1:] += self.right
        return Lattice(self.step, self.first, p, self.infinite + self.cut, offset=self.offset)

    def lower(self) -> Lattice:
        # All in P-masses: dx_i = x_i (e^h - 1) and Q-mass = P-mass / x, so that no x is needed far from 0.
        grow, fall = math.expm1(self.step), math.exp(-self.step)
        n = self.left.size
        both = self.left + fall * self.right
        height = grow * self.left * np.divide(fall * self.right, both, out=np.zeros(n), where=both > 0)
        gap = np.append(height, 0.0)
        np.maximum(gap[1:], height, out=gap[1:])
        p = self.at.copy()
        p[:-1] += self.left
        p[1:] += self.right
        room_right = np.append(grow * np.cumsum(tails(p, self.step)[:0:-1])[::-1] * fall, 0.0)  # H over 0
        loss = self.step * np.arange(self.first, self.first + n, dtype=np.float64)
        below = np.cumsum(p[:-1] * np.exp(np.minimum(-loss, 300.0)))  # Q-mass
        width = np.exp(np.minimum(loss + math.log(grow), 300.0))  # of the cell in x; H over 1 - x:
        room_left = np.append(0.0, np.cumsum(width * below))
        tight = np.flatnonzero(room_left < gap)
        if tight.size:
            end = int(tight[-1])
            gap[: end + 1] = room_left[: end + 1]
            if end < n:
                gap[end + 1] = max(gap[end + 1], grow * self.left[end])
        tight = np.flatnonzero(room_right < gap)
        if tight.size:
            start = int(tight[0])
            gap[start:] = room_right[start:]
            if start > 0:
                gap[start - 1] = max(gap[start - 1], grow * fall * self.right[start - 1])
        bend = np.diff(gap) / grow
        p[:-1] -= bend
        p[1:] += bend / fall
        excess = _drop_concave(p, self.step)
        return Lattice(self.step, self.first, np.maximum(p, 0.0), self.infinite, excess, self.offset)


def tails(mass: Floats, step: float) -> Floats:
    """sum over j >= k of mass_j e^(-(j-k) step), in blocks short enough that no power leaves float64."""
    sums = np.empty(mass.size)
    size, beyond = max(1, int(100 / step)), 0.0
    for start in reversed(range(0, mass.size, size)):
        block = mass[start : start + size]
        fall = np.exp(-step * np.arange(block.size + 1))
        here = np.cumsum((block * fall[:-1])[::-1])[::-1] + beyond * fall[-1]
        sums[start : start + size] = here / fall[:-1]
        beyond = float(sums[start])
    return sums


ON_NODE = 1e-9  # in steps: a loss so close to a node counts as on it, and epsilon pays for the difference


def _sums(index: NDArray[np.int64], mass: Floats, size: int) -> Floats:
    return np.bincount(index, mass, size).astype(np.float64)


def _quadrature(piece: Piece, step: float, first: int, last: int) -> tuple[Floats, Floats]:
    """Nodes and weights along z, on stretches that end where the loss meets a lattice node."""
    ratio = step * np.arange(first, last + 1, dtype=np.float64)
    ends = piece.log_ratio(np.array([piece.low, piece.high]))
    ratio = ratio if piece.forward else -ratio[::-1]
    inside = ratio[(ratio > ends[0]) & (ratio < ends[1])]
    pieces = math.ceil((piece.high - piece.low) * max(1.0, piece.steepest) / 0.25)
    edges = np.unique(np.concatenate([np.linspace(piece.low, piece.high, pieces + 1), piece.place(inside)]))
    half = np.diff(edges)[:, None] / 2
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    return (middle + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def _drop_concave(p: Floats, step: float) -> float:
    """Send negative masses to the nearest nodes still standing, keeping the sums of P and of Q, until none is left.

    Without a node to the left, all of it goes right: that lowers the curve, and P. (A curve below 1 - x is that of a
    pair whose P has lost mass: still a lower bound, as P's mass only ever enters with a plus sign.) Without a node to
    the right it is forgotten, which raises the curve by at most the P-mass that is returned.
    """
    forgotten = 0.0
    todo = np.flatnonzero(p < 0).tolist()
    if not todo:
        return forgotten
    before, after = list(range(-1, p.size - 1)), list(range(1, p.size + 1))  # who stands next to whom
    standing = [True] * p.size
    while todo:
        i = todo.pop()
        if not standing[i] or p[i] >= 0:
            continue
        standing[i] = False
        a, b = before[i], after[i]
        if b < p.size:
            before[b] = a
        if a >= 0:
            after[a] = b
        if b == p.size:
            forgotten -= float(p[i])
            p[i] = 0.0
            continue
        if a >= 0:  # shares of the Q-mass (x_b - x_i) / (x_b - x_a) and (x_i - x_a) / (x_b - x_a)
            whole = math.expm1((a - b) * step)
            p[a] += p[i] * math.exp((a - i) * step) * math.expm1((i - b) * step) / whole
            p[b] += p[i] * math.expm1((a - i) * step) / whole
        else:
            p[b] += p[i] * math.exp(min((b - i) * step, 600.0))
        todo += [j for j in (a, b) if j >= 0 and p[j] < 0]
        p[i] = 0.0
    return forgotten


@dataclass(frozen=True)
class Lattice:
    """A law of privacy losses at offset + the multiples of a step, with an atom at infinity."""

    step: float
    first: int
    p: Floats
    infinite: float
    excess: float = 0.0  # of P-mass over what a lower bound may have
    offset: float = 0.0

    @property
    def losses(self) -> Floats:
        """Without the offset."""
        return self.step * np.arange(self.first, self.first + self.p.size, dtype=np.float64)

    @cached_property
    def log_p(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.p))
