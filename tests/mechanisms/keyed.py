"""Tables of keys, and the exact law of what a selection of keys lets out of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from sfumato import Schema, Unit
from sfumato.accounting import price
from sfumato.noise import Noise, SeededBits
from sfumato.plan import Plan, Run
from sfumato.rows import Rows
from sfumato.schema import key
from tests.helpers import read

SCHEMA = Schema.of(u=key(), k=key())
ROW, USER = Unit(), Unit("user:u")
Law = dict[frozenset[str], float]
Holding = tuple[str, ...]


def table(unit: Unit, *holdings: Iterable[Any]) -> Rows:
    """One unit for each holding, with a row for each of its keys."""
    pairs = [(f"unit {i}", each) for i, holding in enumerate(holdings) for each in holding]
    return read(SCHEMA, unit, u=[u for u, _ in pairs], k=[k for _, k in pairs])


def run(seed: int = 1) -> Run:
    return Run(Noise(SeededBits(seed)))


def law_of_sets(holdings: list[Holding], per_unit: int, chance: Callable[[list[tuple[int, int]]], float]) -> Law:
    """Which set of keys is let out with what probability, over all choices that units with too many keys may make.

    chance  of a key, from (keys of the unit, 1) for each unit that brings it
    """
    law: Law = {}
    choices = [list(combinations(sorted(set(each)), min(per_unit, len(set(each))))) for each in holdings]
    weight = math.prod(map(len, choices))
    for chosen in product(*choices):
        brought: dict[str, list[tuple[int, int]]] = {}
        for mine in chosen:
            for each in mine:
                brought.setdefault(each, []).append((len(mine), 1))
        chances = {each: chance(units) for each, units in brought.items()}
        for shown in product((False, True), repeat=len(chances)):
            p = math.prod(c if s else 1 - c for c, s in zip(chances.values(), shown, strict=True))
            out = frozenset(k for k, s in zip(chances, shown, strict=True) if s)
            law[out] = law.get(out, 0.0) + p / weight
    return law


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    return sum(max(p - math.exp(epsilon) * other.get(out, 0.0), 0.0) for out, p in one.items())


def excess(plan: Plan[Any, Any], one: Law, other: Law, epsilons: Iterable[float] = (0.0, 0.2, 0.5, 1.0, 1.5)) -> float:
    """By how much two laws differ beyond the price of the plan, at the worst of these epsilons, in both directions."""
    worst = -math.inf
    for epsilon in epsilons:
        allowed = price.delta(plan.event, epsilon=Fraction(str(epsilon))).upper
        found = max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))
        worst = max(worst, found - allowed)
    return worst


HOLDINGS: list[Holding] = [(), ("a",), ("b",), ("a", "b"), ("a", "b", "c")]


def neighbours(change: str) -> Iterable[tuple[list[Holding], list[Holding]]]:
    """All tables of at most two other units, and one more that comes or is replaced."""
    for others in ([], *([x] for x in HOLDINGS[1:]), [("a",), ("a", "b")], [("a",)] * 3, [("a", "b", "c")] * 2):
        for one, two in combinations(HOLDINGS, 2):
            if change == "replace" or not one:
                yield [*others, one], [*others, two]
