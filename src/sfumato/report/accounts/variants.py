"""What is proven of an event: which variant of differential privacy, with which parameter."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ...accounting.members import own_delta, plan_epsilon, rho, sure
from ...accounting.pure import epsilon as pure_epsilon
from ...errors import UnsupportedEventError
from ...events import Event, Gaussian, Repeat, Sequence


def at_own_delta(event: Event, delta: Fraction) -> Fraction | None:
    try:
        return plan_epsilon(event, delta)
    except UnsupportedEventError:
        return None


def proven(event: Event) -> tuple[str, Mapping[str, Fraction]]:
    """What is proven of an event, the strongest that is exact: its variant of DP and the parameter there."""
    try:
        return "pure", {"epsilon": pure_epsilon(event)}
    except UnsupportedEventError:
        pass
    if failed := own_delta(event):
        return "approximate", {**proven(sure(event))[1], "delta": failed}  # but for that delta, it is what is left
    if (squared := _mu_squared(event)) is not None:
        return "GDP", {"mu^2": squared}
    try:
        return "zCDP", {"rho": rho(event)}
    except UnsupportedEventError:
        return "Renyi", {}


def _mu_squared(event: Event) -> Fraction | None:
    if isinstance(event, Gaussian):
        return Fraction(1 / event.multiplier**2)
    if isinstance(event, Repeat):
        part = _mu_squared(event.event)
        return None if part is None else event.times * part
    if isinstance(event, Sequence):
        parts = [_mu_squared(part) for part in event.events]
        return None if any(part is None for part in parts) else sum((p for p in parts if p is not None), Fraction(0))
    return None
