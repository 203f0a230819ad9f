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

In exact arithmetic these are proofs. In float64 the masses are off a little; `Cells.slack` is the relative error that
is assumed of them and counted once per composition. It is an assumption, not proven: the upper masses are sums of
positive terms, but wide cells and the lowered polygon are differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """P-masses of the cells [ih, (i+1)h), i = first, first + 1, ..., each as what goes to its left and right end."""

    step: float
    first: int
    left: Floats
    right: Floats
    at: Floats  # P-masses that lie on the nodes themselves: no chord passes over them
    infinite: float = 0.0  # P-mass at infinite loss
    above: float = 0.0  # bound on the P-mass beyond the last node: infinite for the upper side, nothing for the lower
    below: float = 0.0  # bound on the P-mass below the first: there for the upper side, nothing for the lower
    slack: float = 1e-12  # relative error assumed of the masses

    def upper(self) -> Lattice:
        p = self.at.copy()
        p[:-1] += self.left
        p[1:] += self.right
        p[0] += self.below
        return Lattice(self.step, self.first, p, self.infinite + self.above, self.slack)

    def lower(self) -> Lattice:
        n = self.left.size
        x = np.exp(self.step * np.arange(self.first, self.first + n + 1))
        dx = x[:-1] * math.expm1(self.step)
        to_left, to_right = self.left / x[:-1], self.right / x[1:]  # Q-masses
        both = to_left + to_right
        height = dx * to_left * np.divide(to_right, both, out=np.zeros(n), where=both > 0)
        gap = np.append(height, 0.0)
        np.maximum(gap[1:], height, out=gap[1:])
        q = self.at / x
        q[:-1] += to_left
        q[1:] += to_right
        room_right = np.append(np.cumsum((dx * np.cumsum(q[::-1])[::-1][1:])[::-1])[::-1], 0.0)  # H over 0
        room_left = np.append(0.0, np.cumsum(dx * np.cumsum(q)[:-1]))  # H over 1 - x
        tight = np.flatnonzero(room_left < gap)
        if tight.size:
            end = int(tight[-1])
            gap[: end + 1] = room_left[: end + 1]
            if end < n:
                gap[end + 1] = max(gap[end + 1], dx[end] * to_left[end])
        tight = np.flatnonzero(room_right < gap)
        if tight.size:
            start = int(tight[0])
            gap[start:] = room_right[start:]
            if start > 0:
                gap[start - 1] = max(gap[start - 1], dx[start - 1] * to_right[start - 1])
        bend = np.diff(gap) / dx
        q[:-1] -= bend
        q[1:] += bend
        _drop_concave(q, x)
        return Lattice(self.step, self.first, np.maximum(q, 0.0) * x, self.infinite, self.slack)


def _drop_concave(q: Floats, x: Floats) -> None:
    """Send negative masses to the nearest nodes still standing, keeping sum q and sum x q, until none is left.

    Without a node to the left, all of it goes right: that lowers the curve, and P. (A curve below 1 - x is that of a
    pair whose P has lost mass: still a lower bound, as P's mass only ever enters with a plus sign.)
    """
    todo = np.flatnonzero(q < 0).tolist()
    if not todo:
        return
    before, after = list(range(-1, q.size - 1)), list(range(1, q.size + 1))  # who stands next to whom
    standing = [True] * q.size
    while todo:
        i = todo.pop()
        if not standing[i] or q[i] >= 0:
            continue
        standing[i] = False
        a, b = before[i], after[i]
        if b < q.size:
            before[b] = a
        if a >= 0:
            after[a] = b
        if (
            b == q.size
        ):  # rounding can leave a hair of negative mass at the right end: then there is no lower bound here
            q[:] = 0.0
            return
        share = (x[b] - x[i]) / (x[b] - x[a]) if a >= 0 else 0.0
        if a >= 0:
            q[a] += q[i] * share
        q[b] += q[i] * (1 - share)
        todo += [j for j in (a, b) if j >= 0 and q[j] < 0]
        q[i] = 0.0


@dataclass(frozen=True)
class Lattice:
    """A law of privacy losses on the multiples of a step, with an atom at infinity."""

    step: float
    first: int
    p: Floats
    infinite: float
    slack: float = 1e-12

    @property
    def losses(self) -> Floats:
        return self.step * np.arange(self.first, self.first + self.p.size, dtype=np.float64)

    def coarser(self, factor: int) -> Cells:
        """The same law as cells of a step `factor` times as large."""
        front = self.first % factor
        back = -(front + self.p.size) % factor
        fine = np.pad(self.p, (front, back)).reshape(-1, factor)
        wide = factor * self.step
        u = self.step * np.arange(1, factor)
        right = np.expm1(-u) / math.expm1(-wide)
        left = np.expm1(wide - u) / math.expm1(wide)
        return Cells(
            wide,
            (self.first - front) // factor,
            (fine[:, 1:] * left).sum(axis=1),
            (fine[:, 1:] * right).sum(axis=1),
            np.append(fine[:, 0], 0.0),
            self.infinite,
            slack=self.slack,
        )
