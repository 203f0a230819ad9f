"""Released numbers that know how they were made, so that error bars follow them through arithmetic.

A Figure holds a number for each group and its slopes: how fast it moves with each measured number, whose noise is
independent and of a known law. From these follow

    the standard deviation   sqrt(sum (slope std)^2); for anything but sums a first-order figure
    the interval             of a sum of measured numbers: exact. Through a function of one number (root, rounding,
                             clipping, times a constant): the image of its interval, as good as that. Of a ratio:
                             Fieller's, exact for Gaussian noise. Of other combinations: first-order
    unreliable               a denominator (or what a root or logarithm is taken of) is within three standard
                             deviations of 0, or which branch of a CASE holds is within the noise

NULL is NaN. Where a number is unreliable its interval is all that is still known: what bounds say, or everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from . import mixtures
from .mixtures import Floats, Spreads

Bools = NDArray[np.bool_]
Bounds = tuple[Floats, Floats]
Hull = Callable[..., Bounds]

CLEAR = 3.0
"""How many standard deviations a denominator must be away from 0."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A number for each group, with its slopes by measured number. Itself: a measured number, or a constant."""

    value: Floats
    slopes: Mapping[str, Floats] = field(default_factory=dict)
    linear: bool = True  # is the noise of it exactly the slopes' mixture?
    jumps: bool = False  # were there roundings or choices, of which slopes know nothing?
    raw: Floats | None = None  # before it was clipped
    above: Any = False  # may the truth be any amount above, because nobody knows what limits cut? below?
    below: Any = False

    @property
    def noisy(self) -> bool:
        return bool(self.slopes)

    @property
    def exact(self) -> bool:
        """Do intervals hold as stated? Otherwise to first order in the noise: well where it is small."""
        return self.linear

    def std(self, spreads: Spreads) -> Floats:
        """The standard deviation of its noise."""
        return _like(self.value, mixtures.std(self.slopes, spreads))

    def interval(self, spreads: Spreads, alpha: float = 0.05) -> Bounds:
        """(lower, upper): for each group by itself, holds the truth with probability 1 - alpha; infinite on the side
        where nothing is known of what limits cut."""
        low, high = self.noise_interval(spreads, alpha)
        return np.where(self.below, -np.inf, low), np.where(self.above, np.inf, high)

    def noise_interval(self, spreads: Spreads, alpha: float = 0.05) -> Bounds:
        """The same, if limits cut nothing but what is known of."""
        with np.errstate(all="ignore"):
            return self._interval(spreads, alpha)

    def half_width(self, spreads: Spreads, alpha: float = 0.05) -> Floats:
        """How far the farther end of the interval is."""
        low, high = self.interval(spreads, alpha)
        with np.errstate(all="ignore"):
            return np.asarray(np.maximum(high - self.value, self.value - low))

    def unreliable(self, spreads: Spreads) -> Bools:
        """Where neither the number nor its standard deviation should be relied on."""
        return np.zeros(self.value.shape, dtype=np.bool_)

    def _interval(self, spreads: Spreads, alpha: float) -> Bounds:
        width = mixtures.half_width(self.slopes, spreads, alpha)
        return self.value - width, self.value + width

    def __add__(self, other: Figure) -> Figure:
        return joint(self.value + other.value, (self, other), (1.0, 1.0), _sum_hull, linear=True)

    def __sub__(self, other: Figure) -> Figure:
        return self + -other

    def __neg__(self) -> Figure:
        return joint(-self.value, (self,), (-1.0,), lambda x: (-x[1], -x[0]), linear=True)

    def __mul__(self, other: Figure) -> Figure:
        scaled = not (self.noisy and other.noisy)
        slopes = (other.value, self.value)
        return joint(self.value * other.value, (self, other), slopes, _product_hull, linear=scaled)

    def __truediv__(self, other: Figure) -> Figure:
        with np.errstate(all="ignore"):
            value = np.where(other.value == 0, np.nan, self.value / other.value)
            slopes = (1 / other.value, -value / other.value)
        made = joint(value, (self, other), slopes, _ratio_hull, linear=not other.noisy, kind=Ratio)
        return replace(made, guards=(other,))


@dataclass(frozen=True, eq=False)
class Selected(Figure):
    """A number of units that reached the threshold, and is shown for that. Its interval holds among those that are
    shown: of all means, those under which a number as high (as low) is not too rare *given that it is shown* (Lee, Sun,
    Sun, Taylor 2016). `rate` is what the measured number was multiplied by."""

    threshold: float = 0.0
    rate: float = 1.0
    name: str = ""

    def _interval(self, spreads: Spreads, alpha: float) -> Bounds:
        width = mixtures.half_width(self.slopes, spreads, alpha)
        noise = mixtures.deviation(self.name, spreads)
        shown = self.value / self.rate
        low, high = _truncated(shown, self.threshold, noise, alpha)
        own = mixtures.half_width({self.name: self.slopes[self.name]}, spreads, alpha)
        rest = np.sqrt(np.maximum(width**2 - own**2, 0.0))  # what is not known of cuts
        below, above = (np.maximum(end, 0.0) * self.rate for end in (shown - low, high - shown))
        down, up = np.hypot(below, rest), np.hypot(above, rest)
        return np.maximum(self.value - down, 0.0), self.value + up


