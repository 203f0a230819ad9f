"""Where a monotone function of one positive parameter crosses zero, in few evaluations.

`excess(x) <= 0` means that x will do. Only points that were evaluated are ever returned, so what is returned will do,
whatever the function is like in between. The function is looked at on the log of the parameter: prices are close to
powers of the noise. First outward from a start until one point will do and one will not, which also tells whether
more is safer or less is; then inward by inverse quadratic interpolation or halving (Chandrupatla 1997).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from ..errors import ArgumentError

_STARTS = (1.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3, 1e-5, 1e5)
_MOST = 200  # evaluations; bisection alone needs fewer
_FARTHEST = math.log(1e100)  # from the start: nobody means that
_STEP, _REACH = math.log(1.25), math.log(8)  # least and largest step outward, on the log
_CLOSE = 1e-6  # on the log, to where the parameter is not allowed any more
_SLOPE = 1e-6  # a change of the excess below that is no slope
_WIGGLE = 0.05
"""A price rises and falls by its own accuracy, and that of a law on few whole numbers a little besides (a discrete
Gaussian of variance 2.2 costs 1 % more than one of 2.19, at delta 1e-13); more than that is not monotone."""
_CAP = 1000.0


WITHIN, ABOVE = "stays-within", "stays-above"  # codes of refusals: every parameter will do, or none


class OutsideError(Exception):
    """Raised by `excess` where the parameter is not allowed; its text says why."""


@dataclass(frozen=True)
class Crossing:
    """The last parameter that will do, its neighbour that will not, and how many evaluations it took."""

    inside: float
    outside: float
    evaluations: int

    @property
    def more_is_safer(self) -> bool:
        return self.inside > self.outside


def crossing(
    excess: Callable[[float], float],
    what: str,
    limit: str = "the target",
    *,
    start: float | None = None,
    tolerance: float = 1e-4,
    whole: bool = False,
) -> Crossing:
    """Where the excess crosses zero: `inside` and `outside` differ by at most the tolerance (relative), or by 1.

    what, limit  how to name the function and its limit in a refusal
    whole        the parameter is a whole number from 1
    """
    search = _Search(excess, what, limit, tolerance, whole)
    search.begin(_STARTS if start is None else (start,))
    search.outward()
    search.inward()
    return search.crossing()


@dataclass
class _Search:
    excess: Callable[[float], float]
    what: str
    limit: str
    tolerance: float
    whole: bool
    points: dict[float, float] = field(default_factory=dict)  # parameter -> excess, capped
    walls: dict[int, tuple[float, str]] = field(default_factory=dict)  # direction -> first log not allowed, and why

    def begin(self, starts: tuple[float, ...]) -> None:
        first: OutsideError | None = None
        for start in starts:
            try:
                self.look(start)
            except OutsideError as problem:
                first = first or problem
            else:
                return
        raise ArgumentError(
            f"{self.what} refuses the parameter {starts[0]:g}: {first}. Give start=, a parameter it can take."
        ) from first

    def look(self, x: float) -> float:
        """The excess at x, once; a nan is refused."""
        if x not in self.points:
            if len(self.points) >= _MOST:
                raise ArgumentError(f"{self.what} does not settle on a parameter: is its price monotone?")
            value = self.excess(x)
            if math.isnan(value):
                raise ArgumentError(f"{self.what} gives nan at the parameter {x:g}.")
            self.points[x] = min(max(value, -_CAP), _CAP)
        return self.points[x]

    def snap(self, log_x: float) -> float:
        """A short decimal near e^log_x, or a whole number."""
        x = math.exp(log_x)
        if self.whole:
            return float(max(round(x), 1))
        digits = min(max(6, 2 - math.floor(math.log10(self.tolerance))), 16)
        return float(f"{x:.{digits}g}")

    def outward(self) -> None:
        """Evaluate until some point will do and some will not."""
        origin = math.log(next(iter(self.points)))
        reach = {1: 0.0, -1: 0.0}  # how far out, on the log, each way
        size = _REACH / 3
        while not self._bracketed():
            ways = self._ways()
            moved = False
            for way in ways:
                step = self._step(way, size)
                moved = self._probe(origin, way, reach, step) or moved
                if self._bracketed() or self._ways() != ways:
                    break
            if not moved:
                raise self._unreachable(ways)
            size *= 2

    def _bracketed(self) -> bool:
        return min(self.points.values()) <= 0 < max(self.points.values())

    def _ways(self) -> tuple[int, ...]:
        """Where to look next: 1 is up. Both ways as long as no slope is seen."""
        ordered = sorted(self.points.items())
        (_, at_low), (_, at_high) = ordered[0], ordered[-1]
        if abs(at_high - at_low) < _SLOPE:
            return (1, -1) if at_low > 0 else (-1, 1)  # most families are of noise, and more of it is safer
        rising = at_high > at_low
        return (-1,) if rising == (at_high > 0) else (1,)

    def _step(self, way: int, size: float) -> float:
        """As far as the slope says, and a bit more, so that the crossing is passed."""
        measured = sorted((math.log(x), value) for x, value in self.points.items() if abs(value) < _CAP)
        if len(measured) == 1:  # prices fall like the noise or faster
            return min(max(0.6 * abs(measured[0][1]), _STEP), _REACH)
        if len(measured) > 1 and len(self._ways()) == 1:
            (a, at_a), (b, at_b) = measured[-2:] if way > 0 else measured[:2]
            end = at_b if way > 0 else at_a
            if at_a != at_b:
                return min(max(1.2 * abs(end * (b - a) / (at_b - at_a)), _STEP), max(size, _REACH))
        return size

    def _probe(self, origin: float, way: int, reach: dict[int, float], step: float) -> bool:
        """One new point that way; where the parameter is not allowed, half way back towards the last one that was."""
        at = origin + way * reach[way]
        target = at + way * step
        if way in self.walls and way * (self.walls[way][0] - target) <= 0:
            target = (at + self.walls[way][0]) / 2
        while abs(target - at) > _CLOSE and abs(target - origin) < _FARTHEST:
            x = self.snap(target)
            if self.whole and x == self.snap(at):
                x += way
            if x in self.points or (self.whole and x < 1):
                return False
            try:
                self.look(x)
            except OutsideError as problem:
                self.walls[way] = (target, str(problem))
                target = (at + target) / 2
            else:
                reach[way] = abs(math.log(x) - origin)
                return True
        return False

    def _unreachable(self, ways: tuple[int, ...]) -> ArgumentError:
        values = sorted(self.points.items())
        within = values[0][1] <= 0
        text = f"{self.what} stays {'within' if within else 'above'} {self.limit} for every parameter looked at, from "
        text += f"{values[0][0]:g} to {values[-1][0]:g}"
        if len(ways) > 1:
            text += ", and does not change with it: give a function whose price depends on its parameter."
        else:
            text += ": any of them will do." if within else ": allow more, or release less."
        for at, why in self.walls.values():
            text += f" At {math.exp(at):g} it is refused: {why.rstrip('.')}."
        return ArgumentError(text, argument=self.what, code=WITHIN if within else ABOVE)

    def ends(self) -> tuple[float, float]:
        """The neighbouring points of which the first will do and the second will not."""
        for (a, at_a), (b, at_b) in pairwise(sorted(self.points.items())):
            if (at_a <= 0) != (at_b <= 0):
                return (a, b) if at_a <= 0 else (b, a)
        raise AssertionError("outward() ends with a bracket")

    def inward(self) -> None:
        inside, outside = self.ends()
        share = self._secant(inside, outside)  # of the way from inside to outside
        while not self._close(inside, outside):
            a, b = math.log(inside), math.log(outside)
            least = 0.9 * self._least_step(inside) / abs(b - a)
            share = min(max(share, least), 1 - least) if least < 0.5 else 0.5
            x = self._between(a + share * (b - a), inside, outside)
            if x is None:
                return
            if self.look(x) <= 0:
                inside, third = x, inside
                share = self._chandrupatla(inside, outside, third)
            else:
                outside, third = x, outside
                share = 1 - self._chandrupatla(outside, inside, third)

    def _secant(self, inside: float, outside: float) -> float:
        low, high = self.points[inside], self.points[outside]
        return 0.5 if max(-low, high) >= _CAP else -low / (high - low)

    def _chandrupatla(self, newest: float, other: float, third: float) -> float:
        """The share of the way from the newest point to the one across, by inverse interpolation where it is safe."""
        x1, x2, x3 = (math.log(x) for x in (newest, other, third))
        f1, f2, f3 = (self.points[x] for x in (newest, other, third))
        if f3 in (f1, f2) or x3 in (x1, x2) or max(abs(f1), abs(f2), abs(f3)) >= _CAP:
            return 0.5
        xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
        if not (phi * phi < xi and (1 - phi) ** 2 < 1 - xi):
            return 0.5
        return f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)

    def _least_step(self, x: float) -> float:
        return 1 / x if self.whole else self.tolerance

    def _close(self, inside: float, outside: float) -> bool:
        if self.whole:
            return abs(inside - outside) <= 1
        return abs(math.log(inside / outside)) <= self.tolerance

    def _between(self, log_x: float, inside: float, outside: float) -> float | None:
        """A point of the grid strictly between the two."""
        low, high = sorted((inside, outside))
        x = self.snap(log_x)
        if self.whole:
            return min(max(x, low + 1), high - 1)
        if low < x < high:
            return x
        middle = math.sqrt(low) * math.sqrt(high)
        return middle if low < middle < high else None

    def crossing(self) -> Crossing:
        values = [value for _, value in sorted(self.points.items())]
        changes = [b - a for a, b in pairwise(values)]
        if max(changes) > _WIGGLE and min(changes) < -_WIGGLE:  # sound anyway, but not the least
            raise ArgumentError(
                f"{self.what} is not monotone: give a function whose price only rises or only falls in its parameter."
            )
        inside, outside = self.ends()
        return Crossing(inside, outside, len(self.points))
