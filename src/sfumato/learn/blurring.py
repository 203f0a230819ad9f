"""The noisy gradient: clipped sums on a grid, whole numbers added, noise in whole steps.

Each micro-batch's sum is rounded to the grid and added as whole numbers (doubles that hold them exactly), so
micro-batches add up in any order to the same number. Between neighbours one micro-batch differs; rounding moves each of
its d coordinates by less than one step more than the sums differ, so in steps the sensitivity is at most (2) C (1 +
eta) / step + sqrt(d). The noise is the rounded Gaussian of `multiplier` times that: post-processing of the continuous
one, in any dimension.

Where the records that are not clipped are counted, too, the count is one more coordinate (minus one half for each, as a
record moves it by one half at most), with noise of its own scale: together they are one Gaussian of the step's
multiplier, 1/z^2 = (sensitivity / sd)^2 + (1/2 / sd_count)^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .. import exact, grid
from ..errors import ArgumentError
from ..laws import RoundedGaussian
from ..noise import Noise

_ROUNDING = 8  # rounding to the grid adds at most 2^-8 of the clip norm to the sensitivity
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Blur:
    """What noise a step needs: from public numbers alone.

    sensitivity  of the sum, in real units, for a clip norm of 1, rounding to the grid apart
    multiplier   of the step's Gaussian
    count        the standard deviation of the noise on the count of unclipped records; None where none are counted
    changes      how many records one unit's change touches: 2 where it is replaced
    whole        are the records' gradients whole numbers of steps already? Then nothing is rounded
    """

    parameters: int
    sensitivity: Fraction
    multiplier: Fraction
    count: Fraction | None
    changes: int
    whole: bool = False

    def __post_init__(self) -> None:
        if self.ratio_squared <= 0:
            raise ArgumentError(
                "count is not allowed: the count of unclipped records would cost more than the whole step; give its "
                "noise a larger standard deviation."
            )

    @property
    def ratio_squared(self) -> Fraction:
        """(sensitivity / sd)^2 of the sum: what the count leaves."""
        whole = 1 / self.multiplier**2
        return whole if self.count is None else whole - (Fraction(self.changes, 2) / self.count) ** 2

    def exponent(self, norm: float) -> int:
        """The grid step is 2^exponent."""
        return _exponent(self, norm)

    def law(self, norm: float) -> RoundedGaussian:
        """The noise on each coordinate of the sum, in steps."""
        return _law(self, norm)

    def deviation(self, norm: float) -> float:
        """The standard deviation on each coordinate of the sum, in real units."""
        return _law(self, norm).std * 2.0 ** _exponent(self, norm)

    @property
    def count_law(self) -> RoundedGaussian:
        """The noise on the count, in halves."""
        assert self.count is not None
        return RoundedGaussian(exact.float_above(2 * self.count))


@lru_cache(maxsize=256)  # norms are few: the same one step after step
def _exponent(blur: Blur, norm: float) -> int:
    spread = Fraction(exact.sqrt_above(Fraction(blur.parameters)))
    return grid.floor_log2(Fraction(norm) / (2**_ROUNDING * spread))


@lru_cache(maxsize=256)
def _law(blur: Blur, norm: float) -> RoundedGaussian:
    steps = grid.steps(blur.sensitivity * blur.changes * Fraction(norm), _exponent(blur, norm))
    if not blur.whole:
        steps += Fraction(exact.sqrt_above(Fraction(blur.parameters)))
    return RoundedGaussian(exact.sqrt_above(steps**2 / blur.ratio_squared))


class Drawn:
    """Noise that is drawn beside the backward pass, in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sfumato-noise")

    def begin(self, noise: Noise, law: RoundedGaussian, count: int) -> Future[Any]:
        return self._pool.submit(noise.draw, law, count)

    def close(self) -> None:
        self._pool.shutdown(wait=True)


class StepSum:
    """The sum of a step: micro-batches are added, then noise, once."""

    def __init__(self, parameters: Sequence[torch.Tensor], exponent: int) -> None:
        self._total: Doubles = np.zeros(sum(each.numel() for each in parameters))
        self._scale = math.ldexp(1.0, -exponent)
        self._shapes = [each.shape for each in parameters]

    def add(self, sums: Sequence[torch.Tensor]) -> None:
        start = 0
        for part in sums:
            steps = part.detach().to(torch.float64).mul_(self._scale).round_().reshape(-1)
            self._total[start : start + part.numel()] += steps.numpy()
            start += part.numel()

    def add_steps(self, sums: Sequence[torch.Tensor]) -> None:
        """The same for sums that are whole numbers of steps already."""
        start = 0
        for part in sums:
            self._total[start : start + part.numel()] += part.reshape(-1).numpy()
            start += part.numel()

    def released(self, noise: NDArray[Any], divisor: float) -> list[torch.Tensor]:
        """The noisy sum over the divisor, for each parameter."""
        self._total += noise
        self._total *= 1.0 / (self._scale * divisor)
        out, start = [], 0
        whole = torch.from_numpy(self._total)
        for shape in self._shapes:
            out.append(whole[start : start + shape.numel()].reshape(shape))
            start += shape.numel()
        return out