@dataclass(frozen=True, eq=False)
class Given(Figure):
    """A number whose intervals are known, and no law: a quantile."""

    within: Callable[[float], Bounds] = field(default=lambda _: (np.zeros(0), np.zeros(0)))
    doubt: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def exact(self) -> bool:
        return True

    def unreliable(self, spreads: Spreads) -> Bools:
        return self.doubt

    def _interval(self, spreads: Spreads, alpha: float) -> Bounds:
        return self.within(alpha)


@dataclass(frozen=True, eq=False)
class Joint(Figure):
    """Made of parts. `hull` gives an interval that holds wherever each of the parts' intervals does."""

    parts: tuple[Figure, ...] = ()
    hull: Hull = field(default=lambda *of: of[0])
    guards: tuple[Figure, ...] = ()  # what must be clear of 0
    chosen: bool = False  # among noisy parts: the hull is all there is

    @property
    def exact(self) -> bool:
        return all(part.exact for part in self.parts) if self._by_hull else self.linear

    @property
    def _by_hull(self) -> bool:
        return self.chosen or sum(part.noisy for part in self.parts) <= 1 or any(part.jumps for part in self.parts)

    def unreliable(self, spreads: Spreads) -> Bools:
        doubt = self._unguarded(spreads)
        for part in self.parts:
            doubt = doubt | part.unreliable(spreads)
        return doubt

    def _unguarded(self, spreads: Spreads) -> Bools:
        return _near_zero(self.guards, spreads, self.value)

    def _interval(self, spreads: Spreads, alpha: float) -> Bounds:
        noisy = sum(part.noisy for part in self.parts)
        if self._by_hull:
            return self._hulled(spreads, alpha / max(noisy, 1))
        low, high = self._first_order(spreads, alpha)
        doubt = self.unreliable(spreads)
        if doubt.any():
            wide = self._hulled(spreads, alpha / noisy)
            low, high = np.where(doubt, wide[0], low), np.where(doubt, wide[1], high)
        return low, high

    def _hulled(self, spreads: Spreads, share: float) -> Bounds:
        return self.hull(*(part._interval(spreads, share) for part in self.parts))

    def _first_order(self, spreads: Spreads, alpha: float) -> Bounds:
        return super()._interval(spreads, alpha)


@dataclass(frozen=True, eq=False)
class Ratio(Joint):
    """parts[0]/parts[1], both noisy or the second alone."""

    def _hulled(self, spreads: Spreads, share: float) -> Bounds:
        low, high = super()._hulled(spreads, share)
        near = self._unguarded(spreads)
        return np.where(near, -np.inf, low), np.where(near, np.inf, high)

    def _first_order(self, spreads: Spreads, alpha: float) -> Bounds:
        """Fieller: all r for which 0 is within z standard deviations of S - r N, a quadratic in r. z is how many of
        them the half-width is at the ratio released: 1.96 for Gaussians, a little more for Laplaces."""
        over, under = self.parts
        deviation, width = mixtures.std(self.slopes, spreads), mixtures.half_width(self.slopes, spreads, alpha)
        square = np.where(deviation > 0, width / deviation, 0.0) ** 2
        both: Any = 0.0
        for name in over.slopes.keys() & under.slopes.keys():
            both = both + over.slopes[name] * under.slopes[name] * mixtures.deviation(name, spreads) ** 2
        a = under.value**2 - square * under.std(spreads) ** 2
        b = under.value * over.value - square * both
        c = over.value**2 - square * over.std(spreads) ** 2
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        open_ = ~(a > 0)
        return np.where(open_, -np.inf, (b - root) / a), np.where(open_, np.inf, (b + root) / a)


@dataclass(frozen=True, eq=False)
class Choice(Joint):
    """One of two parts for each group; both count where noise may have chosen."""

    first: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def exact(self) -> bool:
        return not self.guards and all(part.exact for part in self.parts)

    def unreliable(self, spreads: Spreads) -> Bools:
        one, two = self.parts
        own = np.where(self.first, one.unreliable(spreads), two.unreliable(spreads))
        return np.asarray(own | self._unguarded(spreads))

    def _interval(self, spreads: Spreads, alpha: float) -> Bounds:
        one, two = (part._interval(spreads, alpha) for part in self.parts)
        low, high = (np.where(self.first, a, b) for a, b in zip(one, two, strict=True))
        near = self._unguarded(spreads)
        return (
            np.where(near, np.fmin(one[0], two[0]), low),
            np.where(near, np.fmax(one[1], two[1]), high),
        )


