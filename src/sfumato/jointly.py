"""Several answers under one budget, split so that each is as exact as was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from . import bounds, checks
from .accounting import gdp
from .bounds import Bounded
from .checks import Exact
from .combine import Sequence
from .errors import ArgumentError
from .mechanisms import Gaussian, Laplace
from .questions import PRICE
from .record import record
from .schema import Named
from .units import Unit

_PARTS = 10**6  # a share is a whole number of these
_SPEND = ("all", "least")


@record("plan-joint/1")
@dataclass(frozen=True, kw_only=True)
class Joint(Sequence):
    """Several noisy queries of the same data, with the budget split by the accuracy asked for each.

    Guarantee: that of its Event, the composition of the parts; made by `joint`, it is the budget given and never more.
    Needs: parts that protect the same unit.
    Paper: Dwork, McSherry, Nissim, Smith 2006 (composition); Bun, Steinke 2016 (of rho).

    Why this split: a part's half-width is c_i/epsilon_i (Laplace) or c_i/sqrt(rho_i) (Gaussian), where c_i comes from
    its sensitivity. The largest quotient of half-width and accuracy a_i is least where all quotients are equal (else
    the worst could take from the best): epsilon_i is proportional to c_i/a_i, rho_i to (c_i/a_i)^2.
    """

    accuracy: Mapping[str, Any] = field(metadata=PRICE)
    alpha: Exact = field(metadata=PRICE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "accuracy", _wanted(self.accuracy, self.plans))
        object.__setattr__(self, "alpha", _confidence(self.alpha))
        for name, plan in self.plans.items():
            if not isinstance(plan, Laplace | Gaussian):
                raise checks.refuse(name, plan, "a Laplace or Gaussian plan")

    def widths(self) -> dict[str, float]:
        """The half-width of each part's numbers, at confidence 1 - alpha."""
        return {name: _width(plan, self.alpha) for name, plan in self.plans.items()}

    def explain(self) -> list[str]:
        total, sizes = Fraction(0), {}
        for name, plan in self.plans.items():
            event: Any = plan.event
            sizes[name] = event.epsilon if isinstance(plan, Laplace) else 1 / (2 * event.multiplier**2)
            total += sizes[name]
        lines = []
        for name, width in self.widths().items():
            target = f", asked for ± {float(self.accuracy[name]):.4g}" if name in self.accuracy else ""
            share = f"{100 * float(sizes[name] / total):.3g} % of the budget"
            lines.append(f"{name} gets {share}: ± {width:.4g} at {100 * float(1 - self.alpha):g} %{target}")
        return [*lines, *super().explain()]

    @classmethod
    def sample(cls) -> Joint:
        queries = {"rows": bounds.count(Unit()), "age": bounds.variance("age", 0, 120, Unit())}
        return joint(queries, accuracy={"rows": 9, "age": 9}, rho=0.1)


