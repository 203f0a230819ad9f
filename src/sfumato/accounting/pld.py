"""Privacy-loss distributions: the tightest price of what was fixed in advance, known from both sides.

The losses of the mechanisms (pairs.py) add up, and (epsilon, delta) is read off the law of the sum. Five ways:

  optimal.py     equal (epsilon, delta) mechanisms: binomial sums
  few.py         a few mechanisms of a few outcomes each: all combinations
  single.py      one mechanism: an integral
  inversion.py   from the moment function of the sum: milliseconds, intervals of 1e-7, whatever the number of steps;
                 needs smooth noise somewhere
  here           on a lattice (lattice.py), from above and from below, by real Fourier transforms; for atoms, few steps,
                 and whatever inversion declines

On the lattice every error is bounded and taken in the safe direction:

  discretisation   from above and below, O(step^2) on either side
  round-off        of the transforms, bounded from the sizes of the coefficients (`_convolved`), in delta
  wrap-around      the transform is circular: what lies outside the window is bounded by Chernoff, in delta
  masses           their relative error (see lattice.py), once per composition

The lattice law is tilted before the transform, p_k e^(tilt k step) / M (an Esscher transform), and the sum is tilted
back: then small deltas lie where the transform has its digits, and errors are relative to delta.

Where the dominating pair of an event is not attained by any mechanism (pairs.py, `attained`), the lower bound is that
of a pair which is.

Koskela, Jälkö, Honkela 2020 (Fourier accountant); Gopi, Lee, Wutschitz 2021; Doroshenko et al. 2022.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy import fft

from .. import exact
from ..checks import DELTA_LEAST
from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Pure
from . import brent, inversion, optimal, pairs, quadrature, single
from .composition import reached
from .failures import unfailing
from .few import few
from .interval import ACCURACY, DELTA_ACCURACY, FLOOR, Interval
from .lattice import ON_NODE, SLACK, Lattice, LatticeCells, tails
from .pairs import Floats, Loss

Part = tuple[Loss, int]  # a law and how many times
Parts = Callable[[float], list[Part]]
Bounds = Callable[[Parts, float], Interval]  # of these laws, given an upper end that others have
Pairing = Callable[[Event, float], pairs.Directions]

_OUTSIDE = 1e-4  # of delta: tilted mass beyond each end of the window
_TAILS = (1e-9, 1e-4)  # of delta: what may be cut off the losses; more where rare large ones stand in the way
_LEAST = (1e-15, 1e-30, 1e-60, 1e-115)  # of delta: what is cut off follows it down
_MOST_POINTS = 1 << 19
_ROUNDS = 5
_MOST_LISTS = 64
_MOST_LOSS = 1e5  # that one mechanism may have
_WIDEST = 300.0  # step: its exponential must stay in float64


@lru_cache(maxsize=1024)
def epsilon(event: Event, delta: Fraction | float, *, accuracy: float = ACCURACY, floor: float = FLOOR) -> Interval:
    """The least epsilon at which the event is (epsilon, delta)-DP, from both sides.

    accuracy  the width that is aimed at where a lattice is needed, relative to epsilon or to the floor
    """
    alike = _alike(event)
    if alike is not None:
        step, own, times = alike
        return optimal.epsilon(epsilon0=step, delta0=own, times=times, delta=delta)
    rest, (low, high) = unfailing(event)
    if rest is not event:
        return _beside_failures(rest, Fraction(delta), low, high, accuracy)
    interval = _bracket(event, _epsilon_bounds(float(delta), accuracy, floor))
    if math.isinf(interval.upper):
        raise UnsupportedEventError(
            f"{type(event).__name__} cannot be priced at delta = {float(delta):g}: it needs a larger delta"
        )
    return interval


@lru_cache(maxsize=1024)
def delta(event: Event, epsilon: Fraction | float, *, accuracy: float = DELTA_ACCURACY) -> Interval:
    """The least delta at which the event is (epsilon, delta)-DP, from both sides.

    accuracy  the width that is aimed at, relative to delta
    """
    alike = _alike(event)
    if alike is not None:
        step, own, times = alike
        return optimal.delta(epsilon0=step, delta0=own, times=times, epsilon=epsilon)
    rest, (low, high) = unfailing(event)
    if rest is not event:
        interval = Interval(0.0, 0.0) if rest is None else delta(rest, epsilon, accuracy=accuracy)
        return Interval(
            exact.float_below(1 - high * (1 - Fraction(interval.lower))),
            exact.float_above(1 - low * (1 - Fraction(interval.upper))),
        )
    interval = Interval(0.0, 1.0)
    for least in _LEAST:
        interval = interval.both(_bracket(event, _delta_bounds(float(epsilon), least, accuracy)))
        if interval.width <= accuracy * interval.upper or interval.upper > 1e3 * least:
            break
    return interval


def _beside_failures(rest: Event | None, target: Fraction, low: Fraction, high: Fraction, accuracy: float) -> Interval:
    """The epsilon of the rest at what failures leave of delta: 1 - delta = (1 - failures) (1 - delta of the rest)."""
    if 1 - target > low * (1 - (2 * DELTA_LEAST if rest is not None else 0)):
        raise UnsupportedEventError(
            f"what fails with probability {exact.float_above(1 - low):.6g} cannot be priced at delta = "
            f"{float(target):g}: it needs a larger delta"
        )
    if rest is None:
        return Interval(0.0, 0.0)
    least, most = 1 - (1 - target) / low, 1 - (1 - target) / high
    above = epsilon(rest, Fraction(exact.float_below(least)), accuracy=accuracy).upper
    below = epsilon(rest, Fraction(min(exact.float_above(most), 1 - 2.0**-53)), accuracy=accuracy).lower
    return Interval(min(below, above), above)


def _alike(event: Event) -> tuple[Fraction, Fraction, int] | None:
    """(epsilon, delta, times) of equal mechanisms of which no more is known: optimal composition is exact for them."""
    lists = reached(event, 1)
    if lists is None or len(lists[0]) > 1:
        return None
    ((leaf, times),) = lists[0].items()
    if not isinstance(leaf, Pure | Approximate) or not leaf.epsilon or times > 10**6:
        return None
    return leaf.epsilon, leaf.delta if isinstance(leaf, Approximate) else Fraction(0), times


@lru_cache(maxsize=1024)
def epsilon_at_least(event: Event, delta: Fraction | float) -> float:
    """An epsilon below which no claim at delta can hold, for whatever part of the event has an attained pair."""
    return _worst(_lists(event), pairs.attained, _epsilon_bounds(float(delta), ACCURACY, FLOOR)).lower


@lru_cache(maxsize=1024)
def delta_at_least(event: Event, epsilon: Fraction | float) -> float:
    """A delta below which no claim at epsilon can hold, for whatever part of the event has an attained pair."""
    return _worst(_lists(event), pairs.attained, _delta_bounds(float(epsilon), _LEAST[0], DELTA_ACCURACY)).lower


def _epsilon_bounds(target: float, accuracy: float, floor: float) -> Bounds:
    def bounds(parts: Parts, worst: float) -> Interval:
        if _infinite(parts(_TAILS[0] * target)) >= target:
            none = _infinite(parts(_TAILS[0] * target)) > target * (1 + 1e-9)  # at equality the rest must be pure
            return Interval(math.inf if none else 0.0, math.inf)
        if inversion.variation(parts(_TAILS[0] * target)) <= target:
            return Interval(0.0, 0.0)
        if 0 < worst < math.inf and inversion.ceiling(parts(_TAILS[0] * target), worst) <= target:
            return Interval(0.0, worst)  # another direction costs more
        if _count(parts(_TAILS[0] * target)) == 1 and _is_short(parts(_TAILS[0] * target)[0][0]):
            return single.epsilon(parts(_TAILS[0] * target)[0][0], target)
        outcomes = few(parts(_TAILS[0] * target))
        if outcomes is not None:
            return outcomes.epsilon(target)
        bracket = Interval(0.0, math.inf)
        for tail in _TAILS:
            bracket = bracket.both(inversion.epsilon(parts(tail * target), target))
            if bracket.upper < math.inf and bracket.width <= accuracy * max(bracket.upper, floor):
                return bracket
        if _is_wide(parts(_TAILS[-1] * target)):
            return bracket
        return bracket.both(_on_lattice(parts(_TAILS[-1] * target), target, accuracy, floor))

    return bounds


def _delta_bounds(target: float, least: float, accuracy: float) -> Bounds:
    def bounds(parts: Parts, worst: float) -> Interval:
        if _count(parts(_TAILS[0] * least)) == 1 and _is_short(parts(_TAILS[0] * least)[0][0]):
            return single.delta(parts(_TAILS[0] * least)[0][0], target)
        outcomes = few(parts(_TAILS[0] * least))
        if outcomes is not None:
            return outcomes.delta(target)
        bracket = Interval(0.0, 1.0)
        for tail in _TAILS:
            bracket = bracket.both(inversion.delta(parts(tail * least), target))
            if bracket.width <= max(accuracy * bracket.upper, least):
                return bracket
        if _is_wide(parts(_TAILS[-1] * least)):
            return bracket
        return bracket.both(_delta_on_lattice(parts(_TAILS[-1] * least), target, least, accuracy))

    return bounds


def forget() -> None:
    """Drop remembered prices."""
    for price in (epsilon, delta, epsilon_at_least, delta_at_least):
        price.cache_clear()


def _bracket(event: Event, bounds: Bounds) -> Interval:
    """Over both directions and all parts that a unit may be in; from below only over what some mechanism attains."""
    lists = _lists(event)
    worst = _worst(lists, pairs.directions, bounds)
    if all(pairs.is_attained(leaf) for each in lists for leaf in each):
        return worst
    return Interval(min(_worst(lists, pairs.attained, bounds).lower, worst.upper), worst.upper)


def _worst(lists: list[Counter[Event]], pair: Pairing, bounds: Bounds) -> Interval:
    worst = Interval(0.0, 0.0)
    for leaves in lists:
        for parts in _by_direction(leaves, pair):
            interval = bounds(parts, worst.upper)
            worst = Interval(max(worst.lower, interval.lower), max(worst.upper, interval.upper))
    return worst


def _by_direction(leaves: Counter[Event], pair: Pairing) -> list[Parts]:
    """Per direction, the laws of all losses, given how much of their mass may be cut off in all."""
    count = sum(leaves.values())

    @lru_cache(maxsize=4)
    def laws(tail: float) -> list[tuple[pairs.Directions, int]]:
        weighted = [(pair(leaf, tail / count), times) for leaf, times in leaves.items()]
        if any(
            law.reach[1] - law.reach[0] > _MOST_LOSS and not inversion.is_normal(law) for d, _ in weighted for law in d
        ):
            raise UnsupportedEventError("so little noise is not priced by privacy loss: price it by Renyi divergence")
        return weighted

    def parts(k: int, tail: float) -> list[Part]:
        return [(directions[min(k, len(directions) - 1)], times) for directions, times in laws(tail)]

    return [partial(parts, k) for k in range(max(len(directions) for directions, _ in laws(1e-15)))]


def _lists(event: Event) -> list[Counter[Event]]:
    """The lists of single mechanisms that one unit may be in, with how often each happens."""
    lists = reached(event, _MOST_LISTS)
    if lists is None:
        raise UnsupportedEventError(
            "a partition of so many unlike parts is not priced by privacy loss: price it by rho or by Renyi divergence"
        )
    multisets = []
    for counts in lists:
        multisets.append(sum((_times(leaf, times) for leaf, times in counts.items()), Counter()))
    return multisets


def _times(leaf: Event, times: int) -> Counter[Event]:
    counts: Counter[Event] = Counter()
    for one, count in pairs.singles(leaf):
        counts[one] += times * count
    return counts


def _count(parts: Several[Part]) -> int:
    return sum(times for _, times in parts)


def _is_short(law: Loss) -> bool:
    """Is its integral quick? (Of a plain Gaussian everything is known in closed form.)"""
    return law.reach[1] - law.reach[0] < (_MOST_LOSS / 10 if inversion.is_normal(law) else _MOST_LOSS)


def _is_wide(parts: Several[Part]) -> bool:
    """Would a lattice for it not fit into memory? Only a Gaussian comes so far, with next to no noise."""
    return not all(law.reach[1] - law.reach[0] <= _MOST_LOSS for law, _ in parts)


def _infinite(parts: Several[Part]) -> float:
    return -math.expm1(sum(times * math.log1p(-law.infinite) for law, times in parts))


def _on_lattice(parts: Several[Part], target: float, accuracy: float, floor: float = FLOOR) -> Interval:
    tilt, guess = inversion.saddle(parts, target)
    bracket = Interval(0.0, math.inf)
    step = _step(parts, tilt, accuracy * max(guess, floor))
    for below, above in _finer(parts, step, tilt, math.log(target)):
        lower = below.epsilon(target, upper=False) if below else 0.0
        bracket = bracket.both(Interval(lower, above.epsilon(target, upper=True)))
        if bracket.width <= accuracy * max(bracket.upper, floor):
            break
    return bracket  # sound in any case; wider than asked where more points would be too many


def _delta_on_lattice(parts: Several[Part], target: float, least: float, accuracy: float = DELTA_ACCURACY) -> Interval:
    tilt, log_delta = inversion.saddle_delta(parts, target)
    log_value = max(log_delta, math.log(least)) + tilt * target
    bracket = Interval(0.0, 1.0)
    for below, above in _finer(parts, _step(parts, tilt, accuracy / max(1.0, tilt)), tilt, log_value):
        lower = below.delta(target, upper=False) if below else 0.0
        bracket = bracket.both(Interval(lower, above.delta(target, upper=True)))
        if bracket.width <= max(accuracy * bracket.upper, least):
            break
    return bracket


def _finer(
    parts: Several[Part], step: float, tilt: float, log_value: float
) -> Iterator[tuple[_Composed | None, _Composed]]:
    """The composed law from below and from above, on finer and finer lattices while they are not too long."""
    finest = max(law.reach[1] - law.reach[0] for law, _ in parts) / _MOST_POINTS
    step = max(step, finest)
    rounds, last = 0, 0.0
    while rounds < _ROUNDS:
        step = _aligned(parts, step, finest)
        if step == last:  # the atoms fit: no finer lattice would do better
            return
        last = step
        cells = [(LatticeCells.of(law, step), times) for law, times in parts]
        above = _compose([(each.upper(), times) for (_, each), times in cells], tilt, log_value)
        if above is None:  # from here on coarser ones, until one fits
            step, finest = 8 * step, 8 * step
            continue
        yield _compose([(each.lower(), times) for (each, _), times in cells], tilt, log_value), above
        if step / 2.5 < finest or above.tilted.size > _MOST_POINTS:
            return
        step, rounds = step / 2.5, rounds + 1


def _step(parts: Several[Part], tilt: float, wanted: float) -> float:
    """From the error of a lattice of step h, about T h^2 (1 + tilt)/4, and never more than T h."""
    count = _count(parts)
    return max(math.sqrt(4 * wanted / ((1 + tilt) * count)), wanted / count)


def _aligned(parts: Several[Part], step: float, finest: float) -> float:
    """A step that divides the atoms of the first mechanism that has some: atoms on nodes are exact. (Not where that is
    next to nothing beside the others: the lattice would have more points than memory.)"""
    for law, _ in parts:
        top = float(np.abs(law.atoms).max(initial=0.0))
        if law.atoms.size > 1 and (len(parts) == 1 or top >= finest):
            places = np.unique(np.round(np.abs(law.atoms) / top, 12))
            gap = float(np.diff(places).min()) if places.size > 1 else 1.0
            unit = top * (gap / 2 if abs((1 / gap) % 1 - 0.5) < 1e-6 else gap)
            unit = top / round(top / unit)
            if len(parts) == 1 and not law.pieces and _on_nodes(law.atoms / unit):
                return unit / math.ceil(unit / _WIDEST)
            return top / math.ceil(top / step)
    return step


def _on_nodes(places: Floats) -> bool:
    return bool(np.abs(places - np.rint(places)).max() < ON_NODE)


@dataclass(frozen=True)
class _Composed:
    """The law of a sum of losses, tilted: the mass at loss e is tilted * exp(log_scale - tilt * e)."""

    step: float
    first: int
    tilted: Floats
    tilt: float
    log_scale: float
    infinite: float
    error: float  # on delta(e): error * exp(log_scale - tilt * e)
    relative: float  # of P, and of Q
    excess: float
    offset: float

    def epsilon(self, delta: float, *, upper: bool) -> float:
        """Where the curve meets delta, on the safe side. Between nodes the curve is a chord in e^epsilon; the error
        term falls, so that of the left node serves for the cell."""
        losses, curve, error = self._curve()
        side = 1.0 if upper else -1.0
        curve = self._moved(curve, upper)
        at_node = curve + side * error
        at_next = curve[1:] + side * error[:-1]
        if not np.isfinite(at_node).all():
            return math.inf if upper else 0.0
        over = np.flatnonzero(at_node > delta)
        if not over.size:
            return max(float(losses[0]) + self._shift, 0.0) if upper else 0.0
        k = int(over[-1])
        if k + 1 == losses.size:
            return math.inf if upper else max(float(losses[-1]) - self._shift, 0.0)
        if at_next[k] > delta:
            return max(float(losses[k + 1]) + side * self._shift, 0.0)
        share = float((at_node[k] - delta) / (at_node[k] - at_next[k]))
        return max(float(losses[k]) + math.log1p(share * math.expm1(self.step)) + side * self._shift, 0.0)

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """The curve at epsilon, on the safe side."""
        losses, curve, error = self._curve()
        side = 1.0 if upper else -1.0
        place = epsilon - side * self._shift
        curve = self._moved(curve, upper)
        k = min(max(math.floor((place - losses[0]) / self.step), 0), losses.size - 1)
        if place < losses[0]:
            return 1.0 if upper else 0.0
        if k + 1 == losses.size:
            value = float(curve[-1])
        else:
            share = math.expm1(min(place - float(losses[k]), self.step)) / math.expm1(self.step)
            value = float(curve[k] + (curve[k + 1] - curve[k]) * share)
        value += side * float(error[k])
        return min(max(value, 0.0), 1.0) if math.isfinite(value) else float(upper)

    @property
    def _shift(self) -> float:
        """What the relative error of Q, and atoms called on a node that are a hair beside it, may do to epsilon."""
        return 2 * self.relative

    def _moved(self, curve: Floats, upper: bool) -> Floats:
        if upper:
            return np.asarray(curve * (1 + self.relative) + self.infinite)
        return np.asarray(curve * (1 - self.relative) + self.infinite - self.excess)

    def _curve(self) -> tuple[Floats, Floats, Floats]:
        """delta(e_k) = sum over j > k of (1 - e^(e_k - e_j)) c_j; with q_k the sum of c_j e^(e_k - e_j) over j > k the
        step from delta(e_k) to delta(e_(k+1)) is (e^step - 1) q_k: nothing cancels."""
        losses = self.step * (self.first + np.arange(self.tilted.size, dtype=np.float64))
        log_weight = np.minimum(self.log_scale - self.tilt * losses, 600.0)
        mass = self.tilted * np.exp(log_weight)
        q = np.append(tails(mass, self.step)[1:] * math.exp(-self.step), 0.0)
        curve = math.expm1(self.step) * np.cumsum(q[::-1])[::-1]
        error = self.error * np.exp(log_weight) + 1e-250  # what underflows is smaller
        return losses + self.offset, np.maximum(curve, 0.0), np.asarray(error)


def _compose(parts: Several[tuple[Lattice, int]], tilt: float, log_value: float) -> _Composed | None:
    """The law of the sum, in one circular transform; None if it would be too long.

    log_value  of what will be read off: ln delta + tilt epsilon
    """
    if not all(law.p.any() for law, _ in parts):  # nothing is left below
        return None
    step = parts[0][0].step
    moments = [_moments(law, tilt) for law, _ in parts]
    scale = sum(times * m[0] for (_, times), m in zip(parts, moments, strict=True))
    spread = math.sqrt(max(sum(times * m[1] for (_, times), m in zip(parts, moments, strict=True)), 1e-300))
    outside = _OUTSIDE * math.exp(min(max(log_value - scale, -60.0), 0.0))
    low, high = (_end(parts, tilt, scale, spread, sign, outside) for sign in (-1, 1))
    first = max(math.floor(low / step) - 1, sum(times * law.first for law, times in parts))
    last = min(math.ceil(high / step) + 1, sum(times * (law.first + law.p.size - 1) for law, times in parts))
    if last - first > 4 * _MOST_POINTS:
        return None
    size = fft.next_fast_len(max(last - first + 1, 2), real=True)
    tilted = [
        (law.first, np.exp(law.log_p + tilt * law.losses - log_mass), times)
        for (law, times), (log_mass, _) in zip(parts, moments, strict=True)
    ]
    sums, worst = _convolved(tilted, first, size, np.float64)
    if worst > -math.expm1(-tilt * step) * outside:  # of a delta so small that doubles have no digits left for it
        sums, worst = _convolved(tilted, first, size, np.longdouble)
    return _Composed(
        step,
        first,
        sums,
        tilt,
        scale,
        infinite=-math.expm1(sum(times * math.log1p(-law.infinite) for law, times in parts)),
        error=worst / -math.expm1(-tilt * step) + 2 * outside,  # a geometric sum over the nodes above
        relative=math.expm1(sum(times for _, times in parts) * (SLACK + ON_NODE * step)) + 1e-11,
        excess=sum(times * law.excess for law, times in parts),
        offset=sum(times * law.offset for law, times in parts),
    )


def _convolved(
    laws: Several[tuple[int, Floats, int]], first: int, size: int, number: type[np.floating[Any]]
) -> tuple[Floats, float]:
    """The law of the sum on a circle that starts at `first`, and a bound on what is wrong at any one node.

    Each law is a main atom a and a rest r. The transform of the sum, relative to all main atoms, is the product of
    (1 + r^/a)^T; as a difference from 1 its round-off is relative to the rest alone.
    """
    unit = float(np.finfo(number).eps) / 2
    log_product: Any = 0.0
    doubt, log_cap = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1)
    origin, log_main = 0, 0.0
    for start, weights, times in laws:
        main = int(weights.argmax())
        atom = float(weights[main])
        rest = weights.copy()
        rest[main] = 0.0
        transform: Any = fft.rfft(_wrapped(rest, size, main).astype(number), size)
        # In norm a transform is off by at most 8 log2(n) u sqrt(n) |w|.
        off = 8 * math.log2(size) * unit * math.sqrt(size) * float(np.sqrt(np.sum(rest * rest)))
        log_ratio = quadrature.log1p(transform / atom)
        magnitude = np.maximum(np.abs(transform + atom).astype(np.float64), 1e-300)
        log_product = log_product + times * log_ratio
        rounding = 16 * np.abs(transform).astype(np.float64) / magnitude + 4 * np.abs(log_ratio).astype(np.float64)
        doubt += times * (off / magnitude + unit * rounding)
        log_cap += times * np.minimum(np.log((magnitude + off) / atom), -math.log(atom))  # true or computed
        origin += times * (start + main)
        log_main += times * math.log(atom)
    main_atom = math.exp(log_main)
    whole = np.exp(log_product + log_main)
    split = log_main > -1
    product = main_atom * _expm1(log_product) if split else whole - main_atom
    last = 16 * unit * (np.abs(product) if split else (1 - log_main) * np.abs(whole)).astype(np.float64)
    sums = fft.irfft(product, size).astype(np.float64)
    size_of = np.abs(whole).astype(np.float64)
    wrong = last + np.minimum(size_of * np.expm1(np.minimum(doubt, 700.0)), 2 * np.exp(log_cap + log_main))
    worst = 2 * float(wrong.sum()) / size + 8 * math.log2(size) * unit * float(np.sqrt(np.sum(sums * sums)))
    sums[0] += main_atom
    return np.asarray(np.roll(sums, (origin - first) % size)), worst


def _expm1(z: Any) -> Any:
    """e^z - 1, to full relative accuracy."""
    half = np.sin(z.imag / 2)
    return np.expm1(z.real) * np.cos(z.imag) - 2 * half * half + 1j * np.exp(z.real) * np.sin(z.imag)


def _wrapped(weights: Floats, size: int, origin: int) -> Floats:
    """The weights around a circle of that size, with the one at `origin` first."""
    around = np.pad(weights, (0, -weights.size % size)).reshape(-1, size).sum(axis=0)
    return np.asarray(np.roll(around, -(origin % size)))


def _log_mass(law: Lattice, tilt: float) -> float:
    exponent = law.log_p + tilt * law.losses
    top = float(exponent.max())
    return top + math.log(float(np.exp(exponent - top).sum()))


def _moments(law: Lattice, tilt: float) -> tuple[float, float]:
    """The log of the tilted mass, and the variance under the tilted law."""
    log_mass = _log_mass(law, tilt)
    weights = np.exp(law.log_p + tilt * law.losses - log_mass)
    mean = float(np.sum(weights * law.losses))
    return log_mass, float(np.sum(weights * (law.losses - mean) ** 2))


def _end(
    parts: Several[tuple[Lattice, int]], tilt: float, scale: float, spread: float, sign: int, outside: float
) -> float:
    """Where less than `outside` of the tilted law lies beyond, by Chernoff; any order gives a valid end."""

    def end(log_order: float) -> float:
        order = math.exp(log_order)
        excess = sum(times * _log_mass(law, tilt + sign * order) for law, times in parts) - scale
        return (excess - math.log(outside)) / order

    start = math.log(math.sqrt(-2 * math.log(outside)) / spread)
    _, lowest = brent.least(end, start - 8, start + 1, absolute=0.1)
    return sign * lowest
