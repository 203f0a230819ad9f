"""Matrix products: a record's gradient is the sum over its places of g_t a_t^T.

Its norm comes in one of two ways, whichever is cheaper (Li et al. 2022; Bu et al. 2022):

  ghost   |sum_t g_t a_t^T|^2 = sum_{s,t} (a_s . a_t)(g_s . g_t): the gradient is never formed. One product more, for
          the weighted sum of all records at once.
  held    the gradient of every record is formed, and added up with its weight: the same work as the ordinary weight
          gradient, and memory for all of them.

Float error of the ghost form. With K = |A| |G| (Frobenius norms; K >= sum_t |a_t||g_t| by Cauchy and Schwarz) the
norm's square is off by at most gamma(D + p + 2T) K^2, and the record's part of the weighted sum by gamma(depth) c K,
where depth is how many rounded additions a term passes through. Underflow: sums of D products a_s . a_t lose D TINY, so
all together lose at most (|A|^2 + T D TINY)(|G|^2 + T p TINY) - K^2, and T^2 TINY where the two are multiplied; the
first is in gamma K^2, as FLOOR gamma > TINY.
"""

from __future__ import annotations

import torch

from ..arithmetic import FLOOR, TINY, depth, gamma, run
from .base import Known, Rule, Sizes, blanked, lengths

HELD = 48 * 2**20  # bytes that the gradients of one layer's records may take
TRAFFIC = 64  # what it costs to write a held number, and read it twice, in operations of a matrix product


def affine(a: torch.Tensor, g: torch.Tensor, grown: torch.Tensor | None = None) -> Rule:
    """The rule for inputs (records, places, D) and output gradients (records, places, p); the weight is (p, D).
    `grown` is lengths(g, FLOOR), if that is known."""
    if a.dtype.itemsize < 4:
        a, g = a.float(), g.float()
    if g.dtype != a.dtype:
        g = g.to(a.dtype)
    records, places, wide = a.shape
    high = g.shape[2]
    ghost = 2 * places * places * (wide + high)
    cheap = places > 1 and ghost > TRAFFIC * wide * high and records * wide * high * a.dtype.itemsize <= HELD
    return Known(_each(a, g)) if cheap else Affine(a, g, grown)


def _each(a: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """(records, p, D), as the transpose of what BLAS likes better: the longer rows last."""
    if g.shape[2] > a.shape[2]:
        return torch.bmm(a.transpose(1, 2), g).transpose(1, 2)
    return torch.bmm(g.transpose(1, 2), a)


class Affine(Rule):
    """The ghost form."""

    def __init__(self, a: torch.Tensor, g: torch.Tensor, grown: torch.Tensor | None = None) -> None:
        self.a, self.g = a, g
        self._grown = grown

    def bounds(self) -> torch.Tensor:
        """K^2 of each record, rounded up."""
        grown = lengths(self.g, FLOOR) if self._grown is None else self._grown
        return lengths(self.a, FLOOR).mul_(grown)

    def sizes(self) -> Sizes:
        (records, places, wide), high, kind = self.a.shape, self.g.shape[2], self.a.dtype
        most = self.bounds()
        doubts = most * gamma(depth(records * places, run(records, places)), kind) ** 2
        if places == 1:
            return Sizes(most, doubts)
        ghost = crossed(self.a, self.g)
        return Sizes(ghost.add_(most, alpha=gamma(wide + high + 2 * places + 8, kind)), doubts)

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        records, places, _ = self.a.shape
        scaled = (self.g * weights.to(self.g.dtype).view(-1, 1, 1)).flatten(0, 1)
        rows = self.a.flatten(0, 1)
        length = run(records, places)
        if records * places <= length:
            return scaled.t() @ rows
        out = scaled[:length].t() @ rows[:length]
        for start in range(length, records * places, length):
            out.addmm_(scaled[start : start + length].t(), rows[start : start + length])
        return out

    def by_record(self) -> torch.Tensor:
        return _each(self.a, self.g)

    def drop(self, which: torch.Tensor) -> None:
        self.a, self.g, self._grown = blanked(self.a, which), blanked(self.g, which), None


def crossed(a: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """sum_{s,t} (a_s . a_t)(g_s . g_t), in double precision, for a and g of shape (records, places, ...)."""
    inner = torch.bmm(a, a.transpose(1, 2))
    inner.mul_(torch.bmm(g, g.transpose(1, 2)))
    places = a.shape[1]
    return inner.sum(2).sum(1).double().clamp_min_(0).add_(places * places * TINY)
