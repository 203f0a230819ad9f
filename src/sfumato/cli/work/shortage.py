"""A release that does not fit: what is asked, spent and left, how much would fit, and the commands that help."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from fractions import Fraction
from typing import Any, cast

from ...errors import BudgetError, SfumatoError
from ...ledger import Ledger
from ...plan import Plan
from ..problems import BUDGET, CommandError

LESS = "ask for less (smaller --epsilon, --delta or --rho, wider --accuracy)"
_FINE = Fraction(1, 50)  # how exactly what would fit is told: a part of what was asked


def short_of(
    ledger: Ledger, path: tuple[str, ...], plan: Plan[Any, Any], error: BudgetError, less: str = LESS
) -> Exception:
    """Which account has no room, what is asked, spent and left there; how to ask for `less`, or to raise it."""
    for name in path:
        why = refused_in_words(ledger, name, plan)
        if why:
            fix = f"{less}, or raise the limit:\n{raise_command(ledger, name)}"
            return CommandError(f"the budget of {name} is short; nothing was charged", "\n".join(why), fix, BUDGET)
    return error


def refused_in_words(ledger: Ledger, account: str, plan: Plan[Any, Any], *, gauges: bool = False) -> list[str]:
    """Why the account has no room for the plan; empty where it has. With `gauges`, in each of its ways to add up."""
    lines = (ledger.refusal(account, plan) or "").splitlines()
    why = [line.strip() for line in lines if ": asked " in line]
    if not why:
        return []
    if (most := _most_that_fits(ledger, account, plan)) is not None:
        why.append(f"room: for one like it at epsilon {most:.3g}" if most else "room: for none like it, however small")
    if gauges:
        why += (ledger.refusal(account, plan, gauges=True) or "").splitlines()
    return why + [line for line in lines if line.startswith("Room is held")]


def raise_command(ledger: Ledger, account: str) -> str:
    """The command that raises a limit. Unless an account keeps delta back for that, it takes some more delta."""
    limit = next((each.account.filter for each in ledger.overview().accounts if each.account.name == account), None)
    start = f"sfumato ledger limit {account} "
    if limit is None:
        return f"{start}--help"
    budget = limit.budget
    if budget.rho is not None:
        return f"{start}--rho {float(2 * budget.rho):g} --reason WHY"
    more = f"{start}--epsilon {float(2 * budget.epsilon):g}"
    if budget.delta:
        more += f" --delta {float(budget.delta * (1 if budget.raisable else 2)):g}" + " --raisable" * budget.raisable
    return f"{more} --reason WHY"


def _most_that_fits(ledger: Ledger, account: str, plan: Plan[Any, Any]) -> float | None:
    """The largest epsilon at which the same plan would fit, rounded down; 0 where none would. None where the plan has
    no epsilon to make smaller."""
    asked = getattr(plan, "epsilon", None)
    if not isinstance(asked, Fraction) or not is_dataclass(plan) or plan.steps is not None:
        return None
    room, shrinking = ledger.room(account), cast(Any, plan)

    def fits(epsilon: Fraction) -> bool:
        try:
            less: Plan[Any, Any] = replace(shrinking, epsilon=epsilon)
            return room.fits(less.event, less.delta)
        except SfumatoError:
            return False

    low, high = asked / 4096, asked
    if not fits(low):
        return 0.0
    while high - low > _FINE * low:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return float(Fraction(f"{float(low * (1 - _FINE / 2)):.2g}")) if fits(low) else 0.0
