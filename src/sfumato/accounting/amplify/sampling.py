"""Sampling: each release sees a random sample, and nobody is told who is in it.

Guarantee (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9). If an event is (epsilon, delta)-DP, then on a sample of rate
q it is (ln(1 + q (e^epsilon - 1)), q delta)-DP, along the whole curve, for
  Poisson sampling                  between neighbours that add, remove or zero out one unit;
  a fixed-size sample of m of n,    between neighbours that replace one unit: q = m/n.

Proof sketch: with a = e^epsilon and a' = 1 + q (a - 1), the two output laws are (1-q) M0 + q M1 and (1-q) M0 + q M1',
where M0 is the law when the unit is not sampled. Advanced joint convexity turns their divergence at a' into q times the
divergence at a of M1 against a mixture of M0 and M1'. Both are laws of neighbours of the sample behind M1: remove the
unit (Poisson, where M1' = M0), or put another one in its place (fixed size).

Two combinations have no such theorem and are refused by the events: Poisson sampling between data sets that replace a
unit, and fixed-size samples between data sets that add or remove one (the size of the data set is then secret, while
the sample's rate depends on it).

**Shuffled batches are not samples.** Training code that shuffles the data once per epoch and cuts it into batches of
fixed size uses every unit exactly once per epoch. Its price is that of the un-sampled event once per epoch
(`fixed_batches`), not that of Poisson sampling, and the difference is not an artefact of proofs:
`shuffled_batches_at_least` is what an attacker attains (Chua et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from ... import checks
from ...errors import ArgumentError, UnsupportedEventError
from ...events import Event, Poisson, Repeat, WithoutReplacement
from ...exact import float_above, float_below
from .clones import least
from .curves import curve as inner_curve

_DOWN, _UP = 1 - 1e-14, 1 + 1e-14
_LARGEST = 1e6


def amplified(*, epsilon: Any, delta: Any = 0, rate: Any) -> tuple[float, float]:
    """What an (epsilon, delta) event is on a sample of that rate: (ln(1 + q (e^epsilon - 1)), q delta), rounded up."""
    size = float_above(checks.epsilon(epsilon, warn=False))
    chance, share = checks.delta(delta, zero=True), _rate(rate)
    return min(_after(size, float_above(share)) * _UP, size), float_above(chance * share)


def epsilon(event: Poisson | WithoutReplacement, delta: Any) -> float:
    """The least epsilon at `delta` that the theorem gives for one sampled event, rounded up."""
    target = float_below(checks.delta(delta))
    falling = curve(event)
    if falling(_LARGEST) > target:
        raise UnsupportedEventError(
            f"{type(event).__name__} cannot be priced at delta = {target:g}: what it samples needs a larger delta"
        )
    return least(falling, target, 1.0, _LARGEST)


def delta(event: Poisson | WithoutReplacement, epsilon: Any) -> float:
    """The least delta at `epsilon` that the theorem gives for one sampled event, rounded up."""
    size = checks.bound(epsilon, "epsilon")
    if size < 0:
        raise checks.refuse("epsilon", epsilon, "0 or more")
    return curve(event)(float_below(size))


def curve(event: Poisson | WithoutReplacement) -> Callable[[float], float]:
    """delta as a function of epsilon: q times the inner event's delta at ln(1 + (e^epsilon - 1)/q)."""
    if isinstance(event, Poisson):
        share = event.rate
    elif isinstance(event, WithoutReplacement):
        share = checks.rational(event.sample, "sample", "a whole number") / event.population
    else:
        raise checks.refuse("event", event, "a Poisson or WithoutReplacement event")
    inside, rate = inner_curve(event.event), float_above(share)
    return lambda epsilon: min(1.0, rate * inside(_before(epsilon, rate) * _DOWN) * _UP)


def fixed_batches(event: Event, *, epochs: int) -> Repeat:
    """The price of training on shuffled (or unshuffled) batches of fixed size: the event itself, once per epoch.

    `event` is what one batch costs a unit that is in it. In an epoch a unit is in one batch, so all other batches of
    the epoch are free for it (parallel composition, also where later steps depend on earlier ones), and epochs add up.
    Neighbours replace or zero out the unit: if one were added or removed, every later batch would shift.
    """
    checks.instance(event, Event, "event", "an event")
    if event.relation == "add-remove":
        raise ArgumentError(
            "batches of fixed size have no add-remove price: with one unit fewer, other units change batches. "
            "Price the step with relation 'zero-out' or 'replace'."
        )
    return Repeat(event, checks.whole(epochs, "epochs"))


def shuffled_batches_warning() -> str:
    """What to tell somebody who shuffles and asks for the price of sampling."""
    return (
        "Shuffled batches are not Poisson samples: every unit is used exactly once per epoch, and the batch it is in "
        "can stand out. They are priced without amplification, as one un-sampled step per epoch (fixed_batches). "
        "Draw each batch by Poisson sampling to be charged for sampling."
    )


def shuffled_batches_at_least(*, multiplier: Any, batches: int, delta: Any) -> float:
    """An epsilon that one epoch over shuffled batches certainly exceeds: an attack, rounded down.

    Gaussian noise of `multiplier` times the clipping norm on each batch's sum; a unit is zeroed out. All others hold
    -1 and the attacked unit +1, so that its batch stands out by 2, or by 1 if it is zeroed. With all batches of one
    size and T of them, the event "some batch is above C" has the probabilities
        1 - Phi((C-2)/s) Phi(C/s)^(T-1)   and   1 - Phi((C-1)/s) Phi(C/s)^(T-1),
    whence epsilon >= ln((first - delta)/second), for the best C (Chua et al. 2024, Section 4).
    """
    scale = float_above(checks.positive(multiplier, "multiplier"))
    number, target = checks.whole(batches, "batches"), float_above(checks.delta(delta))
    cut = 1 + np.linspace(0.0, 1.0, 4001) ** 2 * (scale * 40 + scale**2 * 40)
    quiet = (number - 1) * special.log_ndtr(cut / scale)
    first = -np.expm1(special.log_ndtr((cut - 2) / scale) + quiet) * (1 - 1e-12)
    second = -np.expm1(special.log_ndtr((cut - 1) / scale) + quiet) * (1 + 1e-12)
    some = (first > target) & (second > 1e-290)
    if not some.any():
        return 0.0
    return max(0.0, float(np.max(np.log((first[some] - target) / second[some]))) * _DOWN)


def _rate(rate: Any) -> Any:
    share = checks.positive(rate, "rate")
    if share > 1:
        raise checks.refuse("rate", rate, "a probability above 0, at most 1")
    return share


def _after(epsilon: float, rate: float) -> float:
    """ln(1 + q (e^epsilon - 1))."""
    if epsilon > 30:
        return epsilon + math.log(rate + (1 - rate) * math.exp(-epsilon))
    return math.log1p(rate * math.expm1(epsilon))


def _before(epsilon: float, rate: float) -> float:
    """ln(1 + (e^epsilon - 1)/q)."""
    if epsilon > 30:
        return epsilon + math.log1p(-(1 - rate) * math.exp(-epsilon)) - math.log(rate)
    return math.log1p(math.expm1(epsilon) / rate)
