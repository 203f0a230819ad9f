"""Rows of a table that records look up: a record's gradient adds, for each look-up, g_t to the row it looked up.

The norm is that of the sums over equal look-ups: sum_{s,t} [i_s = i_t] g_s . g_t, or, where records have many look-ups,
by adding up equal ones first. The weighted sum is taken in double precision, and then rounded once: how many look-ups
meet in one row depends on the data, and must not matter. That rounding is off by at most u times the sum of c_i |v_i|.
"""

from __future__ import annotations

import torch

from ..arithmetic import FLOOR, TINY, gamma
from .affine import Affine
from .base import Rule, Sizes, blanked, lengths


class Embedding(Rule):
    """Look-ups (records, places) with gradients (records, places, wide)."""

    def __init__(self, ids: torch.Tensor, g: torch.Tensor, rows: int) -> None:
        self.ids, self.g, self.rows = ids, g if g.dtype.itemsize >= 4 else g.float(), rows

    def sizes(self) -> Sizes:
        records, places, wide = self.g.shape
        most = lengths(self.g, FLOOR)
        if places == 1:
            squares = most
        elif places <= 2 * wide:
            same = self.ids.unsqueeze(2) == self.ids.unsqueeze(1)
            inner = torch.bmm(self.g, self.g.transpose(1, 2)).mul_(same).sum(2).sum(1).double().clamp_min_(0)
            squares = inner.add_(most, alpha=places * gamma(wide + 2 * places + 8, self.g.dtype)).add_(places**2 * TINY)
        else:
            squares = self._added().add_(most, alpha=places * gamma(places + wide + 8, torch.float64))
        kind = torch.float64 if self.g.dtype == torch.float64 else torch.float32
        doubts = most * (2 * places * gamma(records * places + 8, torch.float64) ** 2)
        return Sizes(squares, doubts.add_(squares, alpha=2 * gamma(2, kind) ** 2))

    def _added(self) -> torch.Tensor:
        """The squares by adding up equal look-ups first, in double precision."""
        records, _, wide = self.g.shape
        keys = self.ids + self.rows * torch.arange(records).unsqueeze(1)
        distinct, where = torch.unique(keys, return_inverse=True)
        sums = torch.zeros(len(distinct), wide, dtype=torch.float64)
        sums.index_add_(0, where.reshape(-1), self.g.reshape(-1, wide).double())
        out = torch.zeros(records, dtype=torch.float64)
        return out.index_add_(0, distinct // self.rows, sums.square().sum(1))

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        wide, ids = self.g.shape[2], self.ids.reshape(-1)
        scaled = (self.g.double() * weights.double()[:, None, None]).reshape(-1, wide)
        if self.rows <= 2 * len(ids):
            out = torch.zeros(self.rows, wide, dtype=torch.float64)
            return out.index_add_(0, ids, scaled).to(self.g.dtype)
        distinct, where = torch.unique(ids, return_inverse=True)
        sums = torch.zeros(len(distinct), wide, dtype=torch.float64).index_add_(0, where, scaled)
        return torch.zeros(self.rows, wide, dtype=self.g.dtype).index_copy_(0, distinct, sums.to(self.g.dtype))

    def by_record(self) -> torch.Tensor:
        records, _, wide = self.g.shape
        out = torch.zeros(records * self.rows, wide, dtype=self.g.dtype)
        keys = self.ids + self.rows * torch.arange(records).unsqueeze(1)
        return out.index_add_(0, keys.reshape(-1), self.g.reshape(-1, wide)).reshape(records, self.rows, wide)

    def drop(self, which: torch.Tensor) -> None:
        self.g = blanked(self.g, which)


class Tied(Rule):
    """A table that is looked up and multiplied by (the words of a language model, in and out): both parts, and twice
    what they have in common: sum_{s,t} g'_t[i_s] (a_t . g_s)."""

    def __init__(self, looked: Embedding, multiplied: Affine) -> None:
        self._looked, self._multiplied = looked, multiplied

    def sizes(self) -> Sizes:
        looked, (a, g) = self._looked, (self._multiplied.a, self._multiplied.g)
        one, two = looked.sizes(), self._multiplied.sizes()
        places = looked.ids.shape[1]
        met = torch.gather(g, 2, looked.ids.unsqueeze(1).expand(-1, g.shape[1], -1))
        common = (met * torch.bmm(a, looked.g.transpose(1, 2))).sum(2).sum(1).double()
        most = (lengths(looked.g, FLOOR) * places * self._multiplied.bounds()).sqrt_()
        slack = gamma(a.shape[2] + a.shape[1] + 2 * places + 16, a.dtype)
        squares = (one.squares + two.squares).add_(common, alpha=2).clamp_min_(0).add_(most, alpha=4 * slack)
        return Sizes(squares.add_(places * a.shape[1] * TINY), 2 * (one.doubts + two.doubts))

    def total(self, weights: torch.Tensor) -> torch.Tensor:
        return self._multiplied.total(weights).add_(self._looked.total(weights))

    def by_record(self) -> torch.Tensor:
        return self._looked.by_record() + self._multiplied.by_record()

    def drop(self, which: torch.Tensor) -> None:
        self._looked.drop(which)
        self._multiplied.drop(which)
