"""The mechanisms that accountants are compared on: as JSON for the peers' workers, as an event for us.

A part is a law, its numbers and how many times it happens, in units of the sensitivity:
    {"law": "gaussian", "sigma": 1.1, "rate": 0.01, "times": 1000}
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sfumato import events

Part = dict[str, object]


def gaussian(sigma: float, times: int = 1, rate: float = 1.0) -> Part:
    return {"law": "gaussian", "sigma": sigma, "rate": rate, "times": times}


def laplace(scale: float, times: int = 1, rate: float = 1.0) -> Part:
    return {"law": "laplace", "scale": scale, "rate": rate, "times": times}


def discrete_laplace(epsilon: float, shift: int = 1, times: int = 1) -> Part:
    return {"law": "discrete_laplace", "epsilon": epsilon, "shift": shift, "times": times}


def discrete_gaussian(sigma: float, shift: int = 1, times: int = 1) -> Part:
    return {"law": "discrete_gaussian", "sigma": sigma, "shift": shift, "times": times}


def mixture(shifts: Sequence[float], weights: Sequence[float], times: int = 1) -> Part:
    return {"law": "mixture", "shifts": list(shifts), "weights": list(weights), "times": times}


def randomized_response(epsilon: float, categories: int, times: int = 1) -> Part:
    return {"law": "randomized_response", "epsilon": epsilon, "categories": categories, "times": times}


def pure(epsilon: float, times: int = 1) -> Part:
    return {"law": "pure", "epsilon": epsilon, "times": times}


def approximate(epsilon: float, delta: float, times: int = 1) -> Part:
    return {"law": "approximate", "epsilon": epsilon, "delta": delta, "times": times}


def event(parts: Sequence[Part]) -> events.Event:
    """All the parts as one event."""
    repeated = [_repeated(_single(part), part["times"]) for part in parts]
    return repeated[0] if len(repeated) == 1 else events.Sequence(tuple(repeated))


def _repeated(single: events.Event, times: int) -> events.Event:
    return single if times == 1 else events.Repeat(single, times)


def _single(part: Part) -> events.Event:
    law = part["law"]
    if law == "gaussian":
        return _sampled(events.Gaussian(multiplier=part["sigma"]), part["rate"])
    if law == "laplace":
        return _sampled(events.Laplace(epsilon=1 / _decimal(part["scale"])), part["rate"])
    if law == "discrete_laplace":
        return events.DiscreteLaplace(epsilon=part["epsilon"], shift=part["shift"])
    if law == "discrete_gaussian":
        return events.DiscreteGaussian(variance=_decimal(part["sigma"]) ** 2, shift_squared=part["shift"] ** 2)
    if law == "mixture":
        return events.GaussianMixture(shifts=tuple(part["shifts"]), weights=tuple(part["weights"]))
    if law == "randomized_response":
        return events.RandomizedResponse(epsilon=part["epsilon"], categories=part["categories"], relation="replace")
    if law == "approximate":
        return events.Approximate(epsilon=part["epsilon"], delta=part["delta"])
    return events.Pure(epsilon=part["epsilon"])


def _sampled(single: events.Event, rate: float) -> events.Event:
    return single if rate == 1 else events.Poisson(single, rate)


def _decimal(value: float) -> Fraction:
    """What events take a float for: the decimal it prints as."""
    return Fraction(repr(value))
