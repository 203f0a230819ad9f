"""Plots of what is promised, spent and answered.

matplotlib is an extra, asked for on first use: the extra `plots`. Every function draws on the axes that it
is given, or on new ones, and returns them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from .. import checks
from ..accounting import price
from ..accounting.tradeoff import tradeoff
from ..events import Event
from ..exact import float_above
from ..ledger.ledger import Ledger
from ..plain_text import printable
from ..plan import Plan
from .axes import axes
from .explanations import most_found
from .over_time import OverTime
from .plots_answer import plot_answer

__all__ = ["plot_accuracy", "plot_answer", "plot_budget", "plot_epsilon", "plot_tradeoff"]

_POINTS = 200
_EPSILONS = tuple(float(f"{each:.3g}") for each in np.geomspace(0.05, 3, 12))


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
    intervals = [price.epsilon(event, delta=each) for each in points]
    at = [float(each) for each in points]
    (line,) = ax.plot(at, [each.upper for each in intervals], marker=".", label=label or type(event).__name__)
    ax.fill_between(
        at, [each.lower for each in intervals], [each.upper for each in intervals], alpha=0.3, color=line.get_color()
    )
    ax.set_xscale("log")
    ax.set_xlabel("delta")
    ax.set_ylabel("epsilon")
    ax.set_title("All of these hold at once")
    ax.legend()
    return ax


def plot_accuracy(
    plans: Callable[[float], Plan[Any, Any]] | Iterable[Plan[Any, Any]],
    epsilons: Sequence[float] | None = None,
    *,
    alpha: float = 0.05,
    ax: Any = None,
) -> Any:
    """The error to expect against the price, from plans alone: no data is touched and nothing is charged.

    plans     a function that makes a plan for an epsilon, or plans, which are drawn at their own prices
    epsilons  where the function is asked, from 0.05 to 3 by default
    """
    if callable(plans):
        at = [float(checks.epsilon(each, "epsilons")) for each in (_EPSILONS if epsilons is None else epsilons)]
        priced = [(each, plans(each)) for each in at]
    elif epsilons is not None:
        raise checks.refuse("epsilons", epsilons, "no epsilons where plans are given: they are drawn at their prices")
    else:
        priced = [(float(plan.price()), plan) for plan in plans]
    lines: dict[str, list[tuple[float, float]]] = {}
    for size, plan in sorted(priced, key=lambda point: point[0]):
        checks.instance(plan, Plan, "plans", "plans, or a function that makes a plan for an epsilon")
        single = plan.expected_error(alpha)
        for name, width in plan.expected_errors(alpha).items() if single is None else [("", single)]:
            lines.setdefault(name, []).append((size, width))
    if not lines:
        kinds = ", ".join(sorted({type(plan).__name__ for _, plan in priced})) or "no plans"
        raise checks.refuse("plans", kinds, "plans that know their error before they run: see quote.errors()")
    ax = axes(ax)
    for name, points in lines.items():
        ax.plot(*zip(*points, strict=True), marker=".", label=name.replace("$", r"\$") or None)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis, range_ in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        ticks = _ticks(*range_)
        axis.set_ticks(ticks, [f"{each:,.10g}" for each in ticks])
        axis.set_ticks([], minor=True)
    ax.set_xlabel("epsilon")
    ax.set_ylabel(f"error to expect: ± at {100 * (1 - alpha):g} %")
    ax.set_title("What more budget buys")
    if any(lines):
        ax.legend()
    return ax


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers that people read at a glance: 1, 2, 5, 10, or the powers of ten alone where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts in ((1, 2, 5), (1,)):
        ticks = [each for power in powers for part in parts if low <= (each := float(f"{part}e{power}")) <= high]
        if len(ticks) <= 10:
            return ticks
    return ticks[:: -(-len(ticks) // 10)]


def plot_budget(ledger: Ledger, account: str, *, ax: Any = None) -> Any:
    """What an account has spent over time, in each of its gauges as a part of its limit. The account is exhausted when
    every gauge is; one that a release did not fit into ends there."""
    checks.instance(ledger, Ledger, "ledger", "a ledger, such as open_ledger(...)")
    standing = ledger.spent(account)  # also refuses an account that is none
    over_time = OverTime(account)
    for release in ledger.releases(account=account, price=False):
        over_time.take(release)
    lines = over_time.lines()
    timed = lines["by"] == "time"
    opened = next(ledger.history(account=account, kind="open account"), None)
    before = [] if opened is None else [[_instant(opened.time) if timed else opened.number, 0.0]]
    gauges = lines["gauges"] or [{"currency": each.currency, "open": True, "points": []} for each in standing]
    ax = axes(ax)
    for gauge in gauges:
        at, shares = zip(*(before + gauge["points"] or [[0, 0.0]]), strict=True)
        at = tuple(datetime.fromtimestamp(each, UTC) for each in at) if timed else at
        name = gauge["currency"] + ("" if gauge["open"] else " (closed)")
        end = {} if gauge["open"] else {"marker": "x", "markevery": [len(at) - 1]}
        ax.plot(at, [100 * each for each in shares], drawstyle="steps-post", label=name, **end)
    if timed:
        dates = import_module("matplotlib.dates")
        locator = dates.AutoDateLocator()
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    ax.axhline(100, linestyle="--", color="grey", label="limit: the guarantee")
    ax.set_ylim(0, 105)
    ax.set_xlabel("time (UTC)" if timed else "entry of the ledger")
    ax.set_ylabel("spent, % of the limit")
    ax.set_title(f"Budget of {printable(account)}", parse_math=False)
    ax.legend()
    return ax


def _instant(time: datetime | None) -> float:
    return 0.0 if time is None else time.timestamp()
