"""B3: optional stopping. A limit holds for whoever chooses each question after the last answer, and stops when lucky.

Claim. A filter's limit is fixed before the first answer and refuses what would pass it, so whatever rule chooses the
next epsilon, and whenever it stops, the whole is (epsilon, delta)-DP. (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse,
Ramdas, Rogers, Wu 2023, Theorem 1: sum eps_i <= epsilon, or, at delta, sqrt(2 ln(1/delta) sum eps_i^2) + sum eps_i^2/2;
members use the tight conversion of the same rho, which is below that.) An odometer reads how much was lost so far and
refuses nothing: sold as a filter, it lets the adversary go on until the answers tell.

The adversary guesses which of two neighbours it talks to. It keeps the log of the likelihood ratio, asks with a larger
epsilon while that rises and a smaller one while it falls, and stops as soon as it is high enough. From many such games
on either table the epsilon that they prove is bounded below, exactly (Clopper, Pearson), for stopping rules of several
heights at once; it must stay within the limit. And in every game what was paid must stay within it by the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.accounting import zcdp
from sfumato.accounting.filters import Budget, fully_adaptive
from sfumato.audit.counting import at_least, at_most, shown
from sfumato.errors import BudgetError
from sfumato.laws import RoundedLaplace
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.memory import MemoryStore
from sfumato.noise import Noise, SecureBits

from ...mutants.ledgers import OdometerSoldAsFilter
from ..verdict import FALSE_ALARM, Verdict
from .ground import count, pay

Kind = Callable[[Any], Ledger]
SIZES = tuple(Fraction(n, 20) for n in (1, 2, 5, 10, 20))
HEIGHTS = (0.5, 1.0, 2.0, 3.0, 4.0)  # of evidence at which an adversary may stop
STEPS = 1024  # of the grid, for one row
BUDGETS = {
    "epsilon": Budget(epsilon=1),
    "epsilon and delta": Budget(epsilon=1, delta=1e-6),
    "fully adaptive": Budget(epsilon=3, delta=0.01, shares={"plans": 0.5, "adaptive": 0.5}),
}


def attack(
    *, kind: Kind = Ledger, games: int = 200, most: int = 80, budgets: Mapping[str, Budget] = BUDGETS
) -> Verdict:
    """So many games on either table, under each budget, of at most so many questions."""
    figures: dict[str, float] = {}
    broken: list[str] = []
    alpha = FALSE_ALARM / (4 * len(budgets) * len(HEIGHTS))  # two bounds, both ways round, for each height
    for name, budget in budgets.items():
        delta = float(budget.delta)
        played = [[_game(kind, budget, truth, most) for _ in range(games)] for truth in (0, 1)]
        best = [np.array([game.best for game in each]) for each in played]
        proven = 0.0
        for height in HEIGHTS:
            hits = [int((each >= height).sum()) for each in best]
            for one, other in ((1, 0), (0, 1)):
                low, high = at_least(hits[one], games, alpha), at_most(hits[other], games, alpha)
                proven = max(proven, float(shown(low, high, delta)))
        paid = max((game.paid for each in played for game in each), key=lambda sizes: sum(e * e for e in sizes))
        figures[f"epsilon shown, {name}"] = proven
        figures[f"most questions, {name}"] = max(len(game.paid) for each in played for game in each)
        figures[f"by Whitehouse et al., {name}"] = _by_formula(paid, delta)
        if proven > float(budget.epsilon):
            broken.append(f"under {name} an adversary who stops when lucky shows an epsilon of {proven:.3g}")
        if any(not within(game.paid, budget) for each in played for game in each):
            broken.append(f"under {name} more was paid than any formula allows")
        if not any(game.refused for each in played for game in each):
            broken.append(f"under {name} nothing was ever refused")
    words = f"{2 * games * len(budgets)} adversaries who choose from the answers and stop when lucky: "
    words += f"{broken[0]}." if broken else "all were refused at the limit, and none shows more than it."
    return Verdict("B3", bool(broken), words, figures)


def control() -> Verdict:
    """Beside what was paid, enough games to show it by the answers alone."""
    return attack(kind=OdometerSoldAsFilter, games=150, most=60, budgets={"epsilon": BUDGETS["epsilon"]})


def within(sizes: tuple[Fraction, ...], budget: Budget) -> bool:
    """Is what was paid within the limit: by the sum, or by rho = sum eps_i^2 / 2 at the whole of delta? Members have a
    part of delta each, and so less room; with these sizes the other members' room ends before that of the sum."""
    if sum(sizes) <= budget.epsilon:
        return True
    rho = sum((size * size / 2 for size in sizes), Fraction(0))
    return bool(budget.delta and zcdp.epsilon(rho, budget.delta) <= budget.epsilon)


def _by_formula(sizes: tuple[Fraction, ...], delta: float) -> float:
    """The least of the sum and the theorem's own closed form."""
    total = float(sum(sizes))
    return min(total, fully_adaptive([float(size) for size in sizes], delta)) if delta and sizes else total


class _Played:
    def __init__(self) -> None:
        self.best, self.refused = -math.inf, False
        self.paid: tuple[Fraction, ...] = ()


def _game(kind: Kind, budget: Budget, truth: int, most: int) -> _Played:
    """One adversary, on the table with that count: the highest evidence for 1 that it ever had."""
    ledger, game = kind(MemoryStore()), _Played()
    ledger.open_account("a", budget)
    evidence, at = 0.0, 2
    for _ in range(most):
        size = SIZES[at]
        try:
            pay(ledger, PLANS[size])
        except BudgetError:
            game.refused = True
            if at == 0:
                break
            at = 0  # smaller ones may still fit
            continue
        game.paid = (*game.paid, size)
        told = truth * STEPS + _noise(size)
        gained = float(size) * (abs(told) - abs(told - STEPS)) / STEPS
        evidence += gained
        game.best = max(game.best, evidence)
        if evidence >= HEIGHTS[-1]:
            break
        at = min(at + 1, len(SIZES) - 1) if gained > 0 else max(at - 1, 1)
    return game


PLANS = {size: count(size) for size in SIZES}
_DRAWN: dict[Fraction, list[int]] = {}


def _noise(size: Fraction) -> int:
    """Of the law that this epsilon pays for; drawn many at once."""
    waiting = _DRAWN.setdefault(size, [])
    if not waiting:
        waiting += Noise(SecureBits()).draw(RoundedLaplace(STEPS / float(size)), 4096).tolist()
    return waiting.pop()
