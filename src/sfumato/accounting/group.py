"""Group privacy: what an event costs when k units change instead of one.

Data sets that differ in k units are joined by a chain of k - 1 others, each a neighbour of the next; and where the
mechanism is known, k units move its answer k times as far. So, per notion:

  pure          k epsilon                                                       (Dwork and Roth 2014, Theorem 2.2)
  approximate   k epsilon with delta (1 + e^epsilon + ... + e^((k-1) epsilon))  (the chain, link by link)
  zCDP          k^2 rho                                                         (Bun and Steinke 2016, Proposition 1.9)
  Gaussian DP   k mu, exactly                                                   (Dong, Roth and Su 2022, Theorem 2.14)
  Renyi DP      order a: 3^c times the divergence at order 2^c a, where 2^c >= k and a >= 2     (Mironov 2017, Prop. 2)
  f-DP          1 - (1 - f) o ... o (1 - f): see `Tradeoff.group`, which is the tight answer for the other notions

`group` gives an event whose price is the group's, so every accountant can price it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise

from .. import checks, exact
from ..checks import Exact
from ..errors import ArgumentError, UnsupportedEventError
from ..events import (
    Approximate,
    Bundle,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    GaussianMixture,
    Laplace,
    Partition,
    PermuteAndFlip,
    Poisson,
    Pure,
    PureEvent,
    RandomizedResponse,
    Repeat,
    Sequence,
    ZeroConcentrated,
)
from . import zcdp
from .advanced import sampled
from .composition import total
from .pure import epsilon as pure_epsilon

_UP = 1 + 2e-12  # covers a dozen float64 operations on exponents up to a few hundred
_MOST_SAMPLED = 1000
_LEAST_WEIGHT = Fraction(1, 10**90)
_LONG = 1024  # bits


def pure(*, epsilon: Exact, size: int) -> Fraction:
    """The epsilon of a group of `size`."""
    return _size(size) * checks.epsilon(epsilon, warn=False)


def approximate(*, epsilon: Exact, delta: Exact, size: int) -> tuple[Fraction, Fraction]:
    """The (epsilon, delta) of a group of `size`, delta rounded up; refused where delta would reach 1."""
    step, own, size = checks.epsilon(epsilon, warn=False, zero=True), checks.delta(delta), _size(size)
    if size == 1:
        return step, own
    if not step and size * own < 1:
        return step, size * own
    one = float(step)
    log_sum = math.log(size)
    if one:
        log_sum = (size - 1) * one + math.log(-math.expm1(-size * one)) - math.log(-math.expm1(-one))
    log_delta = math.log(own) + log_sum
    if log_delta >= -1e-9:
        raise UnsupportedEventError(
            f"for a group of {size} a promise of epsilon = {one:g}, delta = {float(own):g} says nothing: its delta "
            "would reach 1. Price the mechanism itself, or give it a smaller delta."
        )
    return size * step, Fraction(math.exp(log_delta) * _UP)


def zero_concentrated(*, rho: Exact, size: int) -> Fraction:
    """The rho of a group of `size`."""
    return _size(size) ** 2 * checks.positive(rho, "rho")


def gaussian(*, mu: Exact, size: int) -> Fraction:
    """The mu of a group of `size`."""
    return _size(size) * checks.positive(mu, "mu")


def renyi(divergence: Callable[[float], float], *, order: float, size: int) -> float:
    """The Rényi divergence of a group of `size` at `order` >= 2, from one unit's divergence as a function of the order.

    Mironov 2017, Proposition 2: a chain of 2^c links has 3^c times the divergence at 2^c times the order. Groups
    between powers of two count as the next one.
    """
    links = (_size(size) - 1).bit_length()
    if not order >= 2:
        raise checks.refuse("order", order, "an order of at least 2: the group property starts there")
    return float(3**links * divergence(2**links * order)) * (_UP if links else 1.0)


def group(event: Event, size: int, *, together: bool = False) -> Event:
    """An event that costs what `event` costs when any `size` units change.

    together  the units change all in the same way: all of them added, or all removed (or all blanked out). Without it
              they may change in any way, some added and some removed. Only Poisson-sampled Gaussians need to know.
    """
    size = _size(size)
    checks.instance(event, Event, "event", "an event")
    if size == 1:
        return event
    try:
        return _group(event, size, together)
    except ArgumentError as out_of_range:
        raise UnsupportedEventError(
            f"a group of {size} makes of {type(event).__name__} an event beyond the range of events: {out_of_range}"
        ) from None


def _size(size: int) -> int:
    return checks.whole(size, "size", most=10**6)


def _group(event: Event, size: int, together: bool) -> Event:
    relation = event.relation
    match event:
        case Bundle():
            raise UnsupportedEventError(
                f"the parts of a bundle are no mechanisms of their own, and what a group of {size} costs them says "
                "nothing: make the group the unit (Unit(group=...)) where the plan allows it, or use "
                "tradeoff(event).group(...)"
            )
        case Sequence(events):  # each part's group pair dominates that part, and composition keeps domination
            return Sequence(tuple(_group(part, size, together) for part in events))
        case Repeat(inner, times):
            return Repeat(_group(inner, size, together), times)
        case Partition():
            return _partition(event, size)
        case Poisson():
            return _poisson(event, size, together)
        case Laplace():  # k units move the answers k times as far in L1
            return Laplace(epsilon=size * event.epsilon, relation=relation)
        case DiscreteLaplace():
            return DiscreteLaplace(epsilon=size * event.epsilon, shift=size * event.shift, relation=relation)
        case RandomizedResponse():  # k answers, each blurred on its own
            return Repeat(event, size)
        case Exponential():  # ranges of log-ratios add along the chain
            return Exponential(epsilon=size * event.epsilon, relation=relation)
        case PermuteAndFlip():  # scores move k times as far
            return PermuteAndFlip(epsilon=size * event.epsilon, relation=relation)
        case Pure():
            return Pure(epsilon=size * event.epsilon, relation=relation)
        case Approximate():
            epsilon, delta = approximate(epsilon=event.epsilon, delta=event.delta, size=size)
            return Approximate(epsilon=epsilon, delta=delta, relation=relation)
        case Gaussian():
            return Gaussian(multiplier=event.multiplier / size, relation=relation)
        case DiscreteGaussian():
            return DiscreteGaussian(
                variance=event.variance,
                shift_squared=event.shift_squared * size**2,
                coordinates=event.coordinates,
                relation=relation,
            )
        case ZeroConcentrated():
            return ZeroConcentrated(rho=event.rho * size**2, relation=relation)
    raise UnsupportedEventError(
        f"no event is known to cost what {type(event).__name__} costs a group of {size}: bound each unit's share "
        "so that the group is the unit (Unit(group=...)), or use tradeoff(event).group(...)"
    )


def _partition(event: Partition, size: int) -> Event:
    """k units may lie in k parts, so the parts' own groups are no answer. The partition as a whole has a mu, an epsilon
    or a rho, and those have group properties of their own."""
    try:
        mu = size * _root(total(event, _mu_squared))
        return Gaussian(multiplier=1 / mu, relation=event.relation)
    except UnsupportedEventError:
        pass
    try:
        return Pure(epsilon=size * pure_epsilon(event), relation=event.relation)
    except UnsupportedEventError:
        pass
    return ZeroConcentrated(rho=size**2 * zcdp.rho(event), relation=event.relation)


def _mu_squared(event: Event) -> Fraction:
    if not isinstance(event, Gaussian):
        raise UnsupportedEventError(f"{type(event).__name__} has no mu")
    return 1 / event.multiplier**2


def _root(x: Fraction) -> Fraction:
    """The square root, exact where it is rational, else rounded up."""
    root = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    return root if root * root == x else Fraction(exact.sqrt_above(x))


def _poisson(event: Poisson, size: int, together: bool) -> Event:
    """Pure and (epsilon, delta) events: the chain, on the sampled promise. Gaussians: the mixture, see `_binomial`."""
    inner, rate = event.event, event.rate
    if rate == 1:
        return _group(inner, size, together)
    if isinstance(inner, PureEvent):
        return Pure(epsilon=size * Fraction(sampled(inner.epsilon, rate)), relation=event.relation)
    if isinstance(inner, Approximate):
        epsilon, delta = approximate(
            epsilon=Fraction(sampled(inner.epsilon, rate)), delta=inner.delta * rate, size=size
        )
        return Approximate(epsilon=epsilon, delta=delta, relation=event.relation)
    if isinstance(inner, Gaussian) and together and size <= _MOST_SAMPLED:
        weights = _binomial(size, rate)
        shifts = tuple(joined / inner.multiplier for joined in weights)
        return GaussianMixture(shifts=shifts, weights=tuple(weights.values()), relation=event.relation)
    hint = ""
    if isinstance(inner, Gaussian):
        hint = f"; for up to {_MOST_SAMPLED} units that are all added or all removed, say together=True"
    raise UnsupportedEventError(
        f"no event is known to cost what Poisson sampling of {type(inner).__name__} costs a group of {size}{hint}"
    )


def _binomial(size: int, rate: Fraction) -> dict[Fraction, Fraction]:
    """How many of the group join, with what probability: the shifts of a Gaussian mixture.

    Claim: the pair of the mixture of N(j / multiplier, 1), j ~ Binomial(k, rate), against N(0, 1) dominates the
    addition of k units, in both directions, and is attained (Ganesh 2024). Sketch: given who else joins, the laws are
    sum_J p_J N(c_J, I) and N(0, I), with c_J the sum of the joined units' vectors, |c_J| <= |J| / multiplier. The
    ratio of densities under N(0, I) is r = sum_J p_J exp(<c_J, x> - |c_J|^2 / 2), and both hockey-sticks are
    expectations of convex functions of r: (r - g)+ and (1 - g r)+. The exponents are Gaussian with covariances
    <c_I, c_J> <= |I| |J| / multiplier^2, which is what the mixture in one dimension has, and such expectations grow
    with the covariances (Kahane 1985). Averaging over who else joins keeps the bound (joint convexity).

    By the same inequality a larger shift only costs more. So weights that are too small for an event, and what is too
    long of a fraction, move up to the next shift.
    """
    whole, joins = rate.denominator, rate.numerator
    weights = [math.comb(size, j) * joins**j * (whole - joins) ** (size - j) for j in range(size + 1)]
    scale = whole**size
    if scale.bit_length() > _LONG:  # round the chance of j or more up
        above = [-(-(left << _LONG) // scale) for left in reversed(list(accumulate(reversed(weights))))]
        weights, scale = [a - b for a, b in pairwise([*above, 0])], 1 << _LONG
    chances: dict[Fraction, Fraction] = {}
    carried = Fraction(0)
    for joined, weight in enumerate(weights):
        carried += Fraction(weight, scale)
        if carried >= _LEAST_WEIGHT:
            chances[Fraction(joined)] = carried
            carried = Fraction(0)
    if carried:
        likeliest = max(chances, key=chances.__getitem__)
        chances[likeliest] -= _LEAST_WEIGHT - carried
        chances[Fraction(size)] = _LEAST_WEIGHT
    return chances
