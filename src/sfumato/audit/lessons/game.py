"""The game that ends every lesson: one person's secret bit, tossed like a coin, and an attacker who sees all that is
published and knows everything else.

Claim. Two tables that differ by that person are neighbours, so that whatever is published at (epsilon, delta) lets a
guess be right with chance at most (e^epsilon + delta) / (1 + e^epsilon): for any test, false alarms and misses add up
to at least 2 (1 - delta) / (1 + e^epsilon) (Kairouz, Oh, Viswanath 2015), and with an even coin the guess is wrong in
half of that. Rounds are independent, so the wins are counted by Clopper-Pearson.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ... import checks
from ...accounting.filters import Budget
from ...curator import Curator
from ...ledger.memory import MemoryLedger
from ...noise import Noise, SecureBits
from ...plan import Plan
from ...private import Private
from ...schema import Schema
from ..counting import at_least


def allowed(epsilon: float, delta: float = 0.0) -> float:
    """The chance of a right guess that (epsilon, delta) leaves to the best attacker, who tossed no coin himself."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


@dataclass(frozen=True)
class Score:
    """How often the attacker was right."""

    rounds: int
    right: int

    @property
    def share(self) -> float:
        return self.right / self.rounds

    def beats(self, chance: float, alpha: float) -> bool:
        """Is the attacker proven to do better than that? Wrong with chance at most alpha."""
        return float(at_least(self.right, self.rounds, alpha)) > chance


def play(published: Callable[[bool], Any], guess: Callable[[Any], bool], rounds: int) -> Score:
    """So many rounds: a coin is tossed, everything is published anew, the attacker guesses how it fell."""
    checks.whole(rounds, "rounds")
    coins = Noise(SecureBits()).integers(2, rounds).astype(bool).tolist()
    return Score(rounds, sum(guess(published(coin)) == coin for coin in coins))


def released(plan: Plan[Any, Any], columns: Mapping[str, Any], schema: Schema) -> Any:
    """What a curator answers: priced, paid for from a budget of just that size, and blurred."""
    ledger = MemoryLedger({"people": Budget(epsilon=plan.price(), delta=plan.delta)})
    data = Private("people", dict(columns), unit=plan.unit, schema=schema)
    return Curator(data, ledger).release(plan).value
