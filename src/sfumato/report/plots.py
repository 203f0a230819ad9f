"""Plots of what is promised. matplotlib is an extra, asked for on first use: pip install 'sfumato[report]'."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from .. import checks
from ..accounting.target import cost
from ..accounting.tradeoff import tradeoff
from ..errors import SfumatoError
from ..events import Event
from ..exact import float_above
from .explain import most_found

_POINTS = 200


def axes(ax: Any = None) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise SfumatoError("plots need matplotlib: pip install 'sfumato[report]'") from None
    return pyplot.subplots(layout="constrained")[1]


def plot_tradeoff(what: Any, *, delta: Any = None, ax: Any = None, label: str | None = None) -> Any:
    """The least false-negative rate of any attacker against his false-positive rate; higher is more private.

    what   an event, or an epsilon (with delta)
    """
    ax = axes(ax)
    # Close to both ends the curve is steepest, so points crowd there.
    alphas = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, _POINTS), 1 - np.geomspace(0.5, 1e-6, _POINTS)[1:], [1.0]])
    if isinstance(what, Event):
        if delta is not None:
            raise checks.refuse("delta", delta, "no delta with an event: its trade-off holds for all")
        betas, name = np.asarray(tradeoff(what)(alphas)), type(what).__name__
    else:
        size = float_above(checks.epsilon(what, warn=False))
        own = Fraction(0) if delta is None else checks.delta(delta, zero=True)
        betas = 1 - most_found(alphas, size, float_above(own))
        name = f"epsilon = {size:g}" + (f", delta = {float(own):g}" if own else "")
    ax.plot(alphas, betas, label=label or name)
    ax.plot([0, 1], [1, 0], linestyle=":", color="grey", label="_perfect privacy")
    ax.set_xlabel("false-positive rate of the attacker")
    ax.set_ylabel("least false-negative rate")
    ax.set_title("Trade-off: no attacker gets below the curve")
    ax.legend()
    return ax


def plot_epsilon(event: Event, *, deltas: Any = None, ax: Any = None, label: str | None = None) -> Any:
    """Epsilon against delta: one event, many pairs that all hold. The band lies between the certified bounds."""
    checks.instance(event, Event, "event", "an event")
    ax = axes(ax)
    exponents = range(-12, -1) if deltas is None else ()
    points = [Fraction(10) ** each for each in exponents] or [checks.delta(each, "deltas") for each in deltas]
    found = [cost(event, each) for each in points]
    at = [float(each) for each in points]
    (line,) = ax.plot(at, [each.upper for each in found], marker=".", label=label or type(event).__name__)
    ax.fill_between(
        at, [each.lower for each in found], [each.upper for each in found], alpha=0.3, color=line.get_color()
    )
    ax.set_xscale("log")
    ax.set_xlabel("delta")
    ax.set_ylabel("epsilon")
    ax.set_title("All of these hold at once")
    ax.legend()
    return ax
