"""A privacy odometer: how much was lost so far, read at any time, while answers decide what is asked next.

A filter fixes the limit and refuses; an odometer fixes only delta and reads. (Rogers, Roth, Ullman, Vadhan 2016.)

Claim. Let P and Q be the laws of the transcript on two neighbours, whatever rule chose the releases and when to stop,
and epsilon(y) the reading at the end of y. Then for every set S of transcripts
    P(S) <= integral over S of e^epsilon(y) dQ(y) + delta.
In particular, stopping whenever the reading would pass a number makes a filter for that number.

Proof. The reading is the least of several gauges; the transcripts split by the gauge that gives it, so it is enough to
show the claim for each gauge with its own share of delta.
- Sum of the plans' epsilon_i at their delta_i: outside the failures, counted within half of delta as in
  filters.proof.md, the loss L is at most the sum, pointwise.
- One Renyi order a with share d: the reading is B + c, B the sum of the divergences and
  c = ln((a-1)/a) - (ln d + ln a)/(a-1). exp((a-1)(L - B)) is a supermartingale under P that starts at 1 (Feldman and
  Zrnic 2021; Lecuyer 2021), so its mean at the end is at most 1. P(S) - integral of e^(B+c) dQ is at most the mean of
  max(0, 1 - e^(c - (L-B))), and max(0, 1 - e^(c-x)) <= d e^((a-1)x) for every x: that is how c was chosen (Canonne,
  Kamath, Steinke 2020, Proposition 12). No union over a grid of limits is needed: the orders, a factor of two apart,
  play that part (Whitehouse et al. 2023 stitch rho instead).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from .. import checks, exact
from ..checks import Exact
from ..errors import UnsupportedEventError
from ..events import Event
from .budget import order_limit
from .members import Member, PlanSum, RenyiOrder, open_after

_ORDERS = tuple(1 + Fraction(2) ** j for j in range(-2, 11))
_NO_LIMIT = Fraction(10**300)


@dataclass(frozen=True)
class Odometer:
    """The loss of adaptively chosen releases so far. A value: `add` gives the next one.

    >>> Odometer(1e-6).add(Laplace(epsilon=0.1)).epsilon
    0.1
    """

    delta: Exact
    gauges: tuple[Member, ...] = ()
    count: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checks.delta(self.delta))
        if not self.gauges:
            failures = self.delta / 2
            orders = (RenyiOrder(limit=_NO_LIMIT, order=order, delta_limit=failures) for order in _ORDERS)
            object.__setattr__(self, "gauges", (PlanSum(limit=_NO_LIMIT, delta_limit=failures), *orders))

    def add(self, event: Event, delta: Exact = 0) -> Odometer:
        """The odometer after one more release, priced as a plan at its own `delta`."""
        checks.instance(event, Event, "event", "an event")
        gauges = open_after(self.gauges, event, checks.delta(delta, zero=True))
        if not gauges:
            raise UnsupportedEventError(
                f"{type(event).__name__} cannot be read by this odometer: no gauge that still runs has a price for it "
                f"within delta/2 = {float(self.delta / 2):g} for failures. Give the odometer a larger delta."
            )
        return replace(self, gauges=gauges, count=self.count + 1)

    @property
    def epsilon(self) -> float:
        """The reading, rounded up."""
        return min(map(self._reading, self.gauges)) if self.count else 0.0

    def _reading(self, gauge: Member) -> float:
        spent = exact.float_above(gauge.spent)
        if not isinstance(gauge, RenyiOrder):
            return spent
        offset = -float(order_limit(Fraction(0), self.delta / 2 / len(_ORDERS), gauge.order))
        return max(0.0, spent + offset + 1e-15 * (spent + abs(offset)))
