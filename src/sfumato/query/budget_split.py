"""How a query's budget is split over what it measures: so that the total of its aggregates' errors is least.

An aggregate's error is a sum of the noises of its measures, times slopes. With noise counted in reaches, and errors in
the reach of the aggregate (`Statistic.pulls` has the squares of these slopes), the squared errors of all aggregates add
up to a constant times sum_j A_j / s_j^p, where A_j are the pulls of measure j in all of them, s_j is its share, and p
is 1 for Gaussian and 2 for Laplace noise. With shares that add up to 1 that is least at s_j in proportion to
A_j^(1/(p + 1)): the root (Cauchy and Schwarz), or the third root (Hoelder). Numbers of units, different values,
quantiles and histograms have a part of 1 each, and numbers of units that also choose the groups one of 2, as design.py
says.

The split is written into the plan's `shares`: a plan without them is split evenly, as it always was. Where that is
nearly as good it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .aggregates import Statistic
from .design import shares_of
from .plan import Sql

_WORTH = 0.98
"""Of the total of an even split: a split is for less than that."""


def weights(plan: Sql, kind: str) -> dict[str, Fraction]:
    """By question: what is said in `shares`; nothing where an even split does, or somebody said otherwise."""
    if plan.shares or plan.written is None:  # a text that is not in the one way may call other things by these names
        return {}
    pulls, power = _pulls(plan), 1 if kind == "gaussian" else 2
    roots = {name: max(round(100 * float(pull) ** (1 / (power + 1))), 1) for name, pull in pulls.items()}
    split = {name: Fraction(root, 100) for name, root in roots.items()}
    return split if _total(plan, split, power) < _WORTH * _total(plan, {}, power) else {}


def _total(plan: Sql, weights: Mapping[str, Fraction], power: int) -> float:
    """The squared errors of all aggregates; what is no sum has a pull that its usual part is right for."""
    selects, pulls = plan.front.selects, _pulls(plan)
    shares = shares_of(plan.questions, weights, Fraction(1), selects=selects)
    usual = shares_of(plan.questions, {}, Fraction(len(list(plan.questions)) + selects), selects=selects)
    return sum(float(pulls.get(name, usual[name] ** (power + 1)) / part**power) for name, part in shares.items())


def _pulls(plan: Sql) -> Mapping[str, Fraction]:
    """Of each measured sum, in all aggregates."""
    total: dict[str, Fraction] = {}
    for aggregate in plan.front.aggregates.values():
        if isinstance(aggregate, Statistic):
            alike = (Fraction(1),) * len(aggregate.measures)
            for measure, pull in zip(aggregate.measures, aggregate.pulls or alike, strict=True):
                total[measure.name] = total.get(measure.name, Fraction(0)) + pull
    return total
