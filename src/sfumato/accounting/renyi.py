"""Rényi DP (Mironov 2017): the divergence of an event at any real order above 1, and what it means as (epsilon, delta).

An event has Rényi divergence D(a) at order a if no neighbours' outputs are further apart, in either direction. At one
order divergences add up, also under adaptive choice. Every number here is an upper bound: exact formulas or proven
bounds in logarithms (`renyi_pairs`, `renyi_normal`, `renyi_sampling`), with a margin for rounding.

    Gaussian              a / (2 multiplier^2)                                      Mironov 2017, Proposition 7
    DiscreteGaussian      a shift^2 / (2 variance)                                  Canonne, Kamath, Steinke 2020
    ZeroConcentrated      a rho                                                     Bun and Steinke 2016
    Laplace, DiscreteLaplace, RandomizedResponse, Exponential                       exact, `renyi_pairs`
    Pure, PermuteAndFlip  randomized response at epsilon: the worst pure pair       Kairouz, Oh, Viswanath 2015
    Poisson, GaussianMixture, WithoutReplacement                                    `renyi_normal`, `renyi_sampling`
    BestOf                                                                          `tuning`

To (epsilon, delta): Canonne, Kamath and Steinke 2020, Proposition 12, at the best order found. Any order gives a valid
answer, so the search cannot make it unsafe.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, events
from ..errors import UnsupportedEventError
from ..events import Event, Partition, Poisson, Repeat, Sequence, WithoutReplacement
from ..exact import float_above, sqrt_above
from . import pure, renyi_normal, renyi_pairs, renyi_sampling
from .renyi_normal import Mixture

Floats = NDArray[np.float64]

_UP = 1 + 1e-14
_PAD = 1e-12  # on ln J: what the formulas of `renyi_pairs` may be off, with room to spare
_LEAST, _MOST = -24.0, 40.0  # log2(order - 1), of the orders looked at
_SKELETON = 1 + 2 ** np.arange(_LEAST, 5, 4)
_COARSE = 1 + 2 ** np.arange(_LEAST, _MOST + 0.25, 0.5)
_COARSE = np.where(_COARSE > 32, np.round(_COARSE), _COARSE)  # whole orders are cheap
_COARSE = np.setdiff1d(_COARSE, _SKELETON)
_NEAR = np.linspace(-1, 1, 11)[[1, 2, 3, 4, 6, 7, 8, 9]]
_ZOOMS = 5
_CHUNK = 12
_MOST_ATOMS = 2048
_MOST_ORDER = 1e16


@lru_cache(maxsize=4096)
def divergence(event: Event, order: float) -> float:
    """The Rényi divergence of the event at a real order above 1, rounded up."""
    if not 1 < order <= _MOST_ORDER:
        raise checks.refuse("order", order, f"a number above 1, at most {_MOST_ORDER:g}")
    return float(divergences(event, np.array([float(order)]))[0])


def divergences(event: Event, orders: Floats) -> Floats:
    """The Rényi divergences of the event at many orders, rounded up."""
    if isinstance(event, Sequence):
        parts = Counter(event.events)
        return _sum([times * divergences(part, orders) for part, times in parts.items()])
    if isinstance(event, Repeat):
        return _UP * event.times * divergences(event.event, orders)
    if isinstance(event, Partition):  # the dearest part at each order; under replace the two dearest
        priced = np.stack([divergences(part, orders) for part in event.events])
        return _sum(list(np.sort(priced, axis=0)[-event.touched :]))
    return _single(event, orders)


def epsilon(event: Event, delta: Fraction | float, *, orders: Iterable[float] | None = None) -> float:
    """The least epsilon at which the event is (epsilon, delta)-DP, as far as its Rényi divergences tell.

    orders  the orders to look at, each above 1, as a paper or another library did; all of them by default
    """
    log_delta = math.log(checks.delta(delta))

    def at(orders: Floats, price: Floats) -> Floats:
        less = orders - 1
        epsilons = price + np.log1p(-1 / orders) - (log_delta + np.log(orders)) / less
        epsilons += 1e-14 * (np.abs(epsilons) + (abs(log_delta) + np.log(orders)) / less + price)
        # Bretagnolle and Huber 1979: total variation is at most sqrt(1 - e^-D), so delta covers epsilon = 0.
        return np.maximum(np.where(_log_variation(price) <= log_delta, 0.0, epsilons), 0.0)

    return least(event, at, 0.0, orders)


def delta(event: Event, epsilon: Fraction | float, *, orders: Iterable[float] | None = None) -> float:
    """The least delta at which the event is (epsilon, delta)-DP, as far as its Rényi divergences tell.

    orders  as for `epsilon`
    """
    size = float(checks.rational(epsilon, "epsilon", "a number of at least 0"))
    if size < 0:
        raise checks.refuse("epsilon", epsilon, "a number of at least 0")

    def at(orders: Floats, price: Floats) -> Floats:
        less = orders - 1
        log_deltas = less * (price - size) - np.log(orders) + less * np.log1p(-1 / orders)
        log_deltas += 1e-14 * (less * (price + size + 1 / orders) + np.log(orders) + 1)
        return np.minimum(log_deltas, _log_variation(price))

    return min(1.0, math.nextafter(math.exp(least(event, at, -math.inf, orders)) * _UP, 1))


def _log_variation(price: Floats) -> Floats:
    return np.asarray(0.5 * np.log(-np.expm1(-price) * _UP))


def least(
    event: Event, at: Callable[[Floats, Floats], Floats], bottom: float, orders: Iterable[float] | None = None
) -> float:
    """The least of `at` over these orders, or over all: half octaves of order - 1 first, then closer and closer around
    the best.

    Divergences rise with the order and `at` with the divergence, so the price at a lower order tells which orders
    cannot win: they are not looked at.
    """
    if orders is not None:
        chosen = checked(orders)
        return float(at(chosen, divergences(event, chosen)).min())
    orders_seen, prices = np.array([1.0]), np.array([0.0])
    smallest, place = math.inf, 0.0

    def look(orders: Floats) -> None:
        nonlocal orders_seen, prices, smallest, place
        price = divergences(event, orders)
        values = at(orders, price)
        best = int(np.argmin(values))
        if values[best] <= smallest:
            smallest, place = float(values[best]), math.log2(orders[best] - 1)
        orders_seen, prices = np.append(orders_seen, orders), np.append(prices, price)
        sort = np.argsort(orders_seen)
        orders_seen, prices = orders_seen[sort], np.maximum.accumulate(prices[sort])

    look(_SKELETON)
    left = _COARSE
    while left.size and smallest > bottom:
        least = 0.999 * prices[np.searchsorted(orders_seen, left, side="right") - 1]
        left = left[at(left, least + 1e-300) < smallest]
        chunk, left = left[:_CHUNK], left[_CHUNK:]
        if chunk.size:
            look(chunk)
    step = 0.5
    for _ in range(_ZOOMS):
        if smallest <= bottom:
            break
        look(1 + 2.0 ** np.clip(place + step * _NEAR, _LEAST, _MOST))
        step /= 4
    return smallest


def checked(orders: Any) -> Floats:
    """Orders that were named, refused unless each is a number above 1."""
    try:
        chosen = np.array([float(order) for order in orders if not isinstance(order, str)])
    except (TypeError, ValueError):
        chosen = np.zeros(0)
    if not chosen.size or not np.all((chosen > 1) & (chosen <= _MOST_ORDER)):
        raise checks.refuse("orders", orders, f"finite numbers above 1, at most {_MOST_ORDER:g}")
    return chosen


def _sum(prices: list[Floats]) -> Floats:
    return np.asarray(np.sum(prices, axis=0) * (_UP + 2e-16 * len(prices)))


def _from_log(log_excess: Floats, orders: Floats, pad: float = _PAD) -> Floats:
    """ln(1 + J) / (a - 1), rounded up."""
    return np.nextafter(_UP * np.logaddexp(0.0, log_excess + pad) / (orders - 1), math.inf)


def _single(event: Event, orders: Floats) -> Floats:
    rho = _rho(event)
    if rho is not None:
        return np.asarray(_UP * float_above(rho) * orders)
    less = orders - 1
    if isinstance(event, events.PureEvent):
        size = float_above(event.epsilon)
        if isinstance(event, events.Laplace):
            log_moment = renyi_pairs.laplace(less, size)
        elif isinstance(event, events.DiscreteLaplace):
            log_moment = renyi_pairs.discrete_laplace(less, size, event.shift)
        elif isinstance(event, events.Exponential):
            log_moment = renyi_pairs.bounded_range(less, size)
        else:
            log_moment = renyi_pairs.randomized_response(less, size, getattr(event, "categories", 2))
        return np.minimum(_from_log(log_moment, orders), size)
    if isinstance(event, events.GaussianMixture):
        return _mixture(_floats(event.shifts, event.weights), orders)
    if isinstance(event, Poisson):
        return _poisson(event.event, event.rate, orders)
    if isinstance(event, WithoutReplacement):
        return _without_replacement(event, orders)
    if isinstance(event, events.BestOf):
        from . import tuning

        return np.array([tuning.divergence(event, order) for order in orders.tolist()])
    if isinstance(event, events.Shuffled | events.RandomAllocation):
        raise UnsupportedEventError(f"{type(event).__name__} has no Rényi price here: accounting.amplify prices it")
    raise UnsupportedEventError(
        f"{type(event).__name__} has no Rényi price: it may fail with probability delta. Price it by privacy loss."
    )


def _rho(event: Event) -> Fraction | None:
    """The slope of events whose divergence is a straight line."""
    if isinstance(event, events.Gaussian):
        return 1 / (2 * event.multiplier**2)
    if isinstance(event, events.DiscreteGaussian):
        return event.shift_squared / (2 * event.variance)
    return event.rho if isinstance(event, events.ZeroConcentrated) else None


def _floats(shifts: tuple[Fraction, ...], weights: tuple[Fraction, ...]) -> Mixture:
    return Mixture(tuple(map(float_above, shifts)), tuple(map(float_above, weights)))


def _mixture(mixture: Mixture, orders: Floats) -> Floats:
    log_moment = renyi_normal.forward(mixture, orders)
    if not mixture.sampled:  # for one shift besides 0, forward is the worse: see renyi_normal
        log_moment = np.maximum(log_moment, renyi_normal.backward(mixture, orders))
    return _from_log(log_moment, orders, 0.0)


def _poisson(inner: Event, rate: Fraction, orders: Floats) -> Floats:
    if isinstance(inner, Poisson):  # a sample of a sample
        return _poisson(inner.event, rate * inner.rate, orders)
    if rate == 1:
        return divergences(inner, orders)
    if isinstance(inner, events.GaussianMixture):
        weights = dict(zip(inner.shifts, (rate * w for w in inner.weights), strict=True))
        weights[Fraction(0)] = weights.get(Fraction(0), Fraction(0)) + 1 - rate
        shifts = tuple(sorted(weights))
        return _mixture(_floats(shifts, tuple(weights[s] for s in shifts)), orders)
    mu_squared = _mu_squared(inner)
    q, rest, less = float_above(rate), float_above(1 - rate), orders - 1
    if mu_squared is not None:
        return _mixture(Mixture((0.0, sqrt_above(mu_squared)), (rest, q)), orders)
    if isinstance(inner, events.PureEvent):
        size = float_above(inner.epsilon)
        if isinstance(inner, events.Laplace):
            log_moment = renyi_sampling.laplace(less, q, rest, size)
        elif isinstance(inner, events.DiscreteLaplace) and inner.shift < _MOST_ATOMS:
            log_moment = renyi_sampling.discrete_laplace(less, q, rest, size, inner.shift)
        elif isinstance(inner, events.Exponential):
            log_moment = renyi_sampling.bounded_range(less, q, rest, size)
        else:
            log_moment = renyi_sampling.two_sided(less, q, rest, size, getattr(inner, "categories", 2))
        return _from_log(log_moment, orders)
    log_moment = renyi_sampling.poisson(orders, q, rest, lambda at: divergences(inner, at), alike=_alike(inner))
    return np.minimum(_from_log(log_moment, orders), divergences(inner, orders))


def _mu_squared(event: Event) -> Fraction | None:
    """Of events that are Gaussians and nothing else: together they are one Gaussian."""
    if isinstance(event, events.Gaussian):
        return 1 / event.multiplier**2
    if isinstance(event, Repeat):
        one = _mu_squared(event.event)
        return None if one is None else event.times * one
    if isinstance(event, Sequence):
        parts = [_mu_squared(part) for part in event.events]
        return None if None in parts else sum((part for part in parts if part is not None), Fraction(0))
    return None


def _alike(event: Event) -> bool:
    """Does a pair that looks alike from both sides dominate the event? Products of such pairs do too."""
    if isinstance(event, Sequence):
        return all(map(_alike, event.events))
    if isinstance(event, Repeat):
        return _alike(event.event)
    symmetric = isinstance(event, events.Gaussian | events.PureEvent)
    return symmetric and not isinstance(event, events.Exponential)


def _without_replacement(event: WithoutReplacement, orders: Floats) -> Floats:
    inner = event.event
    price = divergences(inner, orders)
    if event.sample == event.population:
        return price
    try:
        largest = float_above(pure.epsilon(inner))
    except UnsupportedEventError:
        largest = math.inf
    fraction = float_above(Fraction(event.sample, event.population))
    log_moment = renyi_sampling.fixed(orders, fraction, lambda at: divergences(inner, at), largest)
    return np.minimum(_from_log(log_moment, orders), price)
