"""How much units hold beyond a limit, as far as a noisy histogram lets one know.

A histogram of units by size (half octaves) is noisy, and the few units that hold most are hidden by its noise. So its
end is read through a family of curves: counts that fall by a constant factor from bin to bin (a power law) or faster
and faster (a cut-off). How well each curve fits the bins around the last clear one is its weight. What a limit cuts is
then a mixture over the curves, with a mean and a standard deviation; a later measurement of the same (cuts.py) moves
the weights. All of it is post-processing of noisy numbers.

Nothing here is proven: curves are an assumption on how sizes fall off. Its coverage is measured (bench/coverage.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CLEAR = 1e-6
"""The chance that noise alone makes one count as high as those that are taken for units: of a whole histogram, of one
in some thousands. A bin that noise lifts far out would lead limits anywhere."""
_BESIDE, _NEXT = 3.5, 3  # standard deviations that are enough so many bins after a clear one
_LIKELY = 1.5
_BACK, _AHEAD = 4, 14  # bins that a curve is fitted to, around the last clear one
_SLACK = 0.2  # of a count: no table follows a curve exactly
_JOINT = 0.3  # where several sums share a weight, the curves of one say that much less of what it loses
_MODEL = 1.0  # of what is cut: how far off the curves may be
_BOLD, _TIMID = (
    1.0,
    0.25,
)  # the power by which curves that hold more beyond a limit than its noise count less in choosing
# it, with groups and without: a group shares the doubt with others, but its noise with nobody
_UNLIKELY = 8.0
_FALLS = np.log([0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1])
_BENDS = np.array([0.0, -0.03, -0.1, -0.2, -0.4, -0.8, -2.0, -5.0])
_SLOPES, _CURVES = (
    part.ravel()[(np.exp(slopes) <= 0.9) | (bends <= -0.1)]
    for slopes, bends in [[grid.ravel() for grid in np.meshgrid(_FALLS, _BENDS, indexing="ij")]]
    for part in (slopes, bends)
)  # what hardly falls must fall faster and faster

CAP = 4
"""A second measurement counts what is cut from a unit up to 1/CAP of what it holds at the limit."""
_NARROW, _WIDE = 1.25, 1.8  # most that not knowing the cut may widen an interval: where under 1 % is cut, and elsewhere
_LITTLE = 0.01
_WORTH = 1.3  # what that may cost: intervals that are wider by this factor


@dataclass(frozen=True, eq=False)
class Tail:
    """Curves through a noisy histogram.

    lengths  the size of a unit in each bin, in the norm that limits are on
    masses   what such a unit adds to all groups together
    curves   units by curve and bin
    fits     log-likelihoods of the curves
    last     the last bin that stands out from the noise
    """

    lengths: Floats
    masses: Floats
    curves: Floats
    fits: Floats
    last: int

    @cached_property
    def total(self) -> float:
        """What all units hold together."""
        return float(self._weights(self.fits) @ (self.curves @ self.masses))

    def units_above(self, length: float) -> float:
        return float(self._weights(self.fits) @ self.curves[:, self.lengths > length].sum(axis=1))

    def size_above(self, units: float) -> float:
        """The length that so many units exceed, within a bin in proportion to logarithms."""
        over = np.cumsum((self._weights(self.fits) @ self.curves)[::-1])[::-1]
        reached = np.flatnonzero(over >= units)
        if not reached.size:
            return float(self.lengths[0])
        place = int(reached[-1])
        rest = over[place + 1] if place + 1 < over.size else 0.0
        inside = (over[place] - units) / max(over[place] - rest, 1e-300)
        return float(self.lengths[place] * 2 ** ((inside - 0.5) / 2))

    def mass_at(self, length: float) -> float:
        """What a unit of this length adds to all groups together."""
        place = int(np.clip(np.searchsorted(self.lengths, length), 0, self.lengths.size - 1))
        return length * float(self.masses[place] / self.lengths[place])

    def cap(self, length: float) -> float:
        return self.mass_at(length) / CAP

    def cut(self, length: float, most: float = np.inf) -> Floats:
        """What a limit on lengths takes away, by curve; of no unit more than `most` is counted."""
        with np.errstate(divide="ignore"):
            lost = np.maximum(1 - length / self.lengths, 0.0) * self.masses
        return np.asarray(self.curves @ np.minimum(lost, most))

    def expected(self, length: float, noise: float, second: float, power: float = _TIMID) -> tuple[float, float]:
        """What a limit cuts: the mean, and the standard deviation that a second measurement (of standard deviation
        `second`) is expected to leave."""
        cut, capped = self.cut(length), self.cut(length, self.cap(length))
        weights = self._weights(self._plausible(cut) - power * np.log1p(cut / noise))
        mean, part = float(weights @ cut), float(weights @ capped)
        variance = float(weights @ (cut - mean) ** 2)
        both, own = float(weights @ ((cut - mean) * (capped - part))), float(weights @ (capped - part) ** 2)
        left = variance - (both**2 / (own + second**2) if own > 0 else 0.0)
        return mean, float(np.sqrt(max(left, 0.0) + (_MODEL * mean) ** 2))

    def estimate(self, length: float, capped: float, second: float, slack: float = _SLACK) -> tuple[float, float]:
        """What a limit cuts, given a second measurement: mean and standard deviation. `slack`: of what the curves say
        of it, where the limit is not on this very length."""
        says, cut = self.cut(length, self.cap(length)), self.cut(length)
        fits = self._plausible(cut) - 0.5 * (capped - says) ** 2 / (second**2 + (slack * says) ** 2)
        weights = self._weights(fits)
        mean = float(weights @ cut)
        return mean, float(np.sqrt(weights @ (cut - mean) ** 2 + (max(_MODEL, slack) * mean) ** 2))

    def with_others(
        self, length: float, capped: float, second: float, rate: float, counted: float
    ) -> tuple[float, float]:
        """What is cut, where one weight is shared with other sums: units that are heavy in those lose of this one too,
        whatever its own length. `rate` is the largest share that any of the sums loses of what it holds, and `counted`
        the part of that which is measured below the cap: beforehand this one is taken to lose as much, give or take
        that; the measurement says the rest."""
        own, own_doubt = self.estimate(length, capped, second, _JOINT)
        before = max(own, rate * self.total)
        doubt, noise = math.hypot(own_doubt, before), second / counted
        trust = doubt**2 / (doubt**2 + noise**2) if doubt else 0.0
        mean = max(before + trust * (capped / counted - before), 0.0)
        return mean, math.hypot(math.sqrt(trust) * noise, (1 - counted) * mean)

    def with_signs(self, length: float, capped: float, second: float) -> tuple[float, float]:
        """What is cut of numbers that may cancel: at most what sizes say, up or down; the measurement says the rest."""
        mean, doubt = self.expected(length, second, math.inf)
        counted = max(self.counted(length)[1], 1 / CAP)
        before, noise = math.hypot(mean, doubt), second / counted
        trust = before**2 / (before**2 + noise**2) if before else 0.0
        return trust * capped / counted, math.hypot(math.sqrt(trust) * noise, (1 - counted) * mean)

    def counted(self, length: float) -> tuple[float, float]:
        """Of what is cut: its share of all that units hold, and the part of it that is measured below the cap."""
        cut = self.cut(length)
        weights = self._weights(self._plausible(cut))
        mean, part = float(weights @ cut), float(weights @ self.cut(length, self.cap(length)))
        return mean / max(self.total, 1e-300), part / mean if mean > 0 else 1.0

    def _plausible(self, cut: Floats) -> Floats:
        """Log-likelihoods of the curves; those that hold more beyond a limit than all that is seen are unlikely."""
        seen = float((self.curves[0] * self.masses)[: self.last + 1].sum())
        return np.asarray(self.fits - _UNLIKELY * (cut / max(seen, 1e-300)) ** 2)

    @staticmethod
    def _weights(fits: Floats) -> Floats:
        weights = np.exp(fits - fits.max())
        return np.asarray(weights / weights.sum())


def fitted(
    counts: Floats, std: float, lengths: Floats, masses: Floats, possible: Bools, *, clear: float
) -> Tail | None:
    """The tail of a histogram with noise of this standard deviation; None where nothing stands out from it, with counts
    above `clear`. Where no unit can be, by public knowledge, there is none."""
    places = np.flatnonzero((counts > clear) & possible)
    if not places.size:
        return None
    last, beside = int(places[-1]), (counts > _BESIDE * std) & possible
    while (beyond := np.flatnonzero(beside[last + 1 : last + 1 + _NEXT])).size:
        last += 1 + int(beyond[-1])
    first, end = max(last - _BACK, 0), min(last + _AHEAD, counts.size)
    place = np.arange(first, end) - last
    shapes = np.exp(_SLOPES[:, None] * place + _CURVES[:, None] * place**2)
    seen = counts[first:end]
    variance = std**2 + (_SLACK * np.maximum(seen, 0.0)) ** 2
    variance[~possible[first:end]] = np.inf
    size, match = (shapes**2 / variance).sum(axis=1), (shapes * seen / variance).sum(axis=1)
    height = np.maximum(match / size, 0.0)
    curves = np.zeros((height.size, counts.size))
    curves[:, first:end] = height[:, None] * shapes
    curves[:, : last + 1] = np.where(counts > _LIKELY * std, counts, 0.0)[: last + 1]
    curves[:, ~possible] = 0.0
    return Tail(lengths, masses, curves, height * match - 0.5 * height**2 * size, last)


@dataclass(frozen=True)
class Aim:
    """What a limit is chosen for.

    noise   the standard deviation of an answer, by limit
    second  that of a second measurement of what is cut, by the most that counts of one unit
    share   of the total that a typical group holds, where there are groups
    spread  how unevenly groups lose: in standard deviations of a group's part, as a share of the mean
    free    a limit from which on nothing is cut, by public knowledge
    """

    noise: Callable[[float], float]
    second: Callable[[float], float]
    share: float = 1.0
    spread: float = 0.0
    free: float = math.inf

    def width(self, tail: Tail, length: float) -> tuple[float, bool]:
        """How far off the answer of a typical group is, in standard deviations; and is most of that noise?"""
        noise = self.noise(length)
        if length >= self.free:
            return noise, True
        cut, doubt = tail.expected(length, noise, self.second(tail.cap(length)), _BOLD if self.spread else _TIMID)
        total = max(tail.total, 1e-300)
        bias = self.share * float(np.hypot(doubt, self.spread * cut))
        width = float(np.hypot(noise, bias))
        return width, width <= (_NARROW if cut < _LITTLE * total else _WIDE) * noise


def best(tail: Tail, limits: Sequence[float], aim: Aim) -> float:
    """The limit at which noise and what is not known of the cut are least together, for a typical group; one where that
    is mostly noise, if it costs little."""
    widths = [(*aim.width(tail, limit), limit) for limit in limits]
    least = min(width for width, _, _ in widths)
    noisy = [(width, limit) for width, mostly_noise, limit in widths if mostly_noise and width <= _WORTH * least]
    return min(noisy or [(width, limit) for width, _, limit in widths])[1]
