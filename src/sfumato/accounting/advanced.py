"""Composition by formula: basic, strong ("advanced") and the closed form. Textbook prices, never the tightest.

All hold for mechanisms (epsilon_i, delta_i) that are chosen adaptively, with parameters that were fixed in advance.

  basic        (sum epsilon_i, sum delta_i)                        (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006)
  strong       epsilon = sum epsilon_i (e^epsilon_i - 1) + sqrt(2 ln(1/d) sum epsilon_i^2),  delta = d + sum delta_i
               (Dwork, Rothblum and Vadhan 2010, Theorem III.3). Sketch: given the past, each loss lies in +-epsilon_i
               with mean at most epsilon_i (e^epsilon_i - 1); Azuma's inequality bounds the sum but for d.
  closed_form  with t = sum epsilon_i tanh(epsilon_i / 2) and v = sum epsilon_i^2, the least of
                   sum epsilon_i,  t + sqrt(2 v ln(1/d)),  t + sqrt(2 v ln(e + sqrt(v)/d)),
               1 - delta = (1 - d) prod (1 - delta_i)     (Kairouz, Oh and Viswanath 2017, Theorem 3.5)
               Sketch: randomized response dominates each mechanism; its loss has mean epsilon_i tanh(epsilon_i/2).

`over` prices an event by one of these. Mechanisms that have a whole curve (Gaussian, rho, Poisson sampling of those)
are priced at a share of delta, the same for each, and the split is searched: any split is valid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from typing import Literal, get_args

from .. import checks, exact
from ..checks import Exact
from ..errors import UnsupportedEventError
from ..events import Approximate, Event, Gaussian, Partition, Poisson, PureEvent, Repeat, Sequence, ZeroConcentrated
from . import brent, gdp, zcdp

Rule = Literal["basic", "strong", "closed"]
Promise = tuple[Fraction, Fraction]  # (epsilon, delta)
Promises = Mapping[Promise, int]  # and how many times each

_UP = 1 + 1e-12  # covers the rounding of a few dozen float64 operations on positive terms


def basic(parts: Iterable[tuple[Exact, Exact]]) -> Promise:
    """The sums of the epsilons and of the deltas, exact."""
    many = _counted(parts)
    return _sum(many), _sum_of_deltas(many)


def strong(parts: Iterable[tuple[Exact, Exact]], *, delta: Exact) -> float:
    """Dwork, Rothblum and Vadhan's epsilon at `delta`, rounded up; the plain sum where that is less."""
    return _strong(_counted(parts), checks.delta(delta, zero=True))


def closed_form(parts: Iterable[tuple[Exact, Exact]], *, delta: Exact) -> float:
    """Kairouz, Oh and Viswanath's closed form at `delta`, rounded up; alike or unlike mechanisms."""
    return _closed(_counted(parts), checks.delta(delta, zero=True))


def over(event: Event, *, delta: Exact, rule: Rule = "strong") -> float:
    """The epsilon of an event at `delta` by one of the three rules, with the best split of delta, rounded up."""
    target = checks.delta(delta, zero=True)
    checks.one_of(rule, "rule", get_args(Rule))
    compose = {"basic": _basic, "strong": _strong, "closed": _closed}[rule]
    fixed: Counter[Promise] = Counter()
    curved: Counter[Event] = Counter()
    for single, times in _singles(event).items():
        promise = _promise(single)
        if promise is None:
            curved[single] += times
        else:
            fixed[promise] += times
    if not curved:
        return compose(fixed, target)
    free = target - _sum_of_deltas(fixed)
    if free <= 0:
        raise _too_small(target)

    def at(logit: float) -> float:
        share = Fraction(1) if rule == "basic" else Fraction(1 / (1 + math.exp(-logit)))
        slack = free * share / curved.total()
        priced = Counter(fixed)
        for single, times in curved.items():
            priced[Fraction(_curve(single, slack)), slack] += times
        return compose(priced, target)

    if rule == "basic":
        return at(0.0)
    _, lowest = brent.least(at, -12.0, 12.0, absolute=0.02)
    return min(lowest, at(math.inf))


def _counted(parts: Iterable[tuple[Exact, Exact]]) -> Promises:
    promises: Counter[Promise] = Counter()
    for epsilon, delta in parts:
        promises[checks.epsilon(epsilon, warn=False), checks.delta(delta, zero=True)] += 1
    if not promises:
        raise checks.refuse("parts", parts, "at least one (epsilon, delta)")
    return promises


def _sum(parts: Promises) -> Fraction:
    return sum((times * epsilon for (epsilon, _), times in parts.items()), Fraction(0))


def _sum_of_deltas(parts: Promises) -> Fraction:
    return sum((times * delta for (_, delta), times in parts.items()), Fraction(0))


def _squares(parts: Promises) -> float:
    return exact.float_above(sum((times * epsilon**2 for (epsilon, _), times in parts.items()), Fraction(0)))


