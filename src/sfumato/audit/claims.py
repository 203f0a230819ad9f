"""What a plan is sold at: the curve that an audit holds it to."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

from ..accounting import approximate, pure
from ..errors import UnsupportedEventError
from ..plan import Plan

_DELTAS = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3)


def claims_of(plan: Plan[Any, Any]) -> dict[float, float]:
    """Every (delta, epsilon) that the accountants would sell the plan's event at."""
    claims: dict[float, float] = {}
    with contextlib.suppress(UnsupportedEventError):
        claims[0.0] = float(pure.epsilon(plan.event))
    for delta in {*map(Fraction, map(str, _DELTAS)), plan.delta} - {Fraction(0)}:
        with contextlib.suppress(UnsupportedEventError):
            claims[float(delta)] = float(approximate.epsilon(plan.event, delta))
    return claims
