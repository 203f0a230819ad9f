"""Target accuracy in, budget out: the least noise budget whose error bars are as narrow as asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from .. import checks
from ..accounting import gdp
from ..errors import ArgumentError
from . import noise_law, ranks
from .aggregates import Statistic
from .asked import asked
from .canonical import text_of
from .design import Design
from .finish import expected
from .plan import Sql
from .released import figures

_START = Fraction(1)
_ROUNDS = 60


def cheapest(fields: Mapping[str, Any], wanted: Any, size: Any, alpha: Fraction, *, free: bool) -> Sql:
    """The plan with these half-widths for the least budget. Where a delta is offered, the law is `free`, and there are
    no groups, Laplace noise is taken if its epsilon is no larger than that of Gaussian noise at delta."""
    plan = asked(least(fields, wanted, size, alpha))
    if not free or plan.blur.kind == "laplace" or plan.front.keys or not plan.delta:
        return plan
    other = asked(least({**fields, "delta": 0}, wanted, size, alpha))
    if other.epsilon > gdp.least_epsilon(1 / plan.blur.amount**2, plan.delta):
        return plan
    return noise_law.in_place_of(other, plan)


def least(fields: Mapping[str, Any], wanted: Any, size: Any, alpha: Fraction) -> Sql:
    """The plan whose columns have these half-widths, or narrower ones, for the least budget.

    Each coordinate's noise must be so small; how a column's width follows from its coordinates is known from its
    formula. A width of c noise scales that may be w wide needs shares and a budget such that c scale <= w: for Gaussian
    noise the squares of (reach / scale) add up to 1/multiplier^2, for Laplace noise the quotients to epsilon.
    """
    if not isinstance(wanted, Mapping) or not wanted:
        raise checks.refuse("accuracy", wanted, "half-widths by column of the answer, such as {'n': 20}")
    if fields.get("epsilon") is not None or fields.get("rho") is not None:
        raise ArgumentError("accuracy says how much to spend: give it without epsilon and rho.")
    if fields.get("shares"):
        raise ArgumentError("accuracy says how the budget is split: give it without shares.")
    laplace = not fields.get("delta")
    name = "epsilon" if laplace else "rho"
    plan = Sql(**{**fields, name: _START})
    if plan.unclip:
        raise ArgumentError("accuracy is about noise alone: give it without unclip, which measures what limits cut.")
    if plan.fixed is None:
        raise ArgumentError("accuracy needs limits: how wide the noise is depends on them. Give limits={'rows': 10}.")
    wanted = ranks.in_ranks(plan, wanted, size)
    factors = _factors(plan, plan.fixed, wanted, size, alpha)
    needs = {each: _need(plan.fixed, each, factor, laplace) for each, factor in factors.items()}
    middle = sorted(needs.values())[len(needs) // 2]
    sizes = {each: needs.get(each, middle) for each in plan.questions}
    budget = sum(sizes.values(), Fraction(0)) * _START
    shares = {each: _short(part) for each, part in sizes.items()}

    def at(size: Fraction) -> Sql:
        spent: dict[str, Any] = {name: _short(size), "shares": shares}
        return replace(plan, **spent)

    made = at(budget)
    for _ in range(_ROUNDS):  # rounding, and levels of trees, may leave it a little short
        short = max(_widths(made, made.fixed, each, size, alpha) / width for each, width in wanted.items())  # type: ignore[arg-type]
        if short <= 1:
            return made
        made = at(getattr(made, name) * Fraction(short * 1.0001) ** (1 if laplace else 2))
    raise ArgumentError("accuracy cannot be reached: noise cannot be made that small.")


def _factors(plan: Sql, design: Design, wanted: Mapping[str, Fraction], size: Any, alpha: Fraction) -> dict[str, float]:
    """For every coordinate that is asked about: how many times too wide it is."""
    found: dict[str, float] = {}
    for name, width in wanted.items():
        ratio = _widths(plan, design, name, size, alpha) / float(width)
        for each in _coordinates(plan, name):
            found[each] = max(found.get(each, 0.0), ratio)
    return found


def _need(design: Design, name: str, factor: float, laplace: bool) -> Fraction:
    """The part of the budget (where the whole is 1) that makes a coordinate `factor` times narrower."""
    return design.shares[name] * Fraction(factor) ** (1 if laplace else 2)


def _coordinates(plan: Sql, name: str) -> tuple[str, ...]:
    node = dict(plan.front.outermost.outputs).get(name)
    if node is None:
        raise checks.refuse("accuracy", name, "a column of the answer: " + ", ".join(plan.front.titles))
    if text_of(node) not in plan.front.aggregates:
        raise checks.refuse("accuracy", name, "a column that is one aggregate")
    return plan.front.questions_of(name)


def _widths(plan: Sql, design: Design, name: str, size: Any, alpha: Fraction) -> float:
    """The half-width of a column: known outright, or for a group of `size` rows in the middle of its range."""
    _coordinates(plan, name)
    known = expected(plan, float(alpha))
    if name in known:
        return known[name]
    if size is None:
        raise ArgumentError(
            f"accuracy of {name!r} depends on how many rows a group has: say so, as in group_rows=1000.",
            code="group-rows",
        )
    rows = float(checks.positive(size, "group_rows"))
    each = plan.front.aggregates[text_of(dict(plan.front.outermost.outputs)[name])]
    assert isinstance(each, Statistic)
    made = {}
    for measure in each.measures:
        # Averages at an end of their bounds have the widest bars.
        value = rows if measure.largest == 1 and measure.whole else rows * float(measure.upper)
        made[measure.name] = figures.measured(measure.name, np.array([value]))
    width = float(each.formula(made).half_width(design.spreads, float(alpha))[0])
    if not math.isfinite(width):
        return 1e6
    return width


def _short(value: Fraction) -> Fraction:
    """Six digits, upwards."""
    digits = 5 - math.floor(math.log10(value))
    return Fraction(math.ceil(value * Fraction(10) ** digits)) / Fraction(10) ** digits
