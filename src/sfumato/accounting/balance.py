"""One number for an account: the epsilon that everything so far amounts to, at the account's delta, beside its limit.

What it is. The least epsilon for which a member that is open now, with the share of delta that it has, would have had
room for everything that was released so far: the sum itself for sums; for the others the epsilon at which their share
pays for what they have added up. It rises with every release and is never above the limit while releases pass; at the
limit nothing fits any more. Had the account been opened with this number as its limit, and with nothing else changed,
it would have let all of it through.

What it is not. The guarantee is the limit, for every way of choosing and stopping. The number is a gauge: somebody who
stops *because* it is low was guided by answers, and is covered by the limit, not by the number. (An odometer has
readings that hold for such a stop too, and reads more: odometers.py.)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from ..errors import UnsupportedEventError
from . import gdp, zcdp
from .budget import CURVE, Budget, order_limit
from .holds import Priced
from .members import AdaptiveSum, Concentrated, Failures, GaussianSum, Member, RenyiOrder, SmoothedSum

if TYPE_CHECKING:
    from .filters import Filter

_NOTHING = Fraction(0)
MANY = 10**15  # beyond, nobody counts


def amount(filter_: Filter) -> Fraction:
    """What everything so far amounts to: an epsilon at the account's delta, or a rho. Rounded up."""
    if not filter_.count:
        return _NOTHING
    limit = limit_of(filter_.budget)
    return min((min(_reading(filter_, m, m.spent), limit) for m in filter_.open if not m.required), default=limit)


def amount_with(filter_: Filter, event: Priced, delta: Fraction) -> Fraction | None:
    """What it would amount to with this release, however much that is; None where no member knows a price."""
    readings, limit = [], limit_of(filter_.budget)
    for shape in filter_.shapes():
        for member in shape.open:
            try:
                price, left_out = member.cost(event, delta)
            except UnsupportedEventError:
                continue
            if not member.required and (not left_out or member.delta_spent + left_out <= member.delta_limit):
                readings.append(_reading(shape, member, member.spent + price))
        if min(readings, default=limit + 1) <= limit:
            break  # what the first release may choose instead is asked only where nothing else lets it pass
    return min(readings, default=None)


def failures_of(filter_: Filter) -> tuple[Fraction, Fraction] | None:
    """The delta that events have taken for themselves, and may take; None where there is none for that."""
    apart = next((member for member in filter_.open if isinstance(member, Failures)), None)
    if apart is not None:
        return apart.spent, apart.limit
    return next(((m.delta_spent, m.delta_limit) for m in filter_.open if m.delta_limit), None)


def limit_of(budget: Budget) -> Fraction:
    return Fraction(budget.epsilon if budget.rho is None else budget.rho)


def _reading(filter_: Filter, member: Member, spent: Fraction) -> Fraction:
    budget = filter_.budget
    if not budget.delta or not isinstance(member, GaussianSum | SmoothedSum | RenyiOrder | Concentrated | AdaptiveSum):
        return spent
    whole = budget.whole
    alone = isinstance(member, GaussianSum) and len(filter_.open) == 1 and filter_.shared == whole
    share = whole if alone else budget.share_of(member.name, filter_.version)
    return _epsilon(member, spent, share) if share else limit_of(budget)


def _epsilon(member: Member, spent: Fraction, share: Fraction) -> Fraction:
    """The epsilon at which that share of delta pays for what was added up."""
    if not spent:
        return _NOTHING
    if isinstance(member, RenyiOrder):
        return max(spent - order_limit(_NOTHING, share, member.order), _NOTHING)
    curve = share * CURVE if member.apart and isinstance(member, SmoothedSum | AdaptiveSum) else share
    weight = 1 / member.kept**2 if isinstance(member, SmoothedSum) else _NOTHING
    return _of_curve(isinstance(member, GaussianSum | SmoothedSum), spent + weight, curve)


@lru_cache(maxsize=1024)
def _of_curve(gaussian: bool, total: Fraction, share: Fraction) -> Fraction:
    return gdp.least_epsilon(total, share) if gaussian else zcdp.epsilon(total, share)


@dataclass(frozen=True)
class Balance:
    """Where an account stands, and what a release would make of it.

    spent     what everything so far amounts to: an epsilon at `delta`, or a rho
    failed    what releases took of the delta for what may fail by itself, such as unknown keys, out of `failures`
    was       what it was before the last release, where that is told
    after     what it would amount to with the release that was asked about; None where none was, or it has no price
    fits      does that release fit?
    gone      the part of the limit that is gone, where that is more than spent over limit (`Filter.used`)
    room      how many more like it fit after it (after the last one, where none was asked about)
    """

    currency: str
    spent: Fraction
    limit: Fraction
    delta: Fraction
    failed: Fraction = _NOTHING
    failures: Fraction = _NOTHING
    was: Fraction | None = None
    after: Fraction | None = None
    fits: bool | None = None
    room: int | None = None
    gone: Fraction | None = None

    @property
    def used(self) -> float:
        """The part of the limit that is gone."""
        return float(self.spent / self.limit if self.gone is None else self.gone)

    def __str__(self) -> str:
        return self.words()

    def words(self, *, brief: bool = False) -> str:
        """All of it in one line; `brief` leaves delta out."""
        text = f"{self.now} spent" + (f" at delta {float(self.delta):g}" if self.delta and not brief else "")
        if self.was is not None and digits(self.was) != digits(self.spent):
            text += f"; it was {digits(self.was)}"
        if self.fits is False:
            return f"{text}; this one does not fit: {self.lack}"
        text += "" if self.after is None else f"; this one makes it {digits(self.after)}"
        return text + self.more

    @property
    def now(self) -> str:
        return f"{digits(self.spent)} of {float(self.limit):g} {self.currency}"

    @property
    def more(self) -> str:
        """How many more fit, in words."""
        if self.room is None:
            return ""
        like = "like it" if self.fits is not None else "like the last one"
        if not self.room:
            return f"; no room for one more {like}"
        many = f"more than {MANY:.0e}" if self.room >= MANY else f"about {self.room:,}"
        return f"; room for {many} more {like}"

    @property
    def lack(self) -> str:
        """What a release that does not fit would make of it."""
        if self.after is not None and self.after > self.limit:
            return f"it would make it {digits(self.after)}"
        if self.after is None:
            return "no member of the account that is open has a price for it"
        return "too little delta is left for it" if self.failures else "no room is left beside what is held"

    @property
    def fine(self) -> str | None:
        """The delta that releases take for themselves, in words; None where no release takes any."""
        if not self.failures:
            return None
        return f"{float(self.failed):.3g} of {float(self.failures):.3g} taken by unknown keys and the like"


def digits(value: Fraction) -> str:
    """Three digits, rounded up: what is spent is never told smaller than it is."""
    if not value:
        return "0"
    short = Context(prec=3, rounding=ROUND_CEILING).divide(value.numerator, value.denominator)
    return f"{float(short):.3g}" if value < 1000 else f"{float(short):g}"


def balance(filter_: Filter) -> Balance:
    """Where the account of this filter stands."""
    budget = filter_.budget
    failed, failures = failures_of(filter_) or (_NOTHING, _NOTHING)
    word = "epsilon" if budget.rho is None else "rho"
    spent, limit = amount(filter_), limit_of(budget)
    return Balance(word, spent, limit, budget.delta, failed, failures, gone=filter_.used)
