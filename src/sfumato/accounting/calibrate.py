"""The least noise for a target, the most steps for a budget.

A family is a function from one number to an event. Its price may fall in the number (a noise multiplier) or rise in it
(an epsilon, a sampling rate, a count of steps): which one is found out. The answer's own event was priced, and that
price, an upper bound, is within the target: whatever the search does in between, the answer is safe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .. import checks
from ..errors import ArgumentError, UnsupportedEventError
from ..events import Event
from .interval import Interval
from .search import Crossing, OutsideError, crossing
from .target import Target, target

Family = Callable[[float], Event]

_TOLERANCE = 1e-4
_FINE = 1e-9  # where the price is exact and cheap


@dataclass(frozen=True)
class Calibrated:
    """A parameter, the event it gives, and what that costs. As a float or int it is the parameter.

    epsilon      from both sides, at `delta`; None if the target was a rho or an account
    rho          if the target was one
    evaluations  how many events were priced on the way
    """

    parameter: float
    event: Event
    epsilon: Interval | None
    delta: Fraction
    rho: Fraction | None
    evaluations: int

    def __float__(self) -> float:
        return float(self.parameter)

    def __int__(self) -> int:
        return int(self.parameter)

    def __str__(self) -> str:
        cost = "fits the account"
        if self.epsilon is not None:
            cost = f"epsilon = {self.epsilon}" + (f" at delta = {float(self.delta):g}" if self.delta else "")
        elif self.rho is not None:
            cost = f"rho = {float(self.rho):.6g}"
        return f"{self.parameter:.10g}: {cost}, found by {self.evaluations} prices"


def calibrate(
    family: Family,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    account: Any = None,
    start: float | None = None,
    tolerance: float = _TOLERANCE,
) -> Calibrated:
    """The parameter with the least noise whose event stays within the target.

    >>> from sfumato import calibrate, events
    >>> training = lambda m: events.Repeat(events.Poisson(events.Gaussian(multiplier=m), 256 / 60000), 2344)
    >>> round(calibrate(training, epsilon=3, delta=1e-5).parameter, 3)
    0.694

    epsilon, delta  the price must be at most epsilon at delta; without delta, pure
    rho             or: rho-zCDP
    account         or: what a Budget, a Filter or an account of a ledger still accepts, at the event's own delta
    start           a parameter that the family can take; 1 by default
    tolerance       how far above the least the parameter may be, relative (1e-9 where the price is exact)
    """
    wanted = target(epsilon=epsilon, delta=delta, rho=rho, account=account)
    fine = float(checks.positive(tolerance, "tolerance"))
    if not 1e-12 <= fine <= 0.1:
        raise checks.refuse("tolerance", tolerance, "a number from 1e-12 to 0.1")
    first = None if start is None else float(checks.positive(start, "start"))
    return _solve(family, wanted, start=first, tolerance=fine)


def most_steps(
    family: Callable[[int], Event], *, epsilon: Any = None, delta: Any = None, rho: Any = None, account: Any = None
) -> Calibrated:
    """The most steps that stay within the target: one more does not.

    >>> most_steps(lambda t: Repeat(Poisson(Gaussian(multiplier=1.1), 256 / 60000), t), epsilon=3, delta=1e-5)
    """
    wanted = target(epsilon=epsilon, delta=delta, rho=rho, account=account)
    return _solve(family, wanted, start=1, whole=True)


def _solve(
    family: Callable[[Any], Event],
    wanted: Target,
    *,
    start: float | None,
    tolerance: float = _TOLERANCE,
    whole: bool = False,
) -> Calibrated:
    priced: dict[float, Event] = {}  # what is returned is what was priced, even if the family has a will of its own
    roughly = True

    def excess(x: float) -> float:
        priced[x] = event_at(family, int(x) if whole else x)
        try:
            return wanted.excess(priced[x], roughly=roughly)
        except UnsupportedEventError as problem:
            raise OutsideError(str(problem)) from problem

    def find(start: float | None, tolerance: float) -> Crossing:
        return crossing(excess, "family", str(wanted), start=start, tolerance=tolerance, whole=whole)

    try:
        solution = find(start, tolerance)
        if wanted.excess(priced[solution.inside]) > 0:  # a rough price was below the one that counts
            roughly = False
            solution = find(start, tolerance)
    except ArgumentError as problem:
        cause = getattr(problem.__cause__, "__cause__", None)
        if isinstance(cause, UnsupportedEventError):  # no parameter helps: nothing prices this kind of event
            raise cause from None
        raise
    evaluations = solution.evaluations
    if whole and solution.more_is_safer:
        raise ArgumentError("family costs less with more steps: give a function whose price rises with the steps.")
    if not whole and tolerance > _FINE and wanted.exactly(priced[solution.inside]):
        solution = find(solution.inside, _FINE)
        evaluations += solution.evaluations
    parameter = int(solution.inside) if whole else solution.inside
    event = priced[solution.inside]
    return Calibrated(parameter, event, wanted.epsilon(event), wanted.delta, wanted.rho(event), evaluations)


def event_at(family: Callable[[Any], Event], parameter: float) -> Event:
    """The event at this parameter. A parameter that the event refuses is outside; anything else is a broken family."""
    try:
        event = family(parameter)
    except (ArgumentError, ArithmeticError) as problem:
        raise OutsideError(str(problem)) from problem
    except Exception as problem:
        raise ArgumentError(
            f"family raised {type(problem).__name__} at the parameter {parameter:g}: {problem}. Give a function of one "
            "number that returns an event."
        ) from problem
    if not isinstance(event, Event):
        raise checks.refuse("family", event, "a function of one number that returns an event")
    return event
