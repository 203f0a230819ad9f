"""How far sums of independent noise stray: half-widths for weights, laws and scales that differ.

The formulas are those of the laws. Here weights are brought to one scale: a law of very many steps, whose own rounding
is then nothing, stands for the continuous law, and what the drawn laws differ from it is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...laws import DiscreteGaussian, DiscreteLaplace, Law, RoundedGaussian, RoundedLaplace

Floats = NDArray[np.float64]
Spreads = Mapping[str, tuple[Law, float]]
"""Of each measured number: the law of its noise in grid steps, and the size of a step."""

_MANY = 2.0**40
_NORMAL, _SUBNORMAL, _LAPLACE = RoundedGaussian(_MANY), DiscreteGaussian(_MANY), RoundedLaplace(_MANY)


def std(slopes: Mapping[str, Floats], spreads: Spreads) -> Any:
    """The standard deviation of sum slope_j X_j; 0 for no slopes. What has no law counts in standard deviations."""
    total: Any = 0.0
    for name, slope in slopes.items():
        total = total + (slope * deviation(name, spreads)) ** 2
    return np.sqrt(total)


def deviation(name: str, spreads: Spreads) -> float:
    """The standard deviation of one measured number."""
    if name not in spreads:
        return 1.0
    law, step = spreads[name]
    return law.std * step


def half_width(slopes: Mapping[str, Floats], spreads: Spreads, alpha: float) -> Any:
    """A w with P(|sum slope_j X_j| > w) <= alpha; 0 for no slopes.

    One number alone: exact. Rounded Gaussians: their sum is normal, moved by half a step each. With Laplaces among
    them: a Gaussian counts as a Laplace of the same variance v. Both of the law's bounds allow that: e^x <= 1/(1 - x)
    for the moments, and for the other a fixed variance v is below the random v E in convex order (E exponential of
    mean 1). Anything else: a union bound over the kinds of law.
    """
    weights = [(spreads[name][0], np.abs(slope) * spreads[name][1]) for name, slope in slopes.items()]
    if not weights:
        return 0.0
    alone = [weight * (law.half_width(alpha) + 0.5) for law, weight in weights]
    if len(weights) == 1:
        return alone[0]
    mixed = _mixed(weights, alpha)
    several = sum((weight > 0).astype(np.int64) for _, weight in weights) > 1
    return np.where(several, mixed, sum(alone))


def summed_half_width(
    laws: Sequence[Sequence[tuple[Law, float]]], weights: Floats, copies: Floats, alpha: float
) -> Floats:
    """A w with P(|sum over j and i of weights[j] times the noise of copy i of j| > w) <= alpha, for each row of weights
    (down) and each number of copies (across). The noise of j is a sum of independent draws, each of a law of its own
    and times its number; copies are independent."""
    kinds = {type(law) for terms in laws for law, _ in terms}
    if len(kinds) != 1 or not kinds <= {RoundedGaussian, RoundedLaplace}:
        raise TypeError("sums are told of rounded Gaussian, or of rounded Laplace noise")
    reference = _NORMAL if kinds == {RoundedGaussian} else _LAPLACE
    sizes = np.abs(weights)
    reach = [np.array([size * law.spread for law, size in terms]) for terms in laws]
    l1 = (sizes @ np.array([reaches.sum() for reaches in reach]))[:, None] * copies
    l2 = np.sqrt(sizes**2 @ np.array([(reaches**2).sum() for reaches in reach]))[:, None] * np.sqrt(copies)
    linf = (sizes * np.array([reaches.max(initial=0) for reaches in reach])).max(axis=1, initial=0)[:, None]
    moved = (sizes @ np.array([sum(size * _moved(law) for law, size in terms) for terms in laws]))[:, None] * copies
    return np.asarray(reference.mixed_half_width(l1 / _MANY, l2 / _MANY, linf / _MANY, alpha) + moved)


def _mixed(weights: list[tuple[Law, Floats]], alpha: float) -> Floats:
    kinds = {type(law) for law, _ in weights}
    if kinds <= {RoundedGaussian, DiscreteGaussian}:
        return _together(_NORMAL if kinds == {RoundedGaussian} else _SUBNORMAL, weights, alpha)
    if kinds <= {RoundedGaussian, RoundedLaplace, DiscreteLaplace}:
        return _together(_LAPLACE, weights, alpha)
    total = np.zeros_like(weights[0][1])
    for kind in kinds:
        own = [(law, weight) for law, weight in weights if type(law) is kind]
        if kind in (RoundedLaplace, DiscreteLaplace, RoundedGaussian, DiscreteGaussian):
            total = total + _mixed(own, alpha / len(kinds))
        else:
            share = alpha / len(kinds) / len(own)
            total = total + sum(weight * (law.half_width(share) + 0.5) for law, weight in own)
    return total


def _together(reference: Law, weights: list[tuple[Law, Floats]], alpha: float) -> Floats:
    """By one law's bound, each weight in multiples of the law's scale."""
    halved = isinstance(reference, RoundedLaplace)  # scale of a Laplace of the same variance: sigma/sqrt 2
    reaches = [
        weight * law.spread * (np.sqrt(0.5) if halved and isinstance(law, RoundedGaussian) else 1.0)
        for law, weight in weights
    ]
    l1, linf = sum(reaches), np.maximum.reduce(reaches)
    l2 = np.sqrt(sum(reach**2 for reach in reaches))
    moved = sum(weight * _moved(law) for law, weight in weights)
    return np.asarray(reference.mixed_half_width(l1 / _MANY, l2 / _MANY, linf / _MANY, alpha) + moved)


def _moved(law: Law) -> float:
    """By how many steps a draw differs at most from one of the continuous law (of the discrete Gaussian, the moments
    themselves are bounded)."""
    return 0.5 if law.rounded else 0.0 if isinstance(law, DiscreteGaussian) else 1.0