def measured(name: str, value: Any) -> Figure:
    """A measured number: for each group a value with noise of the law that the spreads give under this name."""
    value = np.asarray(value, dtype=np.float64)
    return Figure(value, {name: np.ones_like(value)})


def selected(name: str, value: Any, threshold: float) -> Figure:
    """A measured number that is shown because it reached a threshold."""
    value = np.asarray(value, dtype=np.float64)
    return Selected(value, {name: np.ones_like(value)}, threshold=threshold, name=name)


def given(name: str, value: Any, within: Callable[[float], Bounds], doubt: Bools | None = None) -> Figure:
    """A number that comes with intervals of its own, from alpha to (lower, upper); a name that no spread has. Its
    standard deviation is the half-width at 68.27 %."""
    value = np.asarray(value, dtype=np.float64)
    low, high = within(1 - 0.6827)
    doubt = np.zeros(value.shape, dtype=np.bool_) if doubt is None else doubt
    slopes = {name: np.asarray((high - low) / 2, dtype=np.float64)}
    return Given(value, slopes, linear=False, jumps=True, within=within, doubt=doubt)


def constant(value: Any, size: int) -> Figure:
    """The same public number for each group, or one for each of them."""
    return Figure(np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (size,))))


def joint(
    value: Floats,
    parts: tuple[Figure, ...],
    partials: tuple[Any, ...],
    hull: Hull,
    *,
    linear: bool,
    kind: type[Joint] = Joint,
) -> Joint:
    """The chain rule."""
    slopes: dict[str, Floats] = {}
    with np.errstate(all="ignore"):
        for part, partial in zip(parts, partials, strict=True):
            for name, slope in part.slopes.items():
                slopes[name] = slopes[name] + partial * slope if name in slopes else partial * slope
    linear = linear and all(part.linear for part in parts)
    above, below = _open(parts, partials)
    jumps = any(part.jumps for part in parts)
    return kind(value, slopes, linear, jumps, above=above, below=below, parts=parts, hull=hull)


def _open(parts: tuple[Figure, ...], partials: tuple[Any, ...]) -> tuple[Any, Any]:
    """Where nobody knows how far above or below the truth is: parts that rise, or fall under a negative slope."""
    above: Any = False
    below: Any = False
    with np.errstate(all="ignore"):
        for part, partial in zip(parts, partials, strict=True):
            if np.any(part.above) or np.any(part.below):
                up, down = ~(np.asarray(partial) <= 0), ~(np.asarray(partial) >= 0)  # a slope of NaN may be either
                above = above | (part.above & up) | (part.below & down)
                below = below | (part.below & up) | (part.above & down)
    return above, below


def _truncated(value: Floats, threshold: float, std: float, alpha: float) -> Bounds:
    """The means of a normal law, cut off below the threshold, under which this value is neither too high nor too low:
    by bisection."""
    ends = []
    for chance in (alpha / 2, 1 - alpha / 2):
        low, high = value - 60 * std, value + 10 * std
        for _ in range(60):
            middle = (low + high) / 2
            above = log_ndtr((middle - value) / std) - log_ndtr((middle - threshold) / std)
            high, low = (
                np.where(above > math.log(chance), middle, high),
                np.where(above > math.log(chance), low, middle),
            )
        ends.append((low + high) / 2)
    return ends[0], ends[1]


def _near_zero(guards: tuple[Figure, ...], spreads: Spreads, like: Floats) -> Bools:
    near = np.zeros(like.shape, dtype=np.bool_)
    for guard in guards:
        near |= ~(np.abs(guard.value) > CLEAR * guard.std(spreads))  # so that NaN is near
    return near


def _sum_hull(x: Bounds, y: Bounds) -> Bounds:
    return x[0] + y[0], x[1] + y[1]


def _product_hull(x: Bounds, y: Bounds) -> Bounds:
    corners = [np.where((a == 0) | (b == 0), 0.0, a * b) for a in x for b in y]  # 0 times anything known is 0
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _ratio_hull(x: Bounds, y: Bounds) -> Bounds:
    crossing = ~((y[0] > 0) | (y[1] < 0))
    low, high = _product_hull(x, (1 / y[1], 1 / y[0]))
    return np.where(crossing, -np.inf, low), np.where(crossing, np.inf, high)


def _like(value: Floats, number: Any) -> Floats:
    return np.array(np.broadcast_to(np.asarray(number, dtype=np.float64), value.shape))
