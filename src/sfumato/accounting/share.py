"""Accuracy first: the least epsilon for an accuracy, and one budget split over several accuracies.

Both work on functions of a noise parameter: one gives the event, the other the error that people see (a standard
deviation, a half-width at 95 %, whatever rises with the noise). For a wanted error the noisiest parameter is found,
since more noise is cheaper. A split puts all errors at the same multiple of their targets: if one release could do
with less than that while the others could not, its share would help the others, so the largest ratio would not be the
least. The split is then a family in one parameter, the ratio, and calibrated like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from .. import checks
from ..errors import ArgumentError
from ..events import Event, Sequence
from . import price
from .calibrate import Calibrated, Family, calibrate, event_at
from .interval import Interval
from .search import OutsideError, crossing
from .target import log_ratio

_FINE = 1e-9


@dataclass(frozen=True)
class Want:
    """One release of a split: its event and its error, both functions of the same parameter, and the error wanted.

    >>> Want(family=lambda m: Gaussian(multiplier=m), error=lambda m: 1.96 * m, target=10)
    """

    family: Family
    error: Callable[[float], float]
    target: float

    def __post_init__(self) -> None:
        for name in ("family", "error"):
            if not callable(getattr(self, name)):
                raise checks.refuse(name, getattr(self, name), "a function of one number")
        object.__setattr__(self, "target", float(checks.positive(self.target, "target")))

    def noisiest(self, ratio: float = 1.0, start: float | None = None) -> float:
        """The noisiest parameter whose error is at most ratio * target; its error was computed and is."""
        limit = ratio * self.target
        name = f"error <= {limit:g}"

        def excess(parameter: float) -> float:
            event_at(self.family, parameter)  # where there is no event there is no error either
            try:
                size = float(self.error(parameter))
            except ArithmeticError as problem:
                raise OutsideError(str(problem)) from problem
            if math.isnan(size) or size < 0:
                raise ArgumentError(f"error is {size} at the parameter {parameter:g}: give a function to numbers >= 0.")
            return log_ratio(size, limit)

        return crossing(excess, "error", name, start=start, tolerance=_FINE).inside


def least_epsilon_for(
    family: Family, error: Callable[[float], float], *, target: Any, delta: Any = None, start: float | None = None
) -> Calibrated:
    """The least epsilon (at delta; pure without one) with which the error stays within the target.

    >>> least_epsilon_for(lambda m: Gaussian(multiplier=m), lambda m: 1.96 * m, target=10, delta=1e-6)
    """
    want = Want(family, error, target)
    parameter = want.noisiest(start=start)
    event = event_at(family, parameter)
    own = Fraction(0) if delta is None else checks.delta(delta, zero=True)
    cost = price.epsilon(event, delta=own)
    closer = event_at(family, want.noisiest(ratio=0.5, start=parameter))
    if price.epsilon(closer, delta=own).upper < cost.lower:
        raise ArgumentError(
            "family costs less where the error is smaller: the two belong to different parameters. Give the family and "
            "the error as functions of the same parameter."
        )
    return Calibrated(parameter, event, cost, own, None, 2)


@dataclass(frozen=True)
class Split:
    """What each release gets. `ratio` is the error of each over its target: at most 1 if all targets are met."""

    ratio: float
    parameters: Mapping[str, float]
    errors: Mapping[str, float]
    event: Event
    epsilon: Interval | None
    delta: Fraction
    rho: Fraction | None

    @property
    def met(self) -> bool:
        return self.ratio <= 1

    def __str__(self) -> str:
        width = max(map(len, self.parameters))
        lines = [
            f"{name:{width}}  parameter {parameter:.6g}, error {self.errors[name]:.6g}"
            for name, parameter in self.parameters.items()
        ]
        cost = "fits the account"
        if self.epsilon is not None:
            cost = f"epsilon = {self.epsilon}" + (f" at delta = {float(self.delta):g}" if self.delta else "")
        elif self.rho is not None:
            cost = f"rho = {float(self.rho):.6g}"
        verdict = "all targets met" if self.met else "targets not met"
        return "\n".join([*lines, f"every error is {self.ratio:.4g} of its target: {verdict}", f"together {cost}"])


def split(
    wants: Mapping[str, Want],
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    account: Any = None,
) -> Split:
    """One budget over several releases, so that the largest of error/target is least; all together within the budget.

    The releases are priced as one sequence that is fixed in advance. (For releases chosen one after the other,
    calibrate each against the account.)
    """
    if not isinstance(wants, Mapping) or not wants or not all(isinstance(each, Want) for each in wants.values()):
        raise checks.refuse("wants", wants, "a Want per name, such as {'total': Want(family, error, target)}")
    tried: dict[float, dict[str, float]] = {}

    def whole(ratio: float) -> Event:
        before = next(reversed(tried.values()), {})  # where to look: near the parameters of the ratio before
        tried[ratio] = {name: want.noisiest(ratio, before.get(name)) for name, want in wants.items()}
        try:
            return Sequence(tuple(event_at(wants[name].family, x) for name, x in tried[ratio].items()))
        except OutsideError as problem:
            raise ArgumentError(str(problem)) from problem

    done = calibrate(whole, epsilon=epsilon, delta=delta, rho=rho, account=account)
    chosen = tried[done.parameter]
    errors = {name: float(wants[name].error(x)) for name, x in chosen.items()}
    return Split(
        done.parameter,
        MappingProxyType(chosen),
        MappingProxyType(errors),
        done.event,
        done.epsilon,
        done.delta,
        done.rho,
    )
