"""A training in words, from the fields of its stored plan that hold no code: what it reads, steps, clip and noise."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from .accounts.releases import Released

TRAINING = "plan-sgd/1"
MODEL = "The answer is a model, which no page shows: whoever trained it has its weights."


def steps(row: Released) -> list[str]:
    """What was done, as far as the plan tells; empty for what is no training."""
    if row.mechanism != TRAINING or row.plan is None:
        return []
    plan = json.loads(row.plan)
    return [_read(plan), _drawn(plan), _blurred(plan)]


def _read(plan: dict[str, Any]) -> str:
    columns = [name for part in plan.get("inputs") or () for name in part.get("columns") or (part.get("column"),)]
    target = (plan.get("target") or {}).get("column")
    inputs = ", ".join(filter(None, columns)) or "its inputs"
    return f"a model is trained that tells {target} from {inputs}" if target else f"a model is trained on {inputs}"


def _drawn(plan: dict[str, Any]) -> str:
    rate = _number((plan.get("sampling") or {}).get("rate"))
    batches = "each over units drawn at random"
    return f"{plan.get('times')} steps, {batches}" + (f", with probability {float(rate):.3g}" if rate else "")


def _blurred(plan: dict[str, Any]) -> str:
    norm, multiplier = _number((plan.get("clip") or {}).get("norm")), _number(plan.get("multiplier"))
    clipped = "what one unit moves in a step is clipped" + (f" to {float(norm):.4g}" if norm else "")
    times = f" of {float(multiplier):.4g} times that" if multiplier else ""
    return f"{clipped}, and Gaussian noise{times} is added to the sum"


def _number(value: Any) -> Fraction | None:
    """A number as plans write it."""
    text = value.get("value") if isinstance(value, dict) else None
    return Fraction(text) if isinstance(text, str) else None