def joint(
    queries: Mapping[str, Bounded],
    *,
    accuracy: Mapping[str, Any] | None = None,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    alpha: Any = 0.05,
    spend: str = "all",
) -> Joint:
    """One plan for several queries, under one budget: epsilon (Laplace noise), epsilon with delta, or rho (Gaussian).

    >>> from sfumato import Unit, bounds, joint
    >>> queries = {"n": bounds.count(Unit()), "years": bounds.clipped_sum("age", 0, 110, Unit())}
    >>> plan = joint(queries, accuracy={"n": 5, "years": 500}, epsilon=1)
    >>> [float(event.epsilon) for event in plan.event.events]
    [0.476261, 0.523739]

    `accuracy` says which half-width is wanted for each query, at confidence 1 - alpha; the budget is split so that
    every half-width is the same multiple of what was wanted. Without it each gets the same share. For a mean, a
    variance and whatever else is finished from several numbers, it is the half-width of those numbers (of `raw`).
    spend = "least" pays no more than the accuracy needs, where the budget would buy more.
    With rho, `delta` only says at which delta the plan shows an (epsilon, delta) price.
    """
    if not isinstance(queries, Mapping) or not queries:
        raise checks.refuse("queries", queries, "queries by name, such as {'rows': bounds.count(unit)}")
    for name, query in queries.items():
        checks.label(name, "the name of a query")
        checks.instance(query, Bounded, name, "a bounded query, such as bounds.count(unit)")
    if (epsilon is None) == (rho is None):
        raise ArgumentError(
            "say how much to spend in one way: epsilon (with delta for Gaussian noise), or rho.", code="how-much"
        )
    checks.one_of(spend, "spend", _SPEND)
    level, wanted = _confidence(alpha), _wanted(accuracy, queries)
    if spend == "least" and not wanted:
        raise checks.refuse("spend", spend, "'all' where no accuracy is asked for")
    gaussian = rho is not None or delta is not None
    part = Fraction(0) if delta is None else checks.delta(delta) / len(queries)

    def plan(name: str, size: Fraction) -> Laplace | Gaussian:
        if gaussian:
            return Gaussian(query=queries[name], rho=size, delta=part)
        return Laplace(query=queries[name], epsilon=size)

    if rho is not None:
        budget = checks.positive(rho, "rho")
    elif gaussian:
        budget = 1 / (2 * gdp.least_multiplier(checks.epsilon(epsilon), checks.delta(delta)) ** 2)
    else:
        budget = checks.epsilon(epsilon)
    start = budget / len(queries)
    reach = {name: Fraction(_width(plan(name, start), level)) for name in queries}
    needs = {name: _scaled(start, reach[name] / wanted[name], gaussian) if wanted else start for name in queries}
    if spend == "least" and sum(needs.values()) <= budget:
        enough = {name: _enough(name, size, wanted[name], plan, level) for name, size in needs.items()}
        if sum(enough.values()) <= budget:
            needs, budget = enough, sum(enough.values(), Fraction(0))
    shares = needs if sum(needs.values()) == budget else _split(needs, budget)
    plans = {name: plan(name, size) for name, size in shares.items()}
    return Joint(plans=plans, accuracy=wanted, alpha=level)


def _wanted(accuracy: Any, names: Mapping[str, Any]) -> Mapping[str, Fraction]:
    if accuracy is None or (isinstance(accuracy, Mapping) and not accuracy):
        return Named({})
    if not isinstance(accuracy, Mapping) or set(accuracy) != set(names):
        raise checks.refuse("accuracy", accuracy, "a half-width for each query: " + ", ".join(map(repr, names)))
    return Named({name: checks.positive(accuracy[name], f"accuracy of {name}") for name in names})


def _confidence(alpha: Any) -> Fraction:
    number = checks.rational(alpha, "alpha", "a probability above 0 and below 1")
    if not Fraction(1, 10**300) <= number < 1:
        raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
    return number


def _width(plan: Any, alpha: Fraction) -> float:
    """Of each number, or of the widest finished one where they are mixed."""
    mixed = plan.mixed_widths(float(alpha))
    return float(plan.width(float(alpha)) if mixed is None else mixed.max())


def _scaled(size: Fraction, factor: Fraction, gaussian: bool) -> Fraction:
    """The budget at which a half-width is `factor` times smaller."""
    return size * (factor**2 if gaussian else factor)


def _enough(name: str, size: Fraction, wanted: Fraction, plan: Any, level: Fraction) -> Fraction:
    """The least budget of one part that meets its accuracy, to some digits, upwards."""
    for _ in range(20):
        size = _short(size)
        part = plan(name, size)
        width = _width(part, level)
        if width <= wanted:
            return size
        size = _scaled(size, Fraction(width) / wanted, isinstance(part, Gaussian))
    raise checks.refuse(f"accuracy of {name}", float(wanted), "a larger half-width: noise cannot be made that small")


def _short(size: Fraction) -> Fraction:
    """Six digits, rounded up."""
    digits = 5 - math.floor(math.log10(size))
    return Fraction(math.ceil(size * Fraction(10) ** digits)) / Fraction(10) ** digits


def _split(needs: Mapping[str, Fraction], budget: Fraction) -> dict[str, Fraction]:
    """Shares of the budget in proportion to the needs: whole millionths, at least one each, exactly all of them."""
    total = sum(needs.values(), Fraction(0))
    exact = {name: max(need / total * _PARTS, Fraction(1)) for name, need in needs.items()}
    parts = {name: math.floor(share) for name, share in exact.items()}
    left = _PARTS - sum(parts.values())
    by_rest = sorted(parts, key=lambda name: parts[name] - exact[name])
    for name in by_rest[: max(left, 0)]:
        parts[name] += 1
    if left < 0:  # many tiny needs were raised to one part: the largest pays for them
        parts[max(parts, key=lambda name: parts[name])] += left
    return {name: budget * Fraction(count, _PARTS) for name, count in parts.items()}