def _basic(parts: Promises, target: Fraction) -> float:
    if _sum_of_deltas(parts) > target:
        raise _too_small(target)
    return exact.float_above(_sum(parts))


def _strong(parts: Promises, target: Fraction) -> float:
    plain, left = _basic(parts, target), exact.float_below(target - _sum_of_deltas(parts))
    if left <= 0:
        return plain
    sizes = [(float(epsilon), times) for (epsilon, _), times in parts.items()]
    if max(size for size, _ in sizes) > 700:  # e^epsilon is beyond float64, and the plain sum far below
        return plain
    drift = math.fsum(times * size * math.expm1(size) for size, times in sizes)
    return min(plain, (drift + math.sqrt(-2 * math.log(left) * _squares(parts))) * _UP)


def _closed(parts: Promises, target: Fraction) -> float:
    plain = exact.float_above(_sum(parts))
    left = exact.float_below(target - _sum_of_deltas(parts))  # d by the union bound
    if any(delta for _, delta in parts):
        left = max(left, _what_is_left(parts, target))
    if left < 0:
        raise _too_small(target)
    if left == 0:
        return plain
    sizes = [(float(epsilon), times) for (epsilon, _), times in parts.items()]
    drift = math.fsum(times * size * math.tanh(size / 2) for size, times in sizes)
    spread = _squares(parts)
    factor = min(-math.log(left), math.log(math.e + math.sqrt(spread) / left))
    return min(plain, (drift + math.sqrt(2 * spread * factor)) * _UP)


def _what_is_left(parts: Promises, target: Fraction) -> float:
    """d = 1 - (1 - target) / prod (1 - delta_i), rounded down; negative where there is none."""
    deltas = [(exact.float_above(delta), times) for (_, delta), times in parts.items()]
    if max(delta for delta, _ in deltas) >= 1:
        return -1.0
    log_unharmed = math.fsum(times * math.log1p(-delta) for delta, times in deltas) * _UP
    exponent = math.log1p(-exact.float_below(target)) * (2 - _UP) - log_unharmed
    return -math.expm1(exponent) * (2 - _UP) if exponent < 0 else -1.0


def _too_small(target: Fraction) -> UnsupportedEventError:
    return UnsupportedEventError(
        f"these mechanisms may fail with a larger probability than delta = {float(target):g}: ask for a larger delta"
    )


def _singles(event: Event, times: int = 1) -> Counter[Event]:
    if isinstance(event, Sequence):
        return sum((_singles(part, times) for part in event.events), Counter())
    if isinstance(event, Repeat):
        return _singles(event.event, times * event.times)
    if isinstance(event, Partition):
        if len(set(event.events)) > 1:
            raise UnsupportedEventError(
                "a partition of unlike parts is not priced by these formulas: price it by rho, or part by part"
            )
        return _singles(event.events[0], times * event.touched)
    return Counter({event: times})


def _promise(event: Event) -> Promise | None:
    """The (epsilon, delta) of a mechanism that is known by that alone; None for one that has a curve."""
    if isinstance(event, PureEvent):
        return event.epsilon, Fraction(0)
    if isinstance(event, Approximate):
        return event.epsilon, event.delta
    if isinstance(event, Gaussian | ZeroConcentrated):
        return None
    if isinstance(event, Poisson):
        inner = _promise(event.event)
        return None if inner is None else (Fraction(sampled(inner[0], event.rate)), inner[1] * event.rate)
    raise UnsupportedEventError(
        f"{type(event).__name__} has no (epsilon, delta) of its own to compose by formula: price it by privacy loss"
    )


def _curve(event: Event, delta: Fraction) -> Fraction:
    """The epsilon of one mechanism at delta, rounded up."""
    if isinstance(event, Poisson):
        inner = delta / event.rate
        return Fraction(sampled(_curve(event.event, min(inner, Fraction(1, 2))), event.rate))
    price: Callable[[Fraction], Fraction]
    if isinstance(event, Gaussian):
        price = partial(gdp.least_epsilon, 1 / event.multiplier**2)
    elif isinstance(event, ZeroConcentrated):
        price = partial(zcdp.epsilon, event.rho)
    else:
        raise UnsupportedEventError(f"{type(event).__name__} has no curve here")
    return price(delta)


def sampled(epsilon: Fraction, rate: Fraction) -> float:
    """ln(1 + rate (e^epsilon - 1)), rounded up: what Poisson sampling makes of epsilon, and rate * delta of delta
    (Balle, Barthe and Gaboardi 2018, Theorem 8)."""
    size, part = exact.float_above(epsilon), exact.float_above(rate)
    if size < 1:
        return math.log1p(part * math.expm1(size)) * _UP
    return (size + math.log(part + (1 - part) * math.exp(-size))) * _UP
