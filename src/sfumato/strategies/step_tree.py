"""Running totals by a tree over the steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks
from ..record import record
from .base import Floats, Mixing, Reach, Vector, check_noise, in_parts
from .causal import Causal

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


@record("strategy-step-tree/1")
@dataclass(frozen=True, kw_only=True)
class StepTree(Causal):
    """Sums of 1, b, b^2, ... steps that begin at a multiple of their length, b = `branching`, each measured when its
    last step is over. (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011, with b = 2.)

    A prefix is made of as many sums of b^k steps as the digit of its length says, written to base b. With `refined`
    (Honaker 2015, "estimation from below"), a sum is estimated from its own measurement and from the estimates of its b
    parts, weighted by their variances: v_0 = 1, v_k = 1/(1 + 1/(b v_(k-1))), for b = 2 down to a half. The measurements
    made up to a step are those inside the prefix's own sums, which are disjoint, so this is the best estimate without
    bias that does not wait. (Least squares over all measurements, once the steps are over, is strategies.Tree.)
    """

    branching: int = 2
    refined: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "branching", checks.whole(self.branching, "branching", least=2, most=2**10))
        if not isinstance(self.refined, bool):
            raise checks.refuse("refined", self.refined, "True or False")

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        """1, b, b^2, ..., as far as the steps reach."""
        return tuple(takewhile(lambda length: length <= self.cells, (self.branching**k for k in range(64))))

    @cached_property
    def _variances(self) -> tuple[float, ...]:
        """v_k, which is also the weight of a sum's own measurement in its estimate."""
        variances = [1.0]
        for _ in self._lengths[1:]:
            variances.append(
                self.branching * variances[-1] / (1 + self.branching * variances[-1]) if self.refined else 1.0
            )
        return tuple(variances)

    @cached_property
    def measurements_by_step(self) -> Vector:
        step = np.arange(1, self.cells + 1)
        return np.cumsum(sum((step % length == 0).astype(np.int64) for length in self._lengths))

    def _places(self, level: int, nodes: int) -> Vector:
        """Where a level's first nodes stand among the measurements: a step's shortest sum comes first."""
        ends = np.arange(1, nodes + 1) * self._lengths[level]
        return np.append(0, self.measurements_by_step)[ends - 1] + level

    def measure(self, cells: Vector) -> Vector:
        return in_parts(self._sums, self.cells, cells)

    def _sums(self, cells: NDArray[np.int64]) -> Vector:
        sums: Any = cells
        measured = np.zeros(self.measurements, dtype=np.int64)
        for level in range(len(self._lengths)):
            measured[self._places(level, sums.size)] = sums
            sums = self._fold(sums)
        return measured

    def latest(self, cells: Vector) -> Vector:
        size = cells.size
        ended = [n for n in self._lengths if size % n == 0]
        return in_parts(lambda some: np.array([some[size - n :].sum() for n in ended]), size, cells)

    def running(self, noisy: Floats) -> Floats:
        noisy = np.asarray(noisy, dtype=np.float64)
        steps = int(np.searchsorted(self.measurements_by_step, noisy.shape[-1], side="right"))
        totals = np.zeros((*noisy.shape[:-1], steps))
        below: Any = None
        for level, (length, own) in enumerate(zip(self._lengths, self._variances, strict=True)):
            if length > steps:
                break
            level_nodes = noisy[..., self._places(level, steps // length)]
            below = level_nodes if below is None else own * level_nodes + (1 - own) * self._fold(below)
            nodes, some, _ = self._digits(steps, length)
            totals[..., some] += _within(below, self.branching)[..., nodes[some] - 1]
        return totals

    @cached_property
    def running_mixing(self) -> Mixing:
        l1, squared, linf = (np.zeros(self.cells) for _ in range(3))
        weight = 0.0
        for length, own in zip(self._lengths, self._variances, strict=True):
            weight = own + (1 - own) * self.branching * weight  # of all measurements inside one sum
            _, some, digit = self._digits(self.cells, length)
            l1 += weight * digit
            squared += own * digit
            linf = np.maximum(linf, own * some)  # weights further down are not larger
        return Mixing(l1, np.sqrt(squared), linf)

    def _digits(self, steps: int, length: int) -> tuple[Vector, Vector, Vector]:
        """For each prefix: the whole sums of that length, whether some of them are in no longer sum, how many are."""
        nodes = np.arange(1, steps + 1) // length
        digit = nodes % self.branching
        return nodes, digit > 0, digit

    def _fold(self, values: Any) -> Any:
        """Sums of whole groups of neighbours; those that are left over are in no sum yet."""
        groups = values.shape[-1] // self.branching
        return values[..., : groups * self.branching].reshape(*values.shape[:-1], groups, self.branching).sum(axis=-1)

    @property
    def column_norms(self) -> Reach:
        """The first step is in one sum of each length."""
        return Reach(len(self._lengths), len(self._lengths), 1)

    @property
    def column_gaps(self) -> Reach:
        """The longest sum and the steps after it share no sum; two steps of the longest one share at least itself."""
        levels, rest = len(self._lengths), self.cells - self._lengths[-1]
        most = max(levels + sum(length <= rest for length in self._lengths), 2 * (levels - 1))
        return Reach(most, most, 1)

    def spaced(self, times: int, apart: int) -> Reach:
        """A sum of n steps holds at most ceil(n / apart) of the rows. The numbers held by sums of one length add up to
        at most `times`, so their squares add up to at most `times` times the largest."""
        places = min(times, -(-self.cells // apart))
        counts = [min(places, -(-length // apart)) for length in self._lengths]
        return Reach(places * len(counts), places * sum(counts), counts[-1])


def best_step_tree(cells: int, noise: str) -> StepTree:
    """The branching whose worst total is most exact, for noise that grows with the number of levels ("laplace") or with
    its square root ("gaussian")."""
    check_noise(noise)
    trees = [StepTree(cells=cells, branching=branching) for branching in _BRANCHINGS]
    power = 2 if noise == "laplace" else 1

    def worst(tree: StepTree) -> float:
        digits = [min(tree.branching - 1, cells // length) for length in tree._lengths]
        return len(digits) ** power * sum(d * v for d, v in zip(digits, tree._variances, strict=True))

    return min(trees, key=worst)


def _within(nodes: Floats, branching: int) -> Floats:
    """Running sums of nodes, begun anew in each group."""
    short = -nodes.shape[-1] % branching
    padded = np.concatenate([nodes, np.zeros((*nodes.shape[:-1], short))], axis=-1)
    grouped = padded.reshape(*nodes.shape[:-1], -1, branching).cumsum(axis=-1)
    return np.asarray(grouped.reshape(*nodes.shape[:-1], -1))
